"""Which calls the offline model makes first: a table of tasks, half of them Chinese, with all tools on offer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.models.test_offline_run import Step, World, first
from tests.models.test_offline_world import (
    ALL,
    add,
    calculator,
    current_time,
    days_between,
    distance,
    get_forecast,
    get_weather,
    is_prime,
    lookup,
    multiply,
    search_handbook,
    time_now,
    weather_zh,
    web_search,
)

from taoloop.tools.tool import Tool

_ENGLISH: list[tuple[str, str, dict[str, Any]]] = [
    ("What is 12*(3+4)?", "calculator", {"expression": "12 * (3 + 4)"}),
    ("17 times 23", "calculator", {"expression": "17 * 23"}),
    ("Calculate 3.5 squared", "calculator", {"expression": "3.5**2"}),
    ("25% of 80", "calculator", {"expression": "0.25 * 80"}),
    ("half of 90", "calculator", {"expression": "90 / 2"}),
    ("the sum of 3, 4 and 5", "calculator", {"expression": "3 + 4 + 5"}),
    ("subtract 5 from 20", "calculator", {"expression": "20 - 5"}),
    ("square root of 16", "calculator", {"expression": "16**0.5"}),
    ("what is seven plus three", "calculator", {"expression": "7 + 3"}),
    ("What time is it in Tokyo?", "time_now", {"zone": "Asia/Tokyo"}),
    ("current time in New York", "time_now", {"zone": "America/New_York"}),
    ("what's the time in Europe/Madrid", "time_now", {"zone": "Europe/Madrid"}),
    ("What's the weather in Beijing today?", "get_weather", {"city": "Beijing"}),
    ("Is it raining in Smallville?", "get_weather", {"city": "Smallville"}),
    ("temperature in Paris in fahrenheit", "get_weather", {"city": "Paris", "unit": "fahrenheit"}),
    ("Do I need an umbrella in London?", "get_weather", {"city": "London"}),
    ("look up the post count of huala", "lookup", {"key": "huala.post_count"}),
    ("look up huala.email", "lookup", {"key": "huala.email"}),
    ("Convert 100 USD to EUR", "convert_currency", {"amount": 100, "from_currency": "USD", "to_currency": "EUR"}),
    ("How many euros is $250?", "convert_currency", {"amount": 250, "from_currency": "USD", "to_currency": "EUR"}),
    ("convert 10 km to miles", "convert_units", {"value": 10, "from_unit": "km", "to_unit": "miles"}),
    ("distance between Beijing and Shanghai", "distance", {"a": "Beijing", "b": "Shanghai"}),
    ("How far is it from Paris to Rome?", "distance", {"a": "Paris", "b": "Rome"}),
    ("search for books about deep learning", "search_books", {"query": "deep learning"}),
    ("find 3 books by Liu Cixin, limit 3", "search_books", {"query": "Liu Cixin", "limit": 3}),
    ("Read notes.txt", "read_file", {"path": "notes.txt"}),
    ("show me the contents of docs/a.md", "read_file", {"path": "docs/a.md"}),
    ("Write 'hello' to out.txt", "write_file", {"path": "out.txt", "content": "hello"}),
    ("delete notes.txt", "delete_file", {"path": "notes.txt"}),
    ("list the files in the src folder", "list_files", {"folder": "src"}),
    ("Search for 'TODO' in notes.txt", "search_files", {"pattern": "TODO", "path": "notes.txt"}),
    ("count the words in 'a b c'", "count_words", {"text": "a b c"}),
    (
        "Send an email to bob@example.com with subject 'Hello' and body 'See you at 5'",
        "send_email",
        {"to": "bob@example.com", "subject": "Hello", "body": "See you at 5"},
    ),
    ("translate 'good morning' to French", "translate", {"text": "good morning", "target_language": "French"}),
    ("stock price of AAPL", "get_stock_price", {"symbol": "AAPL"}),
    ("Find the user Alice", "find_user", {"name": "Alice"}),
    ("create an event titled 'Standup' on 2026-03-05", "create_event", {"title": "Standup", "date": "2026-03-05"}),
    ("roll a dice", "roll_dice", {}),
]

_CHINESE: list[tuple[str, str, dict[str, Any]]] = [
    ("计算 12*(3+4)", "calculator", {"expression": "12 * (3 + 4)"}),
    ("三加五等于多少", "calculator", {"expression": "3 + 5"}),
    ("3.5 的平方是多少", "calculator", {"expression": "3.5**2"}),
    ("100 的 25%", "calculator", {"expression": "100 * 0.25"}),
    ("3和4的和是多少", "calculator", {"expression": "3 + 4"}),
    ("把 6 和 7 相乘", "calculator", {"expression": "6 * 7"}),
    ("二百除以八", "calculator", {"expression": "200 / 8"}),
    ("2 的 10 次方", "calculator", {"expression": "2**10"}),
    ("三点五乘以二", "calculator", {"expression": "3.5 * 2"}),
    ("计算 12 和 30 的平均值", "calculator", {"expression": "(12 + 30) / 2"}),
    ("东京现在几点", "time_now", {"zone": "Asia/Tokyo"}),
    ("请问纽约现在是什么时间", "time_now", {"zone": "America/New_York"}),
    ("现在几点了", "time_now", {}),
    ("北京今天天气怎么样", "get_weather", {"city": "北京"}),
    ("襄阳的天气如何", "get_weather", {"city": "襄阳"}),
    ("巴黎现在多少华氏度,天气怎么样", "get_weather", {"city": "巴黎", "unit": "fahrenheit"}),
    ("查询 huala 的发帖数", "lookup", {"key": "huala.post_count"}),
    ("查一下 huala.email", "lookup", {"key": "huala.email"}),
    ("把 100 美元换成欧元", "convert_currency", {"amount": 100, "from_currency": "USD", "to_currency": "EUR"}),
    ("一百日元等于多少人民币", "convert_currency", {"amount": 100, "from_currency": "JPY", "to_currency": "CNY"}),
    ("5 公里换算成英里", "convert_units", {"value": 5, "from_unit": "公里", "to_unit": "英里"}),
    ("北京到上海有多远", "distance", {"a": "北京", "b": "上海"}),
    ("搜索关于深度学习的书", "search_books", {"query": "深度学习"}),
    ("找一下《三体》这本书", "search_books", {"query": "三体"}),
    ("读取 notes.txt", "read_file", {"path": "notes.txt"}),
    ("打开文件 docs/a.md 看看内容", "read_file", {"path": "docs/a.md"}),
    ("把“你好”写入 hello.txt", "write_file", {"path": "hello.txt", "content": "你好"}),
    ("删除 a.txt", "delete_file", {"path": "a.txt"}),
    ("列出 src 目录下的文件", "list_files", {"folder": "src"}),
    ("在 notes.txt 里搜索“TODO”", "search_files", {"pattern": "TODO", "path": "notes.txt"}),
    ("统计“a b c”有多少个单词", "count_words", {"text": "a b c"}),
    (
        "给 bob@example.com 发邮件,主题是“会议”,内容是“明天三点开会”",
        "send_email",
        {"to": "bob@example.com", "subject": "会议", "body": "明天三点开会"},
    ),
    ("把“你好”翻译成英文", "translate", {"text": "你好", "target_language": "English"}),
    ("查一下特斯拉的股价", "get_stock_price", {"symbol": "特斯拉"}),
    ("掷骰子", "roll_dice", {}),
    ("查找用户 Alice", "find_user", {"name": "Alice"}),
]


@pytest.mark.parametrize(("task", "name", "args"), _ENGLISH + _CHINESE)
def test_among_all_tools_the_right_one_is_called_first(task: str, name: str, args: dict[str, Any]) -> None:
    assert first(task, ALL) == (name, args)


_FORECAST: Step = ("get_forecast", {"location": "Berlin", "days": 5})
_DATES = {"start": "2024-01-01", "end": "2024-02-01"}


@pytest.mark.parametrize(
    ("task", "tools", "step"),
    [
        ("Add 3 and 4", (add, multiply), ("add", {"a": 3, "b": 4})),
        ("6 乘以 7", (add, multiply), ("multiply", {"a": 6, "b": 7})),
        ("加上 2 到 5", (add,), ("add", {"a": 2, "b": 5})),
        ("25% of 80", (multiply,), ("multiply", {"a": 0.25, "b": 80})),
        ("time in Asia/Tokyo", (current_time,), ("current_time", {"zone": "Asia/Tokyo"})),
        ("明天苏州市的天气", (weather_zh,), ("weather_zh", {"city": "苏州"})),
        ("What is the weather in Oslo", (weather_zh, calculator), ("weather_zh", {"city": "Oslo"})),
        ("Search the handbook for annual leave", (search_handbook,), ("search_handbook", {"query": "annual leave"})),
        ("员工手册里年假有几天", (search_handbook, calculator), ("search_handbook", {"query": "年假"})),
        ("Who wrote Hamlet?", (web_search, calculator), ("web_search", {"query": "Who wrote Hamlet"})),
        ("谁写了红楼梦", (calculator, web_search), ("web_search", {"query": "谁写了红楼梦"})),
        ("How many posts does huala have?", (lookup, get_weather), ("lookup", {"key": "huala.post_count"})),
        ("What will the weather be in Berlin for the next 5 days?", (get_forecast, time_now), _FORECAST),
        ("上海未来7天的天气", (get_forecast, time_now), ("get_forecast", {"location": "上海", "days": 7})),
        ("2024-01-01 到 2024-02-01 之间有多少天", (days_between, calculator), ("days_between", _DATES)),
        ("how many days between 2024-01-01 and 2024-02-01", (days_between, calculator), ("days_between", _DATES)),
        ("Is 17 prime?", (is_prime, calculator), ("is_prime", {"n": 17})),
        ("17 是质数吗", (calculator, is_prime), ("is_prime", {"n": 17})),
        ("东京和巴黎相距多远", (distance, get_weather), ("distance", {"a": "东京", "b": "巴黎"})),
    ],
)
def test_with_few_tools_the_arguments_take_the_form_that_each_asks_for(
    task: str, tools: tuple[Tool, ...], step: Step
) -> None:
    assert first(task, tools) == step


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("what time is it in Tokyo and in Paris", ["time_now", "time_now"]),
        ("东京和巴黎现在几点", ["time_now", "time_now"]),
        ("Read notes.txt and count the words in it", ["read_file", "count_words"]),
        ("读取 notes.txt，统计单词数", ["read_file", "count_words"]),
        ("How many words are in notes.txt?", ["read_file", "count_words"]),
        ("读取 notes.txt 并翻译成法语", ["read_file", "translate"]),
        ("Get the weather in Paris and save it to out.txt", ["get_weather", "write_file"]),
        ("Find the user Alice, then list the orders of that user", ["find_user", "list_orders"]),
        ("convert 100 USD to EUR, then multiply by 3", ["convert_currency", "calculator"]),
        ("查询 huala 的发帖数和 mika 的发帖数，然后求和", ["lookup", "lookup", "calculator"]),
        ("look up the post count of huala and the post count of mika and add them", ["lookup", "lookup", "calculator"]),
        ("What's 15% of 240, and what's the weather in Oslo?", ["calculator", "get_weather"]),
        ("What is 2 plus 2, and how far is it from Paris to Rome?", ["calculator", "distance"]),
        ("What's the weather in Paris? Then tell me the time there.", ["get_weather", "time_now"]),
        ("首先计算 3 的平方，然后加上 4，最后除以 2", ["calculator", "calculator", "calculator"]),
        ("Do not delete a.txt, just read it", ["read_file"]),
        ("不要删除 a.txt,读取它", ["read_file"]),
        ("Don't send any email. What is 2+2?", ["calculator"]),
    ],
)
def test_several_steps_come_in_the_order_of_the_task(task: str, names: list[str]) -> None:
    assert World(task, ALL).names == names
