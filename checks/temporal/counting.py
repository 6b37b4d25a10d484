"""An `advance` that counts, and an engine that serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from temporalio.client import Client

from taoloop.runtime.fleet.engine import Advanced
from taoloop.runtime.fleet.temporal.connection import connect
from taoloop.runtime.fleet.temporal.engine import TemporalEngine

DEADLINE_S = 60.0


class CountingAdvance:
    """Gives these results one after the other, then `completed`.

    Args:
        results: What it gives.
        during: What it does before it gives anything.
    """

    def __init__(self, *results: Advanced, during: Callable[[str], Coroutine[Any, Any, None]] | None = None) -> None:
        self._results, self._during = list(results), during
        self.run_ids: list[str] = []
        self._changed = asyncio.Event()

    async def __call__(self, run_id: str) -> Advanced:
        self.run_ids.append(run_id)
        self._changed.set()
        result = self._results.pop(0) if self._results else Advanced("completed")
        if self._during is not None:
            await self._during(run_id)
        return result

    async def reaches(self, count: int) -> None:
        """Wait until it was called so often."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self.run_ids) < count:
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def serving(address: str, advance: Callable[[str], Awaitable[Advanced]]) -> AsyncIterator[TemporalEngine]:
    """An engine of its own that serves as long as the block runs."""
    engine = TemporalEngine(await connect(address))
    task = asyncio.create_task(engine.serve(advance))
    try:
        yield engine
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def submit(engine: TemporalEngine, run_ids: Sequence[str]) -> None:
    """Submit runs that are due at once."""
    for run_id in run_ids:
        await engine.submit(run_id, None, "default", 3, "acme")


async def ended(client: Client, run_id: str) -> Any:
    """The workflow of a run, once it has ended: its description."""
    handle = client.get_workflow_handle(run_id)
    async with asyncio.timeout(DEADLINE_S):
        await handle.result()
    return await handle.describe()
