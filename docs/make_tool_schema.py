"""Write docs/tool-file.schema.json: the JSON Schema of a tool file, for editors, from the settings classes themselves.

Run: python docs/make_tool_schema.py
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from taoloop.config.settings_reader import Mode, json_schema, required_fields
from taoloop.config.tool_entries import (
    SOURCE_KINDS,
    AgentForm,
    FileForm,
    FunctionForm,
    LookupForm,
    ToolFileFields,
)
from taoloop.tools.builtin.catalog import UNDOING, builtin_tools

TARGET = Path(__file__).with_name("tool-file.schema.json")


class DescribedSchema(GenerateJsonSchema):
    """Schemas of settings classes whose properties are described by the docstrings at the fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # a method of pydantic
        """No titles: they only repeat the names."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of one class."""
        model = schema["cls"]
        definition = super().model_schema(schema)
        docs = field_docs(getattr(sys.modules[model.__module__], model.__name__))
        for name, field in model.model_fields.items():
            definition["properties"][field.alias or name].setdefault("description", docs[name])
        del definition["title"]
        if any(field.alias for field in model.model_fields.values()):  # read leniently
            del definition["additionalProperties"]
        return definition


def field_docs(kind: Any) -> dict[str, str]:
    """The docstrings at the fields of a class and of its bases."""
    docs: dict[str, str] = {}
    for base in kind.__bases__:
        if base.__module__.startswith("taoloop."):
            docs |= field_docs(base)
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    for field, below in pairwise(body.body if isinstance(body, ast.ClassDef) else []):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            docs[field.target.id] = " ".join(ast.literal_eval(below.value).split())
    return docs


def define(definitions: dict[str, Any], kind: Any, mode: Mode = "filled") -> dict[str, Any]:
    """The schema of a settings class, by reference; it and those that it names are added to the definitions."""
    schema = json_schema(kind, mode, schema_generator=DescribedSchema)
    definitions.update(schema.pop("$defs", {}))
    definitions[kind.__name__] = schema
    return {"$ref": f"#/$defs/{kind.__name__}"}


def define_tools(definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list of tools."""
    names = [*(name for name in builtin_tools(None) if name not in UNDOING), "fetch", "mytools:book_table"]
    forms = [
        {"type": "string", "description": "A built-in tool, `module:attribute`, or `fetch`.", "examples": names},
        define(definitions, LookupForm),
        define(definitions, FunctionForm, "written"),
        define(definitions, AgentForm, "written"),
        define(definitions, FileForm),
        *(
            {"type": "object", "properties": {key: _source(key, definitions)}, "required": [key]}
            | {"additionalProperties": False}
            for key in SOURCE_KINDS
        ),
    ]
    definitions["ToolEntry"] = {"anyOf": forms}
    return {"type": "array", "items": {"$ref": "#/$defs/ToolEntry"}, "description": "The tools, in their order."}


def _source(key: str, definitions: dict[str, Any]) -> dict[str, Any]:
    form = SOURCE_KINDS[key]
    arms = [define(definitions, form.settings_class())]
    if form.short:
        arms.append({"type": "string", "description": f"Only its `{form.short}`."})
    if not required_fields(form.settings_class()):
        arms.append({"type": "null"})
    return {"anyOf": arms}


def schema() -> dict[str, Any]:
    """The whole schema."""
    definitions: dict[str, Any] = {}
    define(definitions, ToolFileFields)
    top = definitions.pop("ToolFileFields")
    top["properties"]["tools"] = define_tools(definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tool file of taoloop",
        **top,
        "$defs": dict(sorted(definitions.items())),
    }


def page() -> str:
    """The text of the file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
