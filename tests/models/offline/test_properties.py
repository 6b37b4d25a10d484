"""Whatever the task and the cards hold: a decision that fits, or a refusal, and in bounded time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.models.offline.test_battery import RIGHT
from tests.models.offline.toolset import card, recorded, run
from tests.sizes import examples

from taoloop import Trace
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Decision
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, RunStarted
from taoloop.errors import ModelRequestRefused
from taoloop.models.offline.planner import decision_for

_WORDS = sorted(
    {word for task, _, _ in RIGHT for word in re.findall(r"[A-Za-z0-9'@.\-/]+|[\u4e00-\u9fff]{1,3}|[?.,:“”]", task)}
)
_TASKS = st.one_of(st.text(max_size=120), st.lists(st.sampled_from(_WORDS), max_size=16).map(" ".join))
_TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
_RULES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.one_of(_TYPES, st.lists(_TYPES, max_size=3)),
                "description": st.one_of(st.text(max_size=30), st.integers()),
                "enum": st.lists(st.one_of(st.text(max_size=5), st.integers(), st.none()), max_size=4),
                "$ref": st.sampled_from(["#/$defs/x", "#", "#/properties", "http://elsewhere"]),
            },
        ),
        st.booleans(),
        st.none(),
    ),
    lambda inner: st.fixed_dictionaries({}, optional={"anyOf": st.lists(inner, max_size=3), "items": inner}),
    max_leaves=8,
)
_NAMES = st.one_of(
    st.sampled_from(["key", "city", "path", "a", "text", "expression", "to", "zone"]), st.text(max_size=8)
)
TOOLS = ("calculator", "time_now", "lookup", "get_weather", "read_file", "write_file", "delete_file", "count_words")


@st.composite
def _cards(draw: st.DrawFn) -> ToolCard:
    properties = draw(st.dictionaries(_NAMES, _RULES, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": properties, "$defs": {"x": draw(_RULES)}}
    schema["required"] = draw(st.lists(st.sampled_from(sorted(properties) or ["ghost"]), max_size=3))
    name = draw(st.sampled_from(["get_weather", "lookup", "t", "add"]))
    return ToolCard(name=name, purpose=draw(_TASKS), input_schema=schema, tier=draw(st.sampled_from(["read", None])))


def _decide(task: str, cards: tuple[ToolCard, ...]) -> Decision | None:
    trace = Trace("run", [Event(0, 0.0, RunStarted(task=task, agent=AgentSpec(tools=cards), nonce="n"))])
    try:
        return decision_for(ModelRequest(task=task, trace=trace, messages=(), dialect="text", tools=cards))
    except ModelRequestRefused:
        return None


@examples(200)
@given(_TASKS, st.lists(_cards(), max_size=3, unique_by=lambda each: each.name))
def test_odd_tasks_and_odd_cards_give_a_call_that_fits_or_a_refusal(task: str, cards: list[ToolCard]) -> None:
    decision = _decide(task, tuple(cards))
    if isinstance(decision, Act):
        (call,) = decision.calls
        (chosen,) = [each for each in cards if each.name == call.tool]
        assert set(chosen.required) & set(chosen.parameters) <= set(call.args) <= set(chosen.parameters)


@examples(150)
@given(_TASKS)
def test_words_in_any_order_give_runs_that_end_with_an_answer_or_a_refusal(task: str) -> None:
    if _decide(task, tuple(map(card, TOOLS))) is not None:
        result = run(task, recorded(TOOLS, []))
        assert result.status == "model_failed"  # nothing is recorded, so every call fails


@pytest.mark.parametrize(
    "part",
    [
        "word ",
        "1+",
        "(",
        "查询的",
        "and then add 2, ",
        "x",
        "'a' ",
        '"',
        "「",
        "- ",
        "a@",
        "/a",
        "x.y ",
        "A and ",
        "a, ",
    ],
)
@pytest.mark.parametrize("size", [600, pytest.param(1_900, marks=pytest.mark.nightly), 100_000])
def test_a_long_task_is_decided(part: str, size: int) -> None:
    _decide(part * (size // len(part)), tuple(map(card, TOOLS)))
