"""What somebody does to the file of a journal behind its back shows, is named, and is not gone on from."""
# ruff: noqa: S608, ISC004 - the statements of the edits are fixed texts

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from taoloop.core.events import ActionStarted, Fact, Finished, Observed
from taoloop.core.stored_events import ChainReport, LogReport, encode_fact, head_of
from taoloop.errors import JournalTampered
from taoloop.journals.base import Artifact
from taoloop.journals.sqlite.file import DatabaseFile, open_database
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.journals.sqlite.schema import MIGRATIONS
from taoloop.testing.journal_contract import STARTED, events, note, refused

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = "the whole output"
FACTS: tuple[Fact, ...] = (
    STARTED,
    note(1),
    ActionStarted(call_id="c1", idempotency_key="k"),
    Observed(call_id="c1", ok=True, output="the…", artifact="obs_c1", output_digest=sha256(WHOLE.encode()).hexdigest()),
    note(4),
    note(5),
    Finished(status="completed", answer="5", reason="answered"),
)
INSERT = "INSERT INTO event (run_id, seq, at, kind, fence, body, link) "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with the run r1, whose only ending is at its last event, and an untouched neighbour r2."""

    async def run() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            lease = await journal.create("r1")
            for seq, fact in enumerate(FACTS):
                kept = [Artifact(ref="obs_c1", body=WHOLE)] if isinstance(fact, Observed) else []
                await journal.append(lease, events(fact, start=seq), kept)
            await journal.append(await journal.create("r2"), events(STARTED, note(1)))

    asyncio.run(run())
    return tmp_path / "runs.db"


def edit(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def report(path: Path, run_id: str = "r1") -> ChainReport:
    async def run() -> ChainReport:
        async with SqliteJournal(path, read_only=True) as journal:
            return await journal.verify(run_id)

    return asyncio.run(run())


def test_an_untouched_run_is_whole(path: Path) -> None:
    found = report(path)
    assert found.whole
    assert found.first is None
    assert found.head == head_of("r1", events(*FACTS))
    assert found.sealed_later == 0


EDITS = {
    "body": ("UPDATE event SET body = replace(body, 'note 4', 'note 9') WHERE run_id = 'r1' AND seq = 4", 4, "changed"),
    "time": ("UPDATE event SET at = at + 0.001 WHERE run_id = 'r1' AND seq = 1", 1, "changed"),
    "time as text": ("UPDATE event SET at = 'noon' WHERE run_id = 'r1' AND seq = 1", 1, "changed"),
    "kind": ("UPDATE event SET kind = 'paused' WHERE run_id = 'r1' AND seq = 4", 4, "changed"),
    "link": ("UPDATE event SET link = zeroblob(32) WHERE run_id = 'r1' AND seq = 4", 4, "changed"),
    "link gone": ("UPDATE event SET link = '' WHERE run_id = 'r1' AND seq = 4", 4, "changed"),
    "deleted": ("DELETE FROM event WHERE run_id = 'r1' AND seq = 4", 4, "missing"),
    "deleted and closed up": (
        "DELETE FROM event WHERE run_id = 'r1' AND seq = 4;"
        "UPDATE event SET seq = seq - 1 WHERE run_id = 'r1' AND seq > 4",
        4,
        "changed",
    ),
    "first deleted": ("DELETE FROM event WHERE run_id = 'r1' AND seq = 0", 0, "missing"),
    "all deleted": ("DELETE FROM event WHERE run_id = 'r1'", 0, "cut"),
    "tail": ("DELETE FROM event WHERE run_id = 'r1' AND seq > 4", 5, "cut"),
    "swapped": (
        "UPDATE event SET seq = -1 WHERE run_id = 'r1' AND seq = 4;"
        "UPDATE event SET seq = 4 WHERE run_id = 'r1' AND seq = 5;"
        "UPDATE event SET seq = 5 WHERE run_id = 'r1' AND seq = -1",
        4,
        "changed",
    ),
    "inserted": (
        "UPDATE event SET seq = seq + 100 WHERE run_id = 'r1' AND seq > 4;"
        "UPDATE event SET seq = seq - 99 WHERE run_id = 'r1' AND seq > 100;"
        f"{INSERT} SELECT run_id, 5, at, kind, fence, body, link FROM event WHERE run_id = 'r1' AND seq = 4",
        5,
        "changed",
    ),
    "appended": (
        f"{INSERT} SELECT run_id, 7, at, kind, fence, body, link FROM event WHERE run_id = 'r1' AND seq = 6",
        7,
        "changed",
    ),
    "from another run": (
        "UPDATE event SET (body, link) = (SELECT body, link FROM event WHERE run_id = 'r2' AND seq = 1)"
        " WHERE run_id = 'r1' AND seq = 1",
        1,
        "changed",
    ),
    "status": ("UPDATE run SET status = 'waiting' WHERE id = 'r1'", None, "run_row"),
    "task": ("UPDATE run SET task = 'Something else' WHERE id = 'r1'", None, "run_row"),
    "run row deleted": ("DELETE FROM run WHERE id = 'r1'", None, "run_row"),
    "head": ("UPDATE run SET head = zeroblob(32) WHERE id = 'r1'", 7, "cut"),
    "artifact": ("UPDATE artifact SET body = 'other' WHERE run_id = 'r1'", 3, "artifact"),
    "artifact deleted": ("DELETE FROM artifact WHERE run_id = 'r1'", 3, "artifact"),
    "artifact added": ("INSERT INTO artifact VALUES ('r1', 'obs_c9', 'text', 'x')", None, "artifact"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_found_and_named(path: Path, name: str) -> None:
    script, seq, what = EDITS[name]
    edit(path, script)
    found = report(path)
    assert found.first is not None
    assert (found.first.seq, found.first.what) == (seq, what)
    assert seq is None or str(seq) in found.first.text
    assert report(path, "r2").whole


@pytest.mark.parametrize("name", [name for name in EDITS if name != "run row deleted"])
def test_nobody_goes_on_from_an_edited_run(path: Path, name: str) -> None:
    edit(path, EDITS[name][0])

    async def run() -> None:
        async with SqliteJournal(path) as journal:
            error = await refused(JournalTampered, journal.acquire("r1"))
            assert str(path) in error.message
            assert "tao verify r1" in error.hint
            await journal.acquire("r2")

    asyncio.run(run())


def test_what_was_not_edited_is_not_accused(path: Path) -> None:
    edit(path, EDITS["body"][0])
    edit(path, EDITS["time"][0])
    assert [flaw.seq for flaw in report(path).flaws] == [1, 4]


def test_a_run_that_died_may_lose_its_last_words_but_no_effect(path: Path) -> None:
    async def grow() -> None:
        async with SqliteJournal(path) as journal:
            lease = await journal.acquire("r2")
            started = ActionStarted(call_id="c1", idempotency_key="k")
            await journal.append(lease, events(note(2), started, start=2))
            await journal.append(lease, events(note(4), start=4))

    asyncio.run(grow())
    edit(path, "DELETE FROM event WHERE run_id = 'r2' AND seq = 4")
    assert report(path, "r2").whole  # as the page on audits says
    edit(path, "DELETE FROM event WHERE run_id = 'r2' AND seq = 3")
    assert [flaw.what for flaw in report(path, "r2").flaws] == ["cut"]


def test_an_older_file_gets_its_chain_when_it_is_brought_up_to_date(tmp_path: Path) -> None:
    path, old = tmp_path / "old.db", replace(STARTED, version=1)
    with closing(open_database(DatabaseFile(path=path), MIGRATIONS[:1])) as connection:
        connection.execute("INSERT INTO run VALUES (1, 'r1', 'running', 1, 'How many posts?', 'counter', 1000.0)")
        for seq, at, fact in events(old, note(1), note(2)):
            row = ("r1", seq, at, fact.kind, 1, encode_fact(fact).decode())
            connection.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", row)
    found = report(path)  # reading changes nothing
    assert [flaw.what for flaw in found.flaws] == ["unchained"]
    assert found.events == 3

    async def go_on() -> None:
        async with SqliteJournal(path) as journal:
            assert await journal.load("r1") == events(old, note(1), note(2))
            await journal.append(await journal.acquire("r1"), events(note(3), start=3))

    asyncio.run(go_on())
    found = report(path)
    assert found.whole
    assert found.sealed_later == 3
    assert found.head == head_of("r1", events(old, note(1), note(2), note(3)))
    edit(path, "UPDATE event SET body = replace(body, 'note 1', 'note 8')")
    assert (first := report(path).first) is not None
    assert first.seq == 1


def log(path: Path) -> LogReport:
    async def run() -> LogReport:
        async with SqliteJournal(path, read_only=True) as journal:
            return await journal.verify_log()

    return asyncio.run(run())


REMOVE_RUN = (
    "DELETE FROM event WHERE run_id = '{0}';DELETE FROM artifact WHERE run_id = '{0}';DELETE FROM run WHERE id = '{0}';"
)

LOG_EDITS = {
    "run removed": (REMOVE_RUN.format("r1"), ["run_missing"]),
    "newest run removed": (REMOVE_RUN.format("r2"), ["run_missing"]),
    "its events removed": ("DELETE FROM event WHERE run_id = 'r2'; UPDATE run SET head = ''", ["run_missing"]),
    "run and entry removed": (REMOVE_RUN.format("r1") + "DELETE FROM run_log WHERE run_id = 'r1'", ["log"]),
    "newest run and entry": (REMOVE_RUN.format("r2") + "DELETE FROM run_log WHERE run_id = 'r2'", ["log"]),
    "whole log": ("DELETE FROM run_log", ["log", "run_unlogged", "run_unlogged"]),
    "entry edited": ("UPDATE run_log SET sealed_later = 1 WHERE number = 1", ["log"]),
    "entry of other run": (
        "UPDATE run_log SET run_id = 'r2' WHERE number = 1",
        ["log", "run_replaced", "run_unlogged"],
    ),
    "run written anew": ("UPDATE event SET link = zeroblob(32) WHERE run_id = 'r1' AND seq = 0", ["run_replaced"]),
    "run slipped in": (
        f"{INSERT} SELECT 'r3', seq, at, kind, fence, body, link FROM event WHERE seq = 0 AND run_id = 'r1'",
        ["run_unlogged"],
    ),
}


def test_the_log_names_the_runs_that_began(path: Path) -> None:
    found = log(path)
    assert (found.flaws, sorted(found.run_ids), len(found.links), found.sealed_later) == ((), ["r1", "r2"], 2, 0)


@pytest.mark.parametrize("name", LOG_EDITS)
def test_a_removed_run_is_missed(path: Path, name: str) -> None:
    script, expected = LOG_EDITS[name]
    edit(path, script)
    assert [flaw.what for flaw in log(path).flaws] == expected


def test_the_number_of_a_removed_entry_is_not_given_again(path: Path) -> None:
    edit(path, REMOVE_RUN.format("r2") + "DELETE FROM run_log WHERE run_id = 'r2'")

    async def go_on() -> None:
        async with SqliteJournal(path) as journal:
            lease = await journal.begin("r3")
            await journal.append(lease, events(STARTED))

    asyncio.run(go_on())
    assert [flaw.what for flaw in log(path).flaws] == ["log"]


def test_runs_of_a_group_commit_are_logged_and_a_run_that_never_began_is_not(tmp_path: Path) -> None:
    async def run() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            leases = [await journal.create(f"r{number}") for number in range(6)]
            await asyncio.gather(*(journal.append(lease, events(STARTED, note(1))) for lease in leases[1:]))
            await journal.append(await journal.create("r0"), events(STARTED))  # it is created again
            await journal.create("never")

    asyncio.run(run())
    found = log(tmp_path / "runs.db")
    assert (found.flaws, len(found.links), len(found.run_ids)) == ((), 6, 7)


def test_an_older_file_gets_its_log_when_it_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(open_database(DatabaseFile(path=path), MIGRATIONS[:1])) as connection:
        connection.execute("INSERT INTO run VALUES (1, 'r1', 'running', 1, 'How many posts?', 'counter', 1000.0)")
        for seq, at, fact in events(STARTED, note(1)):
            row = ("r1", seq, at, fact.kind, 1, encode_fact(fact).decode())
            connection.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", row)
    assert [flaw.what for flaw in log(path).flaws] == ["unlogged"]

    async def go_on() -> None:
        async with SqliteJournal(path) as journal:
            await journal.append(await journal.begin("r2"), events(STARTED))

    asyncio.run(go_on())
    found = log(path)
    assert (found.flaws, found.sealed_later, len(found.links)) == ((), 1, 2)
