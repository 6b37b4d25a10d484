"""The lists of a server, read to their end within bounds, without their bad entries."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types
from anyio.abc import ObjectReceiveStream
from mcp import Client, MCPError
from mcp_types import methods
from pydantic import BaseModel, ValidationError

from taoloop.tools.mcp.cards import Definition
from taoloop.tools.mcp.errors import validation_problem
from taoloop.tools.mcp.tasks import task_as_result
from taoloop.tools.mcp.texts import TEXTS

RAW = "taoloop/raw"
"""The field of a tool's `_meta` with its definition as the server sent it."""

DROPPED = "taoloop/dropped"
"""The field of a list's `_meta` with the reasons why entries were taken out."""

NAMES = "taoloop/names"
"""The field of a tool list's `_meta` with the names that were passed on: the SDK may take out more."""

MAX_ENTRIES = 2_000
"""How many entries of a list count. Those beyond are not even looked at: a message may hold a million."""

MAX_PAGES = 100
MAX_TOOL_BYTES = 200_000
MAX_TOOLS_BYTES = 16_000_000

_LISTS: dict[str, tuple[str, type[BaseModel]]] = {
    "tools": ("tools/list", mcp_types.Tool),
    "resources": ("resources/list", mcp_types.Resource),
    "resourceTemplates": ("resources/templates/list", mcp_types.ResourceTemplate),
    "prompts": ("prompts/list", mcp_types.Prompt),
}
_BURST, _PER_S = 20_000, 2_000  # messages that nobody asked for
_SHOWN_REASONS = 20


@dataclass(slots=True)
class RateMeter:
    """How much a server may still send unasked."""

    burst: float = _BURST
    """How many messages at once."""
    per_s: float = _PER_S
    """How many a second in the long run."""
    clock: Callable[[], float] = time.monotonic
    """The clock, in seconds."""
    _budget: float = 0.0
    _at: float | None = None

    def takes(self) -> bool:
        """Count one message; False where it is one too many."""
        now = self.clock()
        gained = self.burst if self._at is None else (now - self._at) * self.per_s
        budget = min(self.burst, self._budget + gained) - 1
        self._budget, self._at = max(0.0, budget), now
        return budget >= 0


@asynccontextmanager
async def filtered_transport(
    transport: AbstractAsyncContextManager[Any], on_end: Callable[[str], None], version: Callable[[], str | None]
) -> AsyncIterator[tuple[Any, Any]]:
    """A transport whose incoming messages are filtered. `on_end` is called once no more will come, with a reason.

    `version` gives the revision of the protocol once it is agreed on.
    """
    async with transport as (receive, write):
        yield _FilteredStream(receive, on_end, version), write


