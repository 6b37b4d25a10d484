"""Runs of an agent that refunds orders, for the pages that compare, fork, undo and review them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taoloop import Agent, ScriptedModel, tool
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.tools.tool import Tool

HOSTILE = "<img src=x onerror=alert(1)>[a](javascript:b)\u202e\x1b[31m" + "x" * 400
"""What an order may have as its note."""

TASK = "Order A-2 came late. Refund what is due."


@tool(tier="read")
def get_order(order_id: str) -> dict[str, Any]:
    """An order."""
    return {"order_id": order_id, "total": 81, "note": HOSTILE}


def _refund() -> Tool:
    @tool(name="refund", tier="write", compensation="cancel_refund")
    def refund(order_id: str, amount: float) -> dict[str, Any]:
        """Refund an amount."""
        return {"refund_id": f"R-{order_id}", "amount": amount}

    return refund.with_card(compensation_args={"refund_id": "output.refund_id"})


BROKEN: set[str] = set()
"""The refunds whose cancellation breaks off, so that nobody knows whether it happened."""


@tool(tier="write")
def cancel_refund(refund_id: str) -> str:
    """Cancel a refund."""
    if refund_id in BROKEN:
        raise RuntimeError("The bank hung up.")
    return f"{refund_id} is cancelled"


@tool(tier="write")
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"{len(text)} characters were sent to {to}"


TOOLS = (get_order, _refund(), cancel_refund, send_mail)


def call(name: str, /, **args: Any) -> dict[str, Any]:
    """A reply that calls a tool."""
    return {"text": f"I use {name}.", "tool_calls": [{"name": name, "args": args}]}


WHOLE = (
    call("get_order", order_id="A-2"),
    call("refund", order_id="A-2", amount=81),
    call("send_mail", to="bob@example.com", text=HOSTILE),
    "Refunded: 81.",
)
HALF = (
    call("get_order", order_id="A-1"),
    call("get_order", order_id="A-2"),
    call("refund", order_id="A-2", amount=40.5),
    "退款 40.50。",
)


def agent_for(journal: Any, script: Sequence[Any]) -> Agent:
    """The agent of these runs; whoever is asked says yes."""
    return Agent(model=ScriptedModel(script), tools=TOOLS, journal=journal, max_steps=20, approve=lambda _: True)


async def run(journal: SqliteJournal, script: Sequence[Any]) -> str:
    """One run; returns its id."""
    return (await agent_for(journal, script).run(TASK)).run_id
