"""The suite failure: whatever goes wrong, no effect happens twice, and what a tool lied about is counted as lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evals.suites.shipped_runs import run_shipped

TOOLS = ["read-fails-once", "read-fails-always", "write-lies", "payment-times-out-after", "mail-times-out-after"]
REPLIES = ["reply-is-empty", "reply-names-an-unknown-tool"]
NAMES = ("task_success", "duplicate_effects", "lost_effects", "tool_success", "recovery", "questions_per_task")


def test_an_oracle_copes_with_wrong_tools_and_drifted_replies(tmp_path: Path) -> None:
    """Calls that ended: 2 + 2 + 2 + 1 + 1 + 1 + 2, of which 1 + 2 + 1 failed; one lie; one question about a mail."""
    run = run_shipped("failure", tmp_path, cases=[*TOOLS, *REPLIES])
    assert run.figures("agent", *NAMES) == (1.0, 0.0, 1 / 7, 7 / 11, 1.0, 1 / 7)


def test_the_offline_model_frames_the_table_from_below(tmp_path: Path) -> None:
    cases = ["read-fails-once", "read-fails-always", "write-lies", "read-changes"]
    run = run_shipped("failure", tmp_path, cases=cases, models=["offline"])
    assert sorted(run.failed("agent")) == sorted(cases)  # a model that fails does not abstain either


@pytest.mark.nightly
def test_a_trial_goes_on_after_its_process_was_killed_with_its_effect_once(tmp_path: Path) -> None:
    """A real process dies by SIGKILL, once its payment has happened and before anybody knows."""
    run = run_shipped("failure", tmp_path, cases=["killed-after-effect"])
    assert run.figures("agent", "task_success", "duplicate_effects", "lost_effects") == (1.0, 0.0, 0.0)


@pytest.mark.nightly
def test_the_whole_suite(tmp_path: Path) -> None:
    """22 cases, eight of them with killed processes; two mails about which a person has to look into the world."""
    run = run_shipped("failure", tmp_path)
    assert run.figures("agent", *NAMES) == (1.0, 0.0, 1 / 22, 23 / 29, 1.0, 2 / 22)
