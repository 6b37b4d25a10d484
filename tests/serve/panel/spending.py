"""Runs that have cost something, for the page of costs."""

from __future__ import annotations

from datetime import UTC, datetime

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import ApprovalGiven, Event, Fact, Finished, ModelReplied, Observed, RunStarted
from taoloop.core.message import Usage
from taoloop.journals.base import Journal

DAY_S = 86_400.0


def at_noon(day: str) -> float:
    """Noon of a day in UTC, in seconds since the epoch."""
    return datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC).timestamp()


async def spend(
    journal: Journal,
    run_id: str,
    day: str,
    *,
    agent: str = "clerk",
    model: str = "big",
    key: str = "",
    cost: float | None = 0.5,
    steps: int = 2,
    failed: int = 0,
    status: str = "completed",
    answered: bool = False,
) -> None:
    """Store a run of one day: `steps` replies that cost `cost` together, one tool call each, of which some failed."""
    facts: list[Fact] = [
        RunStarted(task="t", agent=AgentSpec(name=agent, model=model), nonce="n", labels={"key": key} if key else {})
    ]
    for step in range(1, steps + 1):
        usage = Usage(input_tokens=1_000, output_tokens=50)
        price = None if cost is None else cost / steps
        facts.append(
            ModelReplied(step=step, purpose="decide", text="x", decision=None, model=model, usage=usage, cost_usd=price)
        )
        facts.append(Observed(call_id=f"call_{step}", ok=step > failed, output="x"))
    if answered:
        facts.append(ApprovalGiven(call_id="call_1", digest="d", by="ann"))
    facts.append(Finished(status=status, answer="x", reason=""))  # type: ignore[arg-type]  # one of them
    lease = await journal.create(run_id)
    await journal.append(lease, [Event(seq, at_noon(day), fact) for seq, fact in enumerate(facts)])
