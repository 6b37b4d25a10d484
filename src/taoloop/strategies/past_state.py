"""A run as it was at an earlier event: what was used up, what was left of each limit, and the prompt that was sent.

Nothing of this is stored. The counts are those of the trace up to there, and the prompt is what the strategy asks of
that trace, so it is the one that the model got, to the character. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.events import Event, ModelReplied
from taoloop.core.message import Usage
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.strategies import get_strategy


class LimitUse(NamedTuple):
    """One limit of a run, and how much of it was used."""

    name: str
    """The name of the limit, as in `Limits`."""
    used: float
    """What was used."""
    allowed: float | None
    """What the limit allows; None: there is no limit."""

    @property
    def left(self) -> float | None:
        """What was left; None: there is no limit."""
        return None if self.allowed is None else max(0.0, self.allowed - self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastState:
    """A run after some of its events."""

    events: int
    """How many events it had."""
    at: float
    """The time of the last of them, in seconds since the epoch."""
    status: str
    """A finished status, `waiting` or `running`."""
    step: int
    """How many decisions had been made."""
    usage: Usage
    """The tokens of all replies so far."""
    cost_usd: float
    """What the replies had cost, as far as their prices are known."""
    unpriced_calls: int
    """How many replies had no known price."""
    model_calls: int
    """How many replies there had been."""
    tool_calls: int
    """How many calls had been made."""
    limits: tuple[LimitUse, ...]
    """Each limit with what was used of it."""
    pending: tuple[CallView, ...]
    """The calls that had no outcome yet."""
    request: ModelRequest | None
    """What the model was asked next; None: something else came next."""


def past_state(run_id: str, events: Sequence[Event]) -> PastState:
    """The run as it was after `events`, which begin with its first one.

    Raises:
        IllegalEvent: they are not the beginning of a run.
        UnknownName: the strategy of the run is not known here.
    """
    trace = Trace(run_id, events)
    return PastState(
        events=len(trace),
        at=events[-1].at,
        status=trace.status,
        step=trace.step_count,
        usage=trace.usage,
        cost_usd=trace.cost_usd,
        unpriced_calls=trace.unpriced_calls,
        model_calls=trace.model_calls,
        tool_calls=trace.tool_calls,
        limits=_limits(trace),
        pending=tuple(trace.pending.values()),
        request=next_request(trace),
    )


def next_request(trace: Trace) -> ModelRequest | None:
    """What the model is asked next by a run; None where the run is over, waits, or does something else first."""
    if trace.finished is not None or trace.paused is not None:
        return None
    effect = get_strategy(trace.agent.strategy).next(trace.agent, trace)
    return effect.request if isinstance(effect, CallModel) else None


def is_rebuildable(fact: ModelReplied) -> bool:
    """Whether the prompt of a reply follows from the trace: not for one that a tool asked for within its call."""
    return fact.purpose != "read"


def _limits(trace: Trace) -> tuple[LimitUse, ...]:
    limits = trace.limits
    return (
        LimitUse("max_steps", trace.step_count, limits.max_steps),
        LimitUse("max_tool_calls", trace.tool_calls, limits.max_tool_calls),
        LimitUse("max_tokens", trace.usage.total_tokens, limits.max_tokens),
        LimitUse("max_cost_usd", trace.cost_usd, limits.max_cost_usd),
        LimitUse("max_wall_s", trace.wall_s, limits.max_wall_s),
        LimitUse("max_working_s", trace.working_s, limits.max_working_s),
        LimitUse("max_consecutive_errors", trace.consecutive_errors, limits.max_consecutive_errors),
        LimitUse("max_total_errors", trace.total_errors, limits.max_total_errors),
        LimitUse("repeat_stop", trace.repeats, limits.repeat_stop),
    )
