"""A run that outgrows its window, on the command line."""

from __future__ import annotations

import pytest
from tests.shell import Shell, call

TOOLS = '''
from taoloop import tool

@tool(tier="read")
def ledger(page: int) -> str:
    """Give one page of the ledger."""
    return f"Page {page}. " + "12 boxes of tea came in. " * 40
'''


@pytest.fixture
def script(tao: Shell) -> str:
    tao.write("mytools.py", TOOLS)
    pages = [call("ledger", page=number) for number in range(1, 14)]
    return tao.script(*pages[:9], "Tea came in every day (call_1).", *pages[9:], "tea")


def test_live_view_and_replay_tell_that_the_prompt_was_shortened(tao: Shell, script: str) -> None:
    args = ("run", "go", "--model", script, "--tools", "mytools:ledger", "--max-steps", "20")
    ended = tao(*args, "--context-tokens", "3500", code=0)
    assert "Context: steps 1 to " in ended.out
    assert "are now a summary (about " in ended.out
    assert "Tea came in every day" not in ended.out
    assert "Tea came in every day (call_1)." in tao("replay", "last", code=0).out
    assert tao("show", "last", code=0).out.count(" Thought: ") == 13, "a summary is no step"


def test_an_agent_file_has_the_window_and_the_switches(tao: Shell, script: str) -> None:
    tao.write(
        "agent.yaml",
        f"model: {script}\ntools: ['mytools:ledger']\nmax_steps: 20\ncontext_tokens: 3500\nearly_reads: true\n"
        "keep_thinking: true\n",
    )
    events = tao("run", "go", "--agent", "agent.yaml", "--json", code=0).events
    agent = events[0]["agent"]
    assert (agent["context_tokens"], agent["early_reads"], agent["keep_thinking"]) == (3500, True, True)
    assert [event["kind"] for event in events].count("compacted") == 1
    tao.write("wrong.yaml", "context_tokens: 100\nmax_output_tokens: 200\n")
    assert "context_tokens" in tao("run", "go", "--agent", "wrong.yaml", code=2).one_line
