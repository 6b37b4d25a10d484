"""Tools that a prompt does not tell of: found by words, and called by what they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import (
    CALL_TOOL,
    DESCRIBE_TOOL,
    FIND_TOOL,
    CardIndex,
    _index_of,
    is_discovery_tool,
    listed_cards,
    rank_cards,
    unwrap_call_tool,
)
from taoloop.core.decision import Call

CARDS = tuple(
    ToolCard(name=name, purpose=purpose, tier="read", listed=False)
    for name, purpose in (
        ("chat_postMessage", "Sends a message to a channel."),
        ("conversations_list", "Lists all channels of a team."),
        ("users_list", "Lists all users of a team."),
        ("files_delete", "Deletes a file."),
        ("get_weather", "查询一个城市的天气。"),
    )
)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("post a message", "chat_postMessage"),
        ("list channels", "conversations_list"),
        ("delete files", "files_delete"),
        ("查天气", "get_weather"),
        ("users", "users_list"),
    ],
)
def test_the_card_that_fits_best_comes_first(query: str, best: str) -> None:
    assert rank_cards(query, CARDS, 3)[0].name == best


def test_what_fits_nothing_finds_nothing() -> None:
    assert rank_cards("the of quantum", CARDS, 3) == ()
    assert rank_cards("", CARDS, 3) == ()
    assert len(rank_cards("list team", CARDS, 1)) == 1


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("write to everybody in the chat", "chat_postMessage"),
        ("get rid of an attachment", "files_delete"),
        ("show people", "users_list"),
        ("删除文件", "files_delete"),
        ("有哪些用户", "users_list"),
        ("deleting", "files_delete"),
    ],
)
def test_other_words_for_the_same_thing_and_chinese_find_a_card(query: str, best: str) -> None:
    assert rank_cards(query, CARDS, 3)[0].name == best


def test_a_word_of_the_name_counts_more_than_one_of_a_long_text() -> None:
    long = ToolCard(name="export", purpose="Export all. " + "It tells about orders and much else. " * 10, tier="read")
    named = ToolCard(name="orders", purpose="Show them.", tier="read")
    assert [card.name for card in rank_cards("orders", (long, named), 2)] == ["orders", "export"]


def test_further_keywords_find_a_card() -> None:
    index = CardIndex(CARDS, {"users_list": "list /workspaces/{workspaceId}/people directory"})
    assert index.search("workspace", 1)[0].name == "users_list"
    assert CardIndex(CARDS).search("directory workspaces", 1) == ()


def test_the_index_of_the_same_cards_is_built_once_and_that_of_others_anew() -> None:
    rank_cards("post a message", CARDS, 3)
    built = _index_of.cache_info().misses
    assert [rank_cards(query, CARDS, 1)[0].name for query in ("list users", "delete files")] == [
        "users_list",
        "files_delete",
    ]
    assert _index_of.cache_info().misses == built
    others = tuple(replace(card, purpose="Counts zebras.") if card is CARDS[0] else card for card in CARDS)
    assert rank_cards("zebra", others, 1) == (others[0],)
    assert rank_cards("zebra", CARDS, 1) == ()


def test_the_card_of_the_search_asks_for_english_keywords() -> None:
    assert "English keywords" in FIND_TOOL.input_schema["properties"]["query"]["description"]


def test_only_listed_cards_are_told() -> None:
    listed = replace(CARDS[0], listed=True)
    assert listed_cards((*CARDS[1:], listed)) == (listed,)
    every = (listed, CALL_TOOL)
    assert listed_cards(every) is every


def test_a_call_of_the_caller_means_the_one_that_it_names() -> None:
    cards = (*CARDS, CALL_TOOL)
    call = Call(tool="call_tool", args={"name": "users_list", "args": {"a": 1}}, ref="r")
    assert unwrap_call_tool(call, cards) == Call(tool="users_list", args={"a": 1}, ref="r")


@pytest.mark.parametrize(
    "args",
    [
        None,
        {},
        {"name": "users_list"},
        {"name": 5, "args": {}},
        {"name": "users_list", "args": []},
        {"name": "users_list", "args": {}, "more": 1},
        {"name": "call_tool", "args": {}},
    ],
)
def test_a_call_that_names_none_stays_itself(args: object) -> None:
    call = Call(tool="call_tool", args=args)  # as a model may write it
    assert unwrap_call_tool(call, (*CARDS, CALL_TOOL)) is call


def test_a_tool_of_somebody_else_with_that_name_is_not_the_caller() -> None:
    own = ToolCard(name="call_tool", purpose="Something else.", tier="read")
    call = Call(tool="call_tool", args={"name": "users_list", "args": {}})
    assert unwrap_call_tool(call, (*CARDS, own)) is call
    assert not is_discovery_tool(replace(FIND_TOOL, purpose="Something else."))
    assert is_discovery_tool(FIND_TOOL)
    assert is_discovery_tool(DESCRIBE_TOOL)
    assert not is_discovery_tool(CALL_TOOL)
    assert not is_discovery_tool(None)
