"""Moves into PostgreSQL, archives and their way back, and the commands for them."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.shell import Shell

from taoloop.core.events import Finished, ModelReplied, Noted, Observed, Paused
from taoloop.errors import JournalCorrupt, JournalError
from taoloop.journals.base import Artifact, Journal
from taoloop.journals.moving import move
from taoloop.journals.postgres.journal import PostgresJournal
from taoloop.journals.queries import RunQuery
from taoloop.journals.raw_runs import read_archive
from taoloop.journals.retention import Retention
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import DAY_S, STARTED, events, start_run

OVER = Finished(status="completed", answer="5", reason="answered")
REPLIED = ModelReplied(step=1, purpose="decide", text="t", decision=None, model="big", cost_usd=0.5)


async def fill(journal: Journal) -> None:
    """Runs of several kinds, one of them removed."""
    output = Artifact(ref="obs_c1", body="花拉 \x00")
    digest = sha256(output.body.encode()).hexdigest()
    observed = Observed(call_id="c1", ok=True, output="花…", artifact=output.ref, output_digest=digest)
    await journal.append(await journal.create("old"), events(STARTED, REPLIED, OVER))
    await journal.prune(Retention(days=1), now=100 * DAY_S)
    for number in range(5):
        text = Noted(by="ann", text="花拉 \u0000 é")
        await start_run(journal, f"r{number}", REPLIED, text, OVER, artifacts=[])
    inner = replace(STARTED, parent="r1", labels={"key": "k"})
    await journal.append(await journal.create("r1.1"), events(inner, Paused(reason="p")))
    await journal.append(await journal.acquire("r1.1"), events(observed, start=2), [output])


def test_a_database_is_moved_and_checks_itself_and_can_be_interrupted(url: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as source, PostgresJournal(url) as target:
            await fill(source)

            class Interrupted(Exception): ...

            def interrupt(_count: int, _of: int) -> None:
                raise Interrupted

            with pytest.raises(Interrupted):
                await move(source, target, interrupt)
            await source.append(await source.create("late"), events(STARTED, OVER))
            counts: list[tuple[int, int]] = []
            report = await move(source, target, lambda count, of: counts.append((count, of)))
            assert (report.runs, report.copied, counts, report.events) == (7, 1, [(1, 1)], 25)
            assert await target.runs() == await source.runs()
            for row in await source.runs():
                assert await target.load(row.run_id) == await source.load(row.run_id)
            assert await target.artifact("r1.1", "obs_c1") == await source.artifact("r1.1", "obs_c1")
            assert await target.usage() == await source.usage()
            assert (await target.verify_log()).links == (await source.verify_log()).links
            assert (await target.find(RunQuery(text="posts"))).rows[0].run_id == "late"
            await target.append(await target.acquire("r1.1"), events(OVER, start=3))
            assert (await target.verify("r1.1")).whole
            await start_run(target, "own")
            with pytest.raises(JournalError, match="own"):
                await move(source, target, interrupt)

    asyncio.run(body())


@pytest.mark.parametrize("is_postgres", [False, True])
def test_archived_runs_come_back_as_they_were(url: str, tmp_path: Path, is_postgres: bool) -> None:
    database = url if is_postgres else str(tmp_path / "runs.db")

    def journal() -> Any:
        return PostgresJournal(url) if is_postgres else SqliteJournal(database)

    def ask(work: Any) -> Any:
        async def run() -> Any:
            async with journal() as opened:
                return await work(opened)

        return asyncio.run(run())

    async def state(opened: Any) -> Any:
        rows = await opened.runs()
        return {row.run_id: await opened.load(row.run_id) for row in rows}, await opened.usage()

    def tao(*arguments: str) -> None:
        Shell(tmp_path)("db", *arguments, code=0)

    ask(fill)
    runs, usage = ask(state)
    folder = tmp_path / "archives"
    tao("archive", str(folder), "--days", "30", "--db", database, "--dry-run")
    assert not folder.exists()
    tao("archive", str(folder), "--days", "30", "--db", database)
    (archive,) = folder.glob("*.jsonl.gz")
    assert set(ask(state)[0]) == {"r1", "r1.1"}  # one waits, and goes with the run around it
    assert {run.run_id for run in read_archive(archive)} == {"r0", "r2", "r3", "r4"}
    tao("restore", str(archive), "--db", database)
    tao("restore", str(archive), "--db", database)
    assert ask(state) == (runs, usage)
    assert ask(lambda opened: opened.verify_log()).flaws == ()
    assert all(ask(lambda opened, run_id=run_id: opened.verify(run_id)).whole for run_id in runs)
    tao("stats", "--db", database)
    tao("migrate", "--db", database)
    archive.write_bytes(gzip.compress(gzip.decompress(archive.read_bytes()).replace(b'"text\\": ', b"")[:-9]))
    with pytest.raises(JournalCorrupt, match="manifest"):
        list(read_archive(archive))
