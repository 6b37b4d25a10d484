"""The limits of a run: what is counted, and when it is enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from taoloop.errors import ConfigError

DEFAULT_MAX_STEPS = 6
DEFAULT_MAX_CONSECUTIVE_ERRORS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use up. None means no limit.

    `max_steps` counts decisions of the model (a repair turn belongs to its step), 6 by default.
    `max_tool_calls`: a run that made them all may still answer; it ends when it wants one more.
    `max_consecutive_errors` counts unreadable replies and failed calls together (those of one decision once, for the
    model sees them together) and starts again at every call that succeeds, 3 by default; `max_total_errors` counts
    each of them and never starts again.
    `max_wall_s` is the time that processes held the run, waiting included; `max_working_s` is the time spent in
    model calls and tools only.
    The same action with the same result is told to the model at the `repeat_tell`-th time and ends the run as
    `repeated_action` at the `repeat_stop`-th; a result that differs starts the count again.
    """

    max_steps: int | None = DEFAULT_MAX_STEPS
    max_tool_calls: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_wall_s: float | None = None
    max_working_s: float | None = None
    max_consecutive_errors: int | None = DEFAULT_MAX_CONSECUTIVE_ERRORS
    max_total_errors: int | None = None
    repeat_tell: int | None = 3
    repeat_stop: int | None = 5

    def __post_init__(self) -> None:
        """Refuse limits that no run could start under."""
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if value is None:
                continue
            whole = name not in ("max_cost_usd", "max_wall_s", "max_working_s")
            kinds = (int,) if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < math.inf:
                kind = "a whole number" if whole else "a number"
                raise ConfigError(
                    f"The limit {name} is {value!r}.", hint=f"It must be {kind} above 0, or None for no limit."
                )
