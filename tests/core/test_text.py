"""Texts: their length in tokens, their language, and catalogues of them."""

from __future__ import annotations

import gc
import re
from importlib import import_module

import pytest
from hypothesis import given, strategies as st

from taoloop.core.message import Message, ToolCallText, message_tokens
from taoloop.core.text import (
    MESSAGE_TOKENS,
    RUN_LANGUAGE,
    TextCatalog,
    estimate_tokens,
    join_sentences,
    language_of,
    lazy_pattern,
    truncate_to_tokens,
)
from taoloop.errors import ToolError


@pytest.mark.parametrize(
    "text",
    [
        "北京现在几点?",
        "先计算 3.5 的平方,再加上我所在时区(Asia/Shanghai)的当前小时数,然后给出最终结果。",
        "查询 README.md",
        "用 calculator 计算 3*4",
        "把 hello world 写入 notes.txt",
        "删除",
        "給我看看訂單",
    ],
)
def test_chinese_text_is_chinese(text: str) -> None:
    assert language_of(text) == "zh"


@pytest.mark.parametrize(
    "text",
    [
        "What is 17 times 23?",
        "東京の天気は?",
        "Ask 张三 about the invoice",
        "Translate 你好世界 to English",
        "서울 날씨 漢字",
        "",
        "Who is 李白?",
    ],
)
def test_a_han_character_alone_does_not_make_a_text_chinese(text: str) -> None:
    assert language_of(text) == "en"


def test_a_text_of_a_catalogue_is_translated_by_the_file_of_its_package() -> None:
    texts = TextCatalog("core", {"more": "{count:,} more item{s}", "new": "{count} left"})
    assert texts.text("zh", "more", count=3, s="s") == "还有 3 项"
    assert texts.text("fr", "more", count=3, s="s") == "3 more items"
    assert texts.text("zh", "new", count=3) == "3 left"  # not translated yet


def test_a_text_of_a_run_is_in_its_language() -> None:
    texts = TextCatalog("core", {"more": "{count:,} more item{s}"})
    assert texts.run_text("more", count=1, s="") == "1 more item"
    token = RUN_LANGUAGE.set("zh")
    try:
        assert texts.run_text("more", count=1, s="") == "还有 1 项"
    finally:
        RUN_LANGUAGE.reset(token)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("word", 1), ("x" * 400, 100), ("茶的价格", 4), ("价格 12", 3), ("\ud800", 1), ("é" * 30, 20)],
)
def test_four_ascii_characters_or_one_chinese_one_are_a_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_calls_in_a_message_count_too() -> None:
    plain = Message(role="assistant", content="")
    call = ToolCallText(name="look", arguments='{"a": "' + "x" * 400 + '"}')
    assert message_tokens(plain) == MESSAGE_TOKENS
    assert message_tokens(Message(role="assistant", content="", tool_calls=(call,))) > 100


@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert estimate_tokens(one) <= estimate_tokens(one + other) <= estimate_tokens(one) + estimate_tokens(other) + 1


@given(st.text(max_size=300), st.integers(0, 80))
def test_the_beginning_of_a_text_has_at_most_so_many_tokens_and_no_fewer_than_fit(text: str, most: int) -> None:
    kept = truncate_to_tokens(text, most)
    assert text.startswith(kept)
    assert estimate_tokens(kept) <= most
    assert kept == text or estimate_tokens(text[: len(kept) + 1]) > most


def test_a_lazy_pattern_is_compiled_at_its_first_use() -> None:
    unbalanced = lazy_pattern("(")
    assert unbalanced.pattern == "("
    with pytest.raises(re.error):
        unbalanced.search("x")


def test_a_lazy_pattern_has_the_methods_of_a_compiled_one() -> None:
    pattern = lazy_pattern("a+", re.IGNORECASE)
    assert pattern.findall("aAb aa") == ["aA", "aa"]
    assert pattern.sub("-", "bab") == "b-b"
    assert pattern.fullmatch("AA") is not None
    assert pattern.flags & re.IGNORECASE
    assert pattern.pattern == "a+"
    with pytest.raises(AttributeError, match="find"):
        pattern.find("a")  # type: ignore[attr-defined]  # a pattern has no such method


def test_every_lazy_pattern_of_the_runtime_compiles() -> None:
    import_module("taoloop.runtime.bound_agent")
    gc.unfreeze()  # `conftest.py` hides what the collection of the tests has made
    kinds = type(lazy_pattern("x")).__mro__[:2]  # of those that were not used, and of the others
    patterns = [pattern for pattern in gc.get_objects() if type(pattern) in kinds]
    gc.freeze()
    assert len(patterns) > 200
    for pattern in patterns:
        if pattern.pattern != "(":  # that of the test above
            pattern.match("")


def test_an_error_of_a_catalogue_has_its_text_and_its_hint() -> None:
    texts = TextCatalog("core", {"gone": "{name} is gone.", "gone_hint": "{count:,} more item{s}", "late": "Too late."})
    values = {"name": "a.txt", "count": 2, "s": "s"}
    error = texts.run_error(ToolError, "gone", values, code="not_found")
    assert (error.message, error.hint, error.code) == ("a.txt is gone.", "2 more items", "not_found")
    assert texts.run_error(ToolError, "gone", values, hint="Wait.").hint == "Wait."
    assert texts.run_error(ToolError, "late").hint == ""
    token = RUN_LANGUAGE.set("zh")
    try:
        assert texts.run_error(ToolError, "gone", values).hint == "还有 2 项"
    finally:
        RUN_LANGUAGE.reset(token)


def test_sentences_are_joined_as_their_language_does() -> None:
    assert join_sentences("It failed.", "", "Try again.") == "It failed. Try again."
    assert join_sentences("失败了。", "请重试。") == "失败了。请重试。"
    assert join_sentences("") == ""
