from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from taoloop.core.cards.decimals import carry_over_literals, decimal_literals, has_float


@pytest.mark.parametrize(
    ("args", "text", "found"),
    [
        ({"a": 1.1}, '{"a": 1.10}', {"/a": "1.10"}),
        ({"a": 0.12345678901234568}, '{"a": 0.12345678901234567890}', {"/a": "0.12345678901234567890"}),
        ({"a": 1e-5}, '{"a": 0.00001}', {"/a": "0.00001"}),
        ({"a": {"b/c~": [1, 2.5, 2.5]}}, '{"a": {"b/c~": [1, 2.50, 2.5]}}', {"/a/b~1c~0/1": "2.50"}),
        ({"a": 1.1}, 'I pay 1.10. {"action": "pay", "action_input": {"a": 1.10}}', {"/a": "1.10"}),
        ({"a": 1.5}, '{"a": 1.5}', {}),
        ({"a": 1}, '{"a": 1}', {}),
        ({"a": 1.1}, '{"a": 1.2}', {}),
        ({"a": 1.1}, "1.10", {}),
        ({"a": 1.1}, '{"a": 1.10} or {"a": 1.1}', {}),
        ({"a": 1.1}, '{"a": 1.10} and {"a": 1.10}', {"/a": "1.10"}),
        ({"a": 1.1}, '{"a": 1.10', {}),
        ({"a": 0.0}, '{"a": -0.00}', {}),
        ({"a": -0.0}, '{"a": -0.00}', {"/a": "-0.00"}),
        ({"a": [0.0, 2.5]}, '{"a": [-0.0, 2.50]}', {"/a/1": "2.50"}),
        ({"a": 1.1}, "{" * 5_000 + '{"a": 1.10}', {}),
        ({"a": 1.1}, '{"x": ' * 100_000, {}),
    ],
)
def test_a_decimal_is_found_as_it_was_written(args: Any, text: str, found: dict[str, str]) -> None:
    assert decimal_literals(args, [text]) == found


def test_the_digits_of_a_number_that_was_changed_are_not_kept() -> None:
    digits = {"/a": "1.10", "/b/0": "-0.00", "/c~1d": "2.50", "/gone": "3.0"}
    before = {"a": 1.1, "b": [-0.0], "c/d": 2.5, "gone": 3.0}
    assert carry_over_literals(digits, before, {"a": 1.1, "b": [0.0], "c/d": 2.5}) == {"/a": "1.10", "/c~1d": "2.50"}
    assert carry_over_literals(digits, before, {"a": "1.1", "b": 0, "c/d": 2.51}) == {}


def test_several_texts_are_searched() -> None:
    assert decimal_literals({"a": 1.1}, ["", '{"a": 1.10}', "no"]) == {"/a": "1.10"}


def test_only_what_holds_a_float_is_looked_for() -> None:
    assert has_float({"a": [{"b": 0.5}]})
    assert not has_float({"a": [1, "1.5", True, None, {"b": "2.5"}]})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4), st.text(max_size=20))
def test_what_a_float_says_itself_is_no_literal(args: dict[str, Any], around: str) -> None:
    assert decimal_literals(args, [around + json.dumps(args) + around]) == {}


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4), st.text(max_size=20))
@example({"a": [1.5, {"b": -2.25}]}, "")
def test_a_literal_is_always_that_of_a_number_of_the_call(args: dict[str, Any], around: str) -> None:
    texts = list(decimal_literals(args, [around + _with_a_zero(args) + around]).values())
    assert all(float(text) in _floats(args) for text in texts)
    if "{" not in around:
        assert len(texts) == sum("e" not in repr(one) for one in _floats(args))


def _with_a_zero(value: Any) -> str:
    """As JSON, with one digit more than a float says itself."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_with_a_zero(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_with_a_zero, value)) + "]"
    text = json.dumps(value)
    return f"{text}0" if isinstance(value, float) and "e" not in text else text


def _floats(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [one for inner in value.values() for one in _floats(inner)]
    if isinstance(value, list):
        return [one for inner in value for one in _floats(inner)]
    return [value] if isinstance(value, float) else []


def test_a_text_that_only_looks_like_objects_is_given_up_soon() -> None:
    hostile = '{"a":[' * 100 + "1.50," * 20_000
    assert decimal_literals({"a": 1.5}, [hostile + '{"a": 1.50}']) == {}
    assert decimal_literals({"a": 1.5}, ['{not} {this} {"b": }, but {"a": 1.50}']) == {"/a": "1.50"}
