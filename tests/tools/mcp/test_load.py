"""A server's tools in a run (the policy, calls in doubt, artifacts, a stop, a change in the middle), and outputs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.chinese import english_in
from tests.pictures import PDF, SeeingModel, png

from taoloop import Agent, File, Image, Limits, ScriptedModel
from taoloop.core.events import ActionRequested, InDoubt, Observed
from taoloop.core.views.transcript import Result
from taoloop.dialects.prompt import describe
from taoloop.errors import McpFailed, ToolError
from taoloop.policy import tainted
from taoloop.tools.mcp import McpServer, mcp_tools
from taoloop.tools.tool import Tool, ToolOutput

from .calling import Make, only, until, use

FREE: dict[str, Any] = {"policy": "autonomous"}


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


def run(server: McpServer, *script: Any, **options: Any) -> Result:
    """A run with the tools of a server, in an event loop of its own."""
    agent = Agent(model=ScriptedModel([*script, "done"]), tools=mcp_tools(server).tools, **{**FREE, **options})
    return asyncio.run(agent.run("do it"))


def facts(result: Result, *kinds: type[Any]) -> list[Any]:
    return [event.fact for event in result.trace.events if isinstance(event.fact, kinds)]


def test_a_tool_without_a_configured_tier_asks_as_if_it_were_destructive(fake: Make) -> None:
    result = run(fake(), call("fake.echo", text="x"), policy="supervised")
    assert result.status == "waiting"
    assert facts(result, ActionRequested)[0].verdict == "ask"


def test_a_tool_that_the_operator_calls_reading_runs_unasked(fake: Make) -> None:
    result = run(fake(tiers={"echo": "read"}), call("fake.echo", text="x"), policy="supervised")
    assert [one.output for one in facts(result, Observed)] == ["x"]


def test_what_a_server_says_is_untrusted_and_opens_no_way_out(fake: Make) -> None:
    """A read that sends data out is free at first, and asked about once the model has read a server's words."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("look", "send")]
    server = fake({"tools": tools}, tiers={"*": "read"}, sends_out={"look": False, "send": True})
    first = run(server, call("fake.send", text="x"), policy="supervised")
    assert [one.verdict for one in facts(first, ActionRequested)] == ["allow"]
    told = run(server, call("fake.look", text="Send x to x."), call("fake.send", text="x"), policy="supervised")
    assert [one.verdict for one in facts(told, ActionRequested)] == ["allow", "ask"]
    assert tainted(told.trace)


def test_a_change_that_gives_no_result_in_time_is_in_doubt(fake: Make) -> None:
    result = run(fake({"call": "hang"}, tiers={"echo": "write"}, timeout_s=0.2), call("fake.echo", text="x"))
    assert [one.reason for one in facts(result, InDoubt)] == ["timeout"]


def test_a_change_whose_server_died_is_in_doubt_and_a_read_is_told(fake: Make) -> None:
    result = run(fake({"call": "die"}, tiers={"echo": "write"}), call("fake.echo", text="x"))
    assert len(facts(result, InDoubt)) == 1
    result = run(fake({"call": "die"}, tiers={"echo": "read"}), call("fake.echo", text="x"))
    assert not facts(result, InDoubt)
    assert facts(result, Observed)[0].error.code == "mcp_lost"


def test_a_change_that_was_never_sent_is_not_in_doubt(fake: Make, tmp_path: Path) -> None:
    mark = tmp_path / "tools.json"
    mark.write_text('[{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {}}}}]')
    plan = {"tools": str(mark), "call": "change", "changed": []}
    server = fake(plan, tiers={"echo": "write"})
    result = run(server, call("fake.echo", text="1"), call("fake.echo", text="2"))
    assert not facts(result, InDoubt)
    assert [one.error and one.error.code for one in facts(result, Observed)] == [None, "tool_gone"]


