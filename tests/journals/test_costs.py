"""What models cost, summed from events: the same from every journal."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, Limits
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, Fact, Finished, ModelReplied, Observed, Paused, Resumed, RunStarted
from taoloop.core.message import Usage
from taoloop.errors import JournalCorrupt
from taoloop.journals.base import Artifact, Journal, Lease, RunRow
from taoloop.journals.costs import CostRow, cost_rows, totals
from taoloop.journals.memory import MemoryJournal
from taoloop.journals.retention import PruneReport, Retention
from taoloop.journals.sqlite.journal import SqliteJournal

DAY = 86_400.0
NOON = 1_800_000_000.0 - 1_800_000_000.0 % DAY + DAY / 2  # 2027-01-15
TODAY, TOMORROW = "2027-01-15", "2027-01-16"


class OnlyTheProtocol:
    """A journal of somebody else, which has no more than a journal must have."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def create(self, run_id: str) -> Lease:
        return await self._journal.create(run_id)

    async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:
        return await self._journal.acquire(run_id, at=at)

    async def append(self, lease: Lease, events: Any, artifacts: Any = ()) -> None:
        await self._journal.append(lease, events, artifacts)

    async def load(self, run_id: str) -> list[Event]:
        return await self._journal.load(run_id)

    async def artifact(self, run_id: str, ref: str) -> Artifact | None:
        return await self._journal.artifact(run_id, ref)

    async def prune(self, keep: Retention, *, now: float, is_dry_run: bool = False) -> PruneReport:
        return await self._journal.prune(keep, now=now, is_dry_run=is_dry_run)

    async def verify(self, run_id: str) -> Any:
        return await self._journal.verify(run_id)

    async def runs(self, *, limit: int = 50, status: str | None = None) -> list[RunRow]:
        return await self._journal.runs(limit=limit, status=status)

    async def close(self) -> None:
        await self._journal.close()


