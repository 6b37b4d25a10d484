"""A budget that holds nothing is told: at the start, after a change, and by `--check`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.serve.gateway.conftest import config_of, gateway, until, upstream
from tests.serve.gateway.test_chat import agent

from taoloop import Agent
from taoloop.serve.gateway.config.api_keys import new_key
from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.model import ApiKey
from taoloop.serve.gateway.quotas import unenforceable_budgets

KEY = replace(new_key("shop")[1], usd_per_day=5.0)
OPENAI = {"OPENAI_API_KEY": "x"}


@pytest.mark.parametrize(
    ("model", "env", "key", "told"),
    [
        ("openai:gpt-4o-mini", OPENAI, KEY, False),
        ("openai:nobody-knows-it", OPENAI, KEY, True),
        ("openai:gpt-4o-mini", {**OPENAI, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, KEY, True),
        ("openai:nobody-knows-it", OPENAI, replace(KEY, usd_per_day=None), False),
        ("openai:nobody-knows-it", OPENAI, replace(KEY, agents=("another",)), False),
        ("openai:nobody-knows-it", OPENAI, replace(KEY, agents=("assistant",)), True),
        ("ollama:llama3", {}, KEY, False),
        ("offline", {}, KEY, False),
    ],
)
def test_a_model_without_a_price_is_told_to_who_has_a_budget(
    model: str, env: dict[str, str], key: ApiKey, told: bool
) -> None:
    config = config_of(Agent(model=model, env=env, name="assistant"), keys=(key,))
    found = list(unenforceable_budgets(config))
    assert len(found) == told
    for one in found:
        assert "shop" in one
        assert model in one
        assert one in config_summary(config)


def test_each_of_the_models_that_may_stand_in_is_looked_at() -> None:
    made = Agent(model="openai:gpt-4o-mini", fallback=["openai:nobody-knows-it"], env=OPENAI, name="assistant")
    [told] = unenforceable_budgets(config_of(made, keys=(KEY,)))
    assert "openai:nobody-knows-it" in told


def test_it_is_told_at_the_start_and_after_a_change() -> None:
    with upstream("Hello.") as server:
        config = config_of(agent(server), keys=(KEY,))
        with gateway(config, load=lambda: replace(config, port=0)) as running:
            assert len([text for text in running.said if "usd_per_day" in text]) == 1
            running.process.request_reload()
            until(lambda: len([text for text in running.said if "usd_per_day" in text]) == 2)
