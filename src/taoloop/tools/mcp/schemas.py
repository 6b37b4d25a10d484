"""A server's schema as JSON Schema 2020-12, for our judge and for the model; the server's own is left as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from taoloop.dialects.prompt.untrusted_frame import defuse_markers

MAX_DESCRIPTION_CHARS = 600
MAX_SCHEMA_CHARS = 60_000
_DEEPEST = 60

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_DATA = frozenset({"enum", "const", "default", "example", "examples", "required", "dependentRequired"})
_GONE = frozenset({"$schema", "$id", "id", "$comment", "title", "$vocabulary", "$recursiveAnchor"})


class SchemaError(ValueError):
    """A schema cannot be used; the text says why."""


def normalised(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object in the words of 2020-12, with bounded and harmless descriptions.

    Raises:
        SchemaError: it is too deep, or is none of an object.
    """
    rewritten_schema = _Rewriting().schema(schema, 0)
    kind = rewritten_schema.get("type") if isinstance(rewritten_schema, dict) else None
    if isinstance(kind, list) and "object" in kind:
        kind = rewritten_schema["type"] = "object"
    if kind is None and isinstance(rewritten_schema, dict):
        kind = rewritten_schema["type"] = "object"
    if kind != "object":
        raise SchemaError("it does not describe an object")
    if not isinstance(rewritten_schema.setdefault("properties", {}), dict):
        raise SchemaError("its `properties` are none")
    return dict(rewritten_schema)


def rewritten(schema: Any) -> Any:
    """Any schema in the words of 2020-12.

    Raises:
        SchemaError: it is too deep.
    """
    return _Rewriting().schema(schema, 0)


class _Rewriting:
    """One walk over a schema: knows which places hold schemas, which hold maps of them, and which hold data."""

    def schema(self, node: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise SchemaError(f"it is more than {_DEEPEST} levels deep")
        if isinstance(node, list):
            return [self.schema(item, depth + 1) for item in node]
        if not isinstance(node, Mapping):
            return node
        out: dict[str, Any] = {}
        for key, value in node.items():
            if (key in _GONE and isinstance(value, str | bool)) or key.startswith("x-"):
                continue
            if key in _MAPS and isinstance(value, Mapping):
                out[key] = {name: self.schema(rule, depth + 1) for name, rule in value.items()}
            elif key in _DATA:
                out[key] = value
            elif key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
                out["$ref"] = value.replace("#/definitions/", "#/$defs/", 1)
            elif key == "description":
                if isinstance(value, str):
                    out[key] = bounded(value, MAX_DESCRIPTION_CHARS)
            else:
                out[key] = self.schema(value, depth + 1)
        for change in _CHANGES:
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


_CHANGES: tuple[Callable[[dict[str, Any]], None], ...] = (_definitions, _tuples, _dependencies, _bounds, _nulls)


def bounded(text: str, at_most: int) -> str:
    """A text of a server for a prompt: harmless to see, without what could pass for the frame, and cut."""
    text = defuse_markers(text.strip())
    return text if len(text) <= at_most else f"{text[:at_most].rstrip()} …"
