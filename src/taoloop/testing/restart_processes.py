"""The processes of the restart harness: each makes or resumes a run in a folder of its own, and may die there."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.evals.trials.killed_process import kill_this_process, process_context
from taoloop.runtime.agent import Agent
from taoloop.runtime.run_options import NewRunOptions
from taoloop.testing.killed_journal import Fate, KillingSqliteJournal, KillPoint

RUN_ID = "restart"
"""The id of each run of the harness."""

DATABASE = "runs.db"
"""The journal in the folder of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPlan:
    """What a process of the harness does."""

    make_agent: Callable[[], Agent[Any, Any]]
    """Makes its agent."""
    task: str
    """The task."""
    effects: Callable[[], Sequence[Any]]
    """Lists what has happened to the world."""
    options: NewRunOptions
    """The options of the run."""
    folder: Path
    """Where it works; made if it is missing."""
    point: KillPoint | None = None
    """Where it dies; None: nowhere."""


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """How a process of the harness ended."""

    appends: Sequence[tuple[str, ...]] = ()
    """What it stored: for each append the kinds of its events."""
    effects: Sequence[Any] = ()
    """What has happened to the world at its end."""
    failure: str = ""
    """The traceback of its error; empty: there was none."""
    is_killed: bool = False
    """Whether it died at its point."""


def run_process(plan: ProcessPlan) -> ProcessReport:
    """Make or resume the run in a process of its own, and wait for its end.

    Raises:
        ConfigError: it ended in another way than by its end or its point; the message has its traceback.
    """
    plan.folder.mkdir(parents=True, exist_ok=True)
    context = process_context(__name__)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_child, args=(plan, sender), name=f"taoloop-{RUN_ID}")
    process.start()
    sender.close()
    try:
        report: ProcessReport = receiver.recv()
    except EOFError:  # it died
        report = ProcessReport(is_killed=True)
    finally:
        receiver.close()
        process.join()
    failure = report.failure
    if report.is_killed and (plan.point is None or not (plan.folder / _DEATH_NOTE).exists()):
        failure = f"It ended with {process.exitcode} before the point at which it was to die."
    process.close()
    if failure:
        raise ConfigError(f"A process of the restart harness failed in {plan.folder}:\n{failure}")
    return report


_DEATH_NOTE = "died"


def _run_child(plan: ProcessPlan, sender: Connection) -> None:
    os.chdir(plan.folder)
    try:
        report = asyncio.run(_work(plan))
    except Exception:  # noqa: BLE001  # whatever it is, the test that started the process says so
        report = ProcessReport(failure=traceback.format_exc())
    sender.send(report)
    sender.close()


async def _work(plan: ProcessPlan) -> ProcessReport:
    def die() -> None:
        Path(_DEATH_NOTE).touch()
        kill_this_process()

    fate = Fate(plan.point, die)
    async with KillingSqliteJournal(Path(DATABASE), fate) as journal:
        agent = replace(plan.make_agent(), journal=journal)
        is_known = any(row.run_id == RUN_ID for row in await journal.runs())
        if not is_known:
            await agent.run(plan.task, **plan.options)
        elif not Trace(RUN_ID, await journal.load(RUN_ID)).is_over:
            await agent.resume(RUN_ID)
        await agent.close()
    return ProcessReport(fate.appends, list(plan.effects()))
