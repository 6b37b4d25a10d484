"""A run that is abandoned ends for good: nothing resumes it, and what is unknown stays unknown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.scripting import call

from taoloop import Agent, MemoryJournal, ScriptedModel, recover, tool
from taoloop.core.events import Finished, Resumed
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, IllegalEvent, NotWaiting, RunHeld, RunNotResumable
from taoloop.runtime import ApprovalAnswer, abandon_run, add_note, answer_approval, pending_approvals, settle_doubt
from taoloop.runtime.after.replay import replay
from taoloop.testing import FakeClock

PAID: list[str] = []


@tool(tier="write", idempotent=True)
def pay(who: str) -> str:
    """Pay somebody."""
    PAID.append(who)
    return f"paid {who}"


class Silent(MemoryJournal):
    """A journal that cannot tell which process is at work on a run."""

    def __init__(self) -> None:
        super().__init__()
        self.run_locks = None  # type: ignore[assignment]  # as in a journal that has none


def agent(journal: MemoryJournal, **options: Any) -> Agent:
    model = ScriptedModel([call("pay", who="ann"), "Done."], strict=False)
    return Agent(model=model, tools=[pay], journal=journal, **options)


def died_in_the_call(journal: MemoryJournal) -> float:
    """Store a run whose process died while it paid; returns the time of its last event."""
    whole = agent(MemoryJournal(), approve=lambda _: True).run_sync("Settle the bill.").trace
    end = next(event.seq for event in whole if event.fact.kind == "action_started")

    async def store() -> None:
        await journal.append(await journal.create("died"), whole.events[: end + 1])

    asyncio.run(store())
    return whole.events[end].at


def test_an_abandoned_run_keeps_its_unknown_calls_and_is_never_resumed() -> None:
    journal = Silent()
    later = FakeClock(died_in_the_call(journal) + 3600)
    with pytest.raises(RunHeld):
        asyncio.run(abandon_run(journal, "died", clock=FakeClock(later.now() - 3590)))
    PAID.clear()
    trace = asyncio.run(abandon_run(journal, "died", by="ann", note="Paid by hand.", clock=later)).trace
    doubt, end = trace.calls["call_1"].doubt, trace.finished
    assert doubt is not None
    assert doubt.reason == "no_outcome"
    assert trace.calls["call_1"].observed is None
    assert end is not None
    assert (end.status, end.abandoned_by) == ("stopped", "ann")
    assert "Paid by hand." in end.reason
    assert decode_fact("finished", encode_fact(end)) == end
    for forbidden in (
        agent(journal).resume("died"),
        abandon_run(journal, "died"),
        add_note(journal, "died", "go on"),
    ):
        with pytest.raises(RunNotResumable, match="abandoned by ann"):
            asyncio.run(forbidden)
    with pytest.raises(ConfigError, match="not in doubt"):
        asyncio.run(settle_doubt(journal, "died", "call_1", "repeat"))
    assert asyncio.run(recover(journal, [agent(journal)], silent_s=0.0)) == []
    assert PAID == []
    stored = Trace("died", asyncio.run(journal.load("died")))
    with pytest.raises(IllegalEvent):
        stored.add(Resumed(), 0.0)
    assert all(step.same for step in replay(stored))


def test_a_run_that_waits_or_was_stopped_is_abandoned_with_the_runs_inside_it() -> None:
    journal = MemoryJournal()
    inner = agent(journal).as_tool(name="clerk", purpose="Pays.")
    model = ScriptedModel([call("clerk", task="Settle the bill."), "Done."])
    waiting = Agent(model=model, tools=[inner], journal=journal).run_sync("Have the bill settled.")
    assert [pending.outer for pending in asyncio.run(pending_approvals(journal))] == [waiting.run_id]
    with pytest.raises(ConfigError, match="part of run"):
        asyncio.run(abandon_run(journal, f"{waiting.run_id}.1"))
    ended = asyncio.run(abandon_run(journal, waiting.run_id)).trace
    assert ended.calls["call_1"].doubt is None, "it waits in good order, and is not in doubt"
    assert asyncio.run(pending_approvals(journal)) == []
    with pytest.raises(RunNotResumable, match="abandoned by user"):
        asyncio.run(answer_approval(journal, f"{waiting.run_id}.1", "call_1", ApprovalAnswer(approved=True)))
    rows = asyncio.run(journal.runs())
    assert {row.status for row in rows} == {"stopped"}
    limited = agent(journal, approve=lambda _: True, closing_turn=False).run_sync("Settle the bill.", max_steps=1)
    assert asyncio.run(abandon_run(journal, limited.run_id)).trace.is_over


def test_what_is_completed_or_never_began_is_not_abandoned() -> None:
    journal = MemoryJournal()
    done = agent(journal, approve=lambda _: True).run_sync("Settle the bill.")
    with pytest.raises(RunNotResumable, match="completed"):
        asyncio.run(abandon_run(journal, done.run_id))
    asyncio.run(journal.create("empty"))
    with pytest.raises(NotWaiting):
        asyncio.run(abandon_run(journal, "empty"))
    assert encode_fact(Finished(status="stopped", answer=None, reason="r")).find(b"abandoned") == -1
