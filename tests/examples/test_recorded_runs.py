"""Recorded runs of a real model give the figures that their record holds, counted here without the loop."""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PART = ROOT / "src" / "taoloop" / "evals" / "suites" / "data" / "fever_davinci002_sample.jsonl"
EXAMPLES = ROOT / "examples"


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import recorded_runs  # noqa: PLC0415  # found through the path above

    yield recorded_runs
    sys.modules.pop("recorded_runs", None)


@pytest.fixture
def runs(recorded: ModuleType) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = recorded.read(PART)
    return found


def test_the_loop_gives_the_figures_of_the_record(recorded: ModuleType, runs: list[dict[str, Any]]) -> None:
    """S2-1, S2-2: 1,250 steps and an exact match of 0.540 over all 500 runs; here over the part that is kept."""
    found = recorded.figures(runs)
    written = [step["action"] for run in runs for step in run["steps"]]
    malformed = [action for action in written if not action.strip().endswith("]")]
    assert found.runs == len(runs)
    assert found.steps == len(written)
    assert found.matched == sum(run["em"] for run in runs)
    assert found.malformed == len(malformed) == 6
    assert found.actions == Counter(action.strip().partition("[")[0] for action in written if action not in malformed)
    assert found.repeated == sum(len(run["steps"]) - len({step["action"] for step in run["steps"]}) for run in runs)
    assert found.second_calls == 3


def test_a_run_without_an_answer_ends_at_the_paper_s_limit(recorded: ModuleType, runs: list[dict[str, Any]]) -> None:
    unanswered = [run for run in runs if not run["answer"]]
    results = [recorded.play(run) for run in unanswered]
    assert unanswered
    assert {(result.status, result.answer) for result in results} == {("max_steps_exceeded", None)}


def test_a_call_that_is_not_the_recorded_one_is_seen(recorded: ModuleType, runs: list[dict[str, Any]]) -> None:
    run = runs[0]
    changed = {**run["steps"][0], "action": "Search[something else]"}
    tools = {tool.name: tool for tool in recorded.world([changed, *run["steps"][1:]])}
    with pytest.raises(recorded.ToolError, match="not what was recorded"):
        tools["Search"](argument="Paramore")


def test_the_figures_are_printed(recorded: ModuleType, runs: list[dict[str, Any]]) -> None:
    assert str(recorded.figures(runs)).startswith("35 runs, 108 environment steps, exact match 0.514\n")


def test_a_file_that_is_not_there_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["recorded_runs.py", "gone.jsonl"])
    with pytest.raises(SystemExit, match=r"^gone\.jsonl: No such file"):
        runpy.run_path(str(EXAMPLES / "recorded_runs.py"), run_name="__main__")
