"""Reading security schemes: which credentials a document defines, and which ones an operation requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from taoloop.tools.openapi.document.operation import ParameterLocation, Scheme
from taoloop.tools.openapi.document.plain_data import ProblemLog, as_mapping, as_text, as_texts
from taoloop.tools.openapi.document.refs import CORRECT_REFERENCE, BrokenReferenceError, References
from taoloop.tools.openapi.document.swagger2 import convert_security_scheme
from taoloop.tools.openapi.names import is_header_name

Security = tuple[Mapping[str, tuple[str, ...]], ...]


def read_schemes(root: Mapping[str, Any], references: References, uri: str, problems: ProblemLog) -> dict[str, Scheme]:
    """The security schemes that a document defines, by name."""
    nodes = as_mapping(root.get("securityDefinitions")) or as_mapping(
        as_mapping(root.get("components")).get("securitySchemes")
    )
    section = "securityDefinitions" if "securityDefinitions" in root else "components.securitySchemes"
    schemes: dict[str, Scheme] = {}
    for name, node in nodes.items():
        try:
            definition = as_mapping(references.follow(node, uri).value)
        except BrokenReferenceError as error:
            problems.add(f"{section}.{name}", str(error), CORRECT_REFERENCE)
            continue
        schemes[name] = _read_scheme(name, convert_security_scheme(definition))
    return schemes


def read_security(node: Mapping[str, Any], root: Mapping[str, Any]) -> Security:
    """The security alternatives of an operation; those of the document if it has none of its own."""
    alternatives = node.get("security", root.get("security"))
    if not isinstance(alternatives, list):
        return ()
    return tuple(
        {str(name): as_texts(scopes) for name, scopes in alternative.items()}
        for alternative in alternatives
        if isinstance(alternative, Mapping)
    )


def _read_scheme(name: str, node: Mapping[str, Any]) -> Scheme:
    kind = as_text(node.get("type")).lower()
    if kind == "apikey" and (key := as_text(node.get("name"))):
        location = as_text(node.get("in")).lower()
        if location == "header" and not is_header_name(key):
            return Scheme(name=name, kind="unsupported", description=f"an API key in a header {key[:40]!r}")
        if location in ("header", "query", "cookie"):
            return Scheme(name=name, kind="api_key", location=cast("ParameterLocation", location), key=key)
        return Scheme(name=name, kind="unsupported", description=f"an API key in {location[:40] or 'no location'!r}")
    if kind == "http":
        return _read_http_scheme(name, as_text(node.get("scheme")))
    if kind == "oauth2":
        return _read_oauth2_scheme(name, as_mapping(node.get("flows")))
    if kind == "openidconnect":
        return Scheme(name=name, kind="bearer", prefix="Bearer", description="OpenID Connect")
    return Scheme(
        name=name, kind="unsupported", description=(as_text(node.get("type")) or "a scheme without a type")[:60]
    )


def _read_http_scheme(name: str, scheme: str) -> Scheme:
    if scheme.lower() == "basic":
        return Scheme(name=name, kind="basic", prefix="Basic")
    if scheme.lower() == "bearer":
        return Scheme(name=name, kind="bearer", prefix="Bearer")
    return Scheme(name=name, kind="unsupported", description=f"HTTP {scheme[:40] or 'authentication'}")


def _read_oauth2_scheme(name: str, flows: Mapping[str, Any]) -> Scheme:
    """Tokens for client credentials are requested; the token of any other flow must be configured."""
    flow = as_mapping(flows.get("clientCredentials"))
    address = as_text(flow.get("tokenUrl"))
    if address:
        scopes = tuple(str(scope) for scope in as_mapping(flow.get("scopes")))
        return Scheme(name=name, kind="oauth2_client", prefix="Bearer", token_url=address, scopes=scopes)
    description = f"OAuth2 ({', '.join(str(flow_name) for flow_name in list(flows)[:4])})" if flows else "OAuth2"
    return Scheme(name=name, kind="bearer", prefix="Bearer", description=description)
