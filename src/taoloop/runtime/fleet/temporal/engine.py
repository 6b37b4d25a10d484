"""The engine of large fleets: Temporal decides which worker advances a run; a workflow per run remembers when.

Journal and Temporal are two writes, and whoever made the first may die before the second. So everything here may be
repeated, and `Sweeper` repeats it: a submit finds the workflow that is there (the id is the run's) or starts one where
the last has ended, and a wake that comes twice costs one look into the journal.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import PollerBehaviorSimpleMaximum, UnsandboxedWorkflowRunner, Worker as TemporalWorker

from taoloop.core.agent_spec import DEFAULT_QUEUE
from taoloop.errors import JournalError
from taoloop.runtime.fleet.engine import RUNNING, Advance, Advanced
from taoloop.runtime.fleet.temporal.claim import AttemptClaim
from taoloop.runtime.fleet.temporal.connection import engine_error, is_namespace_missing
from taoloop.runtime.fleet.temporal.workflow import ADVANCE, WORKFLOW, RunWorkflow

_TASK_S: Final = 2.0
"""How long a worker may take for a task of a workflow, which takes milliseconds: one that takes longer is gone."""

_AT_ONCE_S: Final = 0.001
"""Temporal takes 0 for its default."""

_PASS_S, _PASS_MOST_S = 2.0, 60.0
"""How long a run stays away that this worker could not drive twice in a row; doubled each time, up to the second."""

_POLLS: Final = PollerBehaviorSimpleMaximum(maximum=2)
"""How many questions for work are open. A worker that stands still is given a run for each, for `HEARTBEAT_S`."""

_LONGEST_GRACE: Final = timedelta(days=365)
"""The SDK cancels nothing by itself: `serve` says when."""

_LONGEST_TENANT: Final = 64
"""How many bytes a fairness key may have."""

_LOG = logging.getLogger("taoloop.fleet")


class TemporalEngine:
    """An `Engine` over a namespace of Temporal.

    A queue is the task queue `taoloop-QUEUE`, a priority is Temporal's, and a tenant its fairness key.

    Args:
        client: The connection (`connection.connect`).
        queues: The queues whose runs it advances.
        concurrency: How many runs of each queue at once.
    """

    def __init__(self, client: Client, *, queues: Sequence[str] = (DEFAULT_QUEUE,), concurrency: int = 10) -> None:
        self._client, self._queues, self._concurrency = client, tuple(queues), concurrency
        self._turns: set[asyncio.Task[Advanced]] = set()
        self._passed_over: dict[str, float] = {}  # by run: for how long it is left the next time, in seconds
        self._is_stopping = False

    async def submit(self, run_id: str, at: float | None, queue: str, priority: int, tenant: str) -> None:
        """As `Engine.submit`."""
        delay_s = 0.0 if at is None else at - time.time()
        try:
            await self._client.start_workflow(
                WORKFLOW,
                id=run_id,
                task_queue=task_queue(queue),
                task_timeout=timedelta(seconds=_TASK_S),
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_delay=timedelta(seconds=delay_s) if delay_s > 0 else None,
                priority=Priority(priority_key=priority, fairness_key=fairness_key(tenant)),
            )
        except RPCError as error:
            raise self._error(error) from None

    async def wake(self, run_id: str) -> None:
        """As `Engine.wake`."""
        self._passed_over.pop(run_id, None)
        await self._signal(run_id, "wake")

    async def cancel(self, run_id: str) -> None:
        """As `Engine.cancel`: a signal, for a workflow that is cancelled itself cannot look into the journal again."""
        await self._signal(run_id, "cancel")

    async def serve(self, advance: Advance) -> None:
        """As `Engine.serve`."""
        workers = [self._worker(queue, advance) for queue in self._queues]
        running = [asyncio.create_task(worker.run(), name="taoloop-temporal") for worker in workers]
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._is_stopping = True
            await self._settle(workers)
            await asyncio.gather(*running, return_exceptions=True)
            self._is_stopping = False
        for task in running:
            try:
                await task
            except RPCError as error:
                raise self._error(error) from None
            except RuntimeError as error:  # what the SDK gives of its core
                raise JournalError(f"Temporal has ended the worker: {error.__cause__ or error}") from None

    def _worker(self, queue: str, advance: Advance) -> TemporalWorker:
        @activity.defn(name=ADVANCE)
        async def advance_run() -> tuple[str, float | None]:
            return await self._advance(advance)

        return TemporalWorker(
            self._client,
            task_queue=task_queue(queue),
            workflows=[RunWorkflow],
            activities=[advance_run],
            workflow_runner=UnsandboxedWorkflowRunner(),
            max_cached_workflows=0,  # a cached one is bound to its worker, and waits 10 s for it when that is gone
            max_concurrent_activities=self._concurrency,
            workflow_task_poller_behavior=_POLLS,
            activity_task_poller_behavior=_POLLS,
            disable_eager_activity_execution=True,  # an eager one passes by priorities and rate limits
            graceful_shutdown_timeout=_LONGEST_GRACE,
        )

    async def _advance(self, advance: Advance) -> tuple[str, float | None]:
        """The activity. What is left to others is a failed attempt: the server repeats it, and stores no history."""
        info = activity.info()
        run_id = info.workflow_id or ""
        claim = AttemptClaim(self._client.get_async_activity_handle(task_token=info.task_token))
        if not await claim.stands():
            raise _left("The attempt is stale.", _AT_ONCE_S)
        task = asyncio.create_task(_call(advance, run_id), name=f"taoloop-{run_id}")
        self._turns.add(task)
        try:
            await claim.keep(task)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
        finally:
            self._turns.discard(task)
        if task.cancelled():
            raise _left("The turn was cancelled.", _AT_ONCE_S)
        if (error := task.exception()) is not None:
            _LOG.error("run %s: the turn failed", run_id, exc_info=error)
            raise _left("The turn failed.", self._pass_over(run_id))
        advanced = task.result()
        if advanced.status == RUNNING:
            pause_s = self._pass_over(run_id)
            raise _left("The run was left.", pause_s if advanced.wake_at is None else advanced.wake_at - time.time())
        self._passed_over.pop(run_id, None)
        return advanced

    def _pass_over(self, run_id: str) -> float:
        """For how long a run is left: not at all by a worker that ends, or for the first time."""
        if self._is_stopping:
            return _AT_ONCE_S
        pause_s = self._passed_over.pop(run_id, _AT_ONCE_S)
        self._passed_over[run_id] = min(max(2 * pause_s, _PASS_S), _PASS_MOST_S)
        while len(self._passed_over) > 10_000:
            self._passed_over.pop(next(iter(self._passed_over)))
        return pause_s

    async def _settle(self, workers: Sequence[TemporalWorker]) -> None:
        """End the workers, once the turns under way have; a cancellation meanwhile cancels them, and is raised then."""
        ending = asyncio.gather(*(worker.shutdown() for worker in workers), return_exceptions=True)
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError as error:
                cancelled = error
                for task in self._turns:
                    task.cancel()
        if cancelled is not None:
            raise cancelled

    async def _signal(self, run_id: str, name: str) -> None:
        try:
            await self._client.get_workflow_handle(run_id).signal(name)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND or is_namespace_missing(error):
                raise self._error(error) from None

    def _error(self, error: RPCError) -> Exception:
        return engine_error(error, f"{self._client.service_client.config.target_host}/{self._client.namespace}")


def task_queue(queue: str) -> str:
    """The task queue of Temporal for a queue."""
    return f"taoloop-{queue}"


def fairness_key(tenant: str) -> str:
    """The fairness key of a tenant: its name, or the digest of one that is too long."""
    name = tenant.encode()
    return tenant if len(name) <= _LONGEST_TENANT else hashlib.sha256(name).hexdigest()


async def _call(advance: Advance, run_id: str) -> Advanced:
    return await advance(run_id)


def _left(message: str, pause_s: float) -> ApplicationError:
    return ApplicationError(
        message,
        type="Left",
        next_retry_delay=timedelta(seconds=max(pause_s, _AT_ONCE_S)),
        category=ApplicationErrorCategory.BENIGN,  # no warning, no count of failures
    )
