"""Tasks that need one tool for another, several calls and a sum, units, counts: thirty tools of daily life."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from tests.models.test_offline_run import Step, World

from taoloop.tools.builtin.calculator import calculator
from taoloop.tools.builtin.catalog import builtin_tools
from taoloop.tools.function import tool
from taoloop.tools.tool import Tool

_MEMBER = {"M-1042": 7.5, "M-2000": 3.25}
_LEVELS = {"Cologne": 341, "Bonn": 297}
_STAFF = {
    17: {"name": "Li Hua", "department": "Sales", "manager_no": 4, "salary": 5200},
    4: {"name": "Wang Fang", "department": "Sales", "manager_no": 1, "salary": 8100},
}
_HOUSES = {"武汉": 15000, "杭州": 32000, "成都": 16500}
_RATINGS = {"Arrival": 7.9, "Amelie": 8.3, "Dune": 8.0, "霸王别姬": 9.6, "活着": 9.3}
_COUNTRIES = {
    "Iceland": {"capital": "Reykjavik", "population": 380000, "area_km2": 103000},
    "Japan": {"capital": "Tokyo", "population": 124000000, "area_km2": 377975},
    "法国": {"capital": "Paris", "population": 68000000, "area_km2": 551695},
    "日本": {"capital": "Tokyo", "population": 124000000, "area_km2": 377975},
}
_COUNTRIES["France"] = _COUNTRIES["法国"]
_SCORES = {("Tom", "math"): 88, ("Ann", "math"): 93, ("小明", "math"): 95, ("小红", "math"): 89}


@tool
def library_fine(member_id: str) -> float:
    """Unpaid library fine of a member in euro. Does not know other debts."""
    return _MEMBER[member_id]


@tool
def books_on_loan(member_id: str) -> list[dict[str, str]]:
    """Books that a library member has on loan now: title and due date."""
    return [{"title": "Dune", "due": "2026-03-10"}, {"title": "Emma", "due": "2026-03-12"}]


@tool
def renew_loan(member_id: str, title: str) -> str:
    """Renew one loan of a member for two weeks. Cannot renew reserved books."""
    return f"renewed {title}"


@tool
def river_level(station: str) -> dict[str, Any]:
    """Current water level of a river at a gauging station, in centimetres."""
    return {"station": station, "level_cm": _LEVELS[station]}


@tool
def bus_departures(stop: str, line: int | None = None) -> list[dict[str, int]]:
    """Next departures of buses at a stop.

    Args:
        stop: Name of the bus stop
        line: Only this line
    """
    return [{"line": line or 4, "minutes": 6}]


@tool
def calories(food: str, grams: float) -> float:
    """Energy of a portion of food in kilocalories.

    Args:
        food: What is eaten
        grams: Weight of the portion in grams
    """
    return 1.3 * grams


@tool
def employee(employee_no: int) -> dict[str, Any]:
    """The record of an employee: name, department, manager number, salary."""
    return _STAFF[employee_no]


@tool
def leave_balance(name: str) -> int:
    """Days of annual leave that an employee has left. Input is the full name."""
    return 9


@tool
def film_rating(title: str) -> float:
    """Average rating of a film by viewers, from 0 to 10."""
    return _RATINGS[title]


@tool
def ping_host(host: str, count: int = 4) -> dict[str, Any]:
    """Ping a host and report loss and round trip time in milliseconds.

    Args:
        host: Host name or IP address
        count: How many packets
    """
    return {"host": host, "sent": count, "rtt_ms": 12.4}


@tool(tier="write")
def restart_service(service: str, host: str) -> str:
    """Restart a system service on a host. Interrupts its users."""
    return f"{service} restarted on {host}"


@tool
def disk_usage(host: str) -> dict[str, int]:
    """Used and total disk space of a server, in gigabytes."""
    return {"used_gb": 120, "total_gb": 500}


@tool
def parking_fee(hours: float, zone: Literal["A", "B", "C"]) -> float:
    """Fee for parking a car, in yuan.

    Args:
        hours: How long
        zone: Tariff zone
    """
    return hours * {"A": 10, "B": 6, "C": 3}[zone]


@tool
def bmi(weight_kg: float, height_cm: float) -> float:
    """Body mass index from weight and height."""
    return round(weight_kg / (height_cm / 100) ** 2, 1)


@tool
def exam_score(student: str, subject: Literal["math", "physics", "chemistry"]) -> int:
    """Score of a student in the last exam of a subject."""
    return _SCORES[(student, subject)]


@tool
def house_price(city: str) -> int:
    """查询一个城市的平均房价,单位:元/平方米。"""
    return _HOUSES[city]


@tool
def ticket_price(train: str, seat: Literal["一等座", "二等座"] = "二等座") -> float:
    """查询高铁车次的票价,单位为元。

    Args:
        train: 车次,例如 G102
        seat: 座位等级
    """
    return {"一等座": 930.0, "二等座": 553.0}[seat]


@tool
def find_customer(email: str) -> dict[str, str]:
    """Find a customer by email address."""
    return {"customer_id": "C-77", "name": "Ana", "city": "Lisbon"}


@tool
def list_orders(customer_id: str) -> list[dict[str, str]]:
    """List the orders of a customer."""
    return [{"order_id": "O-1", "status": "shipped"}, {"order_id": "O-2", "status": "open"}]


@tool
def order_total(customer_id: str) -> float:
    """Total amount of all orders of a customer in euro."""
    return 100.5


@tool(tier="write")
def cancel_order(order_id: str, reason: str = "") -> str:
    """Cancel an order that is still open."""
    return f"cancelled {order_id}"


@tool
def getForecast(cityName: str, daysAhead: int = 1) -> dict[str, Any]:  # noqa: N802, N803  # a card in camel case
    """Weather forecast for a city."""
    return {"cityName": cityName, "high": 21}


@tool
def wikipedia_summary(topic: str) -> str:
    """First paragraph of the encyclopedia article on a topic."""
    return f"{topic} are regions of spacetime."


@tool
def fibonacci(n: int) -> int:
    """The n-th Fibonacci number."""
    return 55


@tool
def gcd(a: int, b: int) -> int:
    """Greatest common divisor of two integers."""
    return 12


@tool
def count_vowels(text: str) -> int:
    """Count the vowels in a text."""
    return 5


@tool
def ip_location(ip: str) -> dict[str, str]:
    """Country and city of an IP address."""
    return {"ip": ip, "country": "Iceland", "city": "Reykjavik"}


@tool
def country_info(country: str) -> dict[str, Any]:
    """Facts of a country: capital, population, currency, area in square kilometres."""
    return _COUNTRIES[country]


@tool
def flight_status(flight: str) -> dict[str, Any]:
    """Status of a flight today: gate, delay in minutes, departure time."""
    return {"flight": flight, "gate": "B12", "delay_minutes": 25}


@tool(tier="write")
def set_alarm(time: str, label: str = "") -> str:
    """Set an alarm clock."""
    return f"alarm at {time}"


@tool(tier="write")
def add_note(title: str, body: str) -> str:
    """Create a note with a title and a body."""
    return f"note {title}"


@tool
def mortgage_payment(principal: float, rate_percent: float, years: int) -> float:
    """Monthly payment of a mortgage.

    Args:
        principal: Amount borrowed
        rate_percent: Interest per year in percent
        years: Term in years
    """
    return 1347.13


_OWN = [value for value in list(globals().values()) if isinstance(value, Tool)]
TOOLS = [*_OWN, *(builtin_tools()[name] for name in ("calculator", "time_now"))]


def _sum(expression: str) -> Step:
    return "calculator", {"expression": expression}


def _each(name: str, argument: str, *values: Any) -> list[Step]:
    return [(name, {argument: value}) for value in values]


_FINES = _each("library_fine", "member_id", "M-1042", "M-2000")
_CUSTOMER: Step = ("find_customer", {"email": "ana@shop.com"})
_ORDERS: Step = ("list_orders", {"customer_id": "C-77"})
_IP: Step = ("ip_location", {"ip": "8.8.8.8"})
_MORTGAGE = {"principal": 300000, "rate_percent": 3.5, "years": 30}

TASKS: list[tuple[str, list[Step]]] = [
    ("What is the total fine of M-1042 and M-2000?", [*_FINES, _sum("7.5 + 3.25")]),
    ("How much are the fines of M-1042 and M-2000 together?", [*_FINES, _sum("7.5 + 3.25")]),
    (
        "What is the average rating of Arrival, Amelie and Dune?",
        [*_each("film_rating", "title", "Arrival", "Amelie", "Dune"), _sum("(7.9 + 8.3 + 8) / 3")],
    ),
    (
        "What is the average of the river levels at Cologne and Bonn?",
        [*_each("river_level", "station", "Cologne", "Bonn"), _sum("(341 + 297) / 2")],
    ),
    (
        "What is the total salary of employees 4 and 17?",
        [*_each("employee", "employee_no", 4, 17), _sum("8100 + 5200")],
    ),
    (
        "How many times is the salary of employee 4 that of employee 17?",
        [*_each("employee", "employee_no", 4, 17), _sum("8100 / 5200")],
    ),
    ("杭州的房价是成都的几倍", [*_each("house_price", "city", "杭州", "成都"), _sum("32000 / 16500")]),
    ("法国的人口是日本的几分之几", [*_each("country_info", "country", "法国", "日本"), _sum("68000000 / 124000000")]),
    (
        "武汉、杭州和成都的房价之和",
        [*_each("house_price", "city", "武汉", "杭州", "成都"), _sum("15000 + 32000 + 16500")],
    ),
    ("霸王别姬和活着的平均评分是多少", [*_each("film_rating", "title", "霸王别姬", "活着"), _sum("(9.6 + 9.3) / 2")]),
    (
        "小明和小红谁的数学考得更好",
        [("exam_score", {"student": name, "subject": "math"}) for name in ("小明", "小红")],
    ),
    ("小明的数学成绩是多少", [("exam_score", {"student": "小明", "subject": "math"})]),
    ("Renew the loan of Dune for member M-1042", [("renew_loan", {"member_id": "M-1042", "title": "Dune"})]),
    ("Book a flight to Mars", []),
    (
        "When does the next bus of line 7 leave from the stop Market Square?",
        [("bus_departures", {"stop": "Market Square", "line": 7})],
    ),
    ("How many calories are in 2 kg of rice?", [("calories", {"food": "rice", "grams": 2000})]),
    ("150 克米饭有多少卡路里", [("calories", {"food": "米饭", "grams": 150})]),
    ("BMI for 82 kg and 1.80 m", [("bmi", {"weight_kg": 82, "height_cm": 180})]),
    ("身高 1.75 米体重 140 斤的 BMI", [("bmi", {"weight_kg": 70, "height_cm": 175})]),
    ("How much does it cost to park for 90 minutes in zone A?", [("parking_fee", {"hours": 1.5, "zone": "A"})]),
    ("How many days of leave does Li Hua have left?", [("leave_balance", {"name": "Li Hua"})]),
    ("李华还剩几天年假", [("leave_balance", {"name": "李华"})]),
    ("ping example.com with 10 packets", [("ping_host", {"host": "example.com"})]),
    ("Restart nginx on web-1", [("restart_service", {"service": "nginx", "host": "web-1"})]),
    ("重启 web-1 上的 nginx", [("restart_service", {"service": "nginx", "host": "web-1"})]),
    ("web-1 的磁盘用了多少", [("disk_usage", {"host": "web-1"})]),
    (
        "G102 二等座的票价是多少,两个人一共多少钱",
        [("ticket_price", {"train": "G102", "seat": "二等座"}), _sum("2 * 553")],
    ),
    ("在武汉买一套 90 平方米的房子要多少钱", [("house_price", {"city": "武汉"}), _sum("90 * 15000")]),
    ("How many orders does the customer ana@shop.com have?", [_CUSTOMER, _ORDERS]),
    ("客户 ana@shop.com 有几个订单", [_CUSTOMER, _ORDERS]),
    ("What is the total amount of orders of ana@shop.com?", [_CUSTOMER, ("order_total", {"customer_id": "C-77"})]),
    ("Weather in the city where ana@shop.com lives", [_CUSTOMER, ("getForecast", {"cityName": "Lisbon"})]),
    (
        "What is the population of the country of the IP address 8.8.8.8?",
        [_IP, ("country_info", {"country": "Iceland"})],
    ),
    ("8.8.8.8 所在国家的首都是哪里", [_IP, ("country_info", {"country": "Iceland"})]),
    (
        "法国的首都是哪里,那里的天气怎么样",
        [("country_info", {"country": "法国"}), ("getForecast", {"cityName": "Paris"})],
    ),
    (
        "What is the area of France in square kilometres plus 1000?",
        [("country_info", {"country": "France"}), _sum("551695 + 1000")],
    ),
    ("Cancel order O-2 because 'too late'", [("cancel_order", {"order_id": "O-2", "reason": "too late"})]),
    ("Should I cancel order O-2?", []),
    ("What does Wikipedia say about black holes?", [("wikipedia_summary", {"topic": "black holes"})]),
    ("What is the 10th Fibonacci number?", [("fibonacci", {"n": 10})]),
    ("第 10 个斐波那契数是多少", [("fibonacci", {"n": 10})]),
    ("48 和 36 的最大公约数", [("gcd", {"a": 48, "b": 36})]),
    ("Set an alarm at 7:30 labelled 'gym'", [("set_alarm", {"time": "7:30", "label": "gym"})]),
    (
        "Add a note titled 'Shopping' with body 'milk and eggs'",
        [("add_note", {"title": "Shopping", "body": "milk and eggs"})],
    ),
    (
        "What is the monthly payment for a mortgage of 300000 at 3.5% over 30 years?",
        [("mortgage_payment", _MORTGAGE)],
    ),
    ("贷款 300000 元,年利率 3.5%,30 年,每月还多少", [("mortgage_payment", _MORTGAGE)]),
]


@pytest.mark.parametrize(("task", "steps"), TASKS)
def test_all_calls_of_a_run(task: str, steps: list[Step]) -> None:
    assert World(task, TOOLS).steps == steps


@pytest.mark.parametrize(
    ("task", "begins"),
    [
        ("How many books does member M-1042 have on loan?", "2 ("),
        ("M-1042 借了几本书", "2 ("),
        ("How long is flight LH123 delayed?", "25 ("),
        ("航班 LH123 的登机口是哪个", "B12 ("),
        ("客户 ana@shop.com 有几个订单", "2 ("),
    ],
)
def test_the_answer_begins_with_what_was_asked_for(task: str, begins: str) -> None:
    assert World(task, TOOLS).answer.startswith(begins)


@pytest.mark.parametrize(
    ("task", "unused"),
    [
        ("What is the leave balance of Li Hua in 2019?", 'I did not use "2019"'),
        ("Cancel order O-2 and mention 'storm'", 'I did not use "storm"'),
    ],
)
def test_a_value_that_went_into_no_call_is_named(task: str, unused: str) -> None:
    assert unused in World(task, TOOLS).answer


_FILE_TOOLS = ("calculator", "time_now", "lookup", "read_file", "write_file", "list_files", "search_files")


def _workspace(folder: Path) -> list[Tool]:
    (folder / "docs").mkdir()
    (folder / "docs" / "notes.txt").write_text("Meeting at 14:30.\nTODO: buy milk\n", encoding="utf-8")
    (folder / "docs" / "会议.txt").write_text("预算:12000 元。\n", encoding="utf-8")
    (folder / "data.yaml").write_text("alpha: 3\nbeta: 4\n", encoding="utf-8")
    (folder / "users.json").write_text('{"huala": {"post_count": 8}}', encoding="utf-8")
    tools = builtin_tools(folder)
    return [tools[name] for name in _FILE_TOOLS]


@pytest.mark.parametrize(
    ("task", "file", "text"),
    [
        ("Read docs/notes.txt and write its content to out.txt", "out.txt", "Meeting at 14:30.\nTODO: buy milk\n"),
        ("Look up the post count of huala, add 2 and write the result to out.txt", "out.txt", "10"),
        ("查一下 huala 的发帖数,加 2,把结果写入 out.txt", "out.txt", "10"),
        ("Save the result of 3 * 4 to out.txt", "out.txt", "12"),
        ("把 3 乘以 4 的结果保存到 out.txt", "out.txt", "12"),
        ("Write hello to out.txt", "out.txt", "hello"),
        ("Write the value of alpha in data.yaml to out.txt", "out.txt", "3"),
    ],
)
def test_what_is_to_be_written_down_is_found_out_first(tmp_path: Path, task: str, file: str, text: str) -> None:
    World(task, _workspace(tmp_path))
    assert (tmp_path / file).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("task", ["Write the weather in Paris to out.txt", "把巴黎的天气写入 out.txt"])
def test_what_no_tool_finds_out_is_not_written(tmp_path: Path, task: str) -> None:
    assert World(task, _workspace(tmp_path)).steps == []
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("task", ["How many files are in the docs folder?", "docs 目录里有几个文件"])
def test_what_a_tool_lists_is_counted(tmp_path: Path, task: str) -> None:
    world = World(task, _workspace(tmp_path))
    assert world.steps == [("list_files", {"path": "docs"})]
    assert world.answer.startswith("2 (")


def test_of_several_near_keys_that_the_task_names_none_is_taken_alone(tmp_path: Path) -> None:
    world = World("What is alpha plus beta in data.yaml?", _workspace(tmp_path))
    assert world.steps == [("lookup", {"key": "alpha plus beta", "table": "data.yaml"})]
    assert "failed" in world.answer


@pytest.mark.parametrize(
    "task", ["What is 17 mod 5?", "What is the remainder of 17 divided by 5?", "17 除以 5 的余数是多少"]
)
def test_a_remainder_is_no_quotient(task: str) -> None:
    """The calculator takes no remainders, so the model says that it cannot."""
    world = World(task, [calculator])
    assert world.steps == []
    assert "no tool here does this arithmetic" in world.answer or "没有能做这种运算的工具" in world.answer


@pytest.mark.parametrize(
    ("task", "things", "expression"),
    [
        ("What is the total stock of tea and coffee?", ["tea", "coffee"], "12 + 30"),
        ("total stock of tea, milk and coffee", ["tea", "milk", "coffee"], "12 + 3 + 30"),
        ("What is the average stock of tea and coffee?", ["tea", "coffee"], "(12 + 30) / 2"),
    ],
)
def test_common_nouns_are_summed_too(task: str, things: list[str], expression: str) -> None:
    stock = {"tea": 12, "coffee": 30, "milk": 3}

    @tool(tier="read")
    def get_stock(item: str) -> int:
        """How many of an item are in stock now."""
        return stock[item]

    assert World(task, [get_stock, calculator]).steps == [*_each("get_stock", "item", *things), _sum(expression)]
