"""The PostgreSQL journal beyond the contract: passwords, servers that go away, poolers, and the order of commits."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from taoloop import Agent
from taoloop.config.agent_file import load_agent
from taoloop.core.events import Finished
from taoloop.core.stored_events import head_of
from taoloop.errors import (
    ConfigError,
    FenceLost,
    IllegalEvent,
    JournalError,
    JournalFull,
    JournalTampered,
    JournalTooNew,
    JournalUnreachable,
)
from taoloop.journals.base import Artifact, Lease
from taoloop.journals.postgres import schema
from taoloop.journals.postgres.address import PostgresAddress
from taoloop.journals.postgres.errors import explain
from taoloop.journals.postgres.journal import PostgresJournal
from taoloop.journals.queries import RunQuery
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.testing.journal_contract import STARTED, events, note, refused, start_run
from taoloop.testing.postgres_server import PostgresServer, postgres_server

NewJournal = Callable[..., PostgresJournal]
OVER = Finished(status="completed", answer="5", reason="answered")


def run_with(journal: PostgresJournal, body: Callable[[PostgresJournal], Any]) -> None:
    async def run() -> None:
        async with journal:
            await body(journal)

    asyncio.run(run())


async def ask(journal: PostgresJournal, statement: str, *values: Any) -> Any:
    """The first value of a statement with `@.` for the schema."""
    return await journal.database.run(lambda c: c.fetchval(journal.database.sql(statement), *values))


def test_a_password_is_in_no_text() -> None:
    address = PostgresAddress(
        "postgresql://ann:s3cret@db.example:5432/runs?sslmode=require&password=s3cret&pool_size=3"
    )
    journal = PostgresJournal(address)
    agent = Agent(model=["Final Answer: yes"], journal="postgresql://ann:s3cret@db.example/runs")
    for text in (str(address), repr(address), repr(journal), journal.location, repr(agent), str(agent.journal)):
        assert "s3cret" not in text
    assert str(address) == "postgresql://ann@db.example:5432/runs?sslmode=require&pool_size=3"
    assert journal.database.settings.pool_size == 3
    with pytest.raises(ConfigError) as refusal:
        PostgresJournal("postgresql://ann:s3cret@db.example:none/runs")
    assert "s3cret" not in str(refusal.value)


def test_an_agent_runs_on_its_address(url: str) -> None:
    async def body() -> None:
        result = await Agent(model=["Final Answer: yes"], journal=url).run("Is it?")
        async with PostgresJournal(url) as journal:
            assert [row.run_id for row in await journal.runs()] == [result.run_id]
            assert (await journal.verify(result.run_id)).whole
            assert (await journal.verify_log()).flaws == ()
            assert await journal.run_locks.holder(result.run_id) is None
        async with PostgresJournal(url, read_only=True) as reader:  # as the lists of the command line
            assert [row.run_id for row in (await reader.find(RunQuery(text="is it"))).rows] == [result.run_id]
            assert (await reader.verify_log()).flaws == ()
            await refused(JournalError, reader.create("r1"))

    asyncio.run(body())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"host": "/nowhere"}, "cannot be reached"),
        ({"user": "nobody"}, "login"),
        ({"database": "none"}, "no such database"),
    ],
)
def test_what_is_wrong_with_a_server_is_said(server: PostgresServer, change: dict[str, str], named: str) -> None:
    address = server.url(**change) if "host" not in change else "postgresql://ann@/x?host=/nowhere"
    error = asyncio.run(refused(JournalError, PostgresJournal(address).load("r1")))
    assert named in error.message
    assert error.hint


def test_a_role_without_rights_is_told(server: PostgresServer) -> None:
    server.execute("CREATE ROLE reader LOGIN")
    address = server.url(user="reader", schema="not_mine")
    assert "lacks a right" in asyncio.run(refused(JournalError, PostgresJournal(address).create("r1"))).message


def test_a_journal_of_another_version_is_refused_and_left_alone(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        await start_run(journal)
        for version, error in ((99, JournalTooNew), (0, JournalError)):
            await ask(journal, "UPDATE @.about SET value = $1 WHERE key = 'schema' RETURNING 1", str(version + 0 or 99))
            if not version:
                continue
            await refused(error, new_journal().load("r1"))
        await ask(journal, "UPDATE @.about SET value = '1' WHERE key = 'schema' RETURNING 1")
        async with new_journal() as again:
            assert len(await again.load("r1")) == 1

    run_with(new_journal(), body)


def test_an_older_schema_is_brought_up_to_date_step_by_step(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        await start_run(journal)
        name = journal.database.settings.schema
        later = (*schema.MIGRATIONS, "ALTER TABLE @.run ADD COLUMN later text", "SELECT nonsense")
        connection = await journal.database.connect()
        try:
            with pytest.raises(asyncpg.PostgresError):
                await schema.upgrade(connection, name, later)
            assert await schema.version(connection, name) == len(later) - 1  # the step that failed is undone
            assert await schema.upgrade(connection, name, later[:-1]) == []
        finally:
            await connection.close()
        with pytest.raises(JournalError, match="older schema"):
            schema.refuse_version("here", 1, known=2)
        assert len(await journal.load("r1")) == 1

    run_with(new_journal(), body)


def test_a_full_disk_and_a_standby_have_their_own_words() -> None:
    full = explain(asyncpg.DiskFullError("could not extend file"), "here")
    assert isinstance(full, JournalFull)
    standby = explain(asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT"), "here")
    assert "standby" in str(standby)


def test_an_edited_run_is_detected_and_not_taken(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        lease = await start_run(journal, "r1", note(1), artifacts=[])
        await journal.append(lease, events(OVER, start=2))
        await ask(journal, "UPDATE @.event SET body = replace(body, 'note 1', 'note 2') WHERE seq = 1 RETURNING 1")
        report = await journal.verify("r1")
        assert [(flaw.seq, flaw.what) for flaw in report.flaws] == [(1, "changed")]
        await refused(JournalTampered, journal.acquire("r1"))
        await ask(journal, "DELETE FROM @.event WHERE seq = 2 RETURNING 1")
        assert "cut" in {flaw.what for flaw in (await journal.verify("r1")).flaws}
        await start_run(journal, "r2")
        assert (await journal.verify_log()).flaws == ()
        await ask(journal, "DELETE FROM @.run WHERE id = 'r2' RETURNING 1")
        assert [flaw.what for flaw in (await journal.verify_log()).flaws] == ["run_missing"]

    run_with(new_journal(), body)


def test_what_commits_late_is_not_missed(new_journal: NewJournal) -> None:
    """Of two open transactions the one that began first commits last: its events are new to who saw the other's."""

    async def body(journal: PostgresJournal) -> None:
        first, second = await start_run(journal, "r1"), await start_run(journal, "r2")
        start = await journal.position()
        connection = await journal.database.connect()
        try:
            await connection.execute("BEGIN")
            insert = """
            INSERT INTO @.event SELECT number, 1.0, pg_current_xact_id(), 1, born, 1, 'noted', 'x', '{}'
            FROM @.run WHERE id = 'r1'
            """
            await connection.execute(journal.database.sql(insert))  # has its number, and is not committed
            await journal.append(second, events(note(1), start=1))
            async with aclosing(journal.tail(start, interval_s=0.001)) as growths:
                growth = await asyncio.wait_for(anext(growths), 10)
                assert growth.runs == {"r2": 1}
                await connection.execute("COMMIT")
                later = await asyncio.wait_for(anext(growths), 10)
            assert later.runs == {"r1": 1}
            async with aclosing(journal.tail(growth.position, interval_s=0.001)) as growths:
                assert (await asyncio.wait_for(anext(growths), 10)).runs == {"r1": 1}
        finally:
            await connection.close()
        assert first.fence == 1

    run_with(new_journal(), body)


