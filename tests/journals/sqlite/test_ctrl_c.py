"""Ctrl-C, or a handler that ends the process, while a run commits in the thread that the signal comes to."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from taoloop import Agent, ScriptedModel
from taoloop.journals.sqlite.batch import Batch
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import STARTED, events, note

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

INSIDE = {"_prepare", "_commit", "execute_patiently", "of", "decide", "_append", "write"}


@pytest.fixture(autouse=True)
def _where_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taoloop.journals.sqlite.writer.QUICK_S", math.inf)


class CtrlC:
    """Comes before the line `at` of the commit, and says in `lines` how many there were."""

    def __init__(self, at: int, raised: type[BaseException]) -> None:
        self.at, self.raised, self.lines = at, raised, 0

    def __enter__(self) -> CtrlC:
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _called(self, frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
        is_commit = "journals" in frame.f_code.co_filename and frame.f_code.co_name in INSIDE
        return self._line if is_commit else None

    def _line(self, _frame: FrameType, event: str, _arg: Any) -> Callable[..., Any]:
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                raise self.raised
        return self._line


async def interrupted(path: Path, at: int, raised: type[BaseException]) -> bool:
    """Append with Ctrl-C at this line; False if there is no such line."""
    async with SqliteJournal(path, synchronous="NORMAL") as journal:
        lease = await journal.create("r")
        await journal.append(lease, events(STARTED))
        with CtrlC(at, raised) as ctrl_c:
            try:
                await journal.append(lease, events(note(1), note(2), start=1))
            except raised:
                pass
            else:
                return False
        assert ctrl_c.lines >= at
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # nobody holds the file
            other.execute("ROLLBACK")
        await journal.append(lease, events(note(3), start=3))
        assert await journal.load("r") == events(STARTED, note(1), note(2), note(3))
        assert (await journal.verify("r")).whole
    return True


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_wherever_it_comes_the_write_is_done_and_the_file_is_free(tmp_path: Path, raised: type[BaseException]) -> None:
    at = 1
    while asyncio.run(interrupted(tmp_path / f"{at}.db", at, raised)):
        at += 1
    assert at > len(INSIDE)  # or the names are others now


def test_the_run_is_stopped_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write, times = tmp_path / "runs.db", Batch.write, [0]

    def write_and_stop(batch: Batch) -> None:
        write(batch)
        times[0] += 1
        if times[0] == 2:
            raise KeyboardInterrupt

    call = {"tool_calls": [{"name": "calculator", "args": {"expression": "6*7"}}]}
    agent = Agent(model=ScriptedModel([call, "42"]), tools=["calculator"], journal=path)
    monkeypatch.setattr(Batch, "write", write_and_stop)
    with closing(asyncio.new_event_loop()) as loop, pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(agent.run("What is 6*7?", run_id="r"))
    monkeypatch.undo()

    async def status() -> str:
        async with SqliteJournal(path, read_only=True) as journal:
            return (await journal.runs())[0].status

    assert asyncio.run(status()) == "stopped"
    assert agent.resume_sync("r").answer == "42"
