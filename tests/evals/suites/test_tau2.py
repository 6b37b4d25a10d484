"""The suite tau2: a checkout of the user's own, the data at the end, and a customer who may stray."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evals.suites.shipped_runs import run_shipped
from tests.models.provider_answers import silent
from tests.security.test_tau_bench_checkout import write_tau2

from taoloop.errors import ConfigError
from taoloop.evals.suites.tau_cases import HOME
from taoloop.evals.suites.tau_customer import CUSTOMER, CUSTOMER_TIMEOUT
from taoloop.testing.fakes import Answer, HttpDouble


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


def chat(text: str) -> Answer:
    """A reply of an OpenAI-compatible server."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return 200, {"id": "c", "model": "customer", "choices": choices, "usage": usage}


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, and a customer who is played by a model behind an API; its address is set by each test."""
    write_tau2(tmp_path / "checkout", "tau2-bench")
    monkeypatch.delenv("AI_MOCK", raising=False)
    monkeypatch.setenv(HOME, str(tmp_path / "checkout"))
    monkeypatch.setenv(CUSTOMER, "openai:customer")
    monkeypatch.setenv(CUSTOMER_TIMEOUT, "20")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    return tmp_path


def test_a_customer_behind_an_api_knows_the_instructions_and_is_asked_what_the_agent_asks(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model class of a provider, over HTTP. An order that the instructions name is not made up."""
    with HttpDouble([chat("I am Ann Lee, and it is about #W1."), chat("Ann Lee, ann@example.com.")]) as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        run = run_shipped("tau2", served, models=["script:asking"])
    (results,) = run.results.configurations
    assert (results.metrics["task_success"].value, results.invalid) == (1.0, 0)
    assert len(double.requests) == 2
    for request in double.requests:
        system, question = request["messages"]
        assert "You want to cancel #W1." in system["content"]
        assert question["content"] == "Who are you?"


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (chat("My order is #W777, as bob_ray_12 knows."), "the customer made up #W777, bob_ray_12"),
        (chat(" ... "), "the customer gave no answer: the reply has no word"),
        ((200, b"<html>Bad gateway</html>"), "the customer gave no answer: openai:customer"),
        ((200, {"choices": []}), "the customer gave no answer: openai:customer"),
        ((500, {"error": {"message": "overloaded"}}), "the customer gave no answer: openai:customer answered HTTP 500"),
        ((401, {"error": {"message": "wrong key"}}), "the customer gave no answer: openai:customer answered HTTP 401"),
        (silent(), "the customer gave no answer: openai:customer gave no whole reply within 0.2 s"),
    ],
)
def test_a_customer_behind_an_api_who_does_not_play_their_part_is_no_fault_of_the_agent(
    answer: Answer, detail: str, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "within 0.2 s" in detail:
        monkeypatch.setenv(CUSTOMER_TIMEOUT, "0.2")
    with HttpDouble([answer]) as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        run = run_shipped("tau2", served, cases=["retail-0"], models=["script:asking"])
    (results,) = run.results.configurations
    assert (results.invalid, dict(results.faults)) == (1, {"simulator": 1})
    assert results.metrics["task_success"].value is None
    (trial,) = run.results.trials
    assert trial.fault_rule == "simulator_strayed"
    assert any(check.kind == "simulator" and check.detail.startswith(detail) for check in trial.checks), trial.checks


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (CUSTOMER, "nobody:x", "There is no model called 'nobody:x'"),
        ("OPENAI_API_KEY", "", "OPENAI_API_KEY"),
        (CUSTOMER_TIMEOUT, "soon", "TAU2_CUSTOMER_TIMEOUT_S is 'soon', not a number of seconds up to 600"),
    ],
)
def test_a_customer_who_cannot_be_played_is_reported_before_anything_is_run(
    name: str, value: str, message: str, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message):
        run_shipped("tau2", served, models=["script:asking"])
    assert not (served / "tau2.db").exists()
