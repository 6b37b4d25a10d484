"""The appends of one run are written in the order of their calls, whoever writes them."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import TYPE_CHECKING

from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import STARTED, events, note

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    import pytest


class Gate:
    """A lock that makes who waits for it (the thread that writes) stop before it; who only tries it passes."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def acquire(self, *, blocking: bool = True) -> bool:
        if blocking:
            self.reached.set()
            self.opened.wait()
        return self._lock.acquire(blocking=blocking)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def test_an_append_does_not_overtake_one_that_the_thread_has_taken_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taoloop.journals.sqlite.writer.QUICK_S", math.inf)  # a run alone writes where it is called

    async def run() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            lease = await journal.create("r1")
            await journal.create("r2")  # r1 is not alone
            gate = Gate()
            monkeypatch.setattr(journal._writer, "_turn", gate)
            first = asyncio.create_task(journal.append(lease, events(STARTED)))
            await asyncio.sleep(0)
            gate.reached.wait()  # the thread has taken the first append, and waits for its turn
            second = asyncio.create_task(journal.append(lease, events(note(1), start=1)))
            await asyncio.sleep(0)
            gate.opened.set()
            await asyncio.gather(first, second)
            assert await journal.load("r1") == events(STARTED, note(1))
            await journal.append(lease, events(note(2), start=2))
            assert journal._writer._pending == 0

    asyncio.run(run())


def test_once_nothing_is_pending_a_run_alone_writes_where_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taoloop.journals.sqlite.writer.QUICK_S", math.inf)

    async def run() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            await journal.create("r0")
            lease = await journal.create("r1")  # by the thread
            writers: list[str] = []
            connection = journal._writer._connection
            assert connection is not None
            connection.set_trace_callback(lambda _: writers.append(threading.current_thread().name))
            await journal.append(lease, events(STARTED))
            connection.set_trace_callback(None)
            assert set(writers) == {threading.current_thread().name}

    asyncio.run(run())
