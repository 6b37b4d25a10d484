"""Which values the offline model sees: identifiers, owners, parts of texts, file names, units, flags, percentages."""

from __future__ import annotations

from typing import Any

import pytest
from taoloop.models.offline.extract import extract
from tests.models import test_offline_shop as shop
from tests.models.test_offline_run import World
from tests.models.test_offline_world import calculator, convert_units, lookup, read_file, search_files, write_file

from taoloop.tools.tool import Tool

_SHOP: tuple[Tool, ...] = (
    shop.city_weather, shop.stock_level, shop.order_details, shop.salary_of, shop.manager_of, shop.replace_text,
    shop.count_letter, shop.contains_text, shop.sort_numbers, shop.unit_converter, shop.transfer_money, calculator,
    shop.fetch_document,
)  # fmt: skip

_CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("How many SKU-0042 are in stock?", "stock_level", {"sku": "SKU-0042"}),
    ("stock of AB_77.x", "stock_level", {"sku": "AB_77.x"}),
    ("SKU-0042 的库存是多少", "stock_level", {"sku": "SKU-0042"}),
    ("查询SKU-0042的库存", "stock_level", {"sku": "SKU-0042"}),
    ("What is the status of order A-1001?", "order_details", {"order_id": "A-1001"}),
    ("status of order 1001", "order_details", {"order_id": "1001"}),
    ("订单 A-1001 的状态", "order_details", {"order_id": "A-1001"}),
    ("What is Alice's salary?", "salary_of", {"name": "Alice"}),
    ("Who is Alice's manager?", "manager_of", {"name": "Alice"}),
    ("Show me Alice’s manager", "manager_of", {"name": "Alice"}),
    ("Alice 的工资是多少", "salary_of", {"name": "Alice"}),
    ("查一下 Bob 的经理", "manager_of", {"name": "Bob"}),
    (
        "Replace 'cat' with 'dog' in 'the cat sat'",
        "replace_text",
        {"text": "the cat sat", "old": "cat", "new": "dog"},
    ),
    (
        "In 'the cat sat' replace 'cat' by 'dog'",
        "replace_text",
        {"text": "the cat sat", "old": "cat", "new": "dog"},
    ),
    ("把“猫坐着”里的“猫”换成“狗”", "replace_text", {"text": "猫坐着", "old": "猫", "new": "狗"}),
    ("将“猫坐着”中的“猫”替换为“狗”", "replace_text", {"text": "猫坐着", "old": "猫", "new": "狗"}),
    ("在“猫坐着”中把“猫”改成“狗”", "replace_text", {"text": "猫坐着", "old": "猫", "new": "狗"}),
    ("Count the letter r in 'strawberry'", "count_letter", {"text": "strawberry", "letter": "r"}),
    ("How many times does the letter r stand in 'strawberry'?", "count_letter", {"text": "strawberry", "letter": "r"}),
    ("“strawberry”里有几个字母 r", "count_letter", {"text": "strawberry", "letter": "r"}),
    (
        "Check whether 'the Deadline is near' contains the word Deadline",
        "contains_text",
        {"text": "the Deadline is near", "needle": "Deadline"},
    ),
    ("检查“截止日期临近”是否包含“截止”一词", "contains_text", {"text": "截止日期临近", "needle": "截止"}),
    ("Sort 3, 1, 2 in descending order", "sort_numbers", {"numbers": [3, 1, 2], "descending": True}),
    ("Sort the numbers 3, 1 and 2 in ascending order", "sort_numbers", {"numbers": [3, 1, 2], "descending": False}),
    ("Sort 3, 1 and 2", "sort_numbers", {"numbers": [3, 1, 2]}),
    ("把 3、1、2 降序排列", "sort_numbers", {"numbers": [3, 1, 2], "descending": True}),
    ("将 3、1、2 按从小到大排序", "sort_numbers", {"numbers": [3, 1, 2], "descending": False}),
    ("weather in Oslo in fahrenheit", "city_weather", {"city": "Oslo", "units": "fahrenheit"}),
    ("奥斯陆的天气,用华氏度", "city_weather", {"city": "奥斯陆", "units": "fahrenheit"}),
    ("Read 笔记.md", "fetch_document", {"path": "笔记.md"}),
    ("读取 笔记.md", "fetch_document", {"path": "笔记.md"}),
    ("读取总结.txt", "fetch_document", {"path": "总结.txt"}),
    ("打开文件 总结.txt 看看内容", "fetch_document", {"path": "总结.txt"}),
    ("Read résumé.txt", "fetch_document", {"path": "résumé.txt"}),
    (
        "How many feet are 3 m?",
        "unit_converter",
        {"value": 3, "source_unit": "m", "target_unit": "feet"},
    ),
    ("3 米是多少英尺", "unit_converter", {"value": 3, "source_unit": "米", "target_unit": "英尺"}),
    ("10 percent more than 50", "calculator", {"expression": "50 + 50 * 0.1"}),
    ("What is 20% less than 80?", "calculator", {"expression": "80 - 80 * 0.2"}),
    ("What is 5 more than 12?", "calculator", {"expression": "12 + 5"}),
    ("20% off 80", "calculator", {"expression": "80 - 80 * 0.2"}),
    ("比 50 多 10% 是多少", "calculator", {"expression": "50 + 50 * 0.1"}),
    ("比 80 少 5 是多少", "calculator", {"expression": "80 - 5"}),
    ("Send 50 to Bob", "transfer_money", {"amount": 50, "recipient": "Bob"}),
    ("Transfer 50 to Bob", "transfer_money", {"amount": 50, "recipient": "Bob"}),
    ("给 Bob 转账 50", "transfer_money", {"amount": 50, "recipient": "Bob"}),
    ("向张三汇款 50 元", "transfer_money", {"amount": 50, "recipient": "张三"}),
]


