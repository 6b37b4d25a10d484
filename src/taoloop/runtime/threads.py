"""Blocking functions in threads that never hold up the end of the process."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

MAX_THREADS = 64

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", contextvars.Context, Callable[[], Any]]


class WorkerThreads:
    """A pool of daemon threads, started as they are needed and kept.

    Daemon, because a tool that hangs for ever must not keep the process alive (the pool of concurrent.futures
    joins its threads at exit). A call beyond `max_threads` waits for a free thread; a hung call keeps its thread.
    """

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self._max_threads = max_threads
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._idle: deque[None] = deque()  # one entry per thread that waits; append and pop are atomic
        self._started = 0
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], Any]) -> Any:
        """The result of `function()`, run in a thread with the caller's context variables.

        If the caller stops waiting (a timeout, a cancellation) the thread goes on and its result is dropped.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((loop, future, contextvars.copy_context(), function))
        try:
            self._idle.pop()
        except IndexError:
            self._start_one()
        return await future

    def _start_one(self) -> None:
        with self._lock:
            if self._started >= self._max_threads:
                return
            self._started += 1
        threading.Thread(target=self._work, name=f"taoloop-tool-{self._started}", daemon=True).start()

    def _work(self) -> None:
        while True:
            loop, future, context, function = self._jobs.get()
            result: Any = None
            error: BaseException | None = None
            try:
                result = context.run(function)
            except BaseException as raised:  # noqa: BLE001  # handed to the waiting task, whatever it is
                error = raised
            self._idle.append(None)
            try:
                loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:  # the loop was closed: nobody waits for this any more
                del result, error
            del loop, future, context, function


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
