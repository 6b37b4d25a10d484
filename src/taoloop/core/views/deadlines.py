"""When a run goes on by itself: its first start, and the ends of the time in which people may answer."""

from __future__ import annotations

from taoloop.core.events import ActionRequested, Paused
from taoloop.core.trace import Trace


def open_since(trace: Trace, call_id: str) -> float | None:
    """When a question was first left open: the first pause after the request, in seconds since the epoch.

    The time is the journal's. A clock that went back between the request and the pause counts from the request.
    """
    since = None
    for event in reversed(trace.events):  # the call is pending, so it was requested by the last decision
        if isinstance(event.fact, Paused):
            since = event.at
        elif isinstance(event.fact, ActionRequested) and event.fact.call_id == call_id:
            return None if since is None else max(since, event.at)
    return since


def expires_at(trace: Trace, call_id: str) -> float | None:
    """When a question counts as refused because nobody answered, in seconds since the epoch; None for never."""
    since, timeout_s = open_since(trace, call_id), trace.agent.policy.approval_timeout_s
    return None if since is None or timeout_s is None else since + timeout_s


def wake_time(trace: Trace) -> float | None:
    """When a run goes on although nobody answers, in seconds since the epoch; None: only once somebody does.

    Of a run that waits that is the first of its deadlines (without those of runs inside it); of one that was submitted
    and has not begun, the time before which it may not.
    """
    if trace.paused is not None:
        open_calls = [call_id for call_id, call in trace.pending.items() if call.needs_person]
        return min((at for call_id in open_calls if (at := expires_at(trace, call_id)) is not None), default=None)
    submission = None if trace.started is None else trace.started.submission
    return submission.not_before if submission is not None and len(trace) == 1 else None
