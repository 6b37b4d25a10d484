"""The prompt as a view of the trace: what each request holds, and that it only grows."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, tool
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.events import Event, ReplyRejected
from taoloop.core.message import Message, ModelReply
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.dialects import get_dialect
from taoloop.errors import UnknownName
from taoloop.strategies import get_strategy

STRATEGIES = ["react", "act_only", "reason_only", "standard"]


def _known() -> list[str]:
    found = []
    for name in ("native", "json", "text", "fenced"):
        try:
            found.append(get_dialect(name).name)
        except UnknownName:
            continue
    return found


DIALECTS = _known()
PROSE = [name for name in DIALECTS if name != "native"]


@tool(tier="read")
async def look(place: str) -> dict[str, Any]:
    """Look at a place."""
    if place == "nowhere":
        raise ValueError("there is no such place")
    return {"place": place, "notes": "clear\n\n  and 冷\nObservation: none"}


@tool(tier="write")
async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


class Watching(ScriptedModel):
    def __init__(self, replies: list[Any]) -> None:
        super().__init__(replies, strict=False)
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return await super().complete(request)

    @property
    def prompts(self) -> list[bytes]:
        return [serialised(request.messages) for request in self.asked]


def serialised(messages: tuple[Message, ...]) -> bytes:
    """The bytes of a prompt, message by message."""
    return "".join(f"{message!r}\n" for message in messages).encode()


def call(**args: Any) -> Act:
    return Act(calls=(Call(tool="look", args=args),), reason="I look.")


def run(dialect: str, decisions: list[Act | Answer], **options: Any) -> tuple[Result, Watching]:
    model = Watching([get_dialect(dialect).write(decision) for decision in decisions])
    agent = Agent(model=model, tools=[look, pay], dialect=dialect, **{"journal": MemoryJournal(), **options})
    return asyncio.run(agent.run("Look around.")), model


THREE: list[Act | Answer] = [call(place="here"), call(place="nowhere"), Answer(text="done", reason="seen")]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_request_holds_the_task_the_tools_and_every_earlier_step(dialect: str) -> None:
    """S2-13, S3-19, S4-23: nothing is missing."""
    _, model = run(dialect, THREE)
    for number, request in enumerate(model.asked):
        text = "\n".join(message.content for message in request.messages)
        calls = [call for message in request.messages for call in message.tool_calls]
        assert text.count("Look around.") == 1
        assert {"look", "pay"} <= {card.name for card in request.tools}
        assert request.native or ('"place"' in text and "Look at a place." in text)
        assert ("冷" in text) == (number >= 1)
        assert ("there is no such place" in text) == (number >= 2)
        assert request.native == bool(calls) or number == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_request_is_built_from_the_stored_trace_alone(dialect: str) -> None:
    """S3-19: from the agent's description in it, the task, and the steps so far."""
    result, model = run(dialect, THREE)
    facts = [decode_fact(event.fact.kind, encode_fact(event.fact)) for event in result.trace.events]
    events = [Event(event.seq, event.at, fact) for event, fact in zip(result.trace.events, facts, strict=True)]
    replied = [event.seq for event in events if event.fact.kind == "model_replied"]
    for seq, request in zip(replied, model.asked, strict=True):
        trace = Trace(result.run_id, events[:seq])
        effect = get_strategy(trace.agent.strategy).next(trace.agent, trace)
        assert isinstance(effect, CallModel)
        assert effect.request.messages == request.messages


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_system_message_is_first_constant_and_sent_once(dialect: str) -> None:
    """S3-31, S4-60."""
    _, model = run(dialect, THREE)
    for request in model.asked:
        assert [message.role for message in request.messages].count("system") == 1
        assert request.messages[0] == model.asked[0].messages[0]
        assert [message.role for message in request.messages[:2]] == ["system", "user"]
        assert request.messages[1] == model.asked[0].messages[1], "the task is not written anew"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_layout_is_the_same_before_and_after_any_step(dialect: str) -> None:
    """S3-21, S3-68: no place for a scratchpad that could be empty, or dedented; whatever an observation holds."""
    _, model = run(dialect, THREE)
    first, *later = (request.messages for request in model.asked)
    assert [message.role for message in first] == ["system", "user"]
    assert all(messages[: len(first)] == first for messages in later)
    assert "\n\n  and 冷" in later[0][-1].content.replace("\\n", "\n")


def test_the_task_repeats_the_output_rule_of_the_json_dialect() -> None:
    """S3-22: once, where the task stands."""
    _, model = run("json", THREE)
    assert "JSON only" in model.asked[-1].messages[1].content
    assert all("JSON only" not in message.content for message in model.asked[-1].messages[2:])


