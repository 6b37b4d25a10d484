"""`tao db prune`: old runs go, and what is kept of them shows in `tao show` and `tao verify --all`."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.shell import Shell

from taoloop.core.events import Finished
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import STARTED, events

FINISHED = Finished(status="completed", answer="5", reason="answered")


def fill(path: Path) -> None:
    """Two finished runs of 1970, and one that never ended."""

    async def keep() -> None:
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            for number in range(3):
                facts = (STARTED, FINISHED) if number < 2 else (STARTED,)
                await journal.append(await journal.create(f"r{number}"), events(*facts, at=number * 86_400.0))

    asyncio.run(keep())


def test_pruned_runs_leave_a_record_that_is_verified(tao: Shell) -> None:
    path = tao.folder / "runs.db"
    fill(path)
    planned = tao("db", "prune", "--runs", "1", "--dry-run", "--json", code=0)
    assert [json.loads(line)["run_id"] for line in planned.out.splitlines()] == ["r0", "r1"]
    assert "2 runs would be removed" in planned.err
    assert "r0" in tao("runs", code=0).out

    pruned = tao("db", "prune", "--days", "90", code=0)
    assert [line.split()[0] for line in pruned.out.splitlines()] == ["r0", "r1"]
    shown = tao("show", "r0", code=2)
    assert "was removed by retention (days=90)" in shown.err
    assert "completed" in shown.err
    verified = tao("verify", "--all", code=0)
    assert "pruned  2" in verified.out
    report = json.loads(tao("verify", "--all", "--json", code=0).out)
    assert (report["whole"], report["runs"], report["pruned"]) == (True, 1, 2)


def test_a_removal_that_retention_did_not_make_shows(tao: Shell) -> None:
    path = tao.folder / "runs.db"
    fill(path)
    tao("db", "prune", "--runs", "2", code=0)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("UPDATE run_log SET pruned = replace(pruned, 'completed', 'stopped')")
    assert "entry 4 of the log of runs (run r0) was changed" in tao("verify", "--all", code=12).out
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("UPDATE run_log SET pruned = NULL")
    assert "run r0" in tao("verify", "--all", code=12).out


def test_a_damaged_run_is_not_removed(tao: Shell) -> None:
    path = tao.folder / "runs.db"
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("UPDATE event SET body = replace(body, '5', '6') WHERE run_id = 'r0' AND seq = 1")
    ended = tao("db", "prune", "--days", "90", code=12)
    assert [line.split()[0] for line in ended.out.splitlines()] == ["r1"]
    assert "tao verify r0" in ended.err


def test_prune_needs_a_rule_and_a_database(tao: Shell) -> None:
    assert "--days N" in tao("db", "prune", code=2).err
    assert "there is no journal" in tao("db", "prune", "--days", "1", code=11).err
    assert not (tao.folder / "runs.db").exists()


def test_space_is_given_back(tao: Shell) -> None:
    path = tao.folder / "runs.db"

    async def keep() -> None:
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            long = Finished(status="completed", answer="x" * 2_000_000, reason="answered")
            await journal.append(await journal.create("r0"), events(STARTED, long))

    asyncio.run(keep())
    size = path.stat().st_size
    tao("db", "prune", "--days", "1", code=0)
    assert path.stat().st_size < size / 10
