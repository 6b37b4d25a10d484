"""`/readyz`: 503 while runs cannot be stored, and while the server drains; until then it listens."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.serve.gateway.clients import body_of, post
from tests.serve.gateway.conftest import agent, config_of, gateway, until, upstream
from tests.serve.gateway.server_process import fetch, is_ready

from taoloop import MemoryJournal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.serve.gateway.observe.readiness import StorageProbe

SLOW = {"text": "At last.", "hangs": True}


class _Time:
    """A clock that is set by hand."""

    now = 0.0

    def tick(self) -> float:
        return self.now


def test_a_journal_that_cannot_be_written_is_noticed_and_works_again(tmp_path: Path) -> None:
    path, time = tmp_path / "x.db", _Time()

    async def check() -> list[bool]:
        async with SqliteJournal(path, lock_timeout_s=0.05) as journal:
            probe, results = StorageProbe(journal, tick=time.tick), []
            results.append(await probe.works())
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                results.append(await probe.works())  # what was found a moment ago
                time.now += 1.5
                results.append(await probe.works())
            time.now += 1.5
            results.append(await probe.works())
            return results

    assert asyncio.run(check()) == [True, True, False, True]


def test_a_journal_in_memory_can_always_be_written() -> None:
    assert asyncio.run(StorageProbe(MemoryJournal()).works())


def test_a_server_that_cannot_store_runs_says_so_and_serves_again(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    journal = SqliteJournal(path, lock_timeout_s=0.05)
    with upstream("Hello.") as server, gateway(config_of(agent(server)), journal=journal) as running:
        assert post(running, body_of())[0] == 200
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            until(lambda: not is_ready(running.url))
            assert fetch(f"{running.url}/readyz") == (503, {"status": "not ready", "reason": "storage"})
            assert fetch(f"{running.url}/healthz")[0] == 200
        until(lambda: is_ready(running.url))
    asyncio.run(journal.close())


def test_a_server_that_drains_answers_what_it_has_and_refuses_the_rest() -> None:
    answers: list[tuple[int, Any]] = []
    with upstream(SLOW) as server, gateway(config_of(agent(server))) as running:
        thread = threading.Thread(target=lambda: answers.append(post(running, body_of())))
        thread.start()
        assert server.waiting.wait(20)
        running.end()
        until(lambda: not is_ready(running.url))
        assert fetch(f"{running.url}/readyz") == (503, {"status": "not ready", "reason": "draining"})
        assert fetch(f"{running.url}/healthz")[0] == 200
        status, body = post(running, body_of())
        assert (status, body["error"]["code"]) == (503, "server_draining")
        server.go_on()
        thread.join(20)
        assert answers[0][0] == 200
        assert answers[0][1]["choices"][0]["message"]["content"] == "At last."
    assert len(running.traces()) == 1
