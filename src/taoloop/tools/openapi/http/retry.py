"""When a failed request is retried, and after what pause.

A request that was never sent may always be retried. A request that was sent may be retried only if a repetition has no
further effect: it only reads, or it carries an idempotency key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from taoloop.errors import EgressFailed
from taoloop.tools.egress import EgressResponse
from taoloop.tools.openapi.http.response import RETRYABLE_STATUSES

MAX_PAUSE_S = 30.0
"""If a server asks for a longer pause, the call ends instead."""


@dataclass(frozen=True, slots=True)
class RetryClock:
    """The time functions that retries and tokens use; tests replace them."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for a number of seconds."""
    now: Callable[[], float] = time.time
    """The time of day in seconds since the epoch, to which `Retry-After` dates are compared."""
    tick: Callable[[], float] = time.monotonic
    """Seconds that only increase, for time limits."""


@dataclass(frozen=True, slots=True)
class LastAttempt:
    """How a request ended that was sent once or several times: with a response or with a failure."""

    response: EgressResponse | None
    """The response of the last attempt; None: there was none."""
    failure: EgressFailed | None
    """Why the last attempt failed; None: there was a response."""
    attempts: int
    """How often the request was sent."""
    is_exhausted: bool
    """Whether another attempt was justified, but the attempts or the time were used up."""


async def send_with_retries(
    send: Callable[[float], Awaitable[EgressResponse]],
    *,
    retries: int,
    timeout_s: float,
    is_repeatable: bool,
    clock: RetryClock,
) -> LastAttempt:
    """Send a request until its outcome is final, or until the attempts or the time are used up.

    `send` takes the remaining seconds. `is_repeatable`: a repetition has no further effect.
    """
    deadline = clock.tick() + timeout_s
    for attempt in range(1, retries + 2):
        response: EgressResponse | None = None
        failure: EgressFailed | None = None
        try:
            response = await send(max(deadline - clock.tick(), 0.001))
        except EgressFailed as error:
            failure = error
        if response is not None:
            is_final = not may_repeat(response.status, was_sent=True, is_repeatable=is_repeatable)
            retry_after = response.headers.get("retry-after", "")
        else:
            assert failure is not None  # noqa: S101  # one of the two is there
            can_repeat = may_repeat(None, was_sent=failure.was_sent, is_repeatable=is_repeatable)
            is_final, retry_after = not (failure.retryable and can_repeat), ""
        wait_s = pause_s(attempt, retry_after, clock.now())
        is_exhausted = attempt > retries or wait_s is None or clock.tick() + wait_s >= deadline
        if is_final or is_exhausted or wait_s is None:
            return LastAttempt(response, failure, attempt, is_exhausted=not is_final)
        await clock.sleep(wait_s)
    raise AssertionError("unreachable")  # the last attempt returns


def may_repeat(status: int | None, *, was_sent: bool, is_repeatable: bool) -> bool:
    """Whether a request may be sent again. `status` None: there was no response.

    `was_sent` False: the connection failed before anything was sent. `is_repeatable`: a repetition has no further
    effect.
    """
    if not was_sent:
        return True
    return is_repeatable and (status is None or status in RETRYABLE_STATUSES)


def pause_s(attempt: int, retry_after: str, now: float) -> float | None:
    """Seconds before the next attempt: 1, 2, 3 … after the attempts 1, 2, 3 …, or what the server asked for.

    None: the server asked for more than `MAX_PAUSE_S`.
    """
    requested = retry_after_s(retry_after, now)
    seconds = float(attempt) if requested is None else max(requested, 0.0)
    return seconds if seconds <= MAX_PAUSE_S else None


def retry_after_s(retry_after: str, now: float) -> float | None:
    """The seconds that a `Retry-After` header asks for; None if it is empty or unreadable."""
    text = retry_after.strip()
    if not text:
        return None
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
