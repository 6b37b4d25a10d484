"""Which limit a run has reached, if any. Pure: everything is counted by the trace."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter

from taoloop.core.events import LimitReached, Status
from taoloop.core.trace import Trace

_LEAST_S = 0.001  # what a call gets where no time is left: it is begun, and is late at once


def reached_limit(trace: Trace) -> LimitReached | None:
    """The first limit other than the steps that the run has used up, or None. The order is from worst to mildest.

    A budget in money is used up as soon as one call has no known price: what cannot be counted cannot be kept to.
    """
    for allowed, (name, count, status) in zip(_allowed(trace.limits), _CHECKS, strict=True):
        if allowed is not None and (used := count(trace)) >= allowed:
            if name == "max_consecutive_errors" and trace.consecutive_unreadable == used:
                status = "unreadable"  # noqa: PLW2901  # errors of this one kind have a name of their own
            return LimitReached(limit=name, status=status, allowed=allowed, used=used)
    return None


def _calls_wanted(trace: Trace) -> int:
    """0 until a call had to be refused: a run that made all its calls may still answer."""
    return trace.tool_calls + trace.calls_refused_by_limit if trace.calls_refused_by_limit else 0


_CHECKS: tuple[tuple[str, Callable[[Trace], float], Status], ...] = (
    ("max_consecutive_errors", lambda trace: trace.consecutive_errors, "too_many_errors"),
    ("max_total_errors", lambda trace: trace.total_errors, "too_many_errors"),
    ("repeat_stop", lambda trace: trace.repeats, "repeated_action"),
    ("max_tool_calls", _calls_wanted, "budget_exceeded"),
    ("max_tokens", lambda trace: trace.usage.total_tokens, "budget_exceeded"),
    ("max_cost_usd", lambda trace: math.inf if trace.unpriced_calls else trace.cost_usd, "budget_exceeded"),
    ("max_wall_s", lambda trace: trace.wall_s, "budget_exceeded"),
    ("max_working_s", lambda trace: trace.working_s, "budget_exceeded"),
)
_allowed = attrgetter(*(name for name, _, _ in _CHECKS))


def time_limit(trace: Trace, call_limit_s: float | None) -> LimitReached | None:
    """The run's time limit that cut a call short, or None if the call's own limit did."""
    limits = trace.limits
    left = [
        (allowed - used, name, allowed)
        for name, allowed, used in (
            ("max_wall_s", limits.max_wall_s, trace.wall_s),
            ("max_working_s", limits.max_working_s, trace.working_s),
        )
        if allowed is not None
    ]
    if not left or (call_limit_s is not None and call_limit_s <= min(left)[0]):
        return None
    _, name, allowed = min(left)
    return LimitReached(limit=name, status="budget_exceeded", allowed=allowed, used=allowed)


def reached_steps(trace: Trace) -> LimitReached | None:
    """The step limit, if no further step may begin."""
    allowed, used = trace.limits.max_steps, trace.step_count
    if allowed is None or used < allowed:
        return None
    return LimitReached(limit="max_steps", status="max_steps_exceeded", allowed=allowed, used=used)


def remaining_s(trace: Trace, limit_s: float | None) -> float | None:
    """The seconds that one call may take: its own limit, or what is left of the run's time if that is less."""
    limits, left_s = trace.limits, limit_s
    if limits.max_wall_s is None and limits.max_working_s is None:
        return limit_s if limit_s is None or limit_s > _LEAST_S else _LEAST_S
    if limits.max_wall_s is not None:
        left_s = _lesser(left_s, limits.max_wall_s - trace.wall_s)
    if limits.max_working_s is not None:
        left_s = _lesser(left_s, limits.max_working_s - trace.working_s)
    return left_s if left_s is None or left_s > _LEAST_S else _LEAST_S


def _lesser(one: float | None, other: float) -> float:
    return other if one is None or other < one else one
