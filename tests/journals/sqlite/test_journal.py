from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, Observed, RunStarted
from taoloop.errors import IllegalEvent, JournalCorrupt, JournalError, RunExists, RunNotFound
from taoloop.journals.base import Artifact, Journal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import STARTED, events, note, refused
from taoloop.testing.journal_query_contract import JournalQueryContract

if TYPE_CHECKING:
    from pathlib import Path
from typing import Any


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


class TestSqliteJournal(JournalQueryContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "a folder #1 é?" / "runs.db"  # characters that mean something in a URI

    async def make_journal(self) -> Journal:
        return SqliteJournal(self.path, synchronous="NORMAL")


class TestSqliteJournalInItsThread(TestSqliteJournal):
    """The same where every commit goes through the writer's thread."""

    @pytest.fixture(autouse=True)
    def _no_shortcut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("taoloop.journals.sqlite.writer.QUICK_S", 0.0)


def sql(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


async def fill(path: Path, count: int = 3) -> None:
    async with SqliteJournal(path) as journal:
        lease = await journal.create("r1")
        await journal.append(lease, events(STARTED, *(note(number) for number in range(1, count))))


def test_a_body_can_be_read_with_plain_sql(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path) as journal:
            lease = await journal.create("r1")
            await journal.append(lease, events(STARTED, Observed(call_id="c1", ok=True, output="花拉")))

    asyncio.run(run())
    query = "SELECT json_extract(body, '$.output'), typeof(body), kind, fence FROM event WHERE seq = 1"
    assert sql(path, query) == [("花拉", "text", "observed", 1)]
    assert sql(path, "SELECT id, status, events FROM run_overview") == [("r1", "running", 2)]


def test_everything_is_there_after_opening_again(path: Path) -> None:
    async def run() -> None:
        await fill(path)
        async with SqliteJournal(path) as journal:
            assert await journal.load("r1") == events(STARTED, note(1), note(2))
            lease = await journal.acquire("r1")
            assert lease.fence == 2
            await journal.append(lease, events(note(3), start=3))

    asyncio.run(run())


def test_commits_are_durable_by_default(path: Path) -> None:
    async def modes(journal: SqliteJournal) -> tuple[object, object]:
        async with journal:
            await journal.create("r")
            connection = journal._writer._connection
            assert connection is not None
            return (
                connection.execute("PRAGMA journal_mode").fetchone()[0],
                connection.execute("PRAGMA synchronous").fetchone()[0],
            )

    assert asyncio.run(modes(SqliteJournal(path))) == ("wal", 2)
    other = SqliteJournal(path.with_name("other.db"), synchronous="NORMAL")
    assert asyncio.run(modes(other)) == ("wal", 1)


def test_nothing_is_created_before_the_first_use(path: Path) -> None:
    asyncio.run(SqliteJournal(path).close())
    assert not path.exists()


def test_many_appends_share_a_commit_and_wake_the_loop_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []

    async def run() -> None:
        async with SqliteJournal(path) as journal:
            leases = [await journal.create(f"r{number}") for number in range(64)]
            connection, loop = journal._writer._connection, asyncio.get_running_loop()
            assert connection is not None
            connection.set_trace_callback(statements.append)
            wake, wakes = loop.call_soon_threadsafe, []

            def counted(*args: Any) -> asyncio.Handle:
                wakes.append(args)
                return wake(*args)

            monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
            with journal._writer._turn:  # the thread waits until all are queued
                tasks = [asyncio.create_task(journal.append(lease, events(STARTED))) for lease in leases]
                await asyncio.sleep(0)
            await asyncio.gather(*tasks)
            connection.set_trace_callback(None)
            assert len(wakes) <= 2  # the first may have gone alone

    asyncio.run(run())
    assert statements.count("COMMIT") <= 2


def test_a_cancelled_append_is_written_all_the_same(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path) as journal:
            lease, other = await journal.create("r1"), await journal.create("r2")
            with journal._writer._turn:
                task = asyncio.create_task(journal.append(lease, events(STARTED)))
                await asyncio.sleep(0)
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await journal.append(lease, events(note(1), start=1))
            await journal.append(other, events(STARTED))
            assert await journal.load("r1") == events(STARTED, note(1))

    asyncio.run(run())


def test_a_loop_that_is_gone_does_not_stop_the_writer(path: Path) -> None:
    journal = SqliteJournal(path)

    async def come_back() -> None:
        await journal.create("r2")  # behind it in the queue
        assert await journal.load("r1") == events(STARTED)
        await journal.close()

    async def hold() -> None:
        await journal.create("r0")
        lease = await journal.create("r1")
        journal._writer._turn.acquire()  # released when the loop is closed
        task = asyncio.create_task(journal.append(lease, events(STARTED)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(hold())
    journal._writer._turn.release()
    asyncio.run(come_back())


def test_several_event_loops_share_one_journal(path: Path) -> None:
    journal = SqliteJournal(path)

    async def run(name: str) -> None:
        lease = await journal.create(name)
        for seq in range(20):
            await journal.append(lease, events(note(seq), start=seq))

    threads = [threading.Thread(target=lambda n=n: asyncio.run(run(f"r{n}"))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def count() -> list[int]:
        async with journal:
            return [row.events for row in await journal.runs()]

    assert asyncio.run(count()) == [20] * 4


def test_a_run_alone_lets_the_others_have_their_turn(path: Path) -> None:
    """Commits in the calling thread must not turn a run into the only one that ever moves."""

    async def run() -> None:
        async with SqliteJournal(path) as journal:
            lease, order = await journal.create("r1"), []

            async def other() -> None:
                order.append("other")

            task = asyncio.create_task(other())
            for seq in range(200):
                await journal.append(lease, events(note(seq), start=seq))
                order.append("append")
            await task
            assert order.index("other") < 100

    asyncio.run(run())


def test_close_writes_what_is_queued(path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(path)
        leases = [await journal.create(f"r{number}") for number in range(20)]
        tasks = [asyncio.create_task(journal.append(lease, events(STARTED))) for lease in leases]
        await asyncio.sleep(0)
        await journal.close()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert sql(path, "SELECT count(*) FROM event") == [(20,)]
    assert not path.with_name("runs.db-wal").exists()  # let go of everything


def test_text_that_is_not_unicode_is_kept_as_far_as_it_can_be(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path) as journal:
            lease = await journal.create("r1")
            started = RunStarted(task="half \ud800", agent=AgentSpec(name="\udcff"), nonce="n")
            await journal.append(lease, events(started), [Artifact(ref="a", body="a\udcffb")])
            assert await journal.artifact("r1", "a") == Artifact(ref="a", body="a\ufffdb")
            (row,) = await journal.runs()
            assert (row.task, row.agent, row.events) == ("half \ufffd", "\ufffd", 1)

    asyncio.run(run())


def test_of_a_batch_that_breaks_only_the_culprit_fails(path: Path) -> None:
    """The second artifact of that name breaks the whole transaction; the others get one of their own."""

    async def run() -> None:
        async with SqliteJournal(path) as journal:
            leases = [await journal.create(f"r{number}") for number in range(5)]
            await journal.append(leases[2], [], [Artifact(ref="a", body="first")])
            with journal._writer._turn:
                tasks = [
                    asyncio.create_task(journal.append(lease, events(STARTED), [Artifact(ref="a", body="b")]))
                    for lease in leases
                ]
                await asyncio.sleep(0)
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes if outcome is not None] == [IllegalEvent]
            assert [row.events for row in await journal.runs()] == [1, 1, 1, 1]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE event SET body = '{}' WHERE seq = 1", "event 1 of run 'r1'"),
        ("UPDATE event SET body = 'no json' WHERE seq = 2", "event 2 of run 'r1'"),
        ("UPDATE event SET kind = 'dreamt' WHERE seq = 1", "dreamt"),
        ("DELETE FROM event WHERE seq = 1", "event 1 of run 'r1' is missing"),
    ],
)
def test_a_damaged_event_is_named(path: Path, damage: str, words: str) -> None:
    async def run() -> JournalCorrupt:
        await fill(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(damage)
        async with SqliteJournal(path) as journal:
            return await refused(JournalCorrupt, journal.load("r1"))

    message = str(asyncio.run(run()))
    assert words in message
    assert str(path) in message


def test_reading_only_sees_a_journal_that_is_being_written(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path) as writer:
            lease = await writer.create("r1")
            await writer.append(lease, events(STARTED))
            async with SqliteJournal(path, read_only=True) as reader:
                assert await reader.load("r1") == events(STARTED)
                await writer.append(lease, events(note(1), start=1))
                assert len(await reader.load("r1")) == 2
                error = await refused(JournalError, reader.append(lease, events(note(2), start=2)))
                assert str(path) in error.message

    asyncio.run(run())


def test_reading_only_leaves_the_file_as_it_was(path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(path, read_only=True) as reader:
            assert len(await reader.runs()) == 1

    asyncio.run(fill(path))
    before = path.read_bytes()
    asyncio.run(run())
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["runs.db"]


def test_a_run_that_begins_with_its_first_append_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    async def main() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal, SqliteJournal(tmp_path / "runs.db") as other:
            lease = await journal.begin("r")
            with pytest.raises(RunNotFound):
                await journal.load("r")
            await journal.append(lease, first_events())
            assert [event.seq for event in await other.load("r")] == [0]
            assert (await journal.verify("r")).whole
            late = await other.begin("r")
            with pytest.raises(RunExists):
                await other.append(late, first_events())
            assert len(await journal.load("r")) == 1

    asyncio.run(main())


def test_of_two_that_begin_the_same_run_in_one_process_one_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            one, two = await journal.begin("r"), await journal.begin("r")
            await journal.append(one, first_events())
            with pytest.raises(RunExists):
                await journal.append(two, first_events())
            await journal.append(one, [Event(1, 2.0, note(1))])
            assert len(await journal.load("r")) == 2

    asyncio.run(main())


def test_a_lease_that_is_never_used_takes_nothing_from_whoever_creates_the_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            unused = await journal.begin("r")
            lease = await journal.create("r")
            await journal.append(lease, first_events())
            with pytest.raises(RunExists):
                await journal.append(unused, first_events())
            assert len(await journal.load("r")) == 1

    asyncio.run(main())


def first_events() -> list[Event]:
    return [Event(0, 1.0, RunStarted(task="t", agent=AgentSpec(), nonce="n"))]


def test_an_id_that_is_no_utf_8_is_answered_in_words(tmp_path: Path) -> None:
    async def look() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            await journal.load("\udcff")

    with pytest.raises(JournalError, match=r"'\\udcff' is no text in UTF-8"):
        asyncio.run(look())
