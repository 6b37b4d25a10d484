"""What an agent says of its models, and what answers: asked again, held to the rate, closed, under which name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.models.asking import Told, asking

from taoloop import Agent
from taoloop.config.agent_file import load_agent
from taoloop.errors import AgentFileError, ConfigError, MissingKey, ModelUnavailable
from taoloop.models.model_builder import BuiltModel, build_model, endpoint_targets, join_specs, split_specs
from taoloop.models.retry import Fallback, Retrying
from taoloop.models.scripted import ScriptedModel
from taoloop.models.settings import ModelEndpoint, Rate, Retry
from taoloop.runtime.bound_agent import bind

QUICK = Retry(first_wait_s=0)
DOWN = ModelUnavailable("told answered 503.")
ENV = {"OPENAI_API_KEY": "k"}


def bound(model: Any, fallback: Any = (), **options: Any) -> BuiltModel:
    return build_model(model, fallback, **{"retry": QUICK, "rate": None, "env": ENV} | options)


def test_a_model_of_a_provider_and_one_of_your_own_are_asked_again() -> None:
    assert isinstance(bound("openai:tiny").model, Retrying)
    model = Told(DOWN, "hello")
    assert asyncio.run(bound(model).model.complete(asking())).text == "hello"


@pytest.mark.parametrize("model", ["offline", ["hi"], ScriptedModel(["hi"]), Retrying(Told()), Fallback([Told()])])
def test_what_fails_for_good_or_was_wrapped_before_is_left_alone(model: Any) -> None:
    made = bound(model, rate=Rate(requests_per_minute=1)).model
    assert made is model or made.spec in ("offline", "scripted")
    assert made is model or not isinstance(made, Retrying)


def test_only_models_that_were_made_here_are_closed() -> None:
    mine = Told()
    made = bound("offline", mine)
    asyncio.run(made.close())
    assert (mine.closed, [model.spec for model in made.owned]) == (0, ["offline"])


@pytest.mark.parametrize(
    ("model", "fallback", "spec"),
    [
        ("offline", (), "offline"),
        ("openai:a", "openai:b", "openai:a | openai:b"),
        ("openai:a", ["openai:b", "offline"], "openai:a | openai:b | offline"),
        ("openai:a | openai:b", "offline", "openai:a | openai:b | offline"),
        (["hi"], "openai:b | offline", "scripted | openai:b | offline"),
    ],
)
def test_several_models_are_one_by_their_specs(model: Any, fallback: Any, spec: str) -> None:
    assert bound(model, fallback).model.spec == spec


def test_a_joined_spec_can_be_split_again() -> None:
    assert split_specs(join_specs("openai:a", "scripted:a|b.yaml")) == ("openai:a", "scripted:a|b.yaml")
    assert split_specs("") == ("",)


@pytest.mark.parametrize("fallback", [7, [None], [""], ""])
def test_a_fallback_that_is_no_model_is_refused(fallback: Any) -> None:
    with pytest.raises(ConfigError, match="fallback"):
        bound("offline", fallback)


def test_every_model_must_be_usable_before_the_run() -> None:
    with pytest.raises(MissingKey, match="DEEPSEEK"):
        bound("openai:a", "deepseek:b")


def test_the_rate_holds_for_all_runs_of_an_agent() -> None:
    agent = Agent(model=Told("hello"), rate=Rate(requests_per_minute=2), model_timeout_s=1.0)

    async def many() -> list[str]:
        return [(await agent.run("Say hello.")).reason for _ in range(3)]

    reasons = asyncio.run(many())
    assert "2 requests per minute" in reasons[2]
    assert not any("per minute" in reason for reason in reasons[:2])


def test_a_run_falls_back_and_the_trace_says_who_answered() -> None:
    first, second = Told(DOWN, spec="a:x"), Told("hello", spec="b:y")
    result = Agent(model=first, fallback=[second], retry=QUICK).run_sync("Say hello.")
    assert (result.answer, result.trace.agent.model) == ("hello", "a:x | b:y")
    assert result.trace.last_reply is not None
    assert result.trace.last_reply.model == "b:y"
    assert len(first.requests) == 3


def test_a_run_whose_models_all_fail_names_each_and_the_attempts() -> None:
    failing = [Told(ModelUnavailable(f"{spec} answered 503."), spec=spec) for spec in ("a:x", "b:y")]
    result = Agent(model=failing[0], fallback=failing[1], retry=QUICK).run_sync("Say hello.")
    assert result.status == "model_failed"
    assert "After 3 attempts: a:x answered 503. After 3 attempts: b:y answered 503." in result.reason


def test_models_with_different_dialects_meet_in_one_that_both_can_do() -> None:
    first = Told(DOWN, spec="a:x", dialect="native")
    second = Told("Thought: Easy.\nFinal Answer: hello", spec="b:y", dialect="text")
    result = Agent(model=first, fallback=second, retry=QUICK).run_sync("Say hello.")
    assert (result.answer, result.trace.agent.dialect) == ("hello", "text")


def test_an_agent_file_names_fallback_retry_and_rate(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(
        "model: openai:a\nfallback: [deepseek:b, scripted:s.yaml]\nretry: {attempts: 5, attempt_timeout_s: 20}\n"
        "rate:\n  requests_per_minute: 60\n  tokens_per_minute: 100000\n"
    )
    agent = load_agent(str(path))
    assert agent.fallback == ("deepseek:b", f"scripted:{tmp_path / 's.yaml'}")
    assert agent.retry == Retry(attempts=5, attempt_timeout_s=20)
    assert agent.rate == Rate(requests_per_minute=60, tokens_per_minute=100_000)


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("model: offline\nfallback: nobody:x", 2, "fallback"),
        ("fallback:\n  - offline\n  - nobody:x", 3, "fallback[1]"),
        ("fallback: [7]", 1, "fallback[0]"),
        ("retry:\n  attempts: 0", 2, "retry.attempts"),
        ("retry: {tries: 3}", 1, "retry.tries"),
        ("rate: 60", 1, "rate"),
        ("rate:\n  tokens_per_minute: many", 2, "rate.tokens_per_minute"),
    ],
)
def test_mistakes_in_an_agent_file_are_told_with_their_place(tmp_path: Path, text: str, line: int, field: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    with pytest.raises(AgentFileError) as raised:
        load_agent(str(path))
    assert (raised.value.line, raised.value.field) == (line, field)


def test_endpoints_have_addresses_and_keys_of_their_own() -> None:
    env = {"EAST_KEY": "e-secret", "OPENAI_API_KEY": "w-secret"}
    endpoints = [
        ModelEndpoint(base_url="https://east.example/v1", api_key_env="EAST_KEY", weight=3),
        ModelEndpoint(base_url="https://west.example/v1"),
    ]
    made = bound("openai:a", "offline", endpoints=endpoints, env=env)
    assert made.model.spec == "openai:a | offline"
    assert made.balanced is not None
    assert [(health.name, health.weight) for health in made.balanced.health] == [
        ("https://east.example/v1 (EAST_KEY)", 3),
        ("https://west.example/v1", 1),
    ]
    targets = [target for target, _ in endpoint_targets("openai:a", endpoints, env)]
    assert [(target.api_key, target.key_var) for target in targets] == [
        ("e-secret", "EAST_KEY"),
        ("w-secret", "OPENAI_API_KEY"),
    ]
    with pytest.raises(MissingKey, match="EAST_KEY"):
        bound("openai:a", endpoints=endpoints, env=ENV)
    with pytest.raises(ConfigError, match="Only the model of a provider"):
        bound("offline", endpoints=endpoints, env=env)


def test_the_keys_of_endpoints_are_redacted() -> None:
    endpoint = ModelEndpoint(api_key_env="EAST")
    made = bind(Agent(model="openai:a", endpoints=[endpoint], env={"EAST": "plain-looking-value-42"}))
    assert made.redactor is not None
    assert "plain-looking" not in made.redactor.text("the key is plain-looking-value-42")


def test_endpoints_are_not_asked_where_the_environment_asks_for_a_mock() -> None:
    endpoint = ModelEndpoint(api_key_env="NOT_SET")
    assert bound(None, endpoints=[endpoint], env={"AI_MOCK": "1"}).model.spec == "offline"
