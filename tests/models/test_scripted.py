"""Scripts: which dialect their replies are read in."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop import Agent, ScriptedModel, tool

ACT = '{"thought": "t", "action": "look", "action_input": {"at": "mail"}}'
FINAL = '{"final_answer": "Done."}'


@tool(tier="read")
def look(at: str) -> str:
    """Look at something."""
    return f"one {at}"


@pytest.mark.parametrize(
    ("replies", "dialect"),
    [
        ([ACT, FINAL], "json"),
        ([f"```json\n{ACT}\n```", FINAL], "json"),
        ([f"I look.\n{ACT}", FINAL], "json"),
        ([{"thought": "t", "action": "look", "action_input": {"at": "mail"}}, {"final_answer": "Done."}], "json"),
        (['{"thought": "t", "action": ', FINAL], "json"),
        ([ACT, "Done."], "native"),
        (['{"city": "Paris"}'], "native"),
        (['Thought: t\nAction: look\nAction Input: {"at": "mail"}', "Thought: t\nFinal Answer: Done."], "text"),
        (["Done."], "native"),
        ([], "native"),
    ],
)
def test_the_dialect_of_a_script_is_that_of_its_replies(replies: list[Any], dialect: str) -> None:
    assert ScriptedModel(replies).dialect == dialect


@pytest.mark.parametrize("first", [f"I look.\n{ACT}", {"action": "look", "action_input": {"at": "mail"}}])
def test_a_script_of_decision_objects_runs(first: Any) -> None:
    result = Agent(model=[first, FINAL], tools=[look]).run_sync("Go.")
    assert (result.answer, [call.args for call in result.trace.calls.values()]) == ("Done.", [{"at": "mail"}])