class _FilteredStream(ObjectReceiveStream[Any]):
    """The stream that the SDK reads from."""

    def __init__(self, inner: Any, on_end: Callable[[str], None], version: Callable[[], str | None]) -> None:
        self._inner, self._on_end, self._version = inner, on_end, version
        self._meter = RateMeter()

    @property
    def last_context(self) -> Any:
        """The context of the sender, where the transport has it; the SDK asks for it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """The next message that is for the session."""
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                self._on_end("")
                raise
            message = getattr(item, "message", None)
            if isinstance(message, mcp_types.JSONRPCNotification | mcp_types.JSONRPCRequest):
                if not self._meter.takes():
                    self._on_end(TEXTS.run_text("too_many_messages", limit=_BURST))
                    raise anyio.EndOfStream
                if message.method == "notifications/message":
                    continue  # its log is for the people who run it
            elif isinstance(message, mcp_types.JSONRPCResponse):
                message.result = task_as_result(filter_list(message.result, self._version()))
            return item

    async def aclose(self) -> None:
        """Close the stream of the transport."""
        await self._inner.aclose()


def filter_list(result: dict[str, Any], version: str | None) -> dict[str, Any]:
    """A result without the invalid entries of its list; in `_meta`: why, and each tool as it came."""
    list_key = next((key for key in _LISTS if isinstance(result.get(key), list)), None)
    if list_key is None or version is None or "content" in result or "contents" in result:
        return result
    rest = {key: value for key, value in result.items() if key != list_key}
    accepted, reasons = [], []
    for number, entry in enumerate(result[list_key][:MAX_ENTRIES]):
        reason = _invalid_reason(list_key, entry, rest, version)
        if reason is not None:
            reasons.append(f"{list_key}[{number}] {_entry_name(entry)}: {reason}")
        elif list_key == "tools":
            accepted.append({**_without_output_schema(entry), "_meta": {**_meta(entry), RAW: entry}})
        else:
            accepted.append(entry)
    if len(reasons) > _SHOWN_REASONS:
        reasons = [*reasons[:_SHOWN_REASONS], f"and {len(reasons) - _SHOWN_REASONS} more"]
    if len(result[list_key]) > MAX_ENTRIES:
        reasons.append(f"its list is too long; the first {MAX_ENTRIES:,} entries count")
    names = [entry["name"] for entry in accepted] if list_key == "tools" else []
    return {**rest, list_key: accepted, "_meta": {**_meta(rest), DROPPED: reasons, NAMES: names}}


def _invalid_reason(key: str, entry: Any, rest: Mapping[str, Any], version: str) -> str | None:
    """Why an entry is invalid, in few words; None where it is valid."""
    method, model = _LISTS[key]
    if not isinstance(entry, dict):
        return "it is no object"
    if key == "tools" and not isinstance(entry.get("outputSchema"), dict | None):
        return "outputSchema: it is no object"
    judged = _without_output_schema(entry)
    try:
        model.model_validate(judged, by_name=False)
        methods.validate_server_result(method, version, {**rest, key: [judged]})
    except ValidationError as error:
        return validation_problem(error, ignored=(key, 0))
    except (KeyError, ValueError):
        return None  # a revision that has no such list: the SDK decides
    return None


def _without_output_schema(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "outputSchema"}


def _meta(message: Mapping[str, Any]) -> dict[str, Any]:
    meta = message.get("_meta")
    return dict(meta) if isinstance(meta, dict) else {}


def _entry_name(entry: Any) -> str:
    name = entry.get("name") or entry.get("uri") if isinstance(entry, dict) else None
    return repr(name[:80]) if isinstance(name, str) else "without a name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The tools of a server."""

    definitions: Mapping[str, Definition] = field(default_factory=dict)
    """The tools by name."""
    problems: tuple[str, ...] = ()
    """What was wrong with the list."""


async def listed_tools(client: Client) -> Listing:
    """All tools of a server. A bad entry is a problem, and so is a second tool of the same name."""
    if client.server_capabilities.tools is None:
        return Listing()
    entries, problems = await list_all(client, "list_tools")
    definitions: dict[str, Definition] = {}
    size_bytes = 0
    for entry in entries:
        definition = Definition((entry.meta or {}).get(RAW) or entry.model_dump(by_alias=True, exclude_unset=True))
        if (first := definitions.get(definition.name)) is not None:
            name = definition.name[:80]
            if first.digest == definition.digest:
                problems.append(f"the tool {name!r} stands twice in its list; it is offered once")
            else:
                problems.append(f"the name {name!r} stands twice in its list; the first one counts")
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
    entries: list[Any] = []
    problems: list[str] = []
    cursor: str | None = None
    cursors: set[str] = set()
    for _ in range(MAX_PAGES):
        try:
            page = await getattr(client, method)(cursor=cursor)
        except MCPError as error:
            if error.code == mcp_types.METHOD_NOT_FOUND and method != "list_tools":
                return entries, problems  # a server may have resources and know no templates
            raise
        page_entries = getattr(page, method.removeprefix("list_"))
        entries += page_entries
        meta = page.meta or {}
        problems += meta.get(DROPPED, ())
        names = {entry.name for entry in page_entries}
        problems += [f"{name!r}: its x-mcp-header is none" for name in meta.get(NAMES, ()) if name not in names]
        cursor = page.next_cursor
        if len(entries) > MAX_ENTRIES or cursor in cursors:
            break
        if not cursor:
            return entries, problems
        cursors.add(cursor)
    accepted = entries[:MAX_ENTRIES]
    problems.append(f"its list does not end, or is too long; the first {len(accepted):,} entries count")
    return accepted, problems
