"""A small game in one page, written and then improved in a workspace: the model is scripted, the file tools are real.

`edit_file` replaces one exact text: a text that occurs twice is refused with its lines, and the next edit names more of
it. Each change is kept, so that `tao undo` takes back the edit or everything. Changing a file needs a person's answer;
here the operator gives it ahead of time for the tier `write`, without that the run waits.
Run: python examples/html_game.py [FOLDER]     The page is in FOLDER, the run in FOLDER.db.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

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
  const [form, field, verdict] = ["form", "input", "p"].map((name) => document.querySelector(name));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const guess = Number(field.value);
    verdict.textContent = guess === secret ? "Right!" : guess < secret ? "Higher." : "Lower.";
    field.select();
  });
</script>
"""

TITLE, BETTER_TITLE = "<h1>Guess the number, 1 to 20</h1>", "<h1>Guess my number, 1 to 20</h1>"


def _call(text: str, name: str, **args: Any) -> Reply:
    return {"text": text, "tool_calls": [{"name": name, "args": {"path": "index.html", **args}}]}


SCRIPT: list[Reply] = [
    _call("I write the whole game into one page.", "write_file", content=PAGE),
    _call("A friendlier heading.", "edit_file", old="Guess the number", new="Guess my number"),
    _call("It is in the title as well; I name the whole heading.", "edit_file", old=TITLE, new=BETTER_TITLE),
    _call("I check what is there.", "read_file"),
    {"text": "The game is in index.html; open it in a browser."},
]


def run(workspace: Path, *, allowed: bool = True, journal: Path | None = None) -> Result:
    """Write and improve the game in `workspace`; not `allowed`, the run waits for a person instead."""
    agent = Agent(
        model=ScriptedModel(SCRIPT),
        tools=["write_file", "edit_file", "read_file"],
        workspace=workspace,
        approved_tiers=("write",) if allowed else (),
        journal=journal,
    )
    return agent.run_sync("Write a small number-guessing game as one HTML page, then improve its heading.")


def main(folder: Path) -> None:
    """Run the demo, and print each call with what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    result = run(folder, journal=folder.with_suffix(".db"))
    for call in result.trace.calls.values():
        if (observed := call.observed) is None:
            continue
        if observed.error:
            print(f"{call.requested.tool}: {observed.error.message}")
        else:
            content = json.loads(observed.output)
            print(f"{call.requested.tool}: {content.get('message', 'ok').partition(';')[0]}")
            print("\n".join(content.get("diff", "").splitlines()[2:]), end="\n" if "diff" in content else "")
    print(result.answer)
    print(f"Take the edit back: tao undo {result.run_id} --db {folder.with_suffix('.db')} --to 1")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="taoloop-")) / "game")
