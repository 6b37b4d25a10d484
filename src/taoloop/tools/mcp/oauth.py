"""Authentication by OAuth 2.1 (RFC 6749, 7636, 8252, 8414, 8707, 9728): the SDK's providers, with tokens that stay.

A program never opens a browser by itself: a server that wants a login is an error that names the command for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from taoloop.errors import ToolError
from taoloop.tools.mcp.errors import server_error
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.mcp.texts import TEXTS
from taoloop.tools.mcp.token_store import TokenStore, token_store

logging.getLogger("mcp.client.auth.oauth2").setLevel(logging.CRITICAL + 1)
"""Its errors are raised too; its log quotes answers of token endpoints, which hold tokens."""

NO_PORT = "http://127.0.0.1/callback"
"""The redirect of a program that cannot be redirected to."""


class StoredLogin:
    """What is kept of a login: tokens with the time of their end, the client, and where to refresh."""

    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self.record: dict[str, Any] = {}

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens, with the seconds that are left of them."""
        self.record = await self._store.load()
        if "tokens" not in self.record:
            return None
        tokens = OAuthToken.model_validate(self.record["tokens"])
        if (expires_at := self.record.get("expires_at")) is not None:
            tokens.expires_in = int(expires_at - time.time())
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens."""
        expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        await self._keep(tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=expires_at)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client as the authorization server knows it."""
        client = self.record.get("client")
        return None if client is None else OAuthClientInformationFull.model_validate(client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a new client."""
        await self._keep(client=client_info.model_dump(mode="json", exclude_none=True))

    async def keep_metadata(self, provider: OAuthClientProvider) -> None:
        """Keep where tokens are refreshed: a later process must not guess it."""
        context = provider.context
        for name, metadata in (("server", context.oauth_metadata), ("resource", context.protected_resource_metadata)):
            if metadata is not None:
                await self._keep(**{name: metadata.model_dump(mode="json", exclude_none=True)})

    async def restore(self, provider: OAuthClientProvider) -> None:
        """Give a provider what was kept of an earlier process."""
        context = provider.context
        if context.current_tokens is not None:
            context.update_token_expiry(context.current_tokens)
        if "server" in self.record:
            context.oauth_metadata = OAuthMetadata.model_validate(self.record["server"])
        if "resource" in self.record:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(self.record["resource"])

    async def forget(self) -> None:
        """Forget everything."""
        self.record = {}
        await self._store.save({})

    async def _keep(self, **changes: Any) -> None:
        self.record = {**self.record, **changes}
        await self._store.save(self.record)


class PersonProvider(OAuthClientProvider):
    """The authorization code flow (RFC 6749, 4.1; PKCE). Without `redirect`, tokens are only used and refreshed."""

    def __init__(
        self,
        server: McpServer,
        login: StoredLogin,
        *,
        redirect_uri: str = NO_PORT,
        redirect: Callable[[str], Awaitable[None]] | None = None,
        callback: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
    ) -> None:
        assert server.oauth is not None  # noqa: S101  # the caller looked
        self._server, self._login, self._is_interactive = server, login, redirect is not None
        self._redirect_uri = AnyUrl(redirect_uri)
        metadata = OAuthClientMetadata(
            client_name="taoloop",
            redirect_uris=[self._redirect_uri],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            scope=" ".join(server.oauth.scopes) or None,
        )
        super().__init__(server.url, metadata, login, redirect, callback)

    async def _initialize(self) -> None:
        await super()._initialize()
        await self._login.restore(self)
        oauth = self._server.oauth
        if oauth is not None and oauth.client_id:
            self.context.client_info = OAuthClientInformationFull(
                client_id=oauth.client_id,
                client_secret=oauth.client_secret or None,
                redirect_uris=[self._redirect_uri],
                grant_types=["authorization_code", "refresh_token"],
                token_endpoint_auth_method="client_secret_post" if oauth.client_secret else "none",
            )

    async def _perform_authorization(self) -> httpx2.Request:
        if self._is_interactive:
            return await super()._perform_authorization()
        if self.context.can_refresh_token():  # refused before its time
            request = await self._refresh_token()
            self.context.clear_tokens()  # a second refusal is one of the refresh token
            return request
        raise login_needed(self._server)

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        if not self._is_interactive and response.status_code not in (200, 201):
            raise login_needed(self._server)
        before = self._login.record.get("tokens", {})
        await super()._handle_token_response(response)
        tokens = self.context.current_tokens
        if tokens is not None and tokens.refresh_token is None and before.get("refresh_token"):
            tokens.refresh_token = before["refresh_token"]  # RFC 6749, 6: it stays where no other is given
            await self._login.set_tokens(tokens)
        await self._login.keep_metadata(self)


class MachineProvider(ClientCredentialsOAuthProvider):
    """The client credentials flow (RFC 6749, 4.4): no person, and a new token when the last one ends."""

    def __init__(self, server: McpServer, login: StoredLogin) -> None:
        oauth = server.oauth
        assert oauth is not None  # noqa: S101  # the caller looked
        scope = " ".join(oauth.scopes) or None
        super().__init__(server.url, login, oauth.client_id, oauth.client_secret, scope=scope, issuer=oauth.issuer)
        self._login = login

    async def _initialize(self) -> None:
        await super()._initialize()
        await self._login.restore(self)


def provider_of(server: McpServer) -> httpx2.Auth | None:
    """What authenticates the requests to a server; None where its settings name no OAuth.

    Raises:
        ConfigError: its tokens cannot be kept.
    """
    if server.oauth is None:
        return None
    login = StoredLogin(token_store(server))
    if server.oauth.grant == "client_credentials":
        return MachineProvider(server, login)
    return PersonProvider(server, login)


def login_needed(server: McpServer) -> ToolError:
    """The error of a server that wants a person to log in."""
    hint = TEXTS.run_text("login_needed_hint", server=server.name)
    return server_error(server, "login_needed", "login_needed", hint=hint)
