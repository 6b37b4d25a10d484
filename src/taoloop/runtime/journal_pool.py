"""One open journal per file and process, however many runs use it at once.

Several journals on one file would fight for its lock, and each would have a thread and two connections of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from taoloop.journals.sqlite.journal import SqliteJournal


class SharedJournals:
    """The journals in use, by resolved path. May be used from any thread and event loop."""

    def __init__(self) -> None:
        self._before_forks: list[dict[Path, _Shared]] = []
        self._open: dict[Path, _Shared] = {}
        self._lock = threading.Lock()

    @asynccontextmanager
    async def use(self, path: str | Path) -> AsyncIterator[SqliteJournal]:
        """The journal in the file `path`; opened by the first who uses it, closed by the last.

        Raises:
            JournalError: it cannot be opened; the text says why.
        """
        shared = self._enter(path)
        try:
            await shared.journal.open()
            yield shared.journal
        finally:
            if self._leave(shared):
                await shared.journal.close()

    def forget(self) -> None:
        """Begin anew: for a forked child, which may not even close the journals of its parent."""
        self._before_forks.append(self._open)
        self._open, self._lock = {}, threading.Lock()

    def _enter(self, path: str | Path) -> _Shared:
        place = Path(os.path.realpath(path))  # unlike Path.resolve it leaves every complaint to who opens the file
        with self._lock:
            shared = self._open.get(place)
            if shared is None:
                shared = self._open[place] = _Shared(SqliteJournal(place))
            shared.users += 1
        return shared

    def _leave(self, shared: _Shared) -> bool:
        """True: that was the last one."""
        with self._lock:
            shared.users -= 1
            last = shared.users == 0
            if last and self._open.get(shared.journal.path) is shared:  # else this is a forked child
                del self._open[shared.journal.path]
        return last


class _Shared:
    """A journal and how many use it."""

    def __init__(self, journal: SqliteJournal) -> None:
        self.journal, self.users = journal, 0


JOURNALS = SharedJournals()
"""The journals of this process that agents with a path have open."""

if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=JOURNALS.forget)
