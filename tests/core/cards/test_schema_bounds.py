"""Schemas from outside are judged by counting, in bounded steps, before anything expands or compiles them."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop.core.cards import schema_bounds
from taoloop.core.cards.schema_bounds import SchemaBounds, SchemaExcessError

TEXT = {"type": "string"}
TREE = {
    "$defs": {
        "any": {
            "anyOf": [
                {"type": ["string", "number", "null"]},
                {"type": "array", "items": {"$ref": "#/$defs/any"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}},
            ]
        }
    },
    "$ref": "#/$defs/any",
}
"""Any JSON value, as many schemas of clients describe it."""
EXPRESSION = {
    "$defs": {
        "term": {
            "anyOf": [
                {"type": "object", "properties": {"op": {"const": op}, "left": {"$ref": "#/$defs/term"}}}
                for op in ("add", "subtract", "multiply")
            ]
        }
    },
    "$ref": "#/$defs/term",
}


def doubled(levels: int, keyword: str = "anyOf", reference: str = "#/$defs/a{}") -> dict[str, Any]:
    """Each definition refers twice to the next: 2 kB, and 2 to the power of `levels` rules for one value."""
    definitions: dict[str, Any] = {
        f"a{level}": {"$anchor": f"n{level}", keyword: [{"$ref": reference.format(level + 1)}] * 2}
        for level in range(levels)
    }
    definitions[f"a{levels}"] = {"$anchor": f"n{levels}", **TEXT}
    return {"$defs": definitions, "$ref": reference.format(0)}


def crossed(size: int) -> dict[str, Any]:
    """Every definition refers to every definition, itself included."""
    names = [f"a{index}" for index in range(size)]
    return {
        "$defs": {name: {"anyOf": [{"$ref": f"#/$defs/{other}"} for other in names]} for name in names},
        "$ref": "#/$defs/a0",
    }


def unevaluated(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {"a": TEXT}}
    for _ in range(levels):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = TEXT
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "limit", "position"),
    [
        *((doubled(24, keyword), "5,000 rules", "$defs.a13") for keyword in ("anyOf", "oneOf", "allOf")),
        (doubled(24, reference="#n{}"), "5,000 rules", "$defs.a13"),
        (doubled(24, reference="#/%24defs/a{}"), "5,000 rules", "$defs.a13"),
        ({"$id": "https://a.b/c", **doubled(24, reference="https://a.b/c#/$defs/a{}")}, "5,000 rules", "$defs.a13"),
        ({"items": {"$id": "https://a.b/c"}}, "`$id`", "items"),
        (crossed(30), "5,000 rules", "$defs.a"),
        (unevaluated(12), "5,000 rules", "allOf[0]"),
        (doubled(300, "allOf") | {"$ref": "#/$defs/a200"}, "100 references", "$defs.a"),
        (nested(5_000), "200 levels", "items.items"),
        ({"enum": list(range(200_000))}, "100,000 parts", "enum"),
        ({"description": "x" * 4_000_001}, "4,000,000 characters", "description"),
        ({"properties": {str(n): {"pattern": f"^{n}$"} for n in range(600)}}, "500 patterns", "properties."),
        ({"items": {"pattern": "a" * 20_000}}, "pattern has more than 10,000 characters", "items"),
    ],
)
def test_a_schema_that_asks_for_too_much_is_refused_with_limit_and_position(
    schema: dict[str, Any], limit: str, position: str
) -> None:
    with pytest.raises(SchemaExcessError) as caught:
        SchemaBounds(schema)
    assert limit in str(caught.value)
    assert f"`{position}" in str(caught.value)


def test_values_shared_by_reference_count_as_often_as_they_would_be_walked() -> None:
    node: Any = TEXT
    for _ in range(40):  # 2 to the power of 40 parts, as aliases of YAML make them
        node = {"properties": {"a": node, "b": node}}
    with pytest.raises(SchemaExcessError, match="100,000 parts"):
        SchemaBounds(node)


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        EXPRESSION,
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/other"},
        {"oneOf": [{"$ref": "#/$defs/cat"}], "$defs": {"cat": {"allOf": [{"$ref": "#"}, {"type": "object"}]}}},
        {"properties": {"$ref": {"type": "string"}, "anyOf": TEXT}},
        {
            "$defs": {
                f"a{n}": {"properties": {f"p{m}": {"$ref": f"#/$defs/a{m}"} for m in range(40)}} for n in range(40)
            }
        },
        {"type": 3, "anyOf": 5, "properties": None},
    ],
)
def test_recursive_and_odd_schemas_are_within_the_bounds(schema: dict[str, Any]) -> None:
    SchemaBounds(schema)


def chain(levels: int, key: str = "left") -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {key: value, "op": "add"}
    return value


def test_large_values_of_recursive_schemas_are_judged() -> None:
    bounds = SchemaBounds(TREE)
    value = {"rows": [{"id": number, "tags": [["a"], {"b": None}]} for number in range(5_000)]}
    steps, parts = bounds.steps(value)
    assert parts <= steps <= schema_bounds.MAX_STEPS + 8 * parts
    SchemaBounds(EXPRESSION).steps(chain(60))


def test_rules_that_double_with_each_level_of_a_value_are_counted_not_applied() -> None:
    definitions: dict[str, Any] = {
        f"a{level}": {"anyOf": [{"properties": {"left": {"$ref": f"#/$defs/a{level + 1}"}}}] * 2} for level in range(40)
    }
    bounds = SchemaBounds({"$defs": {**definitions, "a40": TEXT}, "$ref": "#/$defs/a0"})
    assert bounds.steps(chain(3))[0] < 1_000
    with pytest.raises(SchemaExcessError, match="rules to the value"):
        bounds.steps(chain(40))
