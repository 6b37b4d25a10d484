"""An unreadable reply gets exactly one repair turn, in every dialect; both replies stay in the trace."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, tool
from taoloop.core.decision import EXCERPT_CHARS, Act, Answer, Call
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ModelReplied, ReplyRejected
from taoloop.core.message import ModelReply
from taoloop.core.views.transcript import Result, transcript
from taoloop.dialects import get_dialect
from taoloop.errors import UnknownName
from taoloop.runtime.after.replay import replay

DIALECTS = ["native", "json", "text", "fenced"]
BAD: dict[str, Any] = {
    "native": {"tool_calls": [{"name": "look", "args": '{"place": '}]},
    "json": '{"thought": "I look", "action": "look"}',
    "text": "Thought: I should look somewhere.",
    "fenced": 'Thought: I look.\nAction:\n```json\n{"action": "look", "action_input": {"place": \n```',
}
LOOK = Act(calls=(Call(tool="look", args={"place": "here"}),), reason="I look.")


@tool(tier="read")
async def look(place: str) -> dict[str, int]:
    """Look at a place."""
    return {"seen": len(place)}


class Watching(ScriptedModel):
    def __init__(self, replies: list[Any]) -> None:
        super().__init__(replies, strict=False)
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return await super().complete(request)


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    try:
        return get_dialect(request.param).name
    except UnknownName:
        pytest.skip("no such dialect yet")


def run(dialect: str, replies: list[Any], **options: Any) -> tuple[Result, Watching]:
    model = Watching(replies)
    agent = Agent(model=model, tools=[look], dialect=dialect, journal=MemoryJournal(), **options)
    return asyncio.run(agent.run("Look around.")), model


def good(dialect: str, decision: Act | Answer = LOOK) -> ModelReply:
    return get_dialect(dialect).write(decision)


def test_the_bad_reply_is_shown_with_what_was_wrong_and_the_form(dialect: str) -> None:
    """S0-16, S3-25, S4-24: echoed as the assistant's, and answered with the error and a demand for the form."""
    result, model = run(dialect, [BAD[dialect], good(dialect), good(dialect, Answer(text="4"))])
    assert (result.status, result.answer) == ("completed", "4")
    first, repair, after = model.asked
    assert [request.purpose for request in model.asked] == ["decide", "repair", "decide"]
    assert repair.messages[: len(first.messages)] == first.messages
    echoed, told = repair.messages[len(first.messages) :]
    assert (echoed.role, told.role) == ("assistant", "user")
    assert "look" in echoed.content
    rejected = next(e.fact for e in result.trace.events if isinstance(e.fact, ReplyRejected))
    assert rejected.message in told.content
    prompts = result.trace.agent.prompts
    assert prompts.texts[f"form_{dialect}"].splitlines()[-1].partition("${")[0].replace("$$", "$") in told.content
    assert after.messages[: len(repair.messages)] == repair.messages, "nothing is taken back"


def test_the_repair_turn_is_at_temperature_0(dialect: str) -> None:
    """S3-26, S3-39: whatever the agent's own."""
    _, model = run(dialect, [BAD[dialect], good(dialect, Answer(text="4"))], temperature=0.7, top_p=0.5)
    assert [(one.temperature, one.top_p) for one in model.asked] == [(0.7, 0.5), (0.0, None)]


def test_the_decision_of_the_json_dialect_is_at_02_and_09_unless_the_agent_says_otherwise() -> None:
    """S3-23."""
    answer = [good("json", Answer(text="4"))]
    for options, expected in (
        ({}, (0.2, 0.9)),
        ({"temperature": 1.0}, (1.0, None)),
        ({"top_p": 0.5}, (None, 0.5)),
    ):
        _, model = run("json", answer, **options)
        assert (model.asked[0].temperature, model.asked[0].top_p) == expected
    _, model = run("text", [good("text", Answer(text="4"))])
    assert (model.asked[0].temperature, model.asked[0].top_p) == (None, None), "the provider's own"


