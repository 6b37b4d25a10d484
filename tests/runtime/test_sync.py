"""Ctrl-C while code that is not async waits for a run."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
