"""Arguments by name and type of the parameters: filled where there is one best way, and else not at all."""

from __future__ import annotations

from typing import Any

import pytest
from tests.models.offline.toolset import card

from taoloop.core.cards.tool_card import ToolCard
from taoloop.models.offline.arguments import EARLIER, fill, read_parameters
from taoloop.models.offline.task_values import tokenize


def _card(**properties: Any) -> ToolCard:
    """A card with these arguments; `?` at the end of a type makes one optional."""
    required = [name for name, kind in properties.items() if not (isinstance(kind, str) and kind.endswith("?"))]
    schemas = {name: {"type": kind.rstrip("?")} if isinstance(kind, str) else kind for name, kind in properties.items()}
    schema = {"type": "object", "properties": schemas, "required": required, "$defs": {"n": {"type": "integer"}}}
    return ToolCard(name="t", purpose="p", input_schema=schema)


PAIR = {"from_account": "string", "to_account": "string", "amount": "number"}
_TRANSFER = {"from_account": "A-1", "to_account": "B-2", "amount": 50}


@pytest.mark.parametrize(
    ("text", "properties", "args"),
    [
        ("'tea'", {"item": "string"}, {"item": "tea"}),
        ("Ann", {"name": "string"}, {}),  # the first word of a sentence may be any word
        ("for Ann", {"name": "string"}, {"name": "Ann"}),
        ("5 of 'tea'", {"name": "string", "count": "integer"}, {"name": "tea", "count": 5}),
        ("2.5", {"amount": "number"}, {"amount": 2.5}),
        ("order 1001", {"order_id": "string"}, {"order_id": "1001"}),
        ("'x' to a.txt", {"path": "string", "content": "string"}, {"path": "a.txt", "content": "x"}),
        ("in Tokyo", {"zone": "string"}, {"zone": "Asia/Tokyo"}),
        ("in Tokyo", {"city": "string"}, {"city": "Tokyo"}),
        ("in Asia/Tokyo", {"tz": {"anyOf": [{"type": "null"}, {"type": "string"}]}}, {"tz": "Asia/Tokyo"}),
        ("in Fahrenheit", {"unit": {"enum": ["celsius", "fahrenheit"]}}, {"unit": "fahrenheit"}),
        ("50 from A-1 to B-2", PAIR, _TRANSFER),
        ("50 to B-2 from A-1", PAIR, _TRANSFER),
        ("100 USD to EUR", PAIR, {"from_account": "USD", "to_account": "EUR", "amount": 100}),
        ("2 and 3", {"a": "integer", "b": "integer"}, {"a": 2, "b": 3}),
        ("7", {"n": {"$ref": "#/$defs/n"}}, {"n": 7}),
        ("3 days", {"city": "string?", "days": "integer?"}, {"days": 3}),
        ("with subject 'a' with body 'b'", {"subject": "string", "body": "string"}, {"subject": "a", "body": "b"}),
        ("the words in it", {"text": "string"}, {"text": EARLIER}),
        ("", {}, {}),
    ],
)
def test_values_go_to_the_parameters_that_fit(text: str, properties: dict[str, Any], args: dict[str, Any]) -> None:
    filling = fill(tokenize(text), read_parameters(_card(**properties)))
    assert filling is not None
    assert filling.args == args


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("'a' and 'b'", {"subject": "string", "body": "string"}),
        ("50 A-1 B-2", PAIR),
        ("'a' and 'b'", {"text": "string"}),
        ("2.5", {"count": "integer"}),
        ("3", {"city": "string", "days": "integer?"}),
        ("in Smallville", {"zone": "string"}),
        ("'a'", {"expression": "string"}),
        ("'a'", {"artifact": "string"}),
        ("2026-03-05", {"name": "string"}),
        ("3, 4", {"numbers": {"type": "array"}}),
        (" ".join(f"'{n}'" for n in range(9)), {f"p{n}": "string" for n in range(9)}),
    ],
)
def test_nothing_is_filled_on_a_guess(text: str, properties: dict[str, Any]) -> None:
    filling = fill(tokenize(text), read_parameters(_card(**properties)))
    assert filling is None or filling.missing


def test_what_is_missing_is_named() -> None:
    filling = fill(tokenize("order 5"), read_parameters(_card(name="string", count="integer")))
    assert filling is not None
    assert filling.missing == ("name",)


def test_the_arguments_have_the_order_of_the_card() -> None:
    filling = fill(tokenize("'x' to a.txt"), read_parameters(card("write_file")))
    assert filling is not None
    assert list(filling.args) == ["path", "content"]


@pytest.mark.parametrize(
    "definition",
    [
        {"$ref": "#/$defs/node"},
        {"anyOf": [{"$ref": "#/$defs/node"}] * 20},
        {"$ref": "http://elsewhere.example/x"},
        {"$ref": 5, "type": [1, None]},
        True,
    ],
)
def test_a_schema_that_leads_nowhere_ends(definition: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": definition}}
    (parameter,) = read_parameters(ToolCard(name="x", purpose="p", input_schema=schema))
    assert parameter.types
    assert fill(tokenize("'a'"), (parameter,)) is not None
