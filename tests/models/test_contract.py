"""What every model keeps to, whatever is behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taoloop import ScriptedModel, Trace
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, ModelReplied, RunStarted
from taoloop.core.message import Message, ModelReply
from taoloop.dialects import DIALECTS
from taoloop.models.base import Model
from taoloop.models.endpoint_balance import Balanced
from taoloop.models.offline.planner import OfflineModel
from taoloop.models.openai import OpenAIModel
from taoloop.models.prices import Price, PricedModel
from taoloop.models.providers import Endpoint
from taoloop.models.rate_limit import RateLimited
from taoloop.models.replay import ReplayModel
from taoloop.models.retry import Fallback, Retrying
from taoloop.models.settings import Rate
from taoloop.testing import DriftInjector, HttpDouble, Recorder
from taoloop.tools.builtin.calculator import calculator

COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}


WRAPPED: dict[str, Callable[[Model], Model]] = {
    "retrying": Retrying,
    "fallback": lambda model: Fallback([model, model]),
    "balanced": lambda model: Balanced([model, model], [2, 1]),
    "priced": lambda model: PricedModel(model, Price(input=1, output=2)),
    "rate limited": lambda model: RateLimited(model, Rate(requests_per_minute=60, tokens_per_minute=100_000)),
    "drifting": lambda model: DriftInjector(model, rate=1.0, classes=["prose_around"]),
}


@pytest.fixture(params=[*WRAPPED, "recorded", "scripted", "replay", "offline", "openai"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Model]:
    if request.param in WRAPPED:
        yield WRAPPED[request.param](ScriptedModel(["hello", "again"]))
    elif request.param == "recorded":
        yield Recorder(ScriptedModel(["hello", "again"]), tmp_path / "recorded.yaml")
    elif request.param == "scripted":
        yield ScriptedModel(["hello", "again"])
    elif request.param == "replay":
        yield ReplayModel([ModelReplied(step=1, purpose="decide", text="hello", decision=None)] * 2)
    elif request.param == "offline":
        yield OfflineModel()
    else:
        with HttpDouble([(200, COMPLETION)] * 8) as server:
            yield OpenAIModel(Endpoint(provider="openai", model="tiny", api_key="k", base_url=f"{server.url}/v1"))


def asking(turn: int = 0) -> ModelRequest:
    """A task that every model can begin with, the demo planner too."""
    task, tools = "What is 2 + 2?", (calculator.card,)
    started = RunStarted(task=task, agent=AgentSpec(dialect="text", tools=tools), nonce="n")
    messages = (Message(role="user", content=task),)
    trace = Trace("r", [Event(0, 0.0, started)])
    return ModelRequest(task=task, trace=trace, messages=messages, dialect="text", turn=turn, tools=tools)


def test_it_names_itself_and_a_dialect_that_exists(model: Model) -> None:
    assert model.spec
    assert model.dialect in DIALECTS


def test_it_answers_with_a_reply_and_lets_go_twice(model: Model) -> None:
    async def ask() -> ModelReply:
        reply = await model.complete(asking())
        await model.close()
        await model.close()
        return reply

    reply = asyncio.run(ask())
    assert isinstance(reply, ModelReply)
    assert reply.text or reply.tool_calls


def test_it_serves_many_runs_at_once_and_keeps_nothing_of_them(model: Model) -> None:
    async def many() -> list[ModelReply]:
        replies = await asyncio.gather(*(model.complete(asking()) for _ in range(4)))
        await model.close()
        return list(replies)

    replies = asyncio.run(many())
    assert all(reply == replies[0] for reply in replies)


def test_it_leaves_no_thread_behind_that_keeps_the_process(model: Model) -> None:
    async def ask() -> None:
        await model.complete(asking())
        await model.close()

    earlier = set(threading.enumerate())
    asyncio.run(ask())
    assert [thread.name for thread in threading.enumerate() if not thread.daemon and thread not in earlier] == []