def test_a_second_bad_reply_is_one_clear_error_and_the_next_step(dialect: str) -> None:
    """S3-25, S3-27, S3-28, S3-66: no exception, at most 200 characters shown; one repair turn for each step."""
    bad = BAD[dialect]
    result, model = run(dialect, [bad, bad, bad, good(dialect)], limits=Limits(max_consecutive_errors=None))
    assert [(one.purpose, one.trace.step_count) for one in model.asked[:4]] == [
        ("decide", 2),
        ("repair", 2),
        ("decide", 2),
        ("repair", 2),
    ]
    rejected = [e.fact for e in result.trace.events if isinstance(e.fact, ReplyRejected)]
    assert [fact.step for fact in rejected] == [1, 1, 2]
    assert all(fact.message and len(fact.excerpt) <= EXCERPT_CHARS == 200 for fact in rejected)
    decided = [step.decision for step in result.trace.steps]
    assert decided[0] is None
    assert isinstance(decided[1], Act)


@pytest.mark.parametrize("keys", [{"action": "look"}, {"action_input": {"place": "here"}}, {"action": "look" * 300}])
def test_a_reply_without_one_of_the_keys_is_an_error_that_shows_its_beginning(keys: dict[str, Any]) -> None:
    """S2-45, S3-27."""
    text = json.dumps({"thought": "t" * 900, **keys})
    result, _ = run("json", [text, text, good("json", Answer(text="4"))])
    rejected = [e.fact for e in result.trace.events if isinstance(e.fact, ReplyRejected)]
    assert len(rejected) == 2
    for fact in rejected:
        assert 0 < len(fact.excerpt) <= 200
        assert fact.excerpt.removesuffix("…") in text


def test_the_thought_may_be_missing() -> None:
    """S3-27: it decides nothing."""
    result, _ = run("json", ['{"action": "look", "action_input": {"place": "here"}}', good("json", Answer(text="4"))])
    assert [entry.kind for entry in result.entries[:2]] == ["Action", "Observation"]


def test_replies_that_stay_unreadable_are_a_stated_end_with_a_trace(dialect: str) -> None:
    """S3-66, S0-21."""
    result, _ = run(dialect, [BAD[dialect]] * 9)
    assert (result.status, result.answer) == ("unreadable", None)
    assert "could not be parsed" in result.reason
    assert all(decided.same for decided in replay(result.trace))


def test_both_replies_are_in_the_trace_word_by_word(dialect: str) -> None:
    """S3-67, S4-56: and the transcript says of each that it could not be read."""
    one = {"text": "first try"} | (BAD[dialect] if isinstance(BAD[dialect], dict) else {"text": BAD[dialect]})
    result, _ = run(dialect, [one, {"text": ""}, good(dialect, Answer(text="4"))])
    replies = [e.fact for e in result.trace.events if isinstance(e.fact, ModelReplied)]
    assert replies[0].text == one["text"]
    assert replies[1].text == ""
    assert [fact.purpose for fact in replies] == ["decide", "repair", "decide"]
    unread = [entry for entry in transcript(result.trace) if entry.tool == "parser"]
    assert len(unread) == 2


@pytest.mark.parametrize("reply", ['{"thought": "hm"}', "{}"])
def test_a_json_reply_with_neither_action_nor_final_is_asked_for_one(reply: str) -> None:
    """S4-25."""
    result, model = run("json", [reply, good("json", Answer(text="4"))])
    assert result.status == "completed"
    told = model.asked[1].messages[-1].content
    assert '"action"' in told
    assert '"final"' in told


def test_without_repair_turns_the_next_turn_is_a_step_of_its_own(dialect: str) -> None:
    result, model = run(dialect, [BAD[dialect], good(dialect, Answer(text="4"))], repair_turns=0)
    assert [one.purpose for one in model.asked] == ["decide", "decide"]
    assert result.trace.step_count == 2
