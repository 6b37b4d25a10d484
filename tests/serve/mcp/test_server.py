"""Tools with cards, served: how they are listed, what a call gives, and what stands in the journal."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError
from tests.pictures import PDF, png

from taoloop import Agent, File, Image, tool
from taoloop.core.cards.tool_card import TIERS, ErrorCard, Tier, ToolCard
from taoloop.core.events import ActionStarted, Observed
from taoloop.errors import ConfigError, ToolError
from taoloop.serve.mcp import dispatcher, server
from taoloop.serve.mcp.server import listed_tool
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.tool import Tool

from .conftest import Served, said, serve


@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add two numbers.

    Use when: A sum is needed.
    """
    return a + b


@tool(tier="read")
def person(name: str) -> dict[str, str]:
    """Look up a person."""
    return {"name": name, "town": "Ulm"}


@tool(tier="read")
def picture() -> Image:
    """Draw."""
    return Image(png(4, 4))


@tool(tier="read")
def offer() -> File:
    """Make an offer."""
    return File(PDF, name="an offer.pdf")


@tool(tier="read")
def failing() -> str:
    """Fail."""
    raise ToolError("The shelf is empty.", code="empty", retryable=True, hint="Fill it first.")


@tool(tier="write", egress=False)
def put(text: str) -> str:
    """Put a text somewhere."""
    return f"put {text}"


def declared(output: dict[str, Any] | None, value: Any, **more: Any) -> Tool:
    card = ToolCard(name="give", purpose="Give it.", tier="read", egress=False, output_schema=output, **more)
    return tool_from_card(card, lambda: value)


def test_a_card_is_listed_with_all_that_a_host_can_use() -> None:
    card = ToolCard(
        name="send_mail",
        purpose="Send a mail.",
        use_when="Somebody is to be told.",
        avoid_when="It is a draft.",
        errors=(ErrorCard(code="bounced", advice="Check the address."),),
        tier="destructive",
        idempotent=True,
    )
    listed = listed_tool(card)
    assert (listed.name, listed.title) == ("send_mail", "Send mail")
    assert listed.description == (
        "Send a mail.\nUse when: Somebody is to be told.\nAvoid when: It is a draft.\nError bounced: Check the address."
    )
    assert listed.annotations == types.ToolAnnotations(
        title="Send mail", read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True
    )


@pytest.mark.parametrize(
    ("tier", "egress", "read_only", "destructive", "open_world"),
    [
        ("read", None, True, False, False),
        ("read", ("url",), True, False, True),
        ("draft", None, False, False, True),
        ("write", False, False, False, False),
        ("write", None, False, False, True),
        ("destructive", None, False, True, True),
        (None, None, False, True, True),
    ],
)
def test_hints_follow_from_the_card(
    tier: Tier | None, egress: Any, read_only: bool, destructive: bool, open_world: bool
) -> None:
    schema = {"type": "object", "properties": {"url": {"type": "string"}}} if egress else {"type": "object"}
    hints = listed_tool(ToolCard(name="x", purpose="X.", tier=tier, egress=egress, input_schema=schema)).annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (read_only, destructive, open_world)


async def one(served: Served, era: str, name: str, args: dict[str, Any]) -> types.CallToolResult:
    async with served.client(era) as client:
        await client.list_tools()
        return await client.call_tool(name, args)


def test_a_result_is_text_and_data(era: str) -> None:
    async def run() -> None:
        served = serve([add, person])
        summed = await one(served, era, "add", {"a": 1, "b": 2})
        assert (said(summed), summed.is_error) == ("3", False)
        found = await one(served, era, "person", {"name": "Ada"})
        assert found.structured_content == {"name": "Ada", "town": "Ulm"}
        assert json.loads(said(found)) == found.structured_content

    asyncio.run(run())


@pytest.mark.parametrize(
    ("output", "value", "structured"),
    [
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 1}, {"a": 1}),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], {"result": [1, 2]}),
        ({"type": "string"}, "text", {"result": "text"}),
        ({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}, 5, {"result": 5}),
        ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]}, [[1]], None),
    ],
)
def test_an_output_schema_is_told_and_kept(output: dict[str, Any], value: Any, structured: Any, era: str) -> None:
    async def run() -> None:
        served = serve([declared(output, value)])
        async with served.client(era) as client:
            listed = (await client.list_tools()).tools[0]
            result = await client.call_tool("give", {})  # the client holds it to the schema
        assert result.structured_content == structured
        assert (listed.output_schema is None) == (structured is None)

    asyncio.run(run())


def test_a_long_output_comes_whole_and_an_endless_one_says_where_it_is() -> None:
    async def run() -> None:
        long, endless = "x" * 50_000, "y" * (server.MAX_RESULT_CHARS + 1)
        assert said(await one(serve([declared(None, long)]), "auto", "give", {})) == long
        cut = said(await one(serve([declared(None, endless)]), "auto", "give", {}))
        assert len(cut) < 10_000
        assert "1,000,001 characters" in cut
        refused = await one(serve([declared({"type": "string"}, endless)]), "auto", "give", {})
        assert refused.is_error

    asyncio.run(run())


