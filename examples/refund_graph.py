"""Refunds as a fixed flow: look up, check the rules, ask a manager above 100, pay. ReAct runs only at the open point.

Run it with `python examples/refund_graph.py`; it needs no key.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from taoloop import END, START, Agent, ApprovalAnswer, Graph, MemoryJournal, Node, Person, tool

ORDERS = {"A-17": {"amount": 120.0, "days": 3}, "B-4": {"amount": 20.0, "days": 3}, "C-9": {"amount": 60.0, "days": 45}}
PAID: list[tuple[str, float]] = []


class Refund(BaseModel):
    """What the flow knows about one refund."""

    order_id: str
    complaint: str
    amount: float = 0
    days: int = 0
    verdict: str = ""
    approved: bool = False
    receipt: str = ""


class Order(BaseModel):
    """An order in the shop."""

    amount: float
    days: int


@tool(tier="read")
def look_up(order_id: str) -> Order:
    """Look up an order."""
    return Order.model_validate(ORDERS[order_id])


@tool(tier="read")
def delivery_photos(order_id: str) -> str:
    """What the photos of the delivery show."""
    return f"The parcel of {order_id} is open at one side."


@tool(tier="write", egress=False, roles={"order_id": "target", "amount": "value"})
def pay(order_id: str, amount: float) -> str:
    """Pay the money back."""
    PAID.append((order_id, amount))
    return f"{amount:.2f} paid back for {order_id}"


def refund_graph(model: Any) -> Graph:
    """The flow; `model` judges the complaint, with tools of its own."""
    judge = Agent(name="judge", model=model, tools=[delivery_photos], instructions="Answer refund or reject.")
    return Graph(
        state=Refund,
        nodes={
            "look_up": look_up,
            "judge": Node(judge, args={"task": "Order {order_id}: {complaint}"}, writes="verdict"),
            "manager": Person("Refund {amount} for {order_id}? The judge says: {verdict}", writes="approved"),
            "pay": Node(pay, writes="receipt"),
        },
        edges={
            START: "look_up",
            "look_up": {"days > 30": END, "else": "judge"},  # too late: nobody is asked
            "judge": {"verdict != 'refund'": END, "amount > 100": "manager", "else": "pay"},
            "manager": {"approved": "pay", "else": END},
            "pay": END,
        },
        answer="{receipt}",
    )


def main() -> None:
    """Three refunds: a small one, one too late, and one that waits for a manager."""
    look = {"tool_calls": [{"name": "delivery_photos", "args": {"order_id": "the order"}}]}

    def script() -> list[Any]:
        return [look, "refund"]

    journal = MemoryJournal()
    settings: dict[str, Any] = {"journal": journal, "approved_tiers": ("write",)}
    for order_id in ("B-4", "C-9", "A-17"):
        graph = refund_graph(script())
        agent = graph.agent(**settings)
        result = agent.run_sync(f'{{"order_id": "{order_id}", "complaint": "It came broken."}}')
        print(f"{order_id}: {result.status}: {result.answer or result.reason}")
    manager = graph.agent(**settings, approve=lambda _: ApprovalAnswer(approved=True, by="mia"))
    result = manager.resume_sync(result.run_id)
    print(f"A-17: {result.status}: {result.answer}")
    print(graph.mermaid(result.trace))


if __name__ == "__main__":
    main()
