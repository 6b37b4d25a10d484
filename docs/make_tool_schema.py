"""Write docs/tool-file.schema.json: the JSON Schema of a tool file, for editors, from the settings classes themselves.

Run: python docs/make_tool_schema.py
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import textwrap
import types
import typing
from itertools import pairwise
from pathlib import Path
from typing import Any

from taoloop.config.settings_loader import fields_of, is_plugin_type
from taoloop.config.tool_entries import AGENT_FORM, SOURCE_KINDS
from taoloop.core.cards.tool_card import ToolCard
from taoloop.tools.builtin.catalog import UNDOING, builtin_tools
from taoloop.tools.egress.rules import EgressRules

TARGET = Path(__file__).with_name("tool-file.schema.json")

REFERENCE = {"type": "string", "pattern": r"\$\{"}
"""A value of the environment, which may stand for a number or a switch too."""

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    Path: {"type": "string"},
    bool: {"anyOf": [{"type": "boolean"}, REFERENCE]},
    int: {"anyOf": [{"type": "integer"}, REFERENCE]},
    float: {"anyOf": [{"type": "number"}, REFERENCE]},
    type(None): {"type": "null"},
}
_ENTRY = re.compile(r"(?:^|(?<=[.;]\s))(?P<names>(?:`\w+`,? ?(?:and )?)+):\s", re.MULTILINE)


def schema() -> dict[str, Any]:
    """The whole schema."""
    definitions: dict[str, Any] = {}
    sources = {key: _source(key, definitions) for key in SOURCE_KINDS}
    card = {"type": "object", "properties": {field.name: {} for field in dataclasses.fields(ToolCard)}}
    agent = {name: {"type": "number" if name == "timeout_s" else "string"} for name in AGENT_FORM}
    forms = [
        {"type": "string", "description": "A built-in tool, `module:attribute`, or `fetch`.", "examples": _names()},
        _form(lookup=_object({"table": {"type": "string"}}, "table")),
        _form("function", function={"type": "string"}, card=card),
        _form("agent", "purpose", **agent),
        _form(file={"type": "string", "description": "Another tool file."}),
        *(_form(**{key: source}) for key, source in sources.items()),
    ]
    place = {"type": "string", "description": "For the built-in tools that need it; beside this file."}
    top = {
        "tools": {"type": "array", "items": {"anyOf": forms}, "description": "The tools, in their order."},
        "egress": _type(EgressRules, definitions) | {"description": "Where calls may go, for everything here."},
        "workspace": place,
        "memory": place,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tool file of taoloop",
        **_object(top, "tools"),
        "$defs": dict(sorted(definitions.items())),
    }


def _names() -> list[str]:
    return [*(name for name in builtin_tools(None) if name not in UNDOING), "fetch", "mytools:book_table"]


def _form(*required: str, **properties: Any) -> dict[str, Any]:
    return _object(properties, *(required or properties))


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _source(key: str, definitions: dict[str, Any]) -> dict[str, Any]:
    form = SOURCE_KINDS[key]
    made = _type(form.settings_class(), definitions)
    arms = [made, *([{"type": "string", "description": f"Only its `{form.short}`."}] if form.short else [])]
    needs = definitions[form.settings]["required"]
    return {"anyOf": arms if needs else [*arms, {"type": "null"}]} if len(arms) > 1 or not needs else made


def _type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if is_plugin_type(hint):
        return {"type": "string", "pattern": r"^[^:]+:[^:]+$|\$\{"}
    if origin in (typing.Union, types.UnionType):
        arms: list[dict[str, Any]] = []
        for arm in (_type(inner, definitions) for inner in args):
            arms += [one for one in arm.get("anyOf", [arm]) if one not in arms]
        return {"anyOf": arms} if len(arms) > 1 else arms[0]
    if origin is typing.Literal:
        return {"enum": list(args)}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _class(hint, definitions)
    if isinstance(origin, type) and issubclass(origin, typing.Mapping):  # type: ignore[arg-type]  # a Protocol
        return {"type": "object", "additionalProperties": _type(args[1], definitions)}
    if origin is not None:
        return {"type": "array", "items": _type(args[0], definitions)}
    return {}


def _class(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # it may be named inside itself
        told, hints = descriptions(kind), fields_of(kind)
        properties = {}
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]  # it is one
            if field.name not in hints:
                continue
            properties[field.name] = _type(hints[field.name], definitions)
            if told.get(field.name):
                properties[field.name]["description"] = told[field.name]
            if isinstance(field.default, str | int | float | bool) and field.default != "":
                properties[field.name]["default"] = field.default
        required = [
            field.name
            for field in dataclasses.fields(kind)  # type: ignore[arg-type]  # it is one
            if field.name in hints
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ]
        definitions[kind.__name__] = _object(properties, *required)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def descriptions(kind: type) -> dict[str, str]:
    """What the source says of each field: a docstring below it, or an entry in the docstring of the class."""
    text = inspect.getdoc(kind) or ""
    found: dict[str, str] = {}
    marks = list(_ENTRY.finditer(text))
    for number, mark in enumerate(marks):
        end = marks[number + 1].start() if number + 1 < len(marks) else len(text)
        said = " ".join(text[mark.end() : end].split("\n\n")[0].split())
        found |= {name: said for name in re.findall(r"`(\w+)`", said) if name not in found}  # told beside another
        found |= dict.fromkeys(re.findall(r"`(\w+)`", mark["names"]), said)
    if "Attributes:\n" in text:
        listed = textwrap.dedent(text.split("Attributes:\n")[1].split("\n\n")[0])
        for entry in re.split(r"\n(?=\w+: )", listed):
            name, _, said = entry.partition(": ")
            found[name] = " ".join(said.split())
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    inside = body.body if isinstance(body, ast.ClassDef) else []
    for field, below in pairwise(inside):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            value = below.value.value if isinstance(below.value, ast.Constant) else None
            if isinstance(value, str):
                found[field.target.id] = " ".join(value.split())
    return found


def page() -> str:
    """The text of the file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
