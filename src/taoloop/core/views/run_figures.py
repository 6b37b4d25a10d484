"""What a run took: steps, calls, tokens, money and time, with and without the time in which it waited. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from taoloop.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    Compensated,
    DoubtSettled,
    Fact,
    Finished,
    Paused,
    Resumed,
)
from taoloop.core.human_input import InputAnswered, Marked
from taoloop.core.trace import Trace
from taoloop.core.views.steps import PROBE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What a run took so far, with the runs inside it; a fork with the steps that were copied."""

    run_id: str
    """The run."""
    status: str
    """How it ended, or `waiting` or `running`."""
    model: str
    """The model of its agent."""
    steps: int
    """How many decisions it made."""
    tool_calls: int
    """How many calls were not denied."""
    errors: int
    """How many calls failed, and how many replies could not be read."""
    input_tokens: int
    """Tokens of all prompts."""
    output_tokens: int
    """Tokens of all replies."""
    cost_usd: float | None
    """What the models cost, in US dollars; None if the price of a call is unknown."""
    active_s: float
    """Seconds in which a process had the run and nobody was waited for."""
    elapsed_s: float
    """Seconds from its first event to its last, waiting included; without what undid it later, and before a fork."""

    @property
    def tokens(self) -> int:
        """Tokens of all prompts and replies."""
        return self.input_tokens + self.output_tokens


def run_figures(trace: Trace) -> RunFigures:
    """The figures of a run.

    Time before the answer of a person counts as waiting, also where its process stayed and other calls ran meanwhile.
    """
    active_s, elapsed_s = _times(trace)
    return RunFigures(
        run_id=trace.run_id,
        status=trace.status,
        model=trace.agent.model if trace.started is not None else "",
        steps=len(trace.steps),
        tool_calls=trace.tool_calls,
        errors=trace.total_errors,
        input_tokens=trace.usage.input_tokens,
        output_tokens=trace.usage.output_tokens,
        cost_usd=None if trace.unpriced_calls else trace.cost_usd,
        active_s=active_s,
        elapsed_s=elapsed_s,
    )


def _times(trace: Trace) -> tuple[float, float]:
    active_s, is_held = 0.0, True
    first = last = trace.events[0].at if trace.events else 0.0
    original = None if trace.started is None else trace.started.forked_from
    forked = "" if original is None else f"fork of run {original} at "
    for event in trace.events:
        fact = event.fact
        if isinstance(fact, Compensated | Marked):
            continue
        since_last_s = max(0.0, event.at - last)
        if is_held and not _ends_a_wait(fact):
            active_s += since_last_s
        if isinstance(fact, Resumed) and forked and fact.reason.startswith(forked):
            first += since_last_s  # what was copied for a fork happened long ago
        is_held = not isinstance(fact, Paused | Finished) and (is_held or isinstance(fact, Resumed))
        last = max(last, event.at)
    return active_s, last - first


def _ends_a_wait(fact: Fact) -> bool:
    """Whether the time before a fact was waited for a person, or passed without a process."""
    if isinstance(fact, DoubtSettled):
        return fact.by != PROBE
    return isinstance(fact, ApprovalGiven | ApprovalRefused | InputAnswered | Resumed)
