"""The plan of a source: the operations and cards of its tools, and a cache of plans in files.

Planning a large document takes seconds, so its plan is stored as JSON in the user's cache folder. A stored plan belongs
to the exact document, settings and release that produced it; anything else in the folder is ignored. A cache only saves
time: whatever cannot be read or written there changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import TaoError
from taoloop.tools.openapi.document.operation import Operation
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.toolbox import LoadProblem

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_MAX_FILES = 64
_FORMAT = "4"  # changes whenever documents are read differently, or plans are stored differently
_NOT_IN_KEY = frozenset({"document", "auth", "secrets", "headers", "egress", "cache", "cache_folder"})

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTool:
    """One operation with its card."""

    operation: Operation
    """The operation that the tool calls."""
    card: ToolCard
    """The card that the model sees."""
    whole_schema: Schema | None = None
    """The schema that checks the arguments, if the card only shows a part of it."""
    original_names: Mapping[str, str] = field(default_factory=dict)
    """The names in the document of nested properties that were renamed, by their new names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The tools of a document."""

    tools: tuple[PlannedTool, ...]
    """The tools in the order of the document."""
    problems: tuple[LoadProblem, ...] = ()
    """What in the document could not be used."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Digests of the other files that were read for it, by their paths relative to the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredPlan:
    """A plan whose schemas have indexes into `components` instead of their `$defs`, so that each is stored once."""

    plan: Plan
    components: list[Any]


class PlanCache:
    """A folder of stored plans by key; only the newest 64 remain."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = user_cache_folder() / "openapi" if folder is None else folder

    def get(self, key: str) -> bytes:
        """What is stored under this key; empty if there is nothing."""
        try:
            return self._path(key).read_bytes()
        except (OSError, ValueError):
            return b""

    def store(self, key: str, data: bytes) -> None:
        """Store data under a key."""
        with suppress(OSError, ValueError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            partial = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                partial.replace(self._path(key))
            except OSError:
                partial.unlink()
                raise
            self._prune()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _prune(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[_MAX_FILES:]:
            path.unlink(missing_ok=True)


def user_cache_folder() -> Path:
    """The folder of taoloop in the user's cache, as the operating system defines it."""
    import platformdirs  # noqa: PLC0415  # only if the settings name no folder

    return platformdirs.user_cache_path("taoloop", appauthor=False)


def cache_key(source: OpenapiSource, data: bytes, uri: str) -> str:
    """A digest of everything that determines the plan of a source, except its other files."""
    settings = {item.name: getattr(source, item.name) for item in fields(source) if item.name not in _NOT_IN_KEY}
    names = [
        sorted(source.secrets),
        sorted(source.headers),
        sorted(source.auth),
        uri,
        source.document if len(source.document) < 1_000 else "",
    ]
    text = json.dumps([_FORMAT, version("taoloop"), settings, names], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0" + data).hexdigest()[:40]


def dump_plan(plan: Plan) -> bytes:
    """A plan as JSON; a component that many operations use is in it once. Empty: JSON cannot represent it."""
    indexes: dict[int, int] = {}
    components: list[Any] = []

    def index_of(component: Any) -> int:
        index = indexes.setdefault(id(component), len(components))
        if index == len(components):
            components.append(component)
        return index

    stored = _StoredPlan(plan=_map_components(plan, index_of), components=components)
    try:
        return _stored_plan_adapter().dump_json(stored)
    except (ValueError, RecursionError):
        return b""


def load_plan(data: bytes, folder: Path | None) -> Plan | None:
    """The plan that was stored as `data`; None if it is not one, or if another file in `folder` has changed since."""
    try:
        stored = _stored_plan_adapter().validate_json(data)
        plan = stored.plan
        if any(folder is None or _digest_of(folder / name) != digest for name, digest in plan.files.items()):
            return None
        return _map_components(plan, lambda index: stored.components[index])
    except (ValueError, TypeError, LookupError, TaoError):
        return None


def _digest_of(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


@cache
def _stored_plan_adapter() -> TypeAdapter[_StoredPlan]:
    from pydantic import TypeAdapter  # noqa: PLC0415  # only for large documents

    return TypeAdapter(_StoredPlan)


def _map_components(plan: Plan, convert: Callable[[Any], Any]) -> Plan:
    """The plan with each component in the `$defs` of its schemas converted."""

    def mapped(schema: Schema) -> Schema:
        if "$defs" not in schema:
            return schema
        return {**schema, "$defs": {name: convert(component) for name, component in schema["$defs"].items()}}

    def mapped_tool(tool: PlannedTool) -> PlannedTool:
        operation = tool.operation
        body = operation.body
        return replace(
            tool,
            operation=replace(
                operation,
                parameters=tuple(replace(item, schema=mapped(item.schema)) for item in operation.parameters),
                body=None if body is None else replace(body, schema=mapped(body.schema)),
            ),
            card=replace(tool.card, input_schema=mapped(tool.card.input_schema)),
            whole_schema=None if tool.whole_schema is None else mapped(tool.whole_schema),
        )

    return replace(plan, tools=tuple(mapped_tool(tool) for tool in plan.tools))
