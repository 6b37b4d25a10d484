"""The events of a run as its journal gets them, from whichever process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, cast

from taoloop.core.events import AnyEvent, Event, Paused
from taoloop.core.trace import Trace
from taoloop.errors import RunHeld, RunNotFound
from taoloop.journals.base import Journal, locks_of
from taoloop.journals.queries import JournalQueries, queries_of
from taoloop.runtime.journal_access import is_driven_here
from taoloop.runtime.texts import TEXTS

LOOK_S = 1.0
"""How often a run that says nothing is looked after: whether a process is still at work on it."""

_PAGE = 500


async def follow_run(
    journal: Journal, run_id: str, trace: Trace, running: asyncio.Task[Any] | None = None
) -> AsyncGenerator[AnyEvent, None]:
    """The events of a run, those that there are and then each as it comes, until it has ended or waits.

    A run that was submitted goes on once an answer is added: its workers see to that.

    `trace`, which is empty, gets each event before it is given. `running` is the task that drives the run, where the
    caller has started it: its first event may be still to come.

    Raises:
        RunHeld: no process is at work on the run, and it has not ended.
        RunNotFound: there is no such run.
        JournalError: the journal cannot be asked for this.
    """
    queries = queries_of(journal)
    is_lost = False
    while True:
        position = await queries.position()  # before reading: nothing can come in between
        count = len(trace)
        async for event in _read_new(queries, run_id, trace, running):
            yield event
        is_submitted = trace.started is not None and trace.started.submission is not None  # a worker will come
        is_answered = trace.paused is not None and not isinstance(trace.events[-1].fact, Paused)
        if trace.status != "running" and not (is_submitted and is_answered):
            return
        if running is not None and running.done():
            running.result()
        if is_lost and len(trace) == count:
            raise TEXTS.run_error(RunHeld, "run_lost", {"run_id": run_id})
        # looked at twice: its end may have been recorded between the two
        is_lost = running is None and not is_submitted and not await _is_driven(journal, run_id)
        if not is_lost:
            await _wait_for_growth(queries, run_id, position)


async def _read_new(
    queries: JournalQueries, run_id: str, trace: Trace, running: asyncio.Task[Any] | None
) -> AsyncGenerator[AnyEvent, None]:
    page: list[Event] | None = None
    while page is None or len(page) == _PAGE:
        try:
            page = await queries.read(run_id, after=len(trace) - 1, limit=_PAGE)
        except RunNotFound:
            if running is None:
                raise
            if running.done():
                running.result()  # raises why it never began
            return
        for event in page:
            trace.append(event)
            yield cast("AnyEvent", event)


async def _is_driven(journal: Journal, run_id: str) -> bool:
    """Whether a process may be at work on the run: one that cannot be seen from here is believed to be."""
    run_locks = locks_of(journal)
    if run_locks is None or is_driven_here(journal, run_id):
        return True
    return await run_locks.holder(run_id) is not None or await run_locks.was_elsewhere(run_id)


async def _wait_for_growth(queries: JournalQueries, run_id: str, position: str) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_S), aclosing(queries.tail(position)) as growths:
            async for growth in growths:
                if not growth.runs or run_id in growth.runs:
                    return
