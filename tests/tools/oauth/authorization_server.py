"""An authorization server and an API on this machine: codes are used once, bound to PKCE, and tokens are people's."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.tools.egress.site import Got, Reply, Site, redirect

CLIENT_ID, CLIENT_SECRET = "taoloop-test", "client-secret-of-tests"


def answer(value: Any, status: int = 200) -> Reply:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


@dataclass
class AuthorizationServer(Site):
    """`person` is who sits at the browser and logs in; None refuses."""

    person: str | None = "ann"
    expires_in: float | None = 3600
    rotates: bool = True
    fails_with: int = 0
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: dict[str, str] = field(default_factory=dict)
    refresh: dict[str, str] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.routes |= {"/authorize": self._authorize, "/token": self._token, "/me": self._me, "/note": self._me}

    def _authorize(self, got: Got) -> Reply:
        fields = dict(parse_qsl(urlsplit(got.path).query))
        self.asked.append(fields)
        assert fields["client_id"] == CLIENT_ID
        assert fields["code_challenge_method"] == "S256"
        if self.person is None:
            return redirect(
                f"{fields['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': fields['state']})}"
            )
        code = f"code-{next(self._numbers)}"
        self.codes[code] = {**fields, "person": self.person}
        return redirect(f"{fields['redirect_uri']}?{urlencode({'code': code, 'state': fields['state']})}")

    def _token(self, got: Got) -> Reply:
        if self.fails_with:
            return answer({"error": "server_error"}, self.fails_with)
        fields = dict(parse_qsl(got.body.decode()))
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if got.headers.get("authorization") != f"Basic {basic}" and fields.get("client_secret") != CLIENT_SECRET:
            return answer({"error": "invalid_client"}, 401)
        if fields["grant_type"] == "refresh_token":
            person = self.refresh.get(fields["refresh_token"])
            if person is not None and self.rotates:
                del self.refresh[fields["refresh_token"]]
            return answer({"error": "invalid_grant"}, 400) if person is None else self._issue(person)
        grant = self.codes.pop(fields["code"], None)
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if grant is None or grant["code_challenge"] != challenge or grant["redirect_uri"] != fields["redirect_uri"]:
            return answer({"error": "invalid_grant"}, 400)
        return self._issue(grant["person"])

    def _issue(self, person: str) -> Reply:
        number = next(self._numbers)
        token, refresh_token = f"access-{person}-{number}-secret", f"refresh-{person}-{number}-secret"
        self.access[token], self.refresh[refresh_token] = person, person
        reply = {"access_token": token, "token_type": "Bearer", "refresh_token": refresh_token}
        return answer(reply if self.expires_in is None else {**reply, "expires_in": self.expires_in})

    def _me(self, got: Got) -> Reply:
        token = got.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.access:
            return answer({"error": "unauthorized"}, 401)
        return answer({"name": self.access[token], "sent": token})

    def document(self) -> str:
        """The OpenAPI document of the API."""
        code_flow = {"authorizationUrl": f"{self.url}/authorize", "tokenUrl": f"{self.url}/token", "scopes": {"me": ""}}
        operation = {"security": [{"person": ["me"]}], "responses": {"200": {"description": "The person"}}}
        document = {
            "openapi": "3.1.0",
            "info": {"title": "Profile", "version": "1"},
            "servers": [{"url": self.url}],
            "paths": {
                "/me": {"get": {**operation, "operationId": "me", "summary": "Who I am"}},
                "/note": {"post": {**operation, "operationId": "note", "summary": "Write a note"}},
            },
            "components": {
                "securitySchemes": {"person": {"type": "oauth2", "flows": {"authorizationCode": code_flow}}}
            },
        }
        return json.dumps(document)

    def settings(self) -> dict[str, str]:
        """The entry of `auth` for its scheme; the token endpoint is named, because it is on this machine."""
        return {
            "grant": "authorization_code",
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "token_url": f"{self.url}/token",
        }