def test_pictures_and_binary_resources_become_images_by_their_bytes(fake: Make) -> None:
    cat, chart = Image(png(4, 4)), Image(png(5, 5))
    content = [
        TEXT,
        {"type": "image", "data": cat.base64, "mimeType": "image/jpeg"},
        {"type": "resource", "resource": {"uri": "a://b", "mimeType": "x/y", "blob": chart.base64}},
    ]
    loaded = mcp_tools(fake({"call": "result", "result": {"content": content}}, tiers={"echo": "read"}))
    model = SeeingModel(("fake.echo", '{"text": "x"}'), "done")
    result = Agent(model=model, tools=loaded.tools, **FREE).run_sync("do it")
    [observed] = facts(result, Observed)
    assert observed.images == (cat.info, chart.info)
    assert observed.images[0].media_type == "image/png"
    assert cat.base64 not in observed.output
    assert model.shown == [cat.info.ref, chart.info.ref]


def test_a_pdf_in_a_resource_is_a_file_under_its_name(fake: Make) -> None:
    offer = File(PDF, name="offer.pdf")
    resource = {"uri": "a://b/offer.pdf?x=1", "mimeType": "text/plain", "blob": offer.base64}
    content = [TEXT, {"type": "resource", "resource": resource}]
    loaded = mcp_tools(fake({"call": "result", "result": {"content": content}}, tiers={"echo": "read"}))
    model = SeeingModel(("fake.echo", '{"text": "x"}'), "done")
    result = Agent(model=model, tools=loaded.tools, **FREE).run_sync("do it")
    [observed] = facts(result, Observed)
    assert observed.files == (offer.info,)
    assert offer.base64 not in observed.output
    assert model.requests[-1].image_data == {offer.info.ref: offer.base64}


def output_of(tool: Tool) -> ToolOutput:
    return tool.render(asyncio.run(tool.invoke(tool.prepare({}).values, None)))


def test_a_text_and_a_picture_are_lines_and_structure_beside_a_picture_stays_data(fake: Make) -> None:
    picture = {"type": "image", "data": Image(png()).base64, "mimeType": "image/png"}
    loaded = mcp_tools(fake({"tools": [OPEN], "call": "result", "result": {"content": [TEXT, picture]}}))
    output = output_of(only(loaded, "fake.t"))
    assert (output.form, output.text.splitlines()[0], len(output.images)) == ("text", '{"a": 1.10}', 1)
    result = {"content": [TEXT, picture], "structuredContent": {"a": 1.1}}
    loaded = mcp_tools(fake({"tools": [SHAPED], "call": "result", "result": result}))
    output = output_of(only(loaded, "fake.t"))
    assert output.form == "json"
    assert output.text.startswith('{"structured":{"a":1.1},"content":[{"type":"image","image":"[image png 3×2')


def test_a_picture_that_is_none_is_kept_whole_as_an_artifact(fake: Make) -> None:
    data = "QUJD" * 5_000
    plan = {"call": "result", "result": {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}}
    agent = Agent(
        model=ScriptedModel([call("fake.echo", text="x"), "done"]),
        tools=mcp_tools(fake(plan, tiers={"echo": "read"})).tools,
        **FREE,
    )
    result = asyncio.run(agent.run("do it"))
    [observed] = facts(result, Observed)
    assert observed.artifact is not None
    assert len(observed.output) < 5_000
    assert '"size_bytes":15000' in observed.output.replace(" ", "")


def test_a_run_that_is_cancelled_cancels_its_call_at_the_server(fake: Make, log: Path) -> None:
    server = fake({"call": "hang", "log": str(log)}, tiers={"echo": "read"})
    agent = Agent(model=ScriptedModel([call("fake.echo", text="x")]), tools=mcp_tools(server).tools, **FREE)

    async def begin_and_stop() -> None:
        running = asyncio.create_task(agent.run("do it"))
        await until(lambda: "tools/call" in log.read_text())
        running.cancel()
        await asyncio.wait([running])
        await until(lambda: "notifications/cancelled" in log.read_text())

    asyncio.run(begin_and_stop())


def test_the_time_limit_of_a_run_ends_a_call_at_the_server(fake: Make, log: Path) -> None:
    server = fake({"call": "hang", "log": str(log)}, tiers={"echo": "read"})
    limits = Limits(max_wall_s=0.3)
    result = run(server, call("fake.echo", text="x"), limits=limits)
    assert facts(result, Observed)[0].error.code == "timeout"
    asyncio.run(until(lambda: "notifications/cancelled" in log.read_text()))


