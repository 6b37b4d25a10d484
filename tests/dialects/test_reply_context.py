"""What a run does with a reply that only the task, or the trace, makes clear."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from taoloop import Agent, MemoryJournal, ScriptedModel, tool
from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.decision import Act, Decision, Problem
from taoloop.core.events import ModelReplied, ReplyRejected
from taoloop.core.message import Message, ModelReply
from taoloop.core.prompts import PromptSet
from taoloop.dialects import _REGISTERED, Dialect, get_dialect, read_reply, register_dialect
from taoloop.dialects.text_dialect import correction_message
from taoloop.tools.tool import Tool

QUESTION = "What does {{ name }} stand for in the template?"
LOOK_UP = 'Action: look_up\nAction Input: {"key": "{{ name }}"}'


def look_up_tool(keys: list[str], tier: Tier = "read") -> Tool:
    @tool(tier=tier)
    async def look_up(key: str) -> str:
        """Look something up."""
        keys.append(key)
        return f"{key} is ${{USER}}"

    return look_up


def run(dialect: str, task: str, *replies: str, tier: Tier = "read") -> tuple[Any, list[str]]:
    keys: list[str] = []
    agent = Agent(
        model=ScriptedModel([ModelReply(text=text) for text in replies]),
        dialect=dialect,
        tools=[look_up_tool(keys, tier)],
        approved_tiers=("write",),
        journal=MemoryJournal(),
    )
    return asyncio.run(agent.run(task)), keys


def test_a_placeholder_that_the_task_has_is_a_value() -> None:
    result, keys = run("text", QUESTION, LOOK_UP, "Final Answer: {{ name }}")
    assert (result.status, result.answer, keys) == ("completed", "{{ name }}", ["{{ name }}"])


def test_a_placeholder_that_an_observation_has_is_a_value() -> None:
    result, _ = run("text", QUESTION, LOOK_UP, "Final Answer: ${USER}")
    assert (result.status, result.answer) == ("completed", "${USER}")


def test_any_other_placeholder_is_asked_for_again() -> None:
    result, keys = run("text", "Who is it?", LOOK_UP, "Final Answer: nobody knows")
    rejected = [event.fact for event in result.trace.events if isinstance(event.fact, ReplyRejected)]
    assert ([fact.code for fact in rejected], keys) == (["bad_action"], [])


def decision(**more: object) -> str:
    return json.dumps({"thought": "t", "action": "look_up", "action_input": {"key": "a"}, **more})


@pytest.mark.parametrize("key", ["status", "confidence", "plan", "observation"])
def test_a_key_beside_a_read_is_in_the_trace(key: str) -> None:
    result, keys = run("json", "Look.", decision(**{key: "x"}), decision(action="final", action_input="fine"))
    replied = [event.fact for event in result.trace.events if isinstance(event.fact, ModelReplied)]
    decided = replied[0].decision
    assert isinstance(decided, Act)
    assert (decided.unknown_keys, keys) == ((key,), ["a"])


@pytest.mark.parametrize("key", ["status", "confidence", "plan", "observation", "dry_run"])
def test_a_key_beside_an_effect_is_refused_by_name(key: str) -> None:
    replies = decision(**{key: "x"}), decision(action="final", action_input="fine")
    result, keys = run("json", "Look.", *replies, tier="write")
    rejected = [event.fact for event in result.trace.events if isinstance(event.fact, ReplyRejected)]
    assert keys == []
    assert key in rejected[0].message


class OldDialect:
    """A dialect of a user, written before `was_seen` was in the contract."""

    name, native, stop = "old", False, ("\nObservation:",)

    def __init__(self) -> None:
        self._text = get_dialect("text")
        self.write, self.echo = self._text.write, self._text.echo
        self.observation = self._text.observation

    def read(self, reply: ModelReply, cards: Sequence[ToolCard], *, json_answer: bool = False) -> Decision | Problem:
        return self._text.read(reply, cards, json_answer=json_answer)

    def correction(self, rejected: ReplyRejected, prompts: PromptSet, *, tools: bool, reasons: bool) -> Message:
        return correction_message(self.name, rejected, prompts, tools=tools, reasons=reasons)


@pytest.fixture
def old_dialect() -> Iterator[str]:
    register_dialect(cast("Dialect", OldDialect()))
    yield "old"
    _REGISTERED.pop("old")


def test_a_dialect_without_was_seen_is_called_without_it(old_dialect: str) -> None:
    """Its placeholders are refused, as it always did, and nothing else changes."""
    texts = {f"{name}_old": "Write Thought, Action, Action Input, or Final Answer." for name in ("form", "thought")}
    answers = [LOOK_UP, "Final Answer: nobody knows"]
    agent = Agent(model=ScriptedModel(answers), dialect=old_dialect, tools=[look_up_tool([])], prompts=texts)
    result = agent.run_sync(QUESTION)
    assert (result.status, result.answer) == ("completed", "nobody knows")
    reading = read_reply(old_dialect, [{"name": "look_up", "effect": "read"}], LOOK_UP, seen=QUESTION)
    assert reading.kind == "reject"
