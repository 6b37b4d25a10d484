"""A run in the background: a handle with its events, its result and its end, in any process that has its journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Literal

from typing_extensions import TypeVar

from taoloop.core.events import AnyEvent, Status
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import RunHeld, RunNotFound
from taoloop.journals.base import Journal, locks_of
from taoloop.journals.postgres.address import is_postgres
from taoloop.runtime.journal_access import end_holder, open_journal, stop_run
from taoloop.runtime.live.run_tail import follow_run
from taoloop.runtime.texts import TEXTS

Output_co = TypeVar("Output_co", default=Any, covariant=True)
"""The value that an answer is."""


class RunHandle(Generic[Output_co]):
    """A run that goes on by itself: in this process (`Agent.start`), or in another one (`attach`).

    The handle reads the journal, so it gives the same everywhere. To drop it changes nothing about the run.

    Args:
        run_id: The id of the run.
        open_journal: Opens its journal for as long as a block runs.
        result_of: Makes the result of its trace.
        running: The task that drives it, where the handle started it.
    """

    def __init__(
        self,
        run_id: str,
        open_journal: Callable[[], AbstractAsyncContextManager[Journal]],
        result_of: Callable[[Trace], Result[Output_co]],
        running: asyncio.Task[Result[Output_co]] | None = None,
    ) -> None:
        self.run_id = run_id
        self._open_journal, self._result_of, self._running = open_journal, result_of, running
        if running is not None:
            _RUNNING.add(running)
            running.add_done_callback(_RUNNING.discard)

    def __repr__(self) -> str:
        return f"<RunHandle {self.run_id}>"

    async def status(self) -> Status | Literal["running"]:
        """How the run is: `running`, `waiting` for a person, or how it ended. One whose process died is `running`.

        Raises:
            RunNotFound: the journal has no such run.
        """
        if self._running is not None and not self._running.done():
            return "running"
        return (await self._load()).status

    async def events(self, *, after: int = -1) -> AsyncGenerator[AnyEvent, None]:
        """The events of the run: first those that there are, with a seq above `after`, then each as it comes.

        They end where the run ends or waits for a person. Leaving the iteration stops nothing.

        Raises:
            RunHeld: no process is at work on the run any more (`result`).
            RunNotFound: the journal has no such run.
        """
        async with (
            self._open_journal() as journal,
            aclosing(follow_run(journal, self.run_id, Trace(self.run_id), self._running)) as events,
        ):
            async for event in events:
                if event.seq > after:
                    yield event

    async def result(self) -> Result[Output_co]:
        """The result, once the run has ended or waits for a person (its status is `waiting` then).

        Cancelling this stops nothing.

        Raises:
            RunHeld: no process is at work on the run any more, and it has not ended.
            RunNotFound: the journal has no such run.
            TaoError: as `Agent.run`, where this handle started the run.
        """
        running = self._running
        if running is not None:
            await asyncio.wait((running,))
            return self._result_of(await self._load()) if running.cancelled() else running.result()
        trace = Trace(self.run_id)
        async with self._open_journal() as journal, aclosing(follow_run(journal, self.run_id, trace)) as events:
            async for _ in events:
                pass
        return self._result_of(trace)

    async def stop(self, *, end_process: bool = False) -> bool:
        """Stop the run; returns whether there was anything to stop. It records that, and can be resumed.

        Only its own process can stop a run and nothing else. `end_process` ends another process that is at work on it
        (SIGTERM, after 10 s SIGKILL), with all the runs that it drives: they can be resumed.

        Raises:
            RunHeld: another process is at work on it, and is not to be ended, or cannot be.
            RunNotFound: the journal has no such run.
        """
        running = self._running
        if running is not None and not running.done():
            running.cancel()
            await asyncio.wait((running,))
            return True
        async with self._open_journal() as journal:
            if (await self._load()).status != "running":
                return False
            if await stop_run(journal, self.run_id):
                return True
            if end_process:
                return await end_holder(journal, self.run_id)
            run_locks = locks_of(journal)
            holder = None if run_locks is None else await run_locks.holder(self.run_id)
            if holder is None:
                return False
            values = {"run_id": self.run_id, "holder": holder}
            raise TEXTS.run_error(RunHeld, "run_held", values, hint=TEXTS.run_text("run_held_stop_hint"))

    async def _load(self) -> Trace:
        async with self._open_journal() as journal:
            return Trace(self.run_id, await journal.load(self.run_id))


_RUNNING: set[asyncio.Task[Any]] = set()
"""The tasks that handles have started: an event loop holds its tasks only weakly."""


async def attach(journal: Journal | str | Path, run_id: str) -> RunHandle:
    """A handle for a run of a journal, or of the one in a file, whichever process drives it.

    The result's `output` is plain JSON where the run has an output type: only its agent knows the type
    (`Agent.attach`).

    Raises:
        RunNotFound: there is no such file, or no such run in it.
        JournalError: the file cannot be opened.
    """
    if isinstance(journal, str | Path) and not is_postgres(journal) and not Path(journal).exists():  # noqa: ASYNC240  # quick
        raise RunNotFound(f"There is no run {run_id}: no database is at {journal}.", hint="Check the path.")
    handle = RunHandle[Any](run_id, lambda: open_journal(journal), _plain_result)
    await handle.status()
    return handle


def _plain_result(trace: Trace) -> Result:
    result, schema = Result.of(trace), trace.agent.output_schema
    if schema is None or result.answer is None:
        return result
    from taoloop.runtime.output_type import validator_for  # noqa: PLC0415  # loads the schema machinery

    return replace(result, output=validator_for(schema).value(result.answer))
