"""Long calls: progress that keeps them alive up to a hard limit, and tasks that are polled to their end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, ScriptedModel
from taoloop.core.human_input import InputAnswered
from taoloop.errors import McpFailed, ToolTimeout
from taoloop.tools.mcp import McpServer, mcp_tools
from taoloop.tools.tool import ToolContext

from .calling import Make, only, until, use
from .conftest import Good
from .test_load import call, facts

TASK = {"name": "print", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}


@pytest.fixture
def press(log: Path, tmp_path: Path) -> McpServer:
    """A server of the SDK with tasks of 2026-07-28."""
    script = Path(__file__).with_name("task_server.py")
    return McpServer(
        name="press",
        command=sys.executable,
        args=(str(script), str(log)),
        pins=tmp_path / "pins",
        tiers={"*": "write"},
        timeout_s=5.0,
    )


@pytest.mark.parametrize(
    "reached",
    ["stdio auto", *(pytest.param(way, marks=pytest.mark.nightly) for way in ("stdio 2025-11-25", "http 2025-11-25"))],
    indirect=True,
)
def test_progress_keeps_a_call_alive_up_to_a_hard_limit(good: Good) -> None:
    work = only(mcp_tools(good(timeout_s=0.3, max_timeout_s=20.0)), "good.work")
    assert use(work, steps=10) == "done work"
    work = only(mcp_tools(good(timeout_s=0.3, max_timeout_s=0.6)), "good.work")
    with pytest.raises(ToolTimeout, match=r"within 0\.6 s"):
        use(work, steps=1_000)


def test_a_tool_that_is_only_a_task_is_polled_to_its_end(fake: Make, tmp_path: Path) -> None:
    log, lines = tmp_path / "log", list[str]()
    plan = {"tools": [TASK], "call": "task", "states": ["working", "working", "completed"], "log": str(log)}
    tool = only(mcp_tools(fake({**plan, "has": {"tasks": {}}})), "fake.print")

    async def run() -> Any:
        result = await tool.invoke({}, ToolContext(progress=lines.append))
        await asyncio.sleep(0)  # the last line of progress comes by the loop
        return result

    assert asyncio.run(run()) == "done as a task"
    seen = log.read_text()
    assert '"task": {"ttl": 900000}' in seen
    assert [seen.count(f"tasks/{name}") for name in ("get", "result", "cancel")] == [3, 1, 0]
    assert lines[:2] == ["begun", "is working"]


def test_a_task_that_nobody_waits_for_any_more_is_cancelled_at_the_server(fake: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    plan = {"tools": [TASK], "call": "task", "states": ["working"], "log": str(log)}
    tool = only(mcp_tools(fake(plan)), "fake.print")

    async def begin_and_stop() -> None:
        running = asyncio.create_task(tool.invoke({}, None))
        await until(lambda: "tasks/get" in log.read_text())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: "tasks/cancel" in log.read_text())

    asyncio.run(begin_and_stop())
    tool = only(mcp_tools(fake({**plan, "call": "task"}, timeout_s=0.3, max_timeout_s=0.3)), "fake.print")
    with pytest.raises(ToolTimeout):
        use(tool)
    assert log.read_text().count("tasks/cancel") == 2, "so is one that takes too long"


def test_a_server_that_makes_a_task_of_a_call_is_polled(press: McpServer, log: Path) -> None:
    assert use(only(mcp_tools(press), "press.quick")) == "printed None"
    assert log.read_text().splitlines() == ["task of quick", "get", "get", "get"]


def test_a_task_that_fails_is_an_error_with_its_words(press: McpServer) -> None:
    with pytest.raises(McpFailed, match="the press is jammed"):
        use(only(mcp_tools(press), "press.broken"))


def test_a_task_that_asks_gets_the_answer_of_the_person(press: McpServer, log: Path) -> None:
    def person(request: ApprovalRequest) -> ApprovalAnswer:
        assert request.question is not None
        return ApprovalAnswer(approved=True, by="ada", args={"size": 7})

    model = ScriptedModel([call("press.asks"), "done"])
    agent = Agent(model=model, tools=mcp_tools(press).tools, policy="autonomous", approve=person)
    result = asyncio.run(agent.run("print"))
    assert [fact.content for fact in facts(result, InputAnswered)] == [{"size": 7}]
    assert log.read_text().count("answer {'action': 'accept', 'content': {'size': 7}}") == 1


def test_a_run_that_is_stopped_cancels_the_task(press: McpServer, log: Path) -> None:
    endless = only(mcp_tools(press), "press.endless")

    async def begin_and_stop() -> None:
        running = asyncio.create_task(endless.invoke({}, None))
        await until(lambda: "get" in log.read_text())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: "cancel" in log.read_text())

    asyncio.run(begin_and_stop())
