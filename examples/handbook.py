"""Decisions as auditable summaries: what is stored of a step is why and what, not the model's whole thinking.

Run: python examples/handbook.py
"""

from __future__ import annotations

import json

from taoloop import Agent, Result, ScriptedModel, tool
from taoloop.journals import step_summaries

ORDERS: dict[str, dict[str, str | int]] = {"A-17": {"status": "shipped", "days": 2}}

DECISIONS: list[dict[str, object]] = [
    {
        "type": "tool_call",
        "tool": "order_status",
        "args": {"order": "A-17"},
        "answer": None,
        "reason_summary": "The state of the order is not known yet.",
    },
    {
        "type": "tool_call",
        "tool": "track_parcel",
        "args": {},
        "answer": None,
        "reason_summary": "A parcel number would help.",
    },
    {
        "type": "final",
        "tool": None,
        "args": None,
        "answer": "Order A-17 was shipped two days ago.",
        "reason_summary": "The order system has answered.",
    },
]

SCRIPT = [json.dumps(decision) for decision in DECISIONS]


@tool(
    tier="read",
    use_when="A customer asks where an order is.",
    avoid_when="The question is about payment or returns.",
)
def order_status(order: str) -> dict[str, str | int]:
    """Read the state of one order by its number; knows the last 90 days only."""
    return ORDERS[order]


def run() -> Result:
    """The demo: a good call, a call of a tool that does not exist, an answer."""
    agent = Agent(model=ScriptedModel(SCRIPT), tools=[order_status], dialect="json", strategy="react")
    return agent.run_sync("Where is order A-17?")


if __name__ == "__main__":
    result = run()
    for row in step_summaries(result.trace):
        print(json.dumps(row, ensure_ascii=False))
    print(result.status, "-", result.answer)
