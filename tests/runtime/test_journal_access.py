"""Runs of one process that name the same file share one open journal; threads share an agent's memory."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from taoloop import Agent, MemoryJournal, Trace, tool
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.errors import JournalError
from taoloop.journals.base import Journal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.models.scripted import ScriptedModel
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.journal_access import JOURNALS, SharedJournals, is_driven_here, stop_run
from taoloop.testing.journal_contract import STARTED, events, refused


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@tool(tier="draft")
async def look(x: int) -> int:
    """Look."""
    await asyncio.sleep(0)
    return x


def agent(path: Path) -> Agent:
    calls = [ModelReply(tool_calls=(ToolCallText(name="look", arguments='{"x": 1}', id=f"c{n}"),)) for n in range(2)]
    return Agent(model=ScriptedModel([*calls, ModelReply(text="done")]), tools=[look], journal=path)


def journals_in_use(path: Path) -> int:
    """How many files of the database this process has open, 0 without /proc."""
    folder = Path("/proc/self/fd")
    return sum(os.path.realpath(entry) == os.fspath(path) for entry in folder.iterdir()) if folder.is_dir() else 0


def test_many_runs_at_once_do_not_fight_for_the_file(path: Path) -> None:
    most_open = 0

    @tool(tier="read")
    async def count() -> int:
        """How many are open."""
        nonlocal most_open
        most_open = max(most_open, journals_in_use(path))
        return 1

    async def run() -> Counter[str]:
        call = ModelReply(tool_calls=(ToolCallText(name="count", arguments="{}", id="c1"),))
        one = Agent(model=ScriptedModel([call, ModelReply(text="done")]), tools=[count], journal=path)
        return Counter(result.status for result in await asyncio.gather(*(one.run("t") for _ in range(100))))

    assert asyncio.run(run()) == {"completed": 100}
    assert most_open <= 2  # one that writes, one that reads
    assert not path.with_name("runs.db-wal").exists()  # let go of everything


def test_threads_with_loops_of_their_own_share_it_too(path: Path) -> None:
    one, outcomes = agent(path), Counter[str]()
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for _ in range(5):
            outcomes[one.run_sync("t").status] += 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {"completed": 40}
    assert JOURNALS._open == {}


def test_the_first_opens_it_and_the_last_closes_it(path: Path) -> None:
    async def run() -> None:
        journals = SharedJournals()
        async with journals.use(path) as first:
            async with journals.use(str(path)) as second:
                assert second is first
            await first.append(await first.create("r1"), events(STARTED))  # the second has not closed it
        await refused(JournalError, first.runs())
        assert journals._open == {}
        async with journals.use(path) as third:
            assert third is not first
            assert len(await third.runs()) == 1

    asyncio.run(run())


def test_a_file_is_known_by_every_name_it_has(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    alias = path.with_name("alias.db")
    alias.symlink_to(path)

    async def run() -> None:
        journals = SharedJournals()
        async with (
            journals.use(path) as first,
            journals.use("runs.db") as second,
            journals.use(alias) as third,
            journals.use(path.with_name("other.db")) as other,
        ):
            assert first is second is third
            assert other is not first

    asyncio.run(run())


def test_it_does_not_matter_who_goes_first(path: Path) -> None:
    """The loop that opened it ends before another one that still writes."""
    journals, opened, ended = SharedJournals(), threading.Event(), threading.Event()
    used: list[Journal] = []

    async def first() -> None:
        async with journals.use(path) as journal:
            used.append(journal)
            opened.set()
            await asyncio.to_thread(entered.wait)

    async def second() -> None:
        async with journals.use(path) as journal:
            used.append(journal)
            entered.set()
            await asyncio.to_thread(ended.wait)
            await journal.append(await journal.create("r1"), events(STARTED))

    entered = threading.Event()
    thread = threading.Thread(target=lambda: (opened.wait(), asyncio.run(second())))
    thread.start()
    asyncio.run(first())
    ended.set()
    thread.join()
    assert used[0] is used[1]

    async def look_again() -> int:
        async with journals.use(path) as journal:
            return len(await journal.runs())

    assert asyncio.run(look_again()) == 1


def test_who_cannot_open_it_leaves_nothing_behind(path: Path) -> None:
    path.write_bytes(b"my holiday pictures " * 500)

    async def run() -> None:
        journals = SharedJournals()
        users = (journals.use(path).__aenter__() for _ in range(5))
        outcomes = await asyncio.gather(*users, return_exceptions=True)
        assert all(isinstance(outcome, JournalError) and str(path) in outcome.message for outcome in outcomes)
        assert journals._open == {}

    asyncio.run(run())


def test_who_is_cancelled_while_it_opens_leaves_nothing_behind(path: Path) -> None:
    async def run() -> None:
        journals = SharedJournals()

        async def use() -> None:
            async with journals.use(path):
                raise AssertionError("it was cancelled before")

        task = asyncio.create_task(use())
        await asyncio.sleep(0)
        assert len(journals._open) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert journals._open == {}

    asyncio.run(run())


def test_a_loop_of_links_is_an_error_that_names_the_file(path: Path) -> None:
    path.symlink_to(path)
    with pytest.raises(JournalError, match=r"runs\.db"):
        agent(path).run_sync("t")


SCRIPT = """
import asyncio, os, signal, sys
from taoloop import Agent, ScriptedModel
from taoloop.runtime.journal_access import JOURNALS

