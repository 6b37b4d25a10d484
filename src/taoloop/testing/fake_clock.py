"""A clock that stands still until it is told to go on."""

from __future__ import annotations


class FakeClock:
    """A `Clock` for tests: starts at `now` and moves only by `advance`, or by `step_s` at each look."""

    def __init__(self, now: float = 1_800_000_000.0, *, step_s: float = 0.0) -> None:
        self._now, self._step_s = now, step_s

    def now(self) -> float:
        """Seconds since the epoch."""
        self._now += self._step_s
        return self._now

    def tick(self) -> float:
        """The same time, as a duration clock."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
