"""A recorded run is a test: it fails where today's code, cards or policy decide something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.scripting import call

from taoloop import Agent, Limits, ScriptedModel, ToolError, Trace, tool
from taoloop.core.events import ActionRequested, Finished
from taoloop.core.stored_events import event_line
from taoloop.errors import ConfigError
from taoloop.testing import assert_same_decisions, recorded_run

RAN: list[str] = []


@tool(tier="read")
def price(item: str) -> int:
    """The price of an item."""
    RAN.append(item)
    if item == "gold":
        raise ToolError("not for sale", code="not_found")
    return 3


@tool(tier="write")
def buy(item: str) -> str:
    """Buy an item."""
    return f"bought {item}"


SCRIPT: list[Any] = [
    call("price", item="tea"),
    call("price", item="gold"),
    call("price"),
    call("buy", item="tea"),
    "OK",
]


def shop(**options: Any) -> Agent:
    given = {"tools": [price, buy], "approve": lambda _: True, "limits": Limits(max_consecutive_errors=9)}
    return Agent(**{"model": ScriptedModel(SCRIPT), **given, **options})


@pytest.fixture
def trace() -> Trace:
    recorded = shop().run_sync("Get tea.").trace
    RAN.clear()
    return recorded


def failure(check: Callable[[], None]) -> str:
    with pytest.raises(AssertionError) as caught:
        check()
    return str(caught.value)


def test_a_run_decides_the_same_under_the_code_and_the_agent_that_made_it(trace: Trace) -> None:
    assert_same_decisions(trace)
    assert_same_decisions(trace, shop(model="offline"))
    assert RAN == []


def test_a_run_that_was_resumed_or_limited_or_refused_is_a_test_too() -> None:
    agent = shop(approve=None)
    waiting = agent.run_sync("x")
    assert_same_decisions(waiting, agent)
    assert_same_decisions(agent.resume_sync(waiting.run_id, approved_tiers=("write",)), agent)
    limited = shop(max_steps=2, model=ScriptedModel([*SCRIPT[:2], "so far"]))
    result = limited.run_sync("x")
    assert_same_decisions(result, limited)
    assert_same_decisions(shop(approve=lambda _: False).run_sync("x"), agent)


def test_another_verdict_is_told_as_a_diff(trace: Trace) -> None:
    milder = buy.with_card(tier="draft")
    told = failure(lambda: assert_same_decisions(trace, shop(tools=[price, milder])))
    assert "step 4" in told
    assert '-  "verdict": "ask"' in told
    assert '+  "verdict": "allow"' in told


def test_arguments_are_judged_by_the_cards_of_today(trace: Trace) -> None:
    @tool(name="price", tier="read")
    def by_number(item: int) -> int:
        """The price of an item."""
        return 3

    @tool(name="price", tier="read")
    def of_anything(item: str = "tea") -> int:
        """The price of an item."""
        return 3

    stricter = failure(lambda: assert_same_decisions(trace, shop(tools=[by_number, buy])))
    assert "step 1" in stricter
    assert '"verdict": "deny"' in stricter
    milder = failure(lambda: assert_same_decisions(trace, shop(tools=[of_anything, buy])))
    assert "step 3" in milder
    assert "arguments are taken" in milder


def test_a_tool_that_is_gone_is_told(trace: Trace) -> None:
    assert "step 4" in failure(lambda: assert_same_decisions(trace, shop(tools=[price])))


def test_another_prompt_and_another_model_do_not_matter_and_no_key_is_needed(trace: Trace) -> None:
    assert_same_decisions(trace, shop(instructions="Be quick.", model="openai:x", env={}, language="zh"))
    assert_same_decisions(trace, shop(tools=[price, buy, "calculator"]))


def test_a_forged_record_is_told(trace: Trace) -> None:
    events = list(trace.events)
    last = events[-1].fact
    assert isinstance(last, Finished)
    events[-1] = events[-1]._replace(fact=replace(last, answer="forged"))
    told = failure(lambda: assert_same_decisions(Trace("r", events)))
    assert '-  "answer": "forged"' in told
    index = next(e.seq for e in events if isinstance(e.fact, ActionRequested))
    assert "goes another way" in failure(
        lambda: assert_same_decisions(Trace("r", [*events[:index], *_later(events, index)]))
    )


def _later(events: list[Any], index: int) -> list[Any]:
    kept = [event for event in events[index:] if event.fact.kind == "finished"]
    return [event._replace(seq=index + number) for number, event in enumerate(kept)]


def test_runs_are_read_from_json_lines_and_from_a_database(trace: Trace, tmp_path: Path) -> None:
    lines = tmp_path / "run.jsonl"
    lines.write_text("".join(f"{event_line(trace.run_id, event)}\n" for event in trace.events), encoding="utf-8")
    assert_same_decisions(lines, shop())
    assert_same_decisions(str(lines))
    assert recorded_run(lines).run_id == trace.run_id
    database = tmp_path / "runs.db"
    stored = shop(journal=database).run_sync("Get tea.")
    assert_same_decisions(recorded_run(database, stored.run_id), shop())


@pytest.mark.parametrize("content", ["{}", "[1]", "no", '{"kind": "finished", "at": 1, "run_id": "r"}'])
def test_what_is_no_record_is_named_with_its_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(f"\n{content}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=":2:"):
        recorded_run(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        recorded_run(tmp_path / "none")
