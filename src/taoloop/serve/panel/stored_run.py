"""What the pages about a whole stored run share: the run itself, and the commands that they show for a terminal."""

from __future__ import annotations

import asyncio
import shlex

from taoloop.core.trace import Trace
from taoloop.errors import RunNotFound
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.serve.panel.context import PanelContext


async def load_trace(context: PanelContext) -> Trace:
    """The run in the address.

    Raises:
        RunNotFound: there is no such run, or it never began.
    """
    run_id = context.param("run_id")
    events = await context.journal.load(run_id)
    if not events:
        raise _empty_run(run_id)
    return await asyncio.to_thread(Trace, run_id, events)  # other pages are answered meanwhile


async def load_excerpt(context: PanelContext, *call_ids: str) -> Trace:
    """The part of the run in the address that its open questions, its end and these calls need.

    Raises:
        RunNotFound: there is no such run, or it never began.
    """
    trace = await read_excerpt(context.journal, context.param("run_id"), call_ids=call_ids)
    if not trace.events:
        raise _empty_run(trace.run_id)
    return trace


def _empty_run(run_id: str) -> RunNotFound:
    return RunNotFound(f"The run {run_id} ended before its first event was written; it is empty.")


def command_line(context: PanelContext, *words: str) -> str:
    """A command of the terminal, with the database of the panel where that is a file."""
    path = getattr(context.journal, "path", None)
    return context.without_path(shlex.join([*words, *([] if path is None else ["--db", str(path)])]))
