"""How to reach an API: the base URLs of its servers, and the security schemes that a document defines and requires."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from taoloop.tools.openapi.document import (
    ProblemLog,
    UnusablePartError,
    as_list,
    as_mapping,
    as_text,
    as_texts,
)
from taoloop.tools.openapi.names import is_header_name
from taoloop.tools.openapi.operation import ParameterLocation, Scheme, SchemeKind
from taoloop.tools.openapi.refs import References
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.openapi.swagger2 import convert_security_scheme

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_GIVE_BASE_URL = "Set `base_url`."

Security = tuple[Mapping[str, tuple[str, ...]], ...]


def server_addresses(
    servers: Sequence[Any], document_url: str, source: OpenapiSource, problems: ProblemLog, document_path: str
) -> tuple[str, ...]:
    """The base URLs of a list of servers; unusable ones are reported and omitted.

    A relative URL is resolved against `document_url`; empty: the document was not fetched from a URL.
    """
    if source.base_url:
        return (source.base_url,)
    addresses: list[str] = []
    for index, server in enumerate(servers):
        try:
            addresses.append(_server_address(as_mapping(server), document_url, source))
        except UnusablePartError as error:
            problems.add(f"{document_path}[{index}]", str(error), error.hint)
    return tuple(dict.fromkeys(addresses))


def _server_address(server: Mapping[str, Any], document_url: str, source: OpenapiSource) -> str:
    address = _fill_variables(server, source)
    if not _is_address(address):
        raise UnusablePartError(f"The server {address[:80]!r} is not a URL.", _GIVE_BASE_URL)
    if not urlsplit(address).netloc:
        if not document_url:
            raise UnusablePartError(f"The server {address[:80] or '/'!r} names no host.", _GIVE_BASE_URL)
        address = urljoin(document_url, address or "/")
    if address.startswith("//"):
        address = f"{urlsplit(document_url).scheme or 'https'}:{address}"
    if urlsplit(address).scheme.lower() not in ("http", "https"):
        raise UnusablePartError(f"The server {address[:80]!r} is neither http nor https.", _GIVE_BASE_URL)
    return address


def _is_address(address: str) -> bool:
    """Whether a URL can be parsed: its brackets are closed, and its port is valid."""
    try:
        return urlsplit(address).port != 0
    except ValueError:
        return False


def listed_servers(node: Mapping[str, Any]) -> Sequence[Any]:
    """The servers of a document, a path or an operation; empty if it has none of its own."""
    return [server for server in as_list(node.get("servers")) if isinstance(as_mapping(server).get("url"), str)]


def _fill_variables(server: Mapping[str, Any], source: OpenapiSource) -> str:
    """The URL with its variables filled in.

    Raises:
        UnusablePartError: one has no value, or one that the document does not allow.
    """
    address = as_text(server.get("url")).strip()
    variables = as_mapping(server.get("variables"))
    for name in dict.fromkeys(_VARIABLE.findall(address)):
        variable = as_mapping(variables.get(name))
        value = source.server_variables.get(name, variable.get("default"))
        allowed_values = [str(value) for value in as_list(variable.get("enum"))]
        if value is None:
            raise UnusablePartError(f"The server's variable {name!r} has no value.", "Set it in `server_variables`.")
        if allowed_values and str(value) not in allowed_values:
            hint = f"Allowed: {', '.join(allowed_values[:10])}."
            raise UnusablePartError(f"The server's variable {name!r} cannot be {value!r}.", hint)
        address = address.replace(f"{{{name}}}", str(value))
    return address


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
        except UnusablePartError as error:
            problems.add(f"{section}.{name}", str(error), error.hint)
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
        scheme = as_text(node.get("scheme"))
        if scheme.lower() in ("basic", "bearer"):
            return Scheme(name=name, kind=cast("SchemeKind", scheme.lower()), prefix=scheme.capitalize())
        return Scheme(name=name, kind="unsupported", description=f"HTTP {scheme[:40] or 'authentication'}")
    if kind == "oauth2":
        return _read_oauth2_scheme(name, as_mapping(node.get("flows")))
    if kind == "openidconnect":
        return Scheme(name=name, kind="bearer", prefix="Bearer", description="OpenID Connect")
    return Scheme(
        name=name, kind="unsupported", description=as_text(node.get("type"))[:60] or "a scheme without a type"
    )


def _read_oauth2_scheme(name: str, flows: Mapping[str, Any]) -> Scheme:
    """Tokens for client credentials are requested; the token of any other flow must be configured."""
    flow = as_mapping(flows.get("clientCredentials"))
    address = as_text(flow.get("tokenUrl"))
    if address:
        scopes = tuple(str(scope) for scope in as_mapping(flow.get("scopes")))
        return Scheme(name=name, kind="oauth2_client", prefix="Bearer", token_url=address, scopes=scopes)
    description = f"OAuth2 ({', '.join(str(flow_name) for flow_name in list(flows)[:4])})" if flows else "OAuth2"
    return Scheme(name=name, kind="bearer", prefix="Bearer", description=description)
