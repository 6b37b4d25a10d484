"""3.5 squared plus the current hour in Asia/Shanghai: calculator, time_now, calculator, final.

The clock is an argument, so the answer is always the same. Run: python examples/hour.py
"""

from __future__ import annotations

from datetime import UTC, datetime

from taoloop import Agent, Result, ScriptedModel
from taoloop.tools import time_now_tool

NOW = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)

SCRIPT = [
    '{"thought": "First the square.", "action": "calculator", "action_input": {"expression": "3.5**2"}}',
    '{"thought": "Now the hour.", "action": "time_now", "action_input": {"zone": "Asia/Shanghai"}}',
    '{"thought": "It is 9 there.", "action": "calculator", "action_input": {"expression": "12.25+9"}}',
    '{"thought": "All is known.", "action": "final", "action_input": "21.25"}',
]


def run(model: str | None = None) -> Result:
    """The demo with its script, or with another model such as `offline`."""
    agent = Agent(
        model=ScriptedModel(SCRIPT) if model is None else model,
        tools=["calculator", time_now_tool(lambda: NOW)],
        dialect="json",
    )
    return agent.run_sync(
        "Compute 3.5 squared, then add the current hour in Asia/Shanghai.",
        max_steps=5,
        verbose=__name__ == "__main__",
    )


if __name__ == "__main__":
    run()