@pytest.mark.parametrize(("task", "name", "args"), _CALLS)
def test_the_arguments_of_the_first_call(task: str, name: str, args: dict[str, Any]) -> None:
    assert World(task, _SHOP, most=1).steps == [(name, args)]


@pytest.mark.parametrize(
    ("task", "args"),
    [
        ("Sort 'pear', 'fig' and 'apple' in descending order", {"words": ["pear", "fig", "apple"], "order": "desc"}),
        ("Sort the words pear, fig and apple", {"words": ["pear", "fig", "apple"]}),
        ("把“梨”、“苹果”降序排列", {"words": ["梨", "苹果"], "order": "desc"}),
    ],
)
def test_lists_of_words_and_an_order(task: str, args: dict[str, Any]) -> None:
    assert World(task, [shop.sort_words, shop.sort_numbers], most=1).steps == [("sort_words", args)]


@pytest.mark.parametrize("task", ["Which file contains the word deadline?", "哪个文件包含单词 deadline"])
def test_the_word_for_a_word_is_no_part_of_it(task: str) -> None:
    assert World(task, [search_files, read_file], most=1).steps == [("search_files", {"pattern": "deadline"})]


@pytest.mark.parametrize("task", ["Save 'hi' to 笔记.md", "把“hi”写入 笔记.md"])
def test_a_chinese_file_is_written(task: str) -> None:
    assert World(task, [read_file, write_file], most=1).steps == [("write_file", {"path": "笔记.md", "content": "hi"})]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SKU-0042 and A-1001", [("id", "SKU-0042"), ("id", "A-1001")]),
        ("版本v1.2.3的订单B2_7", [("id", "v1.2.3"), ("id", "B2_7")]),
        ("a 5-day trip of 10km", [("number", "5"), ("number", "10")]),
        ("ping 192.168.0.1", [("id", "192.168.0.1")]),
        ("3f2a-88bc", [("id", "3f2a-88bc")]),
        ("add 1e3 to 2", [("number", "1e3"), ("number", "2")]),
        ("the 21st, at 3pm, 20-sided", [("number", "3"), ("number", "20")]),
        ("读取 会议 纪要.md", [("path", "纪要.md")]),
        ("把“a”存到总结.txt里", [("quoted", "a"), ("path", "总结.txt")]),
        ("删除报告.pdf", [("path", "报告.pdf")]),
    ],
)
def test_identifiers_and_file_names_stay_whole(text: str, values: list[tuple[str, str]]) -> None:
    found = [(atom.kind, atom.value) for atom in extract(text).atoms]
    assert sorted(found) == sorted(values)


def test_a_number_within_an_identifier_is_no_quantity() -> None:
    assert World("add 2 to A-1001", [calculator, lookup]).steps == []


def test_a_unit_of_the_task_is_taken_by_its_side() -> None:
    step = World("3 米等于多少英尺", [convert_units], most=1).steps[0][1]
    assert step == {"value": 3, "from_unit": "米", "to_unit": "英尺"}
