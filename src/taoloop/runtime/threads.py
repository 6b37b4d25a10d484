"""Blocking functions in threads that never hold up the end of the process."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from taoloop.errors import ToolError

MAX_THREADS = 1_024
PATIENCE_S = 10.0

_Job = tuple[
    asyncio.AbstractEventLoop, "asyncio.Future[Any]", contextvars.Context, Callable[[], Any], list[None]
]  # the last: one entry until the job is claimed, by the thread that begins it or by who gives up; pop is atomic


class WorkerThreads:
    """A pool of daemon threads, started as they are needed and kept.

    Daemon, because a tool that hangs for ever must not keep the process alive (the pool of concurrent.futures
    joins its threads at exit). A hung call keeps its thread, and so does one that waits for another call; there are
    so many threads that these do not keep the others waiting. Should all `max_threads` be busy, a call waits up to
    `patience_s` seconds for one of them.
    """

    def __init__(self, max_threads: int = MAX_THREADS, patience_s: float = PATIENCE_S) -> None:
        self._max_threads, self._patience_s = max_threads, patience_s
        self.forget()

    def forget(self) -> None:
        """Begin anew without threads: for a forked child, which has none of them."""
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._free = 0  # threads that wait, less the jobs that wait for them

    async def run(self, function: Callable[[], Any]) -> Any:
        """The result of `function()`, run in a thread with the caller's context variables.

        If the caller stops waiting (a timeout, a cancellation), a function that runs goes on and its result is
        dropped; one that has not begun never does.

        Raises:
            ToolError: `no_free_thread`; the function was not called.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        job = (loop, future, contextvars.copy_context(), function, [None])
        with self._lock:
            self._free -= 1
            waits = self._free < 0
            starts = waits and self._started < self._max_threads
            if starts:
                self._started += 1
                self._free += 1
        self._jobs.put(job)
        if starts:
            self._start_one(job)
        elif waits:
            timer = loop.call_later(self._patience_s, _give_up, job, f"all {self._max_threads:,} threads are busy")
            future.add_done_callback(lambda _: timer.cancel())
        return await future

    def _start_one(self, job: _Job) -> None:
        try:
            threading.Thread(target=self._work, name=f"taoloop-tool-{self._started}", daemon=True).start()
        except RuntimeError as error:  # the system has no more of them
            with self._lock:
                self._started -= 1
                self._free -= 1
            _give_up(job, str(error))

    def _work(self) -> None:
        while True:
            self._perform(self._jobs.get())

    def _perform(self, job: _Job) -> None:
        loop, future, context, function, claims = job
        result: Any = None
        error: BaseException | None = None
        begun = not future.done() and not loop.is_closed() and _claim(claims)
        if begun:
            try:
                result = context.run(function)
            except BaseException as raised:  # noqa: BLE001  # handed to the waiting task, whatever it is
                error = raised
        with self._lock:
            self._free += 1
        if begun:
            try:
                loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:  # the loop was closed: nobody waits for this any more
                return


def _claim(claims: list[None]) -> bool:
    try:
        claims.pop()
    except IndexError:
        return False
    return True


def _give_up(job: _Job, reason: str) -> None:
    """Let the caller know that the job will not begin, unless it has."""
    _, future, _, _, claims = job
    if not future.done() and _claim(claims):
        future.set_exception(
            ToolError(
                f"The call was not started: {reason}.",
                code="no_free_thread",
                retryable=True,
                hint="Nothing happened; try again when other calls have ended.",
            )
        )


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):
        future.set_exception(RuntimeError("the tool raised StopIteration"))
    else:
        future.set_exception(error)


POOL = WorkerThreads()
"""The threads of this process for blocking tools."""

if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=POOL.forget)
