"""Trials whose process is killed on purpose: a process of its own begins the run, and dies by SIGKILL at a moment.

What the trial then goes on with is what any process finds after a crash: the journal, and the file of the world. So
effects that happen twice, and effects that are lost, are counted against what the world has really seen.

Before it dies, the process notes its death in a file beside the world. A process that ends without that note died for
another reason (somebody killed it, memory ran out): what it left measures nothing, so the trial begins anew as another
run. After a few of these it is invalid.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import multiprocessing.process
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from taoloop.core.events import ActionStarted, Event, Observed
from taoloop.errors import ConfigError, TaoError
from taoloop.evals.cases import case_digest
from taoloop.evals.checks.judges import Judges
from taoloop.evals.checks.outcome_texts import outcome_detail
from taoloop.evals.configurations import Configuration
from taoloop.evals.suite_file import read_suite
from taoloop.evals.trials.trial_agent import configured_agent
from taoloop.evals.trials.trial_run import Trial, drive_trial, earlier_trace, entered_trial, unexpected_error
from taoloop.evals.trouble.entries import Kill, KillMoment
from taoloop.evals.worlds import notes_path, remove_world
from taoloop.evals.wrapped_tools import wrapped_tool
from taoloop.journals.base import Artifact, Journal, Lease
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.tools.tool import RunContext, Tool
from taoloop.translation import Translator, mark

translate = Translator("evals")

_DIED = "died"
"""What a process notes before it dies at its moment."""
_MOST_LOSSES = 3
_SERVER_LOST = 255  # as multiprocessing says where the server that forked a process is gone
_ORPHAN_POLLS, _ORPHAN_POLL_S = 100, 0.02


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


class StartedProcess(Protocol):
    """What is needed of a process."""

    @property
    def pid(self) -> int | None:
        """Its id."""

    @property
    def exitcode(self) -> int | None:
        """How it ended; None: it has not."""

    def join(self) -> None:
        """Wait for its end."""

    def is_alive(self) -> bool:
        """Whether it has not ended."""

    def kill(self) -> None:
        """End it."""

    def close(self) -> None:
        """Forget it."""


StartProcess = Callable[[DoomedTrial], StartedProcess]
"""Begins the process of a trial."""


class ProcessLost(TaoError):
    """The process of a trial ended otherwise than the case says."""


async def killed_trial(
    trial: Trial, kills: Sequence[Kill], journal: Journal, doomed: DoomedTrial, start: StartProcess
) -> Trial:
    """The trial, once its processes have died at all of `kills`: under another run id if the first ones were lost.

    Deaths that an earlier call brought about are not repeated. A run that ended before the moment is left as it ended.

    Args:
        trial: The trial.
        kills: The moments, in their order; at least one.
        journal: Where its run is stored.
        doomed: The trial as another process can make it; its run and its kill are set here.
        start: Begins a process (`start_process`).

    Raises:
        TaoError: a process was lost again and again, or could not begin the run.
    """
    losses = 0
    for attempt in count():
        current = trial if not attempt else _anew(trial, attempt)
        deaths = _notes(current.folder).count(_DIED)
        trace = await earlier_trace(current, journal)
        if deaths >= len(kills) or trace.finished is not None:
            break
        if not deaths and not trace.events:
            try:
                for kill in kills:
                    own = replace(doomed, run_id=current.run_id, folder=current.folder, kill=kill)
                    await run_until_killed(own, start)
                break
            except ProcessLost:
                losses += 1
                if losses == _MOST_LOSSES:
                    raise
        remove_world(current.folder)  # an earlier call was stopped between the deaths, or a process was lost
    return replace(current, may_exist=True)


def _anew(trial: Trial, attempt: int) -> Trial:
    run_id = f"{trial.run_id}-{attempt + 1}"
    return replace(trial, run_id=run_id, folder=trial.folder.with_name(run_id), may_exist=True)


async def run_until_killed(doomed: DoomedTrial, start: StartProcess) -> None:
    """Begin or resume the run of a trial in a process of its own, until that process has died at its moment.

    Raises:
        TaoError: the process says why it cannot begin the run.
        ProcessLost: the process ended in another way; it is gone.
    """
    before = _notes(doomed.folder)
    code = await _run_process(doomed, start)
    notes = _notes(doomed.folder)[len(before) :]
    if _DIED in notes or code == 0:
        return
    if notes:
        raise TaoError(notes[-1])
    text = mark("The process of the run {run_id} ended with {code} before the moment at which it was to be killed.")
    hint = translate("Something outside the case ended it, such as a lack of memory: run the same command again.")
    raise ProcessLost(translate(text, run_id=doomed.run_id, code=code), hint=hint)


async def _run_process(doomed: DoomedTrial, start: StartProcess) -> int | None:
    """Run a process to its end, and give its exit code.

    Raises:
        ProcessLost: the server that was to fork it, or that waits for it, is gone.
    """
    text = mark("The process of the run {run_id} was lost: the process that starts it is gone.")
    lost = ProcessLost(translate(text, run_id=doomed.run_id), hint=translate("Run the same command again."))
    try:
        process = start(doomed)
    except (OSError, EOFError) as error:
        raise lost from error
    try:
        await asyncio.to_thread(process.join)
    finally:
        if process.is_alive():  # the evaluation is stopped
            process.kill()
            process.join()
    code, pid = process.exitcode, process.pid
    process.close()
    if code == _SERVER_LOST and pid is not None:
        await asyncio.to_thread(_end_orphan, pid)
        raise lost
    return code


def _end_orphan(pid: int) -> None:
    """End a process whose server is gone: it would write on in the run, and nothing here can wait for it."""
    with suppress(ProcessLookupError):
        for _ in range(_ORPHAN_POLLS):
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            time.sleep(_ORPHAN_POLL_S)


def start_process(doomed: DoomedTrial) -> multiprocessing.process.BaseProcess:
    """Begin the process of a trial: forked by a server that has everything imported, never from this one's threads."""
    process: multiprocessing.process.BaseProcess
    process = process_context(__name__).Process(target=_run_child, args=(doomed,), name=f"taoloop-{doomed.run_id}")
    process.start()
    return process


def process_context(module: str) -> Any:
    """Makes processes that share no thread with this one: forked, where that is possible, with `module` imported."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
    return context


def _run_child(doomed: DoomedTrial) -> None:
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the evaluation, which ends this process in order
    try:
        asyncio.run(_begin(doomed))
    except TaoError as error:
        _add_note(doomed.folder, str(error))
        sys.exit(1)
    except Exception as error:  # noqa: BLE001  # whatever it is, the evaluation says so of this trial
        _add_note(doomed.folder, outcome_detail(unexpected_error(error), "en"))
        sys.exit(1)


def _notes(folder: Path) -> list[str]:
    """What the processes of a trial have noted: a line for each death, and for each reason why a run cannot begin."""
    try:
        return notes_path(folder).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def _add_note(folder: Path, text: str) -> None:
    path = notes_path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(" ".join(text.split()) + "\n")


async def _begin(doomed: DoomedTrial) -> None:
    suite = read_suite(doomed.suite_path)
    case = next((case for case in suite.cases() if case.case_id == doomed.case_id), None)
    if case is None:
        raise ConfigError(translate("The suite {suite!r} has no case {case!r}.", suite=suite.name, case=doomed.case_id))

    def die() -> None:
        _add_note(doomed.folder, _DIED)
        kill_this_process()

    reaper = Reaper(doomed.kill, end_process=die)
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

    def __init__(self, kill: Kill, end_process: Callable[[], None]) -> None:
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
