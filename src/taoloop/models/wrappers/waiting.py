"""Waiting, as an argument: the time, a pause and a random number, so that tests of what waits never wait."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Protocol


class Pace(Protocol):
    """What a model that waits between calls needs of the world."""

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
