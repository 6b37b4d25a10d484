"""The credentials of a request: keys, passwords and tokens, sent in the way the document defines.

The model never sees them. They are sent only to the servers of the API, and never along with a redirect.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from taoloop.errors import MissingKey, ToolError
from taoloop.tools.openapi.document.operation import Operation, Scheme
from taoloop.tools.openapi.http.parameter_styles import check_header, percent_encode
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.openapi.texts import TEXTS

Alternative = Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class Credentials:
    """The credentials that go with one request."""

    headers: dict[str, str] = field(default_factory=dict)
    """Header values by header name."""
    query: list[str] = field(default_factory=list)
    """Encoded `name=value` pairs of the query."""
    cookies: list[str] = field(default_factory=list)
    """Encoded `name=value` pairs of the `Cookie` header."""


def choose_alternative(operation: Operation, source: OpenapiSource) -> Alternative:
    """The first security alternative for which the operator configured all secrets; empty if none is required.

    Raises:
        MissingKey: no alternative is complete; the error names what to set.
        ToolError: `unsupported_security`, if no alternative can ever be satisfied.
    """
    if not operation.security:
        return {}
    usable = [
        alternative
        for alternative in operation.security
        if all(_is_supported(operation, name, source) for name in alternative)
    ]
    for alternative in usable:
        if alternative and all(_has_secret(operation.schemes[name], source) for name in alternative):
            return alternative
    if any(not alternative for alternative in operation.security):
        return {}
    if not usable:
        schemes = ", ".join(
            sorted({_describe_scheme(operation, name) for alternative in operation.security for name in alternative})
        )
        raise ToolError(
            TEXTS.run_text("unsupported_security", tool=operation.name, schemes=schemes),
            code="unsupported_security",
            hint=TEXTS.run_text("unsupported_security_hint"),
        )
    lacking = [name for name in usable[0] if not _has_secret(operation.schemes[name], source)]
    variable = variable_name(source, lacking[0])
    syntax = _secret_syntax(operation.schemes[lacking[0]], variable)
    raise MissingKey(
        TEXTS.run_text("missing_key", tool=operation.name, scheme=lacking[0]),
        hint=TEXTS.run_text("missing_key_hint", setting=f"{{{lacking[0]}: {syntax}}}", variable=variable),
    )


def credentials(
    operation: Operation, alternative: Alternative, source: OpenapiSource, tokens: Mapping[str, str]
) -> Credentials:
    """The credentials of a security alternative. `tokens` are the OAuth2 access tokens by scheme name."""
    result = Credentials()
    for name in alternative:
        scheme = operation.schemes[name]
        if not source.auth.get(name) or scheme.kind == "unsupported":  # a configured header replaces it
            continue
        key, value = scheme.key or "Authorization", _credential_text(scheme, source, tokens)
        if scheme.location == "query":
            result.query.append(f"{percent_encode(key)}={percent_encode(value)}")
        elif scheme.location == "cookie":
            result.cookies.append(f"{percent_encode(key)}={percent_encode(value)}")
        else:
            result.headers[key] = check_header(f"auth.{name}", value)
    return result


def oauth_schemes(operation: Operation, alternative: Alternative, source: OpenapiSource) -> list[Scheme]:
    """The schemes of an alternative whose token must be requested first."""
    schemes = (operation.schemes[name] for name in alternative if source.auth.get(name))
    return [
        scheme
        for scheme in schemes
        if scheme.kind == "oauth2_client" and not isinstance(source.auth.get(scheme.name), str)
    ]


def basic_header(username: str, password: str) -> str:
    """The value of the `Authorization` header for HTTP basic authentication."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def secrets_of(source: OpenapiSource) -> dict[str, str]:
    """Every secret of an API by a displayable name, for a redactor."""
    secrets: dict[str, str] = {}
    for name, value in _named_secrets(source):
        if value and value not in secrets.values():
            secrets[name if name not in secrets else f"{name}_{len(secrets)}"] = value
    return secrets


def variable_name(source: OpenapiSource, scheme: str) -> str:
    """The suggested environment variable for a secret; its name identifies it as a secret."""
    plain = "".join(char if char.isalnum() and char.isascii() else "_" for char in f"{source.name}_{scheme}".upper())
    stem = "_".join(part for part in plain.split("_") if part) or "API"
    return stem if stem.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")) else f"{stem}_TOKEN"


def _named_secrets(source: OpenapiSource) -> Iterator[tuple[str, str]]:
    for name, secret in source.auth.items():
        label = f"auth.{name}"
        if isinstance(secret, str):
            yield label, secret
            if len(parts := secret.split()) > 1:
                yield label, parts[-1]  # behind `Bearer` or another word
            if ":" in secret:
                yield label, secret.partition(":")[2]
                yield label, base64.b64encode(secret.encode()).decode()
        else:
            for part in ("password", "client_secret"):
                yield f"{label}.{part}", secret.get(part, "")
            for user, word in (("username", "password"), ("client_id", "client_secret")):
                if secret.get(word):
                    yield f"{label}.both", base64.b64encode(f"{secret.get(user, '')}:{secret[word]}".encode()).decode()
    for name, value in source.secrets.items():
        yield f"secret.{name}", value
    for name, value in source.headers.items():
        if name.lower() in ("authorization", "cookie") or any(w in name.lower() for w in ("key", "token", "secret")):
            yield f"header.{name}", value
            if len(parts := value.split()) > 1:
                yield f"header.{name}", parts[-1]


def _is_supported(operation: Operation, name: str, source: OpenapiSource) -> bool:
    scheme = operation.schemes.get(name)
    return scheme is not None and (scheme.kind != "unsupported" or _has_header(scheme, source))


def _has_header(scheme: Scheme, source: OpenapiSource) -> bool:
    """Whether the operator's headers include the header of a scheme, so that it needs no other secret."""
    return scheme.location == "header" and scheme.key.lower() in {name.lower() for name in source.headers}


def _has_secret(scheme: Scheme, source: OpenapiSource) -> bool:
    secret = source.auth.get(scheme.name)
    if not secret or scheme.kind == "unsupported":
        return _has_header(scheme, source)
    if isinstance(secret, str):
        return True
    required_part = {"basic": "username", "oauth2_client": "client_secret"}.get(scheme.kind)
    return required_part is not None and bool(secret.get(required_part))


def _credential_text(scheme: Scheme, source: OpenapiSource, tokens: Mapping[str, str]) -> str:
    secret = source.auth.get(scheme.name, "")
    if scheme.kind == "basic":
        if isinstance(secret, str):
            user, _, password = secret.partition(":")
            return basic_header(user, password)
        return basic_header(secret.get("username", ""), secret.get("password", ""))
    if scheme.kind == "oauth2_client":
        return f"Bearer {secret if isinstance(secret, str) else tokens[scheme.name]}"
    text = secret if isinstance(secret, str) else ""
    prefix = scheme.prefix or ("Bearer" if scheme.kind == "bearer" else "")
    return f"{prefix} {text}" if prefix and not text.lower().startswith(f"{prefix.lower()} ") else text


def _secret_syntax(scheme: Scheme, variable: str) -> str:
    if scheme.kind == "basic":
        return f"{{username: …, password: ${{{variable}}}}}"
    if scheme.kind == "oauth2_client":
        return f"{{client_id: …, client_secret: ${{{variable}}}}}"
    return f"${{{variable}}}"


def _describe_scheme(operation: Operation, name: str) -> str:
    scheme = operation.schemes.get(name)
    description = TEXTS.run_text("not_in_document") if scheme is None else scheme.description or scheme.kind
    return f"{name} ({description})"
