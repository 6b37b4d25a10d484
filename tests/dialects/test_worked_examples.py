"""The worked examples of the prompts: what they show, and that nothing of them passes for what the task needs."""

from __future__ import annotations

import re

import pytest
from tests.scripting import call

from taoloop import Agent, ScriptedModel, tool
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Problem
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ReplyRejected
from taoloop.core.message import Delta, Message, ModelReply, ToolCallText
from taoloop.core.prompts import PromptSet
from taoloop.dialects import get_dialect, output_format_prompt
from taoloop.dialects.answer_stream import AnswerStream
from taoloop.dialects.parsing.placeholders import repeats_example
from taoloop.dialects.parsing.strict_json import dumps
from taoloop.prompts import load_prompts
from taoloop.runtime.after.replay import replay

PROMPTS = {language: load_prompts(language) for language in ("en", "zh")}


def card(name: str) -> ToolCard:
    schema = {"type": "object", "properties": {"port": {"type": "string"}}}
    return ToolCard(name=name, purpose="Looks something up.", input_schema=schema, tier="read")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_example_of_native_calls_shows_no_written_call(language: str) -> None:
    """A written call would be copied as text: what happens is told, and only the answer stands as it is sent."""
    for reasons in (True, False):
        form = output_format_prompt(PROMPTS[language], "native", tools=True, reasons=reasons)
        told, answer = form.rsplit("\n\n", 1)
        assert not set("{}[]`=") & set(form)
        assert not re.search(r"\w\(\w*\)|\w_\w", form.replace("（tool calls）", ""))
        assert repeats_example(answer)
        assert not repeats_example(told)
        assert ("why" in told.rsplit("\n\n", 1)[1] or "理由" in told.rsplit("\n\n", 1)[1]) == reasons
        read = get_dialect("native").read(ModelReply(text=answer), (card("look"),), was_seen=lambda _: True)
        assert read == Answer(text=answer)
    assert "14:32" not in output_format_prompt(PROMPTS[language], "native", tools=False, reasons=True)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_where_the_answer_is_data_the_native_example_says_so(language: str) -> None:
    prompts = PROMPTS[language].narrowed("native", "react", output=True)
    form = output_format_prompt(prompts, "native", tools=True, reasons=True)
    assert form.endswith(
        ("Its text is the JSON value of the schema below and nothing else.", "Schema 所要求的 JSON 值。")
    )
    assert not repeats_example(form)
    assert "answer_native_example" not in prompts.texts
    assert "answer_native_output_example" not in PROMPTS[language].narrowed("native", "react").texts


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("dialect", ["text", "json", "json_final", "fenced", "native"])
def test_an_example_that_comes_back_is_no_fact(language: str, dialect: str) -> None:
    """Even by an agent with a tool of the same name; what the task or an observation has may be said and called."""
    form = output_format_prompt(PROMPTS[language], dialect, tools=True, reasons=True)
    example = ModelReply(text=form.rsplit("\n\n", 1)[1])
    tide = card("get_tide")
    read = get_dialect(dialect).read
    refused = read(example, (tide,))
    assert isinstance(refused, Problem)
    assert "repeats the example" in refused.message
    assert not isinstance(read(example, (tide,), was_seen=lambda _: True), Problem)
    if dialect != "native":
        assert isinstance(read(example, (card("look"),)), Act)  # which gets the names of the known tools
        return
    copied = ModelReply(text=form.rsplit("\n", 3)[1] + "\n" + example.text)
    assert isinstance(read(copied, (tide,)), Problem)
    port = {"en": "Brest", "zh": "青岛"}[language]
    called = ModelReply(tool_calls=(ToolCallText(name="get_tide", arguments=dumps({"port": port}), id="1"),))
    assert isinstance(read(called, (tide,)), Problem)
    assert isinstance(read(called, (tide,), was_seen=lambda _: True), Act)


COPIED = {"en": "High water in Brest is at 14:32 today.", "zh": "青岛今天 14:32 满潮。"}


@tool(tier="read")
def get_tide(port: str) -> str:
    """Get the tides of a port."""
    return f"{port}: high water at 14:32"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_copied_answer_costs_one_repair_turn(language: str) -> None:
    model = ScriptedModel([COPIED[language], "It is open."])
    agent = Agent(model=model, tools=[get_tide], dialect="native", language=language)
    result = agent.run_sync("Is the shop open?")
    assert (result.status, result.answer) == ("completed", "It is open.")
    (rejected,) = [event.fact for event in result.trace.events if isinstance(event.fact, ReplyRejected)]
    assert ("repeats the example" if language == "en" else "照抄了输出格式的示例") in rejected.message
    assert all(decided.same for decided in replay(result.trace))


def test_the_same_answer_stands_where_its_time_was_seen() -> None:
    model = ScriptedModel([call("get_tide", port="Brest"), COPIED["en"]])
    result = Agent(model=model, tools=[get_tide], dialect="native").run_sync("When is high water in Brest?")
    assert result.answer == COPIED["en"]
    model = ScriptedModel([call("get_tide", port="Brest"), "At 14:32."])
    history = [Message(role="user", content="I am in Brest."), Message(role="assistant", content="Good.")]
    result = Agent(model=model, tools=[get_tide], dialect="native").run_sync(
        "When is high water here?", history=history
    )
    assert result.answer == "At 14:32."


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_copied_answer_is_not_streamed(language: str) -> None:
    stream = AnswerStream("native", tools_offered=True, has_schema=False)
    assert not any(stream.feed(Delta(kind="text", text=char)) for char in COPIED[language].rstrip(".。"))


def test_without_tools_the_native_form_speaks_of_none() -> None:
    asked: list[str] = []

    class Watching(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            asked.append(request.messages[0].content)
            return await super().complete(request)

    assert Agent(model=Watching(["4"]), dialect="native").run_sync("What is 2 + 2?").answer == "4"
    (prompt,) = asked
    assert "No tool can be called" in prompt
    assert "14:32" not in prompt


def test_prompts_without_a_place_for_the_example_are_filled_as_before() -> None:
    """Those of a stored run, which has its prompts in its trace, and forms that somebody edited."""
    texts = {name: text for name, text in PROMPTS["en"].texts.items() if not name.endswith("_example")}
    stored = PromptSet(language="en", texts=texts | {"form_native": "Call a tool. ${thought}Or answer."})
    assert output_format_prompt(stored, "native", tools=True, reasons=False) == "Call a tool. Or answer."
    edited = load_prompts("en", {"form_native": "Call a tool, or answer."})
    assert output_format_prompt(edited, "native", tools=True, reasons=True) == "Call a tool, or answer."


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_longer_text_that_quotes_the_example_is_an_answer(language: str) -> None:
    """A model that repeats all it has read claims nothing."""
    form = output_format_prompt(PROMPTS[language], "native", tools=True, reasons=True)
    text = f"I have read this: {form} And the page says that there are twelve pieces of tea. " * 2
    assert get_dialect("native").read(ModelReply(text=text), (card("look"),)) == Answer(text=text.strip())
