"""Tokens of tasks: values by their kind, words with their concepts, and what stays whole."""

from __future__ import annotations

import pytest

from taoloop.models.offline.task_values import VALUES, extract_concepts, is_chinese, stem, tokenize


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("send 'hi there' to bob@example.com", ["quoted hi there", "email bob@example.com"]),
        ("“你好”和「再见」 and `x`", ["quoted 你好", "quoted 再见", "quoted x"]),
        ("it's Ann's book", ["ref it", "name Ann"]),
        ("open https://a.example/c?d=1.", ["url https://a.example/c?d=1"]),
        ("read ./a/b.txt, notes.md and ../x.json", ["path ./a/b.txt", "path notes.md", "path ../x.json"]),
        ("读取notes.txt里的内容", ["path notes.txt"]),
        ("look up coffee.beans. Then", ["key coffee.beans"]),
        ("查询coffee.beans并乘以4", ["key coffee.beans", "number 4"]),
        ("SKU-0042, A-1001 and nightly-7", ["id SKU-0042", "id A-1001", "id nightly-7"]),
        ("the hour in Asia/Shanghai的", ["zone Asia/Shanghai"]),
        ("in my time zone (Asia/Shanghai), 我所在时区（Asia/Tokyo）", ["zone Asia/Shanghai", "zone Asia/Tokyo"]),
        ("from 2026-03-05 to New York", ["date 2026-03-05", "place New York"]),
        ("weather in Market Hall and 东京", ["name Market Hall", "place 东京"]),
        ("1,000 and 2.5, 3", ["number 1000", "number 2.5", "number 3"]),
        ("10km, 3pm, the 21st, 1.2.3", []),
        ("and/or, he/she, km/h", []),
        ("Weather today", []),
    ],
)
def test_values_are_found_by_kind(text: str, values: list[str]) -> None:
    assert [f"{token.kind} {token.value}" for token in tokenize(text) if token.kind in VALUES] == values


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("the number of words", {"@count", "@word"}),
        ("有几个词", {"@count", "@word"}),
        ("getStockPrice", {"@look", "@stock", "@price"}),
        ("get_stock_price", {"@look", "@stock", "@price"}),
        ("Orders pieces of cheese", {"@order", "@piece", "cheese"}),
        ("员工手册", {"员工手册"}),
        ("what is the a of", set()),
    ],
)
def test_the_concepts_of_a_text(text: str, concepts: set[str]) -> None:
    assert extract_concepts(text) == concepts


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("plus 2, then", ["op+", "number", "comma", "then"]),
        ("3.5 squared.", ["number", "post**2", "end"]),
        ("的平方", ["stop", "post**2"]),
        ("再加上", ["then", "op+"]),
        ("do NOT if", ["word", "not", "never"]),
        ("3 + 5!", ["number", "sign", "number", "other"]),
        ("a. b.c", ["stop", "end", "key"]),
    ],
)
def test_the_words_of_arithmetic_and_of_sentences(text: str, kinds: list[str]) -> None:
    assert [token.kind for token in tokenize(text)] == kinds


def test_tokens_know_their_place() -> None:
    task = "先计算 3.5 的平方,再加上我所在时区(Asia/Shanghai)的当前小时数。"
    assert all(task[token.start : token.end] == token.text for token in tokenize(task))


@pytest.mark.parametrize(
    ("word", "base"),
    [("pieces", "piece"), ("cities", "city"), ("address", "address"), ("counting", "count"), ("is", "is")],
)
def test_an_ending_is_left_off(word: str, base: str) -> None:
    assert stem(word) == base


@pytest.mark.parametrize(
    ("text", "chinese"), [("你好", True), ("hello", False), ("東京の天気は?", False), ("서울 天", False)]
)
def test_only_chinese_text_is_chinese(text: str, chinese: bool) -> None:
    assert is_chinese(text) is chinese
