"""Judges in a suite: what they read, what their nonsense makes of a trial, and that their cost counts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from taoloop.evals.cases import Check
from taoloop.evals.checks.judges import Judges
from taoloop.evals.checks.outcome_texts import outcome_detail
from taoloop.evals.configurations import configurations_of
from taoloop.evals.suite_file import read_suite
from taoloop.evals.trials.suite_run import SuiteOutcome, SuiteRun

SUITE = """\
suite: judged
model: oracle
max_cost_usd: 1.0
cases:
  - id: capital
    task: What is the capital of France?
    script: ["It is Paris."]
    expect:
      judge: {{question: "Does the answer name the capital?", model: "scripted:{script}"}}
"""


def run(folder: Path, *replies: object) -> SuiteOutcome:
    (folder / "judge.json").write_text(json.dumps(replies), encoding="utf-8")
    (folder / "suite.yaml").write_text(SUITE.format(script=folder / "judge.json"), encoding="utf-8")
    suite = read_suite(folder / "suite.yaml")
    evaluation = SuiteRun(suite=suite, configurations=configurations_of(suite, {}), database=folder / "runs.db")
    return asyncio.run(evaluation.run())


def test_a_judge_decides_a_trial_and_its_cost_counts(tmp_path: Path) -> None:
    outcome = run(tmp_path, {"text": '{"answer": "right"}', "cost_usd": 0.25})
    [record] = outcome.records
    assert (record.passed, record.fault) == (True, None)
    assert record.checks[0].judge.startswith("scripted:")
    assert outcome.progress.cost_usd == 0.25
    assert record.cost_usd == 0.0  # what a judge costs is no cost of the agent


def test_a_mocked_environment_asks_no_provider() -> None:
    check = Check(kind="judge", expected="Is it right?", settings={"model": "openai:gpt-4o-mini"})
    assert Judges({"AI_MOCK": "1"}).model(check).model.spec == "offline"


def test_nonsense_makes_the_trial_invalid_by_the_fault_of_the_judge(tmp_path: Path) -> None:
    [record] = run(tmp_path, "Lovely.", "Lovely!").records
    assert (record.passed, record.fault, record.fault_rule) == (None, "judge", "judge_undecided")
    assert 'neither right nor wrong: "Lovely!"' in outcome_detail(record.checks[0])
