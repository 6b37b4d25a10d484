"""Settings of model calls as plain data: retries and rates. `Pace` is what waits between calls.

The time, a pause and a random number are an argument of all that waits, so that its tests never wait.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Protocol

from taoloop.core.text import field_error, is_number
from taoloop.errors import ConfigError


class DeferredModelSpec(str):
    """A spec whose model is looked up where it is first used, and not when an agent with it is made.

    The model of a stored run may be one that this program does not have, and an undo or a fork needs none.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How a failed model call is retried. Only errors that say `retryable` are, such as a full or silent provider.

    The pause before the next attempt is random, so that all callers of a provider that went down come back at
    different times ("full jitter"). A provider that says how long to wait (`Retry-After`) is obeyed, however long it
    asks, plus up to `first_wait_s`. Attempts and pauses together never take longer than the agent's `model_timeout_s`.
    """

    attempts: int = 3
    """How often a call is made at most, the first time included; 1 switches retries off."""

    first_wait_s: float = 0.5
    """The longest pause before the second attempt, in seconds. It doubles with each attempt."""

    max_wait_s: float = 30.0
    """The bound for that doubling, in seconds."""

    attempt_timeout_s: float | None = None
    """The bound for one attempt in seconds, so that a provider that hangs leaves time for another attempt. None lets
    one attempt use all the time that there is."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            ConfigError: names the field and what it must be.
        """
        _require("Retry", "attempts", self.attempts, _is_count(self.attempts), "a whole number above 0")
        for name in ("first_wait_s", "max_wait_s"):
            value = getattr(self, name)
            _require("Retry", name, value, is_number(value) and value >= 0, "seconds, 0 or more")
        limit = self.attempt_timeout_s
        holds = limit is None or (is_number(limit) and limit > 0)
        _require("Retry", "attempt_timeout_s", limit, holds, "seconds above 0, or None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How much may be asked of a model in any span of 60 seconds. None means no limit."""

    requests_per_minute: int | None = None
    """The attempts, retries included."""

    tokens_per_minute: int | None = None
    """The tokens of input and output."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            ConfigError: names the field and what it must be.
        """
        for name in ("requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            _require("Rate", name, value, value is None or _is_count(value), "a whole number above 0, or None")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """One of several addresses or keys by which a model of a provider is called."""

    base_url: str = ""
    """The address of the API; "" takes that of the provider."""

    api_key_env: str = ""
    """The variable of the environment with the key; "" takes that of the provider."""

    weight: int = 1
    """Its share of the calls, beside the weights of the others."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            ConfigError: names the field and what it must be.
        """
        _require("ModelEndpoint", "weight", self.weight, _is_count(self.weight), "a whole number above 0")
        is_address = not self.base_url or self.base_url.startswith(("http://", "https://"))
        _require("ModelEndpoint", "base_url", self.base_url, is_address, "an address with http:// or https://")


def _require(owner: str, name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise field_error(ConfigError, "setting", expected, owner=owner, name=name, value=value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Pace(Protocol):
    """A clock, pauses and random numbers, for a model that waits between calls."""

    def tick(self) -> float:
        """Seconds of a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; a cancellation ends it."""
        ...

    def random(self) -> float:
        """A number from 0 up to, and not including, 1."""
        ...


class RealPace:
    """The machine's clock, real pauses, real randomness."""

    tick = staticmethod(time.monotonic)
    sleep = staticmethod(asyncio.sleep)
    random = staticmethod(random.random)


REAL_PACE: Pace = RealPace()
