"""Cost of a call from the kept price list; what is unknown stays unknown."""

from __future__ import annotations

import pytest
from tests.models.provider_answers import ask, whole

from taoloop import Agent
from taoloop.core.events import ModelReplied
from taoloop.core.message import Usage
from taoloop.models.openai import OpenAIModel
from taoloop.models.providers import PROVIDERS, Endpoint, cost_usd
from taoloop.testing import HttpDouble

USED = Usage(input_tokens=1_000, output_tokens=100)
OPENAI = PROVIDERS["openai"].base_url
CLAUDE = PROVIDERS["anthropic"].base_url


@pytest.mark.parametrize(
    ("address", "model"),
    [
        (OPENAI, "gpt-4o-mini"),
        (OPENAI, "gpt-4o-mini-2024-07-18"),
        (CLAUDE, "claude-haiku-4-5"),
        (PROVIDERS["deepseek"].base_url, "deepseek-chat"),
        ("https://acme.openai.azure.com/openai/v1", "gpt-4o-mini"),
    ],
)
def test_a_known_model_at_a_known_address_has_a_price(address: str, model: str) -> None:
    cost = cost_usd(address, model, USED)
    assert cost is not None
    assert 0 < cost < 0.1


def test_cached_input_is_cheaper_and_writing_to_a_cache_dearer() -> None:
    plain = cost_usd(CLAUDE, "claude-haiku-4-5", USED)
    cached = cost_usd(CLAUDE, "claude-haiku-4-5", Usage(input_tokens=1_000, output_tokens=100, cached_tokens=900))
    written = cost_usd(CLAUDE, "claude-haiku-4-5", USED, cache_write_tokens=900)
    assert cached is not None
    assert plain is not None
    assert written is not None
    assert cached < plain < written


@pytest.mark.parametrize(
    ("address", "model", "usage"),
    [
        (OPENAI, "no-such-model", USED),
        ("http://127.0.0.1:8000/v1", "gpt-4o-mini", USED),
        ("https://proxy.example/v1", "gpt-4o-mini", USED),
        (PROVIDERS["dashscope"].base_url, "no-such-model", USED),
        (OPENAI, "gpt-4o-mini", Usage()),
        (OPENAI, "gpt-4o-mini", Usage(input_tokens=5, output_tokens=1, cached_tokens=9)),
        ("", "gpt-4o-mini", USED),
    ],
)
def test_what_is_not_known_is_not_zero(address: str, model: str, usage: Usage) -> None:
    assert cost_usd(address, model, usage) is None


@pytest.mark.parametrize(
    ("provider", "usage", "cost"),
    [
        ("openai", {"prompt_tokens": 10, "completion_tokens": 1}, None),
        ("vllm", {"prompt_tokens": 10, "completion_tokens": 1}, 0.0),
        ("ollama", None, 0.0),
        ("openai", None, None),
    ],
)
def test_a_server_of_ones_own_costs_nothing_and_another_address_is_unknown(
    provider: str, usage: object, cost: float | None
) -> None:
    body = {"model": "gpt-4o-mini", "choices": [{"message": {"content": "5"}}], "usage": usage}
    with HttpDouble([whole(200, body)]) as server:
        target = Endpoint(provider=provider, model="gpt-4o-mini", api_key="k", base_url=server.url)
        assert ask(OpenAIModel(target)).cost_usd == cost


def test_the_model_that_answered_is_priced_and_else_the_one_that_was_asked() -> None:
    model = OpenAIModel(Endpoint(provider="openai", model="gpt-4o-mini", api_key="k"))
    asked = cost_usd(OPENAI, "gpt-4o-mini", USED)
    assert model.cost("gpt-4o", USED) == cost_usd(OPENAI, "gpt-4o", USED) != asked
    assert model.cost("no-such-snapshot", USED) == asked


def test_the_cost_of_a_call_stands_in_the_trace() -> None:
    body = {"choices": [{"message": {"content": "5"}}], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}
    with HttpDouble([whole(200, body)] * 2) as server:
        local = Agent(model="vllm:m", env={"VLLM_BASE_URL": server.url}).run_sync("add 2 and 3")
        other = Agent(model="openai:gpt-4o-mini", env={"OPENAI_BASE_URL": server.url}).run_sync("add 2 and 3")
    [free], [unknown] = (
        [e.fact for e in run.trace.events if isinstance(e.fact, ModelReplied)] for run in (local, other)
    )
    assert (free.cost_usd, local.cost_usd) == (0.0, 0.0)
    assert (unknown.cost_usd, other.cost_usd) == (None, None)
