"""Own prices: what a reply costs, and that a budget holds by them."""

from __future__ import annotations

import pytest

from taoloop import Agent
from taoloop.core.agent_spec import Limits
from taoloop.core.message import Usage
from taoloop.errors import ConfigError
from taoloop.models.prices import Price
from taoloop.testing import HttpDouble

COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "own",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
    "usage": {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100},
}


def test_the_cost_of_tokens() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=500_000, cached_tokens=400_000)
    assert Price(input=2, output=4).cost_usd(usage) == 4.0
    assert Price(input=2, output=4, cached=0.5).cost_usd(usage) == pytest.approx(3.4)
    assert Price(input=2, output=4).cost_usd(Usage()) is None


@pytest.mark.parametrize(
    "price", [{"input": -1, "output": 1}, {"input": 1, "output": "2"}, {"input": None, "output": 1}]
)
def test_a_price_that_is_none_is_refused(price: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Price(**price)


@pytest.mark.parametrize("is_priced", [True, False])
def test_replies_cost_what_own_prices_say(is_priced: bool) -> None:
    with HttpDouble([(200, COMPLETION)] * 4) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"}
        prices = {"openai:own": Price(input=1, output=10)} if is_priced else {}
        agent = Agent(
            model="openai:own", env=env, prices=prices, limits=Limits(max_cost_usd=0.003), tools=["calculator"]
        )
        result = agent.run_sync("hello?")
    if is_priced:
        assert result.cost_usd == pytest.approx(0.002)
    else:
        assert result.cost_usd is None


def test_a_budget_is_spent_by_own_prices() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "calculator", "arguments": '{"expression": "1+1"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    calling = {**COMPLETION, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    with HttpDouble([(200, calling), (200, COMPLETION)]) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"}
        agent = Agent(
            model="openai:own",
            env=env,
            prices={"openai:own": Price(input=1, output=10)},
            limits=Limits(max_cost_usd=0.001),
            closing_turn=False,
            tools=["calculator"],
        )
        result = agent.run_sync("1+1?")
    assert result.status == "budget_exceeded"
    assert result.cost_usd == pytest.approx(0.002)
