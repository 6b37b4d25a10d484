"""Queries of any journal: pages under changes, and journals of others that cannot answer them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.journals.test_costs import OnlyTheProtocol

from taoloop import Agent
from taoloop.core.events import Finished, Paused
from taoloop.errors import JournalError
from taoloop.journals.base import Journal
from taoloop.journals.memory import MemoryJournal
from taoloop.journals.queries import RunQuery, has_queries, queries_of, read_start, runs_inside
from taoloop.journals.retention import Retention
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime import abandon_run
from taoloop.testing.journal_contract import DAY_S, STARTED, events

OVER = Finished(status="completed", answer="5", reason="answered")

CHANGES = st.lists(st.sampled_from(["add", "add", "waiting", "grow", "page", "page", "prune"]), max_size=25)


@pytest.fixture(params=["memory", "sqlite"])
def new_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    files = (tmp_path / f"runs{number}.db" for number in count())
    if request.param == "memory":
        return MemoryJournal
    return lambda: SqliteJournal(next(files), synchronous="NORMAL")


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES, st.integers(1, 4), st.booleans())
def test_pages_have_each_run_once_whatever_happens_meanwhile(
    new_journal: Any, changes: list[str], limit: int, only_over: bool
) -> None:
    """Of the runs that were there at the first page and still are, each is in one page, newest first."""

    async def body(journal: Any) -> None:
        query = RunQuery(statuses=("completed",)) if only_over else RunQuery(text="posts")
        total, cursor, listed, is_done, gone = 0, None, list[str](), False, set[str]()

        async def add(at: float) -> None:
            nonlocal total
            total += 1
            await journal.append(await journal.create(f"r{total}"), events(STARTED, OVER, at=at))

        for number in range(6):
            await add(number * DAY_S)
        at_first = [row.run_id for row in (await journal.find(query, limit=100)).rows]
        for change in [*changes, *["page"] * 30]:
            if change == "add":
                await add(200 * DAY_S)
            elif change == "waiting":
                total += 1
                await journal.append(await journal.create(f"r{total}"), events(STARTED, Paused(reason="p")))
            elif change == "grow" and total > 6:
                lease = await journal.acquire(f"r{total}")
                await journal.append(lease, events(OVER, start=len(await journal.load(f"r{total}"))))
            elif change == "prune" and not gone:
                report = await journal.prune(Retention(days=96), now=100 * DAY_S)
                gone |= {run.run_id for run in report.pruned}
            elif change == "page" and not is_done:
                page = await journal.find(query, cursor=cursor, limit=limit)
                if not listed:  # what came before the first page is in it
                    at_first = [row.run_id for row in (await journal.find(query, limit=100)).rows]
                listed += [row.run_id for row in page.rows]
                cursor, is_done = page.cursor, page.cursor is None
        assert len(set(listed)) == len(listed)
        assert [run_id for run_id in listed if run_id not in gone] == [run for run in at_first if run not in gone]

    async def run() -> None:
        journal = new_journal()
        try:
            await body(journal)
        finally:
            await journal.close()

    asyncio.run(run())


def test_a_journal_without_queries_runs_agents_and_says_what_it_lacks() -> None:
    async def body() -> None:
        journal: Journal = OnlyTheProtocol(MemoryJournal())
        result = await Agent(model=["Final Answer: yes"], journal=journal).run("Is it?")
        assert result.status == "completed"
        assert not has_queries(journal)
        assert [event.seq for event in await read_start(journal, result.run_id)] == [0]
        with pytest.raises(JournalError) as refusal:
            queries_of(journal)
        for part in ("OnlyTheProtocol", "read()", "find()", "count()", "position()", "tail()", "usage()"):
            assert part in refusal.value.message
        assert "JournalQueries" in (refusal.value.hint or "")

    asyncio.run(body())


def test_a_journal_that_lacks_one_method_is_told_which() -> None:
    class NoTail(MemoryJournal):
        tail = None  # type: ignore[assignment]  # taken away

    with pytest.raises(JournalError, match=r"no tail\(\)\."):
        queries_of(NoTail())


@pytest.mark.parametrize("is_plain", [False, True])
def test_inner_runs_are_abandoned_with_their_outer_run(is_plain: bool) -> None:
    async def body() -> None:
        memory = MemoryJournal()
        journal: Journal = OnlyTheProtocol(memory) if is_plain else memory
        for run_id, parent in (("r1", None), ("r1.1", "r1"), ("r10", None)):
            facts = events(replace(STARTED, parent=parent), Paused(reason="p"))
            await journal.append(await journal.create(run_id), facts)
        assert [row.run_id for row in await runs_inside(journal, "r1")] == ["r1.1"]
        await abandon_run(journal, "r1", by="ann")
        statuses = {row.run_id: row.status for row in await journal.runs()}
        assert statuses == {"r1": "stopped", "r1.1": "stopped", "r10": "waiting"}

    asyncio.run(body())
