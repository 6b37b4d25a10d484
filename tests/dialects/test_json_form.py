"""Replies are shown back to a model with the keys of the prompt text that it was given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.dialects.test_paging_card import Watching, look

from taoloop import Agent
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.prompts import PromptSet
from taoloop.dialects import get_dialect
from taoloop.dialects.json_form import ACTION_FORM, FENCED_FORM, FINAL_FORM, form_of
from taoloop.dialects.text_dialect import ObjectDialect, reply_schema
from taoloop.prompts.load import load_prompts

ACT = Act(calls=(Call(tool="look", args={"size": 1}),), reason="why")
ANSWER = Answer(text="It is tea.", reason="why")
EDITED = """Write one object:
{${thought}"tool": "<name>", "arguments": {<its arguments>}}
or, at the end, with the keys "answer" and no others:
{${thought}"answer": "<text>"}
As in {${thought_example}"tool": "get_tide", "arguments": {"port": "Brest"}}"""


def object_dialect(name: str) -> ObjectDialect:
    dialect = get_dialect(name)
    assert isinstance(dialect, ObjectDialect)
    return dialect


def written(name: str, **texts: str) -> list[object]:
    prompts = load_prompts("en", texts)
    dialect = object_dialect(name).in_form(prompts)
    return [dialect.write(decision).text for decision in (ACT, ANSWER)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_packaged_texts_show_the_forms_of_the_dialects(language: str) -> None:
    texts = load_prompts(language).texts
    for name, form in (("json", ACTION_FORM), ("json_final", FINAL_FORM), ("fenced", FENCED_FORM)):
        thought = texts[f"thought_{name}"] if name == "json" else ""
        assert form_of(texts[f"form_{name}"].replace("${thought}", thought), form) == form
        other = FINAL_FORM if form != FINAL_FORM else ACTION_FORM
        assert form_of(texts[f"form_{name}"].replace("${thought}", thought), other).call == form.call


def test_other_keys_are_followed() -> None:
    assert written("json", form_json=EDITED) == [
        '{"thought": "why", "tool": "look", "arguments": {"size": 1}}',
        '{"thought": "why", "answer": "It is tea."}',
    ]


def test_other_keys_of_the_thought_and_another_order_are_followed() -> None:
    texts = {"form_json": EDITED, "thought_json": '"reasoning": "<why>",'}
    assert written("json", **texts)[1] == '{"reasoning": "why", "answer": "It is tea."}'
    form = '{"action": "<a tool>", "args": {<…>}, "why": "..."} {"action": "finish", "args": "<text>"}'
    assert written("json", form_json=form)[0] == '{"thought": "why", "action": "look", "action_input": {"size": 1}}'
    form = (
        '{"action": "<a tool>", "args": {<…>}, "reason": "<why>"}\n'
        '{"action": "finish", "args": "<text>", "reason": "<why>"}'
    )
    assert written("json", form_json=form) == [
        '{"action": "look", "args": {"size": 1}, "reason": "why"}',
        '{"action": "finish", "args": "It is tea.", "reason": "why"}',
    ]


def test_a_text_that_is_always_the_same_stays() -> None:
    form = (
        '{"type": "tool_call", "tool": "<name>", "args": {<…>}, "reason_summary": "<why>"}\n'
        '{"type": "final", "answer": "<text>", "reason_summary": "<why>"}'
    )
    act, answer = written("json", form_json=form)
    assert json.loads(str(act))["type"] == "tool_call"
    assert answer == '{"type": "final", "answer": "It is tea.", "reason_summary": "why"}'


def test_chinese_keys_and_the_fenced_dialect_are_followed() -> None:
    form = '{"思考": "<…>", "工具": "<名称>", "参数": {<…>}}\n{"思考": "<…>", "答案": "<文本>"}'
    assert written("json", form_json=form)[1] == '{"思考": "why", "答案": "It is tea."}'
    form = '${thought}Action:\n```json\n{"tool": "<name>", "args": {}}\n```\n```json\n{"final": "<text>"}\n```'
    act, answer = written("fenced", form_fenced=form)
    assert act == 'Thought: why\nAction:\n```json\n{"tool": "look", "args": {"size": 1}}\n```'
    assert answer == 'Thought: why\nAction:\n```json\n{"final": "It is tea."}\n```'


@pytest.mark.parametrize(
    "form",
    [
        "Write JSON.",
        '{"tool": "<name>", "args": {}}',
        '{"outil": "<nom>", "entrée": {}} {"réponse": "<texte>"}',
        '{"tool": "<name>", "args": {}, "mood": "<how you feel>"} {"answer": "<text>", "mood": "<how you feel>"}',
        '{"tool": "<name>", "args": {}, "sure": "yes"} {"answer": "<text>", "sure": "yes"}',
    ],
)
def test_a_text_without_a_form_that_can_be_read_back_changes_nothing(form: str) -> None:
    assert written("json", form_json=form) == written("json")


def test_the_schema_of_a_provider_has_the_same_keys() -> None:
    prompts = PromptSet(language="en", texts={"form_json": EDITED, "thought_json": '"thought": "<…>",'})
    cards = (ToolCard(name="look", purpose="test"),)
    schema = reply_schema(get_dialect("json"), cards, None, reasons=True, prompts=prompts)
    assert schema is not None
    assert set(schema["properties"]) == {"thought", "tool", "arguments", "answer"}
    assert schema["properties"]["tool"]["enum"] == ["look"]
    assert schema["required"] == ["thought"]


@pytest.mark.parametrize("in_folder", [True, False])
def test_a_conversation_follows_the_edited_text(tmp_path: Path, in_folder: bool) -> None:
    (tmp_path / "form_json.txt").write_text(EDITED, encoding="utf-8")
    call = '{"thought": "why", "tool": "look", "arguments": {"size": 1}}'
    model = Watching([f"Here:\n```json\n{call}\n```", '{"thought": "seen", "answer": "It is tea."}'])
    prompts = tmp_path if in_folder else {"form_json": EDITED}
    agent = Agent(model=model, dialect="json", tools=[look], prompts=prompts)
    assert agent.run_sync("Look.").answer == "It is tea."
    assert call in model.prompts[1].split("\n")
    assert '"action_input"' not in model.prompts[1].replace('("action" and "action_input"', "")
