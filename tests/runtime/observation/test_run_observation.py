"""The log lines of runs, and the run's id in what others log meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from taoloop import Agent, MemoryJournal, RunIdFilter, tool

SCRIPT: list[Any] = [{"tool_calls": [{"name": "look_up", "args": {"word": "s3cret-value"}}]}, {"text": "3"}]


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What is logged, each record with its run."""
    caught: list[logging.LogRecord] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            caught.append(record)

    handler = Handler()
    handler.addFilter(RunIdFilter())
    loggers = [logging.getLogger("taoloop.runs"), logging.getLogger("shop")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield caught
    for logger in loggers:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


@tool(tier="read")
def look_up(word: str) -> str:
    """Look up."""
    logging.getLogger("shop").info("looking up %d characters", len(word))
    return "3"


def test_a_run_logs_its_start_steps_and_end_with_its_id(records: list[logging.LogRecord]) -> None:
    agent = Agent(name="clerk", model=list(SCRIPT), tools=[look_up], secrets=["s3cret-value"])
    result = agent.run_sync("Look.")
    lines = [record.getMessage() for record in records]
    assert lines[0] == f"run {result.run_id} of clerk starts with scripted"
    assert lines[-1] == f"run {result.run_id} of clerk is completed after 2 model calls and 0 tokens"
    assert any("Action: look_up" in line for line in lines)
    assert "s3cret" not in " ".join(lines)
    assert {record.run_id for record in records} == {result.run_id}  # type: ignore[attr-defined]  # the filter's
    assert "looking up 12 characters" in lines


def test_runs_side_by_side_keep_their_ids_apart(records: list[logging.LogRecord]) -> None:
    async def run_both() -> set[str]:
        agents = [Agent(model=list(SCRIPT), tools=[look_up]) for _ in range(2)]
        return {result.run_id for result in await asyncio.gather(*(agent.run("Look.") for agent in agents))}

    run_ids = asyncio.run(run_both())
    of_tools = [record for record in records if record.name == "shop"]
    assert {record.run_id for record in of_tools} == run_ids  # type: ignore[attr-defined]  # the filter's
    logging.getLogger("shop").info("outside")
    assert records[-1].run_id == ""  # type: ignore[attr-defined]  # the filter's


def test_a_resume_says_that_it_resumes(records: list[logging.LogRecord]) -> None:
    agent = Agent(model=list(SCRIPT), tools=[look_up], journal=MemoryJournal(), max_steps=1, closing_turn=False)

    async def run_in_two_parts() -> None:
        first = await agent.run("Look.")
        await agent.resume(first.run_id, max_steps=3)

    asyncio.run(run_in_two_parts())
    lines = [record.getMessage() for record in records if record.levelno == logging.INFO and record.name != "shop"]
    assert [line.split(" of agent ")[1].split(" with ")[0].split(" after ")[0] for line in lines] == [
        "starts",
        "is max_steps_exceeded",
        "resumes",
        "is completed",
    ]
