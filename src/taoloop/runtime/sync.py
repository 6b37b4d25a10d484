"""Async code from code that is not async, and the refusal of event loops other than asyncio's."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from taoloop.errors import ConfigError

T = TypeVar("T")

_LOOK_S = 0.05  # nothing wakes a thread that waits when a signal handler cancels its task


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
    """The result of the coroutine that `make` gives, waited for by this thread.

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
    done: list[T] = []
    failed: list[BaseException] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []
    stopping, ended = threading.Event(), threading.Event()

    async def main() -> T:
        task = asyncio.ensure_future(make())
        running.append((asyncio.get_running_loop(), task))
        if stopping.is_set():
            task.cancel()
        return await task

    def work() -> None:
        try:
            done.append(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  # raised again in the waiting thread
            failed.append(error)
        finally:
            ended.set()

    def stop() -> None:
        stopping.set()
        for loop, task in running:
            with suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(task.cancel)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="taoloop-run", daemon=True)
    try:
        thread.start()
        _wait(ended, stop)
    except KeyboardInterrupt:
        stop()
        ended.wait()  # not `join`: after a Ctrl-C in it, Python 3.11 takes the thread for one that has ended
        raise
    if failed:
        raise failed[0]
    return done[0]


def _wait(ended: threading.Event, stop: Callable[[], None]) -> None:
    caller = asyncio.current_task()
    cancelled = caller.cancelling() if caller is not None else 0
    while not ended.wait(_LOOK_S):
        if caller is not None and caller.cancelling() > cancelled:
            cancelled = caller.cancelling()
            stop()
