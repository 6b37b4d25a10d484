"""The texts of a form for a fork, and the edits between them and what comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from taoloop import Agent, ScriptedModel, ToolError, Trace, tool
from taoloop.core.decision import Act, Answer, Call
from taoloop.errors import ConfigError
from taoloop.runtime.after.fork_draft import ForkDraft, OutcomeText, form_text
from taoloop.runtime.after.fork_edits import EditedObservation, Edits


@tool(tier="read")
def look(item: str) -> str:
    """Look at an item."""
    if item == "nothing":
        raise ToolError("There is no such item.", code="absent")
    return f"{item}\r\nfound\0"


def ran() -> Trace:
    script: list[Any] = [
        {
            "text": "I look.",
            "tool_calls": [{"name": "look", "args": {"item": item}} for item in ("tea", "nothing")],
        },
        "42",
    ]
    return Agent(model=ScriptedModel(script), tools=[look], instructions="Be quick.").run_sync("Get tea.").trace


def test_a_draft_has_the_prompt_the_decision_and_what_came_back() -> None:
    draft = ForkDraft.of(ran(), 1)
    assert (draft.task, draft.instructions, draft.thought) == ("Get tea.", "Be quick.", "I look.")
    calls = [{"tool": "look", "args": {"item": item}} for item in ("tea", "nothing")]
    assert json.loads(draft.decision) == {"calls": calls}
    assert draft.outcomes == (
        OutcomeText(call_id="call_1", tool="look", text="tea\r\nfound\0", failed=False),
        OutcomeText(call_id="call_2", tool="look", text="absent: There is no such item.", failed=True),
    )
    assert json.loads(ForkDraft.of(ran(), 2).decision) == {"answer": "42"}
    assert ForkDraft.of(ran(), 1, {"call_1": "whole"}).outcomes[0].text == "whole"


def test_what_comes_back_from_a_form_untouched_is_no_edit() -> None:
    draft = ForkDraft.of(ran(), 1)
    outcomes = tuple(replace(outcome, text=form_text(outcome.text)) for outcome in draft.outcomes)
    again = replace(draft, outcomes=outcomes, decision=draft.decision.replace("\n", "\r\n") + "  ")
    assert draft.edits(again) == Edits()
    rewritten = replace(draft, decision=json.dumps(json.loads(draft.decision)))  # the same decision
    assert draft.edits(rewritten) == Edits()


def test_what_was_changed_is_an_edit_and_nothing_else() -> None:
    draft = ForkDraft.of(ran(), 1)
    first, second = draft.outcomes
    assert draft.edits(replace(draft, task="Get milk.")) == Edits(task="Get milk.")
    assert draft.edits(replace(draft, thought="", instructions="")) == Edits(thought="", instructions="")
    decided = draft.edits(replace(draft, decision='{"tool": "look", "args": {"item": "milk"}}'))
    assert decided == Edits(decision=Act(calls=(Call(tool="look", args={"item": "milk"}),)))
    answered = ForkDraft.of(ran(), 2).edits(replace(ForkDraft.of(ran(), 2), decision='{"answer": "43"}'))
    assert answered == Edits(decision=Answer(text="43"))
    observed = replace(draft, outcomes=(replace(first, text="gone: sold", failed=True), replace(second, failed=False)))
    assert draft.edits(observed).outcomes == {
        "call_1": EditedObservation(text="sold", code="gone"),
        "call_2": EditedObservation(text="absent: There is no such item."),
    }


@pytest.mark.parametrize(("decision", "message"), [("{", "is not JSON"), (" ", "is empty"), ("[1]", "not a decision")])
def test_a_decision_that_is_none_is_refused(decision: str, message: str) -> None:
    draft = ForkDraft.of(ran(), 1)
    with pytest.raises(ConfigError, match=message):
        draft.edits(replace(draft, decision=decision))


def test_after_the_last_step_there_is_only_the_prompt_and_beyond_nothing() -> None:
    assert ForkDraft.of(ran(), 3) == ForkDraft(at=3, task="Get tea.", instructions="Be quick.")
    with pytest.raises(ConfigError, match="has no step 4"):
        ForkDraft.of(ran(), 4)
