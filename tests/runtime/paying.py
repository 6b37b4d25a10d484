"""Tools that a person is asked about, and replies that call them."""

from __future__ import annotations

from typing import Any

from tests.scripting import calls

from taoloop import tool


@tool(tier="write", roles={"amount": "value"})
def pay(to: str, amount: int) -> str:
    """Pay somebody.

    Args:
        to: Who gets it.
        amount: How much.
    """
    return f"paid {amount} to {to}"


@tool(tier="destructive")
def drop(table: str) -> str:
    """Drop a table.

    Args:
        table: Which one.
    """
    return f"dropped {table}"


def paying(*amounts: int) -> dict[str, Any]:
    """A reply that pays ann these amounts."""
    return calls(*(("pay", {"to": "ann", "amount": amount}) for amount in amounts))
