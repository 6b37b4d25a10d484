"""Drifted replies of every class: what may be believed is read, and nothing else is believed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from taoloop.dialects import read_reply
from taoloop.dialects.parsing.strict_json import json_equal

CORPUS = Path(__file__).parent / "corpus" / "drift.jsonl"
UNDERSTOOD_AT_LEAST = 0.98


@cache
def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def outcome(case: dict[str, Any]) -> str:
    """Correct; recoverable: something that could be read was refused; wrong: something else was believed."""
    want = case["expect"]
    read = read_reply(case["dialect"], case["tools"], case["output"], case.get("finish_reason"))
    if read.kind == "reject":
        return "correct" if want["kind"] == "reject" else "recoverable"
    if read.kind != want["kind"]:
        return "wrong"
    if read.kind == "action":
        return (
            "correct"
            if read.tool == want["tool"] and json_equal(as_numbers(read.args), as_numbers(want["args"]))
            else "wrong"
        )
    return "correct" if str(read.answer).split() == str(want["answer"]).split() else "wrong"


def as_numbers(value: Any) -> Any:
    """5.0 and 5 are one number in JSON."""
    if isinstance(value, dict):
        return {key: as_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize("dialect", ["fenced", "json", "native", "text"])
def test_what_may_be_believed_is_read_and_nothing_else(dialect: str) -> None:
    """Design, promise 2; S0-33."""
    found = {case["id"]: outcome(case) for case in cases() if case["dialect"] == dialect}
    assert len(found) > 90
    assert [name for name, what in found.items() if what == "wrong"] == []
    refused = [name for name, what in found.items() if what == "recoverable"]
    assert len(refused) <= (1 - UNDERSTOOD_AT_LEAST) * len(found), refused
