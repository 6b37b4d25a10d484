"""A call that nobody waits for any more ends in the database too."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.tools.sql.conftest import Open, Tools

from taoloop import Agent, Limits
from taoloop.core.events import Observed
from taoloop.errors import ToolTimeout
from taoloop.testing import ScriptedModel
from taoloop.tools.sql.engines import StatementTimeout, run_statement
from taoloop.tools.tool import ToolContext

ENDLESS_QUERY = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
ENDLESS_CHANGE = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) INSERT INTO log SELECT i FROM r"


def at_work() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "taoloop-sql"]


def still_at_work() -> list[threading.Thread]:
    """The threads that do not come to their end at once."""
    for thread in at_work():
        thread.join(2)
    return at_work()


def test_a_cancelled_query_is_interrupted(tools: Tools) -> None:
    async def cancelled() -> None:
        asked = asyncio.ensure_future(tools.by_name["shop.query"].invoke({"statement": ENDLESS_QUERY}, None))
        while not at_work():  # noqa: ASYNC110  # a thread has no event
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(cancelled())
    assert still_at_work() == []


def test_a_cancelled_change_is_rolled_back_before_the_cancellation_goes_on(opened: Open, shop: Path) -> None:
    tool = opened(write=True).by_name["shop.execute"]

    async def cancelled() -> None:
        changing = asyncio.ensure_future(tool.invoke({"statement": ENDLESS_CHANGE}, ToolContext()))
        while not at_work():  # noqa: ASYNC110  # a thread has no event
            await asyncio.sleep(0)
        changing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await changing

    asyncio.run(cancelled())
    assert still_at_work() == []
    with contextlib.closing(sqlite3.connect(shop)) as made:
        assert made.execute("SELECT count(*) FROM log").fetchall() == [(0,)]
        made.execute("INSERT INTO log VALUES (1)")  # nobody holds the file


def test_a_statement_that_the_database_does_not_end_is_interrupted_from_outside() -> None:
    """As where a server has no time limit of its own."""
    interrupted = threading.Event()

    def work(stop: StatementTimeout) -> bool:
        stop.arm(interrupted.set)
        return interrupted.wait(20)

    assert asyncio.run(run_statement(work, 0.01, margin_s=0.01)) is True


def test_an_interrupt_that_comes_too_early_is_not_lost() -> None:
    stop, interrupted = StatementTimeout(10), threading.Event()
    stop.now()
    stop.arm(interrupted.set)
    assert interrupted.is_set()
    assert stop.is_due


def test_what_the_work_raises_reaches_who_waits() -> None:
    def work(_: StatementTimeout) -> None:
        raise ToolTimeout("late")

    with pytest.raises(ToolTimeout):
        asyncio.run(run_statement(work, 1))


def asking(statement: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "shop.query", "args": {"statement": statement}}]}


def test_an_agent_asks_a_database_and_reads_its_refusals(tools: Tools) -> None:  # S3-41
    script: list[Any] = [asking("SELECT count(*) AS n FROM users"), asking("DELETE FROM users"), "There are 100 users."]
    result = Agent(model=ScriptedModel(script), tools=list(tools.loaded.tools)).run_sync("How many users?")
    assert result.status == "completed"
    facts = [event.fact for event in result.trace.events]
    seen = [fact for fact in facts if isinstance(fact, Observed)]
    assert "[[100]]" in seen[0].output
    assert seen[1].error is not None
    assert seen[1].error.code == "not_allowed"


def test_a_run_whose_time_is_over_interrupts_the_statement(tools: Tools) -> None:
    agent = Agent(
        limits=Limits(max_wall_s=0.3),
        model=ScriptedModel([asking(ENDLESS_QUERY), "too slow"], strict=False),
        tools=list(tools.loaded.tools),
    )
    agent.run_sync("Count.")
    assert still_at_work() == []


def test_steps_that_take_long_are_stopped_too(opened: Open) -> None:
    """A row of 15 MB to be sorted is a handful of instructions: counting them alone stopped it after 40 seconds."""
    began = time.process_time()
    many = ENDLESS_QUERY.replace("count(*)", "randomblob(15000000)") + " ORDER BY 1"
    tools = opened(timeout_s=0.2)
    assert tools.code("query", statement=many) == "statement_timeout"
    assert time.process_time() - began < 10
