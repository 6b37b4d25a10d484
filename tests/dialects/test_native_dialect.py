"""The native dialect: tool calls of the API."""

from __future__ import annotations

import pytest

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.events import ActionRequested, ModelReplied
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.dialects import NativeDialect

CARDS = (ToolCard(name="lookup", purpose="test"),)
NATIVE = NativeDialect()


def read(text: str = "", *calls: tuple[str, str], finish_reason: str = "stop") -> Decision | Problem:
    delivered = tuple(ToolCallText(name=n, arguments=a, id=f"p{i}") for i, (n, a) in enumerate(calls))
    return NATIVE.read(ModelReply(text=text, tool_calls=delivered, finish_reason=finish_reason), CARDS)


def code(read_: Decision | Problem) -> str:
    assert isinstance(read_, Problem), read_
    return read_.code


def test_parallel_calls_are_one_decision() -> None:
    decision = read("both", ("lookup", '{"key": "a"}'), ("lookup", '{"key": "b"}'), ("lookup", '{"key":"a"}'))
    calls = (
        Call(tool="lookup", args={"key": "a"}, ref="p0"),
        Call(tool="lookup", args={"key": "b"}, ref="p1"),
    )
    assert decision == Act(calls=calls, reason="both")


def test_s0_30_and_s2_11_empty_arguments_are_no_arguments() -> None:
    """S0-30, S2-11: arguments are JSON by name and default to none."""
    assert read("", ("lookup", " ")) == Act(calls=(Call(tool="lookup", args={}, ref="p0"),))


def test_text_without_a_call_is_the_answer() -> None:
    assert read("<think>\nhm\n</think>\n It is 5. ") == Answer(text="It is 5.")
    sample = 'Look:\n```json\n{"name": "Alice"}\n```'
    assert read(sample) == Answer(text=sample)


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "{'a': b}", '{"a": NaN}', '{"a": 1}{"a": 2}', '"text"', "{} x"])
def test_s3_69_broken_arguments_never_run(arguments: str) -> None:
    """S3-69: the problem names the tool."""
    problem = read("", ("lookup", arguments))
    assert isinstance(problem, Problem)
    assert problem.code == "bad_json"
    assert "'lookup'" in problem.message


def test_what_the_provider_cut_is_refused() -> None:
    assert code(read("", ("lookup", "{}"), finish_reason="length")) == "truncated"
    assert code(read("It is", finish_reason="content_filter")) == "truncated"


def test_s0_14_empty_replies_are_refused() -> None:
    """S0-14: neither call nor text."""
    assert code(read()) == "empty"
    assert code(read("", ("", "{}"))) == "bad_action"
    assert code(read("", ("lookup", '{"key": "{{id}}"}'))) == "bad_action"


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "lookup", "arguments": {"key": "a"}}</tool_call>',
        "<function=lookup><parameter=key>a</parameter></function>",
        '```json\n{"name": "lookup", "parameters": {"key": "a"}}\n```',
        '{"action": "lookup", "action_input": {"key": "a"}}',
    ],
)
def test_a_call_of_a_known_tool_in_the_text_is_a_call(text: str) -> None:
    decision = read(text)
    assert isinstance(decision, Act)
    assert decision.calls == (Call(tool="lookup", args={"key": "a"}),)
    assert isinstance(read(text.replace("lookup", "fly")), Problem)
    assert isinstance(read(f"You could write {text} here."), Problem if "<" in text else Answer | Problem)


def test_a_text_beside_a_call_may_not_decide_otherwise() -> None:
    assert isinstance(read("I look it up.", ("lookup", '{"key": "a"}')), Act)
    assert code(read("Final Answer: 5", ("lookup", '{"key": "a"}'))) == "two_decisions"


def replied(decision: Act | Answer | None, text: str = "", *calls: ToolCallText) -> ModelReplied:
    return ModelReplied(step=1, purpose="decide", text=text, decision=decision, tool_calls=calls)


def test_an_echo_has_our_call_ids() -> None:
    decision = Act(calls=(Call(tool="lookup", args={"k": "键"}, ref="p0"),), reason="why")
    requested = ActionRequested(
        step=1,
        call_id="c1",
        tool="lookup",
        args={"k": "键"},
        tier=None,
        verdict="allow",
        digest="d",
        ref="p0",
    )
    message = NATIVE.echo(replied(decision), [requested])
    assert message.content == "why"
    assert message.tool_calls == (ToolCallText(name="lookup", arguments='{"k": "键"}', id="c1"),)
    assert NATIVE.echo(replied(Answer(text="5")), []).content == "5"


def test_a_rejected_call_is_echoed_as_text() -> None:
    broken = ToolCallText(name="lookup", arguments='{"a": ', id="p0")
    message = NATIVE.echo(replied(None, "hm", broken), [])
    assert message.content == 'hm\n[tool call] lookup {"a": '
    assert message.tool_calls == ()
    assert NATIVE.echo(replied(None), []).content == "(empty reply)"
    assert len(NATIVE.echo(replied(None, "x" * 9_000), []).content) == 4_000


@pytest.mark.parametrize("rest", ["<|eot_id|>assistant\n\nMore", "<|im_end|>\n<|im_start|>assistant\nMore"])
def test_an_answer_ends_with_its_turn(rest: str) -> None:
    assert read(f"It is 5.{rest}") == Answer(text="It is 5.")
    shown = f"```\nhi{rest}\n```\nSo a turn ends."
    assert read(shown) == Answer(text=shown)


@pytest.mark.parametrize("text", ["A dialogue:\n\nUser: hi\nAssistant: hello", "# Observations\n\n- It is fine."])
def test_a_dialogue_or_a_report_is_an_answer(text: str) -> None:
    assert read(text) == Answer(text=text)


def test_a_turn_of_another_party_is_none() -> None:
    assert read("It is 5.\n\nUser: thanks\nAssistant: hello") == Answer(text="It is 5.")
    assert code(read("Observation: it is fine.")) == "invented_observation"


def test_an_example_of_a_call_is_not_made() -> None:
    reads = (ToolCard(name="lookup", purpose="test", tier="read"),)
    for words, kind in (("Looking.", Act), ("An example of a call:", Problem), ("例如这样调用：", Problem)):
        text = f'{words}\n```json\n{{"name": "lookup", "arguments": {{}}}}\n```'
        assert isinstance(NATIVE.read(ModelReply(text=text), reads), kind), words
