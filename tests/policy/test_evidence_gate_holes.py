"""What an answer could get past the check of its evidence, and what could not get past it though it was honest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scripting import call

from taoloop import Agent, Result, ScriptedModel, tool
from taoloop.tools.skills import SkillFolder, approve_skills

LOOK = call("look_up")
OBSERVED = "INV-2041: 37 pieces, shelf B4, price 1234.5 EUR, updated 2024-05-12"


@tool(tier="read")
def look_up(text: str = OBSERVED, fail: bool = False) -> str:
    """Look a record up."""
    if fail:
        raise ValueError(text)
    return text


def ask(*replies: Any, task: str = "Look it up.", tools: Any = (look_up,), **options: Any) -> Result:
    agent = Agent(model=ScriptedModel(list(replies)), tools=list(tools), **{"evidence": "warn", **options})
    return agent.run_sync(task)


def gaps(*replies: Any, **options: Any) -> list[tuple[str, str]]:
    return [(gap.code, gap.value) for gap in ask(*replies, **options).evidence]


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("There are 37 pieces [obs:call_1]. The price is 999 EUR.", "999"),
        ("There are 99 pieces:\n- 37 are on the shelf [obs:call_1]", "99"),
        ("| part | pieces |\n|---|---|\n| a | 37 [obs:call_1] |\n| b | 99 |", "99"),
        ("There are 37 pieces [obs:call_1]. The other one is INV-2042.", "INV-2042"),
        ("There are 37 pieces [obs:call_1]. They came on 2024-05-13.", "2024-05-13"),
        ("There are 37 pieces [obs:call_1]. See https://example.com/a.", "https://example.com/a"),
    ],
)
def test_a_value_of_a_sentence_that_cites_nothing_is_looked_for_everywhere(answer: str, value: str) -> None:
    assert gaps(LOOK, answer) == [("uncited", value)]


@pytest.mark.parametrize(
    "answer",
    [
        "There are 37 pieces [obs:call_1]. So the 37 pieces of INV-2041 cost 1,234.50 EUR each.",
        "There are 37 pieces at 1234.5 EUR [obs:call_1].\n\nIn all that is 45,676.50 EUR.",
        "There are 37 pieces [obs:call_1]. You asked for 5000.",
        "Step 2 of the plan is done. There are 37 pieces [obs:call_1]. Berlin is nice, I am 100% sure.",
        "37 pieces of INV-2041.\n\n[obs:call_1]",
    ],
)
def test_such_a_sentence_may_repeat_compute_and_say_what_has_no_value(answer: str) -> None:
    assert gaps(LOOK, answer, task="Are there 5000?") == []


def test_a_citation_within_a_field_does_not_switch_the_check_of_the_others_off() -> None:
    answer = json.dumps({"name": "INV-2041 [obs:call_1]", "pieces": 38})
    assert gaps(LOOK, answer, output_type=dict) == [("not_observed", "38")]
    unknown = json.dumps({"name": "INV-2041 [obs:call_7]", "pieces": 37})
    assert gaps(LOOK, unknown, output_type=dict) == [("unknown", "")]
    assert gaps(LOOK, json.dumps({"name": "INV-2041 [obs:call_1]", "pieces": 37}), output_type=dict) == []


def test_a_todo_list_is_no_observation() -> None:
    todos = call("track_todos", todos=[{"text": "Greet 4000 people", "state": "open"}])
    assert gaps(todos, "Hello Ann! [obs:none]", tools=["track_todos"]) == []
    assert ("unsourced", "4000") in gaps(todos, "There are 4000 people [obs:none].", tools=["track_todos"])


def test_what_an_approved_skill_says_is_the_operators_word(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "minutes"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: minutes\ndescription: Minutes.\n---\nEnd with form F-12.\n")
    folder = SkillFolder(str(tmp_path / "skills"), pins=str(tmp_path / "pins"))
    load, task = call("load_skill", name="minutes"), "Write the minutes: Ann orders 30 teas."
    answer = "Ann orders 30 teas, see form F-12 [obs:none]."
    assert [code for code, _ in gaps(load, answer, task=task, tools=[folder])] == ["used_tools"]
    approve_skills(folder)
    assert gaps(load, answer, task=task, tools=[folder]) == []


def test_a_failure_may_be_reported_with_its_number() -> None:
    failed = call("look_up", text="503 Service Unavailable", fail=True)
    assert gaps(failed, "The server answered 503 “Service Unavailable” [obs:none].") == []
    assert gaps(failed, "The server answered 504 [obs:none].") == [("unsourced", "504")]
    assert [code for code, _ in gaps(failed, "The server answered 503 [obs:call_1].")] == ["failed"]
