"""A database of schema 5, as an earlier version wrote it: looked at as it is, migrated, interrupted in that."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from taoloop.core.events import Resumed, RunStarted
from taoloop.core.stored_events import head_of
from taoloop.core.trace import Trace
from taoloop.journals.costs import cost_rows
from taoloop.journals.queries import RunQuery
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.journals.sqlite.schema import MIGRATIONS
from taoloop.testing.journal_contract import STARTED, events, note

OLD = Path(__file__).parents[2] / "data" / "journal_v5.sql"
HEAD = "582c7b94c4a2a88ff6158d67e4ea98f66abca7165496d80d1177d0d0998abed1"  # of r1, as the earlier version printed it

KILLED = """
import os, signal, sys
from pathlib import Path
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.file import DatabaseFile, open_database
at = int(sys.argv[2])
steps = (*schema.MIGRATIONS[5][:at], lambda _: os.kill(os.getpid(), signal.SIGKILL), *schema.MIGRATIONS[5][at:])
open_database(DatabaseFile(path=Path(sys.argv[1])), (*schema.MIGRATIONS[:5], steps))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD.read_text("utf-8"))
    return path


def ask(path: Path, query: Callable[[SqliteJournal], Awaitable[Any]], *, read_only: bool = False) -> Any:
    async def run() -> Any:
        async with SqliteJournal(path, read_only=read_only) as journal:
            return await query(journal)

    return asyncio.run(run())


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


async def overview(journal: SqliteJournal) -> dict[str, Any]:
    """What lists and overviews say of it."""
    return {
        "rows": (await journal.find(RunQuery())).rows,
        "outermost": [row.run_id for row in (await journal.find(RunQuery(only_outermost=True))).rows],
        "billing": [row.run_id for row in (await journal.find(RunQuery(key="billing"))).rows],
        "found": [row.run_id for row in (await journal.find(RunQuery(text="花拉 paid"))).rows],
        "counts": await journal.count(RunQuery()),
        "usage": await journal.usage(),
        "costs": await cost_rows(journal),
        "last": await journal.read("r1", limit=1, last=True),
        "position": (await anext(journal.tail("1-0"))).runs,
        "whole": [(await journal.verify(run_id)).whole for run_id in ("r1", "r1.1", "r2")],
    }


def test_an_older_file_is_looked_at_as_it_is_and_says_the_same_when_it_is_current(path: Path) -> None:
    before = path.read_bytes()
    as_it_was = ask(path, overview, read_only=True)
    assert (version(path), path.read_bytes()) == (5, before)
    assert as_it_was["outermost"] == ["r2", "r1"]
    assert as_it_was["billing"] == as_it_was["found"] == ["r1"]
    assert as_it_was["counts"] == {"completed": 1, "stopped": 1, "waiting": 1}
    assert [(row.key, row.runs, row.cost_usd) for row in as_it_was["costs"]] == [("billing", 2, 1.0), ("", 1, 0.0)]
    assert as_it_was["position"] == {"r1": 2, "r1.1": 2, "r2": 1}
    assert as_it_was["whole"] == [True] * 3
    assert ask(path, overview) == as_it_was
    assert version(path) == len(MIGRATIONS)


def test_events_of_the_old_form_keep_their_chain_and_go_on(path: Path) -> None:
    async def go_on(journal: SqliteJournal) -> None:
        stored = await journal.load("r1")
        assert isinstance(stored[0].fact, RunStarted)
        assert stored[0].fact.version == 1
        assert (await journal.verify("r1")).head == head_of("r1", stored) == HEAD
        assert Trace("r1", stored).status == "completed"
        await journal.append(await journal.acquire("r1"), events(Resumed(), note(4), start=3))
        assert (await journal.verify("r1")).whole
        await journal.append(await journal.begin("r3"), events(STARTED))
        assert await journal.load("r3") == events(STARTED)
        log = await journal.verify_log()
        assert (log.flaws, len(log.links)) == ((), 4)

    ask(path, go_on)
    with closing(sqlite3.connect(path)) as connection:
        bodies = dict(connection.execute("SELECT run_id, body FROM event WHERE seq = 0"))
    assert '"agent":{"name":"desk"' in bodies["r1"]
    assert '"agent":"sha256:' in bodies["r3"]


@pytest.mark.parametrize("step", [0, 5, len(MIGRATIONS[5])])
def test_a_process_that_is_killed_while_it_migrates_changes_nothing(path: Path, step: int) -> None:
    before = ask(path, overview, read_only=True)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path), str(step)], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert version(path) == 5
    assert ask(path, overview, read_only=True) == before
    assert ask(path, overview) == before
    assert version(path) == len(MIGRATIONS)


def test_a_first_event_that_somebody_edited_does_not_stop_the_migration(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE event SET body = '{' WHERE run_id = 'r2' AND seq = 0")
        connection.execute("UPDATE event SET body = '[]' WHERE run_id = 'r1.1' AND seq = 0")

    async def look(journal: SqliteJournal) -> None:
        assert [row.run_id for row in (await journal.find(RunQuery())).rows] == ["r2", "r1.1", "r1"]
        assert not (await journal.verify("r2")).whole

    ask(path, look)
    assert version(path) == len(MIGRATIONS)
