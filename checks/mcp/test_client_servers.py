"""The official reference servers, as tools: each is loaded, read from, and refuses what it should.

`scripts/check-mcp` puts their programs into PATH; one that is not there is skipped.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, ScriptedModel
from taoloop.core.events import Observed
from taoloop.core.images import Image
from taoloop.errors import InvalidArguments, McpFailed
from taoloop.tools.mcp import McpServer, close_all, mcp_tools, pending_changes
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadResult


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


def server(folder: Path, command: str, *args: str, **settings: Any) -> McpServer:
    """Settings of a server whose program is in PATH."""
    if shutil.which(command) is None:
        pytest.skip(f"there is no {command} in PATH")
    return McpServer(name="ref", command=command, args=args, pins=folder / "pins", **settings)


def loaded_without_problems(settings: McpServer) -> dict[str, Tool]:
    """Its tools by their names at the server."""
    loaded: LoadResult = mcp_tools(settings)
    assert loaded.problems == ()
    assert pending_changes(settings) == ()
    return {tool.name.removeprefix("ref."): tool for tool in loaded.tools}


def use(tool: Tool, **args: Any) -> Any:
    """Call a tool and read what it gives."""
    output = tool.render(asyncio.run(tool.invoke(tool.prepare(args).values, None)))
    return json.loads(output.text) if output.form == "json" else output.text


def images_of(tool: Tool) -> tuple[Image, ...]:
    """Call a tool and take the images that it gives."""
    return tool.render(asyncio.run(tool.invoke(tool.prepare({}).values, None))).images


@pytest.mark.parametrize("protocol", ["auto", "2025-11-25"])
def test_everything(tmp_path: Path, protocol: Any) -> None:
    settings = server(tmp_path, "mcp-server-everything", "stdio", protocol=protocol)
    tools = loaded_without_problems(settings)
    assert "tea" in str(use(tools["simulate-research-query"], topic="tea"))  # it is only a task
    assert use(tools["echo"], message="你好") == "Echo: 你好"
    assert "3" in use(tools["get-sum"], a=1, b=2)
    assert set(use(tools["get-structured-content"], location="Chicago")) == {"temperature", "conditions", "humidity"}
    assert [image.info.media_type for image in images_of(tools["get-tiny-image"])] == ["image/png"]
    assert use(tools["trigger-long-running-operation"], duration=0.2, steps=2).startswith("Long running operation")
    found = use(tools["list_resources"])
    assert found["templates"]
    assert use(tools["read_resource"], uri=found["resources"][0]["uri"])
    prompts = {one["name"] for one in use(tools["list_prompts"])["prompts"]}
    assert "simple-prompt" in prompts
    assert use(tools["get_prompt"], name="args-prompt", arguments={"city": "Xi'an"})["messages"]
    with pytest.raises(InvalidArguments):
        use(tools["get-sum"], a="one", b=2)
    assert tools["echo"].card.tier is None


def test_filesystem(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("tea")
    tiers = {"read_*": "read", "list_*": "read", "write_file": "write"}
    tools = loaded_without_problems(server(tmp_path, "mcp-server-filesystem", str(folder), tiers=tiers))
    assert tools["read_text_file"].card.tier == "read"
    assert tools["write_file"].card.tier == "destructive", "what the server says raises it"
    assert "tea" in str(use(tools["read_text_file"], path=str(folder / "a.txt")))
    use(tools["write_file"], path=str(folder / "b.txt"), content="milk")
    assert (folder / "b.txt").read_text() == "milk"
    with pytest.raises(McpFailed, match="denied"):
        use(tools["read_text_file"], path="/etc/passwd")


def test_memory(tmp_path: Path) -> None:
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    tools = loaded_without_problems(server(tmp_path, "mcp-server-memory", env=env))
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    use(tools["create_entities"], entities=[entity])
    assert "likes tea" in str(use(tools["search_nodes"], query="tea"))


def test_time_in_a_run(tmp_path: Path) -> None:
    settings = server(tmp_path, "mcp-server-time", tiers={"*": "read"})
    args = {"source_timezone": "Asia/Shanghai", "time": "12:00", "target_timezone": "UTC"}
    script: list[Any] = [{"tool_calls": [{"name": "ref.convert_time", "args": args}]}, "It is four."]
    agent = Agent(model=ScriptedModel(script), tools=mcp_tools(settings).tools)
    result = asyncio.run(agent.run("What is noon in Shanghai in UTC?"))
    assert result.status == "completed"
    assert "T04:00:00" in "".join(one.fact.output for one in result.trace.events if isinstance(one.fact, Observed))


def test_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "repository")], check=True)  # noqa: S607  # that of PATH
    (tmp_path / "repository" / "new.txt").touch()
    tools = loaded_without_problems(server(tmp_path, "mcp-server-git", tiers={"git_status": "read"}))
    assert "new.txt" in str(use(tools["git_status"], repo_path=str(tmp_path / "repository")))


def test_fetch_lists_its_tools(tmp_path: Path) -> None:
    tools = loaded_without_problems(server(tmp_path, "mcp-server-fetch", tiers={"fetch": "read"}))
    assert tools["fetch"].card.sends_out({"url": "https://example.com"})
    with pytest.raises(InvalidArguments):
        use(tools["fetch"], url=5)
