"""Requests to the token endpoint of an authorization server (RFC 6749, 3.2), for every grant."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import pydantic_core

from taoloop.tools.egress import EgressResponse

Post = Callable[[str, Mapping[str, str], bytes], Awaitable[EgressResponse]]
"""Sends a POST to an address with headers and a body."""

_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class TokenReply:
    """What a token endpoint answered."""

    response: EgressResponse
    """The whole response."""
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The fields of its JSON object; empty: it is none."""

    @property
    def access_token(self) -> str:
        """The token; empty: none was issued."""
        token = self.fields.get("access_token")
        return token if self.response.status == 200 and isinstance(token, str) else ""

    @property
    def lifetime_s(self) -> float | None:
        """For how many seconds the token is valid; None: the server does not say."""
        try:
            lifetime_s = float(self.fields.get("expires_in") or 0)
        except (TypeError, ValueError):
            return None
        return lifetime_s if lifetime_s > 0 else None


async def request_token(
    post: Post, url: str, fields: Mapping[str, str], client_id: str, client_secret: str
) -> TokenReply:
    """Ask for a token with the fields of a grant; the client authenticates by RFC 6749, 2.3.1.

    A client without a secret is a public one, which only names itself. With one, the credentials are in the header;
    a server that refuses that gets them in the body.
    """
    in_body = {**fields, "client_id": client_id}
    attempts: list[tuple[Mapping[str, str], Mapping[str, str]]] = [(in_body, _FORM)]
    if client_secret:
        header = basic_header(_quoted(client_id), _quoted(client_secret))
        attempts = [(fields, {**_FORM, "Authorization": header})]
        attempts.append(({**in_body, "client_secret": client_secret}, _FORM))
    for form, headers in attempts:
        response = await post(url, headers, urlencode(form, safe="", quote_via=quote).encode())
        if response.status not in (400, 401) or _error_of(response) == "invalid_grant":
            break
    return TokenReply(response, _json_object(response))


def basic_header(username: str, password: str) -> str:
    """The value of the `Authorization` header for HTTP basic authentication."""
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _error_of(response: EgressResponse) -> str:
    return str(_json_object(response).get("error", ""))


def _json_object(response: EgressResponse) -> Mapping[str, Any]:
    try:
        reply = pydantic_core.from_json(response.body)
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) else {}
