"""An agent for the customers of a shop: it looks up their orders, and asks a person before it pays money back.

`support_desk.py` puts it behind HTTP, `test_support_agent.py` tests it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from taoloop import Agent, RunContext, RunInfo, ToolError, tool
from taoloop.models import Reply

SCRIPT: list[Reply] = [
    {"tool_calls": [{"name": "look_up_order", "args": {"order_id": "A-17"}}]},
    {"tool_calls": [{"name": "refund", "args": {"order_id": "A-17", "amount": 59.0}}]},
    "I am sorry that the lamp came broken. We have paid 59.00 back.",
]


@dataclass
class Order:
    """An order of a customer."""

    customer: str
    item: str
    paid: float


@dataclass
class Shop:
    """The database of the shop."""

    orders: dict[str, Order] = field(default_factory=lambda: {"A-17": Order("ann", "lamp", 59.0)})
    refunds: dict[str, float] = field(default_factory=dict)


@dataclass
class Desk:
    """What a run is given: the shop, and whose ticket it is."""

    shop: Shop
    customer: str

    def order(self, order_id: str) -> Order:
        """An order of this customer; those of others do not exist for them."""
        order = self.shop.orders.get(order_id)
        if order is None or order.customer != self.customer:
            raise ToolError(f"{self.customer} has no order {order_id}.", code="no_such_order")
        return order


@tool(tier="read")
def look_up_order(order_id: str, ctx: RunContext[Desk]) -> Order:
    """Look up an order of the customer by its number."""
    return ctx.deps.order(order_id)


def is_refunded(order_id: str, ctx: RunContext[Desk]) -> bool:
    """Whether the money has been paid back: asked after a crash in the middle of a refund."""
    return order_id in ctx.deps.shop.refunds


@tool(tier="write", egress=False, probe=is_refunded, roles={"order_id": "target", "amount": "value"})
def refund(order_id: str, amount: float, ctx: RunContext[Desk]) -> str:
    """Pay the price of an order back, or a part of it."""
    if amount > ctx.deps.order(order_id).paid:
        raise ToolError(f"Order {order_id} cost less than {amount:.2f}.", code="too_much")
    ctx.deps.shop.refunds[order_id] = amount
    return f"{amount:.2f} paid back for {order_id}"


def support_agent(shop: Shop, *, model: str | None = None, journal: Path | str | None = None) -> Agent[Desk]:
    """The agent; without a model, a script plays one ticket."""

    def open_desk(run: RunInfo) -> Desk:
        return Desk(shop, run.user)

    return Agent(
        name="support",
        model=model or SCRIPT,
        tools=[look_up_order, refund],
        instructions="You serve the customers of a shop. Look up the order before you promise anything.",
        deps_type=Desk,
        make_deps=open_desk,
        journal=journal,
    )
