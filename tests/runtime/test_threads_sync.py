"""Code that is not async, and code that runs under another async library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, MemoryJournal, ScriptedModel, recover
from taoloop.errors import ConfigError

SCRIPT = """
import asyncio, os, signal, sys, threading
from taoloop import Agent, MemoryJournal, ScriptedModel, tool

@tool(tier="read")
async def interrupted() -> str:
    "Ctrl-C comes while it waits for ever."
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()
    return ""

journal = MemoryJournal()
script = [{"tool_calls": [{"name": "interrupted", "args": {}}]}, "done"]
agent = Agent(model=ScriptedModel(script), tools=[interrupted], journal=journal)

async def nested():
    agent.run_sync("t", run_id="r")

try:
    if sys.argv[1] == "alone":
        agent.run_sync("t", run_id="r")
    elif sys.argv[1] == "in asyncio.run":
        asyncio.run(nested())
    else:  # a loop that leaves the signal to Python
        asyncio.new_event_loop().run_until_complete(nested())
except KeyboardInterrupt:
    print("stopped", [row.status for row in asyncio.run(journal.runs())])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("where", ["alone", "in asyncio.run", "in a plain loop"])
def test_ctrl_c_stops_the_run_and_is_raised_again(where: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, where]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout.split() == ["stopped", "['stopped']"], done.stderr


@pytest.mark.parametrize(
    "begin",
    [
        lambda agent: agent.run("t"),
        lambda agent: agent.resume("r"),
        lambda agent: agent.fork("r", at=1),
        lambda agent: agent.undo("r"),
        lambda agent: agent.recover(),
        lambda agent: agent.chat().run("t"),
        lambda agent: recover(agent.journal, [agent]),
        lambda agent: agent.stream("t").__anext__(),
    ],
    ids=["run", "resume", "fork", "undo", "Agent.recover", "chat", "recover", "stream"],
)
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_another_async_library_gets_told_that_asyncio_is_needed(begin: Any, kind: str, tmp_path: Path) -> None:
    agent = Agent(model=ScriptedModel(["done"]), journal=MemoryJournal() if kind == "memory" else tmp_path / "runs.db")
    with pytest.raises(ConfigError, match=r"runs on asyncio.*trio\.to_thread\.run_sync\(agent\.run_sync, task\)"):
        begin(agent).send(None)  # as a loop that is not asyncio's starts it


def test_a_loop_of_another_kind_can_run_an_agent_in_a_thread() -> None:
    async def other() -> str | None:
        return Agent(model=ScriptedModel(["done"])).run_sync("t").answer

    with pytest.raises(StopIteration) as ended:
        other().send(None)
    assert ended.value.value == "done"
