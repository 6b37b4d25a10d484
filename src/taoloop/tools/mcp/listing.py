"""The lists of a server, read to their end within bounds, and what stands in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taoloop.tools.mcp.message_filter import DROPPED, MAX_ENTRIES, NAMES, RAW

if TYPE_CHECKING:
    from mcp import Client

MAX_PAGES = 100
MAX_TOOL_BYTES = 200_000
MAX_TOOLS_BYTES = 16_000_000

_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_RESULT = {
    "list_tools": "tools",
    "list_resources": "resources",
    "list_resource_templates": "resource_templates",
    "list_prompts": "prompts",
}


@dataclass(frozen=True)
class Definition:
    """A tool as its server defines it, word for word."""

    raw: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name at the server."""
        return str(self.raw["name"])

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All of it that a model or a policy is told: what is pinned."""
        return {name: self.raw[name] for name in _FIELDS if self.raw.get(name) is not None}

    @cached_property
    def _canonical(self) -> bytes:
        return json.dumps(self.summary, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()

    @property
    def needs_task(self) -> bool:
        """Whether it can only be called as a task, which takes a client that asks for its result later."""
        how = self.raw.get("execution")
        return isinstance(how, Mapping) and how.get("taskSupport") == "required"

    @property
    def size_bytes(self) -> int:
        """How long that is, as JSON."""
        return len(self._canonical)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of that, in hexadecimal digits."""
        return hashlib.sha256(self._canonical).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The tools of a server by name, and what was wrong with its list."""

    definitions: Mapping[str, Definition] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


async def listed_tools(client: Client) -> Listing:
    """All tools of a server. A bad entry is a problem, and so is a second tool of the same name."""
    if client.server_capabilities.tools is None:
        return Listing()
    entries, problems = await list_all(client, "list_tools")
    definitions: dict[str, Definition] = {}
    size_bytes = 0
    for entry in entries:
        definition = Definition((entry.meta or {}).get(RAW) or entry.model_dump(by_alias=True, exclude_unset=True))
        if (first := definitions.get(definition.name)) is not None and first.digest == definition.digest:
            continue
        if first is not None:
            problems.append(f"the name {definition.name!r} stands twice in its list; the first one counts")
        elif (
            definition.size_bytes > MAX_TOOL_BYTES
            or (size_bytes := size_bytes + definition.size_bytes) > MAX_TOOLS_BYTES
        ):
            problems.append(f"{definition.name[:80]!r} is left out: it is, or the list with it becomes, too large")
        else:
            definitions[definition.name] = definition
    return Listing(definitions=definitions, problems=tuple(problems))


async def list_all(client: Client, method: str) -> tuple[list[Any], list[str]]:
    """All entries of a list, and what was wrong with it. Ends whatever the server says."""
    from mcp import MCPError  # noqa: PLC0415  # optional
    from mcp_types import METHOD_NOT_FOUND  # noqa: PLC0415  # likewise

    entries: list[Any] = []
    problems: list[str] = []
    cursor: str | None = None
    cursors: set[str] = set()
    for _ in range(MAX_PAGES):
        try:
            page = await getattr(client, method)(cursor=cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and method != "list_tools":
                return entries, problems  # a server may have resources and know no templates
            raise
        page_entries = getattr(page, _RESULT[method])
        entries += page_entries
        problems += (page.meta or {}).get(DROPPED, ())
        names = {entry.name for entry in page_entries}
        problems += [
            f"{name!r}: its x-mcp-header is none" for name in (page.meta or {}).get(NAMES, ()) if name not in names
        ]
        cursor = page.next_cursor
        if not cursor and len(entries) <= MAX_ENTRIES:
            return entries, problems
        if cursor is None or cursor in cursors or len(entries) > MAX_ENTRIES:
            break
        cursors.add(cursor)
    accepted = entries[:MAX_ENTRIES]
    problems.append(f"its list does not end, or is too long; the first {len(accepted):,} entries count")
    return accepted, problems
