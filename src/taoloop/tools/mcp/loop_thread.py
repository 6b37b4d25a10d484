"""Where connections to MCP servers live: one event loop per process, in a thread of its own, that all runs share.

A run may have an event loop of its own and end with it; a started server should serve the next run, too.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from taoloop.core.text import RUN_LANGUAGE

if TYPE_CHECKING:
    from taoloop.tools.mcp.connection import Connection
    from taoloop.tools.mcp.settings import McpServer

T = TypeVar("T")

_CLOSE_S = 8.0  # for all servers together to end


class LoopThread:
    """The loop with its thread, and the connections in it by the key of their settings."""

    def __init__(self) -> None:
        self.connections: dict[str, Connection] = {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="taoloop-mcp", daemon=True)
        self.thread.start()

    def connection(self, server: McpServer) -> Connection:
        """The one connection of these settings; not yet opened if it is new. Only in the thread of the loop."""
        from taoloop.tools.mcp.connection import Connection  # noqa: PLC0415  # it needs this module

        connection = self.connections.get(server.key)
        if connection is None:
            connection = self.connections[server.key] = Connection(server)
        return connection

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[tuple[T | None, BaseException | None]]:
        """Run a coroutine in the loop, from any thread; its error is part of the outcome, so that none gets lost."""

        async def outcome() -> tuple[T | None, BaseException | None]:
            try:
                return await coroutine, None
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
                return None, error

        context = contextvars.Context()  # empty: the connection would keep the context of whichever call came first
        context.run(RUN_LANGUAGE.set, RUN_LANGUAGE.get())
        return context.run(asyncio.run_coroutine_threadsafe, outcome(), self.loop)

    def stop(self) -> None:
        """Close every connection, then end the loop and its thread."""
        closing = self.submit(self._close_all())
        with suppress(TimeoutError, CancelledError):
            closing.result(_CLOSE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_CLOSE_S)
        if not self.thread.is_alive():
            self.loop.close()

    async def _close_all(self) -> None:
        await asyncio.gather(
            *(open_connection.close() for open_connection in self.connections.values()), return_exceptions=True
        )
        self.connections.clear()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())


_lock = threading.Lock()
_current: list[LoopThread] = []
_of_parents: list[
    LoopThread
] = []  # of the process that this one was forked from: to collect them would end its servers


def resident() -> LoopThread:
    """The loop of this process, begun at the first use."""
    with _lock:
        if not _current:
            _current.append(LoopThread())
        return _current[0]


async def run_in_loop(make: Callable[[LoopThread], Coroutine[Any, Any, T]]) -> T:
    """Run what `make` gives in the resident loop, from any other; a cancellation is passed on."""
    loop_thread = resident()
    result, error = await asyncio.wrap_future(loop_thread.submit(make(loop_thread)))
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # without an error there is a result


def run_in_loop_sync(make: Callable[[LoopThread], Coroutine[Any, Any, T]]) -> T:
    """The same for a thread without an event loop; Ctrl-C is passed on."""
    loop_thread = resident()
    future = loop_thread.submit(make(loop_thread))
    try:
        result, error = future.result()
    except BaseException:
        future.cancel()
        raise
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # without an error there is a result


def close_server(server: McpServer) -> None:
    """End the connection of these settings, and the program if one was started. The next call opens it again."""

    async def close(loop_thread: LoopThread) -> None:
        connection = loop_thread.connections.pop(server.key, None)
        if connection is not None:
            await connection.close()

    if _current:
        run_in_loop_sync(close)


def close_all() -> None:
    """End all connections of this process and the thread that served them; a later call begins anew."""
    with _lock:
        loop_thread = _current.pop() if _current else None
    if loop_thread is not None:
        loop_thread.stop()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603  # the old one may be held by a thread that does not exist here
    _lock = threading.Lock()
    _of_parents.extend(_current)
    _current.clear()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
