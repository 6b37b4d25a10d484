"""`kill -9`: what an append had returned for is there afterwards, and no append is there in part."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import events, note

if TYPE_CHECKING:
    from pathlib import Path

CHILD = """
import asyncio, sys
from taoloop.journals.sqlite import writer
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import events, note

async def run(journal, name):
    lease = await journal.create(name)
    for start in range(0, 1_000_000, 3):
        await journal.append(lease, events(*(note(start + i) for i in range(3)), start=start))
        print(name, start + 2, flush=True)

async def main():
    async with SqliteJournal(sys.argv[1]) as journal:
        await asyncio.gather(*(run(journal, f"r{n}") for n in range(int(sys.argv[2]))))

asyncio.run(main())
"""


@pytest.mark.parametrize("runs", [1, 8])
@pytest.mark.parametrize("lines", [1, 17, 150])
def test_what_was_acknowledged_survives(tmp_path: Path, runs: int, lines: int) -> None:
    path = tmp_path / "runs.db"
    command = [sys.executable, "-c", CHILD, str(path), str(runs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        said += child.stdout.readlines()  # what it had written before it died
    acknowledged = {name: int(seq) for name, seq in (line.split() for line in said if line.endswith("\n"))}
    asyncio.run(_verify(path, acknowledged))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def _verify(path: Path, acknowledged: dict[str, int]) -> None:
    assert acknowledged
    async with SqliteJournal(path) as journal:
        for name, seq in acknowledged.items():
            kept = await journal.load(name)
            assert len(kept) > seq
            assert len(kept) % 3 == 0  # all of an append or none
            assert kept == events(*(note(number) for number in range(len(kept))))
            await journal.append(await journal.acquire(name), events(note(len(kept)), start=len(kept)))
