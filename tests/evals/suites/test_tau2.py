"""The suite tau2: a checkout of the user's own, the data at the end, and a customer who may stray."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evals.suites.shipped_runs import run_shipped
from tests.security.test_tau_bench_checkout import write_tau2

from taoloop.errors import ConfigError
from taoloop.evals.suites.tau_cases import CUSTOMER, HOME


def test_without_a_checkout_the_suite_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOME, raising=False)
    with pytest.raises(ConfigError, match=r"needs a checkout of tau2-bench; TAU2_HOME is ''. Clone tau2-bench"):
        run_shipped("tau2", tmp_path)


def test_tasks_are_right_where_the_data_are_and_a_customer_who_strays_counts_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of each domain, with one write. A customer who makes up an order is the simulator's fault."""
    write_tau2(tmp_path / "checkout", "tau2-bench")
    monkeypatch.setenv(HOME, str(tmp_path / "checkout"))
    monkeypatch.delenv(CUSTOMER, raising=False)
    first, second = tmp_path / "first", tmp_path / "second"
    run = run_shipped("tau2", first, models=["oracle", "script:asking", "offline"])
    assert run.figures("oracle", "task_success", "duplicate_effects") == (1.0, 0.0)
    assert run.figures("script:asking", "task_success") == (1.0,)
    assert run.figures("offline", "task_success") == (0.0,)
    (tmp_path / "customer.yaml").write_text('- I am Ann, and my order is "#W777".\n')
    monkeypatch.setenv(CUSTOMER, f"scripted:{tmp_path / 'customer.yaml'}")
    run = run_shipped("tau2", second, models=["script:asking"])
    results = run.of("agent") if len(run.results.configurations) > 1 else run.results.configurations[0]
    assert (results.invalid, dict(results.faults)) == (2, {"simulator": 2})
    assert results.metrics["task_success"].value is None
    assert [trial.fault_rule for trial in run.results.trials] == ["simulator_strayed"] * 2
