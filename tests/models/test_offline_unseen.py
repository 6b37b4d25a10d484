"""Sixty tasks in both languages with tools from all walks of life, which the planner has no word about."""

from __future__ import annotations

import pytest
from tests.models.test_offline_crafts import TOOLS
from tests.models.test_offline_run import Step, World

_TASKS: list[tuple[str, list[Step]]] = [
    (
        "When is high tide in the harbour Whitby on 2026-03-05?",
        [("tide_table", {"harbour": "Whitby", "date": "2026-03-05"})],
    ),
    ("Where is parcel 1Z999-AA1?", [("parcel_track", {"tracking_number": "1Z999-AA1"})]),
    ("Track the parcel 00340434", [("parcel_track", {"tracking_number": "00340434"})]),
    ("Turn on the lamp in the kitchen", [("lamp_switch", {"room": "kitchen", "on": True})]),
    ("Switch off the lamp in the bedroom", [("lamp_switch", {"room": "bedroom", "on": False})]),
    ("Should the lamp in the kitchen be on?", []),
    ("Set the temperature of the kitchen to 21", [("set_thermostat", {"room": "kitchen", "degrees": 21})]),
    ("Drop the table users", [("drop_table", {"table": "users"})]),
    ("Did anyone drop the table users?", []),
    ("How many rows has the table users?", [("row_count", {"table": "users"})]),
    ("What does the term 'churn' mean?", [("glossary", {"term": "churn"})]),
    ("Define 'churn'", [("glossary", {"term": "churn"})]),
    ("yield of the 5 year government bond of Germany", [("bond_yield", {"country": "Germany", "years": 5})]),
    (
        "How much higher is the bond yield of Germany than that of Japan?",
        [
            ("bond_yield", {"country": "Germany"}),
            ("bond_yield", {"country": "Japan"}),
            ("calculator", {"expression": "2.5 - 1.5"}),
        ],
    ),
    ("What is the mass of Jupiter?", [("planet_mass", {"planet": "Jupiter"})]),
    (
        "Which planet is heavier, Mars or Jupiter?",
        [("planet_mass", {"planet": "Mars"}), ("planet_mass", {"planet": "Jupiter"})],
    ),
    (
        "trains from Lyon to Paris on 2026-04-01",
        [("train_times", {"origin": "Lyon", "destination": "Paris", "date": "2026-04-01"})],
    ),
    ("trains to Paris from Lyon", [("train_times", {"origin": "Lyon", "destination": "Paris"})]),
    ("Write 14 in Roman numerals", [("to_roman", {"number": 14})]),
    ("What is the hex code of the colour red?", [("hex_color", {"color": "red"})]),
    ("Turn 'hello' into upper case", [("uppercase", {"text": "hello"})]),
    ("md5 of 'hello'", [("md5", {"text": "hello"})]),
    ("Is 2026-12-25 a public holiday in France?", [("is_holiday", {"date": "2026-12-25", "country": "France"})]),
    ("Add 'buy milk' to the to-do list with high priority", [("add_todo", {"title": "buy milk", "priority": "high"})]),
    ("Can I add 'buy milk' to the to-do list?", []),
    ("What is the amount of invoice INV-2024-007?", [("invoice", {"invoice_id": "INV-2024-007"})]),
    (
        "email address of the customer of invoice INV-7",
        [("invoice", {"invoice_id": "INV-7"}), ("customer_email", {"customer": "Acme"})],
    ),
    ("How tall is Everest?", [("elevation", {"mountain": "Everest"})]),
    (
        "How much higher is Everest than K2?",
        [
            ("elevation", {"mountain": "Everest"}),
            ("elevation", {"mountain": "K2"}),
            ("calculator", {"expression": "8849 - 8611"}),
        ],
    ),
    (
        "Reserve the room Saturn on 2026-03-05 for 6 people",
        [("book_room", {"room": "Saturn", "date": "2026-03-05", "people": 6})],
    ),
    ("Find recipes with eggs, flour and milk", [("search_recipes", {"ingredients": ["eggs", "flour", "milk"]})]),
    ("How many km are 5 miles?", [("miles_to_km", {"miles": 5})]),
    ("How many miles are 5 km?", []),
    ("Translate 'hello' into German", []),
    ("Play some jazz", []),
    ("Send an email to bob@example.com saying hi", []),
    ("Who won the world cup in 1998?", []),
    ("Delete invoice INV-7", []),
    ("Cancel my subscription", []),
    (
        "What is 15% of the amount of invoice INV-7?",
        [("invoice", {"invoice_id": "INV-7"}), ("calculator", {"expression": "0.15 * 120.5"})],
    ),
    ("北京的空气质量怎么样", [("air_quality", {"city": "北京"})]),
    ("北京和上海哪个空气质量指数更高", [("air_quality", {"city": "北京"}), ("air_quality", {"city": "上海"})]),
    (
        "北京的空气质量指数比上海高多少",
        [
            ("air_quality", {"city": "北京"}),
            ("air_quality", {"city": "上海"}),
            ("calculator", {"expression": "80 - 60"}),
        ],
    ),
    ("商品 P-100 的库存还有多少", [("stock_zh", {"code": "P-100"})]),
    ("查询商品编码 P-100 的库存数量", [("stock_zh", {"code": "P-100"})]),
    (
        "给张三提交请假申请,从 2026-03-05 开始,3 天",
        [("leave_request", {"name": "张三", "start": "2026-03-05", "days": 3})],
    ),
    ("能不能提交请假申请?", []),
    ("打开厨房的灯", [("lamp_switch", {"room": "厨房", "on": True})]),
    ("要不要打开厨房的灯", []),
    ("删除数据库表 users", [("drop_table", {"table": "users"})]),
    ("users 表有多少行", [("row_count", {"table": "users"})]),
    ("把“hello”翻译成德语", []),
    ("播放一首歌", []),
    ("发票 INV-7 的金额是多少", [("invoice", {"invoice_id": "INV-7"})]),
    ("5 英里等于多少公里", [("miles_to_km", {"miles": 5})]),
    ("5 公里等于多少英里", []),
    ("珠穆朗玛峰有多高", [("elevation", {"mountain": "珠穆朗玛峰"})]),
    ("从里昂到巴黎的火车", [("train_times", {"origin": "里昂", "destination": "巴黎"})]),
    ("德国国债的收益率", [("bond_yield", {"country": "德国"})]),
    ("在待办清单里添加“买牛奶”,优先级高", [("add_todo", {"title": "买牛奶", "priority": "high"})]),
]


@pytest.mark.parametrize(("task", "steps"), _TASKS)
def test_all_calls_of_a_run(task: str, steps: list[Step]) -> None:
    assert World(task, TOOLS).steps == steps
