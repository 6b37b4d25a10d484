"""Which schema the whole text of a reply must fit."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call
from taoloop.dialects import get_dialect
from taoloop.dialects.text_dialect import reply_schema

CARDS = (ToolCard(name="stock", purpose="Say what is there."),)
SCHEMA = {"type": "integer"}


def test_the_text_of_a_native_reply_is_the_answer_also_where_a_tool_is_on_offer() -> None:
    native = get_dialect("native")
    assert reply_schema(native, CARDS, SCHEMA, reasons=True) == SCHEMA
    assert reply_schema(native, (), SCHEMA, reasons=True) == SCHEMA
    assert reply_schema(native, (), None, reasons=True) is None


def test_labelled_lines_fit_no_schema() -> None:
    assert reply_schema(get_dialect("text"), (), SCHEMA, reasons=True) is None


@pytest.mark.parametrize(
    "decision", [Act(calls=(Call(tool="stock", args={"a": 1}),), reason="why"), Answer(text="12", reason="why")]
)
def test_what_the_json_dialect_writes_fits_its_schema(decision: Act | Answer) -> None:
    """S3-49, S3-58: the decision interface takes structured JSON only, and no tool that there is not."""
    schema = reply_schema(get_dialect("json"), CARDS, SCHEMA, reasons=True)
    assert schema is not None
    judge = jsonschema_rs.validator_for(dict(schema))
    assert judge.is_valid(json.loads(get_dialect("json").write(decision).text))
    assert not judge.is_valid({"thought": "", "action": "another", "action_input": {}})
