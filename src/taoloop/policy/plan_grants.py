"""What the approval of a plan allows in the run of one of its steps: exactly the calls that the step lists. Pure.

A person who approves a plan answers one question for all its calls. So a call is covered only if the step lists it: the
same tool, the same arguments with the same values, and where the plan states an origin in place of a value, one that
the executor itself has found there, in an output that it has whole. What a model says about where a value came from
counts for nothing. Each call of the list covers one call, whether or not that one would have been allowed anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from taoloop.core.decision import PlannedCall, PlanStep
from taoloop.core.events import ActionRequested, Event, Resumed
from taoloop.core.redaction.redactor import contains_redaction
from taoloop.core.trace import Trace
from taoloop.core.value_origins import StatedOrigin, stated_origin
from taoloop.policy.call_history import same_value
from taoloop.policy.judged_call import JudgedCall


class PlanGrant:
    """The calls of a step that were not made yet, and that a person approved. A view of the trace of its run."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._open: list[PlannedCall] = []

    def fold(self, event: Event) -> None:
        """Process the next event."""
        fact = event.fact
        if isinstance(fact, ActionRequested):
            if fact.verdict != "deny" and (planned := self._covering(fact.tool, fact.args)) is not None:
                self._open.remove(planned)
        elif isinstance(fact, Resumed):
            changed = {card.name for card in fact.cards}  # they were approved for the tools as they were
            self._open = [planned for planned in self._open if planned.tool not in changed]
        elif event.seq == 0 and (step := step_of(self._trace)) is not None:
            self._open = [planned for planned in step.calls if planned.is_granted]

    def covers(self, tool: str, args: Any) -> bool:
        """Whether this call may be made once more under the approval."""
        return self._covering(tool, args) is not None

    def _covering(self, tool: str, args: Any) -> PlannedCall | None:
        calls = (planned for planned in self._open if planned.tool == tool)
        return next((planned for planned in calls if is_planned(self._trace, planned, args)), None)


def plan_grant(trace: Trace) -> PlanGrant:
    """What the approval of a plan still allows in a run."""
    return trace.view("plan_grant", lambda: PlanGrant(trace))


def step_of(trace: Trace) -> PlanStep | None:
    """The step of a plan that a run carries out; None for any other run."""
    return trace.started.plan_step if trace.started is not None else None


def is_planned(trace: Trace, planned: PlannedCall, args: Any) -> bool:
    """Whether a call with these arguments is the planned one: each value is listed, or found at its stated origin."""
    return _matches(trace, planned, planned.args, args)


def _matches(trace: Trace, planned: PlannedCall, listed: Any, value: Any) -> bool:
    origin = stated_origin(listed)
    if origin is not None:
        return any(same_value(value, other) for other in origin_values(trace, planned, origin))
    if isinstance(listed, Mapping):
        is_alike = isinstance(value, Mapping) and listed.keys() == value.keys()
        return is_alike and all(_matches(trace, planned, part, value[name]) for name, part in listed.items())
    if isinstance(listed, list | tuple):
        is_alike = isinstance(value, list | tuple) and len(listed) == len(value)
        return is_alike and all(_matches(trace, planned, *parts) for parts in zip(listed, value, strict=True))
    return not isinstance(value, Mapping | list | tuple) and json.dumps(listed) == json.dumps(value)


def origin_values(trace: Trace, planned: PlannedCall, origin: StatedOrigin) -> Iterator[Any]:
    """The values at a stated origin: those found in other steps, and those of this run where it may be meant."""
    yield from planned.values.get(origin.key, ())
    step = step_of(trace)
    if step is not None and origin.step in (None, step.number):
        yield from found_values(trace, planned, origin)


def found_values(trace: Trace, planned: PlannedCall, origin: StatedOrigin) -> Iterator[Any]:
    """The plain values at an origin in what this run itself has called, each from an output that is known whole.

    A secret is not among them: the trace has a label in its place.
    """
    card = trace.card(planned.tool)
    values = () if card is None else JudgedCall(trace, card, planned.args).values_at(origin.origin)
    yield from (value for value in values if not contains_redaction(value))
