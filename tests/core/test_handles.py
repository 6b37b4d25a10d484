"""Handles: their grammar, and that filling in is exact and done once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from taoloop.core.handles import (
    MAX_FILLED_CHARS,
    HandleError,
    contains_handle,
    inline_text,
    mask_handles,
    numbers_in,
    schema_signature,
    substitute_handles,
)

VALUES: dict[int, Any] = {
    1: {
        "items": [{"email": "a@x", "n": 1}, {"email": "b@x", "n": 2.5}],
        "my key": True,
        "名": "李",
        "first-name": "Bo",
    },
    2: "plain $obs1",
    3: '{"inner": [1, null]}',
    4: "x" * 600_000,
}


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("$obs1.items[0].email", "a@x"),
        (" ${obs1.items[1].n} ", 2.5),
        ("$obs1.items[*].email", ["a@x", "b@x"]),
        ('$obs1["my key"]', True),
        ("$obs1.名", "李"),
        ("$obs1.first-name", "Bo"),
        ("$obs3.inner[0]", 1),
        ("$obs3", '{"inner": [1, null]}'),
        ("Dear ${obs1.first-name}, …", "Dear Bo, …"),
        ("To $obs1.items[0].email.", "To a@x."),
        ("给$obs1.items[0].email的信：${obs1.名}", "给a@x的信：李"),
        ("all: ${obs1.items[*].email}; $obs1.items[0]", 'all: a@x, b@x; {"email": "a@x", "n": 1}'),
        ("$obs2", "plain $obs1"),
        ("($obs2)", "(plain $obs1)"),
        ('${obs1["my key"]}?', "true?"),
        ("costs $5 and $observe", "costs $5 and $observe"),
        ({"a": ["$obs1.items[0].n", 3, None]}, {"a": [1, 3, None]}),
        ({"$obs1": "x"}, {"$obs1": "x"}),
    ],
)
def test_a_handle_is_filled_in(written: Any, filled: Any) -> None:
    assert substitute_handles(written, VALUES.__getitem__) == filled


@pytest.mark.parametrize(
    "written",
    [
        "$obs9",
        "$obs1.none",
        "see $obs1.items[7].email",
        "$obs1.items.email",
        "$obs2.name",
        "$obs1[0]",
        "a $obs1[x] b",
        "a ${obs1.} b",
        "a ${obs1 b",
        "a $obs1abc",
        "a $obs1.items[*][0] b",
        "$obs12345678",
        "x $obs1.姓名 y",
    ],
)
def test_what_names_nothing_is_told_by_its_handle_alone(written: str) -> None:
    with pytest.raises(HandleError, match="unknown_handle") as caught:
        substitute_handles(written, VALUES.__getitem__)
    assert caught.value.handle.strip() in written
    assert contains_handle(written)


def test_what_is_filled_in_is_bounded() -> None:
    assert len(substitute_handles("$obs4", VALUES.__getitem__)) < MAX_FILLED_CHARS
    with pytest.raises(HandleError, match="too_long"):
        substitute_handles({"a": "$obs4", "b": "and $obs4"}, VALUES.__getitem__)


PARTS = st.sampled_from(
    ["$obs1", "$obs11", "$obs2", "${obs1", "${obs11}", "}", ".a", ".b", "[0]", "[*]", " ", "名", "$", "1"]
)
WRITTEN = st.lists(PARTS, max_size=6).map("".join)


@given(WRITTEN, WRITTEN)
@example("see ${obs11} and $obs1.a", "$obs2")
def test_filling_ends_in_a_value_or_a_bad_handle_and_happens_once(written: str, value: str) -> None:
    mark = "\ue000"
    try:
        filled = substitute_handles(written, {1: {"a": value}, 2: "two", 11: value}.__getitem__)
    except HandleError:
        return
    assert numbers_in(written) <= {1, 2, 11}
    marked = substitute_handles(written, {1: {"a": mark}, 2: "two", 11: mark}.__getitem__)
    assert filled == ({"a": value} if isinstance(marked, dict) else marked.replace(mark, value))
    if not contains_handle(written):
        assert filled == written


@given(st.text(max_size=30))
def test_a_text_without_a_handle_stays(text: str) -> None:
    if not contains_handle(text):
        assert substitute_handles(text, VALUES.__getitem__) is text
        assert mask_handles(text, "*") is text


def test_handles_can_be_masked() -> None:
    assert mask_handles("He is ${obs1.name}, $obs2.items[0].mail. Or ${obs3 ?", "[v]") == "He is [v], [v]. Or [v] ?"


def test_values_as_text() -> None:
    assert inline_text([1, "a", None]) == "1, a, null"
    assert inline_text({"名": 1.5}) == '{"名": 1.5}'


def test_a_shape_is_the_schema_and_bounded() -> None:
    person = {"type": "object", "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/P"}}}
    schema = {"type": "array", "items": {"$ref": "#/$defs/P"}, "$defs": {"P": person}}
    assert schema_signature(schema).startswith('[{"name": string, "boss": {"name": string')
    assert len(schema_signature(schema)) < 500
    many = {"type": "object", "properties": {f"p{n}": {"type": ["integer", "null"]} for n in range(500)}}
    assert schema_signature(many).endswith("…}")
    assert schema_signature({"anyOf": [{"type": "string"}, {"type": "null"}]}) == "string or null"
    assert schema_signature(True) == "…"