def test_what_goes_wrong_in_a_tool_is_a_result_with_code_message_and_hint(era: str) -> None:
    async def run() -> None:
        served = serve([add, failing])
        failed = await one(served, era, "failing", {})
        assert failed.is_error
        assert said(failed) == "empty: The shelf is empty. Fill it first."
        assert failed.meta is not None
        assert failed.meta[dispatcher.ERROR_KEY] == {
            "code": "empty",
            "message": "The shelf is empty.",
            "retryable": True,
            "hint": "Fill it first.",
        }
        judged = await one(served, era, "add", {"a": "x"})
        assert judged.is_error
        assert said(judged).startswith("invalid_arguments: ")
        async with served.client(era) as client:
            with pytest.raises(MCPError, match=r"There is no tool called 'nothing'\. Known: add, failing\.") as told:
                await client.call_tool("nothing", {})
        assert told.value.error.code == types.INVALID_PARAMS

    asyncio.run(run())


def test_every_call_is_a_run_with_intent_and_outcome(era: str) -> None:
    async def run() -> None:
        served = serve([add, put], tiers=TIERS[:3])
        first = await one(served, era, "add", {"a": 1, "b": 2})
        await one(served, era, "put", {"text": "x"})
        read, wrote = await served.traces()
        assert first.meta is not None
        assert first.meta[dispatcher.RUN_KEY] == read.run_id
        assert (read.status, wrote.status) == ("completed", "completed")
        kinds = [type(event.fact) for event in wrote.events]
        assert kinds.index(ActionStarted) < kinds.index(Observed)

    asyncio.run(run())


def test_a_list_of_hundreds_comes_in_pages() -> None:
    async def run() -> None:
        many = [add.with_card(name=f"add_{number}") for number in range(450)]
        served = serve(many)
        names, cursor = [], None
        async with served.client() as client:
            while True:
                page = await client.list_tools(cursor=cursor)
                names += [one.name for one in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
            with pytest.raises(MCPError, match="no such page"):
                await client.list_tools(cursor="none")
        assert names == [one.name for one in many]

    asyncio.run(run())


def test_two_tools_of_one_name_are_refused() -> None:
    async def run() -> None:
        with pytest.raises(ConfigError, match="Two of the tools to serve are called 'add'"):
            serve([add], agents=[Agent(name="add", model=["done"])])

    asyncio.run(run())


def test_64_calls_at_once_all_come_back(era: str) -> None:
    async def run() -> None:
        served = serve([add])
        async with served.client(era) as client:
            found = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}) for n in range(64)))
        assert [said(result) for result in found] == [str(n + 1) for n in range(64)]
        assert len({result.meta[dispatcher.RUN_KEY] for result in found if result.meta}) == 64

    asyncio.run(run())


def test_no_more_calls_go_on_at_once_than_are_allowed() -> None:
    busy = most = 0

    @tool(tier="read")
    async def hold() -> str:
        """Hold on for a moment."""
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        for _ in range(5):
            await asyncio.sleep(0)
        busy -= 1
        return "held"

    async def run() -> None:
        served = serve([hold], at_once=3)
        async with served.client() as client:
            await asyncio.gather(*(client.call_tool("hold", {}) for _ in range(20)))

    asyncio.run(run())
    assert most == 3


def test_a_number_that_no_host_can_read_is_told_and_the_call_not_to_be_repeated(era: str) -> None:
    @tool(tier="read")
    def endless() -> int:
        """Give a number of 5,001 digits."""
        return 10**5_000

    async def run() -> None:
        async with serve([endless]).client(era) as client:
            result = await client.call_tool("endless", {})
        assert said(result) == (
            "invalid_output: The call was made, but its output has numbers that no host can read. "
            "Do not repeat it only because of this."
        )

    asyncio.run(run())


def test_a_failure_of_the_server_itself_tells_a_host_no_more_than_its_kind(
    era: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise OSError("/a/path with a secret")

    async def run() -> None:
        served = serve([add])
        monkeypatch.setattr(served.journal, "create", broken)
        async with served.client(era) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result.is_error
        assert said(result).startswith("internal: The server failed while it served this call (OSError)")
        assert "secret" not in str(result)

    asyncio.run(run())
    assert "/a/path with a secret" in caplog.text


@pytest.mark.parametrize("era", ["auto"])
def test_an_image_goes_to_the_host_as_an_image_and_a_file_as_a_resource(era: str) -> None:
    async def body() -> None:
        result = await one(serve([picture]), era, "picture", {})
        label, image = result.content
        assert isinstance(label, types.TextContent)
        assert label.text.startswith("[image png 4×4")
        assert isinstance(image, types.ImageContent)
        assert (image.mime_type, image.data) == ("image/png", Image(png(4, 4)).base64)
        result = await one(serve([offer]), era, "offer", {})
        _, embedded = result.content
        assert isinstance(embedded, types.EmbeddedResource)
        assert isinstance(embedded.resource, types.BlobResourceContents)
        assert (embedded.resource.mime_type, embedded.resource.blob) == ("application/pdf", File(PDF).base64)
        assert str(embedded.resource.uri).endswith("/an%20offer.pdf")

    asyncio.run(body())
