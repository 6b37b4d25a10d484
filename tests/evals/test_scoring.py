"""Results made of records alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evals.trial_making import scored, trial, trials

from taoloop.evals.metrics import METRICS
from taoloop.evals.results import Results, read_results, write_results
from taoloop.evals.scoring import score


def test_results_are_scored_from_stored_trials_without_running_anything(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results = scored(trials("x", [True, False]), trials("y", [[True, True], [False, True]], cost_usd=0.1))
    write_results(results, path)
    stored = read_results(path)
    assert stored == results
    again = scored([trial for trial in stored.trials if trial.configuration == "x"], stored.trials[2:])
    assert again == results
    metrics = json.loads(path.read_text())["metrics"]
    assert set(metrics) == {"x", "y"}
    assert {"value", "low", "high", "n"} <= set(metrics["x"]["task_success"])
    json.dumps(results.to_json(), allow_nan=False)


def test_the_further_configurations_are_compared_with_the_first() -> None:
    results = scored(trials("x", [True]), trials("y", [False]), trials("z", [True]))
    assert [(each.first, each.second) for each in results.comparisons] == [("x", "y"), ("x", "z")]
    assert {each.verdict for comparison in results.comparisons for each in comparison.metrics} == {"inconclusive"}


def test_frames_without_a_language_model_are_compared_only_among_themselves() -> None:
    names = {"offline": "offline", "x": "a:x", "oracle": "oracle", "y": "a:y"}
    records = [record for name in names for record in trials(name, [True])]
    settings = {name: {"model": model} for name, model in names.items()}

    def pairs(*chosen: str, baseline: Results | None = None) -> list[tuple[str, str]]:
        own = [record for record in records if record.configuration in chosen]
        fields: Any = {"suite": "s", "digest": "d", "created_at": 0.0, "version": "1", "baseline": baseline}
        results = score(own, {name: settings[name] for name in chosen}, **fields)
        return [(each.first, each.second) for each in results.comparisons]

    assert pairs(*names) == [("x", "y")]
    assert pairs("offline", "oracle") == [("offline", "oracle")]
    assert pairs("offline", "x") == [("offline", "x")]  # two that were asked for
    earlier = scored(trials("offline", [True]), trials("x", [True]))
    assert pairs("offline", "x", baseline=earlier) == [("offline", "x"), ("baseline: x", "x")]


def test_a_baseline_is_compared_with_the_configuration_of_the_same_name() -> None:
    earlier = scored(trials("x", [False] * 8), trials("y", [True] * 8))
    results = scored(trials("y", [True] * 8), trials("x", [True] * 8), trials("w", [True] * 8), baseline=earlier)
    names = [(each.first, each.second) for each in results.comparisons]
    assert names == [("y", "x"), ("y", "w"), ("baseline: y", "y"), ("baseline: x", "x")]
    assert [each.metrics[0].verdict for each in results.comparisons] == [*["inconclusive"] * 3, "better"]


def test_a_single_configuration_is_compared_with_a_single_one_of_another_name() -> None:
    results = scored(trials("new", [True]), baseline=scored(trials("old", [True])))
    assert [(each.first, each.second) for each in results.comparisons] == [("baseline: old", "new")]


def test_invalid_trials_are_counted_apart_and_in_no_rate() -> None:
    records = [
        trial("a"),
        trial("b", passed=False, fault="agent", category="safety"),
        trial("c", passed=None, fault="simulator", category="edge"),
    ]
    (configuration,) = scored(records).configurations
    assert (configuration.invalid, configuration.faults) == (1, {"agent": 1, "simulator": 1})
    assert configuration.metrics["task_success"].n == 2
    assert {name: each.value for name, each in configuration.by_category.items()} == {"normal": 1, "safety": 0}


def test_k_is_the_number_of_trials_and_cases_with_fewer_do_not_count() -> None:
    records = [*trials("x", [[True, True, True], [True, True, False]]), trial("c", configuration="x")]
    (configuration,) = scored(records).configurations
    assert configuration.k == 3
    assert configuration.metrics["pass_hat_k"].value == 0.5
    assert (configuration.metrics["pass_hat_k"].n, configuration.metrics["task_success"].n) == (2, 7)


def test_flaky_cases_are_named_and_still_counted() -> None:
    (configuration,) = scored(trials("x", [[True, False], [True, True]]), model="oracle").configurations
    assert configuration.flaky == ("c0",)
    assert configuration.metrics["task_success"].value == 3 / 4


@pytest.mark.parametrize("records", [[], [trial(passed=None, status="invalid", answer=None)]])
def test_results_without_a_valid_trial_have_no_figure(records: list[object]) -> None:
    results: Results = scored(records)  # type: ignore[arg-type]  # an empty list
    for configuration in results.configurations:
        assert set(configuration.metrics) == set(METRICS)
        assert {each.value for each in configuration.metrics.values()} == {None}
    assert Results.from_json(json.loads(json.dumps(results.to_json()))) == results
