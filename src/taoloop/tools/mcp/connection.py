"""The connection to one server, in the resident loop: opened when it is needed, anew after it broke, and shared.

Pauses between tries become longer after each failure. One task owns the SDK's client, from its opening to its end;
requests come from tasks of their own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from taoloop.errors import McpFailed, McpLost, TaoError, ToolError, ToolTimeout
from taoloop.tools.egress.client import http_client
from taoloop.tools.mcp.errors import breaks_connection, describe, is_unsent, leaf_errors, not_answered, not_reached
from taoloop.tools.mcp.listing import Definition, FilteredTransport, Listing, list_all, listed_tools
from taoloop.tools.mcp.stdio import StdioTransport
from taoloop.tools.mcp.texts import TEXTS

if TYPE_CHECKING:
    from mcp import Client

    from taoloop.tools.mcp.listing import FilteredTransport
    from taoloop.tools.mcp.settings import McpServer

_HTTP_READ_S = 300.0  # streams are silent for long; requests have limits of their own
_LISTEN_TRIES, _LISTEN_PAUSE_S = 5, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What a program may add to a connection: answers to questions of a server, and authentication for HTTP."""

    elicitation: Any = None
    """Answers questions of the server; None: they are refused."""
    http_auth: Any = None
    """Authenticates HTTP requests; None: the headers of the settings alone do."""


async def make_transport(
    server: McpServer, hooks: Hooks, stack: AsyncExitStack, on_response: Callable[[Any], Awaitable[None]]
) -> Any:
    """The transport to a server, not yet entered. Its HTTP client is closed with `stack`."""
    if not server.url:
        return StdioTransport(server)
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  # optional and heavy

    client = await stack.enter_async_context(
        http_client(
            server.rules(),
            headers=server.headers,
            timeout_s=_HTTP_READ_S,
            max_bytes=server.max_message_bytes,
            auth=hooks.http_auth,
            event_hooks={"response": [on_response]},
        )
    )
    return streamable_http_client(server.url, http_client=client, max_sse_event_size=server.max_message_bytes)


