"""Time, ids and randomness as arguments, so that a run can be repeated exactly."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where a runner gets its times from."""

    def now(self) -> float:
        """Seconds since the epoch (UTC), for the record."""
        ...

    def tick(self) -> float:
        """Seconds of a clock that never goes back, for durations."""
        ...


class SystemClock:
    """The machine's clocks."""

    now = staticmethod(time.time)
    tick = staticmethod(time.perf_counter)


def new_run_id(now: float) -> str:
    """A fresh run id: the time, for people and for sorting, and 32 random bits."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{os.urandom(4).hex()}"


def new_nonce() -> str:
    """A fresh nonce for the frames around untrusted text of one run."""
    return os.urandom(6).hex()
