"""Async code from code that is not: one small bridge for all of it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of the coroutine that `make` gives, waited for by this thread.

    Where this thread already runs a loop (a notebook, an async handler), the coroutine runs in a loop of its own in
    another thread, with the caller's context variables. Ctrl-C cancels it, waits for its end, and is raised again.
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

    async def main() -> T:
        task = asyncio.ensure_future(make())
        running.append((asyncio.get_running_loop(), task))
        return await task

    def work() -> None:
        try:
            done.append(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  # raised again in the waiting thread
            failed.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="taoloop-run", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if failed:
        raise failed[0]
    return done[0]
