"""A sliding window: how much was used in the last minute, and when there is room for more. Pure.

The rate limit of a model and the quotas of the gateway's keys count with it. Times are seconds of any clock that never
goes back; the caller passes them, so that nothing here waits and tests need no clock. Not safe for several threads.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Self

MINUTE_S = 60.0


@dataclass(slots=True, eq=False)
class WindowEntry:
    """An amount that was used at one time, or in a short span of time."""

    first: float
    """When the first part of it was used."""

    last: float
    """When the last part of it was used. The entry leaves the window one span later."""

    amount: int
    """How much was used: requests, or tokens."""


class SlidingWindow:
    """Amounts of the last `span_s` seconds, oldest first.

    Unlike a counter that starts afresh each minute, no span of this length ever holds more than `free_at` allows.

    Args:
        span_s: The length of the window.
        grain_s: Amounts that follow each other this closely share an entry, which leaves with its youngest part: the
            window then has at most `span_s / grain_s` entries, however often something is added. 0 keeps them apart,
            so that each can be corrected.
    """

    def __init__(self, span_s: float = MINUTE_S, *, grain_s: float = 0.0) -> None:
        self._span_s, self._grain_s = span_s, grain_s
        self._entries: deque[WindowEntry] = deque()
        self._total = 0

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def copy(self) -> Self:
        """A window with the same entries, to plan ahead in: what is added to it is not in this one."""
        copied = type(self)(self._span_s)  # without a grain, so that it changes none of the entries that both have
        copied._entries, copied._total = self._entries.copy(), self._total
        return copied

    def total(self, now: float) -> int:
        """How much was used in the span that ends now."""
        self._expire(now)
        return self._total

    def add(self, amount: int, now: float) -> WindowEntry:
        """Count an amount as used now, even if there is no room for it."""
        self._expire(now)
        self._total += amount
        if self._entries and now - self._entries[-1].first < self._grain_s:
            entry = self._entries[-1]
            entry.last = now
            entry.amount += amount
        else:
            entry = WindowEntry(now, now, amount)
            self._entries.append(entry)
        return entry

    def correct(self, entry: WindowEntry, amount: int, now: float) -> None:
        """Replace the estimate in an entry of its own by what was really used."""
        self._expire(now)
        if now < entry.last + self._span_s:
            self._total += amount - entry.amount
        entry.amount = amount

    def free_at(self, limit: float, now: float, amount: int = 1) -> float:
        """The earliest time, not before `now`, at which `amount` more keeps the window within `limit`.

        An amount larger than the limit itself fits once the window is empty: it waits, but not for ever.
        """
        self._expire(now)
        total, time = self._total, now
        for entry in self._entries:
            if total + amount <= limit:
                break
            total -= entry.amount
            time = entry.last + self._span_s
        return time

    def _expire(self, now: float) -> None:
        while self._entries and now >= self._entries[0].last + self._span_s:
            self._total -= self._entries.popleft().amount
