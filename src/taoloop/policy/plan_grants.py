"""What the approval of a plan allows in the run of one of its steps: exactly the calls that the step lists. Pure.

A person who approves a plan answers one question for all its calls. So a call is covered only if the step lists it: the
same tool, the same arguments with the same values, and where the plan states an origin in place of a value, one that
the executor itself has found there, in an output that it has whole. What a model says about where a value came from
counts for nothing, and neither does the output of a call that the step does not list: a model that chooses among values
could add to them by a read. Each call of the list covers one call, whether or not that one would have been allowed
anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from taoloop.core.decision import PlannedCall, PlanStep, call_digest
from taoloop.core.events import ActionRequested, ApprovalGiven, Event, Resumed
from taoloop.core.redaction.redactor import contains_redaction
from taoloop.core.trace import Trace
from taoloop.core.value_origins import StatedOrigin, stated_origin
from taoloop.policy.call_history import same_value
from taoloop.policy.judged_call import JudgedCall


class PlanGrant:
    """Which calls of a step were made, and which of the others a person approved. A view of the trace of its run."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._is_open = True
        self.unmade: list[PlannedCall] = []
        """The listed calls that were not made yet."""
        self.made: dict[str, str] = {}
        """The digests of the listed calls that were made, as they were made, by the ids of the calls."""

    def fold(self, event: Event) -> None:
        """Process the next event."""
        fact = event.fact
        if isinstance(fact, ActionRequested):
            if fact.verdict != "deny" and (planned := self._covering(fact.tool, fact.args)) is not None:
                self.unmade.remove(planned)
                self.made[fact.call_id] = fact.digest
        elif isinstance(fact, ApprovalGiven):
            if fact.args is not None and fact.call_id in self.made:
                self.made[fact.call_id] = fact.digest
        elif isinstance(fact, Resumed):
            changed = {card.name for card in fact.cards}  # they were approved for the tools as they were
            self.unmade = [
                replace(planned, is_granted=False) if planned.tool in changed else planned for planned in self.unmade
            ]
        elif event.seq == 0 and (step := step_of(self._trace)) is not None:
            self.unmade, self._is_open = list(step.calls), not step.calls

    def covers(self, tool: str, args: Any) -> bool:
        """Whether this call may be made once more under the approval."""
        planned = self._covering(tool, args)
        return planned is not None and planned.is_granted

    def has_listed(self, tool: str, args: Any) -> bool:
        """Whether a call that was made is one of the list; of a step that lists none each call is."""
        return self._is_open or call_digest(tool, args) in self.made.values()

    def origin_values(self, planned: PlannedCall, origin: StatedOrigin) -> Iterator[Any]:
        """The values at an origin that a call states: found in other steps, and in this run where it may be meant."""
        yield from planned.values.get(origin.key, ())
        step = step_of(self._trace)
        if step is not None and origin.step in (None, step.number):
            yield from self.found_values(planned, origin)

    def found_values(self, planned: PlannedCall, origin: StatedOrigin) -> Iterator[Any]:
        """The plain values at an origin in what this run itself has called, each from an output that is known whole.

        If it carries out a step that lists calls, only these count. A secret is not among the values: the trace has a
        label in its place.
        """
        card = self._trace.card(planned.tool)
        if card is None:
            return
        by_call: dict[str, bool] = {}  # an output may have many values
        for past, value in JudgedCall(self._trace, card, planned.args).fields_at(origin.origin):
            if past.call_id not in by_call:
                by_call[past.call_id] = self.has_listed(origin.origin.tool, past.args)
            if by_call[past.call_id] and not contains_redaction(value):
                yield value

    def _covering(self, tool: str, args: Any) -> PlannedCall | None:
        calls = (planned for planned in self.unmade if planned.tool == tool)
        return next((planned for planned in calls if self._matches(planned, planned.args, args)), None)

    def _matches(self, planned: PlannedCall, listed: Any, value: Any) -> bool:
        """Whether a value is the one that a call lists, or was found at the origin that it states."""
        origin = stated_origin(listed)
        if origin is not None:
            return any(same_value(value, other) for other in self.origin_values(planned, origin))
        if isinstance(listed, Mapping):
            is_alike = isinstance(value, Mapping) and listed.keys() == value.keys()
            return is_alike and all(self._matches(planned, part, value[name]) for name, part in listed.items())
        if isinstance(listed, list | tuple):
            is_alike = isinstance(value, list | tuple) and len(listed) == len(value)
            return is_alike and all(self._matches(planned, *parts) for parts in zip(listed, value, strict=True))
        return not isinstance(value, Mapping | list | tuple) and json.dumps(listed) == json.dumps(value)


def plan_grant(trace: Trace) -> PlanGrant:
    """The calls of the step that a run carries out, and what the approval of its plan still allows."""
    return trace.view("plan_grant", lambda: PlanGrant(trace))


def step_of(trace: Trace) -> PlanStep | None:
    """The step of a plan that a run carries out; None for any other run."""
    return trace.started.plan_step if trace.started is not None else None
