"""The HTTP client of all tools: it sends requests where the egress rules allow it, and limits the response size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, finalize

from taoloop.errors import MissingExtra
from taoloop.tools.egress.response import ENCODINGS, EgressResponse
from taoloop.tools.egress.rules import EgressRules, Resolver, resolve_host
from taoloop.tools.egress.texts import egress_failed

if TYPE_CHECKING:
    import ssl

    import httpx2

    from taoloop.tools.egress.transport import CheckedTransport

    _ConnectionRegistry = WeakKeyDictionary[
        asyncio.AbstractEventLoop, tuple[CheckedTransport, AsyncGenerator[None, None]]
    ]

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_MAX_BYTES = 5_000_000
DEFAULT_MAX_REDIRECTS = 5
"""How many redirects are followed: browsers follow 20, ordinary sites need two or three."""


class EgressClient:
    """Sends requests under rules. Connections are reused within one event loop, and closed with it.

    In a loop of its own (`asyncio.run`) no `close` is needed: the connections are closed when the loop shuts down its
    async generators. In a loop that continues they are closed with the client. Proxies of the environment are not used,
    because a proxy would resolve names again.

    Args:
        rules: Where requests may go.
        timeout_s: Time limit of a whole request in seconds, including redirects and the body.
        max_bytes: How much of a body is read, after decompression.
        max_redirects: How many redirects are followed, for requests that follow them.
        resolver: Resolves host names; by default that of this machine.
        tls: Creates the TLS context; by default with the certificates that this machine trusts.
    """

    def __init__(
        self,
        rules: EgressRules | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_redirects: int = DEFAULT_MAX_REDIRECTS,
        resolver: Resolver = resolve_host,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self.rules = rules if rules is not None else EgressRules()
        self._timeout_s, self._max_bytes, self._max_redirects = timeout_s, max_bytes, max_redirects
        self._resolver, self._tls = resolver, tls
        self._connections: _ConnectionRegistry = WeakKeyDictionary()
        finalize(self, _close_later, self._connections).atexit = False

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
        max_bytes: int | None = None,
        follow: bool = False,
        types: Sequence[str] = (),
        host: str = "",
    ) -> EgressResponse:
        """Send a request and return the response, whatever its status.

        `url` is sent as it is, including percent-encoding. `follow`: redirects of GET and HEAD are followed, each
        checked like a first request; only `headers` that cannot contain secrets are sent to another origin. A redirect
        of another method is returned as the response. `types` are the accepted media types (`text/*`) of a response
        with a status below 300. `host` is the header `Host` of a server with another name than that in its URL; it
        replaces one in `headers`.

        Raises:
            EgressRefused: the rules do not allow it; nothing was sent.
            EgressFailed: no usable response; `code` says why, and `was_sent` whether it may have reached the server.
            MissingExtra: the HTTP client is not installed.
        """
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        request_chain = load_transport().RedirectingRequest(
            transport=await self._transport(),
            max_bytes=self._max_bytes if max_bytes is None else max_bytes,
            max_redirects=self._max_redirects if follow else None,
            types=types,
            host=host,
        )
        try:
            async with asyncio.timeout(limit_s):
                response: EgressResponse = await request_chain.run(method, url, headers or {}, body)
        except TimeoutError as error:
            attributes: dict[str, Any] = {"target": request_chain.target, "was_sent": request_chain.was_sent}
            raise egress_failed("timeout", "http_timeout", retryable=True, seconds=limit_s, **attributes) from error
        return response

    async def close(self) -> None:
        """Close the connections of the running loop."""
        connections = self._connections.pop(asyncio.get_running_loop(), None)
        if connections is not None:
            await connections[1].aclose()

    async def _transport(self) -> CheckedTransport:
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            transport = load_transport().CheckedTransport(self.rules, self._resolver, self._tls)
            generator = _hold_connections(transport, loop, self._connections)
            await anext(generator)
            self._connections[loop] = (transport, generator)
        return self._connections[loop][0]


async def _hold_connections(
    transport: CheckedTransport, loop: asyncio.AbstractEventLoop, registry: _ConnectionRegistry
) -> AsyncGenerator[None, None]:
    """Close the connections of a loop when they are no longer needed, or when the loop shuts down its generators.

    It has no reference to the client, which may be collected before it.
    """
    try:
        yield
    finally:
        registry.pop(loop, None)
        await transport.aclose()


def _close_later(registry: _ConnectionRegistry) -> None:
    """Close the connections of a collected client, each in its loop if that is still running."""
    for loop, (_, generator) in list(registry.items()):
        with suppress(RuntimeError):  # the loop is closed, and so are the connections
            loop.call_soon_threadsafe(_close_in_loop, loop, generator)


def _close_in_loop(loop: asyncio.AbstractEventLoop, generator: AsyncGenerator[None, None]) -> None:
    loop.create_task(generator.aclose())


def http_client(
    rules: EgressRules,
    *,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    max_bytes: int = DEFAULT_MAX_BYTES,
    resolver: Resolver = resolve_host,
    tls: Callable[[], ssl.SSLContext] | None = None,
    auth: Any = None,
    event_hooks: Any = None,
) -> httpx2.AsyncClient:
    """An httpx2 client under the same rules, for libraries that take one. It belongs to one event loop; close it.

    `max_bytes` limits every body after decompression, except that of a requested event stream; `timeout_s` limits each
    wait. Redirects are not followed, because they would forward headers. `auth` and `event_hooks` are those of
    `httpx2.AsyncClient`.

    Raises:
        MissingExtra: the HTTP client is not installed.
    """
    transport_module = load_transport()
    import httpx2  # noqa: PLC0415  # optional; `load_transport` reports if it is missing

    return httpx2.AsyncClient(
        transport=transport_module.CheckedTransport(rules, resolver, tls, max_bytes=max_bytes),
        headers={"accept-encoding": ENCODINGS, **(headers or {})},
        timeout=timeout_s,
        trust_env=False,
        follow_redirects=False,
        auth=auth,
        event_hooks=event_hooks,
    )


def load_transport() -> ModuleType:
    """Import the module with the transport, which needs the HTTP client.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        from taoloop.tools.egress import transport as transport_module  # noqa: PLC0415  # heavy, and optional
    except ImportError as error:
        raise MissingExtra(
            "httpx2, which sends the requests of tools, is not installed: pip install 'taoloop[web]' "
            "(or 'taoloop[openapi]' or 'taoloop[mcp]')."
        ) from error
    return transport_module
