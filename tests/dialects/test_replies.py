"""Replies in the shapes of public parsers' test suites and issue threads: nothing wrong is believed, most are read.

Each was labelled before the reader saw it. `allowed` lists what is acceptable beside the label: a repair turn, or a
call that a reader may as well make out. `seen` is what the model had been shown.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.dialects.test_corpus import as_numbers

from taoloop.dialects import read_reply
from taoloop.dialects.parsing.strict_json import json_equal

CORPUS = Path(__file__).parent / "corpus"
READ_AT_LEAST = 0.97


@cache
def replies() -> list[dict[str, Any]]:
    lines = (CORPUS / "replies.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@cache
def tools() -> dict[str, Any]:
    return dict(json.loads((CORPUS / "reply_tools.json").read_text(encoding="utf-8")))


def outcome(reply: dict[str, Any]) -> str:
    """Right, allowed, refused although it can be read, or wrong: something else was believed."""
    tool_set, finish_reason, label = tools()[reply["tools"]], reply["finish_reason"], reply["expect"]
    reading = read_reply(reply["dialect"], tool_set, reply["output"], finish_reason, seen=reply.get("seen", ""))
    if reading.kind == label["kind"] and (
        reading.kind == "reject"
        or (reading.kind == "final" and str(reading.answer).split() == label["answer"].split())
        or (
            reading.kind == "action"
            and reading.tool == label["tool"]
            and json_equal(as_numbers(reading.args), as_numbers(label["args"]))
        )
    ):
        return "right"
    written = reading.kind if reading.kind != "action" else f"action:{reading.tool}:{json.dumps(reading.args)}"
    if written in reply.get("allowed", ()):
        return "allowed"
    return "refused" if reading.kind == "reject" else "wrong"


@pytest.mark.parametrize("kind", sorted({reply["class"] for reply in replies()}))
def test_every_class_of_reply_is_read(kind: str) -> None:
    """Design, promise 2: one wrong belief is one too many; a refusal costs a turn."""
    outcomes = {reply["id"]: outcome(reply) for reply in replies() if reply["class"] == kind}
    assert [name for name, what in outcomes.items() if what in ("wrong", "refused")] == []


def test_the_corpus_is_read_as_a_whole() -> None:
    """At least 300 replies, 0 wrong beliefs, 97 % right or allowed."""
    outcomes = [outcome(reply) for reply in replies()]
    assert len(outcomes) >= 300
    assert outcomes.count("wrong") == 0
    assert outcomes.count("right") + outcomes.count("allowed") >= READ_AT_LEAST * len(outcomes)
