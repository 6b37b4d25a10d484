"""The limits of a run: what is counted, and when it is enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from taoloop.errors import ConfigError

DEFAULT_MAX_STEPS = 6
DEFAULT_MAX_CONSECUTIVE_ERRORS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use up. None means no limit."""

    max_steps: int | None = DEFAULT_MAX_STEPS
    """Decisions of the model; a repair turn belongs to its step. 6 by default."""
    max_tool_calls: int | None = None
    """A run that made them all may still answer; it ends when it wants one more."""
    max_tokens: int | None = None
    """Input and output of all replies together."""
    max_cost_usd: float | None = None
    """US dollars for all replies; the run ends at the first reply whose price is unknown."""
    max_wall_s: float | None = None
    """The time that processes held the run, waiting included."""
    max_working_s: float | None = None
    """The time spent in model calls and tools only."""
    max_consecutive_errors: int | None = DEFAULT_MAX_CONSECUTIVE_ERRORS
    """Unreadable replies and failed calls in a row, 3 by default. The failed calls of one decision count once, because
    the model sees them together; every call that succeeds starts the count again."""
    max_total_errors: int | None = None
    """Unreadable replies and failed calls of the whole run."""
    repeat_tell: int | None = 3
    """The same action with the same result is reported to the model at this count, 3 by default; a result that differs
    starts the count again."""
    repeat_stop: int | None = 5
    """The same action with the same result ends the run as `repeated_action` at this count, 5 by default."""

    def __post_init__(self) -> None:
        """Reject limits under which no run could start."""
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
