"""Loading the tools of a source: from a cached plan if there is one, else from its document.

Planning a large document takes seconds, so its plan is stored as JSON in the user's cache folder. A stored plan belongs
to the exact document, settings and release that produced it; anything else in the folder is ignored. A cache only saves
time: whatever cannot be read or written there changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import pydantic_core

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.errors import TaoError
from taoloop.tools.openapi import operation
from taoloop.tools.openapi.document import fetch_document
from taoloop.tools.openapi.operation import Plan
from taoloop.tools.openapi.operation_call import ApiClient, make_tool
from taoloop.tools.openapi.settings import OpenapiSource
from taoloop.tools.settings_check import expand_home
from taoloop.tools.toolbox import LoadResult

MIN_CACHED_BYTES = 100_000
"""A smaller document is not cached: parsing it takes no longer than reading the cache."""

_MAX_FILES = 64
_FORMAT = "9"  # changes whenever documents are read differently, or plans are stored differently
_NOT_IN_KEY = frozenset(
    {"document", "auth", "token_file", "token_store", "secrets", "headers", "egress"}
    | {"embedder", "cache", "cache_folder"}
)
_STORED_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (*vars(operation).values(), ErrorCard, ExampleCard)
    if hasattr(kind, "__dataclass_fields__")
}
"""The classes of a plan and of its parts by name."""


def openapi_tools(source: OpenapiSource) -> LoadResult:
    """The operations of an API as tools, and what in its document could not be used.

    Raises:
        ToolSourceError: it is not an OpenAPI document, or cannot be read.
        ConfigError: `auth` wants a login of people, and says too little of it.
    """
    plan = load_or_build_plan(source)
    api = ApiClient(source)
    api.logins.read(tool.operation for tool in plan.tools)
    return LoadResult(tools=tuple(make_tool(planned, api) for planned in plan.tools), problems=plan.problems)


def load_or_build_plan(source: OpenapiSource) -> Plan:
    """The plan of a source, from the cache if it is there.

    Raises:
        ToolSourceError: as for `openapi_tools`.
    """
    document = fetch_document(source)
    is_cached = source.cache and len(document.data) >= MIN_CACHED_BYTES
    cache = PlanCache(source.cache_folder) if is_cached else None
    key = _cache_key(source, document.data, document.uri)
    if cache is not None and (plan := load_plan(cache.get(key), document.folder)) is not None:
        return plan
    from taoloop.tools.openapi.cards import build_plan  # noqa: PLC0415  # a cached plan needs none of it

    plan = build_plan(source, document)
    if cache is not None and not any("://" in name for name in plan.files):  # whether a URL changed is not known
        cache.store(key, dump_plan(plan))
    return plan


class PlanCache:
    """A folder of stored plans by key; only the newest 64 remain. `folder` empty: one in the user's cache folder."""

    def __init__(self, folder: str | Path = "") -> None:
        if folder:
            self.folder = expand_home(folder)
        else:
            import platformdirs  # noqa: PLC0415  # only if the settings name no folder

            self.folder = platformdirs.user_cache_path("taoloop", appauthor=False) / "openapi"

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
            partial = self.folder / f"{uuid4().hex}.part"
            try:
                partial.touch(mode=0o600)
                partial.write_bytes(data)
                partial.replace(self._path(key))
            finally:
                partial.unlink(missing_ok=True)
            files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
            for path in files[_MAX_FILES:]:
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def _cache_key(source: OpenapiSource, data: bytes, uri: str) -> str:
    """A digest of everything that determines the plan of a source, except its other files."""
    settings = {item.name: getattr(source, item.name) for item in fields(source) if item.name not in _NOT_IN_KEY}
    names = [sorted(source.secrets), sorted(source.headers), sorted(source.auth), uri]
    document = source.document if len(source.document) < 1_000 else ""
    text = json.dumps([_FORMAT, version("taoloop"), settings, names, document], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0" + data).hexdigest()[:40]


def dump_plan(plan: Plan) -> bytes:
    """A plan as JSON; a component that many operations use is in it once. Empty: JSON cannot represent it."""
    components: dict[int, tuple[int, Any]] = {}
    stored = _to_stored(plan, components)
    try:
        return pydantic_core.to_json([stored, [component for _, component in components.values()]])
    except (ValueError, RecursionError):
        return b""


def load_plan(data: bytes, folder: Path | None) -> Plan | None:
    """The plan that was stored as `data`; None if it is not one, or if another file in `folder` has changed since."""
    try:
        stored, components = pydantic_core.from_json(data)
        plan = _from_stored(stored, components)
        for name, digest in plan.files.items():
            if folder is None or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
                return None
    except (ValueError, TypeError, LookupError, AttributeError, OSError, TaoError):
        return None
    return plan if isinstance(plan, Plan) else None


def _to_stored(value: Any, components: dict[int, tuple[int, Any]]) -> Any:
    """A part of a plan as plain data: an object with the name of its class and the fields that are not the default.

    `components` collects the components of schemas by identity. A pydantic adapter would take 60 ms for its own schema
    before it reads anything, as long as reading a large plan takes: `benchmarks/openapi_load.py`.
    """
    if is_dataclass(value) and not isinstance(value, type):
        raw_fields, stored = _raw_fields(type(value)), {"class": type(value).__name__}
        for item in fields(value):
            inner = getattr(value, item.name)
            if item.name in raw_fields:
                stored[item.name] = _map_components(inner, lambda part: _index_of(part, components))
            elif inner != item.default:
                stored[item.name] = _to_stored(inner, components)
        return stored
    if isinstance(value, Mapping):
        return {"mapping": {name: _to_stored(inner, components) for name, inner in value.items()}}
    return [_to_stored(item, components) for item in value] if isinstance(value, tuple) else value


def _from_stored(stored: Any, components: list[Any]) -> Any:
    """The part of a plan that `_to_stored` converted."""
    if isinstance(stored, list):
        return tuple(_from_stored(item, components) for item in stored)
    if not isinstance(stored, dict):
        return stored
    if "mapping" in stored:
        return {name: _from_stored(inner, components) for name, inner in stored["mapping"].items()}
    kind = _STORED_CLASSES[stored.pop("class")]
    raw = {
        name: _map_components(stored.pop(name), components.__getitem__) for name in _raw_fields(kind) & stored.keys()
    }
    return kind(**raw, **{name: _from_stored(inner, components) for name, inner in stored.items()})


@cache
def _raw_fields(kind: type[Any]) -> frozenset[str]:
    """The fields of a class with data of any form, such as schemas, which are stored as they are."""
    return frozenset(item.name for item in fields(kind) if "Any" in str(item.type))


def _index_of(component: Any, components: dict[int, tuple[int, Any]]) -> int:
    return components.setdefault(id(component), (len(components), component))[0]


def _map_components(schema: Any, convert: Callable[[Any], Any]) -> Any:
    """A schema with each component in its `$defs` converted."""
    if not isinstance(schema, Mapping) or "$defs" not in schema:
        return schema
    return {**schema, "$defs": {name: convert(component) for name, component in schema["$defs"].items()}}
