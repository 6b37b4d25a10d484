"""Limits that several processes of a gateway share: each of them stands for one by counters of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from taoloop.errors import JournalError, Refused
from taoloop.journals.costs import CostRow
from taoloop.serve.gateway.auth.keys import ApiKey, digest_of
from taoloop.serve.gateway.config.model import ServerLimits
from taoloop.serve.gateway.quotas import Quotas
from taoloop.serve.gateway.shared.counters import LEASE_S, SharedCounters
from taoloop.serve.gateway.shared.database import MEMORY, GatewayDatabase, database_beside
from taoloop.testing import FakeClock

TEN = datetime(2027, 1, 15, 10, tzinfo=UTC).timestamp()


def key(**limits: Any) -> ApiKey:
    return ApiKey(name="shop", digest=digest_of("x"), **limits)


class Fleet:
    """The processes of one gateway."""

    def __init__(self, path: Path) -> None:
        self.clock = FakeClock(TEN)
        self._path = path
        self._databases: list[GatewayDatabase] = []

    def process(self, *, spent: list[CostRow] | None = None, **limits: Any) -> tuple[Quotas, SharedCounters]:
        self._databases.append(GatewayDatabase(self._path))
        counters = SharedCounters(self._databases[-1], self.clock)
        quotas = Quotas(ServerLimits(**limits), spent=spent or [], clock=self.clock, counters=counters)
        return quotas, counters

    def close(self) -> None:
        for database in self._databases:
            database.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path / "runs.gateway.db")
    yield made
    made.close()


def refusal(quotas: Quotas, key: ApiKey) -> Refused:
    with pytest.raises(Refused) as raised:
        quotas.enter(key)
    return raised.value


def test_requests_of_a_minute_are_counted_in_all_processes(fleet: Fleet) -> None:
    (one, _), (other, _) = fleet.process(), fleet.process()
    shop = key(requests_per_minute=2)
    one.enter(shop)
    fleet.clock.advance(20)
    other.enter(shop)
    for quotas in (one, other):
        assert (refusal(quotas, shop).why, refusal(quotas, shop).retry_after_s) == ("requests", 40.0)
    fleet.clock.advance(40)
    one.enter(shop)
    assert refusal(other, shop).retry_after_s == 20.0


def test_tokens_and_money_are_counted_in_all_processes(fleet: Fleet) -> None:
    (one, _), (other, _) = fleet.process(), fleet.process()
    shop = key(tokens_per_minute=100, usd_per_day=1)
    one.book(shop, tokens=100, cost_usd=0.5)
    assert refusal(other, shop).why == "tokens"
    fleet.clock.advance(60)
    other.enter(shop)
    other.book(shop, cost_usd=0.5)
    assert (refusal(one, shop).why, one.spent_today("shop")) == ("budget", 1.0)
    fleet.clock.advance(86_400)
    one.enter(shop)


def test_active_runs_are_counted_in_all_processes(fleet: Fleet) -> None:
    (one, _), (other, _) = (fleet.process(max_runs_per_key=2) for _ in range(2))
    one.enter(key())
    other.enter(key())
    assert refusal(one, key()).why == refusal(other, key()).why == "runs"
    one.leave(key())
    other.enter(key())


def test_the_places_of_a_killed_process_are_free_after_its_lease(fleet: Fleet) -> None:
    (killed, _), (other, counters) = (fleet.process(max_runs_per_key=1) for _ in range(2))
    killed.enter(key())
    for _ in range(3):  # the other one lives, and says so
        assert refusal(other, key()).why == "runs"
        fleet.clock.advance(LEASE_S / 3 + 0.1)
        counters.renew()
    other.enter(key())


def test_a_process_that_was_only_late_has_its_places_again(fleet: Fleet) -> None:
    (late, late_counters), (other, _) = (fleet.process(max_runs_per_key=2) for _ in range(2))
    late.enter(key())
    late.enter(key())
    fleet.clock.advance(LEASE_S + 1)
    late_counters.renew()
    assert refusal(other, key()).why == "runs"


def test_a_process_that_ends_gives_its_places_back(fleet: Fleet) -> None:
    (one, counters), (other, _) = (fleet.process(max_runs_per_key=1) for _ in range(2))
    one.enter(key())
    assert refusal(other, key()).why == "runs"
    counters.close()
    other.enter(key())
    assert refusal(other, key()).why == "runs"  # the place is taken again


def test_what_was_counted_outlives_a_restart_and_the_journal_adds_nothing_twice(fleet: Fleet) -> None:
    one, _ = fleet.process()
    one.book(key(), cost_usd=0.75)
    rows = [CostRow(day="2027-01-15", key="shop", agent=name, cost_usd=0.3) for name in ("a", "b")]
    restarted, _ = fleet.process(spent=rows)
    assert restarted.spent_today("shop") == 0.75
    counted_less, _ = fleet.process(spent=[*rows, CostRow(day="2027-01-15", key="shop", agent="c", cost_usd=0.5)])
    assert counted_less.spent_today("shop") == pytest.approx(1.1)  # the journal knows of more: a commit was lost


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(min_value=0, max_value=40), st.booleans()), max_size=40))
def test_no_minute_holds_more_requests_than_allowed_whoever_takes_them(steps: list[tuple[float, bool]]) -> None:
    clock, database = FakeClock(TEN), GatewayDatabase(MEMORY)
    both = [Quotas(ServerLimits(), clock=clock, counters=SharedCounters(database, clock)) for _ in range(2)]
    taken: list[float] = []
    waits: list[float] = []
    for gap_s, by_first in steps:
        clock.advance(gap_s)
        try:
            both[by_first].enter(key(requests_per_minute=3))
        except Refused as error:
            waits.append(error.retry_after_s)
        else:
            taken.append(clock.now())
    assert all(0 < wait_s <= 60 for wait_s in waits)
    for at in taken:
        assert sum(at <= other < at + 59.999 for other in taken) <= 3
    database.close()


def test_a_clock_that_was_set_back_locks_nobody_out(fleet: Fleet) -> None:
    quotas, _ = fleet.process()
    shop = key(requests_per_minute=1)
    quotas.enter(shop)
    fleet.clock.advance(-86_400)
    quotas.enter(shop)
    assert refusal(quotas, shop).why == "requests"  # and the limit still holds


def test_a_file_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    path = database_beside(tmp_path / "runs.db")
    assert path.name == "runs.gateway.db"
    database = GatewayDatabase(path)
    database.rows("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(JournalError, match="newer version"):
        GatewayDatabase(path)


def test_a_file_of_the_first_version_gets_what_came_later(tmp_path: Path) -> None:
    database = GatewayDatabase(tmp_path / "x.db")
    database.rows("DROP TABLE request")
    database.rows("DROP TABLE conversation")
    database.rows("DROP TABLE a2a_push")
    database.rows("PRAGMA user_version = 1")
    database.close()
    database = GatewayDatabase(tmp_path / "x.db")
    assert database.rows("SELECT count(*) FROM request") == [(0,)]
    assert database.rows("SELECT count(*) FROM conversation") == [(0,)]
    assert database.rows("SELECT count(*) FROM a2a_push") == [(0,)]
    database.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.gateway.db"
    path.write_text("not a database" * 100)
    with pytest.raises(JournalError, match=r"runs\.gateway\.db"):
        GatewayDatabase(path)


_TAKE = """
import sys
from pathlib import Path
from taoloop.errors import Refused
from taoloop.runtime.engine.clock import SystemClock
from taoloop.serve.gateway.auth.keys import ApiKey, digest_of
from taoloop.serve.gateway.config.model import ServerLimits
from taoloop.serve.gateway.quotas import Quotas
from taoloop.serve.gateway.shared.counters import SharedCounters
from taoloop.serve.gateway.shared.database import GatewayDatabase
database = GatewayDatabase(Path(sys.argv[1]))
quotas = Quotas(ServerLimits(max_runs_per_key=150), counters=SharedCounters(database, SystemClock()))
key, taken = ApiKey(name="shop", digest=digest_of("x"), usd_per_day=1000), 0
for _ in range(100):
    try:
        quotas.enter(key)
    except Refused:
        continue
    quotas.book(key, cost_usd=1.0)
    taken += 1
print(taken, flush=True)
sys.stdin.read()
"""


@pytest.mark.nightly
def test_two_real_processes_take_no_more_together_than_one_may(tmp_path: Path) -> None:
    path = tmp_path / "runs.gateway.db"
    command = [sys.executable, "-c", _TAKE, os.fspath(path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    taken = []
    for process in processes:
        assert process.stdout is not None
        taken.append(int(process.stdout.readline()))  # both still live: their places count
    assert sum(taken) == 150
    for process in processes:
        process.kill()
        process.communicate()
    database, clock = GatewayDatabase(path), FakeClock(datetime.now(UTC).timestamp())
    quotas = Quotas(ServerLimits(max_runs_per_key=150), clock=clock, counters=SharedCounters(database, clock))
    assert quotas.spent_today("shop") == 150.0  # what was counted survived the kill
    assert refusal(quotas, key()).why == "runs"
    clock.advance(LEASE_S + 1)
    quotas.enter(key())
    database.close()
