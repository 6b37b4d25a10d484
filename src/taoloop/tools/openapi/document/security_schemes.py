"""Security schemes: what a request must carry, and which schemes an operation asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from taoloop.tools.openapi.document.operation import In, Scheme
from taoloop.tools.openapi.document.plain_data import Notes, mapping, text, texts
from taoloop.tools.openapi.document.refs import CORRECT, BrokenReferenceError, References
from taoloop.tools.openapi.document.swagger2 import security_scheme
from taoloop.tools.openapi.names import is_header_name

Security = tuple[Mapping[str, tuple[str, ...]], ...]


def schemes_of(root: Mapping[str, Any], references: References, uri: str, notes: Notes) -> dict[str, Scheme]:
    """The security schemes that a document defines, by name."""
    told = mapping(root.get("securityDefinitions")) or mapping(mapping(root.get("components")).get("securitySchemes"))
    where = "securityDefinitions" if "securityDefinitions" in root else "components.securitySchemes"
    made: dict[str, Scheme] = {}
    for name, node in told.items():
        try:
            found = mapping(references.follow(node, uri).value)
        except BrokenReferenceError as error:
            notes.add(f"{where}.{name}", str(error), CORRECT)
            continue
        made[name] = _scheme(name, security_scheme(found))
    return made


def security_of(node: Mapping[str, Any], root: Mapping[str, Any]) -> Security:
    """The alternatives that an operation asks for; the document's own where it says nothing."""
    told = node.get("security", root.get("security"))
    if not isinstance(told, list):
        return ()
    return tuple({str(name): texts(scopes) for name, scopes in one.items()} for one in told if isinstance(one, Mapping))


def _scheme(name: str, node: Mapping[str, Any]) -> Scheme:
    kind = text(node.get("type")).lower()
    if kind == "apikey" and (key := text(node.get("name"))):
        place = text(node.get("in")).lower()
        if place == "header" and not is_header_name(key):
            return Scheme(name=name, kind="unsupported", said=f"an API key in a header {key[:40]!r}")
        if place in ("header", "query", "cookie"):
            return Scheme(name=name, kind="api_key", place=cast("In", place), key=key)
        return Scheme(name=name, kind="unsupported", said=f"an API key in {place[:40] or 'no place'!r}")
    if kind == "http":
        return _http(name, text(node.get("scheme")))
    if kind == "oauth2":
        return _oauth2(name, mapping(node.get("flows")))
    if kind == "openidconnect":
        return Scheme(name=name, kind="bearer", prefix="Bearer", said="OpenID Connect")
    return Scheme(name=name, kind="unsupported", said=(text(node.get("type")) or "a scheme without a type")[:60])


def _http(name: str, scheme: str) -> Scheme:
    if scheme.lower() == "basic":
        return Scheme(name=name, kind="basic", prefix="Basic")
    if scheme.lower() == "bearer":
        return Scheme(name=name, kind="bearer", prefix="Bearer")
    return Scheme(name=name, kind="unsupported", said=f"HTTP {scheme[:40] or 'authentication'}")


def _oauth2(name: str, flows: Mapping[str, Any]) -> Scheme:
    """Client credentials are fetched; a token of any other flow must be given."""
    flow = mapping(flows.get("clientCredentials"))
    address = text(flow.get("tokenUrl"))
    if address:
        scopes = tuple(str(scope) for scope in mapping(flow.get("scopes")))
        return Scheme(name=name, kind="oauth2_client", prefix="Bearer", token_url=address, scopes=scopes)
    said = f"OAuth2 ({', '.join(str(one) for one in list(flows)[:4])})" if flows else "OAuth2"
    return Scheme(name=name, kind="bearer", prefix="Bearer", said=said)
