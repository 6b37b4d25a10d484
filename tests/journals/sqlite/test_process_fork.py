"""A journal that was in use before a fork says so in the child, where its thread does not exist."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import asyncio, os, signal, sys
from taoloop.errors import JournalError
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.testing.journal_contract import STARTED, events, note

def in_child(main):
    sys.stdout.flush()
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return
    signal.alarm(20)  # only where it would hang for ever
    asyncio.run(main())
    sys.stdout.flush()
    os._exit(0)

used, unused = SqliteJournal(sys.argv[1]), SqliteJournal(sys.argv[1])

async def before():
    lease = await used.create("r1")
    await used.append(lease, events(STARTED))
    await used.runs()
    return lease

async def child():
    for call in (used.append(lease, events(note(1), start=1)), used.create("r2"), used.load("r1"), used.open()):
        try:
            await call
        except JournalError as error:
            print(error.code, error.message)
    await used.close()
    print([row.run_id for row in await unused.runs()])
    await unused.close()

async def after():
    await used.append(lease, events(note(1), start=1))
    print(len(await used.load("r1")))
    await used.close()

lease = asyncio.run(before())
in_child(child)
asyncio.run(after())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_is_told_to_open_its_own_journal(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    *refused, opened, kept = done.stdout.splitlines()
    assert len(refused) == 4
    assert all(line.startswith(f"journal_error {path}: ") and "fork" in line for line in refused)
    assert opened == "['r1']"  # one that was not used before the fork belongs to who uses it first
    assert kept == "2"
