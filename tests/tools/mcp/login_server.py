"""An authorization server and an MCP server behind it, both of the SDK, in a thread of this process."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse


class Accounts:
    """Everybody who asks may log in; what was issued is kept here for the tests to look at."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, Any] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.issued: list[str] = []
        self.grants: list[str] = []

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id or ""] = client_info

    async def authorize(self, client: Any, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, _client: Any, authorization_code: str) -> Any:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> OAuthToken:
        del self.codes[authorization_code.code]
        self.grants.append("code")
        return self.issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, _client: Any, refresh_token: str) -> Any:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: Any, scopes: list[str]) -> OAuthToken:
        del self.refresh[refresh_token.token]
        self.grants.append("refresh")
        return self.issue(client.client_id, scopes, None)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, _token: Any) -> None:
        return None

    def issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe(24)}", f"refresh-{secrets.token_urlsafe(24)}"
        end = int(time.time()) + 3600
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=end, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        self.issued += [access, refresh]
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes) or None)


@contextmanager
def guarded_server() -> Iterator[tuple[str, Accounts]]:
    """The address of an MCP server that wants a login, and what its authorization server issues."""
    accounts = Accounts()
    with _listening() as (listening, origin):
        options = ClientRegistrationOptions(enabled=True)
        server = MCPServer(
            "guarded",
            auth_server_provider=accounts,  # type: ignore[arg-type]  # of the SDK's own types at run time
            auth=_settings(origin, client_registration_options=options),
        )
        with _running(server, listening):
            yield f"{origin}/mcp", accounts


@contextmanager
def machine_server() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The origin of an MCP server for machines, and the requests for tokens that it got."""
    requests: list[dict[str, str]] = []

    class Verifier:
        async def verify_token(self, token: str) -> AccessToken | None:
            return AccessToken(token=token, client_id="robot", scopes=[]) if token == "machine-token" else None

    with _listening() as (listening, origin):
        server = MCPServer("guarded", token_verifier=Verifier(), auth=_settings(origin))

        @server.custom_route("/.well-known/oauth-authorization-server", methods=["GET"])  # type: ignore[untyped-decorator]  # the SDK's
        async def metadata(_request: Request) -> JSONResponse:
            return JSONResponse(
                {
                    "issuer": origin,
                    "authorization_endpoint": f"{origin}/authorize",
                    "token_endpoint": f"{origin}/token",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["client_credentials"],
                }
            )

        @server.custom_route("/token", methods=["POST"])  # type: ignore[untyped-decorator]  # the same
        async def token(request: Request) -> JSONResponse:
            requests.append({**{name: str(value) for name, value in (await request.form()).items()}})
            return JSONResponse({"access_token": "machine-token", "token_type": "Bearer", "expires_in": 3600})

        with _running(server, listening):
            yield origin, requests


def _settings(origin: str, **more: Any) -> AuthSettings:
    return AuthSettings(
        issuer_url=origin,  # type: ignore[arg-type]  # parsed by pydantic
        resource_server_url=f"{origin}/mcp",  # type: ignore[arg-type]  # the same
        validate_token_resource=False,
        **more,
    )


@contextmanager
def _listening() -> Iterator[tuple[socket.socket, str]]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # a request that comes before the server has begun waits
        yield listening, f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def _running(server: MCPServer, listening: socket.socket) -> Iterator[None]:
    @server.tool()
    def stock(item: str) -> str:
        """How much there is."""
        return f"12 {item}"

    config = uvicorn.Config(server.streamable_http_app(host="127.0.0.1"), log_level="critical", lifespan="on")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(running.serve(sockets=[listening])))
    thread.start()
    try:
        yield
    finally:
        running.should_exit = running.force_exit = True
        thread.join()
