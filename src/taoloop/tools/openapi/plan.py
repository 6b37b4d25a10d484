"""What a source gave, as JSON for the cache, and back."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
from taoloop.tools.load_result import LoadProblem
from taoloop.tools.openapi.document.operation import Body, Encoding, Operation, Parameter, Reply, Scheme
from taoloop.tools.openapi.settings import OpenapiSource

_MOST_FILES = 64


class PlanCache:
    """A folder with values as JSON. What cannot be read or written there is as if it were not: nothing fails."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = cache_folder() / "openapi" if folder is None else folder

    def get(self, key: str) -> Any:
        """What was kept under this key, None if nothing was."""
        try:
            return json.loads(self._path(key).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def put(self, key: str, values: Any) -> None:
        """Keep values under a key."""
        with suppress(OSError, ValueError, TypeError, RecursionError):  # a cache only saves time
            written = json.dumps(values, separators=(",", ":")).encode()
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            part = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(written)
                part.replace(self._path(key))
            except OSError:
                part.unlink()
                raise
            self._prune()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _prune(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[_MOST_FILES:]:
            path.unlink(missing_ok=True)


def cache_folder() -> Path:
    """The folder of taoloop in the user's cache, as the system has it."""
    import platformdirs  # noqa: PLC0415  # only where nobody names a folder

    return platformdirs.user_cache_path("taoloop", appauthor=False)


_FORM = "3"  # of what is kept; another one for every change of how documents are read
_SCHEMAS = frozenset({"schema", "input_schema"})
_NOT_IN_KEY = frozenset({"document", "auth", "secrets", "headers", "egress", "cache", "cache_folder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTool:
    """One operation with its card; `whole` is the schema that judges where the card shows a part of it.

    `renamed` gives for names inside the arguments those of the document, where they are others.
    """

    operation: Operation
    card: ToolCard
    whole: Mapping[str, Any] | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The tools that a document gives. `files` are the other files that were read for it, with their digests."""

    tools: tuple[PlannedTool, ...]
    problems: tuple[LoadProblem, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def key_of(source: OpenapiSource, data: bytes, uri: str) -> str:
    """A name for everything that the plan of a source follows from, but its other files."""
    told = {one.name: getattr(source, one.name) for one in fields(source) if one.name not in _NOT_IN_KEY}
    named = [
        sorted(source.secrets),
        sorted(source.headers),
        sorted(source.auth),
        uri,
        source.document if len(source.document) < 1_000 else "",
    ]
    text = json.dumps([_FORM, version("taoloop"), told, named], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") + b"\0" + data).hexdigest()[:40]


def dump_plan(plan: Plan) -> dict[str, Any]:
    """A plan as JSON; a component that many operations use stands there once."""
    table = _Table()
    tools = [
        {
            "operation": table.of(one.operation),
            "card": table.of(one.card),
            "whole": table.schema(one.whole),
            "renamed": dict(one.renamed),
        }
        for one in plan.tools
    ]
    problems = [[one.place, one.message, one.hint] for one in plan.problems]
    source = plan.problems[0].source if plan.problems else ""
    return {
        "tools": tools,
        "components": table.components,
        "problems": problems,
        "source": source,
        "files": dict(plan.files),
    }


def load_plan(kept: Any, folder: Path | None) -> Plan | None:
    """The plan again; None where it is not one, or another file has changed since."""
    try:
        if any(folder is None or _digest(folder / name) != digest for name, digest in kept["files"].items()):
            return None
        components = kept["components"]
        return Plan(
            tools=tuple(_tool(one, components) for one in kept["tools"]),
            problems=tuple(
                LoadProblem(source=kept["source"], place=place, message=message, hint=hint)
                for place, message, hint in kept["problems"]
            ),
            files=kept["files"],
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None


def digest_of(data: bytes) -> str:
    """A name for the bytes of a file."""
    return hashlib.sha256(data).hexdigest()


def _digest(path: Path) -> str:
    try:
        return digest_of(path.read_bytes())
    except OSError:
        return ""


class _Table:
    """Values as JSON, with each component of schemas once."""

    def __init__(self) -> None:
        self.components: list[Any] = []
        self._places: dict[int, int] = {}

    def of(self, value: Any) -> Any:
        if isinstance(
            value, Operation | Parameter | Body | Encoding | Scheme | Reply | ToolCard | ErrorCard | ExampleCard
        ):
            return {
                one.name: self.schema(inner) if one.name in _SCHEMAS else self.of(inner)
                for one in fields(value)
                if (inner := getattr(value, one.name)) not in (None, "", (), {}, False) or _is_needed(one)
            }
        if isinstance(value, Mapping):
            if any(isinstance(inner, Scheme | Encoding) for inner in value.values()):
                return {name: self.of(inner) for name, inner in value.items()}
            return value
        if isinstance(value, tuple | list):
            return [self.of(item) for item in value]
        return value

    def schema(self, value: Any) -> Any:
        """A schema; what it refers to stands in the table."""
        if not isinstance(value, Mapping) or "$defs" not in value:
            return value
        rest = {key: inner for key, inner in value.items() if key != "$defs"}
        return {**rest, "$defs": {name: self._place(one) for name, one in value["$defs"].items()}}

    def _place(self, component: Any) -> int:
        place = self._places.get(id(component))
        if place is None:
            place = self._places[id(component)] = len(self.components)
            self.components.append(component)
        return place


def _is_needed(one: Field[Any]) -> bool:
    """Whether a field has no value of its own, so that it must be there even where it is empty."""
    return one.default is MISSING and one.default_factory is MISSING


def _schema(kept: Any, components: list[Any]) -> Any:
    if isinstance(kept, dict) and "$defs" in kept:
        kept["$defs"] = {name: components[place] for name, place in kept["$defs"].items()}
    return kept


def _tool(kept: Any, components: list[Any]) -> PlannedTool:
    card = kept["card"]
    card["input_schema"] = _schema(card["input_schema"], components)
    for name, shape in (("errors", ErrorCard), ("examples", ExampleCard)):
        card[name] = tuple(shape(**one) for one in card.get(name, ()))
    card.setdefault("egress", False if card["tier"] == "read" else None)
    card.setdefault("listed", False)
    return PlannedTool(
        operation=_operation(kept["operation"], components),
        card=ToolCard(**card),
        whole=_schema(kept["whole"], components),
        renamed=kept["renamed"],
    )


def _operation(kept: Any, components: list[Any]) -> Operation:
    for name in ("servers", "tags"):
        kept[name] = tuple(kept.get(name, ()))
    kept["parameters"] = tuple(
        Parameter(**{**one, "schema": _schema(one.get("schema", {}), components)}) for one in kept.get("parameters", ())
    )
    if (body := kept.get("body")) is not None:
        encodings = {name: Encoding(**{"explode": False, **one}) for name, one in body.get("encodings", {}).items()}
        schema = _schema(body.get("schema", {}), components)
        kept["body"] = Body(**{**body, "schema": schema, "encodings": encodings})
    kept["replies"] = tuple(Reply(**one) for one in kept.get("replies", ()))
    kept["security"] = tuple({name: tuple(scopes) for name, scopes in one.items()} for one in kept.get("security", ()))
    kept["schemes"] = {
        name: Scheme(**{**one, "scopes": tuple(one.get("scopes", ()))}) for name, one in kept.get("schemes", {}).items()
    }
    return Operation(**{"operation_id": "", **kept})
