"""What only the SQLite journal has to show of its queries: other processes, the index beside it, files that change."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent
from taoloop.core.events import Finished, ModelReplied, Noted
from taoloop.errors import JournalCorrupt, JournalError
from taoloop.journals.queries import RunQuery, prepare_search
from taoloop.journals.retention import Retention
from taoloop.journals.search_index import Document, document_of
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import DAY_S, STARTED, events, note, refused, start_run

OVER = Finished(status="completed", answer="5", reason="answered")
REPLIED = ModelReplied(step=1, purpose="decide", text="t", decision=None, model="big", cost_usd=0.5)
OPEN = partial(SqliteJournal, synchronous="NORMAL")

APPENDS = """
import asyncio, sys
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import STARTED, events, note

async def append():
    async with SqliteJournal(sys.argv[1]) as journal:
        lease = await journal.create("r1")
        await journal.append(lease, events(STARTED))
        for seq in range(1, 20):
            sys.stdin.readline()
            await journal.append(lease, events(note(seq), start=seq))

asyncio.run(append())
"""


class InstructionCounter:
    """Counts what SQLite does over a connection."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, connection: sqlite3.Connection) -> None:
        connection.set_progress_handler(self, 1)

    def __call__(self) -> int:
        self.count += 1
        return 0


def ask(path: Path, query: Callable[[SqliteJournal], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        async with OPEN(path, **options) as journal:
            return await query(journal)

    return asyncio.run(run())


def sql(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


async def keep(journal: SqliteJournal, run_id: str, task: str, *, at: float = 1_000.0) -> None:
    await journal.append(await journal.begin(run_id), events(replace(STARTED, task=task), REPLIED, OVER, at=at))


async def found(journal: SqliteJournal, text: str) -> list[str]:
    return [row.run_id for row in (await journal.find(RunQuery(text=text))).rows]


def test_events_of_another_process_are_told_and_a_position_holds_in_a_third(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def watch(journal: SqliteJournal) -> str:
        seen, position = -1, await journal.position()
        command = [sys.executable, "-c", APPENDS, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:  # noqa: ASYNC220  # it takes a moment
            assert process.stdin is not None
            async with asyncio.timeout(60), aclosing(journal.tail(position, interval_s=0.001)) as growths:
                async for growth in growths:
                    assert growth.runs["r1"] == seen + 1, "it waits for the line that is written below"
                    seen = growth.runs["r1"]
                    if seen == 9:
                        position = growth.position
                    if seen == 19:
                        break
                    process.stdin.write(b"\n")
                    process.stdin.flush()
        assert process.returncode == 0
        return position

    middle = ask(path, watch)

    async def resume(journal: SqliteJournal) -> None:
        async with aclosing(journal.tail(middle)) as growths:
            assert (await anext(growths)).runs == {"r1": 19}
        assert [event.seq for event in await journal.read("r1", after=9)] == list(range(10, 20))

    ask(path, resume, read_only=True)


def test_a_tail_looks_only_when_something_was_committed(tmp_path: Path) -> None:
    async def watch(journal: SqliteJournal) -> None:
        lease = await start_run(journal)
        statements: list[str] = []
        await journal._run_query(lambda connection: connection.set_trace_callback(statements.append))
        async with aclosing(journal.tail(interval_s=0)) as growths:
            waiting = asyncio.ensure_future(anext(growths))
            while len(statements) < 50:  # noqa: ASYNC110  # what it does meanwhile is the point
                await asyncio.sleep(0)
            await journal.append(lease, events(note(1), start=1))
            assert (await waiting).runs == {"r1": 1}
        assert sum("rowid >" in statement for statement in statements) <= 2  # at the beginning, and once it grew
        assert statements.count("PRAGMA data_version") >= 30

    ask(tmp_path / "runs.db", watch)


def test_positions_and_sums_survive_a_vacuum(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def begin(journal: SqliteJournal) -> str:
        for number in range(5):
            await keep(journal, f"old{number}", "t")
        await keep(journal, "r1", "t", at=99 * DAY_S)
        assert len((await journal.prune(Retention(days=30), now=100 * DAY_S)).pruned) == 5
        await journal.usage()
        return await journal.position()

    position = ask(path, begin)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")

    async def go_on(journal: SqliteJournal) -> None:
        await keep(journal, "r2", "t", at=99 * DAY_S)
        async with aclosing(journal.tail(position)) as growths:
            assert (await anext(growths)).runs == {"r2": 2}
        assert sum(row.runs for row in await journal.usage()) == 7

    ask(path, go_on)


def test_the_index_is_private_and_made_again_where_it_is_lost_damaged_or_of_another_version(tmp_path: Path) -> None:
    path, index = tmp_path / "runs.db", tmp_path / "runs.db-search"

    async def begin(journal: SqliteJournal) -> None:
        await keep(journal, "r1", "the invoice")
        assert await found(journal, "invoice") == ["r1"]

    ask(path, begin)
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    look = partial(ask, path, lambda journal: found(journal, "invoice"), read_only=True)
    index.unlink()
    assert look() == ["r1"]
    index.write_bytes(b"no database at all" * 1_000)
    assert look() == ["r1"]
    sql(index, "UPDATE about SET value = '0' WHERE key = 'version'")
    assert look() == ["r1"]
    index.unlink()
    index.mkdir()  # it cannot be written
    assert look() == ["r1"]


def test_the_index_of_another_database_at_the_same_path_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def begin(journal: SqliteJournal, task: str, count: int) -> list[str]:
        for number in range(count):
            await keep(journal, f"r{number}", task)
        return await found(journal, task)

    assert len(ask(path, lambda journal: begin(journal, "first", 3))) == 3
    path.unlink()
    assert len(ask(path, lambda journal: begin(journal, "second", 5))) == 5
    assert ask(path, lambda journal: found(journal, "first")) == []


def test_two_may_search_while_a_third_writes(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def write(journal: SqliteJournal) -> None:
        for number in range(60):
            await keep(journal, f"r{number}", f"thing {number}")

    async def search(journal: SqliteJournal) -> None:
        while len(await found(journal, "thing")) < 50:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)

    async def run() -> None:
        async with OPEN(path) as first, OPEN(path) as second, OPEN(path, read_only=True) as third, asyncio.timeout(60):
            await asyncio.gather(write(first), search(second), search(third))
            assert (await second.count(RunQuery(text="thing"))) == {"completed": 60}

    ask(path, lambda journal: journal.position())
    asyncio.run(run())


def test_the_first_search_of_many_events_is_done_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taoloop.journals.sqlite.search._AT_ONCE", 7)
    monkeypatch.setattr("taoloop.journals.sqlite.spending._AT_ONCE", 4)

    async def run(journal: SqliteJournal) -> None:
        for number in range(20):
            await keep(journal, f"r{number}", f"thing {number}")
        assert len(await found(journal, "thing")) == 20
        assert await found(journal, "thing 13") == ["r13"]
        assert sum(row.runs for row in await journal.usage()) == 20
        assert sum(row.cost_usd for row in await journal.usage()) == 10

    ask(tmp_path / "runs.db", run)


def test_the_search_is_prepared_while_other_questions_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taoloop.journals.sqlite.search._AT_ONCE", 7)

    async def run(journal: SqliteJournal) -> None:
        for number in range(20):
            await keep(journal, f"r{number}", f"thing {number}")
        preparing = asyncio.ensure_future(prepare_search(journal))
        answered = 0
        while not preparing.done():
            assert len((await journal.find(RunQuery())).rows) == 20
            answered += 1
        await preparing
        assert answered >= 8, "at least one between two parts"
        statements: list[str] = []
        await journal._run_query(lambda connection: connection.set_trace_callback(statements.append))
        assert await found(journal, "thing 13") == ["r13"]
        assert not any("AND kind IN" in statement for statement in statements), "nothing is left to be read"

    ask(tmp_path / "runs.db", run)


def test_a_run_of_many_events_is_read_once_for_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taoloop.journals.sqlite.search._AT_ONCE", 7)
    documents: list[Document] = []

    def make(facts: Any) -> Document:
        documents.append(document_of(facts))
        return documents[-1]

    monkeypatch.setattr("taoloop.journals.sqlite.search.document_of", make)

    async def run(journal: SqliteJournal) -> None:
        lease = await journal.begin("r1")
        await journal.append(lease, events(STARTED, *(note(seq) for seq in range(1, 100)), OVER))
        assert await found(journal, "posts") == ["r1"]
        assert len(documents) == 1

    ask(tmp_path / "runs.db", run)


def remove(path: Path) -> None:
    """Remove a database with what belongs to it."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def test_a_file_that_was_removed_is_not_made_anew_by_reading_and_its_successor_is_told(tmp_path: Path) -> None:
    path, backup = tmp_path / "runs.db", tmp_path / "backup.db"
    ask(path, lambda journal: keep(journal, "r1", "first"))
    shutil.copy(path, backup)
    ask(path, lambda journal: keep(journal, "r2", "second"))

    async def run(journal: SqliteJournal) -> None:
        async with aclosing(journal.tail(interval_s=0.001)) as growths, asyncio.timeout(20):
            waiting = asyncio.ensure_future(anext(growths))
            assert len((await journal.find(RunQuery())).rows) == 2
            remove(path)
            error = await refused(JournalError, journal.find(RunQuery()))
            assert "runs.db: the database was removed while it was in use." in error.message
            await refused(JournalError, waiting)
            assert not path.exists()
            shutil.copy(backup, path)
            assert [row.run_id for row in (await journal.find(RunQuery())).rows] == ["r1"]
        async with aclosing(journal.tail(interval_s=0.001)) as growths, asyncio.timeout(20):
            waiting = asyncio.ensure_future(anext(growths))
            while not waiting.done():  # once it has looked at the present one
                await journal.position()
                shutil.copy(backup, tmp_path / "other.db")
                (tmp_path / "other.db").rename(path)
            assert waiting.result().runs == {}

    ask(path, run)


def test_a_secret_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "kq7Zt2mXw9LpR4vB")

    async def run(journal: SqliteJournal) -> None:
        script: list[Any] = [
            {"tool_calls": [{"name": "calculator", "args": {"expression": "kq7Zt2mXw9LpR4vB"}}]},
            {"text": "It says kq7Zt2mXw9LpR4vB."},
        ]
        agent = Agent(model=script, tools=["calculator"], journal=journal)
        await agent.run("What is kq7Zt2mXw9LpR4vB?")
        assert len(await found(journal, "calculator")) == 1
        assert await found(journal, "kq7Zt2mXw9LpR4vB") == []

    ask(tmp_path / "runs.db", run)
    assert b"kq7zt2mxw9lpr4vb" not in (tmp_path / "runs.db-search").read_bytes().lower()


def test_an_overview_reads_as_much_of_1500_runs_as_of_300(tmp_path: Path) -> None:
    async def steps(count: int) -> dict[str, int]:
        """What SQLite does for each question, in its own instructions."""
        async with OPEN(tmp_path / f"{count}.db") as journal:
            leases = [await journal.begin(f"r{number}") for number in range(count)]
            kept = events(STARTED, REPLIED, OVER)
            await asyncio.gather(*(journal.append(lease, kept) for lease in leases[:-1]))
            position = await journal.position()
            await journal.append(leases[-1], kept)

            async def growth() -> None:
                async with aclosing(journal.tail(position)) as growths:
                    assert (await anext(growths)).runs == {leases[-1].run_id: 2}

            done: dict[str, int] = {}
            questions: dict[str, Callable[[], Awaitable[object]]] = {
                "usage": journal.usage,
                "list": lambda: journal.find(RunQuery()),
                "page": lambda: journal.find(RunQuery(), cursor="60"),
                "waiting": lambda: journal.find(RunQuery(statuses=("waiting",))),
                "prefix": lambda: journal.find(RunQuery(prefix="r50.")),
                "search": lambda: journal.find(RunQuery(text="posts")),
                "part": lambda: journal.read("r7", limit=2),
                "growth": growth,
            }
            for name, question in questions.items():
                await question()
                counter = InstructionCounter()
                await journal._run_query(counter.watch)
                await question()
                done[name] = counter.count
            return done

    few, many = asyncio.run(steps(300)), asyncio.run(steps(1_500))
    assert {name: many[name] / few[name] for name in few if many[name] > 1.2 * few[name] + 50} == {}


def test_a_reader_stores_nothing_in_the_journal_and_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    ask(path, lambda journal: keep(journal, "r1", "t"))
    before = path.read_bytes()
    shown = ask(path, lambda journal: journal.usage(), read_only=True)
    assert path.read_bytes() == before
    assert ask(path, lambda journal: journal.usage()) == shown
    assert sql(path, "SELECT count(*) FROM spending") == [(2,)]
    ask(path, lambda journal: keep(journal, "r2", "t"))
    assert [row.runs for row in ask(path, lambda journal: journal.usage(), read_only=True)] == [0, 2]


def test_an_event_that_cannot_be_read_is_named_until_it_is_restored_and_stops_no_retention(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def begin(journal: SqliteJournal) -> None:
        await keep(journal, "r1", "t", at=99 * DAY_S)
        await keep(journal, "r2", "t")

    ask(path, begin)
    sql(path, "CREATE TABLE kept AS SELECT body FROM event WHERE run_id = 'r1' AND kind = 'model_replied'")
    sql(path, "UPDATE event SET body = '{' WHERE run_id = 'r1' AND kind = 'model_replied'")

    async def look(journal: SqliteJournal) -> None:
        for _ in range(2):
            assert "r1" in (await refused(JournalCorrupt, journal.usage())).message
        assert [run.run_id for run in (await journal.prune(Retention(days=30), now=100 * DAY_S)).pruned] == ["r2"]

    ask(path, look)
    sql(path, "UPDATE event SET body = (SELECT body FROM kept) WHERE run_id = 'r1' AND kind = 'model_replied'")
    for _ in range(2):
        assert sum(row.cost_usd for row in ask(path, lambda journal: journal.usage())) == 1.0


def test_a_tool_cannot_write_to_the_tables_of_the_queries(tmp_path: Path) -> None:
    async def run(journal: SqliteJournal) -> None:
        transaction = await journal.transaction(await start_run(journal))
        try:
            for table in ("description", "spending", "spending_position", "event_epoch"):
                with pytest.raises(Exception, match=table):
                    transaction.connection.execute(f"DELETE FROM {table}")  # noqa: S608  # no input
        finally:
            await transaction.roll_back()

    ask(tmp_path / "runs.db", run)


def test_a_run_without_a_first_event_of_its_kind_is_listed_all_the_same(tmp_path: Path) -> None:
    async def run(journal: SqliteJournal) -> None:
        await journal.append(await journal.create("r1"), events(Noted(by="ann", text="x")))
        assert [row.run_id for row in (await journal.find(RunQuery())).rows] == ["r1"]
        assert await journal.count(RunQuery()) == {"running": 1}
        assert sum(row.interventions for row in await journal.usage()) == 1

    ask(tmp_path / "runs.db", run)


def test_an_overview_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    ask(path, lambda journal: keep(journal, "r1", "t"))

    async def read(journal: SqliteJournal) -> None:
        waits: list[str] = []
        await journal._run_query(lambda connection: connection.set_trace_callback(waits.append))
        with closing(sqlite3.connect(path, isolation_level=None)) as writing:
            writing.execute("BEGIN IMMEDIATE")
            rows = await journal.usage()
            writing.execute("ROLLBACK")
        assert sum(row.runs for row in rows) == 1
        begin = waits.index("BEGIN IMMEDIATE")
        assert "PRAGMA busy_timeout = 0" in waits[:begin], "SQLite itself would wait for 5 s"
        usual = await journal._run_query(lambda connection: connection.execute("PRAGMA busy_timeout").fetchone())
        assert usual == (5_000,)

    ask(path, read)
