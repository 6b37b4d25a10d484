"""What keys have used: counted in this process alone, or in a database for all processes of a gateway."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Literal, Protocol

from taoloop.models.rate_limit import MINUTE_S, SlidingWindow
from taoloop.runtime.engine.clock import Clock
from taoloop.serve.gateway.shared.database import GatewayDatabase

DAY_S = 86_400

UsageKind = Literal["requests", "tokens"]
"""What is counted in a window of a minute."""

_GRAIN_S = 1.0
"""Uses this close together share an entry of a window, which therefore has at most about 60 of them."""

LEASE_S = 15.0
"""How long the runs of a process count after it was last heard of: those of a killed one are free after this time."""

_RENEWAL_S = LEASE_S / 3


class Counters(Protocol):
    """Counts runs, requests, tokens and costs by the name of a key."""

    def transaction(self) -> AbstractContextManager[None]:
        """A block in which nobody else counts, so that a check holds for what is counted after it."""
        ...

    def active_runs(self, name: str) -> int:
        """How many runs of a key are active."""
        ...

    def enter(self, name: str) -> None:
        """Count a run that starts."""
        ...

    def leave(self, name: str) -> None:
        """Count a run that ends."""
        ...

    def use(self, kind: UsageKind, name: str, amount: int) -> None:
        """Count what is used now in the window of a key."""
        ...

    def wait_s(self, kind: UsageKind, name: str, limit: int) -> float:
        """The seconds until the window of a key has room for one more; 0: it has."""
        ...

    def spend(self, name: str, usd: float) -> None:
        """Count a cost for the day (UTC) that it is now."""
        ...

    def spent(self, name: str) -> float:
        """What a key has cost on this day, in US dollars."""
        ...

    def spent_before(self, name: str, usd: float) -> None:
        """The journal has this cost of a key for today, from before the start."""
        ...

    def renew(self) -> None:
        """Say that this process lives; to be called every few seconds."""
        ...

    def close(self) -> None:
        """Say that this process ends: its runs count no longer."""
        ...


class LocalCounters:
    """Counts in memory, for the only process of a gateway.

    Args:
        clock: The source of the time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: defaultdict[tuple[UsageKind, str], SlidingWindow] = defaultdict(
            partial(SlidingWindow, grain_s=_GRAIN_S)
        )
        self._running: Counter[str] = Counter()
        self._day = self._today()
        self._spent: defaultdict[str, float] = defaultdict(float)

    def transaction(self) -> AbstractContextManager[None]:
        """Nothing to do: one event loop counts."""
        return nullcontext()

    def active_runs(self, name: str) -> int:
        """How many runs of a key are active."""
        return self._running[name]

    def enter(self, name: str) -> None:
        """Count a run that starts."""
        self._running[name] += 1

    def leave(self, name: str) -> None:
        """Count a run that ends."""
        self._running[name] -= 1
        if not self._running[name]:
            del self._running[name]

    def use(self, kind: UsageKind, name: str, amount: int) -> None:
        """Count what is used now in the window of a key."""
        self._windows[kind, name].add(amount, self._clock.tick())

    def wait_s(self, kind: UsageKind, name: str, limit: int) -> float:
        """The seconds until the window of a key has room for one more; 0: it has."""
        now = self._clock.tick()
        return self._windows[kind, name].free_at(limit, now) - now

    def spend(self, name: str, usd: float) -> None:
        """Count a cost for the day (UTC) that it is now."""
        self._start_new_day()
        self._spent[name] += usd

    def spent(self, name: str) -> float:
        """What a key has cost on this day, in US dollars."""
        self._start_new_day()
        return self._spent.get(name, 0.0)

    def spent_before(self, name: str, usd: float) -> None:
        """The journal has this cost of a key for today, from before the start."""
        self._spent[name] += usd

    def renew(self) -> None:
        """Nothing to do: nobody else asks."""

    def close(self) -> None:
        """Nothing to do: what was counted ends with this."""

    def _start_new_day(self) -> None:
        """Reset the costs where a new day has begun."""
        if (today := self._today()) != self._day:
            self._day = today
            self._spent.clear()

    def _today(self) -> int:
        return int(self._clock.now() // DAY_S)


class SharedCounters:
    """Counts in the gateway's database, for all its processes; what was counted outlives them.

    Times are those of the wall clock, which the processes share. A process has a lease that it renews: its runs count
    until the lease ends, and again if it was only late.

    Args:
        database: The gateway's database; the caller closes it.
        clock: The source of the time.
    """

    def __init__(self, database: GatewayDatabase, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._instance = secrets.token_hex(8)
        self._running: Counter[str] = Counter()
        self._lease_ends = 0.0
        self._is_inside = False
        self.renew()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction of the database, which no other process interrupts; inside another one, that one."""
        if self._is_inside:
            yield
            return
        with self._database.transaction():
            self._is_inside = True
            try:
                yield
            finally:
                self._is_inside = False

    def active_runs(self, name: str) -> int:
        """How many runs of a key are active in processes that live."""
        statement = (
            "SELECT coalesce(sum(runs), 0) FROM active LEFT JOIN instance ON id = instance "
            "WHERE key = ? AND (lease_ends > ? OR instance = ?)"
        )
        count: int = self._database.rows(statement, (name, self._clock.now(), self._instance))[0][0]
        return count

    def enter(self, name: str) -> None:
        """Count a run that starts."""
        self._write_runs(name, self._running[name] + 1)
        self._running[name] += 1

    def leave(self, name: str) -> None:
        """Count a run that ends; where that cannot be written now, the next run of the key or `renew` does it."""
        self._running[name] -= 1
        self._write_runs(name, self._running[name])

    def _write_runs(self, name: str, runs: int) -> None:
        statement = "INSERT INTO active VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET runs = excluded.runs"
        self._database.rows(statement, (self._instance, name, runs))

    def use(self, kind: UsageKind, name: str, amount: int) -> None:
        """Count what is used now in the window of a key."""
        now = self._clock.now()
        with self.transaction():
            self._forget(kind, name, now)
            self._database.rows(
                "INSERT INTO usage VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET amount = amount + excluded.amount, last = max(last, excluded.last)",
                (name, kind, int(now // _GRAIN_S), now, amount),
            )

    def wait_s(self, kind: UsageKind, name: str, limit: int) -> float:
        """The seconds until the window of a key has room for one more; 0: it has."""
        now = self._clock.now()
        statement = "SELECT last, amount FROM usage WHERE key = ? AND kind = ? AND last > ? AND last <= ? ORDER BY slot"
        window = SlidingWindow()
        for last, amount in self._database.rows(statement, (name, kind, now - MINUTE_S, now + _GRAIN_S)):
            window.add(amount, last)
        return window.free_at(limit, now) - now

    def spend(self, name: str, usd: float) -> None:
        """Count a cost for the day (UTC) that it is now."""
        if usd:
            self._database.rows(
                "INSERT INTO spending VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET usd = usd + excluded.usd",
                (name, self._today(), usd),
            )

    def spent(self, name: str) -> float:
        """What a key has cost on this day in all processes, in US dollars."""
        rows = self._database.rows("SELECT usd FROM spending WHERE key = ? AND day = ?", (name, self._today()))
        return rows[0][0] if rows else 0.0

    def spent_before(self, name: str, usd: float) -> None:
        """The journal has this cost of a key for today; counted is the larger one, for both have the same runs."""
        self._database.rows(
            "INSERT INTO spending VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET usd = max(usd, excluded.usd)",
            (name, self._today(), usd),
        )

    def renew(self) -> None:
        """Renew the lease where a third of it is over, and remove what nobody counts any more."""
        now = self._clock.now()
        if self._lease_ends - LEASE_S + _RENEWAL_S > now > self._lease_ends - 2 * LEASE_S:
            return
        self._lease_ends = now + LEASE_S
        with self.transaction():
            self._database.rows(
                "INSERT INTO instance VALUES (?, ?) ON CONFLICT DO UPDATE SET lease_ends = excluded.lease_ends",
                (self._instance, self._lease_ends),
            )
            self._database.rows("DELETE FROM instance WHERE lease_ends < ?", (now - DAY_S,))
            self._database.rows("DELETE FROM active WHERE instance NOT IN (SELECT id FROM instance)")
            for name, runs in self._running.items():
                self._write_runs(name, runs)
            self._running = +self._running
            self._database.rows("DELETE FROM spending WHERE day < ?", (self._today() - 1,))
            self._database.rows("DELETE FROM usage WHERE last <= ?", (now - MINUTE_S,))

    def close(self) -> None:
        """Give the places of this process back."""
        with self.transaction():
            self._database.rows("DELETE FROM instance WHERE id = ?", (self._instance,))
            self._database.rows("DELETE FROM active WHERE instance = ?", (self._instance,))

    def _forget(self, kind: UsageKind, name: str, now: float) -> None:
        self._database.rows(
            "DELETE FROM usage WHERE key = ? AND kind = ? AND (last <= ? OR last > ?)",
            (name, kind, now - MINUTE_S, now + MINUTE_S),
        )

    def _today(self) -> int:
        return int(self._clock.now() // DAY_S)
