"""A small world of real tools for the offline model."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Literal

from taoloop.errors import ToolError
from taoloop.tools.function import tool
from taoloop.tools.tool import Tool

_SIGNS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}  # fmt: skip


def _value(node: ast.AST) -> Any:
    if isinstance(node, ast.BinOp):
        return _SIGNS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp):
        return _SIGNS[type(node.op)](_value(node.operand))
    assert isinstance(node, ast.Constant)
    return node.value


@tool(tier="read")
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression with + - * / ** and brackets."""
    try:
        return f"result={_value(ast.parse(expression, mode='eval').body)}"
    except ArithmeticError as error:
        raise ToolError(f"This cannot be worked out: {error}.") from None


@tool(tier="read")
def time_now(zone: str = "UTC") -> dict[str, str]:
    """Tell the current date and time in an IANA time zone.

    Args:
        zone: IANA zone such as Asia/Shanghai.
    """
    if "/" not in zone and zone != "UTC":
        raise ToolError(f"Unknown zone {zone!r}.")
    return {"zone": zone, "time": "2026-03-05T09:07:00+08:00"}


_RECORDS = {"huala.post_count": 8, "huala.email": "h@example.com", "mika.post_count": 5}


@tool(tier="read")
def lookup(key: str) -> Any:
    """Look up a value in the table of records by its key.

    Args:
        key: Dotted key, for example huala.post_count.
    """
    if key not in _RECORDS:
        raise ToolError(f"There is no key {key!r}.", code="unknown_key", hint=f"Near keys: {', '.join(_RECORDS)}.")
    return _RECORDS[key]


@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool(tier="read")
def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


@tool(tier="read")
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> dict[str, Any]:
    """Get the current weather of a city.

    Args:
        city: Name of the city.
    """
    return {"city": city, "temperature": 21 if unit == "celsius" else 70, "sky": "clear"}


@tool(tier="read")
def weather_zh(city: str) -> str:
    """查询某个城市的天气。"""
    return f"{city}晴"


@tool(tier="read")
def convert_currency(amount: float, from_currency: str, to_currency: str) -> dict[str, Any]:
    """Convert an amount of money from one currency to another."""
    return {"amount": amount, "from": from_currency, "to": to_currency, "converted": amount * 2}


@tool(tier="read")
def distance(a: str, b: str) -> str:
    """Distance in km between two cities."""
    return f"{a} to {b}: 1000 km"


@tool(tier="read")
def search_books(query: str, limit: int = 5) -> list[str]:
    """Search for books in the library catalogue."""
    return [f"A book about {query}"][:limit]


@tool(tier="read")
def current_time(zone: str) -> str:
    """Current time in a time zone."""
    return f"2026-03-05T09:07:00 {zone}"


@tool(tier="read")
def read_file(path: str) -> str:
    """Read a text file of the workspace."""
    return "one two three\nfour TODO five\n" if path else ""


@tool(tier="write")
def write_file(path: str, content: str) -> str:
    """Write a text file into the workspace."""
    return f"wrote {len(content)} to {path}"


@tool(tier="destructive")
def delete_file(path: str) -> str:
    """Delete a file of the workspace."""
    return f"deleted {path}"


@tool(tier="read")
def list_files(folder: str = ".") -> list[str]:
    """List the files in a folder."""
    return ["a.txt", "b.txt"] if folder else []


@tool(tier="read")
def search_files(pattern: str, path: str = ".") -> list[str]:
    """Search for a text in the files of the workspace."""
    return [f"{path}: {pattern}"]


@tool(tier="read")
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


@tool(tier="write")
def send_email(to: str, subject: str, body: str) -> str:
    """Send an email."""
    return f"sent {len(subject + body)} characters to {to}"


@tool(tier="read")
def translate(text: str, target_language: str) -> str:
    """Translate a text into another language."""
    return f"[{target_language}] {text}"


@tool(tier="read")
def get_stock_price(symbol: str) -> dict[str, Any]:
    """Latest price of a stock by its ticker symbol."""
    return {"symbol": symbol, "price": 12.5}


@tool(tier="read")
def convert_units(value: float, from_unit: str, to_unit: str) -> float:
    """Convert a value from one unit of measure to another."""
    return value * 2 if from_unit != to_unit else value


@tool(tier="read")
def web_search(query: str) -> str:
    """Search the web for any question."""
    return f"Found: {query}"


@tool(tier="read")
def search_handbook(query: str) -> str:
    """在员工手册里搜索规定。"""
    return "年假 15 天" if query else ""


@tool(tier="read")
def find_user(name: str) -> dict[str, Any]:
    """Find a user account by name."""
    return {"id": 7, "name": name}


@tool(tier="read")
def list_orders(user_id: int) -> list[str]:
    """List the orders of a user."""
    return [f"order of {user_id}"]


@tool(tier="write")
def create_event(title: str, date: str) -> str:
    """Create a calendar event on a date."""
    return f"{title} on {date}"


@tool(tier="read")
def roll_dice(sides: int = 6) -> int:
    """Roll a dice."""
    return min(4, sides)


@tool(tier="read")
def get_forecast(location: str, days: int = 3) -> str:
    """天气预报:返回某地未来几天的天气。"""
    return f"{location}: {days}"


@tool(tier="read")
def is_prime(n: int) -> bool:
    """Check whether a number is prime."""
    return all(n % divisor for divisor in range(2, n))


@tool(tier="read")
def days_between(start: str, end: str) -> str:
    """Number of days between two dates (YYYY-MM-DD)."""
    return f"{start} {end}"


ALL: tuple[Tool, ...] = (
    calculator, time_now, lookup, get_weather, convert_currency, distance, search_books, read_file, write_file,
    delete_file,
    list_files, search_files, count_words, send_email, translate, get_stock_price, convert_units, find_user,
    list_orders,
    create_event, roll_dice,
)  # fmt: skip
