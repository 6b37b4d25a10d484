"""`tao runs --search` and `--agent`, and `tao costs` by model and after retention."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from tests.shell import Shell

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Finished, ModelReplied
from taoloop.journals.retention import Retention
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import DAY_S, STARTED, events

REPLIED = ModelReplied(step=1, purpose="decide", text="t", decision=None, cost_usd=0.5)


def fill(path: Path) -> None:
    """Three finished runs of two agents with one model each."""

    async def keep() -> None:
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            for number, (agent, task, model) in enumerate(
                [("desk", "Pay invoice 4711", "small"), ("desk", "查一下发票", "small"), ("clerk", "Pay Ann", "big")]
            ):
                first = replace(STARTED, task=task, agent=AgentSpec(name=agent, model=model))
                over = Finished(status="completed", answer=f"Done by {agent}.", reason="answered")
                await journal.append(await journal.begin(f"r{number}"), events(first, REPLIED, over))

    asyncio.run(keep())


def ids(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines()]


def test_runs_are_found_by_text_and_agent(tao: Shell) -> None:
    fill(tao.folder / "runs.db")
    assert ids(tao("runs", "--search", "pay", code=0).out) == ["r2", "r0"]
    assert ids(tao("runs", "--search", "发票", code=0).out) == ["r1"]
    assert ids(tao("runs", "--search", "done", "--agent", "desk", code=0).out) == ["r1", "r0"]
    (row,) = map(json.loads, tao("runs", "--agent", "clerk", "--json", code=0).out.splitlines())
    assert (row["run_id"], row["model"], row["parent"], row["key"]) == ("r2", "big", None, "")
    assert "no run fits" in tao("runs", "--search", "nothing of the kind", code=0).err
    assert (tao.folder / "runs.db-search").exists()


def test_costs_stand_by_model_and_stay_when_runs_are_removed(tao: Shell) -> None:
    path = tao.folder / "runs.db"
    fill(path)
    by_model = [["big", "1", "1", "0", "0", "0", "0.500000", "0"], ["small", "2", "2", "0", "0", "0", "1.000000", "0"]]
    assert [line.split() for line in tao("costs", "--by", "model", code=0).out.splitlines()] == by_model

    async def prune() -> None:
        async with SqliteJournal(path) as journal:
            assert len((await journal.prune(Retention(days=1), now=100 * DAY_S)).pruned) == 3

    asyncio.run(prune())
    assert "no run yet" in tao("runs", code=0).err
    assert [line.split() for line in tao("costs", "--by", "model", code=0).out.splitlines()] == by_model


def test_costs_are_added_up_once(tao: Shell) -> None:
    path = tao.folder / "runs.db"
    fill(path)
    first = tao("costs", code=0).out
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM spending").fetchone()[0] == 2
    assert tao("costs", code=0).out == first
