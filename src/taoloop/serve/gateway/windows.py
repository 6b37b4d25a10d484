"""Where the library `limits` keeps what was used in the last minute: in memory, without threads, on our clock.

The storage in memory that comes with the library reads the machine's clock and starts a thread every few requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from limits import RateLimitItemPerMinute
from limits.storage import MovingWindowSupport, Storage

_GRAIN_S = 1.0
"""Entries this close to each other are one, which leaves the window with its youngest: a window stays small."""


class PerMinute(RateLimitItemPerMinute):
    """So much a minute. The window has no amount in its name: what was used counts also where the limit is changed."""

    def key_for(self, *identifiers: bytes | str | float) -> str:
        """The name of the window."""
        return "/".join(map(str, identifiers))


@dataclass(slots=True)
class _Entry:
    first: float
    last: float
    amount: int


@dataclass(slots=True)
class _Window:
    span_s: float
    entries: deque[_Entry] = field(default_factory=deque)
    total: int = 0

    def forget(self, now: float) -> None:
        while self.entries and now - self.entries[0].last >= self.span_s:
            self.total -= self.entries.popleft().amount

    def add(self, now: float, amount: int) -> None:
        self.total += amount
        if self.entries and now - self.entries[-1].first < _GRAIN_S:
            self.entries[-1].last = now
            self.entries[-1].amount += amount
        else:
            self.entries.append(_Entry(now, now, amount))


class Windows(Storage, MovingWindowSupport):
    """Moving windows: no span of a window's length ever holds more than was allowed, but for what `incr` adds.

    For one event loop. `tick` gives seconds that never go back.
    """

    STORAGE_SCHEME = None

    def __init__(self, tick: Callable[[], float]) -> None:
        super().__init__()
        self._tick = tick
        self._windows: dict[str, _Window] = {}

    @property
    def base_exceptions(self) -> type[Exception]:
        """What the library may wrap: nothing here fails."""
        return ValueError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Whether there is room for `amount`; if so it is taken."""
        window, now = self._now(key, expiry)
        if window.total + amount > limit:
            return False
        window.add(now, amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002  # the library's
        """When the window began, and how much is in it."""
        window, now = self._now(key, expiry)
        return (window.entries[0].last if window.entries else now), window.total

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Add what was used, even if there is no room for it; gives how much is in the window now."""
        window, now = self._now(key, expiry)
        if amount > 0:
            window.add(now, amount)
        return window.total

    def room_in(self, key: str, limit: int, expiry: float) -> float:
        """Seconds until there is room for one more, if nothing else is added; 0: there is."""
        window, now = self._now(key, expiry)
        total = window.total
        for entry in window.entries:
            if total < limit:
                break
            total -= entry.amount
            if total < limit:
                return max(0.0, entry.last + window.span_s - now)
        return 0.0

    def get(self, key: str) -> int:
        """How much is in a window; 0 where there is none."""
        return self._now(key, self._windows[key].span_s)[0].total if key in self._windows else 0

    def get_expiry(self, key: str) -> float:
        """When a window will be empty."""
        window = self._windows.get(key)
        return window.entries[-1].last + window.span_s if window is not None and window.entries else self._tick()

    def check(self) -> bool:
        """Memory is always there."""
        return True

    def reset(self) -> int:
        """Forget everything; gives how many windows there were."""
        count = len(self._windows)
        self._windows.clear()
        return count

    def clear(self, key: str) -> None:
        """Forget one window."""
        self._windows.pop(key, None)

    def _now(self, key: str, span_s: float) -> tuple[_Window, float]:
        """The window as it is now, and the time."""
        now = self._tick()
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window(span_s)
        window.forget(now)
        return window, now
