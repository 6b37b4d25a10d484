"""A file of results is read as it was written, and what no evaluation writes is refused with file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.evals.trial_making import scored, trials

import taoloop
from taoloop.errors import AgentFileError, ConfigError
from taoloop.evals.results import read_results, write_results
from taoloop.evals.stored_fields import line_of

Change = Callable[[dict[str, Any]], Any]


def stored(path: Path) -> dict[str, Any]:
    """The data of a file with two configurations of two cases."""
    write_results(scored(trials("x", [True, False], cost_usd=0.1), trials("y", [True, True])), path)
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data | {"version": taoloop.__version__}


def test_each_trial_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_results(scored(trials("x", [True, False])), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line.rstrip(","))["case_id"] for line in lines[2:-1]] == ["c0", "c1"]
    assert line_of(path.read_text(encoding="utf-8"), ("trials", 1, "passed")) == 4
    write_results(scored([]), path)
    assert read_results(path).trials == ()


PROBLEMS: list[tuple[Change, int, str]] = [
    (lambda data: data["trials"].append(data["trials"][1]), 5, "trial 0 of case 'c1' and configuration 'x' is there"),
    (lambda data: data["trials"][2].update(cost_usd=-0.5), 3, r"trials\[2\]\.cost_usd: a number of 0 or more"),
    (lambda data: data["trials"][2].update(cost_usd=float("nan")), 3, r"cost_usd: .* expected, not NaN"),
    (lambda data: data["trials"][2].update(latency_s=float("inf")), 3, r"latency_s: .* expected, not Infinity"),
    (lambda data: data["trials"][1].update(passed="yes"), 2, 'passed: true or false is expected, not "yes"'),
    (lambda data: data["trials"][1].update(passed=1), 2, "passed: true or false is expected, not 1"),
    (lambda data: data["trials"][1].update(mood="good"), 2, r"trials\[1\]\.mood: unknown field `mood`; the fields are"),
    (lambda data: data["trials"][1].update(trial=-1), 2, "a whole number of 0 or more is expected, not -1"),
    (lambda data: data["trials"][1].update(category="odd"), 2, 'one of normal, .* is expected, not "odd"'),
    (lambda data: data["trials"][1].update(counts={"steps": -1}), 2, r"counts\.steps: a whole number of 0 or more"),
    (lambda data: data["trials"][1].update(counts={"stepps": 1}), 2, r"counts\.stepps: unknown field"),
    (
        lambda data: data["trials"][1].update(checks=[{"kind": "em", "passed": True, "score": 2}]),
        2,
        r"checks\[0\]\.sco",
    ),
    (lambda data: data["trials"][1].update(configuration="z"), 2, "there is no configuration 'z'"),
    (lambda data: data["trials"][3].pop("passed"), 4, "the field `passed` is missing"),
    (lambda data: data["trials"].insert(0, 7), 1, r"trials\[0\]: a mapping is expected, not 7"),
    (lambda data: data["metrics"]["x"]["cost_usd"].update(value=float("nan")), 0, "metrics.x.cost_usd.value: a finite"),
    (lambda data: data["metrics"]["x"]["cost_usd"].update(low=-1), 0, r"metrics\.x\.cost_usd\.low: a number of 0"),
    (lambda data: data["metrics"]["x"]["cost_usd"].update(lo=1), 0, r"metrics\.x\.cost_usd\.lo: unknown field"),
    (lambda data: data["metrics"].pop("y"), 0, r"configurations\[1\]\.name: `metrics` has none of this"),
    (lambda data: data["configurations"].append(data["configurations"][0]), 0, "a configuration of this name is there"),
    (lambda data: data["configurations"][0]["settings"].update(seed=float("inf")), 0, r"settings\.seed: a finite"),
    (lambda data: data["comparisons"][0]["metrics"][0].update(verdict="great"), 0, r"verdict: one of better, worse"),
    (lambda data: data["comparisons"][0]["metrics"][0].update(p=1.5), 0, r"metrics\[0\]\.p: a number from 0 to 1"),
    (lambda data: data.update(extra=1), 0, "extra: unknown field `extra`"),
    (lambda data: data.update(format=2), 0, "format: format 1 is expected, not 2"),
]


@pytest.mark.parametrize(("change", "line", "text"), PROBLEMS)
def test_what_no_evaluation_writes_is_refused_with_file_and_line(
    tmp_path: Path, change: Change, line: int, text: str
) -> None:
    """S3-53: duplicate trials, NaN, infinite and negative figures, and unknown fields are never read silently."""
    path = tmp_path / "results.json"
    data = stored(path)
    change(data)
    trial_lines = data.pop("trials")
    head = json.dumps(data).removesuffix("}")
    path.write_text(f'{head}, "trials": [\n' + ",\n".join(map(json.dumps, trial_lines)) + "\n]}\n", encoding="utf-8")
    with pytest.raises(AgentFileError, match=text) as caught:
        read_results(path)
    assert (caught.value.path, caught.value.line) == (str(path), line + 1)
    assert "tao eval SUITE --out FILE.json" in caught.value.hint


def test_a_file_that_is_no_json_or_of_another_version_says_so(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    data = stored(path) | {"version": "99.0", "future": 1}
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(AgentFileError, match=r"results of taoloop 99\.0, which .* cannot read: future: unknown field"):
        read_results(path)
    path.write_text('{\n"format": 1,\n', encoding="utf-8")
    with pytest.raises(AgentFileError, match=r"results\.json:3: these are no results"):
        read_results(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(AgentFileError, match="these are no results"):
        read_results(path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(AgentFileError, match=r"a mapping is expected, not \[\]"):
        read_results(path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_results(tmp_path / "none.json")


def test_the_ends_of_quantiles_of_few_cases_in_earlier_files_are_no_interval(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    data = stored(path)
    data["metrics"]["x"]["latency_p50_s"] = {
        "value": 2,
        "low": 1,
        "high": 3,
        "n": 3,
        "cases": 3,
        "notes": ["few_cases"],
    }
    path.write_text(json.dumps(data), encoding="utf-8")
    figure = read_results(path).configurations[0].metrics["latency_p50_s"]
    assert (figure.value, figure.low, figure.high) == (2, None, None)


def test_the_line_is_found_whatever_the_layout() -> None:
    text = json.dumps({"a": [{"b": {"c": 1, "d": 2}}, {"b": 3}], "e": []}, indent=2)
    for path in (("a",), ("a", 0, "b", "d"), ("a", 1, "b"), ("e",)):
        name = path[-1]
        assert f'"{name}"' in text.splitlines()[line_of(text, path) - 1]
    assert line_of(text, ("a", 0, "missing")) == 3
    assert line_of(text, ("e", 4)) == line_of(text, ("e",))
