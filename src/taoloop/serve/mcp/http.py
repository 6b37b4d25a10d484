"""The server over Streamable HTTP: on this machine only, or with a token."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from taoloop.errors import ConfigError
from taoloop.serve.hosts import AllowedHosts, host_name, is_loopback, parse_ip

PATH = "/mcp"
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_SESSIONS = 1_000
IDLE_S = 30 * 60.0
MAX_CONNECTIONS = 1_024
SHORTEST_TOKEN = 16
GRACE_S = 5.0

TOKEN_VARIABLE = "TAOLOOP_MCP_TOKEN"  # noqa: S105  # the name of a variable


@dataclass(frozen=True, kw_only=True)
class ListenAddress:
    """Where the server listens, and who may connect.

    Requests for other hosts are refused (DNS rebinding), and so are those of pages of other origins.
    """

    host: str = "127.0.0.1"
    """An IP address, or `localhost`."""

    port: int = 8000
    """The port; 0 takes a free one."""

    token: str | None = None
    """Required in every request; without one the server only listens on this machine."""

    names: tuple[str, ...] = ()
    """Host names by which it is reached, besides its address."""

    def __post_init__(self) -> None:
        """Refuse an address that would be open to everybody.

        Raises:
            ConfigError: says which option is missing.
        """
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isascii()):
            raise ConfigError(
                f"The token for `tao mcp --http` must have at least {SHORTEST_TOKEN} ASCII characters.",
                hint=f"Make one: {TOKEN_VARIABLE}=$(openssl rand -hex 32)",
            )
        for name in self.names:
            try:
                host_name(name)
            except ConfigError as error:
                raise ConfigError(f"--allow-host: {error.message}", hint=error.hint) from None
        if self.is_local:
            return
        if self.token is None:
            raise ConfigError(
                f"--http {self.host}:{self.port} can be reached from other machines, and there is no token.",
                hint=f"Set {TOKEN_VARIABLE} to a secret of your own, or listen on 127.0.0.1.",
            )
        if self.is_everywhere and not self.names:
            raise ConfigError(
                f"--http {self.host}:{self.port} listens on every address, and nothing says under which name.",
                hint="Name the hosts that clients write in the URL: --allow-host mcp.example.com",
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def is_everywhere(self) -> bool:
        """Whether it listens on every address of the machine."""
        address = parse_ip(self.host)
        return address is not None and address.is_unspecified

    @property
    def allowed_hosts(self) -> AllowedHosts:
        """The Host headers that are accepted."""
        own = () if self.is_local or self.is_everywhere else (f"[{self.host}]" if ":" in self.host else self.host,)
        return AllowedHosts((*own, *map(host_name, self.names)), loopback=self.is_local)

    def allowed_origins(self, port: int) -> set[str]:
        """The Origin headers that are accepted: pages of the server itself, which listens on `port`."""
        hosts = ["127.0.0.1", "localhost", "[::1]"] if self.is_local else []
        if not self.is_local and not self.is_everywhere:
            hosts.append(f"[{self.host}]" if ":" in self.host else self.host)
        with_port = [f"{host}:{port}" for host in hosts] + (hosts if port == 80 else [])  # clients may omit 80
        host_names = [form for name in map(host_name, self.names) for form in (name, f"{name}:{port}")]
        return {f"{scheme}://{name}" for name in (*with_port, *host_names) for scheme in ("http", "https")}


def parse_address(text: str, *, token: str | None, names: Sequence[str] = ()) -> ListenAddress:
    """Parse `HOST:PORT`, `:PORT` or `PORT`.

    Raises:
        ConfigError: it has another form, or the address would be open to everybody.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535 or (host != "localhost" and parse_ip(host) is None):
        raise ConfigError(
            f"--http {text!r} is not an address to listen on.", hint="Write HOST:PORT, such as 127.0.0.1:8000."
        )
    return ListenAddress(host=host, port=int(port), token=token or None, names=tuple(names))


async def serve_http(
    server: Server[Any],
    address: ListenAddress,
    *,
    stop: asyncio.Event,
    on_ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until `stop` is set. `on_ready` gets the URL once connections are accepted.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    listener = _listen(address)
    with listener:
        port = listener.getsockname()[1]
        app: ASGIApp = server.streamable_http_app(
            host=address.host,
            streamable_http_path=PATH,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # it is ours, below
            max_request_body_size=MAX_BODY_BYTES,
            session_idle_timeout=IDLE_S,
            max_sessions=MAX_SESSIONS,
        )
        if address.token is not None:
            app = _require_token(app, address.token)
        app = _require_known_host(app, address.allowed_hosts, address.allowed_origins(port))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=int(GRACE_S),
            server_header=False,
            lifespan="on",
            ws="none",
            log_config=None,
        )
        host = f"[{address.host}]" if ":" in address.host else address.host
        running = _EmbeddedServer(config, lambda: on_ready(f"http://{host}:{port}{PATH}"))
        serving = asyncio.create_task(running.serve(sockets=[listener]))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            running.should_exit = True
            await serving


def _listen(address: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # with the protocol, or asyncio does not disable Nagle's algorithm
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1" if address.host == "localhost" else address.host, address.port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"--http {address.host}:{address.port} cannot be listened on: {error.strerror or error}.",
            hint="Take another port; 0 takes a free one.",
        ) from error
    listener.setblocking(False)
    return listener


class _EmbeddedServer(uvicorn.Server):
    """uvicorn, stopped by its caller and not by signals of the process."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them to the command."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report when connections are accepted."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def _require_known_host(app: ASGIApp, hosts: AllowedHosts, origins: Collection[str]) -> ASGIApp:
    """Refuse requests for other hosts (DNS rebinding), and those of pages of other origins."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            named, origin = headers.getlist("host"), headers.get("origin")
            if len(named) != 1 or not hosts.accepts(named[0]):
                message = "The server does not go by this name; its operator can allow it with --allow-host."
                await JSONResponse({"error": "host_not_allowed", "message": message}, 421)(scope, receive, send)
                return
            if origin and origin not in origins:
                message = "Pages of this origin may not call the server."
                await JSONResponse({"error": "origin_not_allowed", "message": message}, 403)(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded


def _require_token(app: ASGIApp, token: str) -> ASGIApp:
    """Refuse requests without the token. Only its digest is kept, which is compared in constant time."""
    digest = hashlib.sha256(token.encode()).digest()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and has_token(scope)):
            await app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = JSONResponse({"error": "unauthorized"}, 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)

    def has_token(scope: Scope) -> bool:
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(values) != 1 or values[0][:7].lower() != b"bearer ":
            return False
        return hmac.compare_digest(hashlib.sha256(values[0][7:].strip()).digest(), digest)

    return guarded
