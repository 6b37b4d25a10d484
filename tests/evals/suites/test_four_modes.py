"""The suite four_modes: what each mode of the ReAct paper can do, and what it cannot."""

from __future__ import annotations

from pathlib import Path

from tests.evals.suites.shipped_runs import run_shipped


def test_each_mode_is_right_where_it_has_what_the_question_needs(tmp_path: Path) -> None:
    """S4-40: pages need actions, chains need thoughts, two pages need both, and two questions need neither."""
    run = run_shipped("four_modes", tmp_path)
    modes = ("react", "act_only", "reason_only", "standard")
    assert [run.figures(mode, "task_success")[0] for mode in modes] == [8 / 8, 4 / 8, 4 / 8, 2 / 8]
    assert run.failed("reason_only") == ["built", "length", "born", "lake"]
    assert run.failed("act_only") == ["born", "lake", "apples", "trains"]


def test_an_oracle_is_right_in_each_mode_and_the_offline_model_in_none(tmp_path: Path) -> None:
    run = run_shipped("four_modes", tmp_path, cases=["born", "apples"], models=["oracle", "offline"])
    rates = {each.name: each.metrics["task_success"].value for each in run.results.configurations}
    assert {rate for name, rate in rates.items() if name.startswith("oracle")} == {1.0}
    assert {rate for name, rate in rates.items() if name.startswith("offline")} == {0.0}
