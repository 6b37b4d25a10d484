"""What reaches the runs of a fleet from outside: they are submitted, woken, cancelled and released.

Each of these is in the journal before the engine hears of it. An engine that cannot be reached then is no error of the
answer that was given: a warning is logged, and the sweeper of any worker makes up for it (`sweeper.py`).
"""

from __future__ import annotations

import logging

from taoloop.core.agent_spec import Submission
from taoloop.core.events import RunStarted
from taoloop.core.trace import Trace
from taoloop.errors import TaoError
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
    first = (await read_start(journal, run_id))[:1]
    started = first[0].fact if first else None
    submission = started.submission if isinstance(started, RunStarted) else None
    if submission is None:
        return False
    try:
        if engine is None or isinstance(engine, str):
            async with open_engine(engine, journal) as opened:
                await _tell(opened, run_id, submission)
        else:
            await _tell(engine, run_id, submission)
    except TaoError as error:
        _LOG.warning("run %s could not be woken; workers will find it: %s", run_id, error)
    return True


async def _tell(engine: Engine, run_id: str, submission: Submission) -> None:
    at = submission.not_before  # known to nobody where the engine has lost what it knew
    await engine.submit(run_id, at, submission.queue, submission.priority, submission.tenant)
    await engine.wake(run_id)
