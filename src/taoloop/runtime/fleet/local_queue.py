"""The table of the local engine, in a SQLite file beside the journal: which runs are due, and who has claimed them.

The problem: several worker processes share the runs of one file. Two must not advance one run at once; a worker that is
killed must lose its runs quickly, and one that is only stopped must lose them too, and notice once it wakes up.

The idea: a row per open run. `wake_at` is when it is due; while a worker has it, the end of the worker's lease. `claim`
counts who had it: the worker that claims a row raises it, and every later statement of that worker names its number, so
one whose claim is over changes nothing. A worker that the system knows to be gone loses its rows at the next look,
without waiting for the end of its lease.

The invariant: a row has one claim at a time. Nothing here is true about a run: the file may be removed while no worker
is at work, and the sweeper fills it again from the journal. So a commit need not survive a power cut.

Tested in `tests/runtime/fleet/test_local_queue.py` and, with processes that are killed and stopped, by the contract.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from taoloop.journals.process_identity import own_identity, parse_identity
from taoloop.journals.sqlite.errors import explain
from taoloop.runtime.fleet.engine import RUNNING, WAITING, Advanced

_APPLICATION_ID = 0x54414F51  # "TAOQ"
_BUSY_S = 5.0

_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
CREATE TABLE IF NOT EXISTS job (
  run_id TEXT NOT NULL PRIMARY KEY,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  wake_at REAL,
  wakes INTEGER NOT NULL DEFAULT 0,
  claim INTEGER NOT NULL DEFAULT 0,
  worker TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS job_free ON job (queue, priority, wake_at) WHERE worker = '' AND wake_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS job_claimed ON job (wake_at) WHERE worker <> '';
"""
_SUBMIT = "INSERT OR IGNORE INTO job (run_id, queue, priority, tenant, wake_at) VALUES (?, ?, ?, ?, ?)"
_WAKE = """
UPDATE job SET wakes = wakes + 1,
  wake_at = CASE WHEN worker = '' THEN min(coalesce(wake_at, :now), :now) ELSE wake_at END
WHERE run_id = :run_id
"""
_CANCEL = "UPDATE job SET wakes = wakes + 1, claim = claim + 1, worker = '', wake_at = ? WHERE run_id = ?"
_DUE = """
SELECT run_id FROM job WHERE worker = '' AND wake_at <= ? AND queue IN (SELECT value FROM json_each(?))
  AND run_id NOT IN (SELECT value FROM json_each(?)) ORDER BY priority, wake_at LIMIT ?
"""
_CLAIM = """
UPDATE job SET claim = claim + 1, worker = ?, wake_at = ? WHERE run_id IN (SELECT value FROM json_each(?))
RETURNING run_id, claim, wakes
"""
_FREE = "UPDATE job SET worker = '', claim = claim + 1, wake_at = min(wake_at, ?) WHERE worker = ?"
_EXPIRE = "UPDATE job SET worker = '', claim = claim + 1 WHERE worker <> '' AND wake_at <= ?"
_RENEW = "UPDATE job SET wake_at = ? WHERE run_id = ? AND claim = ? AND worker <> '' RETURNING claim"
_END = """
UPDATE job SET worker = '', wake_at = CASE WHEN wakes <> :wakes THEN :now ELSE :wake_at END
WHERE run_id = :run_id AND claim = :claim AND worker <> ''
"""
_FORGET = "DELETE FROM job WHERE run_id = :run_id AND claim = :claim AND worker <> '' AND wakes = :wakes"
_NEXT = """
SELECT min(wake_at) FROM job WHERE worker = '' AND queue IN (SELECT value FROM json_each(?))
  AND run_id NOT IN (SELECT value FROM json_each(?)) AND wake_at IS NOT NULL
"""


class RunClaim(NamedTuple):
    """A run that this worker has until its lease ends."""

    run_id: str
    """The run."""

    number: int
    """The number of the claim; a later one voids it."""

    wakes: int
    """How often the run had been woken when it was claimed."""


class QueueCount(NamedTuple):
    """How many runs a queue has."""

    due: int
    """Runs that are due and that nobody has."""

    claimed: int
    """Runs that a worker has."""

    idle: int
    """Runs that wait for a time or for a wake."""