def make_client(server: McpServer, hooks: Hooks, transport: FilteredTransport, on_change: Callable[[], None]) -> Client:
    """The SDK's client, not yet entered. `on_change` is called at a notice that the list of tools changed."""
    import mcp_types  # noqa: PLC0415  # optional
    from mcp import Client  # noqa: PLC0415  # optional and heavy

    async def on_message(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            on_change()

    return Client(
        transport,
        mode="legacy" if server.protocol == "2025-11-25" else "auto",
        read_timeout_seconds=server.start_timeout_s,
        message_handler=on_message,
        client_info=mcp_types.Implementation(name="taoloop", version=version("taoloop")),
        elicitation_callback=hooks.elicitation,
        cache=None,  # a kept answer would hide that a tool changed
    )


def check_protocol_version(server: McpServer, client: Client) -> None:
    """Refuse a server that does not speak the revision that was asked for.

    Raises:
        McpFailed: `server_away`.
    """
    expected, spoken = server.protocol, client.protocol_version
    if expected == "2026-07-28" and spoken < expected:
        values: dict[str, Any] = {"server": server.display_name, "spoken": spoken, "expected": expected}
        raise TEXTS.error("other_revision", "server_away", error_type=McpFailed, **values)


async def listen_for_changes(client: Client, on_change: Callable[[], None]) -> None:
    """In the stateless era: wait for notices that the list of tools changed, as long as the server gives them."""
    from mcp import MCPError  # noqa: PLC0415  # optional
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost  # noqa: PLC0415  # likewise

    tools = client.server_capabilities.tools
    if tools is None or not tools.list_changed:
        return
    for turn in range(_LISTEN_TRIES):
        try:
            async with client.listen(tools_list_changed=True) as notices:
                on_change()  # it may have changed before we listened
                async for _ in notices:
                    on_change()
        except (ListenNotSupportedError, MCPError):
            return  # the list is asked for anew once it is old
        except (SubscriptionLost, TimeoutError):
            on_change()
        await asyncio.sleep(_LISTEN_PAUSE_S * 2**turn)


_FIRST_S, _LONGEST_S = 0.2, 60.0
_PATIENCE_S = 5.0  # a pause up to this is waited out; above it, the server counts as away
_SETTLED_S = 30.0  # after this a connection counts as good, and the next pause is the first again


class ReconnectBackoff:
    """How often a server failed in a row, and when the next try is due."""

    def __init__(self) -> None:
        self._failures, self._due = 0, 0.0

    def ended(self, lived_s: float) -> None:
        """Note the end of a connection that lived so long; 0 if it did not come about."""
        self._failures = 1 if lived_s > _SETTLED_S else self._failures + 1
        self._due = time.monotonic() + min(_LONGEST_S, _FIRST_S * 2 ** (self._failures - 1))

    async def wait(self, server: McpServer) -> None:
        """Wait until the next try is due.

        Raises:
            McpFailed: that is too long.
        """
        remaining_s = self._due - time.monotonic()
        if remaining_s > _PATIENCE_S:
            values: dict[str, Any] = {"server": server.display_name, "count": self._failures, "seconds": remaining_s}
            raise TEXTS.error("paused", "server_away", error_type=McpFailed, retryable=True, **values)
        await asyncio.sleep(max(0.0, remaining_s))


_LOG = logging.getLogger("taoloop.mcp")
logging.getLogger("mcp").addHandler(logging.NullHandler())  # the SDK's words, else on standard error where nobody asked

_RECHECK_S = 60.0  # so old may a list of tools be where no notice of changes came
_UNANSWERED = 3  # calls in a row without an answer, until a server is started anew
_CAUSE_S = 1.0
_MOST_TOLD = 1_000  # lines of progress of one call; a server may send any number
_LINE_CHARS = 200
_CLOSE_S = 1.0  # for a server over HTTP to hear that its session ends

T = TypeVar("T")


class Connection:
    """One server. Everything here runs in the resident loop."""

    def __init__(self, server: McpServer, hooks: Hooks | None = None) -> None:
        self.server, self._hooks = server, hooks or Hooks()
        self._client: Client | None = None
        self._starting: asyncio.Future[Client] | None = None
        self._stop: asyncio.Event | None = None
        self._owners: set[asyncio.Task[None]] = set()
        self._transport: Any = None
        self._why = ""
        self._cause: BaseException | None = None
        self._status = 0
        self._spoken: str | None = None
        self._pauses = ReconnectBackoff()
        self._listing: Listing | None = None
        self._listed_at, self._stale = 0.0, True
        self._list_lock = asyncio.Lock()
        self._open_calls = self._unanswered = 0

    async def client(self) -> Client:
        """The SDK's client, connected.

        Raises:
            McpFailed: `server_away`.
        """
        if self._client is not None:
            return self._client
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_future()
            owner = asyncio.create_task(self._own(self._starting))
            self._owners.add(owner)
            owner.add_done_callback(self._owners.discard)
        return await asyncio.shield(self._starting)

    async def listing(self, *, fresh: bool = False) -> Listing:
        """The tools as the server has them now: asked for anew if they changed, or may have.

        Raises:
            TaoError: it gives no list.
        """
        await self.client()
        async with self._list_lock:
            is_old = time.monotonic() - self._listed_at > _RECHECK_S
            if self._listing is None or self._stale or fresh or is_old:
                self._stale = False
                try:
                    self._listing = await self.request(TEXTS.run_text("tool_list"), listed_tools)
                except BaseException:
                    self._stale = True
                    raise
                self._listed_at = time.monotonic()
            return self._listing

    async def list_entries(self, method: str) -> tuple[list[Any], list[str]]:
        """All entries of another list (`list_resources`, `list_resource_templates`, `list_prompts`), and what is wrong.

        Raises:
            TaoError: it gives no list.
        """
        return await self.request(TEXTS.run_text("method", name=method), lambda client: list_all(client, method))

    async def request(self, what: str, send: Callable[[Client], Awaitable[T]]) -> T:
        """One request that only reads, sent again once where the connection broke.

        Raises:
            TaoError: no usable answer; `what` names the request in its message. Nothing is in doubt.
        """

        async def sent(client: Client) -> T:
            async with asyncio.timeout(self.server.start_timeout_s):  # a list may have many pages
                return await send(client)

        for is_last in (False, True):
            client = await self.client()
            try:
                return await self._send_request(what, partial(sent, client), self.server.start_timeout_s)
            except McpLost as error:
                if is_last:
                    raise _away(error) from error
        raise AssertionError  # the second turn returned or raised

    async def call(
        self,
        definition: Definition,
        args: dict[str, Any],
        *,
        is_read: bool,
        timeout_s: float | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Any:
        """Call a tool, if it is still the one that was loaded. Only a call that reads is sent twice.

        `timeout_s` is the caller's: who shares a connection may have set other limits for its calls. `on_progress` gets
        what the server says of its progress, a line at a time, in the thread of the connection.

        Raises:
            McpFailed: `tool_changed`, `tool_gone`, `server_away`, `server_refused`; nothing happened.
            McpLost, ToolTimeout: nobody can tell what happened.
            InvalidOutput: it happened, and what came back is no result.
        """
        what, attempt = TEXTS.run_text("tool", name=definition.name), 0
        limit_s = self.server.timeout_s if timeout_s is None else timeout_s
        while True:
            try:
                self._judge(definition, await self.listing())
            except ToolTimeout as error:  # of the list: nothing of the call was sent
                raise _away(error) from error
            client = await self.client()
            try:
                send = partial(self._send, client, definition.name, args, limit_s, on_progress)
                return await self._send_request(what, send, limit_s)
            except McpLost as error:
                attempt += 1
                if attempt > 1 and isinstance(error, _Unsent):
                    raise _away(error) from error
                if attempt > 1 or not (is_read or isinstance(error, _Unsent)):
                    raise

    async def close(self) -> None:
        """End the connection and what was started. A later request opens it again."""
        if self._stop is not None:
            self._stop.set()
        self._client = None
        if self._starting is not None and not self._starting.done():
            for owner in self._owners:
                owner.cancel()
        elif self.server.url and self._owners:
            await asyncio.wait(self._owners, timeout=_CLOSE_S)
            for owner in self._owners:
                owner.cancel()
        await asyncio.gather(*self._owners, return_exceptions=True)
        if self._starting is not None:  # it was cancelled before its first step
            self._failed(self._starting, self._closed())

    @property
    def capabilities(self) -> Any:
        """What the server offers; None while there is no connection."""
        return None if self._client is None else self._client.server_capabilities

    def _judge(self, definition: Definition, listing: Listing) -> None:
        now = listing.definitions.get(definition.name)
        if now is not None and now.digest == definition.digest:
            return
        code = "tool_changed" if now else "tool_gone"
        values: dict[str, Any] = {"server": self.server.display_name, "tool": definition.name}
        raise TEXTS.error(code, code, error_type=McpFailed, retryable=False, **values)

    async def _send(
        self,
        client: Client,
        name: str,
        args: dict[str, Any],
        timeout_s: float,
        on_progress: Callable[[str], None] | None,
    ) -> Any:
        remaining = _MOST_TOLD

        async def forward(progress: float, total: float | None, message: str | None) -> None:
            nonlocal remaining
            remaining -= 1
            if on_progress is not None and remaining >= 0:
                on_progress(_progress_line(progress, total, message))

        return await client.call_tool(name, args, timeout_s, forward)

    async def _send_request(self, what: str, send: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """The answer to a request; every failure as one of our errors. Counts what stays without an answer."""
        self._open_calls += 1
        transport = self._transport
        try:
            result = await send()
        except asyncio.CancelledError:
            self._count_unanswered()
            raise
        except TaoError:
            raise
        except Exception as error:
            is_broken = breaks_connection(error)
            stderr_text = await self._ending(transport, is_broken=is_broken and not is_unsent(error))
            status = self._status if self._open_calls == 1 else 0  # else it may be that of another call
            failure = not_answered(self.server, error, what, stderr_text, timeout_s, status)
            cause = self._cause if is_broken and self._cause is not None and self._open_calls == 1 else error
            if is_unsent(cause) and isinstance(failure, McpLost):
                failure = _Unsent(failure.message, hint=failure.hint)
            if is_broken:
                self._let_go(stderr_text)
            elif failure.code == "timeout":
                self._count_unanswered()
            else:
                self._unanswered = 0
            raise failure from error
        else:
            self._unanswered = 0
            return result
        finally:
            self._open_calls -= 1

    def _count_unanswered(self) -> None:
        self._unanswered += 1
        if self._unanswered >= _UNANSWERED and self._open_calls == 1:
            self._let_go(TEXTS.run_text("unanswered", count=self._unanswered))

    def _let_go(self, why: str) -> None:
        """Give the present connection up; the next request opens another."""
        self._why = self._why or why
        self._unanswered = 0
        self._client = None
        if self._stop is not None:
            self._stop.set()

    async def _ending(self, transport: Any, *, is_broken: bool) -> str:
        """Why the connection is no more, as far as anybody knows."""
        if isinstance(transport, StdioTransport):
            return self._why or await transport.ending()
        if is_broken and self._owners:  # the task that holds the client soon knows what broke it
            await asyncio.wait(self._owners, timeout=_CAUSE_S)
        if not self._why and self._status >= HTTPStatus.BAD_REQUEST:
            return TEXTS.run_text("http_status", status=self._status)
        return self._why

    async def _own(self, started: asyncio.Future[Client]) -> None:
        """Open the client, keep it until it is to end, and close it: all in this one task, as the SDK needs it."""
        stop = self._stop = asyncio.Event()
        self._why, self._cause, self._status = "", None, 0
        transport: Any = None
        try:
            await self._pauses.wait(self.server)
            async with AsyncExitStack() as stack:
                transport = self._transport = await make_transport(self.server, self._hooks, stack, self._note_status)
                client = self._client_of(transport, stop)
                async with asyncio.timeout(self.server.start_timeout_s):
                    await stack.enter_async_context(client)
                check_protocol_version(self.server, client)
                self._spoken = client.protocol_version
                began = time.monotonic()
                self._client, self._starting, self._stale = client, None, True
                started.set_result(client)
                listener = asyncio.create_task(listen_for_changes(client, self._mark_stale))
                try:
                    await stop.wait()
                finally:
                    listener.cancel()
                    if self._client is client:
                        self._client = None
                    self._pauses.ended(time.monotonic() - began)
        except asyncio.CancelledError:
            self._failed(started, self._closed())
        except BaseException as error:  # noqa: BLE001  # also groups; told to whoever waits
            if started.done():
                _LOG.debug("%s: closing", self.server.display_name, exc_info=True)
                if self._stop is stop:
                    self._cause = error
                    self._why = self._why or "; ".join(dict.fromkeys(map(describe, leaf_errors(error))))
                return
            self._pauses.ended(0.0)
            words = transport.stderr_tail if isinstance(transport, StdioTransport) else ""
            stderr_text = await self._ending(transport, is_broken=False)
            self._failed(started, not_reached(self.server, error, stderr_text, words))

    def _client_of(self, transport: Any, stop: asyncio.Event) -> Client:
        def ended(why: str) -> None:
            if self._stop is stop:
                self._let_go(why)

        sieved = FilteredTransport(transport, ended, lambda: self._spoken)
        return make_client(self.server, self._hooks, sieved, self._mark_stale)

    def _closed(self) -> ToolError:
        server = self.server.display_name
        return TEXTS.error("closed", "server_away", error_type=McpFailed, retryable=True, server=server)

    def _failed(self, started: asyncio.Future[Client], error: TaoError) -> None:
        if not started.done():
            self._starting = None
            started.set_exception(error)
            started.exception()  # it counts as told, also where nobody waits any more

    async def _note_status(self, response: Any) -> None:
        if response.request.method == "POST":  # other requests are of the SDK's own
            self._status = response.status_code  # its errors do not tell it

    def _mark_stale(self) -> None:
        self._stale = True


class _Unsent(McpLost):
    """The connection had ended before the request was sent."""


def _away(error: ToolTimeout) -> McpFailed:
    """A loss that leaves nothing in doubt."""
    return McpFailed(error.message, code="server_away", retryable=True, hint=error.hint)


def _progress_line(progress: float, total: float | None, message: str | None) -> str:
    """What a server says of its progress, as one short line."""
    count = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    return " ".join(f"{count} {message or ''}".split())[:_LINE_CHARS]
