"""A second world of tools for the offline model: none is named in its code, and some have no tier."""

from __future__ import annotations

import math
from typing import Any, Literal

from taoloop.errors import ToolError
from taoloop.tools.function import tool

_DEGREES = {"Paris": 25, "巴黎": 25, "Berlin": 21, "柏林": 21, "Oslo": 9, "Tokyo": 30}
_PEOPLE = {"Tokyo": 37, "东京": 37, "Paris": 11, "巴黎": 11, "Oslo": 1}
_CAPITALS = {"France": "Paris", "法国": "巴黎", "Japan": "Tokyo", "日本": "东京", "Norway": "Oslo"}
_FILES = {"notes.txt": "one two", "笔记.md": "一 二", "总结.txt": "好", "report.txt": "fine", "résumé.txt": "x"}
_STAFF = {"Alice": {"salary": 70, "manager": "Bob", "age": 41}, "Bob": {"salary": 90, "manager": "Carol", "age": 35}}


def _person(name: str) -> dict[str, Any]:
    if name not in _STAFF:
        raise ToolError(f"Nobody is called {name!r}.")
    return _STAFF[name]


@tool(tier="read")
def city_weather(city: str, units: Literal["celsius", "fahrenheit"] = "celsius") -> dict[str, Any]:
    """Current weather in a city."""
    if city not in _DEGREES:
        raise ToolError(f"No weather station in {city!r}.")
    return {"city": city, "temperature": _DEGREES[city], "units": units}


@tool(tier="read")
def population_of(city: str) -> int:
    """Population of a city in millions."""
    return _PEOPLE[city]


@tool(tier="read")
def capital_city(country: str) -> str:
    """Name the capital of a country."""
    return _CAPITALS[country]


@tool(tier="read")
def clock(zone: str) -> str:
    """Current local time in an IANA time zone."""
    return {"Asia/Tokyo": "2026-03-05T17:07:00+09:00"}.get(zone, "2026-03-05T09:07:00+01:00")


@tool(tier="read")
def fetch_document(path: str) -> str:
    """Read a document of the workspace."""
    if path not in _FILES:
        raise ToolError(
            "There is no such file; it may have been moved or deleted.", code="not_found", hint="Call list_documents."
        )
    return _FILES[path]


@tool(tier="read")
def list_documents(folder: str = ".") -> list[str]:
    """List the documents in a folder."""
    return sorted(_FILES) if folder else []


@tool(tier="destructive")
def remove_document(path: str) -> str:
    """Delete a document of the workspace."""
    if path not in _FILES:
        raise ToolError(f"No document {path!r}.", hint="Did you mean 'report.txt'?")
    return f"removed {path}"


@tool
def wipe_document(path: str) -> str:
    """Erase a document."""
    return f"wiped {path}"


@tool(tier="write")
def mail_out(to: str, subject: str, body: str) -> str:
    """Send an email message."""
    return f"mailed {to} {subject} {len(body)}"


@tool(tier="write")
def transfer_money(amount: float, recipient: str) -> str:
    """Transfer money to a person."""
    return f"paid {amount} to {recipient}"


@tool(tier="read")
def stock_level(sku: str) -> dict[str, Any]:
    """How many pieces of an article are in stock.

    Args:
        sku: Article number.
    """
    return {"sku": sku, "in_stock": 12}


@tool(tier="read")
def order_details(order_id: str) -> dict[str, Any]:
    """Details of an order: status, total and currency."""
    return {"order_id": order_id, "status": "shipped", "total": 80, "currency": "USD"}


@tool(tier="read")
def exchange(amount: float, source: str, target: str) -> float:
    """Exchange an amount of money from one currency into another."""
    return amount / 2 if source != target else amount


@tool(tier="read")
def exchange_rate(base: str, quote: str) -> float:
    """Exchange rate between two currencies.

    Args:
        base: Currency code to convert from.
        quote: Currency code to convert to.
    """
    return 7.0 if base != quote else 1.0


@tool(tier="read")
def salary_of(name: str) -> int:
    """Salary of an employee."""
    return int(_person(name)["salary"])


@tool(tier="read")
def manager_of(name: str) -> str:
    """Manager of an employee."""
    return str(_person(name)["manager"])


@tool(tier="read")
def age_of(person: str) -> int:
    """Age of a person in years."""
    return int(_person(person)["age"])


@tool(tier="read")
def page_output(artifact: str, start: int = 0) -> str:
    """Read one part of an earlier long output of this run.

    Args:
        artifact: The name that the cut observation gave for its whole output.
        start: The first character to show.
    """
    return f"{artifact} from {start}"


@tool(tier="read")
def replace_text(text: str, old: str, new: str) -> str:
    """Replace a part of a text with another."""
    return text.replace(old, new)


@tool(tier="read")
def count_letter(text: str, letter: str) -> int:
    """Count how often a letter stands in a word or text."""
    return text.count(letter)


@tool(tier="read")
def contains_text(text: str, needle: str) -> bool:
    """Check whether a text contains a word."""
    return needle in text


@tool(tier="read")
def sort_numbers(numbers: list[float], descending: bool = False) -> list[float]:
    """Sort numbers."""
    return sorted(numbers, reverse=descending)


@tool(tier="read")
def sort_words(words: list[str], order: Literal["asc", "desc"] = "asc") -> list[str]:
    """Sort words alphabetically."""
    return sorted(words, reverse=order == "desc")


@tool(tier="read")
def factorial(n: int) -> int:
    """Factorial of a whole number."""
    return math.factorial(n)


@tool(tier="read")
def check_prime(number: int) -> bool:
    """Check whether a number is prime."""
    return all(number % d for d in range(2, number))


@tool(tier="read")
def kg_to_lb(kg: float) -> float:
    """Convert kilograms to pounds."""
    return kg * 2


@tool(tier="read")
def unit_converter(value: float, source_unit: str, target_unit: str) -> str:
    """Convert a value between units of measure."""
    return f"{value} {source_unit} in {target_unit}"


@tool(tier="read")
def internet_search(query: str) -> str:
    """Search the internet for any question."""
    return f"Found: {query}"


@tool(tier="read")
def fix_zone(zone: str) -> str:
    """Current time in a zone of the house."""
    if zone != "Asia/Tokyo":
        raise ToolError(f"Unknown zone {zone!r}.", hint="Known zones: Asia/Tokio, Asia/Tokya.")
    return "2026-03-05T09:07:00"
