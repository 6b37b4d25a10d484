"""What came of a hand-off: another agent took the conversation over, and its end is the end of the run. Pure.

The call of a hand-off is a run of its own inside the run, as any call of an agent. Its output says how that run ended,
and the run that handed over ends with exactly that: nothing is asked of its model any more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from taoloop.core.events import Status
from taoloop.core.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffOutcome:
    """How the run of the agent that took over ended."""

    agent: str
    """The agent that spoke last: the one that took over, or one that it handed over to in its turn."""
    status: Status
    """How its run ended."""
    answer: str | None
    """Its answer; None if there is none."""
    reason: str
    """Why its run ended, for people."""
    error: str = ""
    """The code of the error if its model failed."""

    def as_output(self) -> dict[str, Any]:
        """The output of the call."""
        return asdict(self)


def handoff_outcome(trace: Trace) -> HandoffOutcome | None:
    """How the agent ended that took the conversation over; None: the run's own agent has it.

    An output in another form, which only a person can have put there in a fork, is the answer as it stands.
    """
    observed = trace.taken_over
    if observed is None:
        return None
    outcome = read_outcome(observed.output)
    if outcome is not None:
        return outcome
    card = trace.card(trace.calls[observed.call_id].requested.tool)
    agent = "" if card is None else card.hands_over_to
    return HandoffOutcome(agent=agent, status="completed", answer=observed.output, reason="")


def read_outcome(output: str) -> HandoffOutcome | None:
    """What the output of the call of a hand-off says; None if it is none."""
    try:
        values = json.loads(output)
    except ValueError:
        return None
    if not isinstance(values, Mapping) or values.get("status") not in get_args(Status):
        return None
    answer = values.get("answer")
    texts = {name: text for name in ("agent", "reason", "error") if isinstance(text := values.get(name, ""), str)}
    if len(texts) < 3 or not isinstance(answer, str | None):
        return None
    return HandoffOutcome(status=values["status"], answer=answer, **texts)


def answered_by(trace: Trace) -> str:
    """The name of the agent that gave the answer of a run, or is to give it."""
    outcome = handoff_outcome(trace)
    return trace.agent.name if outcome is None else outcome.agent
