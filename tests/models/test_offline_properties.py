"""Whatever the task and the cards hold: no crash, and every call fits the card it is for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from taoloop.models.offline.extract import extract, scaled
from taoloop.models.offline.numerals import chinese_number
from taoloop.models.offline.plan import decide
from tests.models import test_offline_chains as chains
from tests.models import test_offline_effects as effects
from tests.models.test_offline_run import World
from tests.models.test_offline_world import (
    ALL,
)
from tests.sizes import examples

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer
from taoloop.core.events import Event, RunStarted
from taoloop.core.trace import Trace
from taoloop.models.offline.arithmetic import hundredth

_WORD_LIST = """
then add 2 the weather in Paris 北京 天气 然后 加 3.5 squared look up key of huala . , 。 ( ) ** + - 25% 'a b' read
notes.txt and bob@x.org send USD to EUR half sum 的 和 平方 三 one two it result Asia/Tokyo 现在 几点
"""
_WORDS = st.sampled_from(_WORD_LIST.split())
_TASKS = st.one_of(st.text(max_size=120), st.lists(_WORDS, max_size=25).map(" ".join))
_TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
_SIMPLE = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(_TYPES, st.lists(_TYPES, max_size=3)),
        "description": st.one_of(st.text(max_size=30), st.integers()),
        "enum": st.lists(st.one_of(st.text(max_size=5), st.integers(), st.none()), max_size=4),
        "format": st.sampled_from(["email", "uri", "date", "nonsense"]),
        "$ref": st.sampled_from(["#/$defs/x", "#", "#/properties", "http://elsewhere"]),
        "minimum": st.integers(),
    },
)
_RULES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(_SIMPLE, st.booleans(), st.none()),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": _TYPES,
            "anyOf": st.lists(inner, max_size=3),
            "items": inner,
            "properties": st.dictionaries(st.text(max_size=8), inner, max_size=3),
            "required": st.lists(st.text(max_size=8), max_size=2),
        },
    ),
    max_leaves=8,
)
_NAMES = st.one_of(
    st.sampled_from(["key", "city", "path", "a", "text", "expression", "to", "zone", "query"]), st.text(max_size=8)
)


@st.composite
def _cards(draw: st.DrawFn) -> ToolCard:
    properties = draw(st.dictionaries(_NAMES, _RULES, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema["required"] = draw(st.lists(st.sampled_from(sorted(properties) or ["ghost"]), max_size=3))
    if draw(st.booleans()):
        schema["$defs"] = {"x": draw(_RULES)}
    purpose = draw(st.one_of(_TASKS, st.text(max_size=40)))
    return ToolCard(
        name=draw(st.sampled_from(["get_weather", "lookup", "t", "add"])), purpose=purpose, input_schema=schema
    )


def _trace(task: str, cards: tuple[ToolCard, ...]) -> Trace:
    started = RunStarted(task=task, agent=AgentSpec(tools=cards), nonce="n")
    return Trace("run", [Event(0, 0.0, started)])


_PYTHON = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def _fits(value: Any, rule: Any) -> bool:
    kind = rule.get("type") if isinstance(rule, dict) else None
    kinds = [kind] if isinstance(kind, str) else kind or []
    if not kinds or "anyOf" in rule or "$ref" in rule:
        return True
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number" in kinds or ("integer" in kinds and float(value).is_integer())
    return any(isinstance(value, _PYTHON[kind]) for kind in kinds if kind in _PYTHON)


@examples(300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(_TASKS, st.lists(_cards(), max_size=3))
def test_odd_tasks_and_odd_cards_give_a_decision_that_fits(task: str, cards: list[ToolCard]) -> None:
    decision = decide(task, cards, _trace(task, tuple(cards)))
    if not isinstance(decision, Act):
        assert decision.text
        return
    (call,) = decision.calls
    offered = [card for card in cards if card.name == call.tool]
    assert any(
        set(call.args) <= set(card.parameters)
        and {name for name in card.required if name in card.parameters} <= set(call.args)
        and all(_fits(value, card.parameters[name]) for name, value in call.args.items())
        for card in offered
    )


@examples(100)
@given(_TASKS)
def test_calls_pass_the_tools_own_checks_and_runs_end(task: str) -> None:
    world = World(task, ALL, most=30)
    assert world.answer
    assert not [call for call in world.trace.calls.values() if _error(call) == "invalid_arguments"]
    assert len(set(map(str, world.steps))) == len(world.steps)


def _error(call: Any) -> str:
    return call.observed.error.code if call.observed.error else ""


@pytest.mark.parametrize(
    "part",
    [
        "word ",
        "1+",
        "(",
        "查询的",
        "and then add 2, ",
        "a of b ",
        "x",
        "in A ",
        '"',
        "「",
        "市",
        "- ",
        "a@",
        "/a",
        "一",
        "x.y ",
        "is warmer A than ",
        "A A A warmer ",
        "the a of A's b and ",
        "1 比 2 多 ",
        "巴黎比",
        "How many times ",
        "total of A and ",
        "write x in ",
        "A和",
        "Send ",
    ],
)
def test_a_task_of_100_kb_is_decided_on_its_head_and_tail(part: str) -> None:
    task = part * (100_000 // len(part))
    cards = tuple(each.card for each in ALL)
    assert isinstance(decide(task, cards, _trace(task, cards)), Act | Answer)


@pytest.mark.parametrize(
    ("text", "number"),
    [("三", "3"), ("十二", "12"), ("二百", "200"), ("三点五", "3.5"), ("两千零二十六", "2026"), ("二〇二六",
    "2026"), ("一百二十三", "123"),
     ("三万五千", "35000"), ("十", "10"), ("一亿", "100000000"), ("两", "2"), ("好", None)],
)  # fmt: skip
def test_chinese_numerals(text: str, number: str | None) -> None:
    assert chinese_number(text) == number


@pytest.mark.parametrize(
    ("text", "result"),
    [("25", "0.25"), ("5", "0.05"), ("150", "1.5"), ("100", "1"), ("2.5", "0.025"), ("0", "0"), ("-20", "-0.2")],
)
def test_a_percentage_is_a_decimal(text: str, result: str) -> None:
    assert hundredth(text) == result


def test_scaled_numbers() -> None:
    assert [scaled("1.2", 1_000_000), scaled("3", 10_000), scaled("1.2345", 100)] == ["1200000", "30000", "123.45"]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("send 'hi there' to bob@example.com", ["quoted", "email"]),
        ("open https://a.b/c?d=1.", ["url"]),
        ("read ./a/b.txt, notes.md and /etc/hosts", ["path", "path", "path"]),
        ("一下 一起 百度 第一 十分", []),
        ("三亚", ["place"]),
        ("从 2026年3月5日 到 2026-04-01", ["date", "date"]),
        ("huala.post_count in Asia/Tokyo", ["key", "zone"]),
        ("$5 to EUR", ["currency", "currency", "number"]),
        ("and/or km/h he/she", []),
        ("the 1st of 3 apples", ["number"]),
    ],
)
def test_values_are_found_by_kind(text: str, kinds: list[str]) -> None:
    assert sorted(atom.kind for atom in extract(text).atoms) == sorted(kinds)


_SAID = [task for task, *_ in (*chains.TASKS, *effects.TASKS)]
_PIECES = sorted(
    {word for task in _SAID for word in re.findall(r"[A-Za-z0-9'@.\-/]+|[\u4e00-\u9fff]{1,3}|[?.,:“”]", task)}
)
_MADE = st.one_of(
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=14).map(" ".join),
    st.tuples(
        st.sampled_from(_SAID), st.sampled_from([" and ", ", then ", "，然后", " of ", "的"]), st.sampled_from(_SAID)
    ).map("".join),
)
_OFFERED = {each.name: each for each in (*chains.TOOLS, *effects.TOOLS)}


@examples(150, suppress_health_check=[HealthCheck.too_slow])
@given(_MADE)
def test_words_of_tasks_in_any_order_give_calls_that_the_tools_take(task: str) -> None:
    cards = tuple(tool.card for tool in _OFFERED.values())
    decision = decide(task, cards, _trace(task, cards))
    if isinstance(decision, Act):
        (call,) = decision.calls
        _OFFERED[call.tool].prepare(call.args)
