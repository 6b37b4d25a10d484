"""What reaches the runs of a fleet from outside: they are submitted, woken, cancelled and released.

Each of these is in the journal before the engine hears of it. An engine that cannot be reached then is no error of the
answer that was given: a warning is logged, and the sweeper of any worker makes up for it (`sweeper.py`).
"""

from __future__ import annotations

import logging

from taoloop.core.agent_spec import Submission
from taoloop.core.events import RunStarted
from taoloop.core.trace import Trace
from taoloop.errors import RunNotFound, TaoError
from taoloop.journals.base import Journal
from taoloop.journals.queries import read_start
from taoloop.runtime.fleet.engine import Engine
from taoloop.runtime.fleet.engines import open_engine

_LOG = logging.getLogger("taoloop.fleet")


def submission_of(trace: Trace) -> Submission | None:
    """Where and when workers drive a run; None for one that is no run of workers."""
    return None if trace.started is None else trace.started.submission


async def wake_run(journal: Journal, run_id: str, *, engine: Engine | str | None = None) -> bool:
    """Have workers go on with a run to which something was added; returns whether it is a run of workers.

    `run_id` is that of the outermost run. `engine` is the engine or its address (`open_engine`); None: the configured
    one. Where it cannot be reached a warning is logged: workers find the run by themselves within a minute.
    """
    started = await _read_started(journal, run_id)
    submission = None if started is None else started.submission
    if submission is None:
        return False
    await tell_engine(journal, run_id, submission, engine, wakes=True)
    return True


async def tell_engine(
    journal: Journal, run_id: str, submission: Submission, engine: Engine | str | None, *, wakes: bool = False
) -> None:
    """Submit a run that is stored to the engine, and wake it too where it may be waiting. No error stops that."""
    try:
        if engine is None or isinstance(engine, str):
            async with open_engine(engine, journal) as opened:
                await _tell(opened, run_id, submission, wakes)
        else:
            await _tell(engine, run_id, submission, wakes)
    except TaoError as error:
        _LOG.warning("run %s: the engine could not be told; workers will find the run: %s", run_id, error)


async def is_submitted(journal: Journal, run_id: str) -> bool:
    """Whether workers drive a run; of one inside another one: that one."""
    started = await _read_started(journal, run_id)
    while started is not None and started.parent is not None:
        started = await _read_started(journal, started.parent)
    return started is not None and started.submission is not None


async def _read_started(journal: Journal, run_id: str) -> RunStarted | None:
    try:
        first = (await read_start(journal, run_id))[:1]
    except RunNotFound:
        return None
    return first[0].fact if first and isinstance(first[0].fact, RunStarted) else None


async def _tell(engine: Engine, run_id: str, submission: Submission, wakes: bool) -> None:
    at = submission.not_before  # known to nobody where the engine has lost what it knew
    await engine.submit(run_id, at, submission.queue, submission.priority, submission.tenant)
    if wakes:
        await engine.wake(run_id)
