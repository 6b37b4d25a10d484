"""When a failed request is sent again, and after what pause.

What was never sent may always be sent again. What was sent may be only where a second time has no second effect: it
reads, or it carries an idempotency key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from taoloop.tools.openapi.http.response import RETRIED

LONGEST_PAUSE_S = 30.0
"""A server that asks for a longer pause is not waited for."""


@dataclass(frozen=True, slots=True)
class Clock:
    """What the pauses need: how to wait, the time of day in seconds since the epoch, and seconds that only grow."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time
    tick: Callable[[], float] = time.monotonic


def may_repeat(status: int | None, *, was_sent: bool, is_repeatable: bool) -> bool:
    """Whether a request may go out once more. `status` None: no answer came.

    `was_sent` False: the connection failed before anything went out. `is_repeatable`: a second time has no
    second effect.
    """
    if not was_sent:
        return True
    return is_repeatable and (status is None or status in RETRIED)


def pause_s(attempt: int, retry_after: str, now: float) -> float | None:
    """Seconds before the next attempt: 1, 2, 3 … after the attempts 1, 2, 3 …, or what the server asked for.

    None: it asked for more than anybody waits.
    """
    asked = asked_pause_s(retry_after, now)
    wanted = float(attempt) if asked is None else max(asked, 0.0)
    return wanted if wanted <= LONGEST_PAUSE_S else None


def asked_pause_s(retry_after: str, now: float) -> float | None:
    """What a header `Retry-After` asks for in seconds, or None where it says nothing that can be read."""
    text = retry_after.strip()
    if not text:
        return None
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
