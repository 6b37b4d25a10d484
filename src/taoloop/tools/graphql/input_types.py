"""JSON Schemas of GraphQL's input types: what a variable may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    get_named_type,
    is_required_input_field,
    value_from_ast_untyped,
)

from taoloop.tools.openapi.document import plain_text, shorten

_MAX_TEXT = 300
_SCALARS: Mapping[str, Mapping[str, Any]] = {
    "Int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "Float": {"type": "number"},
    "String": {"type": "string"},
    "Boolean": {"type": "boolean"},
    "ID": {"type": ["string", "integer"]},
    **{name: {"type": ["integer", "string"]} for name in ("Long", "BigInt", "Int64", "UInt64")},
    **{name: {"type": ["number", "string"]} for name in ("Decimal", "BigDecimal", "Money")},
    **{name: {"type": "object"} for name in ("JSONObject", "Map")},
}
"""The rules of scalars: those of the specification, and custom ones of the same meaning everywhere."""

_TEXT_SCALARS = frozenset(
    (
        "Date",
        "DateTime",
        "Time",
        "Timestamp",
        "ISO8601DateTime",
        "ISO8601Date",
        "LocalDate",
        "LocalDateTime",
        "Duration",
    )
) | frozenset(("URI", "URL", "UUID", "Email", "EmailAddress", "HTML", "Markdown", "GitObjectID", "Base64String"))
UPLOAD = "Upload"
"""The scalar of files, which are not sent as JSON."""


class InputTypes:
    """Makes schemas of input types; those of input objects are components (`$defs`), so that they may be circular."""

    def __init__(self) -> None:
        self._components: dict[str, Any] = {}

    def schema_of(self, variables: Mapping[str, GraphQLArgument]) -> dict[str, Any]:
        """The schema of an object with these variables."""
        properties, required = {}, []
        needed: set[str] = set()
        for name, argument in variables.items():
            properties[name] = self._rule_with_text(argument, needed)
            if isinstance(argument.type, GraphQLNonNull) and default_of(argument) is None:
                required.append(name)
        schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
        schema["additionalProperties"] = False
        if needed:
            schema["$defs"] = {name: self._components[name] for name in sorted(needed)}
        return schema

    def _rule_with_text(self, item: GraphQLArgument | GraphQLInputField, needed: set[str]) -> dict[str, Any]:
        rule, inner_type = self.rule(item.type, needed), get_named_type(item.type)
        text = shorten(plain_text(item.description or ""), _MAX_TEXT)
        if (default := default_of(item)) is not None:
            rule["default"] = default
        if not text and not isinstance(inner_type, GraphQLInputObjectType):
            text = shorten(plain_text(inner_type.description or ""), _MAX_TEXT) if _is_custom(inner_type) else ""
        if _is_custom(inner_type) and inner_type.name not in text:
            text = f"{text} ({inner_type.name})".strip()
        return {**rule, "description": text} if text else rule

    def rule(self, kind: GraphQLInputType, needed: set[str]) -> dict[str, Any]:
        """The schema of a type; the components that it refers to are added to `needed`."""
        if isinstance(kind, GraphQLNonNull):
            return self._strict_rule(kind.of_type, needed)
        rule = self._strict_rule(kind, needed)
        if "$ref" in rule:
            return {"anyOf": [rule, {"type": "null"}]}
        if "enum" in rule:
            return {**rule, "enum": [*rule["enum"], None], "type": ["string", "null"]}
        if "type" not in rule:
            return rule
        types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        return {**rule, "type": [*types, "null"]}

    def _strict_rule(self, kind: Any, needed: set[str]) -> dict[str, Any]:
        if isinstance(kind, GraphQLList):
            return {"type": "array", "items": self.rule(kind.of_type, needed)}
        if isinstance(kind, GraphQLEnumType):
            return {"type": "string", "enum": list(kind.values)}
        if isinstance(kind, GraphQLInputObjectType):
            self._add_component(kind, needed)
            return {"$ref": f"#/$defs/{kind.name}"}
        if kind.name in _TEXT_SCALARS:
            return {"type": "string"}
        return dict(_SCALARS.get(kind.name, {}))  # any other scalar takes whatever its server takes

    def _add_component(self, kind: GraphQLInputObjectType, needed: set[str]) -> None:
        """The schema of an input object among the components, with all that it refers to in `needed`."""
        if kind.name in needed:
            return
        needed.add(kind.name)
        properties = {name: self._rule_with_text(item, needed) for name, item in kind.fields.items()}
        if kind.name in self._components:
            return
        required = [name for name, item in kind.fields.items() if is_required_input_field(item)]
        rule: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            rule["required"] = required
        if kind.is_one_of:
            rule |= {"minProperties": 1, "maxProperties": 1}
        if text := shorten(plain_text(kind.description or ""), _MAX_TEXT):
            rule["description"] = text
        self._components[kind.name] = rule


def default_of(item: GraphQLArgument | GraphQLInputField) -> Any:
    """The default of an argument as JSON; None: it has none, or null."""
    default = item.default
    if default is None:
        return None
    return value_from_ast_untyped(default.literal) if default.literal is not None else default.value


def takes_upload(kind: GraphQLInputType) -> bool:
    """Whether a value of this type is a file, or must have one in it."""
    inner_type, seen = get_named_type(kind), set[str]()
    waiting: list[GraphQLNamedType] = [inner_type]
    while waiting:
        inner_type = waiting.pop()
        if inner_type.name == UPLOAD:
            return True
        if isinstance(inner_type, GraphQLInputObjectType) and inner_type.name not in seen:
            seen.add(inner_type.name)
            required = (item for item in inner_type.fields.values() if is_required_input_field(item))
            waiting += [get_named_type(item.type) for item in required]
    return False


def _is_custom(inner_type: GraphQLNamedType) -> bool:
    """Whether the name of a type says more than its rule: a custom scalar."""
    is_scalar = not isinstance(inner_type, GraphQLInputObjectType | GraphQLEnumType)
    return is_scalar and inner_type.name not in ("Int", "Float", "String", "Boolean", "ID")
