"""What open pages are told: by many streams, while the database goes away, and when much happens at once."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import ClientResponse
from tests.serve.panel.panels import Browser, browse, browser_of
from tests.serve.panel.run_samples import extend, put, started, steps

from taoloop import Agent, MemoryJournal, ScriptedModel
from taoloop.journals.sqlite.journal import SqliteJournal


async def told(response: ClientResponse) -> tuple[str, str]:
    """The next event of a stream: its name and its data."""
    name = ""
    async with asyncio.timeout(20):
        while True:
            line = (await response.content.readline()).decode().strip()
            assert line or not response.content.at_eof()
            key, _, value = line.partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                return name, value


async def stream_of(browser: Browser, path: str = "/live") -> ClientResponse:
    """An open stream that was told of what it may have missed."""
    response = await browser.request("GET", path)
    assert await told(response) == ("grown", "{}")
    return response


async def run_in(path: Path, task: str) -> str:
    """A run in a database that nobody else of this process has open; its id."""
    async with SqliteJournal(path) as journal:
        return (await Agent(model=ScriptedModel(["Done."]), dialect="native", journal=journal).run(task)).run_id


def remove(path: Path) -> None:
    """Remove a database with what belongs to it."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def test_many_streams_share_one_look_and_leave_nothing_behind() -> None:
    journal = MemoryJournal()

    async def scenario() -> None:
        async with browser_of(journal) as browser:
            before = len(asyncio.all_tasks())
            streams = [await stream_of(browser) for _ in range(60)]
            assert len(asyncio.all_tasks()) <= before + 2 * len(streams) + 1  # client and server of each, and the look
            result = await Agent(model=ScriptedModel(["Done."]), dialect="native", journal=journal).run("first")
            for response in streams:
                assert result.run_id in (await told(response))[1]
                response.close()
            async with asyncio.timeout(20):
                while len(asyncio.all_tasks()) > before:  # noqa: ASYNC110  # the server notices by itself
                    await asyncio.sleep(0)
            assert browser.panel.state.broadcaster._following is None

    asyncio.run(scenario())


def test_what_happens_at_once_is_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taoloop.serve.panel.event_stream.MOST_PER_S", 1)

    async def scenario(browser: Browser) -> None:
        response = await stream_of(browser)
        (listener,) = browser.panel.state.broadcaster._listeners
        listener.add({"r1": 1})
        assert await told(response) == ("grown", '{"r1": 1}')
        for runs in ({"r1": 2}, {"r2": 0}, {"r1": 3}):
            listener.add(runs)
            await browser.get("/runs")
        assert await told(response) == ("grown", '{"r1": 3, "r2": 0}')
        response.close()

    browse(MemoryJournal(), scenario)


def test_a_database_that_is_removed_and_restored_is_told_and_read_again(tmp_path: Path) -> None:
    path, backup = tmp_path / "runs.db", tmp_path / "backup.db"
    asyncio.run(run_in(path, "first"))
    shutil.copy(path, backup)
    asyncio.run(run_in(path, "second"))

    async def scenario(browser: Browser) -> None:
        response = await stream_of(browser)
        assert "second" in await browser.get("/runs")
        remove(path)
        assert (await told(response))[0] == "journal-away"
        assert "the database was removed while it was in use" in await browser.get("/runs", 503)
        late = await browser.request("GET", "/live")
        assert [(await told(late))[0], (await told(late))[0]] == ["grown", "journal-away"]
        assert not path.exists()
        shutil.copy(backup, path)
        assert (await told(response))[0] == "journal-back"
        assert (await told(late))[0] == "journal-back"
        page = await browser.get("/runs")
        assert "first" in page
        assert "second" not in page
        assert await run_in(path, "third") in (await told(response))[1]
        response.close()
        late.close()

    browse(SqliteJournal(path), scenario)


def test_another_database_in_its_place_is_told(tmp_path: Path) -> None:
    path, other = tmp_path / "runs.db", tmp_path / "other.db"
    for file, task in ((path, "first"), (other, "second")):
        asyncio.run(run_in(file, task))

    async def scenario(browser: Browser) -> None:
        response = await stream_of(browser)
        assert await run_in(path, "third") in (await told(response))[1]  # so it has looked
        remove(path)  # with its write-ahead log, which is not that of the other one
        other.rename(path)
        while (await told(response))[0] != "journal-back":  # it may have looked in between
            pass
        assert "second" in await browser.get("/runs")
        response.close()

    browse(SqliteJournal(path), scenario)


def test_a_database_that_another_program_has_locked_is_told_and_read_again(tmp_path: Path) -> None:
    path, other = tmp_path / "runs.db", tmp_path / "other.db"
    for file, task in ((path, "first"), (other, "second")):
        asyncio.run(run_in(file, task))

    async def scenario(browser: Browser) -> None:
        response = await stream_of(browser)
        with closing(sqlite3.connect(other, isolation_level=None)) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            other.rename(path)
            assert (await told(response))[0] == "journal-away"
            assert "another process holds the database" in await browser.get("/runs", 503)
        assert (await told(response))[0] == "journal-back"
        assert "second" in await browser.get("/runs")
        response.close()

    browse(SqliteJournal(path, lock_timeout_s=0.05), scenario)


def test_two_panels_show_one_database(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def scenario() -> None:
        async with (
            SqliteJournal(path) as first,
            SqliteJournal(path) as second,
            browser_of(first) as one,
            browser_of(second, "bob") as another,
        ):
            streams = [await stream_of(one), await stream_of(another)]
            run_id = (await Agent(model=ScriptedModel(["Done."]), dialect="native", journal=first).run("x")).run_id
            for response in streams:
                assert run_id in (await told(response))[1]
                response.close()
            for browser in (one, another):
                assert run_id in await browser.get("/runs")

    asyncio.run(scenario())


def test_a_browser_that_connects_again_is_told_what_it_missed_and_nothing_that_it_knows() -> None:
    journal = MemoryJournal()

    async def scenario(browser: Browser) -> None:
        lease = await put(journal, "r1", [started(), *steps(1)])
        page = await browser.request("GET", "/runs/r1/live?after=1")
        assert await told(page) == ("grown", '{"r1": 3}')
        page.close()
        await extend(journal, lease, 4, steps(1, first=2))
        again = await browser.request("GET", "/runs/r1/live?after=1", headers={"Last-Event-ID": "3"})
        assert (await again.content.readuntil(b"\n\n"), await again.content.readline()) == (
            b": connected\n\n",
            b"id: 6\n",
        )
        again.close()
        informed = await browser.request("GET", "/runs/r1/live", headers={"Last-Event-ID": "6"})
        await extend(journal, lease, 7, steps(1, first=3))
        assert await told(informed) == ("grown", '{"r1": 9}'), "only what came later"
        informed.close()

    browse(journal, scenario)
