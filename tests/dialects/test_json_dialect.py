"""The JSON dialect: three forms of one object."""

from __future__ import annotations

import json

import pytest

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.message import ModelReply
from taoloop.dialects import JsonDialect

SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
CARDS = (ToolCard(name="lookup", purpose="test", input_schema=SCHEMA), ToolCard(name="now", purpose="test"))
JSON = JsonDialect()
CALL = '{"thought": "t", "action": "lookup", "action_input": {"key": "a"}}'
FINAL = '{"thought": "t", "action": "final", "action_input": "5"}'


def read(text: str, finish_reason: str | None = "stop") -> Decision | Problem:
    return JSON.read(ModelReply(text=text, finish_reason=finish_reason), CARDS)


def act(tool: str, args: object, reason: str = "t") -> Act:
    return Act(calls=(Call(tool=tool, args=args),), reason=reason)


def refused(text: str, code: str, *parts: str) -> None:
    problem = read(text)
    assert isinstance(problem, Problem), problem
    assert problem.code == code, problem
    for part in parts:
        assert part in problem.message


def test_s3_2_and_s3_8_the_canonical_object() -> None:
    """S3-2, S3-8, S3-49: structured JSON with three keys; the action `final` ends the run."""
    assert read(CALL) == act("lookup", {"key": "a"})
    assert read(FINAL) == Answer(text="5", reason="t")
    assert read('{"thought": "t", "action": "Final Answer", "action_input": {"answer": "5"}}') == read(FINAL)
    refused("I look up the key a.", "stray_text", "I look up")


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{CALL}\n```",
        f"My decision for {{city}}:\n{CALL}\nDone!",
        f"{CALL}}}",
        f"[{CALL}]",
        f"{CALL}{CALL}",
        f"Thought: t\nAction:\n{CALL}",
        f"<think>\n{FINAL}\n</think>\n{CALL}",
        f"{FINAL}\n</think>\n{CALL}",
    ],
)
def test_s3_24_and_s3_64_text_around_the_first_object_is_let_pass(text: str) -> None:
    """S3-24, S3-64: prose, a fence, a brace too many; the first complete object counts."""
    assert read(text) == act("lookup", {"key": "a"})


@pytest.mark.parametrize(
    "text",
    [f"{CALL}\n{FINAL}", f"{CALL}\nFinal Answer: 5", f"Final Answer: 5\n{CALL}", f"Action: now\n{CALL}"],
)
def test_s0_47_a_second_decision_is_refused(text: str) -> None:
    """S0-47: in whatever form it stands beside the object."""
    refused(text, "two_decisions")


def test_s0_24_an_invented_observation_cuts_the_reply() -> None:
    """S0-24: the action before it stands, a final behind it refuses both."""
    again = CALL.replace('"a"', '"b"')
    assert read(f"{CALL}\nObservation: 7\n{again}") == act("lookup", {"key": "a"})
    assert read(f"{FINAL}\nQuestion: and now?\n{again}") == Answer(text="5", reason="t")
    refused(f"{CALL}\nObservation: 7\n{FINAL}", "invented_observation")
    refused(f"Observation: 7\n{CALL}", "invented_observation")


def test_s3_65_other_keys_are_named() -> None:
    """S3-65: extra keys are reported."""
    refused('{"action": "now", "action_input": {}, "mood": "good"}', "stray_text", "mood")
    refused('{"type": "final", "answer": "5", "dry_run": true}', "stray_text", "dry_run")
    refused('{"action": "fly", "to": "home"}', "stray_text", "to")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_s3_69_nan_is_no_json(value: str) -> None:
    """S3-69: refused, not read as a number."""
    refused(f'{{"thought": "t", "action": "lookup", "action_input": {{"key": {value}}}}}', "bad_json")


@pytest.mark.parametrize("text", [CALL[:-1], CALL[:40], CALL.replace('"a"', '"a", "key": "b"'), "{'action': now}"])
def test_broken_json_never_runs(text: str) -> None:
    refused(text, "bad_json")


@pytest.mark.parametrize("value", ["5", "[1]", '"text"'])
def test_s3_34_a_bare_value_stands_for_the_only_argument(value: str) -> None:
    """S3-34: the executor answers what does not fit; with several parameters the value stays what it is."""
    decision = read(f'{{"thought": "t", "action": "lookup", "action_input": {value}}}')
    assert decision == act("lookup", {"key": json.loads(value)})
    many = ToolCard(name="many", purpose="test", input_schema={"type": "object", "properties": {"a": {}, "b": {}}})
    text = f'{{"thought": "t", "action": "many", "action_input": {value}}}'
    assert JSON.read(ModelReply(text=text), (many,)) == act("many", json.loads(value))


def test_s4_20_to_s4_22_the_form_with_args_and_final() -> None:
    """S4-20, S4-21, S4-22: action and args go together, final excludes them; null is "not given"."""
    assert read('{"thought": "t", "action": "lookup", "args": {"key": "a"}, "final": null}') == read(CALL)
    assert read('{"thought": "t", "action": null, "args": null, "final": "5"}') == Answer(text="5", reason="t")
    refused('{"thought": "t", "action": "lookup", "args": null}', "bad_action", "needs key")
    refused('{"thought": "t", "args": {}}', "no_decision")


def test_s4_25_neither_action_nor_final() -> None:
    """S4-25: the model is asked for one of them."""
    refused('{"thought": "t"}', "no_decision", "action")
    refused('{"thought": "t", "final": null}', "no_decision")


@pytest.mark.parametrize("final", ['""', '"  "', "{}", "[]", '"<answer>"'])
def test_s4_58_an_empty_final_is_refused(final: str) -> None:
    """S4-58: and so are two fields together."""
    refused(f'{{"thought": "t", "final": {final}}}', "bad_final")
    refused(f'{{"thought": "t", "action": "final", "action_input": {final}}}', "bad_final")
    if final != '""':  # an empty text beside a whole call is not given, as null is: strict schemas ask for the key
        refused(f'{{"thought": "t", "action": "now", "args": {{}}, "final": {final}}}', "two_decisions")


def test_s2_9_the_form_with_a_type() -> None:
    """S2-9: type, tool, args, answer, reason_summary; S2-11: args default to none."""
    call = '{"type": "tool_call", "tool": "now", "args": null, "answer": null, "reason_summary": "t"}'
    assert read(call) == act("now", {})
    final = '{"type": "final", "tool": "", "args": {}, "answer": "5", "reason_summary": "t"}'
    assert read(final) == Answer(text="5", reason="t")
    refused('{"type": "final", "tool": "now", "answer": "5"}', "two_decisions")
    refused('{"type": "tool_call", "tool": "now", "answer": "5"}', "two_decisions")
    refused('{"type": "plan", "tool": "now"}', "stray_text", "type")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("The answer is 5.", "stray_text"),
        ('{"thought": "t", "action": 5, "action_input": {}}', "bad_action"),
        ('{"thought": "t", "action": "none", "action_input": {}}', "bad_action"),
        ('{"thought": "t", "action": "lookup"}', "bad_action"),
        ('{"thought": "t", "action": ["now"], "action_input": {}}', "bad_action"),
        ('{"thought": "t", "action": "lookup", "action_input": {"key": "<key>"}}', "bad_action"),
    ],
)
def test_doubtful_replies_are_refused(text: str, code: str) -> None:
    refused(text, code)


def test_s0_17_an_unknown_tool_is_still_a_decision() -> None:
    """S0-17, S2-10: the executor answers it."""
    assert read('{"thought": "t", "action": "fly", "action_input": {"to": "home"}}') == act("fly", {"to": "home"})


def test_a_reply_that_the_provider_cut_is_refused() -> None:
    problem = read(CALL, "length")
    assert isinstance(problem, Problem)
    assert problem.code == "truncated"
