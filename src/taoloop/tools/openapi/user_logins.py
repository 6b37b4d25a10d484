"""The logins of people at one API: from the security schemes of its document and the settings of its operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any
from urllib.parse import urljoin

from taoloop.errors import ConfigError, ToolDefinitionError
from taoloop.tools.oauth.store import SqliteLoginStore
from taoloop.tools.oauth.token_endpoint import Post
from taoloop.tools.oauth.user_login import OAuthClient, UserLogin
from taoloop.tools.openapi.credentials import Alternative
from taoloop.tools.openapi.operation import Operation, Scheme
from taoloop.tools.openapi.request import server_of
from taoloop.tools.openapi.settings import OpenapiSource, is_http_url, is_user_login


class ApiLogins:
    """The logins of one API by security scheme; none unless `auth` has the grant `authorization_code`."""

    def __init__(self, source: OpenapiSource, post: Post) -> None:
        self._source, self._post = source, post
        self._logins: dict[str, UserLogin] = {}

    def read(self, operations: Iterable[Operation]) -> None:
        """Make the logins that operations need; each asks for the scopes that all of them need together.

        Raises:
            ConfigError: the document and the settings together do not say where people log in, or as which client.
        """
        names = {name for name, secret in self._source.auth.items() if is_user_login(secret)}
        schemes: dict[str, tuple[Scheme, Operation]] = {}
        scopes: dict[str, dict[str, None]] = {}
        for operation in operations if names else ():
            for name, required in chain.from_iterable(alternative.items() for alternative in operation.security):
                if name in names:
                    schemes.setdefault(name, (operation.schemes[name], operation))
                    scopes.setdefault(name, {}).update(dict.fromkeys(required))
        for name, (scheme, operation) in schemes.items():
            client = self._client(scheme, operation, " ".join(scopes[name]))
            store = self._source.token_store or SqliteLoginStore(self._source.token_file)
            self._logins[name] = UserLogin(client, self._post, store)

    def of(self, alternative: Alternative) -> dict[str, UserLogin]:
        """The logins that this alternative of security needs, by scheme."""
        return {name: self._logins[name] for name in alternative if name in self._logins}

    def first_of(self, operation: Operation) -> UserLogin | None:
        """The login that calls of an operation need; None: none."""
        logins = chain.from_iterable(self.of(alternative).values() for alternative in operation.security)
        return next(logins, None)

    def _client(self, scheme: Scheme, operation: Operation, scope: str) -> OAuthClient:
        secret = self._source.auth[scheme.name]
        settings: Mapping[str, Any] = secret if isinstance(secret, Mapping) else {}
        urls = {
            "authorization_url": settings.get("authorization_url") or scheme.authorization_url,
            "token_url": settings.get("token_url") or scheme.user_token_url,
        }
        for name, url in urls.items():
            urls[name] = _absolute(url, operation, self._source) if url else ""
            if not is_http_url(urls[name]):
                raise ConfigError(
                    f"auth.{scheme.name}: neither the document nor the settings have a usable {name}.",
                    hint=f"Write `{name}: https://…` beside the grant.",
                )
        if not settings.get("client_id"):
            raise ConfigError(f"auth.{scheme.name}: the client_id is missing.", hint="Write it beside the grant.")
        return OAuthClient(
            api=self._source.name or scheme.name,
            client_id=settings["client_id"],
            client_secret=settings.get("client_secret", ""),
            scope=settings.get("scope") or scope,
            issuer=settings.get("issuer", ""),
            **urls,
        )


def _absolute(url: str, operation: Operation, source: OpenapiSource) -> str:
    try:
        return urljoin(f"{server_of(operation, source)}/", url)
    except ToolDefinitionError:  # no server is known: the calls will say so
        return url
