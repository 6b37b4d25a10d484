"""Cards of a server's tools: our names, our tiers, and what the server says of itself only where that is stricter."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

from taoloop.core.cards.tool_card import TIERS, ErrorCard, Tier, ToolCard
from taoloop.dialects.prompt import defuse_markers
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.texts import CardTexts

MAX_DESCRIPTION_CHARS = 600
MAX_SCHEMA_CHARS = 60_000
_DEEPEST = 60

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_DATA = frozenset({"enum", "const", "default", "example", "examples", "required", "dependentRequired"})
_GONE = frozenset({"$schema", "$id", "id", "$comment", "title", "$vocabulary", "$recursiveAnchor"})


_TOLD = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


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
        return {name: self.raw[name] for name in _TOLD if self.raw.get(name) is not None}

    @property
    def needs_task(self) -> bool:
        """Whether it can only be called as a task, which takes a client that asks for its result later."""
        execution = self.raw.get("execution")
        return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"

    @property
    def size_bytes(self) -> int:
        """How long the summary is, as JSON."""
        return len(self._canonical)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the summary, in hexadecimal digits."""
        return hashlib.sha256(self._canonical).hexdigest()

    @cached_property
    def _canonical(self) -> bytes:
        return json.dumps(self.summary, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


class SchemaError(ValueError):
    """A schema cannot be used; the text says why."""


def normalised(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object in the words of 2020-12, with bounded and harmless descriptions.

    Raises:
        SchemaError: it is too deep, or is none of an object.
    """
    rewritten_schema: dict[str, Any] = rewritten(schema)
    kind = rewritten_schema.get("type")
    if kind not in (None, "object") and not (isinstance(kind, list) and "object" in kind):
        raise SchemaError("it does not describe an object")
    rewritten_schema["type"] = "object"
    if not isinstance(rewritten_schema.setdefault("properties", {}), dict):
        raise SchemaError("its `properties` are none")
    return rewritten_schema


def rewritten(node: Any, depth: int = 0) -> Any:
    """A schema in the words of 2020-12; knows which places hold schemas, which hold maps of them, and which hold data.

    Raises:
        SchemaError: it is too deep.
    """
    if depth > _DEEPEST:
        raise SchemaError(f"it is more than {_DEEPEST} levels deep")
    if isinstance(node, list):
        return [rewritten(item, depth + 1) for item in node]
    if not isinstance(node, Mapping):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if (key in _GONE and isinstance(value, str | bool)) or key.startswith("x-"):
            continue
        if key in _MAPS and isinstance(value, Mapping):
            out[key] = {name: rewritten(rule, depth + 1) for name, rule in value.items()}
        elif key in _DATA:
            out[key] = value
        elif key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
            out["$ref"] = value.replace("#/definitions/", "#/$defs/", 1)
        elif key != "description":
            out[key] = rewritten(value, depth + 1)
        elif isinstance(value, str):
            out[key] = bounded(value, MAX_DESCRIPTION_CHARS)
    for change in (_definitions, _tuples, _dependencies, _bounds, _nulls):
        change(out)
    return out


def _definitions(out: dict[str, Any]) -> None:
    if isinstance(old := out.pop("definitions", None), dict):
        newer = out.get("$defs")
        out["$defs"] = {**old, **(newer if isinstance(newer, dict) else {})}


def _tuples(out: dict[str, Any]) -> None:
    if isinstance(out.get("items"), list):
        out["prefixItems"] = out.pop("items")
        if "additionalItems" in out:
            out["items"] = out.pop("additionalItems")
    out.pop("additionalItems", None)


def _dependencies(out: dict[str, Any]) -> None:
    old = out.pop("dependencies", None)
    for name, rule in old.items() if isinstance(old, dict) else ():
        keyword = "dependentRequired" if isinstance(rule, list) else "dependentSchemas"
        if isinstance(out.setdefault(keyword, {}), dict):
            out[keyword][name] = rule


def _bounds(out: dict[str, Any]) -> None:
    """`exclusiveMinimum: true`, as Draft 4 has it."""
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(out.get(exclusive), bool) and out.pop(exclusive) and inclusive in out:
            out[exclusive] = out.pop(inclusive)


def _nulls(out: dict[str, Any]) -> None:
    """`nullable: true`, as OpenAPI has it; `required: true` of one property, which means nothing."""
    if out.pop("nullable", None) is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    if isinstance(out.get("required"), list):
        out["required"] = list(dict.fromkeys(name for name in out["required"] if isinstance(name, str)))
    elif "required" in out:
        del out["required"]


def bounded(text: str, at_most: int) -> str:
    """A text of a server for a prompt: harmless to see, without what could pass for the frame, and cut."""
    text = defuse_markers(text.strip())
    return text if len(text) <= at_most else f"{text[:at_most].rstrip()} …"


_MAX_NAME = 64
_MAX_PURPOSE_CHARS = 2_000
_REFUSED = re.compile(r"[^A-Za-z0-9_.-]")

_ERROR_CODES = ("tool_failed", "server_away", "tool_changed")


def error_cards(text: CardTexts, *codes: str) -> tuple[ErrorCard, ...]:
    """The errors of a card with these codes."""
    return tuple(ErrorCard(code=code, retryable=code == "server_away", advice=text(f"{code}_advice")) for code in codes)


def model_tool_names(server: str, tools: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Names for the model: `server.tool`, with what providers refuse replaced, at most 64 signs, all different.

    A name that had to be changed and is not alone ends with a digest of the server's own. The order of `tools` has no
    say: a server cannot give the name of one tool to another by listing them anew.
    """
    plain = {tool: f"{server}.{_REFUSED.sub('_', tool)}" for tool in tools}
    often = Counter(plain.values())
    names, gone = {}, {*reserved, *often}
    for tool, name in plain.items():
        is_own = often[name] == 1 or name == f"{server}.{tool}"
        if is_own and len(name) <= _MAX_NAME and name not in reserved:
            names[tool] = name
            continue
        ends = (_ended(name, tool, turn) for turn in count())  # a server may have taken the first ones itself
        names[tool] = next(suffix for suffix in ends if suffix not in gone)
        gone.add(names[tool])
    return names


def _ended(name: str, tool: str, turn: int) -> str:
    digest = hashlib.sha256(f"{tool}{turn or ''}".encode()).hexdigest()[:8]
    return f"{name[: _MAX_NAME - 9]}_{digest}"


def card_of(server: McpServer, definition: Definition, name: str, text: CardTexts) -> ToolCard:
    """The card of one tool.

    Raises:
        SchemaError: its input schema cannot be used.
    """
    raw = definition.raw
    input_schema = normalised(raw.get("inputSchema") or {"type": "object"})
    if len(json.dumps(input_schema)) > MAX_SCHEMA_CHARS:
        raise SchemaError(f"it is longer than {MAX_SCHEMA_CHARS:,} characters")
    hints = raw.get("annotations") or {}
    tier = stricter_tier(server.tier_of(definition.name), hints)
    egress = server.sends_out_of(definition.name)
    if egress is None and tier == "read" and hints.get("openWorldHint") is True:
        egress = True
    purpose = raw.get("description") or raw.get("title") or hints.get("title") or definition.name
    return ToolCard(
        name=name,
        purpose=bounded(str(purpose), _MAX_PURPOSE_CHARS),
        input_schema=input_schema,
        output_schema=output_schema_of(definition),
        errors=error_cards(text, *_ERROR_CODES),
        tier=tier,
        egress=egress,
        timeout_s=server.longest_s,
        described_by="third_party",
    )


def stricter_tier(declared: Tier | None, hints: Mapping[str, Any]) -> Tier | None:
    """The tier of the configuration, or what a server's hints say where that is worse; None where nobody said any."""
    if hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True:
        hinted: Tier = "destructive"
    elif hints.get("readOnlyHint") is False:
        hinted = "write"
    else:
        return declared
    if declared is None:
        return "destructive" if hinted == "destructive" else None
    return max(declared, hinted, key=TIERS.index)


def output_schema_of(definition: Definition) -> dict[str, Any] | None:
    """What the tool says of its structured results, if that can be used."""
    schema = definition.raw.get("outputSchema")
    if not isinstance(schema, dict) or len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
        return None
    with suppress(SchemaError):
        return dict(rewritten(schema))
    return None
