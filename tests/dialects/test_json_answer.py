"""The JSON value in the text of an answer: as it is, in a fence at the end, in a string, or the bare text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from taoloop.core.decision import Act, Answer
from taoloop.core.message import ModelReply
from taoloop.dialects import get_dialect
from taoloop.dialects.parsing.strict_json import answer_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_is_read_as_it_is_and_in_a_fence(value: object) -> None:
    text = json.dumps(value)
    for written in (text, f" {text}\n", f"```json\n{text}\n```", f"```\n{text}\n```\n"):
        values, before, error = answer_values(written)
        assert (json.dumps(values[0]), before, error) == (text, "", "")


def test_prose_before_one_fenced_block_is_the_reason() -> None:
    values, before, _ = answer_values('The shelf says so.\n\n```json\n{"tea": 12}\n```')
    assert (values, before) == ([{"tea": 12}], "The shelf says so.")


@pytest.mark.parametrize(
    "text",
    ["```json\n1\n```\nand\n```json\n2\n```", '{"a": 1} and more', '{"a": NaN}', '{"a": 1', "```json\n1\n```\nDone."],
)
def test_anything_else_is_only_a_text(text: str) -> None:
    values, _, error = answer_values(text)
    assert values == [text]
    assert error


def test_a_string_may_hold_json_and_a_bare_word_may_be_a_text() -> None:
    assert answer_values('"{\\"a\\": 1}"')[0] == ['{"a": 1}', {"a": 1}]
    assert answer_values("12")[0] == [12, "12"]
    assert answer_values("yes")[0] == ["yes"]


@pytest.mark.parametrize("value", [{"total": 3}, {}, [], [1, 2], 0, False, {"a": {"b": None}}])
@pytest.mark.parametrize(
    ("dialect", "form"),
    [
        ("native", "…"),
        ("text", "Thought: done.\nFinal Answer: …"),
        ("text", "Thought: done.\nAction: Final Answer\nAction Input: …"),
        ("json", '{"thought": "done.", "action": "final", "action_input": …}'),
        ("json", '{"thought": "done.", "final": …}'),
        ("json", '{"type": "final", "answer": …}'),
    ],
)
def test_every_dialect_gives_a_json_answer_whole(dialect: str, form: str, value: object) -> None:
    """An object with one key is itself the answer, and nothing is too empty to be one."""
    reply = ModelReply(text=form.replace("…", json.dumps(value)))
    read = get_dialect(dialect).read(reply, (), json_answer=True)
    assert isinstance(read, Answer), read
    assert json.loads(read.text) == value


def test_a_call_is_a_call_whatever_the_answer_must_be() -> None:
    reply = ModelReply(text='{"thought": "", "action": "stock", "action_input": {"item": "tea"}}')
    assert isinstance(get_dialect("json").read(reply, (), json_answer=True), Act)
