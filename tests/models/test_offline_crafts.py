"""A third world of tools for the offline model, from all walks of life."""

from __future__ import annotations

from typing import Any, Literal

from tests.models.test_offline_world import calculator

from taoloop.tools.function import tool
from taoloop.tools.tool import Tool


@tool(tier="read")
def tide_table(harbour: str, date: str) -> str:
    """High and low tide of a harbour on a day.

    Args:
        harbour: Name of the harbour.
        date: Day as YYYY-MM-DD.
    """
    return f"{harbour} {date} 06:12"


@tool(tier="read")
def parcel_track(tracking_number: str) -> dict[str, Any]:
    """Where a parcel is, by its tracking number."""
    return {"tracking_number": tracking_number, "where": "Lyon"}


@tool(tier="write")
def lamp_switch(room: str, on: bool) -> str:
    """Switch the lamp of a room on or off."""
    return f"{room} {on}"


@tool(tier="write")
def set_thermostat(room: str, degrees: float) -> str:
    """Set the temperature of a room.

    Args:
        room: The room, such as kitchen.
        degrees: Target temperature in celsius.
    """
    return f"{room}={degrees}"


@tool(tier="destructive")
def drop_table(table: str) -> str:
    """Drop a database table."""
    return f"dropped {table}"


@tool(tier="read")
def row_count(table: str) -> int:
    """Number of rows of a database table."""
    return {"users": 12, "orders": 30}.get(table, 0)


@tool(tier="read")
def glossary(term: str) -> str:
    """Definition of a term in the company glossary."""
    return f"{term}: ..."


@tool(tier="read")
def bond_yield(country: str, years: int = 10) -> float:
    """Yield of a government bond.

    Args:
        country: Country name.
        years: Maturity in years.
    """
    return {"Germany": 2.5, "德国": 2.5, "Japan": 1.5, "日本": 1.5}.get(country, 9.0)


@tool(tier="read")
def planet_mass(planet: str) -> float:
    """Mass of a planet in units of the mass of the Earth."""
    return {"Mars": 0.1, "Jupiter": 318.0}.get(planet, 1.0)


@tool(tier="read")
def train_times(origin: str, destination: str, date: str | None = None) -> list[str]:
    """Departure times of trains between two stations."""
    return [f"{origin}-{destination} 08:10"]


@tool(tier="read")
def to_roman(number: int) -> str:
    """Write a number in Roman numerals."""
    return f"R{number}"


@tool(tier="read")
def hex_color(color: str) -> str:
    """Hexadecimal code of a colour name."""
    return {"red": "#f00"}.get(color, "#000")


@tool(tier="read")
def uppercase(text: str) -> str:
    """Turn a text into upper case letters."""
    return text.upper()


@tool(tier="read")
def md5(text: str) -> str:
    """MD5 checksum of a text."""
    return "abc123"


@tool(tier="read")
def is_holiday(date: str, country: str) -> bool:
    """Check whether a day is a public holiday in a country."""
    return True


@tool(tier="write")
def add_todo(title: str, priority: Literal["low", "medium", "high"] = "medium") -> str:
    """Add an item to the to-do list."""
    return f"{title} {priority}"


@tool(tier="read")
def invoice(invoice_id: str) -> dict[str, Any]:
    """An invoice with its customer, amount and due date."""
    return {"invoice_id": invoice_id, "customer": "Acme", "amount": 120.5, "due": "2026-05-01"}


@tool(tier="read")
def customer_email(customer: str) -> str:
    """Email address of a customer."""
    return f"{customer.lower()}@example.com"


@tool(tier="read")
def elevation(mountain: str) -> int:
    """Elevation of a mountain in metres."""
    return {"Everest": 8849, "K2": 8611}.get(mountain, 1)


@tool(tier="write")
def book_room(room: str, date: str, people: int) -> str:
    """Reserve a meeting room on a day."""
    return f"{room} {date} {people}"


@tool(tier="read")
def search_recipes(ingredients: list[str], limit: int = 5) -> list[str]:
    """Find recipes by ingredients."""
    return ingredients[:limit]


@tool(tier="read")
def air_quality(city: str) -> dict[str, Any]:
    """空气质量指数:查询一个城市的 AQI。"""
    return {"city": city, "aqi": {"北京": 80, "上海": 60, "Beijing": 80}.get(city, 50)}


@tool(tier="read")
def stock_zh(code: str) -> dict[str, Any]:
    """根据商品编码查询库存数量。

    Args:
        code: 商品编码,例如 P-100。
    """
    return {"code": code, "数量": 9}


@tool(tier="write")
def leave_request(name: str, start: str, days: int) -> str:
    """提交请假申请。

    Args:
        name: 员工姓名。
        start: 开始日期。
        days: 天数。
    """
    return f"{name} {start} {days}"


@tool(tier="read")
def miles_to_km(miles: float) -> float:
    """Convert miles to kilometres."""
    return miles * 1.6


TOOLS: tuple[Tool, ...] = (
    tide_table,
    parcel_track,
    lamp_switch,
    set_thermostat,
    drop_table,
    row_count,
    glossary,
    bond_yield,
    planet_mass,
    train_times,
    to_roman,
    hex_color,
    uppercase,
    md5,
    is_holiday,
    add_todo,
    invoice,
    customer_email,
    elevation,
    book_room,
    search_recipes,
    air_quality,
    stock_zh,
    leave_request,
    miles_to_km,
    calculator,
)
