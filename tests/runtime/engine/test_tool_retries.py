"""Calls that a tool makes again by itself after an error that may pass."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop import Agent, Limits, RunContext, ToolError, tool
from taoloop.core.events import ActionStarted, Observed
from taoloop.core.views.transcript import Result
from taoloop.errors import ToolDefinitionError
from taoloop.runtime.after.replay import replay
from taoloop.tools.tool import Tool


class World:
    """Fails as often as it is told."""

    def __init__(self, failures: int, *, retryable: bool = True) -> None:
        self.failures, self.retryable = failures, retryable
        self.attempts: list[tuple[int, str]] = []

    def visit(self, ctx: RunContext) -> str:
        self.attempts.append((ctx.attempt, ctx.idempotency_key))
        if len(self.attempts) <= self.failures:
            raise ToolError(f"down {len(self.attempts)}", code="down", retryable=self.retryable)
        return "up"

    def tool(self, tier: Any, **options: Any) -> Tool:
        @tool(tier=tier, name="visit", retries=2, backoff_s=0, **options)
        def visit(ctx: RunContext) -> str:
            """Visit."""
            return self.visit(ctx)

        return visit


def run(visit: Tool, **settings: Any) -> Result:
    replies: list[Any] = [{"tool_calls": [{"name": "visit", "args": {}}]}, "Done."]
    result = Agent(model=replies, tools=[visit], policy="autonomous", **settings).run_sync("visit")
    assert all(event.same for event in replay(result.trace))
    return result


def started(result: Result) -> list[tuple[int, str]]:
    return [(e.fact.attempt, e.fact.after) for e in result.trace if isinstance(e.fact, ActionStarted)]


def observed(result: Result) -> Observed:
    [fact] = [event.fact for event in result.trace if isinstance(event.fact, Observed)]
    return fact


def test_a_read_is_made_again_and_each_attempt_is_recorded_and_counts() -> None:
    world = World(2)
    result = run(world.tool("read"))
    assert observed(result).output == "up"
    assert started(result) == [(2, "down: down 1"), (3, "down: down 2")]
    assert [attempt for attempt, _ in world.attempts] == [1, 2, 3]
    assert result.trace.tool_calls == 3


def test_an_idempotent_effect_is_made_again_with_the_same_key() -> None:
    world = World(1)
    result = run(world.tool("write", idempotent=True))
    assert observed(result).output == "up"
    assert started(result) == [(1, ""), (2, "down: down 1")]
    assert len({key for _, key in world.attempts}) == 1


def test_the_last_error_is_the_outcome() -> None:
    world = World(9)
    error = observed(run(world.tool("read"))).error
    assert error is not None
    assert error.message == "down 3"


def test_an_error_that_will_not_pass_is_not_repeated() -> None:
    world = World(1, retryable=False)
    run(world.tool("read"))
    assert len(world.attempts) == 1


def test_no_attempt_goes_beyond_the_limit_of_calls() -> None:
    world = World(9)
    run(world.tool("read"), limits=Limits(max_tool_calls=2))
    assert len(world.attempts) == 2


def test_a_tool_whose_calls_must_not_be_repeated_can_have_no_retries() -> None:
    with pytest.raises(ToolDefinitionError, match="effect twice"):
        World(1).tool("write")
    with pytest.raises(ToolDefinitionError, match="retries=-1"):

        @tool(tier="read", retries=-1)
        def visit() -> str:
            """Visit."""
            return ""
