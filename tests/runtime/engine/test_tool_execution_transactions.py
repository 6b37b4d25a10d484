"""Transactional tools: the effect and the outcome are kept together or not at all."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.scripting import call

from taoloop import Agent, JournalConnection, MemoryJournal, ScriptedModel, SqliteJournal, tool
from taoloop.core.events import ActionStarted, Finished, InDoubt, Observed
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, InvalidOutput, ToolDefinitionError, ToolError
from taoloop.runtime.after.replay import replay
from taoloop.tools.tool import ToolContext


@tool(tier="draft")
def book(n: int, db: JournalConnection, *, context: ToolContext) -> str:
    """Book a number."""
    db.execute("CREATE TABLE IF NOT EXISTS booking (n INTEGER, key TEXT)")
    db.execute("INSERT INTO booking VALUES (?, ?)", (n, context.idempotency_key))
    return f"booked {n}"


def booked(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'booking'").fetchone() is None:
            return []
        return [row[0] for row in connection.execute("SELECT n FROM booking")]


def run(path: Path, *tools: Any, script: list[Any] | None = None, **options: Any) -> Result:
    replies = script or [call(tools[0].name, n=1), "done"]
    return Agent(model=ScriptedModel(replies), tools=tools, journal=path, **options).run_sync("do it")


def seen(result: Result) -> Observed:
    [observed] = [event.fact for event in result.trace.events if isinstance(event.fact, Observed)]
    return observed


def test_effect_and_outcome_are_in_one_commit(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    result = run(path, book)
    events = [event.kind for event in result.trace.events]
    assert (result.status, seen(result).output, booked(path)) == ("completed", "booked 1", [1])
    assert book.card.transactional
    assert "db" not in book.card.parameters
    assert events.count("action_started") == 1
    assert all(one.same for one in replay(result.trace))


def test_listeners_hear_of_the_outcome_too(tmp_path: Path) -> None:
    heard: list[str] = []
    agent = Agent(model=ScriptedModel([call("book", n=1), "done"]), tools=[book], journal=tmp_path / "r.db")
    result = agent.run_sync("x", on_event=lambda event: heard.append(event.kind))
    assert heard == [event.kind for event in result.trace.events]


@pytest.mark.parametrize("how", ["raise", "hang", "output"])
def test_what_fails_leaves_nothing_behind(tmp_path: Path, how: str) -> None:
    stuck, ended = threading.Event(), threading.Event()

    @tool(tier="draft", timeout_s=0.2)
    def book(n: int, db: JournalConnection) -> list[int]:
        """Book, and then fail."""
        db.execute("CREATE TABLE booking (n INTEGER)")
        db.execute("INSERT INTO booking VALUES (?)", (n,))
        if how == "raise":
            raise ValueError("no")
        if how == "hang":
            stuck.wait(20)
            try:
                db.execute("INSERT INTO booking VALUES (3)")
            finally:
                ended.set()
        return ["no number"]  # type: ignore[list-item]  # what it declares is checked

    path = tmp_path / "r.db"
    result = run(path, book)
    stuck.set()
    observed = seen(result)
    assert observed.error is not None
    assert result.status == "completed"
    codes = {"raise": "exception", "hang": "timeout", "output": "invalid_output"}
    assert observed.error.code == codes[how]
    assert booked(path) == ([1] if how == "output" else []), "a call that ran with a wrong output did run"
    assert not [event for event in result.trace.events if isinstance(event.fact, InDoubt)]
    assert how != "hang" or ended.wait(60)
    assert booked(path) == ([1] if how == "output" else [])


FORBIDDEN = [
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "SAVEPOINT a",
    "PRAGMA journal_mode = DELETE",
    "ATTACH ':memory:' AS other",
    "DELETE FROM event",
    "DELETE FROM run_log",
    "UPDATE sqlite_sequence SET seq = 0",
    "UPDATE run SET status = 'completed'",
    "INSERT INTO artifact VALUES ('r', 'a', 'text', 'b')",
    "DROP TABLE event",
    "DROP VIEW run_overview",
    "ALTER TABLE event RENAME TO other",
    "CREATE TEMP TABLE event (run_id)",
    "CREATE TRIGGER t AFTER INSERT ON event BEGIN SELECT 1; END",
    "CREATE INDEX i ON event (at)",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_journals_own_is_out_of_reach(tmp_path: Path, statement: str) -> None:
    @tool(tier="draft")
    def book(n: int, db: JournalConnection) -> str:
        """Try."""
        db.execute("CREATE TABLE booking (n INTEGER)")
        db.execute("INSERT INTO booking VALUES (?)", (n,))
        db.execute(statement)
        return "done"

    path = tmp_path / "r.db"
    result = run(path, book)
    observed = seen(result)
    assert observed.error is not None
    assert (observed.error.code, booked(path), result.status) == ("transaction", [], "completed")


@pytest.mark.parametrize("name", ["commit", "rollback", "close", "executescript", "cursor", "connection"])
def test_the_transaction_cannot_be_ended_by_the_tool(tmp_path: Path, name: str) -> None:
    @tool(tier="draft")
    def book(n: int, db: JournalConnection) -> str:
        """Try."""
        db.execute("CREATE TABLE booking (n INTEGER)")
        getattr(db, name)()
        return "done"

    result = run(tmp_path / "r.db", book)
    assert seen(result).error is not None
    assert booked(tmp_path / "r.db") == []


def test_a_trigger_of_the_tools_own_does_not_reach_it_either(tmp_path: Path) -> None:
    @tool(tier="draft")
    def book(n: int, db: JournalConnection) -> str:
        """Try."""
        db.execute("CREATE TABLE booking (n INTEGER)")
        db.execute("CREATE TRIGGER t AFTER INSERT ON booking BEGIN DELETE FROM event; END")
        db.execute("INSERT INTO booking VALUES (1)")
        return "done"

    assert seen(run(tmp_path / "r.db", book)).error is not None


@pytest.mark.parametrize(
    ("language", "message"), [("en", "nothing was kept. It was"), ("zh", "没有保存任何内容。已回滚")]
)
def test_a_statement_that_undoes_the_transaction_is_told_as_that(tmp_path: Path, language: str, message: str) -> None:
    @tool(tier="draft")
    def book(n: int, db: JournalConnection) -> str:
        """Undo it all by a conflict, and say that all is well."""
        db.execute("CREATE TABLE booking (n INTEGER UNIQUE)")
        db.execute("INSERT INTO booking VALUES (1)")
        try:
            db.execute("INSERT OR ROLLBACK INTO booking VALUES (1)")
        except sqlite3.IntegrityError:
            return "all is well"
        return ""

    result = run(tmp_path / "r.db", book, language=language)
    observed = seen(result)
    assert observed.error is not None
    assert message in observed.error.message
    assert (observed.error.code, result.status, booked(tmp_path / "r.db")) == ("rolled_back", "completed", [])


def test_rows_come_back(tmp_path: Path) -> None:
    @tool(tier="draft")
    def book(n: int, db: JournalConnection) -> list[Any]:
        """Write and read."""
        db.execute("CREATE TABLE booking (n INTEGER)")
        made = db.executemany("INSERT INTO booking VALUES (?)", [(n,), (n + 1,), (n + 2,)])
        rows = db.execute("SELECT n FROM booking")
        return [made.rowcount, rows.fetchone(), *rows, rows.fetchall()]

    assert seen(run(tmp_path / "r.db", book)).output == "[3,[1],[2],[3],[]]"


def test_a_journal_without_transactions_is_refused_at_the_start(tmp_path: Path) -> None:
    journal = MemoryJournal()
    with pytest.raises(ConfigError, match="MemoryJournal has no transactions"):
        Agent(model=ScriptedModel(["x"]), tools=[book], journal=journal).run_sync("x", run_id="r")
    assert asyncio.run(journal.runs()) == []
    with pytest.raises(ConfigError, match="transactions"):
        Agent(model=ScriptedModel(["x"]), tools=[book]).run_sync("x")


def test_such_a_tool_is_a_plain_function_with_a_connection() -> None:
    with pytest.raises(ToolDefinitionError, match="async"):

        @tool
        async def later(db: JournalConnection) -> None:
            """Wait."""

    with pytest.raises(ToolDefinitionError, match="takes no connection"):

        @tool(transactional=True)
        def without(n: int) -> None:
            """Have none."""


def test_a_run_that_is_stopped_meanwhile_leaves_nothing_and_goes_on(tmp_path: Path) -> None:
    entered, go_on = threading.Event(), threading.Event()

    @tool(tier="draft", timeout_s=3)
    def book(n: int, db: JournalConnection) -> str:
        """Book slowly the first time."""
        db.execute("CREATE TABLE IF NOT EXISTS booking (n INTEGER)")
        db.execute("INSERT INTO booking VALUES (?)", (n,))
        entered.set()
        go_on.wait(20)
        return "booked"

    async def play() -> Result:
        async with SqliteJournal(tmp_path / "r.db") as journal:
            agent = Agent(model=ScriptedModel([call("book", n=1), "done"]), tools=[book], journal=journal)
            running = asyncio.create_task(agent.run("x", run_id="r"))
            await asyncio.to_thread(entered.wait, 20)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            last = (await journal.load("r"))[-1].fact
            assert isinstance(last, Finished)
            assert booked(tmp_path / "r.db") == []
            go_on.set()
            return await agent.resume("r")

    result = asyncio.run(play())
    attempts = [event.fact.attempt for event in result.trace.events if isinstance(event.fact, ActionStarted)]
    assert (result.status, attempts, booked(tmp_path / "r.db")) == ("completed", [1, 2], [1])


def test_many_runs_share_the_file(tmp_path: Path) -> None:
    async def play() -> None:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            agent = Agent(
                model=ScriptedModel([call("book", n=1), call("book", n=2), "done"]), tools=[book], journal=journal
            )
            results = await asyncio.gather(*(agent.run(f"task {n}") for n in range(12)))
            assert {result.status for result in results} == {"completed"}

    asyncio.run(play())
    assert sorted(booked(tmp_path / "r.db")) == [1] * 12 + [2] * 12


@pytest.mark.parametrize("error", [InvalidOutput("half way"), ToolError("half way", code="invalid_output")])
def test_a_tool_that_raises_leaves_nothing_whatever_it_calls_its_error(tmp_path: Path, error: Exception) -> None:
    @tool(tier="draft")
    def half(db: JournalConnection) -> str:
        """Write, and give up."""
        db.execute("CREATE TABLE booking (n INTEGER)")
        db.execute("INSERT INTO booking VALUES (1)")
        raise error

    path = tmp_path / "r.db"
    assert not seen(run(path, half, script=[call("half"), "done"])).ok
    assert booked(path) == []


def test_rows_that_never_end_do_not_hold_the_journal(tmp_path: Path) -> None:
    released, waited = threading.Event(), []

    @tool(tier="draft", timeout_s=0.3)
    def nests(db: JournalConnection) -> str:
        """Use the connection while it is being used."""

        def rows() -> Any:
            yield (1,)
            db.execute("INSERT INTO booking VALUES (2)")

        db.execute("CREATE TABLE booking (n INTEGER)")
        db.executemany("INSERT INTO booking VALUES (?)", rows())
        return "ok"

    @tool(tier="draft", timeout_s=0.3)
    def waits(db: JournalConnection) -> str:
        """Give the next row when it is too late."""

        def rows() -> Any:
            yield (3,)
            waited.append(released.wait(60))

        db.executemany("INSERT INTO booking VALUES (?)", rows())
        return "ok"

    path = tmp_path / "r.db"
    result = run(path, nests, waits, script=[call("nests"), call("waits"), "done"])
    assert result.status == "completed"
    assert sorted(booked(path)) == [1, 2]
    assert waited == [], "the run ends while the rows still wait"
    released.set()
