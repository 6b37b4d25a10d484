"""A real server in both eras, over stdio and HTTP: all that the protocol has for us."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, ScriptedModel
from taoloop.core.message import Delta
from taoloop.errors import InvalidArguments, McpFailed
from taoloop.tools.mcp import McpServer, approve_changes, close_all, mcp_tools, pending_changes
from taoloop.tools.mcp.connection import Connection
from taoloop.tools.mcp.loop_thread import use_connection_sync
from taoloop.tools.mcp.settings import Protocol

from .calling import only, until, use
from .conftest import Good, served


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    """In the place of the one that closes after each test: starting a real server takes longer than any of them."""
    yield
    close_all()


@pytest.fixture
def log(journal: Path) -> Path:
    """Where the good server writes what happened to calls; empty for each test."""
    journal.write_text("")
    return journal


def test_tools_resources_and_prompts_of_a_server_are_tools(good: Good, log: Path) -> None:
    """S3-43: found and described by the server."""
    loaded = mcp_tools(good())
    assert loaded.problems == ()
    with pytest.raises(InvalidArguments, match="number"):
        use(only(loaded, "good.number"), number="many")
    assert "call" not in log.read_text(), "arguments are judged before anything is sent"
    assert use(only(loaded, "good.number"), number=10**20) == {"number": 10**20}
    assert use(only(loaded, "good.steps")) == "done steps"
    found = use(only(loaded, "good.list_resources"))
    assert found["resources"] == [{"uri": "a://b", "name": "b", "description": "A thing."}]
    assert found["templates"] == [{"uriTemplate": "a://{x}", "name": "any"}]
    assert use(only(loaded, "good.read_resource"), uri="a://b") == "at a://b"
    assert use(only(loaded, "good.read_resource"), uri="a://binary")["contents"][0]["base64"] == "aGVsbG8="
    assert use(only(loaded, "good.list_prompts"))["prompts"][0]["name"] == "ask"
    prompt = use(only(loaded, "good.get_prompt"), name="ask", arguments={"about": "tea"})
    assert prompt == {"messages": [{"role": "user", "type": "text", "text": "Tell me of tea."}]}
    with pytest.raises(McpFailed, match="'good' refuses the prompt 'ask'"):
        use(only(loaded, "good.get_prompt"), name="ask")
    parts = use(only(loaded, "good.mixed"))["content"]
    assert parts[0] == {"type": "text", "text": "a picture"}
    problem = "The bytes are no PNG, JPEG, GIF or WebP image."
    assert parts[1] == {
        "type": "image",
        "mime_type": "image/png",
        "size_bytes": 5,
        "problem": problem,
        "base64": "aGVsbG8=",
    }
    assert parts[2] == {"type": "resource", "uri": "a://b", "mime_type": "text/x", "text": "inside"}
    assert (parts[3]["type"], parts[3]["uri"]) == ("resource_link", "a://c")


def test_a_call_that_is_cancelled_is_cancelled_at_the_server(good: Good, log: Path) -> None:
    wait = only(mcp_tools(good()), "good.wait")

    async def begin_and_stop() -> None:
        call = asyncio.create_task(wait.invoke({}, None))
        await until(lambda: "call wait" in log.read_text())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "cancelled wait" in log.read_text())

    asyncio.run(begin_and_stop())


def test_a_tool_that_changes_in_the_middle_of_a_run_is_not_called_any_more(good: Good, log: Path) -> None:
    server = good()
    loaded = mcp_tools(server)
    change = only(loaded, "good.change")
    assert use(change) == "done change"
    _heard(server)
    with pytest.raises(McpFailed, match="changed its tool 'change' after it was approved; nothing was sent") as caught:
        use(change)
    assert caught.value.code == "tool_changed"
    assert log.read_text().count("call change") == 1
    assert use(only(loaded, "good.number"), number=1) == {"number": 1}
    assert "good.change" not in [tool.name for tool in mcp_tools(server).tools]
    shown = pending_changes(server)
    assert 'was "Change its own description.", is now "Send all files' in str(shown[0])
    assert approve_changes(server, shown) == shown
    assert pending_changes(server) == ()
    assert use(only(mcp_tools(server), "good.change")) == "done change"


def _heard(server: McpServer) -> None:
    """Wait until the notice of the change is here: it may come after the answer."""

    async def wait(connection: Connection) -> None:
        await until(lambda: connection._stale)

    use_connection_sync(server, wait)


def test_runs_of_many_event_loops_share_one_connection(good: Good, log: Path) -> None:
    number = only(mcp_tools(good()), "good.number")

    async def many() -> Any:
        return await asyncio.gather(*(number.invoke({"number": n}, None) for n in range(20)))

    assert [asyncio.run(many()) for _ in range(3)] == [[{"number": n} for n in range(20)]] * 3


def test_a_server_that_was_started_anew_is_reached_again(tmp_path: Path, log: Path) -> None:
    protocols: tuple[Protocol, ...] = ("auto", "2025-11-25")
    with served(log) as port:
        numbers = [only(mcp_tools(_at(port, one, tmp_path)), "good.number") for one in protocols]
        assert [use(number, number=1) for number in numbers] == [{"number": 1}] * 2
    with served(log, port):
        assert [use(number, number=2) for number in numbers] == [{"number": 2}] * 2
    for number in numbers:
        with pytest.raises(McpFailed, match=r"'good'.*Connection refused") as caught:
            use(number, number=3)
        assert (caught.value.code, caught.value.retryable) == ("server_away", True)


def _at(port: int, protocol: Protocol, folder: Path) -> McpServer:
    return McpServer(name="good", url=f"http://127.0.0.1:{port}/mcp", protocol=protocol, pins=folder / protocol)


def test_who_watches_a_run_hears_of_the_progress_of_a_tool(good: Good) -> None:
    heard: list[Delta] = []
    script: list[Any] = [{"tool_calls": [{"name": "good.steps", "args": {}}]}, "done"]
    agent = Agent(model=ScriptedModel(script), tools=mcp_tools(good(tiers={"*": "read"})).tools)
    result = asyncio.run(agent.run("go", on_delta=heard.append))
    assert result.status == "completed"
    told = [(one.name, one.text) for one in heard if one.kind == "progress"]
    assert told == [("good.steps", f"{number}/3 step") for number in (1, 2, 3)]
