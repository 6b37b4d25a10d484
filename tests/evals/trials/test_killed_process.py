"""Processes that die at stated moments: here the death is noted in place of a signal, so that every moment is quick.

The real signal is in the nightly tests of the suite `failure`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, tool
from taoloop.core.events import ActionStarted
from taoloop.errors import TaoError
from taoloop.evals.cases import Case
from taoloop.evals.checks.judges import Judges
from taoloop.evals.configurations import Configuration
from taoloop.evals.trials.killed_process import (
    DoomedTrial,
    MortalJournal,
    ProcessLost,
    Reaper,
    killed_trial,
    mortal_tool,
)
from taoloop.evals.trials.trial_run import Trial
from taoloop.evals.trouble.entries import KILL_MOMENTS, Kill, KillMoment
from taoloop.evals.worlds import notes_path
from taoloop.journals.memory import MemoryJournal


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


KILLS = (Kill(moment="after_effect", call=1), Kill(moment="after_observe", call=1))
OUTSIDE, SERVER_GONE = -9, 255


class _EndedProcess:
    """A process that has ended, and noted this before."""

    pid: int | None = None

    def __init__(self, doomed: DoomedTrial, exitcode: int, note: str = "") -> None:
        self.exitcode: int | None = exitcode
        if note:
            with notes_path(doomed.folder).open("a", encoding="utf-8") as file:
                file.write(f"{note}\n")

    def join(self) -> None: ...

    def is_alive(self) -> bool:
        return False

    def kill(self) -> None:
        raise AssertionError("it has ended")

    def close(self) -> None: ...


class _Starts:
    """Starts processes that end in this order, each with its exit code and its note; keeps their run ids."""

    def __init__(self, *ends: tuple[int, str]) -> None:
        self._ends, self.run_ids = iter(ends), list[str]()

    def __call__(self, doomed: DoomedTrial) -> _EndedProcess:
        self.run_ids.append(doomed.run_id)
        return _EndedProcess(doomed, *next(self._ends))


def _killed(folder: Path, start: Callable[[DoomedTrial], _EndedProcess], kills: Sequence[Kill] = KILLS) -> Trial:
    """A trial after the deaths of its processes."""
    case = Case(case_id="c", task="Pay.")
    trial = Trial(
        case=case,
        digest="d",
        configuration="agent",
        number=0,
        run_id="r",
        agent=Agent(),
        state={},
        folder=folder / "r",
        judges=Judges({}),
    )
    doomed = DoomedTrial(
        suite_path=folder / "suite.yaml",
        configuration=Configuration(name="agent"),
        case_id="c",
        number=0,
        run_id="r",
        folder=folder / "r",
        database=folder / "runs.db",
        env={},
        kill=kills[0],
    )
    return asyncio.run(killed_trial(trial, kills, MemoryJournal(), doomed, start))


def test_a_process_that_is_lost_begins_the_trial_anew_as_another_run(tmp_path: Path) -> None:
    """It was killed from outside between the deaths, and the server of processes went away: the third run counts."""
    starts = _Starts((OUTSIDE, "died"), (OUTSIDE, ""), (SERVER_GONE, ""), (OUTSIDE, "died"), (OUTSIDE, "died"))
    trial = _killed(tmp_path, starts)
    assert starts.run_ids == ["r", "r", "r-2", "r-3", "r-3"]
    assert (trial.run_id, trial.folder, trial.may_exist) == ("r-3", tmp_path / "r-3", True)
    assert not notes_path(tmp_path / "r").exists()


def test_a_process_that_is_lost_again_and_again_is_no_fault_of_the_agent(tmp_path: Path) -> None:
    starts = _Starts(*[(OUTSIDE, "")] * 3)
    with pytest.raises(ProcessLost, match=r"run r-3 ended with -9 before the moment .* run the same command again"):
        _killed(tmp_path, starts)


def test_a_process_says_why_it_cannot_begin_the_run_and_is_not_begun_again(tmp_path: Path) -> None:
    starts = _Starts((1, "The suite 'x' has no case 'c'."))
    with pytest.raises(TaoError, match="has no case 'c'") as caught:
        _killed(tmp_path, starts)
    assert not isinstance(caught.value, ProcessLost)
    assert starts.run_ids == ["r"]


def test_deaths_of_an_earlier_call_are_not_repeated_and_half_of_them_count_for_nothing(tmp_path: Path) -> None:
    notes_path(tmp_path / "r").write_text("died\ndied\n")
    assert _killed(tmp_path, _Starts()).run_id == "r"
    notes_path(tmp_path / "r").write_text("died\n")
    starts = _Starts((OUTSIDE, "died"), (OUTSIDE, "died"))
    assert _killed(tmp_path, starts).run_id == "r-2"
    assert starts.run_ids == ["r-2", "r-2"]