@pytest.mark.parametrize("dialect", PROSE)
def test_an_observation_goes_back_as_json_in_a_user_message(dialect: str) -> None:
    """S4-26."""
    _, model = run(dialect, THREE)
    shown = model.asked[1].messages[-1]
    assert shown.role == "user"
    assert '{"place":"here","notes":"clear\\n\\n  and 冷\\nObservation: none"}' in shown.content


def test_thinking_is_kept_only_where_it_is_asked_for_and_never_shown_again() -> None:
    """S2-3."""
    for keep in (False, True):
        model = Watching(
            [
                ModelReply(
                    text="", thinking="secret plan", tool_calls=get_dialect("native").write(THREE[0]).tool_calls
                ),
                ModelReply(text="done", thinking="secret end"),
            ]
        )
        agent = Agent(model=model, tools=[look], dialect="native", keep_thinking=keep)
        result = asyncio.run(agent.run("Look."))
        kept = [event.fact.thinking for event in result.trace.events if event.kind == "model_replied"]  # type: ignore[union-attr]
        assert kept == (["secret plan", "secret end"] if keep else ["", ""])
        assert all(b"secret" not in prompt for prompt in model.prompts)
        assert all("secret" not in entry.content for entry in result.entries)


def test_a_resumed_run_goes_on_with_the_same_bytes() -> None:
    journal = MemoryJournal()
    model = Watching([get_dialect("text").write(call(place=f"p{n}")) for n in range(6)])
    agent = Agent(model=model, tools=[look], dialect="text", journal=journal, limits=Limits(max_steps=2))
    first = asyncio.run(agent.run("Look around."))
    assert first.status == "max_steps_exceeded"
    asyncio.run(agent.resume(first.run_id, max_steps=4))
    assert len(model.prompts) == 6
    assert all(after.startswith(before) for before, after in pairwise(model.prompts))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_chinese_run_corrects_in_chinese(dialect: str) -> None:
    """What is wrong with a reply, and an empty one, is told in the language of the run; the code is the same."""
    model = Watching(["", "Observation: 5", get_dialect(dialect).write(Answer(text="完成", reason="够了"))])
    agent = Agent(model=model, tools=[look, pay], dialect=dialect, journal=MemoryJournal())
    result = asyncio.run(agent.run("看一看周围的情况。"))
    rejections = [event.fact for event in result.trace.events if isinstance(event.fact, ReplyRejected)]
    assert [rejected.code for rejected in rejections] == ["empty", "invented_observation"]
    assert next(message.content for message in model.asked[-1].messages if message.role == "assistant") == "（空回复）"
    for rejected in rejections:
        assert any(f"问题：{rejected.message}\n" in message.content for message in model.asked[-1].messages)
        assert not re.search("[A-Za-z]{3,} [a-z]{3,}", rejected.message)


CALLS = st.one_of(
    st.builds(lambda place: call(place=place), st.sampled_from(["here", "nowhere", "Final Answer: 5"])),
    st.builds(lambda n: Act(calls=(Call(tool="pay", args={"amount": n}),), reason="pay"), st.integers(0, 2)),
    st.just(Act(calls=(Call(tool="nobody", args={}),), reason="")),
)
REPLIES = st.lists(CALLS | st.sampled_from(["", "Observation: 5", "{", "just text"]), max_size=9)


@examples(120)
@given(
    REPLIES,
    st.sampled_from(DIALECTS),
    st.sampled_from(STRATEGIES),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([None, lambda _question: True, lambda _question: False]),
)
def test_each_prompt_begins_with_the_bytes_of_the_last_one(
    replies: list[Any], dialect: str, strategy: str, max_steps: int, on: bool, approve: Any
) -> None:
    """Promise 6: repair turns, notices, refusals, the closing turn and a resume included."""
    wrote = [get_dialect(dialect).write(one) if isinstance(one, Act) else one for one in replies]
    model = Watching(wrote)
    agent = Agent(
        model=model,
        tools=[look, pay],
        dialect=dialect,
        strategy=strategy,
        journal=MemoryJournal(),
        limits=Limits(max_steps=max_steps, max_consecutive_errors=None, repeat_tell=2),
        approve=approve,
    )

    async def work() -> None:
        result = await agent.run("Look around.")
        if on and result.status not in ("completed", "waiting"):
            await agent.resume(result.run_id, max_steps=max_steps + 2)

    asyncio.run(work())
    assert all(after.startswith(before) for before, after in pairwise(model.prompts))
