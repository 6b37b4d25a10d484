"""Authentication for the scenarios `auth/*` of the conformance suite, with the SDK's providers. For this check only.

The person that an authorization server would ask is played by a request that follows its redirect.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

CALLBACK = AnyUrl("http://localhost:3000/callback")


class Memory(TokenStorage):
    """Keeps tokens for one scenario."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class Person:
    """Agrees to everything at once."""

    def __init__(self) -> None:
        self._answer = AuthorizationCodeResult(code="", state=None, iss=None)

    async def visit(self, address: str) -> None:
        async with httpx2.AsyncClient() as client:
            location = (await client.get(address)).headers["location"]
        found = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        self._answer = AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    async def come_back(self) -> AuthorizationCodeResult:
        return self._answer


async def auth_of(scenario: str, context: dict[str, Any], address: str) -> httpx2.Auth:
    """The authentication that a scenario is about."""
    memory = Memory()
    if scenario == "auth/client-credentials-jwt":
        signed = SignedJWTParameters(
            issuer=context["client_id"],
            subject=context["client_id"],
            signing_algorithm=context.get("signing_algorithm", "ES256"),
            signing_key=context["private_key_pem"],
        )
        return PrivateKeyJWTOAuthProvider(
            server_url=address,
            storage=memory,
            client_id=context["client_id"],
            assertion_provider=signed.create_assertion_provider(),
        )
    if scenario == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(
            server_url=address,
            storage=memory,
            client_id=context["client_id"],
            client_secret=context["client_secret"],
            token_endpoint_auth_method="client_secret_basic",  # noqa: S106  # the name of a method
        )
    if scenario == "auth/enterprise-managed-authorization":
        return await _of_enterprise(context, address, memory)
    return await _with_code(context, address, memory)


async def _of_enterprise(context: dict[str, Any], address: str, memory: Memory) -> httpx2.Auth:
    async with httpx2.AsyncClient(timeout=30.0) as client:
        about = await client.get(build_protected_resource_metadata_discovery_urls(None, address)[0])
    issuer = about.raise_for_status().json()["authorization_servers"][0]

    async def assertion(audience: str, resource: str) -> str:
        async with httpx2.AsyncClient(timeout=30.0) as client:
            answer = await client.post(
                context["idp_token_endpoint"],
                data={
                    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                    "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
                    "subject_token": context["idp_id_token"],
                    "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
                    "audience": audience,
                    "resource": resource,
                    "client_id": context["idp_client_id"],
                },
            )
        return str(answer.raise_for_status().json()["access_token"])

    return IdentityAssertionOAuthProvider(
        server_url=address,
        storage=memory,
        client_id=context["client_id"],
        client_secret=context["client_secret"],
        issuer=issuer,
        assertion_provider=assertion,
        token_endpoint_auth_method="client_secret_basic",  # noqa: S106  # the name of a method
    )


async def _with_code(context: dict[str, Any], address: str, memory: Memory) -> httpx2.Auth:
    person = Person()
    if client_id := context.get("client_id"):
        secret = context.get("client_secret")
        method = "client_secret_basic" if secret else "none"
        await memory.set_client_info(
            OAuthClientInformationFull(
                client_id=client_id,
                client_secret=secret,
                redirect_uris=[CALLBACK],
                token_endpoint_auth_method=method,
            )
        )
    return OAuthClientProvider(
        server_url=address,
        client_metadata=OAuthClientMetadata(
            client_name="taoloop",
            redirect_uris=[CALLBACK],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage=memory,
        redirect_handler=person.visit,
        callback_handler=person.come_back,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
    )
