"""Calls in doubt that wait for a person: beside the approvals, the other thing that a run waits for."""

from __future__ import annotations

from taoloop.core.trace import Trace
from taoloop.errors import TaoError
from taoloop.journals.base import Journal
from taoloop.runtime.answering import Waiting, outermost
from taoloop.runtime.approval import ApprovalRequest
from taoloop.runtime.doubt import known_of
from taoloop.strategies.doubt import lost_calls

_ALL = 10_000_000


async def doubts(journal: Journal, run_id: str | None = None) -> list[Waiting]:
    """Every call in doubt of the runs that wait, the oldest run first; those of `run_id` and inside it alone.

    A run that cannot be read is left out: `waiting_calls` tells of it.
    """
    found = []
    for row in reversed(await journal.runs(limit=_ALL, status="waiting")):
        if run_id is not None and row.run_id != run_id and not row.run_id.startswith(f"{run_id}."):
            continue
        try:
            trace = Trace(row.run_id, await journal.load(row.run_id))
            asked = questions_of(trace)
            outer = await outermost(journal, trace) if asked else ""
        except TaoError:
            continue
        found += [Waiting(request=one, task=trace.task, outer=outer) for one in asked]
    return found


def questions_of(trace: Trace) -> list[ApprovalRequest]:
    """The calls of a run that waits of which a person must say whether they happened."""
    if trace.paused is None:
        return []
    return [
        ApprovalRequest(
            run_id=trace.run_id,
            call_id=call.requested.call_id,
            tool=call.requested.tool,
            args=call.args,
            reasons=(),
            card=trace.card(call.requested.tool),
            digest=call.requested.digest,
            policy=call.requested.policy,
            since=call.started_at,
            doubt=known_of(trace, call),
        )
        for call in lost_calls(trace, tuple(trace.pending.values())).ask
    ]
