"""Agents, served: a task goes in, an answer comes out, and the run can be followed, stopped and looked at."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from taoloop import Agent, tool
from taoloop.core.events import RunStarted
from taoloop.runtime.approvals.inbox_items import Inbox
from taoloop.serve.mcp import dispatcher

from .conftest import said, serve, until_statuses


@tool(tier="read", egress=False)
def look(name: str) -> str:
    """Look something up."""
    return f"{name} is here"


def helper(*replies: Any, **more: Any) -> Agent:
    return Agent(name="helper", model=list(replies), tools=[look], **more)


LOOKING = {"tool_calls": [{"name": "look", "args": {"name": "Ada"}}]}


def test_an_agent_takes_a_task_and_gives_its_answer_with_its_run(era: str) -> None:
    async def run() -> None:
        served = serve(agents=[helper(LOOKING, "Ada is here.")])
        async with served.client(era) as client:
            listed = (await client.list_tools()).tools[0]
            assert (listed.name, listed.input_schema["required"]) == ("helper", ["task"])
            assert "It has these tools: look." in str(listed.description)
            assert listed.annotations is not None
            assert listed.annotations.read_only_hint is True
            result = await client.call_tool("helper", {"task": "Where is Ada?"})
        trace = (await served.traces())[0]
        assert said(result) == "Ada is here."
        assert result.structured_content == {
            "run_id": trace.run_id,
            "status": "completed",
            "answer": "Ada is here.",
            "reason": "The model gave its final answer.",
            "steps": 2,
        }
        started = trace.events[0].fact
        assert isinstance(started, RunStarted)
        assert (started.task, started.tainted) == ("Where is Ada?", False)  # the caller's word is the user's

    asyncio.run(run())


def test_each_step_is_told_as_progress(era: str) -> None:
    async def run() -> None:
        told: list[tuple[float, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, message))

        served = serve(agents=[helper(LOOKING, "Ada is here.")])
        async with served.client(era) as client:
            await client.call_tool("helper", {"task": "Where is Ada?"}, progress_callback=hear)
        assert told == [(1, "step 1: look"), (2, "call_1: done"), (3, "step 2")]

    asyncio.run(run())


def test_an_answer_that_is_data_comes_as_data(era: str) -> None:
    class Place(BaseModel):
        town: str

    async def run() -> None:
        served = serve(agents=[helper('{"town": "Ulm"}', output_type=Place, dialect="native")])
        async with served.client(era) as client:
            await client.list_tools()
            result = await client.call_tool("helper", {"task": "Where is Ada?"})
        assert result.structured_content["output"] == {"town": "Ulm"}

    asyncio.run(run())


def test_a_run_without_an_answer_is_an_error_that_says_why(era: str) -> None:
    async def run() -> None:
        served = serve(agents=[helper(LOOKING, LOOKING, "So far: nothing.", max_steps=1)])
        async with served.client(era) as client:
            result = await client.call_tool("helper", {"task": "Where is Ada?"})
        assert result.is_error
        assert said(result).startswith("max_steps_exceeded: ")
        assert result.structured_content["status"] == "max_steps_exceeded"

    asyncio.run(run())


@pytest.mark.parametrize("args", [{}, {"task": " "}, {"task": 5}, {"task": "x", "more": 1}, {"task": "x" * 100_001}])
def test_a_call_without_a_task_starts_no_run(args: dict[str, Any]) -> None:
    async def run() -> None:
        served = serve(agents=[helper("Done.")])
        async with served.client() as client:
            result = await client.call_tool("helper", args)
        assert said(result).startswith("invalid_arguments: ")
        assert await served.traces() == []

    asyncio.run(run())


def test_a_name_that_no_host_takes_is_made_one() -> None:
    async def run() -> None:
        served = serve(agents=[Agent(name="My helper: 1", model=["Done."])])
        async with served.client() as client:
            assert [one.name for one in (await client.list_tools()).tools] == ["My_helper_1"]

    asyncio.run(run())


def test_a_cancelled_call_stops_its_run_and_leaves_the_others_alone(era: str) -> None:
    async def run() -> None:
        begun, free = asyncio.Event(), asyncio.Event()

        @tool(tier="read", name="look")
        async def hold(name: str) -> str:
            """Hold on."""
            if name == "Ada":
                begun.set()
                await asyncio.Event().wait()
            await free.wait()
            return f"{name} is here"

        eve = {"tool_calls": [{"name": "look", "args": {"name": "Eve"}}]}
        served = serve(
            agents=[
                Agent(name="ada", model=[LOOKING, "never"], tools=[hold]),
                Agent(name="eve", model=[eve, "Eve is here."], tools=[hold]),
            ]
        )
        async with served.client(era) as client:
            other = asyncio.create_task(client.call_tool("eve", {"task": "Where is Eve?"}))
            await until_statuses(served, "running")
            stopped = asyncio.create_task(client.call_tool("ada", {"task": "Where is Ada?"}))
            await begun.wait()
            stopped.cancel()
            await asyncio.wait([stopped])
            await until_statuses(served, "running", "stopped")
            free.set()
            assert said(await other) == "Eve is here."
        await served.desk.close()

    asyncio.run(run())


def test_a_server_that_ends_stops_what_runs() -> None:
    async def run() -> None:
        begun = asyncio.Event()

        @tool(tier="read", name="look")
        async def hold(name: str) -> str:
            """Hold on."""
            begun.set()
            await asyncio.Event().wait()
            return name

        served = serve(agents=[Agent(name="helper", model=[LOOKING, "never"], tools=[hold])])
        async with served.client("legacy") as client:
            calling = asyncio.create_task(client.call_tool("helper", {"task": "Where is Ada?"}))
            await begun.wait()
            await served.desk.close()
            assert [trace.status for trace in await served.traces()] == ["stopped"]
            calling.cancel()
            await asyncio.wait([calling])

    asyncio.run(run())


def test_a_run_that_still_waits_says_where_it_can_be_answered() -> None:
    async def run() -> None:
        @tool(tier="write", egress=False, timeout_s=0.01, name="look")
        async def hold(name: str) -> str:
            """Hold on."""
            await asyncio.Event().wait()
            return name

        agent = Agent(name="helper", model=[LOOKING, "never"], tools=[hold], approved_tiers=("write",))
        served = serve(agents=[agent])
        async with served.client() as client:
            result = await client.call_tool("helper", {"task": "Where is Ada?"})
        assert result.is_error
        assert said(result).startswith("waiting: The run ")
        assert result.meta is not None
        assert result.meta[dispatcher.RUN_KEY] == (await served.traces())[0].run_id

    asyncio.run(run())


def test_a_question_of_the_model_waits_for_the_operator_and_the_host_is_told() -> None:
    async def run() -> None:
        asks = {"tool_calls": [{"name": "ask_user", "args": {"question": "Which invoice?"}}]}
        served = serve(agents=[Agent(name="helper", model=[asks, "never"], tools=["ask_user"])])
        async with served.client() as client:
            result = await client.call_tool("helper", {"task": "Pay it."})
        assert result.is_error
        assert said(result).startswith("waiting: The run ")
        assert "tao approvals" in said(result)
        [item] = (await Inbox(served.journal).load()).items
        assert item.kind == "question"

    asyncio.run(run())