def test_a_reader_is_told_by_another_process(new_journal: NewJournal) -> None:
    """At an interval of a minute only a notification can tell it."""

    async def body(journal: PostgresJournal) -> None:
        lease = await start_run(journal)
        position = await journal.position()
        async with aclosing(journal.tail(position, interval_s=60.0)) as growths:
            waiting = asyncio.ensure_future(anext(growths))
            listening = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'"
            while not await ask(journal, listening):
                assert not waiting.done()
            async with new_journal() as other:
                await other.append(lease, events(note(1), start=1))
                assert (await asyncio.wait_for(waiting, 20)).runs == {"r1": 1}

    run_with(new_journal(), body)


def test_a_connection_that_is_cut_stores_nothing_twice(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        leases = [await start_run(journal, f"r{number}") for number in range(8)]
        admin = await journal.database.connect()
        is_over = False

        async def cut() -> None:
            statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            while not is_over:
                await admin.execute(f"{statement} AND application_name = 'taoloop' AND query LIKE '%run%'")
                await asyncio.sleep(0.1)

        async def write(lease: Lease) -> None:
            for seq in range(1, 11):
                output = Artifact(ref=f"a{seq}", body="x")
                await journal.append(lease, events(note(seq), start=seq), [output] if seq % 5 == 0 else [])

        cutting = asyncio.create_task(cut())
        await asyncio.gather(*map(write, leases))
        is_over = True
        await cutting
        await admin.close()
        expected = events(STARTED, *(note(seq) for seq in range(1, 11)))
        for lease in leases:
            assert await journal.load(lease.run_id) == expected
            assert (await journal.verify(lease.run_id)).head == head_of(lease.run_id, expected)
            assert await journal.artifact(lease.run_id, "a10") == Artifact(ref="a10", body="x")

    run_with(new_journal(), body)


def test_an_append_that_was_stored_is_not_stored_again(new_journal: NewJournal) -> None:
    """The connection breaks after the commit and before the answer: the journal finds its own events."""

    async def body(journal: PostgresJournal) -> None:
        lease = await start_run(journal)
        writer = journal._own.writer
        send = writer._send

        async def lose_the_answer(connection: Any, pending: Any) -> Any:
            writer._send = send  # type: ignore[method-assign]  # once
            await send(connection, pending)
            raise ConnectionResetError("cut")

        writer._send = lose_the_answer  # type: ignore[method-assign,assignment]  # a network that fails at this moment
        await journal.append(lease, events(note(1), start=1), [Artifact(ref="a", body="b")])
        assert await journal.load("r1") == events(STARTED, note(1))
        await journal.append(lease, events(note(2), start=2))
        assert (await journal.verify("r1")).whole or "artifact" in str((await journal.verify("r1")).flaws)

    run_with(new_journal(), body)


def test_a_server_that_restarts_in_the_middle_of_a_run_is_found_again() -> None:
    with postgres_server() as own:

        async def body() -> None:
            async with PostgresJournal(own.url()) as journal:
                lease = await start_run(journal)
                await asyncio.to_thread(own.stop, at_once=True)
                append = asyncio.create_task(journal.append(lease, events(note(1), start=1)))
                await asyncio.sleep(0.1)
                assert not append.done()
                await asyncio.to_thread(own.start)
                await append
                assert await journal.load("r1") == events(STARTED, note(1))
            await asyncio.to_thread(own.stop)
            error = await refused(JournalUnreachable, PostgresJournal(own.url()).load("r1"))
            assert error.retryable

        asyncio.run(body())


def test_a_pooler_in_transaction_mode_may_lie_between(new_journal: NewJournal) -> None:
    async def body(journal: PostgresJournal) -> None:
        leases = [await start_run(journal, f"r{number}") for number in range(3)]
        await asyncio.gather(*(journal.append(lease, events(note(1), OVER, start=1)) for lease in leases))
        await refused(IllegalEvent, journal.append(leases[0], events(note(9), start=9)))
        assert [row.events for row in await journal.runs()] == [3, 3, 3]
        assert len(await journal.usage()) == 1
        statements = "SELECT count(*) FROM pg_prepared_statements WHERE name <> ''"
        assert await ask(journal, statements) == 0

    run_with(new_journal(pooler=True), body)


def test_months_without_runs_are_dropped_and_missing_ones_made(new_journal: NewJournal) -> None:
    from taoloop.journals.postgres.prune import drop_empty_months  # noqa: PLC0415

    async def body(journal: PostgresJournal) -> None:
        name = journal.database.settings.schema
        connection = await journal.database.connect()
        await schema.make_month(connection, name, "2020_01", "2020-01-01")
        assert sorted(part.rpartition(".")[2] for part in await drop_empty_months(journal.database)) == [
            "artifact_2020_01",
            "event_2020_01",
        ]
        month = await connection.fetchval("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')")
        await connection.execute(schema.in_schema(f"DROP TABLE @.event_{month}", name))
        await connection.close()
        await start_run(journal)  # a process that lived for months makes the partition that it needs
        assert len(await journal.load("r1")) == 1

    run_with(new_journal(), body)


WRITER = """
import asyncio, sys
from taoloop.journals import PostgresJournal
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.testing.journal_contract import STARTED, events, note
async def main():
    async with PostgresJournal(sys.argv[1]) as journal:
        lease = await journal.begin("r1")
        await journal.append(lease, events(STARTED))
        for seq in range(1, 100_000):
            await journal.append(lease, events(note(seq), start=seq))
            print(seq, flush=True)
asyncio.run(main())
"""


def test_what_was_answered_survives_kill_9_and_a_zombie_writes_nothing(new_journal: NewJournal, url: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        last = 0
        for line in process.stdout:
            last = int(line)
            if last == 20:
                process.send_signal(signal.SIGKILL)

    async def body(journal: PostgresJournal) -> None:
        stored = await journal.load("r1")
        assert len(stored) in (last + 1, last + 2)  # the one on its way may be there
        zombie = Lease(run_id="r1", fence=1)
        owner = await journal.acquire("r1", at=len(stored))
        await refused(FenceLost, journal.append(zombie, events(note(0), start=len(stored))))
        await journal.append(owner, events(OVER, start=len(stored)))
        assert (await journal.verify("r1")).whole

    run_with(new_journal(), body)


def test_several_event_loops_and_threads_share_a_journal(new_journal: NewJournal) -> None:
    journal = new_journal()
    asyncio.run(start_run(journal))

    async def body() -> None:
        def work(number: int) -> None:
            async def own() -> None:
                lease = await journal.create(f"t{number}")
                await journal.append(lease, events(STARTED))

            asyncio.run(own())

        await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(3)))
        assert len(await journal.runs()) == 4
        await journal.close()

    asyncio.run(body())


def test_an_agent_file_and_a_gateway_file_take_an_address(url: str, tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(f"name: a\nmodel: offline\ndb: '{url}'\n", encoding="utf-8")
    assert load_agent(str(file)).journal == PostgresAddress(url)
    gateway = tmp_path / "gateway.yaml"
    gateway.write_text(f"agents: {{a: {{model: offline}}}}\nserver: {{db: '{url}'}}\n", encoding="utf-8")
    assert load_config(gateway).db == PostgresAddress(url)
