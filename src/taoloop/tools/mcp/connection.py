"""The connection to one server, in the resident loop: opened when it is needed, reopened after it broke, and shared.

Pauses between attempts become longer after each failure. One task owns the SDK's client, from its opening to its end;
requests come from tasks of their own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from itertools import count
from typing import Any, TypeVar

import mcp_types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT

from taoloop.errors import McpFailed, McpLost, TaoError, ToolTimeout
from taoloop.tools.egress.client import http_client
from taoloop.tools.mcp import errors
from taoloop.tools.mcp.cards import Definition
from taoloop.tools.mcp.listing import Listing, filtered_transport, list_all, listed_tools
from taoloop.tools.mcp.oauth import provider_of
from taoloop.tools.mcp.open_calls import CURRENT_CALL, CallTimer, OpenCall, asking_call, elicit, opened_pages
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.stdio import StdioTransport
from taoloop.tools.mcp.tasks import TasksExtension, call_as_task
from taoloop.tools.mcp.texts import TEXTS

_LOG = logging.getLogger("taoloop.mcp")
logging.getLogger("mcp").addHandler(logging.NullHandler())  # the SDK's words, else on standard error where nobody asked

_HTTP_READ_S = 300.0  # streams are silent for long; requests have limits of their own
_LISTEN_TRIES, _LISTEN_PAUSE_S = 5, 0.5
_FIRST_S, _LONGEST_S = 0.2, 60.0
_PATIENCE_S = 5.0  # a pause up to this is waited out; above it, the server counts as away
_SETTLED_S = 30.0  # after this a connection counts as good, and the next pause is the first again
_RECHECK_S = 60.0  # so old may a list of tools be where no notice of changes came
_UNANSWERED = 3  # calls in a row without an answer, until a server is started anew
_CAUSE_S = 1.0
_MOST_TOLD = 1_000  # lines of progress of one call; a server may send any number
_LINE_CHARS = 200
_CLOSE_S = 1.0  # for a server over HTTP to hear that its session ends

T = TypeVar("T")


class ReconnectBackoff:
    """How often a server failed in a row, and when the next attempt is due."""

    def __init__(self) -> None:
        self._failures, self._due = 0, 0.0

    def ended(self, lived_s: float) -> None:
        """Note the end of a connection that lived so long; 0 if it was never established."""
        self._failures = 1 if lived_s > _SETTLED_S else self._failures + 1
        self._due = time.monotonic() + min(_LONGEST_S, _FIRST_S * 2 ** (self._failures - 1))

    async def wait(self, server: McpServer) -> None:
        """Wait until the next attempt is due.

        Raises:
            McpFailed: that is too long.
        """
        remaining_s = self._due - time.monotonic()
        if remaining_s > _PATIENCE_S:
            hint = TEXTS.run_text("tool_changed_advice")
            raise errors.server_error(
                server, "paused", retryable=True, hint=hint, count=self._failures, seconds=remaining_s
            )
        await asyncio.sleep(max(0.0, remaining_s))


class Connection:
    """One server. Everything here runs in the resident loop.

    A server's questions go to the person who answers for the run of the call (`open_calls.py`), or to `elicitation` if
    a program gives that. `http_auth` authenticates HTTP requests in the place of what the settings say.
    """

    def __init__(self, server: McpServer, *, elicitation: Any = None, http_auth: Any = None) -> None:
        self.server, self._elicitation, self._http_auth = server, elicitation or self._elicit, http_auth
        self._calls: dict[OpenCall, None] = {}  # in the order of their beginnings
        self._client: Client | None = None
        self._starting: asyncio.Future[Client] | None = None
        self._stop: asyncio.Event | None = None
        self._owners: set[asyncio.Task[None]] = set()
        self._transport: Any = None
        self._reason = ""
        self._cause: BaseException | None = None
        self._status = 0
        self._spoken: str | None = None
        self._backoff = ReconnectBackoff()
        self._listing: Listing | None = None
        self._requested_at, self._listed_at, self._stale = 0.0, 0.0, True
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
        """The tools as the server has them now: requested again if they changed, or may have.

        Raises:
            TaoError: it gives no list.
        """
        await self.client()
        called_at = time.monotonic()
        async with self._list_lock:
            is_old = called_at - self._listed_at > _RECHECK_S
            fresh = fresh and self._requested_at < called_at  # calls that wait together share one list
            if self._listing is None or self._stale or fresh or is_old:
                self._stale, requested_at = False, time.monotonic()
                try:
                    self._listing = await self.request(TEXTS.run_text("tool_list"), listed_tools)
                except BaseException:
                    self._stale = True
                    raise
                self._requested_at, self._listed_at = requested_at, time.monotonic()
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

        async def send_in_time(client: Client) -> T:
            async with asyncio.timeout(self.server.start_timeout_s):  # a list may have many pages
                return await send(client)

        for is_last in (False, True):
            client = await self.client()
            try:
                return await self._send_request(what, partial(send_in_time, client), self.server.start_timeout_s)
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
        open_call: OpenCall | None = None,
    ) -> Any:
        """Call a tool, if it is still the one that was loaded. Only a call that reads is sent twice.

        `open_call` is the caller's: who shares a connection may have set other limits for its calls, and another person
        answers the server's questions.

        Raises:
            McpFailed: `tool_changed`, `tool_gone`, `server_away`, `server_refused`; nothing happened.
            McpLost, ToolTimeout: nobody can tell what happened.
            InvalidOutput: it happened, and what came back is no result.
        """
        what, attempt = TEXTS.run_text("tool", name=definition.name), 0
        call = open_call or OpenCall(timer=CallTimer(self.server.timeout_s, self.server.longest_s))
        while True:
            try:
                self._require_unchanged(definition, await self.listing(fresh=not (is_read and self._gives_notice)))
            except ToolTimeout as error:  # of the list: nothing of the call was sent
                raise _away(error) from error
            client = await self.client()
            try:
                return await self._send_request(
                    what, partial(self._send_call, client, definition, args, call), call.timer
                )
            except McpLost as error:
                attempt += 1
                if attempt > 1 and isinstance(error, _Unsent):
                    raise _away(error) from error
                if attempt > 1 or not (is_read or isinstance(error, _Unsent)):
                    raise

    async def _send_call(self, client: Client, definition: Definition, args: dict[str, Any], call: OpenCall) -> Any:
        """One attempt at a call, within its limits of time."""
        self._calls[call] = None
        token = CURRENT_CALL.set(call)
        try:
            async with asyncio.timeout(None) as scope:
                with call.timer.noting(scope):
                    if definition.needs_task and self._spoken == "2025-11-25":
                        return await call_as_task(client, definition.name, args, call.timer.longest_s)
                    send = partial(
                        client.call_tool, definition.name, args, call.timer.longest_s, _progress_callback(call)
                    )
                    try:
                        return await send()
                    except MCPError as error:  # nothing was done yet: the person is to open a page first
                        if not await opened_pages(self.server, error, call):
                            raise
                    return await send()
        finally:
            CURRENT_CALL.reset(token)
            del self._calls[call]

    async def _elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002  # the SDK's signature
        params: mcp_types.ElicitRequestParams,
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """The answer to a question of the server."""
        return await elicit(self.server, params, asking_call(self._calls))

    @property
    def _gives_notice(self) -> bool:
        """Whether the server promises to tell when its tools change. That is enough for calls that only read."""
        capability = None if self._client is None else self._client.server_capabilities.tools
        return capability is not None and bool(capability.list_changed)

    async def close(self) -> None:
        """End the connection and what was started. A later request opens it again."""
        if self._stop is not None:
            self._stop.set()
        self._client = None
        is_starting = self._starting is not None and not self._starting.done()
        if self.server.url and self._owners and not is_starting:
            await asyncio.wait(self._owners, timeout=_CLOSE_S)
        if self.server.url or is_starting:
            for owner in self._owners:
                owner.cancel()
        await asyncio.gather(*self._owners, return_exceptions=True)
        if self._starting is not None:  # it was cancelled before its first step
            self._fail(self._starting, self._closed())

    def _require_unchanged(self, definition: Definition, listing: Listing) -> None:
        now = listing.definitions.get(definition.name)
        if now is None or now.digest != definition.digest:
            code = "tool_changed" if now else "tool_gone"
            hint = None if now else TEXTS.run_text("tool_changed_advice")
            raise errors.server_error(self.server, code, code, hint=hint, tool=definition.name)

    async def _send_request(self, what: str, send: Callable[[], Awaitable[T]], limit: float | CallTimer) -> T:
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
            is_broken = errors.breaks_connection(error)
            reason = await self._ending(transport, is_broken=is_broken and not errors.is_unsent(error))
            status = self._status if self._open_calls == 1 else 0  # else it may be that of another call
            timeout_s = limit.spent_s if isinstance(limit, CallTimer) else limit
            failure = errors.not_answered(self.server, error, what, reason, timeout_s, status)
            cause = self._cause if is_broken and self._cause is not None and self._open_calls == 1 else error
            if errors.is_unsent(cause) and isinstance(failure, McpLost):
                failure = _Unsent(failure.message, hint=failure.hint)
            if is_broken:
                self._give_up(reason)
            elif failure.code == "timeout":
                self._count_unanswered()
            else:
                self._unanswered = 0
            raise failure from error
        else:
            if isinstance(limit, CallTimer):  # an answer about the list says nothing of calls
                self._unanswered = 0
            return result
        finally:
            self._open_calls -= 1

    def _count_unanswered(self) -> None:
        self._unanswered += 1
        if self._unanswered >= _UNANSWERED and self._open_calls == 1:
            self._give_up(TEXTS.run_text("unanswered", count=self._unanswered))

    def _give_up(self, reason: str) -> None:
        """Give the present connection up; the next request opens another."""
        self._reason = self._reason or reason
        self._unanswered = 0
        self._client = None
        if self._stop is not None:
            self._stop.set()

    async def _ending(self, transport: Any, *, is_broken: bool) -> str:
        """Why the connection ended, as far as anybody knows."""
        if isinstance(transport, StdioTransport):
            return self._reason or await transport.ending()
        if is_broken and self._owners:  # the task that owns the client soon knows what broke it
            await asyncio.wait(self._owners, timeout=_CAUSE_S)
        if not self._reason and self._status >= HTTPStatus.BAD_REQUEST:
            return TEXTS.run_text("http_status", status=self._status)
        return self._reason

    async def _own(self, started: asyncio.Future[Client]) -> None:
        """Open the client, keep it until it is to end, and close it: all in this one task, as the SDK needs it."""
        stop = self._stop = asyncio.Event()
        self._reason, self._cause, self._status = "", None, 0
        transport: Any = None
        try:
            await self._backoff.wait(self.server)
            async with AsyncExitStack() as stack:
                transport = self._transport = await self._make_transport(stack)
                client = self._make_client(transport, stop)
                async with asyncio.timeout(self.server.start_timeout_s):
                    await stack.enter_async_context(client)
                self._spoken = spoken = client.protocol_version
                expected = self.server.protocol
                if expected == "2026-07-28" and spoken < expected:
                    raise errors.server_error(self.server, "other_revision", spoken=spoken, expected=expected)
                began = time.monotonic()
                self._client, self._starting, self._stale = client, None, True
                started.set_result(client)
                listener = asyncio.create_task(self._listen_for_changes(client))
                try:
                    await stop.wait()
                finally:
                    listener.cancel()
                    if self._client is client:
                        self._client = None
                    self._backoff.ended(time.monotonic() - began)
        except asyncio.CancelledError:
            self._fail(started, self._closed())
        except BaseException as error:  # noqa: BLE001  # also groups; reported to whoever waits
            if started.done():
                _LOG.debug("%s: closing", self.server.display_name, exc_info=True)
                if self._stop is stop:
                    self._cause = error
                    self._reason = self._reason or errors.describe(error)
                return
            self._backoff.ended(0.0)
            stderr_tail = transport.stderr_tail if isinstance(transport, StdioTransport) else ""
            reason = await self._ending(transport, is_broken=False)
            self._fail(started, errors.not_reached(self.server, error, reason, stderr_tail))

    async def _make_transport(self, stack: AsyncExitStack) -> Any:
        """The transport to the server, not yet entered. Its HTTP client is closed with `stack`."""
        server = self.server
        if not server.url:
            return StdioTransport(server)
        client = await stack.enter_async_context(
            http_client(
                server.rules(),
                headers=server.headers,
                timeout_s=_HTTP_READ_S,
                max_bytes=server.max_message_bytes,
                auth=self._http_auth or provider_of(server),
                event_hooks={"response": [self._note_status]},
            )
        )
        return streamable_http_client(server.url, http_client=client, max_sse_event_size=server.max_message_bytes)

    def _make_client(self, transport: Any, stop: asyncio.Event) -> Client:
        """The SDK's client, not yet entered."""

        def on_end(reason: str) -> None:
            if self._stop is stop:
                self._give_up(reason)

        async def on_message(message: Any) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                self._stale = True

        return Client(
            filtered_transport(transport, on_end, lambda: self._spoken),
            mode="legacy" if self.server.protocol == "2025-11-25" else "auto",
            read_timeout_seconds=self.server.start_timeout_s,
            message_handler=on_message,
            client_info=mcp_types.Implementation(name="taoloop", version=version("taoloop")),
            elicitation_callback=self._elicitation,
            extensions=[TasksExtension()],
            cache=None,  # a kept answer would hide that a tool changed
        )

    async def _listen_for_changes(self, client: Client) -> None:
        """In the stateless era: wait for notices that the list of tools changed, as long as the server gives them."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        for turn in range(_LISTEN_TRIES):
            try:
                async with client.listen(tools_list_changed=True) as notices:
                    self._stale = True  # it may have changed before we listened
                    async for _ in notices:
                        self._stale = True
            except (ListenNotSupportedError, MCPError):
                return  # the list is requested again once it is old
            except (SubscriptionLost, TimeoutError):
                self._stale = True
            await asyncio.sleep(_LISTEN_PAUSE_S * 2**turn)

    def _closed(self) -> TaoError:
        return errors.server_error(self.server, "closed", retryable=True)

    def _fail(self, started: asyncio.Future[Client], error: TaoError) -> None:
        if not started.done():
            self._starting = None
            started.set_exception(error)
            started.exception()  # it counts as retrieved, also where nobody waits any more

    async def _note_status(self, response: Any) -> None:
        if response.request.method == "POST":  # other requests are of the SDK's own
            self._status = response.status_code  # its errors do not tell it


class _Unsent(McpLost):
    """The connection had ended before the request was sent."""


def _away(error: ToolTimeout) -> McpFailed:
    """A loss that leaves nothing in doubt."""
    return McpFailed(error.message, code="server_away", retryable=True, hint=error.hint)


def _progress_callback(call: OpenCall) -> ProgressFnT:
    """Passes on what a server says of its progress, as short lines; only the first lines of many."""
    numbers = count(1)

    async def forward(progress: float, total: float | None, message: str | None) -> None:
        call.timer.restart()
        if call.on_progress is not None and next(numbers) <= _MOST_TOLD:
            share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            call.on_progress(" ".join(f"{share} {message or ''}".split())[:_LINE_CHARS])

    return forward
