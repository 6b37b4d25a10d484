"""A run in Chinese is Chinese throughout: what the runtime itself says to its model and to people."""

from __future__ import annotations

import asyncio
import re
from string import Formatter

from tests.chinese import chinese_of
from tests.scripting import call

from taoloop import Agent, ScriptedModel, tool
from taoloop.core.events import Observed, ReplyRejected
from taoloop.core.text import chinese_texts
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.runtime.texts import TEXTS

ENGLISH = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)+")


@tool(tier="write")
def pay(amount: int) -> str:
    """支付一笔款项。"""
    return f"已支付 {amount}"


@tool(tier="read", timeout_s=0.01)
async def wait() -> str:
    """等待。"""
    await asyncio.Event().wait()
    return ""


def test_both_languages_have_the_same_values() -> None:
    def fields(text: str) -> set[str]:
        return {field for _, field, _, _ in Formatter().parse(text) if field}

    english, chinese = TEXTS.english, chinese_of(TEXTS)
    assert [name for name in english if fields(english[name]) != fields(chinese[name])] == []


def test_every_chinese_text_is_used() -> None:
    assert set(chinese_texts("runtime")) == set(TEXTS.english.values())


def test_a_timeout_is_chinese() -> None:
    agent = Agent(model=ScriptedModel([call("wait"), "完成。"]), tools=[wait])
    [fault] = [fact.error for _, _, fact in agent.run_sync("请等待").trace if isinstance(fact, Observed)]
    assert fault is not None
    assert fault.code == "timeout"
    assert not ENGLISH.search(fault.message + fault.hint)


def test_a_structured_answer_that_is_none_is_refused_in_chinese() -> None:
    agent = Agent(model=ScriptedModel(["不知道", "3"]), output_type=int)
    result = agent.run_sync("一加二等于几？")
    assert result.output == 3
    [rejected] = [fact for _, _, fact in result.trace if isinstance(fact, ReplyRejected)]
    assert rejected.message.startswith("最终答案")


def test_edited_arguments_that_do_not_fit_are_named_in_chinese() -> None:
    def approve(_: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(approved=True, args={"amount": []})

    agent = Agent(model=ScriptedModel([call("pay", amount=1), "完成。"]), tools=[pay], approve=approve)
    result = agent.run_sync("请付款")
    assert result.status == "waiting"
    assert "修改后的参数不符合要求" in result.reason
