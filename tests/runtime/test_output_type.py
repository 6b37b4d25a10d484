"""Answers as data: every type, every dialect, repaired once, exact at a limit, and replayed without the type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from taoloop import Agent, Limits, MemoryJournal, Result, ScriptedModel, tool
from taoloop.core.decision import Answer, Problem
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ModelReplied, ReplyRejected
from taoloop.core.message import ModelReply
from taoloop.errors import ConfigError
from taoloop.runtime.after.replay import replay
from taoloop.runtime.output_type import OutputValidator


class Price(BaseModel):
    item: str
    price: Annotated[float, Field(ge=0)]
    notes: list[str] = []

    @field_validator("item")
    @classmethod
    def known(cls, item: str) -> str:
        if item == "gold":
            raise ValueError("gold is not for sale")
        return item


@dataclass
class Point:
    x: int
    y: int


class Named(TypedDict):
    name: str


@tool(tier="read")
def stock(item: str) -> int:
    """Say how many there are."""
    return 12


class Watching:
    """Answers from a script and keeps the requests."""

    spec = "watching"

    def __init__(self, replies: Sequence[Any], dialect: str) -> None:
        self._script, self.dialect = ScriptedModel(replies, strict=False), dialect
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return await self._script.complete(request)

    def check_used(self, replies: int) -> None:
        pass

    async def close(self) -> None:
        pass


GOOD = '{"item": "tea", "price": 3.5}'
WRITTEN = {
    "native": "{}",
    "text": "Thought: it is known.\nFinal Answer: {}",
    "json": '{"thought": "it is known.", "action": "final", "action_input": {}}',
}


def written(dialect: str, answer: str) -> str:
    return WRITTEN[dialect].replace("{}", answer)


def run(output_type: Any, *replies: str, dialect: str = "native", **options: Any) -> Result:
    model = ScriptedModel([written(dialect, reply) for reply in replies], strict=False)
    return Agent(model=model, dialect=dialect, output_type=output_type, **options).run_sync("What is the price?")


def rejections(result: Result) -> list[ReplyRejected]:
    return [event.fact for event in result.trace.events if isinstance(event.fact, ReplyRejected)]


@pytest.mark.parametrize("dialect", WRITTEN)
def test_the_answer_is_a_value_of_the_type_in_every_dialect(dialect: str) -> None:
    """S4-19, S1-40."""
    result = run(Price, GOOD, dialect=dialect)
    assert result.output == Price(item="tea", price=3.5)
    assert result.answer == GOOD
    assert result.trace.agent.output_schema is not None


@pytest.mark.parametrize("dialect", WRITTEN)
def test_an_answer_that_does_not_fit_is_sent_back_once_with_every_violation(dialect: str) -> None:
    result = run(Price, '{"item": "tea", "price": -1, "notes": [1]}', GOOD, dialect=dialect)
    assert result.output == Price(item="tea", price=3.5)
    [rejected] = rejections(result)
    assert rejected.code == "bad_answer"
    assert "'price'" in rejected.message
    assert "'notes.0'" in rejected.message


def test_an_answer_that_never_fits_ends_as_unreadable() -> None:
    result = run(Price, *["no idea"] * 9)
    assert (result.status, result.answer, result.output) == ("unreadable", None, None)


@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        (int, "42", 42),
        (int, '"42"', 42),
        (list[int], "[]", []),
        (list[int], '["1", 2]', [1, 2]),
        (Literal["yes", "no"], "yes", "yes"),
        (Literal["yes", "no"], '"Yes"', "yes"),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Named, '```json\n{"name": "tea"}\n```', {"name": "tea"}),
        (bool, "true", True),
        (int | None, "null", None),
        ({"type": "object", "required": ["a"]}, '{"a": [1]}', {"a": [1]}),
        ({"type": "string", "pattern": "^[a-z]+$"}, "tea", "tea"),
        (str, "just words", None),
        (None, "just words", None),
    ],
)
def test_types_and_schemas(output_type: Any, text: str, value: Any) -> None:
    result = run(output_type, text)
    assert result.status == "completed"
    assert result.output == value


@pytest.mark.parametrize(
    "output_type", [{"type": "no such"}, {"$ref": "https://example.com/schema"}, object(), {"pattern": "("}]
)
def test_what_is_no_type_and_no_schema_is_told_before_the_run(output_type: Any) -> None:
    with pytest.raises(ConfigError):
        run(output_type, "1")


def test_the_prompt_tells_the_schema_at_the_start_at_a_repair_and_at_the_close() -> None:
    for dialect, language in ((one, spoken) for one in WRITTEN for spoken in ("en", "zh")):
        call = {"tool_calls": [{"name": "stock", "args": {"item": "tea"}}]}
        acts = {
            "native": call,
            "text": 'Thought: look.\nAction: stock\nAction Input: {"item": "tea"}',
            "json": '{"thought": "look.", "action": "stock", "action_input": {"item": "tea"}}',
        }
        model = Watching([written(dialect, "nothing"), acts[dialect], written(dialect, GOOD)], dialect)
        agent = Agent(model=model, output_type=Price, tools=[stock], language=language, limits=Limits(max_steps=1))
        result = agent.run_sync("price?")
        assert (result.status, result.output) == ("max_steps_exceeded", Price(item="tea", price=3.5))
        schema = json.dumps(result.trace.agent.output_schema, ensure_ascii=False)
        told = [number for number, message in enumerate(model.requests[-1].messages) if schema in message.content]
        assert len(told) == 3, (dialect, language)
        assert told[0] == 0
        assert told[-1] == len(model.requests[-1].messages) - 1
        offered = [request.reply_schema for request in model.requests]
        if dialect == "native":
            assert offered == [result.trace.agent.output_schema] * 3
        if dialect == "text":
            assert offered == [None] * 3
        if dialect == "json":
            names = [schema["properties"]["action"]["enum"] for schema in offered if schema is not None]
            assert names == [["stock", "read_observation", "final"]] * 2 + [["final"]]


def test_a_prompt_without_an_output_type_has_no_rule_for_it() -> None:
    spec = Agent(model=["x"]).spec_for("x")
    assert "output" not in spec.prompts.texts


def test_a_closing_answer_that_does_not_fit_leaves_the_exact_status_and_no_answer() -> None:
    call = {"tool_calls": [{"name": "stock", "args": {"item": "tea"}}]}
    model = ScriptedModel([call, "no JSON at all"])
    result = Agent(model=model, output_type=Price, tools=[stock], max_steps=1).run_sync("price?")
    assert (result.status, result.answer, result.output) == ("max_steps_exceeded", None, None)


@pytest.mark.parametrize(
    "replies", [(GOOD,), ('{"item": "gold", "price": 1}', GOOD), ("nothing", GOOD), ('{"price": "2", "item": "tea"}',)]
)
def test_a_replay_decides_the_same_without_the_type(replies: tuple[str, ...]) -> None:
    """Also where a validator refused for a reason that no schema can tell."""
    result = run(Price, *replies)
    assert result.status == "completed"
    assert len(rejections(result)) == len(replies) - 1
    assert all(decided.same for decided in replay(result.trace))


def test_what_a_validator_raises_is_a_refusal() -> None:
    class Odd(BaseModel):
        x: int

        @field_validator("x")
        @classmethod
        def odd(cls, x: int) -> int:
            return x // (x - 1)

    result = run(Odd, '{"x": 1}', '{"x": 2}')
    assert result.output == Odd(x=2)
    assert "ZeroDivisionError" in rejections(result)[0].message


def test_a_run_is_resumed_under_its_own_schema_whatever_the_agent_asks_for_now() -> None:
    journal = MemoryJournal()
    call = {"tool_calls": [{"name": "stock", "args": {"item": "tea"}}]}
    script: list[Any] = [call, call, "7", "8"]
    first = Agent(model=ScriptedModel([*script[:2], "x"]), output_type=int, tools=[stock], max_steps=1, journal=journal)
    run_id = first.run_sync("how many?").run_id
    other: Agent = Agent(  # the run keeps the type that it began with
        model=ScriptedModel(["", "", "seven", "8"], strict=False), output_type=Price, tools=[stock], journal=journal
    )
    result = other.resume_sync(run_id, max_steps=3)
    assert result.output == 8


def test_the_reason_of_a_native_answer_is_kept_apart_from_it() -> None:
    result = run(int, "Twelve were there.\n```json\n12\n```")
    replied = next(event.fact for event in result.trace.events if isinstance(event.fact, ModelReplied))
    assert replied.decision == Answer(text="12", reason="Twelve were there.")


@given(st.text())
def test_no_text_breaks_the_judge(text: str) -> None:
    judged = OutputValidator(Price.model_json_schema()).check(Answer(text=text))
    assert isinstance(judged, Answer | Problem)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-99, 99) | st.text(),
        lambda s: st.lists(s) | st.dictionaries(st.text(), s),
    )
)
def test_what_fits_comes_back_as_it_was(value: Any) -> None:
    answers = OutputValidator({})
    judged = answers.check(Answer(text=json.dumps(value)))
    assert isinstance(judged, Answer)
    assert answers.value(judged.text) == value


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Household(BaseModel):
    pets: list[Cat | Dog]


def test_a_union_is_told_apart_by_its_constants() -> None:
    """Both for lossless corrections and for what is wrong."""
    judge = OutputValidator.of(Household)
    assert judge is not None
    fits = judge.check(Answer(text='{"pets": [{"kind": "dog", "good": "true"}, {"kind": "cat", "lives": "9"}]}'))
    assert isinstance(fits, Answer)
    assert judge.value(fits.text) == Household(pets=[Dog(kind="dog", good=True), Cat(kind="cat", lives=9)])
    wrong = judge.check(Answer(text='{"pets": [{"kind": "cat", "lives": "many"}]}'))
    assert isinstance(wrong, Problem)
    assert '\'pets.0.lives\': "many" is not of type "integer"' in wrong.message
    unclear = judge.check(Answer(text='{"pets": [{"kind": "bird"}]}'))
    assert isinstance(unclear, Problem)
    assert "not valid under any" in unclear.message


def test_a_schema_that_refers_to_itself_is_corrected_at_every_level() -> None:
    judge = OutputValidator({"type": "object", "properties": {"in": {"$ref": "#"}, "n": {"type": "integer"}}})
    fits = judge.check(Answer(text='{"n": "1", "in": {"n": "2", "in": {"n": "3"}}}'))
    assert isinstance(fits, Answer)
    assert judge.value(fits.text) == {"n": 1, "in": {"n": 2, "in": {"n": 3}}}


@pytest.mark.parametrize("repair_turns", [0, 1, 3])
def test_answers_that_do_not_fit_are_sent_back_as_often_as_repair_turns_says(repair_turns: int) -> None:
    """Each in the step of the answer; the next one is a step of its own."""
    wrong = ["nothing"] * (repair_turns + 1)
    agent = Agent(
        model=[*wrong, written("native", GOOD)],
        output_type=Price,
        repair_turns=repair_turns,
        limits=Limits(max_consecutive_errors=None),
    )
    result = agent.run_sync("price?")
    assert result.output == Price(item="tea", price=3.5)
    replies = [event.fact for event in result.trace.events if isinstance(event.fact, ModelReplied)]
    assert [reply.purpose for reply in replies] == ["decide", *["repair"] * repair_turns, "decide"]
    assert [reply.step for reply in replies] == [*[1] * (repair_turns + 1), 2]


def test_the_limit_of_errors_goes_before_repair_turns() -> None:
    agent = Agent(model=["nothing"] * 2, output_type=Price, repair_turns=9, limits=Limits(max_consecutive_errors=2))
    result = agent.run_sync("price?")
    assert (result.status, result.trace.model_calls) == ("unreadable", 2)
