"""What proves to an API who calls: keys, passwords and tokens, put where the document says.

The model never sees them. They go to the servers of the API alone, and never along with a redirect.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from taoloop.errors import MissingKey, ToolError
from taoloop.tools.openapi.document.operation import Operation, Scheme
from taoloop.tools.openapi.http.parameter_styles import escaped, header_safe
from taoloop.tools.openapi.settings import OpenapiSource

Alternative = Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class Credentials:
    """What goes with one request: headers, pairs of the query and of the cookie as they stand on the wire."""

    headers: dict[str, str] = field(default_factory=dict)
    query: list[str] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)


def chosen_alternative(operation: Operation, source: OpenapiSource) -> Alternative:
    """The first alternative of the operation that the operator gave all secrets for; empty where none is needed.

    Raises:
        MissingKey: none is complete; names what to set.
        ToolError: `unsupported_security`, where no alternative could ever be.
    """
    if not operation.security:
        return {}
    usable = [one for one in operation.security if all(_is_supported(operation, name, source) for name in one)]
    for one in usable:
        if one and all(_is_given(operation.schemes[name], source) for name in one):
            return one
    if any(not one for one in operation.security):
        return {}
    if not usable:
        said = ", ".join(sorted({_said(operation, name) for one in operation.security for name in one}))
        raise ToolError(
            f"{operation.name!r} asks for security of a kind that is not supported: {said}.",
            code="unsupported_security",
            hint="Only the operator can change this; do without this tool.",
        )
    lacking = [name for name in usable[0] if not _is_given(operation.schemes[name], source)]
    variable = variable_name(source, lacking[0])
    raise MissingKey(
        f"{operation.name!r} needs a key for the security scheme {lacking[0]!r} of its API, and none is set.",
        hint=f"Set `auth: {{{lacking[0]}: {_form(operation.schemes[lacking[0]], variable)}}}` for this API, and the "
        f"variable {variable}. Nothing was sent.",
    )


def credentials(
    operation: Operation, alternative: Alternative, source: OpenapiSource, tokens: Mapping[str, str]
) -> Credentials:
    """The secrets of an alternative where they belong. `tokens` are those of OAuth2 by the name of their scheme."""
    made = Credentials()
    for name in alternative:
        scheme = operation.schemes[name]
        if not source.auth.get(name) or scheme.kind == "unsupported":  # a header of every call stands for it
            continue
        key, value = scheme.key or "Authorization", _value(scheme, source, tokens)
        if scheme.place == "query":
            made.query.append(f"{escaped(key)}={escaped(value)}")
        elif scheme.place == "cookie":
            made.cookies.append(f"{escaped(key)}={escaped(value)}")
        else:
            made.headers[key] = header_safe(f"auth.{name}", value)
    return made


def oauth_schemes(operation: Operation, alternative: Alternative, source: OpenapiSource) -> list[Scheme]:
    """The schemes of an alternative that a token must be asked for first."""
    schemes = (operation.schemes[name] for name in alternative if source.auth.get(name))
    return [one for one in schemes if one.kind == "oauth2_client" and not isinstance(source.auth.get(one.name), str)]


def basic(username: str, password: str) -> str:
    """The value of a header for HTTP basic."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def secrets_of(source: OpenapiSource) -> dict[str, str]:
    """Every secret of an API by a name that may be shown, for a redactor."""
    found: dict[str, str] = {}
    for name, value in _secrets(source):
        if value and value not in found.values():
            found[name if name not in found else f"{name}_{len(found)}"] = value
    return found


def variable_name(source: OpenapiSource, scheme: str) -> str:
    """The environment variable that a secret would best stand in: its name says that it is one."""
    plain = "".join(char if char.isalnum() and char.isascii() else "_" for char in f"{source.name}_{scheme}".upper())
    stem = "_".join(part for part in plain.split("_") if part) or "API"
    return stem if stem.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")) else f"{stem}_TOKEN"


def _secrets(source: OpenapiSource) -> Iterator[tuple[str, str]]:
    for name, given in source.auth.items():
        label = f"auth.{name}"
        if isinstance(given, str):
            yield label, given
            if len(words := given.split()) > 1:
                yield label, words[-1]  # behind `Bearer` or another word
            if ":" in given:
                yield label, given.partition(":")[2]
                yield label, base64.b64encode(given.encode()).decode()
        else:
            for part in ("password", "client_secret"):
                yield f"{label}.{part}", given.get(part, "")
            for user, word in (("username", "password"), ("client_id", "client_secret")):
                if given.get(word):
                    yield f"{label}.both", base64.b64encode(f"{given.get(user, '')}:{given[word]}".encode()).decode()
    for name, value in source.secrets.items():
        yield f"secret.{name}", value
    for name, value in source.headers.items():
        if name.lower() in ("authorization", "cookie") or any(w in name.lower() for w in ("key", "token", "secret")):
            yield f"header.{name}", value
            if len(words := value.split()) > 1:
                yield f"header.{name}", words[-1]


def _is_supported(operation: Operation, name: str, source: OpenapiSource) -> bool:
    scheme = operation.schemes.get(name)
    return scheme is not None and (scheme.kind != "unsupported" or _is_header_given(scheme, source))


def _is_header_given(scheme: Scheme, source: OpenapiSource) -> bool:
    """Whether the operator's own headers hold the one of a scheme, which needs no other secret then."""
    return scheme.place == "header" and scheme.key.lower() in {name.lower() for name in source.headers}


def _is_given(scheme: Scheme, source: OpenapiSource) -> bool:
    given = source.auth.get(scheme.name)
    if not given or scheme.kind == "unsupported":
        return _is_header_given(scheme, source)
    if isinstance(given, str):
        return True
    wanted = {"basic": "username", "oauth2_client": "client_secret"}.get(scheme.kind)
    return wanted is not None and bool(given.get(wanted))


def _value(scheme: Scheme, source: OpenapiSource, tokens: Mapping[str, str]) -> str:
    given = source.auth.get(scheme.name, "")
    if scheme.kind == "basic":
        if isinstance(given, str):
            user, _, password = given.partition(":")
            return basic(user, password)
        return basic(given.get("username", ""), given.get("password", ""))
    if scheme.kind == "oauth2_client":
        return f"Bearer {given if isinstance(given, str) else tokens[scheme.name]}"
    text = given if isinstance(given, str) else ""
    prefix = scheme.prefix or ("Bearer" if scheme.kind == "bearer" else "")
    return f"{prefix} {text}" if prefix and not text.lower().startswith(f"{prefix.lower()} ") else text


def _form(scheme: Scheme, variable: str) -> str:
    if scheme.kind == "basic":
        return f"{{username: …, password: ${{{variable}}}}}"
    if scheme.kind == "oauth2_client":
        return f"{{client_id: …, client_secret: ${{{variable}}}}}"
    return f"${{{variable}}}"


def _said(operation: Operation, name: str) -> str:
    scheme = operation.schemes.get(name)
    return f"{name} ({scheme.said or scheme.kind})" if scheme is not None else f"{name} (not in the document)"
