"""Where connections to MCP servers live: one event loop per process, in a thread of its own, that all runs share.

A run may have an event loop of its own and end with it; a started server should serve the next run, too.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from taoloop.core.text import RUN_LANGUAGE

if TYPE_CHECKING:
    from taoloop.tools.mcp.connection import Connection
    from taoloop.tools.mcp.settings import McpServer

T = TypeVar("T")
Outcome = tuple[T, BaseException | None]

_CLOSE_S = 8.0  # for all servers together to end


class LoopThread:
    """The loop with its thread, and the connections in it by the key of their settings."""

    def __init__(self) -> None:
        self.connections: dict[str, Connection] = {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="taoloop-mcp", daemon=True)
        self.thread.start()

    def submit(self, act: Callable[[], Awaitable[T]]) -> Future[Outcome[T]]:
        """Act in the loop, from any thread; an error is part of the outcome, so that none gets lost."""

        async def outcome() -> Outcome[Any]:
            try:
                return await act(), None
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
                return None, error

        context = contextvars.Context()  # empty: the connection would keep the context of whichever call came first
        context.run(RUN_LANGUAGE.set, RUN_LANGUAGE.get())
        return context.run(asyncio.run_coroutine_threadsafe, outcome(), self.loop)

    def use(self, server: McpServer, use: Callable[[Connection], Awaitable[T]]) -> Future[Outcome[T]]:
        """Use the one connection of these settings, which is not yet opened if it is new."""

        def act() -> Awaitable[T]:
            from taoloop.tools.mcp.connection import Connection  # noqa: PLC0415  # needs the SDK, which is optional

            if server.key not in self.connections:
                self.connections[server.key] = Connection(server)
            return use(self.connections[server.key])

        return self.submit(act)

    def stop(self) -> None:
        """Close every connection, then end the loop and its thread."""
        closing = self.submit(self._close_all)
        with suppress(TimeoutError, CancelledError):
            closing.result(_CLOSE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_CLOSE_S)

    async def _close_all(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self.connections.values()), return_exceptions=True)
        self.connections.clear()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:  # ends what is left in the loop, and closes it
            runner.get_loop().run_forever()


_lock = threading.Lock()
_current: list[LoopThread] = []
_of_parents: list[LoopThread] = []  # in a forked process those of its parent: to collect them would end its servers


def resident() -> LoopThread:
    """The loop of this process, started at the first use."""
    with _lock:
        if not _current:
            _current.append(LoopThread())
        return _current[0]


async def use_connection(server: McpServer, use: Callable[[Connection], Awaitable[T]]) -> T:
    """Use the connection of these settings in the resident loop, from any other; a cancellation is passed on."""
    return _result(await asyncio.wrap_future(resident().use(server, use)))


def use_connection_sync(server: McpServer, use: Callable[[Connection], Awaitable[T]]) -> T:
    """The same for a thread without an event loop; Ctrl-C is passed on."""
    future = resident().use(server, use)
    try:
        return _result(future.result())
    except BaseException:
        future.cancel()  # without effect once there is an outcome
        raise


def _result(outcome: Outcome[T]) -> T:
    result, error = outcome
    if error is not None:
        raise error
    return result


def close_server(server: McpServer) -> None:
    """End the connection of these settings, and the program if one was started. The next call opens it again."""

    async def close(connection: Connection) -> None:
        resident().connections.pop(server.key, None)
        await connection.close()

    if _current:
        use_connection_sync(server, close)


def close_all() -> None:
    """End all connections of this process and the thread that served them; a later call starts another."""
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
