"""The offline model under strategies without reasoning, and without tools."""

from __future__ import annotations

import asyncio

import pytest
from tests.models import test_offline_shop as shop
from tests.models.test_offline_run import World

from taoloop.core.decision import Answer
from taoloop.core.model_request import ModelRequest
from taoloop.models.offline import OfflineModel, decision_for

TASKS = ["What is the weather in Paris?", "巴黎的天气怎么样", "Paint the house", "给房子刷漆"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("strategy", ["act_only", "standard"])
def test_a_strategy_without_reasoning_gets_no_reason(task: str, strategy: str) -> None:
    """A13."""
    world = World(task, [shop.city_weather], strategy=strategy)
    decisions = [reply.decision for step in world.trace.steps for reply in step.replies]
    assert {decision.reason for decision in decisions if decision} == {""}


@pytest.mark.parametrize("task", TASKS)
def test_react_gives_reasons(task: str) -> None:
    assert World(task, [shop.city_weather], most=0).ask().reason


@pytest.mark.parametrize("task", ["What is 2 + 2?", "What is the capital of France?", "法国的首都是哪里", "2 加 2"])
@pytest.mark.parametrize("strategy", ["standard", "reason_only"])
def test_without_tools_it_says_that_it_cannot_answer(task: str, strategy: str) -> None:
    world = World(task, [shop.city_weather], most=0, strategy=strategy)
    request = ModelRequest(task=task, trace=world.trace, messages=(), dialect="text")
    decision = decision_for(request)
    assert isinstance(decision, Answer)
    assert "cannot answer without tools" in decision.text or "没有工具就无法回答" in decision.text
    assert bool(decision.reason) == (strategy == "reason_only")
    reply = asyncio.run(OfflineModel().complete(request))
    assert "cannot answer without tools" in reply.text or "没有工具就无法回答" in reply.text
