"""A second set of tasks with unseen tools: bookings, grades, servers, buses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.models.test_offline_run import Step, World
from tests.models.test_offline_world import calculator, delete_file, read_file, time_now, write_file

from taoloop.tools.function import tool
from taoloop.tools.tool import Tool


@tool(tier="read")
def sunrise(city: str, date: str | None = None) -> str:
    """Time of sunrise in a city."""
    return "2026-03-05T06:10:00+01:00"


@tool(tier="read")
def gdp(country: str, year: int | None = None) -> dict[str, Any]:
    """Gross domestic product (GDP) of a country in billions of dollars."""
    return {"country": country, "gdp": {"Japan": 4200, "France": 3000, "日本": 4200, "法国": 3000}.get(country, 1)}


@tool(tier="read")
def grade_of(student: str, subject: str) -> int:
    """Grade of a student in a subject."""
    return {"Mia": 90, "Tom": 75}.get(student, 50)


@tool(tier="write")
def set_grade(student: str, subject: str, grade: int) -> str:
    """Enter the grade of a student in a subject."""
    return "ok"


@tool(tier="destructive")
def cancel_booking(booking_id: str) -> str:
    """Cancel a booking."""
    return f"cancelled {booking_id}"


@tool(tier="read")
def booking(booking_id: str) -> dict[str, Any]:
    """Details of a booking: guest, hotel, price, currency."""
    return {"booking_id": booking_id, "guest": "Mia", "hotel": "Ritz", "price": 200, "currency": "GBP"}


@tool(tier="read")
def hotel_address(hotel: str) -> str:
    """Address of a hotel."""
    return f"{hotel} street 1"


@tool(tier="read")
def rate(base: str, target: str) -> dict[str, Any]:
    """Exchange rate of two currencies."""
    return {"rate": 1.2}


@tool(tier="read")
def reverse_text(text: str) -> str:
    """Reverse a text."""
    return text[::-1]


@tool(tier="read")
def word_stats(text: str) -> dict[str, int]:
    """Count words and characters of a text."""
    return {"words": len(text.split()), "characters": len(text)}


@tool(tier="read")
def bin_of(number: int) -> str:
    """Binary form of a whole number."""
    return bin(number)


@tool(tier="write")
def post_message(channel: str, text: str) -> str:
    """Post a message to a chat channel."""
    return "ok"


@tool(tier="write")
def start_job(job: str) -> str:
    """Start a batch job."""
    return "ok"


@tool(tier="read")
def job_status(job: str) -> str:
    """Status of a batch job."""
    return "running"


@tool(tier="read")
def f_to_c(fahrenheit: float) -> float:
    """Convert degrees fahrenheit to celsius."""
    return (fahrenheit - 32) / 1.8


@tool(tier="read")
def menu(restaurant: str) -> str:
    """查询餐厅的菜单。"""
    return "面条"


@tool(tier="read")
def bus(line: str, stop: str) -> str:
    """查询公交线路到站时间。

    Args:
        line: 线路编号,如 B12。
        stop: 车站名。
    """
    return "5 分钟"


@tool(tier="write")
def borrow(book: str, reader: str) -> str:
    """借书:把一本书借给读者。"""
    return "ok"


@tool
def restart_server(name: str) -> str:
    """Restart a server."""
    return "ok"


@tool(tier="read")
def uptime(name: str) -> str:
    """Uptime of a server."""
    return "3 days"


TOOLS: tuple[Tool, ...] = (
    sunrise,
    gdp,
    grade_of,
    set_grade,
    cancel_booking,
    booking,
    hotel_address,
    rate,
    reverse_text,
    word_stats,
    bin_of,
    post_message,
    start_job,
    job_status,
    f_to_c,
    menu,
    bus,
    borrow,
    restart_server,
    uptime,
    calculator,
    time_now,
    write_file,
    read_file,
    delete_file,
)

_TASKS: list[tuple[str, list[Step]]] = [
    ("sunrise in Madrid on 2026-06-01", [("sunrise", {"city": "Madrid", "date": "2026-06-01"})]),
    ("GDP of Japan in 2020", [("gdp", {"country": "Japan", "year": 2020})]),
    (
        "Is the GDP of Japan higher than that of France?",
        [("gdp", {"country": "Japan"}), ("gdp", {"country": "France"})],
    ),
    (
        "What is the difference in GDP between Japan and France?",
        [("gdp", {"country": "Japan"}), ("gdp", {"country": "France"}), ("calculator", {"expression": "4200 - 3000"})],
    ),
    (
        "日本的GDP比法国高多少",
        [("gdp", {"country": "日本"}), ("gdp", {"country": "法国"}), ("calculator", {"expression": "4200 - 3000"})],
    ),
    ("What is Mia's grade in physics?", [("grade_of", {"student": "Mia", "subject": "physics"})]),
    ("Can I cancel booking BK-77?", []),
    ("Cancel booking BK-77", [("cancel_booking", {"booking_id": "BK-77"})]),
    ("Cancel the order A-12", []),
    ("Which hotel is booking BK-77?", [("booking", {"booking_id": "BK-77"})]),
    (
        "address of the hotel of booking BK-77",
        [("booking", {"booking_id": "BK-77"}), ("hotel_address", {"hotel": "Ritz"})],
    ),
    (
        "price of booking BK-77 in EUR",
        [
            ("booking", {"booking_id": "BK-77"}),
            ("rate", {"base": "GBP", "target": "EUR"}),
            ("calculator", {"expression": "200 * 1.2"}),
        ],
    ),
    (
        "How much is 50 GBP in EUR?",
        [("rate", {"base": "GBP", "target": "EUR"}), ("calculator", {"expression": "50 * 1.2"})],
    ),
    ("exchange rate from GBP to EUR", [("rate", {"base": "GBP", "target": "EUR"})]),
    ("Reverse the word 'stressed'", [("reverse_text", {"text": "stressed"})]),
    ("How many characters has 'hello world'?", [("word_stats", {"text": "hello world"})]),
    ("What is 13 in binary?", [("bin_of", {"number": 13})]),
    ("Post 'deploy done' to the channel ops", [("post_message", {"channel": "ops", "text": "deploy done"})]),
    ("May we post 'deploy done' to the channel ops?", []),
    ("Start the job nightly-7", [("start_job", {"job": "nightly-7"})]),
    ("Is the job nightly-7 running?", [("job_status", {"job": "nightly-7"})]),
    ("Convert 68 fahrenheit to celsius", [("f_to_c", {"fahrenheit": 68})]),
    ("Convert 20 celsius to fahrenheit", []),
    ("What is 20 °C in °F?", []),
    ("餐厅海底捞的菜单", [("menu", {"restaurant": "海底捞"})]),
    ("Restart the server web-01", [("restart_server", {"name": "web-01"})]),
    ("重启服务器 web-01", [("restart_server", {"name": "web-01"})]),
    ("是否应该重启服务器 web-01", []),
    ("uptime of web-01", [("uptime", {"name": "web-01"})]),
    (
        "Double the price of booking BK-77",
        [("booking", {"booking_id": "BK-77"}), ("calculator", {"expression": "200 * 2"})],
    ),
    ("Compose a haiku about rain", []),
    ("Explain recursion", []),
    ("写一首关于雨的诗", []),
    ("取消预订 BK-77", [("cancel_booking", {"booking_id": "BK-77"})]),
    ("把“你好”倒过来", [("reverse_text", {"text": "你好"})]),
    ("13 的二进制是多少", [("bin_of", {"number": 13})]),
    ("30% more than 90", [("calculator", {"expression": "90 + 90 * 0.3"})]),
    ("Set Mia's grade in physics to 95", [("set_grade", {"student": "Mia", "subject": "physics", "grade": 95})]),
]


@pytest.mark.parametrize(("task", "steps"), _TASKS)
def test_all_calls_of_a_run(task: str, steps: list[Step]) -> None:
    assert World(task, TOOLS).steps == steps


def test_a_value_that_went_into_no_call_is_told() -> None:
    world = World("If the job nightly-7 failed, restart the server web-01", TOOLS)
    assert "restart_server" not in world.names
    assert "web-01" in world.answer
