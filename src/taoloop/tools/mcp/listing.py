"""The lists of a server, read to their end within bounds, and what stands in them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taoloop.tools.mcp.texts import TEXTS

if TYPE_CHECKING:
    from mcp import Client

RAW = "taoloop/raw"
"""Where, in `_meta` of a tool, its definition as the server sent it is kept."""

DROPPED = "taoloop/dropped"
"""Where, in `_meta` of a list, the reasons stand why entries were taken out."""

NAMES = "taoloop/names"
"""Where, in `_meta` of a list of tools, the names stand that were handed on: the SDK may take out more."""

_LISTS = {
    "tools": ("tools/list", "Tool"),
    "resources": ("resources/list", "Resource"),
    "resourceTemplates": ("resources/templates/list", "ResourceTemplate"),
    "prompts": ("prompts/list", "Prompt"),
}
_BURST, _PER_S = 20_000, 2_000  # messages that nobody asked for
_SHOWN_REASONS = 20

MAX_ENTRIES = 2_000
"""How many entries of a list count. Those beyond are not even looked at: a message may hold a million."""


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
        self._budget = min(self.burst, self._budget + gained)
        self._at = now
        self._budget -= 1
        if self._budget >= 0:
            return True
        self._budget = 0.0
        return False


class FilteredTransport:
    """A transport whose messages pass through the sieve. `on_end` is called once no more will come, with a reason.

    `version` gives the revision of the protocol once it is agreed on.
    """

    def __init__(self, inner: Any, on_end: Callable[[str], None], version: Callable[[], str | None]) -> None:
        self._inner, self._on_end, self._version = inner, on_end, version

    async def __aenter__(self) -> tuple[Any, Any]:
        receive, write = await self._inner.__aenter__()
        return _Reading(receive, self._on_end, self._version), write

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class _Reading:
    """The stream that the SDK reads from."""

    def __init__(self, inner: Any, on_end: Callable[[str], None], version: Callable[[], str | None]) -> None:
        self._inner, self._on_end, self._version = inner, on_end, version
        self._meter = RateMeter()

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        import anyio  # noqa: PLC0415  # comes with the SDK, which is optional
        import mcp_types  # noqa: PLC0415  # likewise

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
                message.result = filter_list(message.result, self._version())
            return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def close(self) -> None:
        self._inner.close()

    def __aiter__(self) -> _Reading:
        return self

    async def __anext__(self) -> Any:
        import anyio  # noqa: PLC0415  # comes with the SDK

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Reading:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def filter_list(result: dict[str, Any], version: str | None) -> dict[str, Any]:
    """A result without the entries of lists that are none; in `_meta`: why, and each tool as it came."""
    list_key = next((key for key in _LISTS if isinstance(result.get(key), list)), None)
    if list_key is None or version is None or "content" in result or "contents" in result:
        return result
    rest = {key: value for key, value in result.items() if key != list_key}
    accepted, reasons = [], []
    for number, entry in enumerate(result[list_key][:MAX_ENTRIES]):
        reason = _reason(list_key, entry, rest, version)
        if reason is not None:
            reasons.append(f"{list_key}[{number}] {_entry_name(entry)}: {reason}")
            continue
        if list_key == "tools":
            rawless = {k: v for k, v in entry.items() if k != "outputSchema"}
            accepted.append(rawless | {"_meta": {**_meta(entry), RAW: entry}})
        else:
            accepted.append(entry)
    if len(reasons) > _SHOWN_REASONS:
        reasons = [*reasons[:_SHOWN_REASONS], f"and {len(reasons) - _SHOWN_REASONS} more"]
    if len(result[list_key]) > MAX_ENTRIES:
        reasons.append(f"its list is too long; the first {MAX_ENTRIES:,} entries count")
    names = [entry["name"] for entry in accepted] if list_key == "tools" else []
    return {**rest, list_key: accepted, "_meta": {**_meta(rest), DROPPED: reasons, NAMES: names}}


def _reason(key: str, entry: Any, rest: Mapping[str, Any], version: str) -> str | None:
    """Why an entry is none, in few words; None where it is one."""
    import mcp_types  # noqa: PLC0415  # comes with the SDK
    import pydantic  # noqa: PLC0415  # heavy
    from mcp_types import methods  # noqa: PLC0415  # comes with the SDK

    method, model = _LISTS[key]
    if not isinstance(entry, dict):
        return "it is no object"
    if key == "tools" and entry.get("outputSchema") is not None and not isinstance(entry["outputSchema"], dict):
        return "outputSchema: it is no object"
    judged = {k: v for k, v in entry.items() if k != "outputSchema"}
    try:
        getattr(mcp_types, model).model_validate(judged, by_name=False)
        methods.validate_server_result(method, version, {**rest, key: [judged]})
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part not in (key, 0))
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    except (KeyError, ValueError):
        return None  # a revision that has no such list: the SDK decides
    return None


def _meta(message: Mapping[str, Any]) -> dict[str, Any]:
    meta = message.get("_meta")
    return dict(meta) if isinstance(meta, dict) else {}


def _entry_name(entry: Any) -> str:
    name = entry.get("name") or entry.get("uri") if isinstance(entry, dict) else None
    return repr(name[:80]) if isinstance(name, str) else "without a name"


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
    """A tool as its server defines it."""

    raw: Mapping[str, Any]
    """The definition, word for word."""

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
