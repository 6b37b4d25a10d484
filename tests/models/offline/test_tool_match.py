"""Which tool a clause is for: its card explains every word, no other fits as well, and a change is plainly ordered."""

from __future__ import annotations

import pytest
from tests.models.offline.toolset import card

from taoloop.core.cards.tool_card import ToolCard
from taoloop.models.offline.task_values import tokenize
from taoloop.models.offline.tool_match import NoMatch, Profile, match_tool

NAMES = ("get_weather", "count_words", "lookup", "delete_file", "read_file", "time_now", "stock_zh", "find_user")
PROFILES = [Profile(card(name)) for name in NAMES]
PARAMETER = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def _match(text: str, profiles: list[Profile], *, may_act: bool = True) -> str:
    """The name of the tool, or why there is none."""
    try:
        return match_tool(tokenize(text), profiles, may_act=may_act).profile.card.name
    except NoMatch as problem:
        return problem.reason


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("the weather in Paris", "get_weather"),
        ("巴黎的天气怎么样", "get_weather"),
        ("the current weather of the city Paris today", "get_weather"),
        ("the weather in Paris in fahrenheit", "get_weather"),
        ("count the words of 'a b'", "count_words"),
        ("“a b”有几个词", "count_words"),
        ("look up coffee.beans", "lookup"),
        ("coffee.beans", "lookup"),
        ("the hour in Asia/Tokyo", "time_now"),
        ("the date in Tokyo", "time_now"),
        ("What is in a.txt", "read_file"),
        ("a.txt 里有什么", "read_file"),
        ("show me a.txt", "read_file"),
        ("商品编码 P-100 的库存数量", "stock_zh"),
        ("find the user Alice", "find_user"),
        ("Delete a.txt", "delete_file"),
        ("把 a.txt 删掉", "delete_file"),
        ("请删除 a.txt", "delete_file"),
        ("the weather", "missing"),
        ("the weather in Paris tomorrow", "no_tool"),
        ("the weather in Paris and Rome", "no_tool"),
        ("the weather for 'Paris' in euros", "no_tool"),
        ("Paris", "no_tool"),
        ("a.txt", "no_tool"),
        ("the words of the city Paris", "no_tool"),
        ("the user 'Ann' or 'Bob'", "no_tool"),
        ("time in my time zone", "no_tool"),
        ("Deleted a.txt", "no_tool"),
        ("Deleting a.txt", "no_tool"),
        ("is a.txt to delete", "no_order"),
        ("the delete of a.txt", "no_order"),
        ("删除了 a.txt", "no_order"),
        ("Delete everything in a.txt", "no_tool"),
        ("Delete a.txt b.txt", "no_tool"),
    ],
)
def test_the_tool_of_a_clause(text: str, tool: str) -> None:
    assert _match(text, PROFILES) == tool


def test_where_no_change_may_be_made_an_order_is_none() -> None:
    assert _match("Delete a.txt", PROFILES, may_act=False) == "no_order"


def test_a_thing_of_a_file_is_not_the_file() -> None:
    assert _match("File a.txt", [Profile(card("delete_file"))]) == "no_order"
    profile = Profile(
        ToolCard(name="delete_file", purpose="Delete a file or a backup.", input_schema=PARAMETER, tier="write")
    )
    assert _match("Delete the backup a.txt", [profile]) == "delete_file"
    assert _match("Delete the backup of a.txt", [profile]) == "no_order"


def test_two_tools_that_fit_as_well_are_none() -> None:
    twins = [
        Profile(ToolCard(name=name, purpose="Read it.", input_schema=PARAMETER, tier="read"))
        for name in ("read_one", "read_two")
    ]
    assert _match("read a.txt", twins) == "several"


def test_what_a_card_says_of_itself_in_the_negative_does_not_count() -> None:
    schema = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
    purpose = "Tell the stock of one item. Does not know prices; never the cost."
    profile = Profile(ToolCard(name="stock", purpose=purpose, input_schema=schema, tier="read"))
    assert _match("the stock of 'tea'", [profile]) == "stock"
    assert _match("the stock and price of 'tea'", [profile]) == "no_tool"


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("convert 5 kg to lb", "kg_to_lb"),
        ("convert 5 lb to kg", "no_tool"),
        ("Convert 68 fahrenheit to celsius", "f_to_c"),
        ("Convert 20 celsius to fahrenheit", "no_tool"),
        ("How many km are 5 miles", "miles_to_km"),
        ("How many miles are 5 km", "no_tool"),
    ],
)
def test_a_conversion_goes_one_way(text: str, tool: str) -> None:
    assert _match(text, [Profile(card(name)) for name in ("kg_to_lb", "f_to_c", "miles_to_km")]) in (tool, "no_tool")


@pytest.mark.parametrize(
    ("text", "part"), [("the hour in Tokyo", "@hour"), ("the minute", "@minute"), ("the time", "")]
)
def test_the_part_of_a_time(text: str, part: str) -> None:
    assert match_tool(tokenize(text), PROFILES).part == part
