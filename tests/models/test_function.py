"""A function as the model of an agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from taoloop import Agent, tool
from taoloop.core.message import Delta, ModelReply
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.models import FunctionModel
from taoloop.models.model_builder import build_model
from taoloop.models.settings import Rate, Retry


@tool(tier="read")
def lookup(key: str) -> int:
    """Look a value up."""
    return {"huala.post_count": 8}[key]


def decide(_task: str, trace: Trace) -> str:
    if not trace.calls:
        return "Thought: I look it up.\nAction: lookup: huala.post_count"
    (call,) = trace.calls.values()
    assert call.observed is not None
    return f"Final: {int(call.observed.output) + 2}"


def test_a_function_of_task_and_trace_is_a_model() -> None:
    """S0-28, S0-41: the model is one argument."""
    agent = Agent(model=decide, tools=[lookup])
    for _run in range(2):
        result = agent.run_sync("Look up the post count of huala, then add 2.")
        assert (result.status, result.answer) == ("completed", "10")
    assert result.trace.agent.model == "function:decide"


def test_it_may_be_async_a_method_and_give_mappings() -> None:
    class Rules:
        async def next(self, task: str, trace: Trace) -> Any:
            if trace.calls:
                return ModelReply(text=f"{task} done")
            return {"tool_calls": [{"name": "lookup", "args": {"key": "huala.post_count"}}]}

    agent = Agent(model=FunctionModel(Rules().next, dialect="native"), tools=[lookup])
    assert agent.run_sync("It is").answer == "It is done"


def test_calls_that_its_dialect_does_not_read_are_an_error_with_the_remedy() -> None:
    def calling(_task: str, _trace: Trace) -> Any:
        return {"tool_calls": [{"name": "lookup", "args": {"key": "huala.post_count"}}]}

    failed = Agent(model=calling, tools=[lookup]).run_sync("x")
    assert failed.status == "model_failed"
    assert "the dialect 'text' does not read: give FunctionModel(calling, dialect=\"native\")" in failed.reason
    result = Agent(model=calling, tools=[lookup], dialect="native", max_steps=1, closing_turn=False).run_sync("x")
    assert result.trace.tool_calls == 1


def test_pieces_of_the_reply_reach_a_listener() -> None:
    async def run() -> str:
        deltas: list[Delta] = []
        await Agent(model=lambda _task, _trace: "Final: a longer answer").run("x", on_delta=deltas.append)
        return "".join(delta.text for delta in deltas)

    assert "a longer answer" in asyncio.run(run())


@pytest.mark.parametrize(
    "function", [lambda: "x", lambda _task: "x", lambda _a, _b, _c: "x", lambda _a, _b, *, _c: "x"]
)
def test_a_function_with_other_parameters_is_refused_with_what_to_write(function: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        Agent(model=function).run_sync("x")
    assert "def model(task, trace)" in (refused.value.hint or "")


def test_a_reply_that_is_none_names_the_function() -> None:
    result = Agent(model=lambda _task, _trace: 3).run_sync("x")  # type: ignore[arg-type, return-value]  # on purpose
    assert result.status == "model_failed"
    assert "function:" in (result.reason or "")


def test_it_is_asked_once_and_at_any_rate() -> None:
    built = build_model(decide, retry=Retry(), rate=Rate(requests_per_minute=1))
    assert isinstance(built.model, FunctionModel)
