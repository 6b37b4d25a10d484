"""A run in Chinese is Chinese throughout: what the model and people read about calls that were not run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.scripting import call

from taoloop import Agent, Limits, ScriptedModel, tool
from taoloop.core.events import ActionRequested, ApprovalGiven, Finished, Observed
from taoloop.core.texts import TEXTS
from taoloop.policy import Policy
from taoloop.runtime.approvals.request import ApprovalAnswer

_ENGLISH = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)+")


@tool(tier="write")
def pay(amount: int) -> str:
    """支付一笔款项。"""
    return f"已支付 {amount}"


@pytest.mark.parametrize(
    ("options", "tool_name", "code"),
    [
        ({}, "refund", "unknown_tool"),
        ({"policy": Policy(profile="headless")}, "pay", "denied"),
        ({"approve": lambda _: ApprovalAnswer(approved=False, note="不要支付。")}, "pay", "refused"),
        ({"approve": lambda _: False}, "pay", "refused"),
        ({"approved_tiers": ("write",), "limits": Limits(max_tool_calls=1)}, "pay", "tool_call_limit"),
    ],
)
def test_what_was_not_run_is_told_in_chinese(options: dict[str, Any], tool_name: str, code: str) -> None:
    script: list[Any] = [call(tool_name, amount=1), call(tool_name, amount=2), "完成。"]
    agent = Agent(model=ScriptedModel(script), tools=[pay], **options)
    trace = agent.run_sync("请把账单结清").trace
    assert trace.agent.language == "zh"
    faults = [fact.error for _, _, fact in trace if isinstance(fact, Observed) and fact.error is not None]
    assert faults
    assert {fault.code for fault in faults} == {code}
    texts = [text for fault in faults for text in (fault.message, fault.hint)]
    for _, _, fact in trace:
        match fact:
            case ActionRequested(reasons=reasons):
                texts += reasons
            case ApprovalGiven(note=note):
                texts.append(note)
            case Finished(reason=reason):
                texts.append(reason)
            case _:
                pass
    assert not [text for text in texts if _ENGLISH.search(text)]


def test_a_note_brings_its_own_full_stop() -> None:
    assert TEXTS.text("zh", "refused", note="不要支付") == "人工拒绝了此操作：不要支付。"
