"""The restart harness: it finds the effect that a crash doubles or loses, and passes where nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, ScriptedModel, tool
from taoloop.errors import ConfigError
from taoloop.testing import Restart, assert_effect_once, restarts, restarts_of_processes

TASK = "Refund order S-6."
LEDGER = Path("ledger")


def entries() -> list[str]:
    return LEDGER.read_text().split() if LEDGER.exists() else []


def agent_with(refund: Any) -> Agent:
    script: list[Any] = [{"tool_calls": [{"name": "refund", "args": {"order": "S-6"}}]}, "Refunded."]
    return Agent(model=ScriptedModel(script), tools=[refund], policy="autonomous")


def clerk() -> Agent:
    """Its ledger is a file of the folder in which the process works."""

    @tool(tier="write", egress=False, probe=lambda order: order in entries())
    def refund(order: str) -> str:
        """Refund an order."""
        with LEDGER.open("a") as file:
            file.write(f"{order}\n")
        return "refunded"

    return agent_with(refund)


def broken_clerk() -> Agent:
    raise RuntimeError("no key")


def refunds(ledger: list[str], **options: Any) -> Any:
    def make() -> Agent:
        @tool(tier="write", egress=False, **options)
        def refund(order: str) -> str:
            """Refund an order."""
            ledger.append(order)
            return "refunded"

        return agent_with(refund)

    return lambda **more: restarts(make, TASK, effects=lambda: ledger, reset=ledger.clear, **more)


def test_each_event_is_a_point_before_and_after_which_the_run_is_killed() -> None:
    ledger: list[str] = []
    points = []
    for restart in refunds(ledger, probe=lambda order: order in ledger)():
        assert_effect_once(restart)
        assert (restart.result.status, restart.in_doubt) == ("completed", ())
        points.append(str(restart.point))
    assert points[:2] == ["before append 1 (run_started)", "after append 1 (run_started)"]
    assert "before append 3 (observed)" in points, points
    assert len(points) == len(set(points)) == 8


def test_an_effect_that_a_wrong_card_doubles_is_found() -> None:
    """It says that its key makes a second effect impossible, and ignores the key."""
    found = []
    for restart in refunds([], idempotent=True)():
        try:
            assert_effect_once(restart)
        except AssertionError as error:
            found.append(str(error))
    [text] = found
    assert text.startswith("Killed before append 3 (observed) and resumed:\n- happened once more than without the kill")
    assert "Undisturbed: ['S-6']\nAfter the restart: ['S-6', 'S-6']" in text
    assert "idempotency_key" in text
    assert "Observation refund" in text


def test_an_effect_that_a_wrong_probe_loses_is_no_doubt() -> None:
    lost = [
        restart for restart in refunds([], probe=lambda order: bool(order))(at="action_started") if not restart.effects
    ]
    for restart in lost:
        with pytest.raises(AssertionError, match="did not happen: 'S-6'"):
            assert_effect_once(restart, or_in_doubt=True)
    assert [restart.point.moment for restart in lost] == ["after"]


def test_a_call_without_a_probe_is_in_doubt_which_a_test_may_allow() -> None:
    [before, after] = refunds([])(at="action_started")
    assert_effect_once(before)
    assert_effect_once(after, or_in_doubt=True)
    with pytest.raises(AssertionError, match="In doubt, for a person to decide: refund"):
        assert_effect_once(after)
    assert (before.in_doubt, after.in_doubt) == ((), ("refund",))


def test_the_calls_of_a_tool_can_be_the_effects() -> None:
    done: list[str] = []

    def make() -> Agent:
        @tool(tier="write", egress=False, probe=lambda order: order in done)
        def refund(order: str) -> str:
            """Refund an order."""
            done.append(order)
            return "refunded"

        return agent_with(refund)

    for restart in restarts(make, TASK, effects="refund", reset=done.clear, at="observed"):
        assert restart.expected == ["refund call_1"]
        assert_effect_once(restart)
    with pytest.raises(ConfigError, match=r"no tool 'pay'.*It has: refund"):
        next(restarts(make, TASK, effects="pay"))


def test_a_kind_of_event_that_the_run_has_not_is_an_error_that_lists_those_it_has() -> None:
    with pytest.raises(ConfigError, match=r"no event 'votes'.*run_started, .*finished"):
        next(refunds([])(at="votes"))


def test_a_run_without_effects_shows_nothing() -> None:
    restart: Restart = next(restarts(lambda: Agent(model=["Hello."]), "Hi", effects=list))
    with pytest.raises(AssertionError, match="had no effect"):
        assert_effect_once(restart)


@pytest.mark.nightly
def test_a_real_process_dies_by_sigkill_and_the_next_one_goes_on(tmp_path: Path) -> None:
    [restart] = restarts_of_processes(clerk, TASK, effects=entries, folder=tmp_path, at="observed", moments=["before"])
    assert_effect_once(restart)
    assert (restart.result.status, restart.expected) == ("completed", ["S-6"])
    assert (tmp_path / f"{restart.point.append}-before" / "ledger").read_text() == "S-6\n"


@pytest.mark.nightly
def test_a_real_process_may_die_anywhere(tmp_path: Path) -> None:
    ended = list(restarts_of_processes(clerk, TASK, effects=entries, folder=tmp_path))
    for restart in ended:
        assert_effect_once(restart)
    assert len(ended) == 8


@pytest.mark.nightly
def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="RuntimeError: no key"):
        next(restarts_of_processes(broken_clerk, TASK, effects=entries, folder=tmp_path))
