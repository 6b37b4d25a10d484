"""A small game in one page, written into a workspace: the model is scripted, the file tools are real.

Writing a file needs a person's answer. Here the operator gives it ahead of time for the tier `write`; without
that the run would wait. Run: python examples/html_game.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from taoloop import Agent, Result, ScriptedModel
from taoloop.models import Reply

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Guess the number</title>
<h1>Guess the number, 1 to 20</h1>
<form><input type="number" min="1" max="20" required autofocus> <button>Guess</button></form>
<p role="status"></p>
<script>
  const secret = 1 + Math.floor(Math.random() * 20);
  const [form, field, said] = ["form", "input", "p"].map((name) => document.querySelector(name));
  let tries = 0;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tries += 1;
    const guess = Number(field.value);
    said.textContent = guess === secret ? `Right, after ${tries} tries.` : guess < secret ? "Higher." : "Lower.";
    field.select();
  });
</script>
"""

SCRIPT: list[Reply] = [
    {
        "text": "I write the whole game into one page.",
        "tool_calls": [{"name": "write_file", "args": {"path": "game/index.html", "content": PAGE}}],
    },
    {
        "text": "I check what stands there.",
        "tool_calls": [{"name": "read_file", "args": {"path": "game/index.html"}}],
    },
    {"text": "The game is in game/index.html; open it in a browser."},
]


def run(workspace: Path, *, allowed: bool = True) -> Result:
    """Write the game into `workspace`; not `allowed`, the run waits for a person instead."""
    agent = Agent(
        model=ScriptedModel(SCRIPT),
        tools=["write_file", "read_file"],
        workspace=workspace,
        approved_tiers=("write",) if allowed else (),
    )
    return agent.run_sync("Write a small number-guessing game as one HTML page.")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="taoloop-game-"))
    print(run(folder).answer, folder)
