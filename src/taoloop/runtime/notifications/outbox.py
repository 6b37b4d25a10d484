"""What is still to be delivered to each hook, and what was: a file beside the journal, for several processes at once.

A notice is delivered at least once: it is marked as delivered after the hook has taken it. Whoever tries claims it for
the time of an attempt; if that process dies, another one, or the next start, tries again. The file has ids alone: what
is sent is made from the journal at each attempt.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from taoloop.errors import JournalError
from taoloop.journals.base import Journal
from taoloop.journals.sqlite.errors import explain
from taoloop.runtime.approvals.inbox_items import InboxItem
from taoloop.runtime.notifications.notice import notice_id

MEMORY = Path(":memory:")
"""The path of an outbox that ends with its process."""

_FORMAT = 1
_BUSY_S = 5.0
_TABLES = """
CREATE TABLE hook (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE notice (
  hook TEXT, id TEXT, run_id TEXT NOT NULL, call_id TEXT NOT NULL, due REAL, attempts INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (hook, id)
) WITHOUT ROWID;
CREATE INDEX notice_due ON notice (hook, due);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueNotice:
    """A notice that this process has claimed for one attempt."""

    id: str
    """The notice."""

    run_id: str
    """Its run."""

    call_id: str
    """Its call."""

    attempts: int
    """How often it was tried, this time included."""


def outbox_beside(journal: Path) -> Path:
    """The path of the outbox of a journal: `runs.db` has `runs.db-notices` beside it."""
    return journal.with_name(f"{journal.name}-notices")


def open_outbox(journal: Journal) -> Outbox:
    """The outbox beside a journal that is a file; of any other, one that ends with this process.

    Raises:
        JournalError: the file cannot be used.
    """
    path = getattr(journal, "path", None)
    return Outbox(outbox_beside(path) if isinstance(path, Path) else MEMORY)


class Outbox:
    """The notices of one journal for all hooks, open until `close`. For one event loop.

    Args:
        path: The file, which is created where it is missing. It may be removed while nobody uses it; what waits then
            is sent again.

    Raises:
        JournalError: the file cannot be used, or a newer version wrote it.
    """

    def __init__(self, path: Path = MEMORY) -> None:
        self.path = path
        with self._explained():
            if path != MEMORY:
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._create()

    def note(self, hook: str, items: Sequence[InboxItem], *, now: float, is_all: bool) -> None:
        """Note what waits; what is new is due at `now`.

        `is_all`: nothing else waits, so the rest is forgotten. Runs that were blocked before a hook was first used are
        not told to it: unattended runs may have left hundreds.
        """
        with self._transaction():
            execute = self._connection.execute
            is_new = execute("INSERT OR IGNORE INTO hook VALUES (?)", (hook,)).rowcount == 1
            noted = {row[0] for row in execute("SELECT id FROM notice WHERE hook = ?", (hook,))}
            rows = {notice_id(item): item for item in items}
            for stale_id in noted - rows.keys() if is_all else ():
                execute("DELETE FROM notice WHERE hook = ? AND id = ?", (hook, stale_id))
            for new_id in rows.keys() - noted:
                item = rows[new_id]
                due = None if is_new and item.kind == "blocked" else now
                statement = "INSERT INTO notice (hook, id, run_id, call_id, due) VALUES (?, ?, ?, ?, ?)"
                execute(statement, (hook, new_id, item.run_id, item.call_id, due))

    def claim(self, hook: str, *, now: float, until: float, limit: int) -> list[DueNotice]:
        """The notices of a hook that are due, the longest first; nobody else gets them before `until`."""
        with self._transaction():
            rows = self._connection.execute(
                "SELECT id, run_id, call_id, attempts + 1 FROM notice WHERE hook = ? AND due <= ? "
                "ORDER BY due, id LIMIT ?",
                (hook, now, limit),
            ).fetchall()
            self._connection.executemany(
                "UPDATE notice SET due = ?, attempts = attempts + 1 WHERE hook = ? AND id = ?",
                [(until, hook, row[0]) for row in rows],
            )
        return [
            DueNotice(id=claimed_id, run_id=run_id, call_id=call_id, attempts=attempts)
            for claimed_id, run_id, call_id, attempts in rows
        ]

    def settle(self, hook: str, claimed_id: str, *, due: float | None) -> None:
        """After an attempt: when to try again; None: no more, for it was delivered, or is given up."""
        with self._transaction():
            self._connection.execute("UPDATE notice SET due = ? WHERE hook = ? AND id = ?", (due, hook, claimed_id))

    def next_due(self, hook: str) -> float | None:
        """When the next notice of a hook is due; None: there is none."""
        with self._explained():
            row = self._connection.execute("SELECT min(due) FROM notice WHERE hook = ?", (hook,)).fetchone()
        return None if row[0] is None else float(row[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _create(self) -> None:
        with self._transaction():
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version > _FORMAT:
                raise JournalError(
                    f"{self.path} was written by a newer version of taoloop (format {version}).",
                    hint="Update taoloop, or remove the file: what waits for a person is then sent again.",
                )
            if version < _FORMAT:
                for statement in filter(str.strip, _TABLES.split(";")):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {_FORMAT}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        except OSError as error:
            raise JournalError(f"{self.path} cannot be used: {error.strerror or error}.") from error
