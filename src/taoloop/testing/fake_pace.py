"""Pauses that take no time, and a random number that is always the same: for tests of what waits."""

from __future__ import annotations

import asyncio

from taoloop.testing.fake_clock import FakeClock

_TURNS = 20
"""How many turns of the event loop everybody else gets before time goes on."""


class FakePace:
    """A `Pace` for `Retrying`, `Fallback` and `RateLimited`: time jumps to the next end of a pause.

    Several tasks may pause at once; the one whose pause ends first goes on first. `slept` holds the pauses in
    seconds in the order in which they began; `part` is what `random` gives, from 0 up to and not including 1.
    """

    def __init__(self, clock: FakeClock | None = None, *, part: float = 0.5) -> None:
        self.clock, self.slept = clock or FakeClock(), list[float]()
        self._part, self._ends = part, list[float]()

    def tick(self) -> float:
        """The time of the clock."""
        return self.clock.tick()

    def random(self) -> float:
        """Always the same part."""
        return self._part

    async def sleep(self, seconds: float) -> None:
        """Pause until the clock says so; if nobody's pause ends before, it is set forward."""
        self.slept.append(seconds)
        end = self.tick() + seconds
        self._ends.append(end)
        try:
            while self.tick() < end:
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
                if self.tick() < end == min(self._ends):
                    self.clock.advance(end - self.tick())
                    if self.tick() < end:  # the sum of floats falls short by a hair
                        self.clock.advance(1e-6)
        finally:
            self._ends.remove(end)
