"""Time, ids and randomness as arguments, so that a run can be repeated exactly."""

from __future__ import annotations

import os
import secrets
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
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{random_hex(4)}"


def new_nonce() -> str:
    """A fresh nonce for the frames around untrusted text of one run."""
    return random_hex(6)


_POOL_BYTES = 4096
_pool: list[bytes] = []  # what is left of the last draw; pop and append are atomic


def random_hex(size: int) -> str:
    """So many random bytes of the system, in hex. They are drawn in advance, for each draw is a call of the system."""
    try:
        left = _pool.pop()
    except IndexError:
        left = b""
    if len(left) < size:
        left = secrets.token_bytes(_POOL_BYTES)
    if len(left) > size:
        _pool.append(left[size:])
    return left[:size].hex()


if hasattr(os, "register_at_fork"):  # a child would draw what its parent draws
    os.register_at_fork(after_in_child=_pool.clear)
