"""The client of all tools that speak HTTP: sends a request where the rules let it, and bounds what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, finalize

from taoloop.errors import EgressFailed, MissingExtra
from taoloop.tools.egress.addresses import Resolver, resolve
from taoloop.tools.egress.rules import EgressRules

if TYPE_CHECKING:
    import ssl

    import httpx2

    from taoloop.tools.egress.transport import CheckedTransport

    _Held = WeakKeyDictionary[
        asyncio.AbstractEventLoop, tuple[CheckedTransport, AsyncGenerator[CheckedTransport, finalize[Any, Any]]]
    ]

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_MAX_BYTES = 5_000_000
DEFAULT_MAX_REDIRECTS = 5
"""How many redirects are followed: browsers take 20, honest sites need two or three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressResponse:
    """What came back: `headers` by names in lower case, `body` decoded from gzip, `url` the address that answered.

    `is_cut`: the body was longer than what is read, and `body` is its beginning. `hops` counts the redirects.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    is_cut: bool = False
    hops: int = 0

    @property
    def media_type(self) -> str:
        """The type that the headers name, in lower case and without parameters; empty if none."""
        return self.headers.get("content-type", "").partition(";")[0].partition(",")[0].strip().lower()


class EgressClient:
    """Sends requests under rules. Connections belong to an event loop, are kept for the next request, and end with it.

    A run in a loop of its own (`asyncio.run`) needs no `close`: when the loop shuts its async generators down, the
    connections go too; in a loop that goes on they go with the client. Proxies of the environment are not used: a proxy
    would resolve names anew.

    Args:
        rules: Where requests may go.
        timeout_s: What a whole request may take, redirects and reading included, in seconds.
        max_bytes: How much of a body is read, counted after decompression.
        max_redirects: How many redirects are followed where a request asks for that.
        resolver: Finds the addresses of a host; the machine's own by default.
        tls: Makes the context that certificates are judged by; the machine's trusted ones by default.
    """

    def __init__(
        self,
        rules: EgressRules | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_redirects: int = DEFAULT_MAX_REDIRECTS,
        resolver: Resolver = resolve,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self.rules = rules if rules is not None else EgressRules()
        self._timeout_s, self._max_bytes, self._max_redirects = timeout_s, max_bytes, max_redirects
        self._resolver, self._tls = resolver, tls
        self._held: _Held = WeakKeyDictionary()

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
        """Send a request and return the answer whatever its status.

        `url` goes out as it is, escapes included. `follow`: redirects of GET and HEAD are followed, each judged like a
        first request; what was given in `headers` goes to another origin only where it cannot be a secret. A redirect
        of another method is returned as the answer. `types` are media types (`text/*`) of which an answer with a status
        below 300 must be one. `host` is the header `Host` of a server that is known under another name than the one
        in its address; what stands of it in `headers` is left out.

        Raises:
            EgressRefused: the rules do not let it go there; nothing was sent to that place.
            EgressFailed: no usable answer; `code` says why and `was_sent` whether it may have reached the server.
            MissingExtra: the HTTP client is not installed.
        """
        transport = await self._transport()
        from taoloop.tools.egress.redirects import RedirectingRequest  # noqa: PLC0415  # needs httpx2, which is there by now

        limit_s = self._timeout_s if timeout_s is None else timeout_s
        exchange = RedirectingRequest(
            transport,
            max_bytes=self._max_bytes if max_bytes is None else max_bytes,
            max_redirects=self._max_redirects if follow else None,
            types=tuple(types),
            host=host,
        )
        try:
            async with asyncio.timeout(limit_s):
                return await exchange.run(method, url, headers or {}, body)
        except TimeoutError as error:
            raise EgressFailed(
                f"{exchange.place} gave no whole answer within {limit_s:g} s.",
                code="http_timeout",
                retryable=True,
                hint="Try again later, or another address.",
                was_sent=exchange.was_sent,
            ) from error

    async def close(self) -> None:
        """Close the connections of the running loop."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()

    async def _transport(self) -> CheckedTransport:
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            make = partial(backend_module().CheckedTransport, self.rules, self._resolver, self._tls)
            generator = _hold(make, loop, self._held)
            held = self._held[loop] = (await anext(generator), generator)
            await generator.asend(finalize(self, _end, loop, generator))
        return held[0]


async def _hold(
    make: Callable[[], CheckedTransport], loop: asyncio.AbstractEventLoop, held: _Held
) -> AsyncGenerator[CheckedTransport, finalize[Any, Any]]:
    """The connections of a loop, closed when they are no longer needed or the loop shuts its generators down.

    It knows nothing of the client, which may end before it: the finalizer, which is sent here, sees to that and keeps
    the connections whole till then.
    """
    transport = make()
    finalizer = None
    try:
        finalizer = yield transport
        finalizer.atexit = False
        yield transport
    finally:
        if finalizer is not None:
            finalizer.detach()
        held.pop(loop, None)
        await transport.aclose()


def _end(loop: asyncio.AbstractEventLoop, generator: AsyncGenerator[Any, Any]) -> None:
    """Close the connections of a client that is gone, in their loop if that still runs."""
    with suppress(RuntimeError):  # the loop is closed, and they with it
        loop.call_soon_threadsafe(lambda: loop.create_task(generator.aclose()))


def http_client(
    rules: EgressRules,
    *,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    max_bytes: int = DEFAULT_MAX_BYTES,
    resolver: Resolver = resolve,
    tls: Callable[[], ssl.SSLContext] | None = None,
    auth: Any = None,
    event_hooks: Any = None,
) -> httpx2.AsyncClient:
    """A client of httpx2 under the same rules, for libraries that take one. It belongs to one event loop; close it.

    `max_bytes` bounds every body but that of an event stream which was asked for, counted after decompression;
    `timeout_s` bounds each wait. Redirects are not followed, for they would take headers along. `auth` and
    `event_hooks` are those of `httpx2.AsyncClient`.

    Raises:
        MissingExtra: the HTTP client is not installed.
    """
    backend = backend_module()
    import httpx2  # noqa: PLC0415  # optional; `backend_module` has said so if it is missing

    from taoloop.tools.egress.decompression import ENCODINGS  # noqa: PLC0415  # likewise

    return httpx2.AsyncClient(
        transport=backend.CheckedTransport(rules, resolver, tls, max_bytes=max_bytes),
        headers={"accept-encoding": ENCODINGS, **(headers or {})},
        timeout=timeout_s,
        trust_env=False,
        follow_redirects=False,
        auth=auth,
        event_hooks=event_hooks,
    )


def backend_module() -> ModuleType:
    """The module with the transport, which needs the HTTP client.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        from taoloop.tools.egress import transport as backend  # noqa: PLC0415  # heavy, and optional
    except ImportError as error:
        raise MissingExtra(
            "httpx2, which carries the requests of tools, is not installed: pip install 'taoloop[web]' "
            "(or 'taoloop[openapi]' or 'taoloop[mcp]')."
        ) from error
    return backend
