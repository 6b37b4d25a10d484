"""Where an API lives: the servers of a document, with their variables filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from taoloop.tools.openapi.document.document import Document
from taoloop.tools.openapi.document.plain_data import Notes, mapping, sequence, text
from taoloop.tools.openapi.settings import OpenapiSource

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_HINT = "Give `base_url`."


def server_addresses(
    told: Sequence[Any], document: Document, source: OpenapiSource, notes: Notes, place: str
) -> tuple[str, ...]:
    """The base URLs of a list of servers; those that cannot be used are told and left out.

    A relative one counts from where the document was fetched.
    """
    if source.base_url:
        return (source.base_url,)
    found: list[str] = []
    for index, server in enumerate(told):
        where = f"{place}[{index}]"
        address = _filled(mapping(server), source, notes, where)
        if address is None:
            continue
        if not _is_address(address):
            notes.add(where, f"The server {address[:80]!r} is no address.", _HINT)
            continue
        if not urlsplit(address).netloc:
            if not document.address:
                notes.add(where, f"The server {address[:80] or '/'!r} does not say on which host it is.", _HINT)
                continue
            address = urljoin(document.address, address or "/")
        if address.startswith("//"):
            address = f"{urlsplit(document.address).scheme or 'https'}:{address}"
        if urlsplit(address).scheme.lower() not in ("http", "https"):
            notes.add(where, f"The server {address[:80]!r} is not reached by http or https.", _HINT)
            continue
        found.append(address)
    return tuple(dict.fromkeys(found))


def _is_address(address: str) -> bool:
    """Whether an address can be taken apart: its brackets close, and its port is one."""
    try:
        return urlsplit(address).port != 0
    except ValueError:
        return False


def listed_servers(node: Mapping[str, Any]) -> Sequence[Any]:
    """The servers of a document, a path or an operation; empty where it has none of its own."""
    return [
        one for one in sequence(node.get("servers")) if isinstance(one, Mapping) and isinstance(one.get("url"), str)
    ]


def _filled(server: Mapping[str, Any], source: OpenapiSource, notes: Notes, place: str) -> str | None:
    """The address with its variables, None if one has no value or one that the document does not allow."""
    address = text(server.get("url")).strip()
    variables = mapping(server.get("variables"))
    for name in dict.fromkeys(_VARIABLE.findall(address)):
        variable = mapping(variables.get(name))
        value = source.server_variables.get(name, variable.get("default"))
        allowed = [str(one) for one in sequence(variable.get("enum"))]
        if value is None:
            notes.add(place, f"The server's variable {name!r} has no value.", "Give it in `server_variables`.")
            return None
        if allowed and str(value) not in allowed:
            listed = ", ".join(allowed[:10])
            notes.add(place, f"The server's variable {name!r} cannot be {value!r}.", f"It takes: {listed}.")
            return None
        address = address.replace(f"{{{name}}}", str(value))
    return address
