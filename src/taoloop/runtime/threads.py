"""Async code called from blocking code, and blocking code called from async code; only asyncio's loops are supported.

Threads here are daemons: none of them delays the end of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from taoloop.errors import ConfigError, ToolError

T = TypeVar("T")

_POLL_S = 0.05  # nothing wakes a waiting thread when a signal handler cancels its task


def require_asyncio() -> None:
    """Refuse to run under another async library, such as trio.

    Raises:
        ConfigError: no asyncio event loop runs in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigError(
            "taoloop runs on asyncio, and no asyncio event loop is running here.",
            hint="Start it with asyncio.run(agent.run(task)). Under trio or curio call agent.run_sync(task) in a worker"
            " thread, such as await trio.to_thread.run_sync(agent.run_sync, task).",
        ) from None


def run_sync(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of the coroutine that `make` returns, for which this thread waits.

    Where this thread already runs a loop (a notebook, an async handler), the coroutine runs in a loop of its own in
    another thread, with the caller's context variables. Ctrl-C, or a cancellation of the calling task by a signal
    handler (`asyncio.run` makes that of Ctrl-C), cancels it, waits for its end, and is raised again.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    return _run_in_thread(make)


def _run_in_thread(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    outcome: Future[T] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []
    stopping = threading.Event()

    async def main() -> T:
        task = asyncio.ensure_future(make())
        running.append((asyncio.get_running_loop(), task))
        if stopping.is_set():
            task.cancel()
        return await task

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  # raised again in the waiting thread
            outcome.set_exception(error)

    def stop() -> None:
        stopping.set()
        for loop, task in running:
            with suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(task.cancel)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="taoloop-run", daemon=True)
    try:
        thread.start()
        _wait(outcome, stop)
    except KeyboardInterrupt:
        stop()
        wait([outcome])  # not `join`: after a Ctrl-C in it, Python 3.11 takes the thread for one that has ended
        raise
    return outcome.result()


def _wait(outcome: Future[Any], stop: Callable[[], None]) -> None:
    caller = asyncio.current_task()
    cancelled = caller.cancelling() if caller is not None else 0
    while not wait([outcome], _POLL_S).done:
        if caller is not None and caller.cancelling() > cancelled:
            cancelled = caller.cancelling()
            stop()


MAX_THREADS = 1_024
PATIENCE_S = 10.0


class WorkerThreads:
    """A pool of daemon threads, started as they are needed and reused.

    Daemon, because a tool that never returns must not keep the process alive (the pool of concurrent.futures joins
    its threads at exit). A hung call occupies its thread, and so does one that waits for another call; the pool is
    large so that these do not block the others. If all `max_threads` are busy, a call waits up to `patience_s`
    seconds for one of them.
    """

    def __init__(self, max_threads: int = MAX_THREADS, patience_s: float = PATIENCE_S) -> None:
        self._max_threads, self._patience_s = max_threads, patience_s
        self.reset()

    def reset(self) -> None:
        """Drop all threads: for a forked child, which has none of them."""
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._idle = 0  # idle threads, less the queued calls

    async def run(self, function: Callable[[], Any]) -> Any:
        """The result of `function()`, run in a thread with the caller's context variables.

        If the caller stops waiting (a timeout, a cancellation), a function that runs continues and its result is
        dropped; one that has not started never does.

        Raises:
            ToolError: `no_free_thread`; the function was not called.
        """
        call = _Call(function)
        with self._lock:
            if self._idle <= 0 and self._started < self._max_threads:
                self._start_thread()
            self._idle -= 1
            must_wait = self._idle < 0
        self._calls.put(call)
        if not must_wait:
            return await call.future
        timer = call.loop.call_later(self._patience_s, call.refuse, self._max_threads)
        try:
            return await call.future
        finally:
            timer.cancel()

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._work, name=f"taoloop-tool-{self._started + 1}", daemon=True).start()
        except RuntimeError as error:  # the system has no more of them
            raise _no_free_thread(str(error)) from error
        self._started += 1
        self._idle += 1

    def _work(self) -> None:
        while True:
            self._perform(self._calls.get())  # no local here: an idle thread keeps nothing of a call alive

    def _perform(self, call: _Call) -> None:
        outcome = call.execute()
        with self._lock:
            self._idle += 1  # before the caller resumes, so that its next call finds this thread
        if outcome is not None:
            with suppress(RuntimeError):  # the loop was closed: nobody waits for this any more
                call.loop.call_soon_threadsafe(call.settle, *outcome)


class _Call:
    """A function to be called in a thread, for a caller that waits in an event loop."""

    __slots__ = ("_claim", "_context", "_function", "future", "loop")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function, self._context = function, contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self._claim = threading.Lock()  # acquired once, by the thread that starts the call or by `refuse`

    def refuse(self, max_threads: int) -> None:
        """Tell the caller that the function will not be called, unless a thread has started it."""
        if not self.future.done() and self._claim.acquire(blocking=False):
            self.future.set_exception(_no_free_thread(max_threads=max_threads))

    def execute(self) -> tuple[Any, BaseException | None] | None:
        """Call the function. Returns its result and its error, or None if the call was abandoned before it started."""
        if self.future.done() or self.loop.is_closed() or not self._claim.acquire(blocking=False):
            return None
        try:
            return self._context.run(self._function), None
        except StopIteration as error:  # a future does not take it
            return None, RuntimeError(f"{type(error).__name__} was raised in the tool")
        except BaseException as error:  # noqa: BLE001  # handed to the waiting task, whatever it is
            return None, error

    def settle(self, result: Any, error: BaseException | None) -> None:
        """Give the outcome to the caller, unless it has stopped waiting. Runs in the loop."""
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


def _no_free_thread(reason: str = "", *, max_threads: int = 0) -> ToolError:
    from taoloop.runtime.texts import TEXTS  # noqa: PLC0415  # the facade of the agent imports this module

    reason = reason or TEXTS.run_text("threads_busy", most=max_threads)
    return ToolError(
        TEXTS.run_text("no_free_thread", reason=reason),
        code="no_free_thread",
        retryable=True,
        hint=TEXTS.run_text("no_free_thread_hint"),
    )


POOL = WorkerThreads()
"""The threads of this process for blocking tools."""

if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=POOL.reset)