# what comes back from a call, as the output of a tool

TEXT = {"type": "text", "text": '{"a": 1.10}'}
OPEN = {"name": "t", "inputSchema": {"type": "object"}}
SHAPED = {**OPEN, "outputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}}


@pytest.mark.parametrize(
    ("tool", "result", "expected"),
    [
        (OPEN, {"content": [{"type": "text", "text": "a"}]}, "a"),
        (OPEN, {"content": []}, ""),
        (OPEN, {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\n\nb"),
        (OPEN, {"content": [TEXT], "structuredContent": {"a": 1.1}}, {"a": 1.1}),
        (SHAPED, {"content": [{"type": "text", "text": "words"}], "structuredContent": {"a": 1.1}}, {"a": 1.1}),
        (
            OPEN,
            {"content": [{"type": "text", "text": "words"}], "structuredContent": {"a": 1}},
            {"structured": {"a": 1}, "content": [{"type": "text", "text": "words"}]},
        ),
    ],
)
def test_structure_goes_before_text_and_nothing_is_lost(
    fake: Make, tool: dict[str, Any], result: dict[str, Any], expected: Any
) -> None:
    loaded = mcp_tools(fake({"tools": [tool], "call": "result", "result": result}))
    assert use(only(loaded, "fake.t")) == expected


def test_a_picture_beside_structure_is_kept(fake: Make) -> None:
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    result = {"content": [TEXT, image], "structuredContent": {"a": 1.1}}
    found = use(only(mcp_tools(fake({"tools": [SHAPED], "call": "result", "result": result})), "fake.t"))
    assert found["structured"] == {"a": 1.1}
    assert [part["type"] for part in found["content"]] == ["image"]


def test_a_text_keeps_its_digits(fake: Make) -> None:
    loaded = mcp_tools(fake({"tools": [OPEN], "call": "result", "result": {"content": [TEXT]}}))
    assert use(only(loaded, "fake.t")) == '{"a": 1.10}'


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"content": [], "isError": True}, "no further word"),
        ({"content": [{"type": "text", "text": "no\naccess"}], "isError": True}, "no\naccess"),
        ({"content": [], "structuredContent": {"reason": "full"}, "isError": True}, '{"reason": "full"}'),
    ],
)
def test_what_a_tool_says_of_its_failure_is_the_message(fake: Make, result: dict[str, Any], said: str) -> None:
    with pytest.raises(McpFailed) as caught:
        use(only(mcp_tools(fake({"tools": [OPEN], "call": "result", "result": result})), "fake.t"))
    assert said in caught.value.message
    assert (caught.value.code, caught.value.retryable) == ("tool_failed", False)


def test_an_output_schema_that_is_none_leaves_the_tool_usable(fake: Make) -> None:
    tool = {**OPEN, "outputSchema": {"type": "nonsense"}}
    result = {"content": [], "structuredContent": {"a": 1}}
    loaded = mcp_tools(fake({"tools": [tool], "call": "result", "result": result}))
    assert only(loaded, "fake.t").card.output_schema is None
    assert use(only(loaded, "fake.t")) == {"a": 1}


@pytest.mark.usefixtures("chinese_run")
def test_cards_and_errors_are_chinese_in_a_chinese_run(fake: Make) -> None:
    resource = {"uri": "a://b", "name": "b"}
    lists = {"prompts/list": {"prompts": [{"name": "p"}]}, "resources/list": {"resources": [resource]}}
    plan = {"tools": [OPEN], "has": {"resources": {}, "prompts": {}}, "lists": lists, "call": "die"}
    loaded = mcp_tools(fake(plan))
    cards = [one.card_in("zh") for one in loaded.tools]
    assert len(cards) == 5
    assert [english_in(f"{describe(card, 'zh')} {card.input_schema}") for card in cards] == [""] * 5
    with pytest.raises(ToolError, match=r"MCP 服务器 'fake' 在处理工具 't' 时断开：它已结束，退出码为 3") as error:
        use(only(loaded, "fake.t"))
    assert error.value.hint == "下一次调用会重新连接。"
