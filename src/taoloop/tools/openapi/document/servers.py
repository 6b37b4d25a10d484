"""The base URLs of an API: the servers of a document, with their variables filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from taoloop.tools.openapi.document.document import OpenapiDocument
from taoloop.tools.openapi.document.plain_data import ProblemLog, as_list, as_mapping, as_text
from taoloop.tools.openapi.settings import OpenapiSource

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_GIVE_BASE_URL = "Set `base_url`."


def server_addresses(
    servers: Sequence[Any], document: OpenapiDocument, source: OpenapiSource, problems: ProblemLog, document_path: str
) -> tuple[str, ...]:
    """The base URLs of a list of servers; unusable ones are reported and omitted.

    A relative URL is resolved against the URL of the document.
    """
    if source.base_url:
        return (source.base_url,)
    addresses: list[str] = []
    for index, server in enumerate(servers):
        server_path = f"{document_path}[{index}]"
        address = _fill_variables(as_mapping(server), source, problems, server_path)
        if address is None:
            continue
        if not _is_address(address):
            problems.add(server_path, f"The server {address[:80]!r} is not a URL.", _GIVE_BASE_URL)
            continue
        if not urlsplit(address).netloc:
            if not document.address:
                problems.add(server_path, f"The server {address[:80] or '/'!r} names no host.", _GIVE_BASE_URL)
                continue
            address = urljoin(document.address, address or "/")
        if address.startswith("//"):
            address = f"{urlsplit(document.address).scheme or 'https'}:{address}"
        if urlsplit(address).scheme.lower() not in ("http", "https"):
            problems.add(server_path, f"The server {address[:80]!r} is neither http nor https.", _GIVE_BASE_URL)
            continue
        addresses.append(address)
    return tuple(dict.fromkeys(addresses))


def _is_address(address: str) -> bool:
    """Whether a URL can be parsed: its brackets are closed, and its port is valid."""
    try:
        return urlsplit(address).port != 0
    except ValueError:
        return False


def listed_servers(node: Mapping[str, Any]) -> Sequence[Any]:
    """The servers of a document, a path or an operation; empty if it has none of its own."""
    return [
        server
        for server in as_list(node.get("servers"))
        if isinstance(server, Mapping) and isinstance(server.get("url"), str)
    ]


def _fill_variables(
    server: Mapping[str, Any], source: OpenapiSource, problems: ProblemLog, document_path: str
) -> str | None:
    """The URL with its variables filled in; None if one has no value, or one that the document does not allow."""
    address = as_text(server.get("url")).strip()
    variables = as_mapping(server.get("variables"))
    for name in dict.fromkeys(_VARIABLE.findall(address)):
        variable = as_mapping(variables.get(name))
        value = source.server_variables.get(name, variable.get("default"))
        allowed_values = [str(value) for value in as_list(variable.get("enum"))]
        if value is None:
            problems.add(
                document_path, f"The server's variable {name!r} has no value.", "Set it in `server_variables`."
            )
            return None
        if allowed_values and str(value) not in allowed_values:
            listed = ", ".join(allowed_values[:10])
            problems.add(document_path, f"The server's variable {name!r} cannot be {value!r}.", f"Allowed: {listed}.")
            return None
        address = address.replace(f"{{{name}}}", str(value))
    return address
