"""The description of an agent is stored once per digest, covered by the chain, and removed with its last run."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop import Agent
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Finished, RunStarted
from taoloop.core.message import Message
from taoloop.core.stored_events import (
    ChainedEvent,
    check,
    description_digest,
    encode_fact,
    encode_stored,
    separate_description,
    whole_body,
)
from taoloop.core.views.trace_export import from_lines, to_line
from taoloop.errors import JournalCorrupt, JournalTampered
from taoloop.journals.retention import Retention
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import DAY_S, STARTED, events, note, refused

OVER = Finished(status="completed", answer="5", reason="answered")


def ask(path: Path, query: Callable[[SqliteJournal], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            return await query(journal)

    return asyncio.run(run())


def sql(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


async def keep_two(journal: SqliteJournal) -> None:
    for run_id in ("r1", "r2"):
        await journal.append(await journal.create(run_id), events(replace(STARTED, task=run_id), note(1), OVER))


def test_runs_of_one_agent_share_its_description(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    ask(path, keep_two)
    ((digest, body),) = sql(path, "SELECT lower(hex(digest)), body FROM description")
    bodies = sql(path, "SELECT body FROM event WHERE seq = 0")
    assert all(f'"agent":"sha256:{digest}"' in stored for (stored,) in bodies)
    assert "counter" in body


def test_a_run_of_three_steps_with_one_tool_takes_at_most_5_kb(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    call = {"text": "I compute it.", "tool_calls": [{"name": "calculator", "args": {"expression": "1+1"}}]}

    async def run_often(journal: SqliteJournal) -> None:
        for _ in range(60):
            agent = Agent(model=[call, call, {"text": "It is 2."}], tools=["calculator"], journal=journal, name="sums")
            await agent.run("How much is 1+1, and then 1+1 again?")

    ask(path, run_often)
    before = path.stat().st_size
    ask(path, run_often)
    assert (path.stat().st_size - before) / 60 <= 5_000


def test_a_description_that_was_edited_shows_in_every_run_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    ask(path, keep_two)
    sql(path, "UPDATE description SET body = replace(body, 'counter', 'another')")

    async def look(journal: SqliteJournal) -> None:
        for run_id in ("r1", "r2"):
            report = await journal.verify(run_id)
            assert {"description"} <= {flaw.what for flaw in report.flaws}
            await refused(JournalTampered, journal.acquire(run_id))

    ask(path, look)


def test_a_description_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    ask(path, keep_two)
    sql(path, "DELETE FROM description")

    async def look(journal: SqliteJournal) -> None:
        assert {flaw.what for flaw in (await journal.verify("r1")).flaws} == {"description", "unreadable"}
        assert "description" in (await refused(JournalCorrupt, journal.load("r1"))).message
        assert len(await journal.read("r1", after=0)) == 2  # what does not need it can be read

    ask(path, look)


@pytest.mark.parametrize("statement", ["UPDATE run SET description = x'00'", "UPDATE run SET key = 'other'"])
def test_a_row_that_says_something_else_than_the_first_event_is_told(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "runs.db"
    ask(path, keep_two)
    sql(path, statement)
    assert [flaw.what for flaw in ask(path, lambda journal: journal.verify("r1")).flaws] == ["run_row"]


def test_a_description_goes_with_the_last_run_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def prune(journal: SqliteJournal) -> None:
        await keep_two(journal)
        other = replace(STARTED, agent=AgentSpec(name="other"))
        await journal.append(await journal.create("r3"), events(other, OVER))
        await journal.append(await journal.create("r4"), events(STARTED, OVER, at=99 * DAY_S))
        await journal.prune(Retention(days=30), now=100.0 * DAY_S)
        assert await journal.load("r4") == events(STARTED, OVER, at=99 * DAY_S)
        await journal.append(await journal.create("r5"), events(other))
        assert await journal.load("r5") == events(other)

    ask(path, prune)
    assert len(sql(path, "SELECT 1 FROM description")) == 2


def test_an_export_has_the_whole_description_and_is_checked_without_the_database(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    ask(path, keep_two)
    rows = ask(path, lambda journal: journal.linked("r1"))
    lines = [to_line("r1", row) for row in rows]
    assert '"agent":{"name":"counter"' in lines[0]
    exported = from_lines(lines)
    assert exported.rows == rows
    assert check("r1", exported.rows) == []
    edited = from_lines([lines[0].replace("counter", "another"), *lines[1:]])
    assert [flaw.what for flaw in check("r1", edited.rows)] == ["changed"]


@given(
    st.text() | st.sampled_from(['","agent":{', '"agent":"sha256:', '\\","agent":{"name":"x"}', "\\"]),
    st.dictionaries(st.sampled_from(["agent", "key"]), st.text()),
    st.text(max_size=5),
    st.lists(st.text(max_size=5), max_size=2),
)
def test_a_body_comes_apart_and_together_again(task: str, labels: dict[str, str], name: str, turns: list[str]) -> None:
    history = tuple(Message(role="user", content=turn) for turn in turns)
    agent = AgentSpec(name=name or "x")
    started = RunStarted(task=task, agent=agent, nonce="n", labels=labels, history=history)
    stored, whole = encode_stored(started), encode_fact(started)
    if not stored.description:  # a text that UTF-8 cannot hold
        assert stored.body == whole
        return
    assert whole_body(stored.body, stored.description) == whole
    assert separate_description(whole) == stored
    assert description_digest(stored.body) == stored.digest.hex()
    assert description_digest(whole) is None
    assert ChainedEvent(0, 0.0, "run_started", stored.body, b"", stored.description).decode() == started


def test_an_event_of_version_1_stays_as_it_was() -> None:
    old = replace(STARTED, version=1)
    assert encode_stored(old).body == encode_fact(old)
