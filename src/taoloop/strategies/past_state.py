"""A run as it was at an earlier event: what was left of each limit, and the prompt that was sent next.

Nothing of this is stored. A trace of the first events of a run has the counts of that moment, and the prompt is what
the strategy asks of that trace, so it is the one that the model got, to the character. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.trace import Trace
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


def limit_use(trace: Trace) -> tuple[LimitUse, ...]:
    """Each limit of a run that a count is held against, with what was used of it."""
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


def next_request(trace: Trace) -> ModelRequest | None:
    """What the model is asked next by a run; None where the run is over, waits, or does something else first.

    Raises:
        UnknownName: the strategy of the run is not known here.
    """
    if trace.finished is not None or trace.paused is not None:
        return None
    effect = get_strategy(trace.agent.strategy).next(trace.agent, trace)
    return effect.request if isinstance(effect, CallModel) else None
