"""Injected drift: repeatable, at its rate, and without any effect on what a run does to the world."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from taoloop import Agent, Limits, ScriptedModel, tool
from taoloop.core.decision import Act, Answer, Call, Decision
from taoloop.core.events import ModelReplied
from taoloop.dialects import get_dialect
from taoloop.errors import ConfigError, UnknownName
from taoloop.runtime.result import Result
from taoloop.testing import DRIFT, DriftInjector, calls, explained, violations

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
    """Issue 3's figure: the run finishes, with the same side effects as without."""
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
    plain = {reply.text for reply in replies(run("json", rate=0, steps=300)[0])}
    drifted = replies(run("json", rate=0.2, steps=300)[0])
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
