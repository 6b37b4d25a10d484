"""Worlds of trials."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from taoloop import tool
from taoloop.core.decision import Call
from taoloop.errors import ConfigError, ToolError
from taoloop.evals.cases import ActionPattern, Case, Check
from taoloop.evals.configurations import configurations_of
from taoloop.evals.suite import Suite
from taoloop.evals.trials.suite_run import SuiteRun
from taoloop.evals.worlds import World, current_world, first_state, remove_world


def test_a_world_goes_on_in_the_state_that_an_earlier_process_left(tmp_path: Path) -> None:
    world = World(tmp_path / "trial", {"orders": {"A1": "open"}})
    world.save()
    assert list(tmp_path.iterdir()) == [], "nothing has changed"
    world.state["orders"]["A1"] = "refunded"
    world.effects.append(Call(tool="refund", args={"order": "A1"}))
    world.save()
    world.close()
    (state_file,) = tmp_path.iterdir()
    with state_file.open("a", encoding="utf-8") as file:
        file.write('{"state": {"orders"')  # the process dies

    later = World(tmp_path / "trial", {"orders": {"A1": "open"}})

    assert later.state == {"orders": {"A1": "refunded"}}
    assert later.effects == world.effects
    later.state["orders"]["A2"] = "open"
    later.save()
    later.close()
    assert World(tmp_path / "trial", {}).state == later.state
    remove_world(tmp_path / "trial")
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_is_no_json_any_more_is_an_error_of_the_tool(tmp_path: Path) -> None:
    world = World(tmp_path, {})
    world.state["when"] = object()

    with pytest.raises(ToolError, match="can no longer be stored as JSON"):
        world.save()


def test_there_is_no_world_outside_a_trial() -> None:
    with pytest.raises(ConfigError, match="no trial is running"):
        current_world()


def test_the_state_of_a_case_goes_before_that_of_the_suite() -> None:
    case = Case(case_id="c", task="t", world={"orders": {"A1": {"state": "closed"}}})

    state = first_state({"orders": {"A1": {"state": "open", "n": 1}, "A2": {}}}, case)

    assert state == {"orders": {"A1": {"state": "closed", "n": 1}, "A2": {}}}


def test_trials_at_the_same_time_have_worlds_of_their_own(tmp_path: Path) -> None:
    meeting = asyncio.Barrier(4)

    @tool(tier="write")
    async def deposit(amount: int) -> int:
        """Pay in.

        Args:
            amount: how much
        """
        before: int = current_world().state["balance"]
        await meeting.wait()  # until all four trials are here
        current_world().state["balance"] = before + amount
        (current_world().files / "receipt.txt").write_text(str(amount), encoding="utf-8")
        return before + amount

    def cases() -> list[Case]:
        return [
            Case(
                case_id=f"c{amount}",
                task=f"Pay {amount} in.",
                world={"balance": 100},
                checks=(Check(kind="world", expected={"balance": 100 + amount}),),
                expected_actions=(ActionPattern(tool="deposit", args={"amount": amount}),),
                script=({"tool_calls": [{"name": "deposit", "args": {"amount": amount}}]}, "Done."),
            )
            for amount in range(1, 5)
        ]

    suite = Suite(name="desk", cases=cases, tools=(deposit,), model="oracle", people="approve", concurrency=4)
    run = SuiteRun(suite=suite, configurations=configurations_of(suite, {}), database=tmp_path / "e.db", env={})

    outcome = asyncio.run(run.run())

    assert [record.passed for record in outcome.records] == [True] * 4
    assert sum(record.counts.duplicate_effects + record.counts.lost_effects for record in outcome.records) == 0
    assert not (tmp_path / "e.db.worlds").exists(), "nothing of a trial that passed is left"
