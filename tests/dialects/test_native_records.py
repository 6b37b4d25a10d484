"""Native answers that are data: an object that names a tool is a call, or in doubt, unless it can be none."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from taoloop import Agent, ScriptedModel, tool
from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision, Problem
from taoloop.core.message import ModelReply
from taoloop.dialects import NativeDialect
from taoloop.dialects.parsing.strict_json import dumps


def card(name: str, tier: Tier, *parameters: str) -> ToolCard:
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"} for parameter in parameters},
        "required": list(parameters),
        "additionalProperties": False,
    }
    return ToolCard(name=name, purpose="test", tier=tier, input_schema=schema)


CARDS = (card("get_weather", "read", "city"), card("book", "write", "flight"), card("now", "read"))
CALL = {"name": "get_weather", "arguments": {"city": "Rome"}}


def read(reply: Any, *, json_answer: bool = False) -> Decision | Problem:
    text = reply if isinstance(reply, str) else dumps(reply)
    return NativeDialect().read(ModelReply(text=text), CARDS, json_answer=json_answer)


@pytest.mark.parametrize(
    "answer",
    [
        {"name": "get_weather", "temp": 3},
        {"name": "book", "author": "Orwell", "pages": 300},
        [{"name": "get_weather", "temp": 3}, {"name": "get_weather", "temp": 4}],
        {"rows": [{"name": "get_weather", "temp": 3}]},
        'The weather:\n```json\n{"name": "get_weather", "temp": 3}\n```',
    ],
)
def test_data_whose_name_is_that_of_a_tool_is_an_answer(answer: Any) -> None:
    """Its other values can be no arguments of the tool, whatever their keys: other JSON is text."""
    text = answer if isinstance(answer, str) else dumps(answer)
    assert read(answer) == Answer(text=text)


@pytest.mark.parametrize(
    "reply",
    [
        {"name": "get_weather"},
        {"action": "book"},
        {"tool": "get_weather", "temp": 3},
        {"action": "book", "temp": 3},
        {"name": "get_weather", "town": "Rome"},  # a renamed argument is refused, not dropped
        {"name": "get_weather", "values": {"city": "Rome"}},
        {"name": "get_weather", "temp": 3, "status": "ok"},
        {"name": "now", "temp": 4},
        {"name": "book", "temp": 3, "arguments": {"flight": "X1"}},
        '{"name": "book", "temp": 3}\n{"flight": "X1"}',
    ],
)
def test_an_object_that_may_be_a_call_is_refused(reply: Any) -> None:
    assert isinstance(read(reply), Problem)


@pytest.mark.parametrize("reply", [{"name": "now"}, {"action": "book"}, {"name": "get_weather", "town": "Rome"}])
def test_where_the_answer_must_be_json_its_schema_judges_an_object_without_arguments(reply: Any) -> None:
    """An answer such as `{"action": "delete"}` must not run the tool of that name."""
    assert read(reply, json_answer=True) == Answer(text=dumps(reply))
    assert isinstance(read({**CALL}, json_answer=True), Act)
    assert isinstance(read({"name": "get_weather", "city": "Rome"}, json_answer=True), Act)


def test_remarks_beside_a_wrapped_call_are_reported_and_refused_before_an_effect() -> None:
    """`{"status": …, "data": {a call}}`: a wrapper is repaired, and a remark beside it is never dropped in silence."""
    wrapped = {"status": "ok", "data": CALL}
    assert read(wrapped) == Act(calls=(Call(tool="get_weather", args={"city": "Rome"}),), unknown_keys=("status",))
    refused = read({"status": "ok", "data": {"name": "book", "arguments": {"flight": "X1"}}})
    assert isinstance(refused, Problem)
    assert "status" in refused.message


def test_an_answer_of_an_output_type_runs_no_tool_of_its_name() -> None:
    ran: list[int] = []

    @tool(tier="write", name="archive")
    def archive() -> str:
        """Archive everything."""
        ran.append(1)
        return "done"

    class Choice(BaseModel):
        action: str

    model = ScriptedModel(['{"action": "archive"}'])
    agent = Agent(model=model, tools=[archive], dialect="native", output_type=Choice)
    result = agent.run_sync("Archive everything. Which action is that?", allow=["archive"])
    assert result.output == Choice(action="archive")
    assert not ran