class LocalQueue:
    """The rows in the file `path`, or in memory (None). Blocks; any thread may call it."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._writes = self._connect()
        with self._lock:
            self._writes.execute("PRAGMA journal_mode = WAL")
            self._writes.execute("PRAGMA synchronous = NORMAL")
            with self._transaction():
                for statement in _SCHEMA.split(";"):
                    self._writes.execute(statement)
        self._watch = self._writes if path is None else self._connect()

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                ":memory:" if self.path is None else self.path,
                timeout=_BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            application = connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.Error as error:
            raise self._explain(error) from error
        if application not in (0, _APPLICATION_ID):
            connection.close()
            raise self._explain(sqlite3.DatabaseError("a file of another application"))
        return connection

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._watch.close()
            self._writes.close()

    def submit(self, run_id: str, at: float, queue: str, priority: int, tenant: str) -> None:
        """Add a run; one that is there stays as it is."""
        self._write(_SUBMIT, (run_id, queue, priority, tenant, at))

    def wake(self, run_id: str, now: float) -> None:
        """Make a run due, or have it looked at once more after the turn under way."""
        self._write(_WAKE, {"run_id": run_id, "now": now})

    def cancel(self, run_id: str, now: float) -> None:
        """Take a run from whoever has it, and make it due."""
        self._write(_CANCEL, (now, run_id))

    def claim(
        self, queues: Sequence[str], limit: int, now: float, lease_s: float, passed_over: Collection[str]
    ) -> list[RunClaim]:
        """RunClaim runs that are due, at most `limit`, by priority and then by time; none of `passed_over`.

        Writes nothing while nothing is due.
        """
        names, passed = json.dumps(list(queues)), json.dumps(list(passed_over))
        with self._lock:
            try:
                gone = self._gone_workers()
                expired = self._writes.execute("SELECT 1 FROM job WHERE worker <> '' AND wake_at <= ?", (now,))
                if not gone and expired.fetchone() is None and not self._due(names, passed, now, 1):
                    return []
                with self._transaction():
                    for worker in gone:
                        self._writes.execute(_FREE, (now, worker))
                    self._writes.execute(_EXPIRE, (now,))
                    run_ids = self._due(names, passed, now, limit)
                    values = (str(own_identity()), now + lease_s, json.dumps(run_ids))
                    rows = self._writes.execute(_CLAIM, values).fetchall() if run_ids else []
            except sqlite3.Error as error:
                raise self._explain(error) from error
        order = {run_id: number for number, run_id in enumerate(run_ids)}
        return sorted((RunClaim(*row) for row in rows), key=lambda claim: order[claim.run_id])

    def renew(self, claims: Iterable[RunClaim], now: float, lease_s: float) -> set[RunClaim]:
        """Lengthen the leases of these claims; gives those that still hold."""
        with self._lock:
            try:
                with self._transaction():
                    return {
                        claim
                        for claim in claims
                        if self._writes.execute(_RENEW, (now + lease_s, claim.run_id, claim.number)).fetchone()
                    }
            except sqlite3.Error as error:
                raise self._explain(error) from error

    def standing(self, claims: Iterable[RunClaim]) -> set[RunClaim]:
        """Those of these claims that still hold; nothing is written."""
        query = "SELECT 1 FROM job WHERE run_id = ? AND claim = ? AND worker <> ''"
        with self._lock:
            try:
                return {
                    claim for claim in claims if self._writes.execute(query, (claim.run_id, claim.number)).fetchone()
                }
            except sqlite3.Error as error:
                raise self._explain(error) from error

    def end(self, claim: RunClaim, advanced: Advanced, now: float) -> None:
        """End a claim as the advance says; a run that was woken meanwhile is due again. A void claim ends nothing."""
        wake_at = advanced.wake_at
        if advanced.status == RUNNING:
            wake_at = now if wake_at is None else wake_at
        values = {"run_id": claim.run_id, "claim": claim.number, "wakes": claim.wakes, "now": now, "wake_at": wake_at}
        statements = (_END,) if advanced.status in (RUNNING, WAITING) else (_FORGET, _END)
        with self._lock:
            try:
                with self._transaction():
                    for statement in statements:
                        self._writes.execute(statement, values)
            except sqlite3.Error as error:
                raise self._explain(error) from error

    def next_at(self, queues: Sequence[str], passed_over: Collection[str]) -> float | None:
        """When the next run is due that nobody has; None: none will be by itself."""
        values = (json.dumps(list(queues)), json.dumps(list(passed_over)))
        with self._lock:
            row = self._writes.execute(_NEXT, values).fetchone()
        return None if row is None else row[0]

    def counts(self, now: float) -> dict[str, QueueCount]:
        """How many runs there are, by queue."""
        query = """
        SELECT queue, sum(worker = '' AND wake_at <= ?1), sum(worker <> ''),
          sum(worker = '' AND (wake_at IS NULL OR wake_at > ?1)) FROM job GROUP BY queue
        """
        with self._lock:
            rows = self._writes.execute(query, (now,)).fetchall()
        return {queue: QueueCount(due or 0, claimed, idle or 0) for queue, due, claimed, idle in rows}

    def version(self) -> int:
        """A number that changes with each commit, of any process; quick."""
        if self.path is None:
            return self._writes.total_changes
        return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def _due(self, queues: str, passed_over: str, now: float, limit: int) -> list[str]:
        rows = self._writes.execute(_DUE, (now, queues, passed_over, limit)).fetchall()
        return [run_id for (run_id,) in rows]

    def _gone_workers(self) -> list[str]:
        """The workers that have runs and are gone."""
        own = str(own_identity())
        rows = self._writes.execute("SELECT DISTINCT worker FROM job WHERE worker <> ''").fetchall()
        known = ((worker, parse_identity(worker)) for (worker,) in rows if worker != own)
        return [worker for worker, identity in known if identity is not None and identity.is_gone]

    def _write(self, statement: str, values: object) -> None:
        with self._lock:
            try:
                self._writes.execute(statement, values)  # type: ignore[arg-type]  # a tuple or a mapping
            except sqlite3.Error as error:
                raise self._explain(error) from error

    def _transaction(self) -> _Transaction:
        return _Transaction(self._writes)

    def _explain(self, error: sqlite3.Error) -> Exception:
        return explain(error, self.path or Path("memory"))


class _Transaction:
    """Begins a transaction that writes, and commits it unless something is raised."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
            return
        with suppress(sqlite3.Error):  # what was raised says what is wrong
            self._connection.execute("ROLLBACK")
