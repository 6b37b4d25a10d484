"""The totals of a run are those of its trace, at every event."""

from __future__ import annotations

from typing import Any

from tests.core.views.every_fact import FACTS, events_of

from taoloop import Agent, Limits, ScriptedModel, Trace, tool
from taoloop.core.events import Compensated, JudgedAgain
from taoloop.core.views.run_totals import RunTotals


@tool(tier="read")
def price(item: str) -> str:
    """The price of an item."""
    if item == "gold":
        raise ValueError("not for sale")
    return "3"


SCRIPT: tuple[Any, ...] = (
    {"tool_calls": [{"name": "price", "args": {"item": name}} for name in ("tea", "gold")]},
    "",
    {"tool_calls": [{"name": "nothing", "args": {}}]},
    {"tool_calls": [{"name": "price", "args": {"item": "milk"}}]},
    "Tea is 3.",
)


def test_at_every_event_they_are_what_the_trace_counts() -> None:
    ran = Agent(model=ScriptedModel(SCRIPT), tools=[price], limits=Limits(max_steps=9)).run_sync("Prices?").trace
    facts = [fact for fact in FACTS if not isinstance(fact, JudgedAgain | Compensated)]
    for events in (list(ran), events_of(facts)):
        trace, totals = Trace("r1"), RunTotals()
        for event in events:
            trace.append(event)
            totals.fold(event)
            assert totals.last_seq == event.seq
            for name in ("steps", "model_calls", "tool_calls", "usage", "cost_usd", "unpriced_calls", "status"):
                expected = trace.step_count if name == "steps" else getattr(trace, name)
                assert getattr(totals, name) == expected, (name, event)
    assert (totals.repairs, totals.failures) == (1, 1)
    assert totals.known_cost_usd is not None
    assert totals.updated_at - totals.started_at == 2.0 * (len(facts) - 1)
