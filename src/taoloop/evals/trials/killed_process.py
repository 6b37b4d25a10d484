"""Trials whose process is killed on purpose: a process of its own begins the run, and dies by SIGKILL at a moment.

What the trial then goes on with is what any process finds after a crash: the journal, and the file of the world. So
effects that happen twice, and effects that are lost, are counted against what the world has really seen.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taoloop.core.events import ActionStarted, Event, Observed
from taoloop.errors import ConfigError, TaoError
from taoloop.evals.cases import case_digest
from taoloop.evals.checks.judges import Judges
from taoloop.evals.configurations import Configuration
from taoloop.evals.suite_file import read_suite
from taoloop.evals.trials.trial_agent import configured_agent
from taoloop.evals.trials.trial_run import Trial, drive_trial, entered_trial
from taoloop.evals.trouble.entries import Kill, KillMoment
from taoloop.evals.wrapped_tools import wrapped_tool
from taoloop.journals.base import Artifact, Lease
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.tools.tool import RunContext, Tool
from taoloop.translation import Translator

translate = Translator("evals")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoomedTrial:
    """A trial as another process can make it again, and when that process dies."""

    suite_path: Path
    """The file of the suite."""
    configuration: Configuration
    """The configuration."""
    case_id: str
    """The case."""
    number: int
    """The number of the trial."""
    run_id: str
    """The id of its run."""
    folder: Path
    """The folder of the trial's world."""
    database: Path
    """The database of the evaluation."""
    env: Mapping[str, str] | None
    """The variables for models, keys and secrets; None: those of the process."""
    kill: Kill
    """When the process dies."""


async def run_until_killed(doomed: DoomedTrial) -> None:
    """Begin or resume the run of a trial in a process of its own, until that process is killed.

    A run that ends before that moment is left as it ended.

    Raises:
        TaoError: the process ended in another way.
    """
    process = _process_context().Process(target=_run_child, args=(doomed,), name=f"taoloop-{doomed.run_id}")
    process.start()
    try:
        await asyncio.to_thread(process.join)
    finally:
        if process.is_alive():  # the evaluation is stopped
            process.kill()
            process.join()
    code = process.exitcode
    process.close()
    if code not in (0, -signal.SIGKILL):
        raise TaoError(translate("The process of the run {run_id} ended with {code}.", run_id=doomed.run_id, code=code))


def _process_context() -> Any:
    """How processes are begun: by a server that has everything imported, and never by a fork of this one's threads."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _run_child(doomed: DoomedTrial) -> None:
    asyncio.run(_begin(doomed))


async def _begin(doomed: DoomedTrial) -> None:
    suite = read_suite(doomed.suite_path)
    case = next((case for case in suite.cases() if case.case_id == doomed.case_id), None)
    if case is None:
        raise ConfigError(translate("The suite {suite!r} has no case {case!r}.", suite=suite.name, case=doomed.case_id))
    reaper = Reaper(doomed.kill)
    agent = configured_agent(suite, doomed.configuration, doomed.env)
    tools = tuple(mortal_tool(tool, reaper) if isinstance(tool, Tool) else tool for tool in agent.tools)
    trial = Trial(
        case=case,
        digest=case_digest(case),
        configuration=doomed.configuration.name,
        number=doomed.number,
        run_id=doomed.run_id,
        agent=replace(agent, tools=tools),
        state=suite.world,
        folder=doomed.folder,
        judges=Judges(doomed.env),
        seed=doomed.configuration.seed or 0,
    )
    async with MortalJournal(doomed.database, reaper) as journal:
        with entered_trial(trial) as world:
            await drive_trial(trial, world, journal)


def kill_this_process() -> None:
    """End this process at once; nothing of it runs any more."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


class Reaper:
    """Knows which call of the run is which, and ends the process at the stated moment of one of them.

    Args:
        kill: The moment.
        end_process: Called at that moment.
    """

    def __init__(self, kill: Kill, end_process: Callable[[], None] = kill_this_process) -> None:
        self._kill, self._end_process = kill, end_process
        self._started: list[str] = []

    def note_start(self, call_id: str) -> None:
        """Note that a call above `read` starts; a further attempt of one that was noted is the same call."""
        if call_id not in self._started:
            self._started.append(call_id)

    def reach(self, moment: KillMoment, call_id: str) -> None:
        """Come by a moment of a call."""
        is_due = call_id in self._started and self._started.index(call_id) + 1 == self._kill.call
        if is_due and moment == self._kill.moment:
            self._end_process()


class MortalJournal(SqliteJournal):
    """The journal of a process that is to die: it tells a `Reaper` when calls are stored."""

    def __init__(self, path: Path, reaper: Reaper) -> None:
        super().__init__(path, synchronous="NORMAL")
        self._reaper = reaper

    async def load(self, run_id: str) -> list[Event]:
        """As `SqliteJournal.load`; calls that an earlier process started are noted.

        Raises:
            RunNotFound: the journal has no such run.
        """
        events = await super().load(run_id)
        for event in events:
            if isinstance(event.fact, ActionStarted):
                self._reaper.note_start(event.fact.call_id)
        return events

    async def append(self, lease: Lease, events: Sequence[Event], artifacts: Sequence[Artifact] = ()) -> None:
        """As `SqliteJournal.append`, unless the process dies before or after it.

        Raises:
            FenceLost: another worker has acquired the run; nothing was written.
        """
        starts = [event.fact.call_id for event in events if isinstance(event.fact, ActionStarted)]
        for call_id in starts:
            self._reaper.note_start(call_id)
            self._reaper.reach("after_request", call_id)
        await super().append(lease, events, artifacts)
        for call_id in starts:
            self._reaper.reach("after_start", call_id)
        for event in events:
            if isinstance(event.fact, Observed):
                self._reaper.reach("after_observe", event.fact.call_id)


def mortal_tool(tool: Tool, reaper: Reaper) -> Tool:
    """The tool in a process that is to die: it tells the reaper when its effect has happened."""

    def after(context: RunContext, result: Any) -> Any:
        reaper.reach("after_effect", context.call_id)
        return result

    return wrapped_tool(tool, after=after)
