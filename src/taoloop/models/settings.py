"""Settings as plain data: how often a failed call is tried again, and how many calls there may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taoloop.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How a failed model call is tried again. Only errors that say `retryable` are, such as a full or silent provider.

    `attempts` counts the first one too, 3 by default; 1 switches retries off. The pause before the next attempt is a
    random part of `first_wait_s` (0.5), doubled with each attempt up to `max_wait_s` (30): all callers of a provider
    that went down come back at different times ("full jitter"). A provider that says how long to wait (`Retry-After`)
    is obeyed, plus up to `first_wait_s`, however long it asks. `attempt_timeout_s` bounds one attempt, so that a
    provider that hangs leaves time for another; None (the default) lets one attempt use all the time that there is.
    Attempts and pauses together never take longer than the agent's `model_timeout_s`.
    """

    attempts: int = 3
    first_wait_s: float = 0.5
    max_wait_s: float = 30.0
    attempt_timeout_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            ConfigError: names the field and what it must be.
        """
        _require("Retry", "attempts", self.attempts, _is_count(self.attempts), "a whole number above 0")
        for name in ("first_wait_s", "max_wait_s"):
            value = getattr(self, name)
            _require("Retry", name, value, _is_number(value) and value >= 0, "seconds, 0 or more")
        limit = self.attempt_timeout_s
        holds = limit is None or (_is_number(limit) and limit > 0)
        _require("Retry", "attempt_timeout_s", limit, holds, "seconds above 0, or None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How much may be asked of a model in any span of 60 seconds. None means no limit.

    `requests_per_minute` counts attempts, retries included; `tokens_per_minute` counts input and output.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            ConfigError: names the field and what it must be.
        """
        for name in ("requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            _require("Rate", name, value, value is None or _is_count(value), "a whole number above 0, or None")


def _require(what: str, name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{what}: {name} is {value!r}.", hint=f"It must be {expected}.")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