def run():
    return Agent(model=ScriptedModel(["done"]), journal=sys.argv[1]).run_sync("t").status

async def main():
    async with JOURNALS.use(sys.argv[1]) as journal:
        await journal.create("r1")
        with JOURNALS._lock:  # as when another thread is about to enter
            child = os.fork()
            if not child:
                signal.alarm(20)  # only where it would hang for ever
                asyncio._set_running_loop(None)
                print(run(), flush=True)
                os._exit(0)
        print(os.waitpid(child, 0)[1])
        await journal.create("r2")
    print(run())

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_journals_of_its_own(path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["completed", "0", "completed"]


def test_threads_that_run_an_agent_for_the_first_time_at_once_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)

    def make(keep: int) -> MemoryJournal:
        both.wait(30)  # each thread is in the middle of making one
        return MemoryJournal(keep=keep)

    monkeypatch.setattr("taoloop.runtime.bound_agent.MemoryJournal", make)
    one = Agent(model="offline")
    found: list[MemoryJournal] = []
    threads = [threading.Thread(target=lambda: found.append(bind(one).memory_journal)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]


def test_an_agent_remembers_the_runs_of_all_threads() -> None:
    one = Agent(model=ScriptedModel(["done"]))
    threads = [threading.Thread(target=one.run_sync, args=("t",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asyncio.run(bind(one).memory_journal.runs())) == 8


def test_a_run_of_this_process_can_be_stopped_from_any_thread_and_resumed(path: Path) -> None:
    asked = threading.Event()

    async def reply(_task: str, _trace: Trace) -> str:
        if not asked.is_set():
            asked.set()
            await asyncio.Event().wait()
        return "All done."

    waiting = Agent(model=reply, dialect="native", journal=path)

    def drive() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(waiting.run("Wait."))

    async def stop() -> None:
        async with SqliteJournal(path) as journal:
            (row,) = await journal.runs()
            assert is_driven_here(journal, row.run_id)
            assert not is_driven_here(MemoryJournal(), row.run_id)
            assert await stop_run(journal, row.run_id)
            assert (await journal.runs())[0].status == "stopped"
            assert not is_driven_here(journal, row.run_id)
            assert not await stop_run(journal, row.run_id)
            assert (await waiting.resume(row.run_id)).answer == "All done."

    thread = threading.Thread(target=drive)
    thread.start()
    assert asked.wait(10)
    asyncio.run(stop())
    thread.join()
