"""Calls that change the world get exactly what the task says, or are not made: names, sides, several orders."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from tests.models.test_offline_run import Step, World

from taoloop.tools.builtin.calculator import calculator
from taoloop.tools.function import tool
from taoloop.tools.tool import Tool


@tool(tier="destructive")
def delete_user(username: str) -> str:
    """Delete a user account for good."""
    return "deleted"


@tool(tier="write")
def send_message(recipient: str, text: str) -> str:
    """Send a chat message to a person."""
    return "sent"


@tool(tier="write")
def create_ticket(title: str, priority: Literal["low", "normal", "high"] = "normal") -> dict[str, Any]:
    """Create a support ticket."""
    return {"ticket_id": 501, "title": title}


@tool(tier="write")
def close_ticket(ticket_id: int) -> str:
    """Close a support ticket."""
    return f"closed {ticket_id}"


@tool(tier="read")
def get_ticket(ticket_id: int) -> dict[str, Any]:
    """Title, status, priority and assignee of a support ticket."""
    return {"ticket_id": ticket_id, "title": "Printer broken", "status": "open", "assignee": "Maria"}


@tool(tier="read")
def search_tickets(query: str, status: Literal["open", "closed", "any"] = "any") -> list[dict[str, Any]]:
    """Search support tickets by words."""
    return [{"ticket_id": 7, "title": "Printer broken"}, {"ticket_id": 9, "title": "Printer jam"}]


@tool(tier="read")
def phone_of(name: str) -> str:
    """Phone number of a colleague."""
    return {"Maria": "555-0101", "Jon": "555-0199"}[name]


@tool(tier="write")
def transfer(from_account: str, to_account: str, amount: float) -> str:
    """Transfer money between two accounts."""
    return f"{amount} moved"


@tool(tier="read")
def account_balance(account: str) -> float:
    """Balance of an account in euro."""
    return {"A-1": 250.0, "B-2": 90.5}[account]


@tool(tier="write")
def order_parts(sku: str, quantity: int, express: bool = False) -> str:
    """Order more pieces of an article from the supplier."""
    return f"ordered {quantity}"


@tool(tier="read")
def fetch_page(url: str) -> str:
    """Fetch the text of a web page."""
    return "Page text about cats."


@tool(tier="read")
def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


@tool(tier="read")
def light_state(room: str) -> dict[str, Any]:
    """Whether the light in a room is on, and how bright."""
    return {"room": room, "on": True}


@tool(tier="write")
def set_light(room: str, on: bool) -> str:
    """Turn the light in a room on or off."""
    return "ok"


TOOLS = [value for value in list(globals().values()) if isinstance(value, Tool)]
assert calculator in TOOLS

_TRANSFER: Step = ("transfer", {"from_account": "A-1", "to_account": "B-2", "amount": 50})
_CATS: list[Step] = [
    ("fetch_page", {"url": "https://example.com/cats"}),
    ("word_count", {"text": "Page text about cats."}),
]


TASKS: list[tuple[str, list[Step]]] = [
    (
        "Delete user bob and close ticket 3",
        [("delete_user", {"username": "bob"}), ("close_ticket", {"ticket_id": 3})],
    ),
    ("Don't delete bob, just close ticket 3", [("close_ticket", {"ticket_id": 3})]),
    ("Delete user bob and whoever helped him", []),
    ("删除用户 bob", [("delete_user", {"username": "bob"})]),
    ("bob 为什么被删除了", []),
    ("Transfer 50 euros from A-1 to B-2", [_TRANSFER]),
    ("Transfer 50 euros to B-2 from A-1", [_TRANSFER]),
    ("从 A-1 转 50 欧元到 B-2", [_TRANSFER]),
    ("Can I transfer 50 from A-1 to B-2?", []),
    (
        "Send the phone number of Jon to Maria",
        [("phone_of", {"name": "Jon"}), ("send_message", {"recipient": "Maria", "text": "555-0199"})],
    ),
    ("Send Maria a message saying 'hello'", [("send_message", {"recipient": "Maria", "text": "hello"})]),
    ("Message Jon: lunch at noon?", [("send_message", {"recipient": "Jon", "text": "lunch at noon?"})]),
    ("给 Jon 发消息说“你好”", [("send_message", {"recipient": "Jon", "text": "你好"})]),
    ("Close ticket 7", [("close_ticket", {"ticket_id": 7})]),
    ("关闭工单 7", [("close_ticket", {"ticket_id": 7})]),
    ("Is ticket 7 closed?", [("get_ticket", {"ticket_id": 7})]),
    ("工单 7 由谁负责", [("get_ticket", {"ticket_id": 7})]),
    (
        "What is the phone number of the assignee of ticket 7?",
        [("get_ticket", {"ticket_id": 7}), ("phone_of", {"name": "Maria"})],
    ),
    ("How many tickets about printers are there?", [("search_tickets", {"query": "printers"})]),
    (
        "How much more money is on A-1 than on B-2?",
        [
            ("account_balance", {"account": "A-1"}),
            ("account_balance", {"account": "B-2"}),
            ("calculator", {"expression": "250 - 90.5"}),
        ],
    ),
    (
        "Order 20 pieces of SKU-77 by express",
        [("order_parts", {"sku": "SKU-77", "quantity": 20, "express": True})],
    ),
    (
        "Order 20 pieces of SKU-77, not express",
        [("order_parts", {"sku": "SKU-77", "quantity": 20, "express": False})],
    ),
    ("订购 20 个 SKU-77", [("order_parts", {"sku": "SKU-77", "quantity": 20})]),
    ("If there are fewer than 50 SKU-77, order 10", []),
    ("Turn off the light in the kitchen", [("set_light", {"room": "kitchen", "on": False})]),
    ("把厨房的灯关掉", [("set_light", {"room": "厨房", "on": False})]),
    ("Is the light in the kitchen on?", [("light_state", {"room": "kitchen"})]),
    ("How many words are on the page https://example.com/cats?", _CATS),
    ("网页 https://example.com/cats 有多少个词", _CATS),
]


@pytest.mark.parametrize(("task", "steps"), TASKS)
def test_all_calls_of_a_run(task: str, steps: list[Step]) -> None:
    assert World(task, TOOLS).steps == steps
