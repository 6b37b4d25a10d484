"""Injected drift: repeatable, at its rate, and without any effect on what a run does to the world."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop import Agent, Limits, ScriptedModel, tool
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision
from taoloop.core.events import ModelReplied
from taoloop.core.views.transcript import Result
from taoloop.dialects import get_dialect
from taoloop.dialects.parsing.strict_json import json_equal
from taoloop.errors import ConfigError, TaoError, UnknownName
from taoloop.evals.trouble.drift import IntendedReply
from taoloop.testing import DRIFT, DriftInjector, calls, explained, violations
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox

STEPS = 30
DIALECTS = ("text", "json", "fenced", "native")


def booking(ledger: list[tuple[str, int, bool]]) -> Any:
    @tool(tier="write")
    async def book(to: str, amount: int, paid: bool) -> str:
        """Book an amount."""
        ledger.append((to, amount, paid))
        return "booked"

    return book


def script(dialect: str, steps: int = STEPS) -> ScriptedModel:
    acts: list[Decision] = [
        Act(calls=(Call(tool="book", args={"amount": n, "paid": n % 2 == 0, "to": "Ada"}),), reason="It is due.")
        for n in range(steps)
    ]
    return ScriptedModel([get_dialect(dialect).write(one) for one in (*acts, Answer(text="All is booked."))])


def run(dialect: str, steps: int = STEPS, **options: Any) -> tuple[Result, list[tuple[str, int, bool]]]:
    ledger: list[tuple[str, int, bool]] = []
    agent = Agent(
        model=DriftInjector(script(dialect, steps), **options),
        dialect=dialect,
        tools=[booking(ledger)],
        approved_tiers=("write",),
        limits=Limits(max_steps=None),
    )
    return agent.run_sync("Book the amounts."), ledger


def replies(result: Result) -> list[ModelReplied]:
    return [event.fact for event in result.trace.events if isinstance(event.fact, ModelReplied)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_thirty_steps_with_drift_in_a_fifth_of_the_replies_have_the_same_effects(dialect: str, seed: int) -> None:
    """The run finishes, with the same side effects as without drift."""
    _, expected = run(dialect, rate=0)
    result, ledger = run(dialect, rate=0.2, seed=seed)
    with explained(result):
        assert (result.status, result.answer) == ("completed", "All is booked.")
        assert ledger == expected
        assert len(calls(result)) == STEPS
        assert violations(result) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_even_if_every_reply_drifts_nothing_is_done_twice_or_wrongly(dialect: str) -> None:
    result, ledger = run(dialect, rate=1.0, seed=3)
    _, expected = run(dialect, rate=0)
    with explained(result):
        assert ledger == expected
        assert result.status == "completed"


def test_the_same_run_drifts_in_the_same_way() -> None:
    first, second = (run("text", seed=7)[0] for _ in range(2))
    assert [(reply.text, reply.tool_calls) for reply in replies(first)] == [
        (reply.text, reply.tool_calls) for reply in replies(second)
    ]
    other = run("text", seed=8)[0]
    assert [reply.text for reply in replies(first)] != [reply.text for reply in replies(other)]


def test_about_that_part_of_the_replies_drifts() -> None:
    plain = {reply.text for reply in replies(run("json", rate=0, steps=60)[0])}
    drifted = [reply for seed in range(5) for reply in replies(run("json", rate=0.2, steps=60, seed=seed)[0])]
    assert 0.15 <= sum(reply.text not in plain for reply in drifted) / len(drifted) <= 0.25


def test_without_a_bound_errors_in_a_row_may_end_a_run() -> None:
    result, ledger = run("text", rate=1.0, classes=["empty"], in_a_row=None)
    assert (result.status, ledger) == ("unreadable", [])


def test_one_injector_serves_many_runs_at_once() -> None:
    model = DriftInjector(script("text", 5), seed=1)
    agent = Agent(model=model, dialect="text", tools=[booking([])], approved_tiers=("write",), max_steps=20)

    async def many() -> list[Result]:
        return list(await asyncio.gather(*(agent.run("Book the amounts.") for _ in range(5))))

    results = asyncio.run(many())
    assert {result.status for result in results} == {"completed"}
    assert len({tuple(reply.text for reply in replies(result)) for result in results}) == 1


def test_a_reply_that_is_broken_in_the_script_stays_as_it_is() -> None:
    """Drift is put on top of readable replies; a script that tests the repair keeps its own broken one."""
    model = DriftInjector(ScriptedModel(["Thought: hm", "Final Answer: 5"]), rate=0.0)
    result = Agent(model=model, dialect="text").run_sync("How many?")
    assert (result.answer, len(replies(result))) == ("5", 2)


def test_classes_say_what_a_reader_may_make_of_them() -> None:
    assert {one.outcome for one in DRIFT.values()} == {"recoverable", "reject"}
    assert all(name == one.name for name, one in DRIFT.items())


def test_unknown_classes_and_rates_are_refused() -> None:
    with pytest.raises(UnknownName, match="class of drift"):
        DriftInjector(script("text"), classes=["colour"])
    with pytest.raises(ConfigError, match="rate"):
        DriftInjector(script("text"), rate=20)


# the classes: a recoverable reply holds its decision, one to be rejected holds none


@tool(tier="write")
def send_money(to: str, amount: int, note: str = "", urgent: bool = False) -> str:
    """Send money to somebody."""
    return "sent"


@tool(tier="read")
def look_up(key: str) -> str:
    """Look something up."""
    return key


TOOLS = Toolbox([send_money, look_up])
CARDS: tuple[ToolCard, ...] = TOOLS.cards

DECISIONS: tuple[Decision, ...] = (
    Act(calls=(Call(tool="send_money", args={"to": "Ada", "amount": 5}),), reason="She is owed money."),
    Act(calls=(Call(tool="send_money", args={"amount": 5, "urgent": True, "to": "Bob"}),)),
    Act(
        calls=(Call(tool="send_money", args={"amount": 7, "note": "for the trip", "to": "Cleo"}),), reason="It is due."
    ),
    Act(calls=(Call(tool="look_up", args={"key": "tea"}),), reason="I need the price."),
    Answer(text="Ada has got 5"),
    Answer(text="Done. The price is 3.5, and Bob owes it.", reason="All is known."),
)


def sent(decision: Decision, dialect: str) -> IntendedReply:
    reply = get_dialect(dialect).write(decision)
    return IntendedReply(decision=decision, dialect=dialect, cards=CARDS, reply=reply)


def believed(one: IntendedReply, name: str) -> Decision | None:
    """What would come of the corrupted reply: its decision if anything would run or be answered, else None."""
    corrupted = DRIFT[name].corrupt(one)
    assert corrupted is not None
    read = get_dialect(one.dialect).read(corrupted, CARDS)
    if isinstance(read, Answer):
        return read
    if not isinstance(read, Act):
        return None
    try:
        prepared = [Call(tool=call.tool, args=dict(of(call.tool).prepare(call.args).args)) for call in read.calls]
    except TaoError:
        return None
    return Act(calls=tuple(prepared))


def of(name: str) -> Tool:
    return TOOLS.get(name)


def meant(decision: Decision) -> Decision:
    """The decision without what may differ: its reason."""
    if isinstance(decision, Answer):
        return Answer(text=decision.text)
    return Act(calls=tuple(Call(tool=c.tool, args=dict(of(c.tool).prepare(c.args).args)) for c in decision.calls))


def plain(decision: Decision | None) -> Any:
    if isinstance(decision, Act):
        return [(call.tool, call.args) for call in decision.calls]
    return decision and decision.text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", DRIFT)
def test_drift_never_makes_another_decision(name: str, dialect: str) -> None:
    """The promise behind the whole: nothing runs, and nothing is answered, but what the model meant."""
    for decision in DECISIONS:
        one = sent(decision, dialect)
        if DRIFT[name].corrupt(one) is None:
            continue
        got = believed(one, name)
        if DRIFT[name].outcome == "reject":
            assert got is None, (decision, DRIFT[name].corrupt(one))
        elif got is not None:
            assert json_equal(plain(got), plain(meant(decision))), (decision, DRIFT[name].corrupt(one))


@pytest.mark.parametrize("name", DRIFT)
def test_every_class_applies_somewhere_and_changes_the_reply(name: str) -> None:
    made = [
        (one.reply, corrupted)
        for dialect in DIALECTS
        for decision in DECISIONS
        if (corrupted := DRIFT[name].corrupt(one := sent(decision, dialect))) is not None
    ]
    assert made
    assert all(before != after for before, after in made)


values = st.one_of(
    st.text(max_size=8), st.booleans(), st.none(), st.integers(), st.lists(st.text(max_size=4), max_size=2)
)


@examples(100)
@given(
    st.sampled_from(list(DRIFT)),
    st.sampled_from(DIALECTS),
    st.dictionaries(st.text(max_size=6), values, max_size=3),
    st.text(max_size=30),
)
def test_no_class_fails_whatever_the_decision(name: str, dialect: str, args: dict[str, Any], text: str) -> None:
    for decision in (Act(calls=(Call(tool="send_money", args=args),), reason=text), Answer(text=text or "x")):
        DRIFT[name].corrupt(sent(decision, dialect))
