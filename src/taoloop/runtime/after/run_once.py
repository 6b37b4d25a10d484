"""Runs whose id follows from the work: asked for again after a crash, they are the same run."""

from __future__ import annotations

from taoloop.core.trace import Trace
from taoloop.errors import RunExists, RunNotFound
from taoloop.journals.base import Journal
from taoloop.runtime.bound_agent import BoundAgent


async def begun_run(agent: BoundAgent, journal: Journal, run_id: str, task: str) -> Trace | None:
    """The run with this id and task; None if it has not begun.

    The task is compared as it is stored: without secrets.

    Raises:
        RunExists: the run with this id has another task.
    """
    try:
        trace = Trace(run_id, await journal.load(run_id))
    except RunNotFound:
        return None
    stored = task if agent.redactor is None else agent.redactor.text(task)
    if trace.started is not None and trace.task != stored:
        raise RunExists(
            f"The run {run_id!r} exists, and has another task: {trace.task[:200]!r}.",
            hint="Make the id of what the run is about, so that other work has another id.",
        )
    return trace
