"""The dependencies of runs that clients of the gateway begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.serve.gateway.clients import ask, post
from tests.serve.gateway.conftest import agent, config_of, gateway, upstream

from taoloop import RunContext, RunInfo, tool


@dataclass
class Shop:
    """What a tool needs."""

    owner: str


@tool(tier="read")
def whose(ctx: RunContext[Shop]) -> str:
    """Whose shop it is."""
    return ctx.deps.owner


def test_each_run_of_a_client_gets_deps_of_its_own() -> None:
    asked: list[RunInfo] = []

    def make(info: RunInfo) -> Shop:
        asked.append(info)
        return Shop(f"owner of {info.task}")

    def replies(body: dict[str, Any]) -> Any:
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        return f"Result: {results[0]}" if results else {"tool_calls": [{"name": "whose", "args": {}}]}

    with upstream(replies) as server:
        served = agent(server, tools=[whose], deps_type=Shop, make_deps=make)
        with gateway(config_of(served)) as running:
            for task in ("A", "B"):
                _, answer = post(running, {"model": "assistant", "messages": ask(task)})
                assert f"owner of {task}" in answer["choices"][0]["message"]["content"]
            assert [info.run_id for info in asked] == [trace.run_id for trace in running.traces()]
            assert {info.agent for info in asked} == {"assistant"}