@pytest.fixture(params=["sqlite", "memory", "other"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """A new journal each time."""
    files = (tmp_path / f"runs{number}.db" for number in count())

    @asynccontextmanager
    async def journal() -> AsyncIterator[Journal]:
        if request.param == "sqlite":
            async with SqliteJournal(next(files), synchronous="NORMAL") as kept:
                yield kept
        else:
            yield MemoryJournal() if request.param == "memory" else OnlyTheProtocol(MemoryJournal())

    return journal


def summed(
    opened: Callable[[], Any], body: Callable[[Journal], Awaitable[None]], since: float | None = None
) -> list[CostRow]:
    async def run() -> list[CostRow]:
        async with opened() as journal:
            await body(journal)
            return await cost_rows(journal, since)

    return asyncio.run(run())


def started(agent: str = "counter", *, key: str = "", parent: str | None = None) -> RunStarted:
    labels = {"key": key, "via": "chat"} if key else {}
    return RunStarted(task="t", agent=AgentSpec(name=agent), nonce="n", labels=labels, parent=parent)


def replied(cost: float | None = 0.5, *, given: int = 100, written: int = 10, cached: int = 40) -> ModelReplied:
    usage = Usage(input_tokens=given, output_tokens=written, cached_tokens=cached)
    return ModelReplied(step=1, purpose="decide", text="x", decision=None, usage=usage, cost_usd=cost)


OVER = Finished(status="completed", answer="a", reason="")


async def keep(journal: Journal, run_id: str, *facts: tuple[float, Fact]) -> None:
    lease = await journal.create(run_id)
    await journal.append(lease, [Event(seq, at, fact) for seq, (at, fact) in enumerate(facts)])


def test_what_was_used_is_summed_by_day_key_and_agent(opened: Callable[[], Any]) -> None:
    async def body(journal: Journal) -> None:
        await keep(journal, "r1", (NOON, started(key="a")), (NOON, replied(0.5)), (NOON, replied(0.25)), (NOON, OVER))
        await keep(journal, "r2", (NOON, started(key="a")), (NOON, replied(1.0)), (NOON, OVER))
        await keep(journal, "r3", (NOON, started("other", key="a")), (NOON, replied(2.0)), (NOON, OVER))
        await keep(journal, "r4", (NOON, started()), (NOON, replied(4.0)), (NOON, OVER))
        await keep(journal, "r5", (NOON, started(key="b")))

    first, second, third, fourth = summed(opened, body)
    assert first == CostRow(
        day=TODAY, key="", agent="counter", runs=1, model_calls=1, input_tokens=100, cached_tokens=40,
        output_tokens=10, cost_usd=4.0,
    )  # fmt: skip
    assert second == CostRow(
        day=TODAY, key="a", agent="counter", runs=2, model_calls=3, input_tokens=300, cached_tokens=120,
        output_tokens=30, cost_usd=1.75,
    )  # fmt: skip
    assert (third.agent, third.cost_usd) == ("other", 2.0)
    assert fourth == CostRow(day=TODAY, key="b", agent="counter", runs=1)


@pytest.mark.parametrize("executor", ["plan_execute", "graph"])
def test_a_decision_of_an_executor_is_no_call_of_a_model(opened: Callable[[], Any], executor: str) -> None:
    async def body(journal: Journal) -> None:
        decided = replace(replied(0.0, given=0, written=0, cached=0), model=executor)
        await keep(journal, "r1", (NOON, started()), (NOON, decided), (NOON, replied(0.5)))

    (row,) = summed(opened, body)
    assert (row.model_calls, row.cost_usd) == (1, 0.5)


def test_a_call_counts_on_the_day_on_which_its_reply_came(opened: Callable[[], Any]) -> None:
    async def body(journal: Journal) -> None:
        facts: list[tuple[float, Fact]] = [
            (NOON, started(key="a")),
            (NOON, replied(1.0)),
            (NOON, Paused(reason="asks")),
            (NOON + DAY, Resumed()),
            (NOON + DAY, replied(2.0)),
        ]
        await keep(journal, "r1", *facts)

    rows = summed(opened, body)
    assert [(row.day, row.runs, row.model_calls, row.cost_usd) for row in rows] == [
        (TODAY, 1, 1, 1.0),
        (TOMORROW, 0, 1, 2.0),
    ]
    since = summed(opened, body, NOON + DAY / 2)
    assert [(row.day, row.runs, row.cost_usd) for row in since] == [(TOMORROW, 0, 2.0)]


def test_a_cost_that_nobody_knows_counts_as_nothing_and_is_told(opened: Callable[[], Any]) -> None:
    async def body(journal: Journal) -> None:
        await keep(journal, "r1", (NOON, started()), (NOON, replied(None)), (NOON, replied(0.5)), (NOON, replied(None)))

    (row,) = summed(opened, body)
    assert (row.cost_usd, row.unpriced_calls, row.model_calls) == (0.5, 2, 3)


def test_a_run_inside_another_counts_once_and_for_the_key_of_the_outermost(opened: Callable[[], Any]) -> None:
    inner = Observed(call_id="call_1", ok=True, output="x", child="r1.1", usage=Usage(input_tokens=100), cost_usd=3.0)

    async def body(journal: Journal) -> None:
        await keep(journal, "r1", (NOON, started(key="a")), (NOON, replied(1.0)), (NOON + DAY, inner))
        await keep(journal, "r1.1", (NOON, started("helper", parent="r1")), (NOON, replied(1.0)))
        await keep(journal, "r1.1.1", (NOON, started("expert", parent="r1.1")), (NOON + DAY, replied(2.0)))

    rows = summed(opened, body)
    assert [(row.day, row.key, row.agent, row.cost_usd) for row in rows] == [
        (TODAY, "a", "counter", 1.0),
        (TODAY, "a", "expert", 0.0),
        (TODAY, "a", "helper", 1.0),
        (TOMORROW, "a", "expert", 2.0),
    ]


def test_the_key_is_found_in_an_outer_run_in_which_nothing_happened_since(opened: Callable[[], Any]) -> None:
    async def body(journal: Journal) -> None:
        await keep(journal, "r1", (NOON, started(key="a")), (NOON, replied(1.0)))
        await keep(journal, "r1.1", (NOON, started("middle", parent="r1")))
        await keep(journal, "r1.1.1", (NOON, started("helper", parent="r1.1")), (NOON + DAY, replied(2.0)))

    assert [(row.key, row.agent, row.cost_usd) for row in summed(opened, body, NOON + 1)] == [("a", "helper", 2.0)]


def test_what_a_fork_copied_is_not_paid_twice(opened: Callable[[], Any]) -> None:
    async def body(journal: Journal) -> None:
        script: list[Any] = [
            {"tool_calls": [{"name": "calculator", "args": {"expression": "1+1"}}], "cost_usd": 1.0},
            {"text": "It is 2.", "cost_usd": 0.5},
        ]
        agent = Agent(model=script, tools=["calculator"], journal=journal, limits=Limits(max_steps=5), name="sums")
        result = await agent.run("1+1?")
        again = Agent(model=script, tools=["calculator"], journal=journal, name="sums")
        await again.fork(result.run_id, at=2)

    (row,) = summed(opened, body)
    assert (row.runs, row.model_calls, row.cost_usd) == (2, 3, 2.0)


def test_nothing_kept_is_nothing_spent(opened: Callable[[], Any]) -> None:
    async def _nothing(_: Journal) -> None:
        return None

    assert summed(opened, _nothing) == []
    assert summed(opened, _nothing, NOON) == []


def test_rows_are_added_up_by_what_is_asked_for() -> None:
    rows = [
        CostRow(day=TODAY, key="a", agent="x", runs=1, cost_usd=1.0, unpriced_calls=1),
        CostRow(day=TODAY, key="b", agent="x", runs=2, cost_usd=2.0),
        CostRow(day=TOMORROW, key="a", agent="y", runs=4, cost_usd=4.0),
    ]
    by_key = totals(rows, ("key",))
    assert [(row.key, row.runs, row.cost_usd, row.unpriced_calls) for row in by_key] == [
        ("a", 5, 5.0, 1),
        ("b", 2, 2.0, 0),
    ]


def test_an_event_that_is_no_json_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def body() -> None:
        async with SqliteJournal(path) as journal:
            await keep(journal, "r1", (NOON, started()), (NOON, replied()))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE event SET body = '{' WHERE kind = 'model_replied'")
        async with SqliteJournal(path) as journal:
            with pytest.raises(JournalCorrupt, match=r"runs\.db"):
                await cost_rows(journal)

    asyncio.run(body())
