"""What comes back from a call, as the output of a tool."""

from __future__ import annotations

from typing import Any

import pytest
from tests.chinese import english_in

from taoloop.dialects.prompt import describe
from taoloop.errors import McpFailed, ToolError
from taoloop.tools.mcp import mcp_tools

from .calling import Make, only, use

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
