"""All built-in tools: a model reads no English sentence in a Chinese run, and no Chinese in an English one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chinese import english_in
from tests.scripting import call

from taoloop import Agent
from taoloop.core.agent_spec import Limits
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import CALL_TOOL, DESCRIBE_TOOL, FIND_TOOL
from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply
from taoloop.core.text import chinese_texts
from taoloop.dialects.prompt import describe
from taoloop.errors import ToolError
from taoloop.models.scripted import ScriptedModel
from taoloop.tools.builtin.catalog import BUILTIN_NAMES, UNDOING, builtin_tools
from taoloop.tools.builtin.commands import command_tools
from taoloop.tools.builtin.lookup import lookup_tool
from taoloop.tools.builtin.observations import ask_about
from taoloop.tools.function import tool
from taoloop.tools.sandbox.sandbox import Sandbox
from taoloop.tools.tool import Tool
from taoloop.tools.workspace.workspace import Workspace


def all_tools() -> Iterator[Tool]:
    yield from builtin_tools().values()
    yield from command_tools(Sandbox("folder", network=True)).values()
    yield lookup_tool({"a": 1})
    yield ask_about


def texts_of(card: ToolCard) -> str:
    return "\n".join([describe(card, "zh"), str(card.input_schema), *(str(example.args) for example in card.examples)])


@pytest.mark.parametrize("one", list(all_tools()), ids=lambda one: one.name)
def test_a_card_is_chinese_in_a_chinese_run_and_as_before_in_an_english_one(one: Tool) -> None:
    assert not english_in(texts_of(one.card_in("zh")))
    assert one.card_in("en") is one.card
    assert one.card_in("fr") is one.card


@pytest.mark.parametrize("card", [FIND_TOOL, DESCRIBE_TOOL, CALL_TOOL], ids=lambda card: card.name)
def test_the_cards_of_tools_that_find_tools_are_chinese(card: ToolCard) -> None:
    assert not english_in(texts_of(card.translated(chinese_texts("core"))))


def test_a_text_that_the_operator_changed_stays_as_it_is() -> None:
    changed = builtin_tools()["calculator"].with_card(purpose="Add up the bill.")
    card = changed.card_in("zh")
    assert card.purpose == "Add up the bill."
    assert card.use_when == "需要精确计算数值：加、减、乘、除、乘方。"


def test_a_tool_may_have_a_chinese_form_of_its_texts() -> None:
    @tool(tier="read", use_when="A price is needed.", chinese={"Give the price.": "返回价格。"})
    def price(item: str) -> int:
        """Give the price."""
        return len(item)

    assert price.card.purpose == "Give the price."
    assert price.card_in("zh").purpose == "返回价格。"
    assert price.card_in("zh").use_when == "A price is needed."


SCRIPT: list[dict[str, Any] | str] = [
    call("calculator", expression="2 ** 10"),
    call("calculator", expression="x + 1"),
    call("calculator", expression="1 / 0"),
    call("calculator", expression="9 ** 9 ** 9"),
    call("calculator", expression=5),
    call("calculator", formula="1"),
    call("time_now", zone="Asia/Shanghai"),
    call("time_now", zone="Shangai"),
    call("lookup", key="a.b", table="t.json"),
    call("lookup", key="a.x", table="t.json"),
    call("lookup", key="a", table="bad.json"),
    call("write_file", path="b.txt", content="一行\n"),
    call("write_file", path="b.txt", content="两行\n"),
    call("write_file", path="../b.txt", content=""),
    call("write_file", path="sub", content=""),
    call("read_file", path="b.txt"),
    call("read_file", path="c.txt"),
    call("read_file", path="large.txt"),
    call("list_files"),
    call("list_files", pattern="*" * 20),
    call("search_files", text="两"),
    call("search_files", text="两\n行"),
    call("remember", text="用户喜欢绿茶。"),
    call("recall", query="绿茶"),
    call("recall", query="绿茶", limit=50),
    call("run_python", code=""),
    call("run_command", command="exit 3"),
    call("big"),
    call("read_observation", artifact="obs_call_28", start=10, chars=20),
    call("read_observation", artifact="obs_call_28", search="7"),
    call("read_observation", artifact="obs_call_99"),
    call("read_observation", artifact="obs_call_28", start=9_999_999),
    call("read_observation", artifact="obs_call_28", pointer="/a"),
    call("nothing"),
    call("cards"),
    "完成",
]


class RecordingModel(ScriptedModel):
    """Keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(SCRIPT)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return await super().complete(request)


@tool(tier="read", purpose="返回很长的内容")
def big() -> str:
    return " ".join(map(str, range(3_000)))


@tool(tier="read", purpose="返回不符合声明的内容")
def cards() -> int:
    return "七"  # type: ignore[return-value]


def sent_in(task: str, folder: Path) -> str:
    (folder / "t.json").write_text('{"a": {"b": 1}}')
    (folder / "bad.json").write_text('{"a": ')
    (folder / "sub").mkdir()
    (folder / "large.txt").write_text("x" * 1_100_000)
    model = RecordingModel()
    names = [name for name in builtin_tools() if name not in UNDOING and not name.startswith("run_")]
    agent = Agent(
        model=model,
        tools=[*names, *command_tools(Sandbox(folder, program="/no/bwrap")).values(), big, cards],
        workspace=folder,
        memory=folder.parent / "notes.db",
        policy="autonomous",
        limits=Limits(max_steps=60, max_consecutive_errors=60, max_total_errors=60),
    )
    result = asyncio.run(agent.run(task))
    assert result.status == "completed", result
    last = model.requests[-1]
    listed = [describe(card, last.trace.agent.language) for card in last.tools]
    return "\n".join([*(message.content for message in last.messages), *listed])


def test_the_model_reads_no_english_sentence_in_a_chinese_run(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    sent = sent_in("请依次试用每个工具，最后说“完成”。", tmp_path / "workspace")
    assert [line for line in sent.splitlines() if english_in(line)] == []
    assert "more characters" not in sent
    assert "个字符；还有 1 行]" in sent


def test_the_model_reads_no_chinese_in_an_english_run(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    sent = sent_in("Please try every tool in turn and then say that you are done.", tmp_path / "workspace")
    own = {"一行", "两行", "两", "用户喜欢绿茶。", "绿茶", "七", "返回很长的内容", "返回不符合声明的内容"}
    for text in sorted(own, key=len, reverse=True):
        sent = sent.replace(text, "")
    assert re.findall("[\u3400-\u9fff]+", sent) == []


@pytest.mark.usefixtures("chinese_run")
def test_a_file_that_cannot_be_used_is_reported_in_the_language_of_the_run(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as error:
        Workspace(tmp_path).read_text("missing.txt")
    assert error.value.message == "无法使用 'missing.txt'：没有这个文件或文件夹。"
    assert error.value.hint == "请用 list_files 列出文件。"


def test_the_names_are_those_of_the_tools_and_with_names_others_are_left_out(tmp_path: Path) -> None:
    assert tuple(builtin_tools()) == BUILTIN_NAMES
    for name in BUILTIN_NAMES:
        chosen = builtin_tools(tmp_path, names=[name])
        assert chosen[name].card == builtin_tools(tmp_path)[name].card
        assert len(chosen) < len(BUILTIN_NAMES)
