"""Processes that die at stated moments: here the death is noted in place of a signal, so that every moment is quick.

The real signal is in the nightly tests of the suite `failure`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, tool
from taoloop.core.events import ActionStarted
from taoloop.evals.trials.killed_process import MortalJournal, Reaper, mortal_tool
from taoloop.evals.trouble.entries import KILL_MOMENTS, Kill, KillMoment


class _NotingReaper(Reaper):
    """Notes each moment by which the process comes, in order."""

    def __init__(self, kill: Kill, moments: list[str]) -> None:
        super().__init__(kill, end_process=lambda: moments.append("death"))
        self._moments = moments

    def reach(self, moment: KillMoment, call_id: str) -> None:
        self._moments.append(f"{moment} {call_id}")
        super().reach(moment, call_id)


async def _moments(database: Path, kill: Kill) -> list[str]:
    """The moments of a run with two payments and a look-up between them, and the death among them."""
    moments: list[str] = []
    reaper = _NotingReaper(kill, moments)

    @tool(tier="write", inline=True)
    def pay(to: str) -> str:
        """Pay somebody."""
        moments.append(f"effect {to}")
        return "paid"

    @tool(tier="read")
    async def look() -> str:
        """Look."""
        return "seen"

    calls: list[Any] = [("pay", {"to": "Ann"}), ("look", {}), ("pay", {"to": "Bob"})]
    script: list[Any] = [{"tool_calls": [{"name": name, "args": args}]} for name, args in calls]
    async with MortalJournal(database, reaper) as journal:
        tools = [mortal_tool(pay, reaper), mortal_tool(look, reaper)]
        agent = Agent(model=[*script, "Done."], tools=tools, journal=journal, policy="autonomous")
        await agent.run("Pay Ann and Bob.", run_id="r")
    return moments


@pytest.mark.parametrize("moment", KILL_MOMENTS)
def test_a_process_dies_once_at_the_moment_of_the_stated_call(moment: KillMoment, tmp_path: Path) -> None:
    """The read between the payments is no call that counts."""
    moments = asyncio.run(_moments(tmp_path / "runs.db", Kill(moment=moment, call=2)))
    own = [text for text in moments if "call_2" not in text]
    assert own.index("death") == own.index(f"{moment} call_3") + 1
    own.remove("death")
    assert own == [
        *("after_request call_1", "after_start call_1", "effect Ann", "after_effect call_1", "after_observe call_1"),
        *("after_request call_3", "after_start call_3", "effect Bob", "after_effect call_3", "after_observe call_3"),
    ]


def test_a_resumed_process_counts_the_calls_that_an_earlier_one_started(tmp_path: Path) -> None:
    asyncio.run(_moments(tmp_path / "runs.db", Kill(moment="after_start", call=9)))
    deaths: list[str] = []

    async def load() -> list[str]:
        reaper = Reaper(Kill(moment="after_effect", call=2), end_process=lambda: deaths.append("death"))
        async with MortalJournal(tmp_path / "runs.db", reaper) as journal:
            events = await journal.load("r")
        reaper.reach("after_effect", "call_1")
        assert not deaths
        reaper.reach("after_effect", "call_3")
        return [event.fact.call_id for event in events if isinstance(event.fact, ActionStarted)]

    assert asyncio.run(load()) == ["call_1", "call_3"]
    assert deaths == ["death"]
