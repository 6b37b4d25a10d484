"""The form of S4: one object with thought, action and args, or with thought and final."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.dialects.test_paging_card import Watching

from taoloop import Agent, tool
from taoloop.config.agent_file import load_agent
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.message import ModelReply
from taoloop.dialects import get_dialect
from taoloop.dialects.text_dialect import reply_schema
from taoloop.dialects.texts import problem_message

SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
CARDS = (
    ToolCard(name="lookup", purpose="test", input_schema=SCHEMA, tier="read"),
    ToolCard(name="now", purpose="test", tier="read"),
)
FORM = get_dialect("json_final")


@tool(tier="read")
async def lookup(key: str) -> str:
    """Look a key up."""
    return f"{key} is 5"


def read(reply: str | dict[str, Any]) -> Decision | Problem:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return FORM.read(ModelReply(text=text, finish_reason="stop"), CARDS)


@pytest.mark.parametrize(
    ("reply", "decision"),
    [
        (
            {"thought": "t", "action": "lookup", "args": {"key": "a"}},
            Act(calls=(Call(tool="lookup", args={"key": "a"}),), reason="t"),
        ),
        ({"thought": "t", "action": "now", "args": {}}, Act(calls=(Call(tool="now", args={}),), reason="t")),
        ({"thought": "t", "final": "It is 5."}, Answer(text="It is 5.", reason="t")),
        ({"thought": "", "final": "It is 5."}, Answer(text="It is 5.")),
        ({"thought": "t", "action": None, "args": None, "final": "5"}, Answer(text="5", reason="t")),
        (
            {"thought": "t", "action": "lookup", "args": {"key": "a"}, "final": ""},
            Act(calls=(Call(tool="lookup", args={"key": "a"}),), reason="t"),
        ),
        ('```json\n{"thought": "t", "final": "It is 5."}\n```', Answer(text="It is 5.", reason="t")),
    ],
)
def test_s4_20_one_object_with_thought_and_an_action_or_a_final(
    reply: str | dict[str, Any], decision: Decision
) -> None:
    """S4-20: its only keys are thought, action, args and final; S4-58: an empty final is none."""
    assert read(reply) == decision


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        ({"action": "lookup", "args": {"key": "a"}}, "no_decision", "no thought"),
        ({"final": "It is 5."}, "no_decision", "no thought"),
        ({"thought": None, "final": "It is 5."}, "no_decision", "no thought"),
        ({"thought": "t", "action": "now"}, "bad_action", "no args"),
        ({"thought": "t", "action": "now", "args": None}, "bad_action", "no args"),
        ({"thought": "t", "args": {"key": "a"}}, "no_decision", "neither an action"),
        ({"thought": "t", "action": "lookup", "args": {"key": "a"}, "final": "5"}, "two_decisions", "an action and"),
        ({"thought": "t", "args": {"key": "a"}, "final": "5"}, "two_decisions", "an action and"),
        ({"thought": "t", "action": "lookup", "final": "5"}, "two_decisions", "an action and"),
        ({"thought": "t", "final": ""}, "bad_final", "empty"),
        ({"thought": "t", "final": "It is 5.", "mood": "good"}, "stray_text", "mood"),
    ],
)
def test_s4_21_and_s4_58_the_combination_is_validated(reply: dict[str, Any], code: str, words: str) -> None:
    """S4-21: thought always, action and args together, final without them. S4-58: an empty final is no final."""
    problem = read(reply)
    assert isinstance(problem, Problem), problem
    assert problem.code == code
    assert words in problem.message.casefold()


def test_the_corrections_are_in_chinese_too() -> None:
    for reply, words in (({"final": "5"}, "没有思考"), ({"thought": "t", "action": "now"}, "没有 args")):
        problem = read(reply)
        assert isinstance(problem, Problem)
        assert words in problem_message(problem, "zh")


@pytest.mark.parametrize("decision", [Act(calls=(Call(tool="now", args={}),), reason="why"), Answer(text="12")])
def test_what_it_writes_is_read_back_and_fits_its_schema(decision: Decision) -> None:
    text = FORM.write(decision).text
    assert set(json.loads(text)) in ({"thought", "action", "args"}, {"thought", "final"})
    assert read(text) == decision
    schema = reply_schema(FORM, CARDS, None, reasons=False)
    assert schema is not None
    assert schema["required"] == ["thought"]
    judge = jsonschema_rs.validator_for(dict(schema))
    assert judge.is_valid(json.loads(text))
    assert not judge.is_valid({"action": "now", "args": {}})


@pytest.mark.parametrize(("language", "word"), [("en", "go together"), ("zh", "必须同时出现")])
def test_an_agent_is_asked_in_this_form_and_sees_its_replies_in_it(language: str, word: str) -> None:
    replies = [
        '{"thought": "look", "action": "lookup", "args": {"key": "a"}}',
        '{"thought": "both", "action": "lookup", "args": {"key": "b"}, "final": "5"}',
        '{"thought": "seen", "final": "a is 5"}',
    ]
    model = Watching(replies)
    agent = Agent(model=model, dialect="json_final", tools=[lookup], language=language)
    result = agent.run_sync("What is a?")
    assert (result.status, result.answer) == ("completed", "a is 5")
    assert word in model.prompts[0]
    assert replies[0] in model.prompts[-1].split("\n")
    assert model.prompts[-1].count(word) == 2, "the correction names the form"
    assert '"action_input"' not in model.prompts[-1]


def test_an_agent_file_chooses_it(tmp_path: Path) -> None:
    script = tmp_path / "replies.json"
    script.write_text(json.dumps(['{"thought": "t", "final": "It is tea."}']), encoding="utf-8")
    file = tmp_path / "agent.yaml"
    file.write_text(f"model: scripted:{script}\ndialect: json_final\n", encoding="utf-8")
    agent = load_agent(str(file))
    assert agent.run_sync("What is it?").answer == "It is tea."
