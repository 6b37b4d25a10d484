"""A call that a native model writes into its text is never shown as text of the answer while it is being written."""

from __future__ import annotations

import pytest
from tests.dialects.test_replies import replies, tools

from taoloop.core.message import Delta, ModelReply
from taoloop.dialects.answer_stream import AnswerStream
from taoloop.dialects.call_text import CallText
from taoloop.dialects.standalone_reader import parse_api_choice

NAMES = ("weather_now", "cancel_booking")


def shown(text: str, size: int, names: tuple[str, ...] = NAMES) -> str:
    stream = AnswerStream("native", tools_offered=True, has_schema=False, tool_names=names)
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    return "".join(stream.feed(Delta(kind="text", text=part)) for part in parts)


@pytest.mark.parametrize("size", [1, 3, 16, 1000])
@pytest.mark.parametrize(
    "call",
    [
        'weather_now(city="Turin")',
        '`weather_now(city="Turin")`',
        "['weather_now(city=\"Turin\")']",
        '[ weather_now(city="Turin") ]',
        'weather\\_now(city="Turin")',
        'functions.weather_now(city="Turin")',
        'weather_now\n{"city": "Turin"}',
        '```python\nweather_now(city="Turin")\n```',
        '```json\n{"name": "weather_now", "arguments": {"city": "Turin"}}\n```',
        '{"name": "weather_now", "arguments": {"city": "Turin"}}',
        '("weather_now", {"city": "Turin"})',
        '[("weather_now", {"city": "Turin"})]',
        'weather_now, {"city": "Turin"}',
    ],
)
def test_text_that_begins_like_a_call_waits(call: str, size: int) -> None:
    assert shown(call, size) == ""
    assert shown(f"I look at it.\n\n{call}", size) == "I look at it."


@pytest.mark.parametrize("size", [1, 3, 7, 16, 1000])
def test_a_call_within_a_line_waits(size: int) -> None:
    call = '{"name": "weather_now", "arguments": {"city": "Turin"}}'
    assert shown(f"I look at it now. {call}", size) == "I look at it now."
    for tag in ('<weather_now city="Turin"/>', "<weather_now>\n<city>Turin</city>\n</weather_now>"):
        assert shown(f"Well. {tag}", size) == "Well."


@pytest.mark.parametrize("size", [1, 3, 16, 1000])
def test_a_call_that_only_its_tool_and_arguments_show_waits(size: int) -> None:
    assert shown("weather_now: Turin", size) == ""
    assert shown("cancel_booking：B-7", size) == ""
    for head in ("Now I call weather_now.", "Now I call weather_now with these arguments:"):
        for call in ('{"city": "Turin"}', '```json\n{"city": "Turin"}\n```'):
            assert shown(f"{head}\n{call}", size).rstrip(".:") == head.rstrip(".:")


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    "answer",
    [
        "The weather in Turin is fine, and weather_now was right.",
        "Weather reports say so; cancel the booking or not.",
        'weather_now gives {"degrees": 21} and nothing else.',
        "weather_now: gives the weather.\ncancel_booking: cancels a booking.",
        'As JSON:\n{"city": "Turin", "degrees": 21}\nThat is all.',
    ],
)
def test_an_answer_goes_on(answer: str, size: int) -> None:
    assert shown(answer, size) == answer.rstrip(".") or shown(answer, size) == answer


def test_no_reply_of_the_corpus_shows_its_call() -> None:
    """Whatever becomes a call, or is refused as one, was not shown in part as an answer."""
    for reply in (reply for reply in replies() if reply["dialect"] == "native" and not reply.get("allowed")):
        cards = tools()[reply["tools"]]
        parsed = parse_api_choice(reply["output"])
        if not isinstance(parsed, ModelReply) or parsed.tool_calls or reply["expect"]["kind"] != "action":
            continue
        names = tuple(card["name"] for card in cards)
        for size in (1, 7):
            text = shown(parsed.text, size, names)
            assert not set(text) & set("({<"), (reply["id"], text)


def test_where_a_text_may_become_a_call() -> None:
    def find(text: str) -> tuple[int, bool]:
        return CallText(NAMES).find(text)

    assert find("It is so. weath") == (len("It is so. "), False)
    assert find("It is so. weather") == (len("It is so. "), False)
    assert find("It is so. weathers ") == (len("It is so. weathers "), False)
    assert find('Look: weather_now(city="x")') == (len("Look: "), True)
    assert find('a\n{"na') == (2, False)
    assert find('a\n{"name": 1') == (2, True)
    assert find('a\n{"city": 1')[0] == len('a\n{"city": 1')
