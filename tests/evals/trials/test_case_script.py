"""Models that play scripts of cases."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from taoloop.errors import AgentFileError
from taoloop.evals.cases import Case, Check
from taoloop.evals.configurations import configurations_of
from taoloop.evals.suite import Axis, Suite
from taoloop.evals.trials.case_script import require_script
from taoloop.evals.trials.suite_run import SuiteRun

CALL = {"tool_calls": [{"name": "calculator", "args": {"expression": "2 + 3"}}]}
CASE = Case(
    case_id="sum",
    task="Add 2 and 3.",
    checks=(Check(kind="number", expected=5),),
    script=(CALL, "It is 5."),
    scripts={"lazy": ("It is 4.",), "early": (CALL,)},
)


def test_the_oracle_is_right_in_every_dialect_and_strategy_and_other_scripts_are_what_they_are(tmp_path: Path) -> None:
    suite = Suite(name="sums", cases=lambda: (CASE,), tools=("calculator",))
    chosen: dict[Axis, tuple[str, ...]] = {
        "models": ("oracle", "script:lazy", "script:early"),
        "dialects": ("native", "text", "json", "fenced"),
        "strategies": ("react", "reason_only", "cot_sc:n=3"),
    }
    run = SuiteRun(suite=suite, configurations=configurations_of(suite, chosen), database=tmp_path / "evals.db", env={})

    outcome = asyncio.run(run.run())

    passed = {record.configuration: record.passed for record in outcome.records}
    assert len(passed) == 36
    assert {name for name, right in passed.items() if right} == {name for name in passed if name.startswith("oracle")}
    statuses = {record.status for record in outcome.records if "early / react" in record.configuration}
    assert statuses == {"model_failed"}, "a script that is over is no answer"


def test_a_script_that_is_missing_or_no_reply_names_the_line_of_its_case() -> None:
    case = Case(case_id="sum", task="t", script=({"txt": "a"},), scripts={"a": ("b",)}, file="suite.yaml", line=3)

    for spec, message in (
        ("oracle", "unknown key 'txt'"),
        ("script:b", "no script for the model 'script:b'. It has: oracle, script:a"),
    ):
        with pytest.raises(AgentFileError, match=rf"suite\.yaml:3: .*{message}"):
            require_script(case, spec)
