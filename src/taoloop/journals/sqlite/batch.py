"""What a batch of writes does to the database: decided first, in memory, then written with few statements.

Every refusal (a lost fence, a gap, a run that exists or does not) is decided before anything is written, so the other
writes of the batch are not affected. Few statements matter: the sqlite3 module releases the GIL in each of them, and a
busy event loop may keep it for 5 ms (`sys.getswitchinterval`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from taoloop.core.events import Fact, RunStarted
from taoloop.core.stored_events import LOG_ORIGIN, event_hash, genesis_hash, log_hash
from taoloop.errors import IllegalEvent
from taoloop.journals.base import RUNNING, Lease, status_after
from taoloop.journals.process_identity import own_identity
from taoloop.journals.refusals import fence_lost, run_exists, run_grew
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.errors import not_found
from taoloop.journals.stored_append import FIRST_FENCE, Append, row_values

_COLUMNS = 7  # of the table event
_ROWS_AT_ONCE = 32  # 224 parameters; the least limit of any SQLite is 999

_HEADS_KEPT = 4_096  # runs, of some 300 bytes each

_LAST = "(SELECT rowid FROM event WHERE run_id = run.id ORDER BY seq DESC LIMIT 1)"
_HEAD = f"SELECT run.fence, seq, link FROM run LEFT JOIN event ON event.rowid = {_LAST} WHERE id = ?"  # noqa: S608  # no input
_HEADS = (
    "SELECT json_group_array(json_array(id, run.fence, seq, hex(link)))"  # noqa: S608  # no input
    f" FROM run LEFT JOIN event ON event.rowid = {_LAST} WHERE id IN (SELECT value FROM json_each(?))"
)
_WAS_PRUNED = "SELECT 1 FROM run_log WHERE run_id = ? AND pruned IS NOT NULL"
_INSERT_ARTIFACT = """
INSERT INTO artifact (run_id, ref, form, body) SELECT ?1, ?2, ?3, ?4
WHERE ?3 NOT LIKE '%/%' OR NOT EXISTS (SELECT 1 FROM artifact WHERE run_id = ?1 AND ref = ?2)
"""  # an image or a file that is stored already stays as it is
_CREATE = """
INSERT OR REPLACE INTO run (id, fence, holder, begun, head, status, task, agent, started_at, parent, key, model,
  description)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, (julianday('now') - 2440587.5) * 86400.0), ?, ?, ?, ?)
"""
_UNBEGUN = ("", "", None, None, "", "", None)  # task, agent, time, parent, key, model and description of such a run

_MARK_START = """
UPDATE run SET status = ?, task = ?, agent = ?, started_at = ?, parent = ?, key = ?, model = ?, description = ?,
  begun = 1 WHERE id = ?
"""


class Create(NamedTuple):
    """Begin a run."""

    run_id: str
    """The run."""


class Acquire(NamedTuple):
    """Take a run for writing."""

    run_id: str
    """The run."""

    at: int | None = None
    """How many events it must have to be taken; None takes it with any number."""


class Begin(NamedTuple):
    """Begin a run with its first append."""

    run_id: str
    """The run."""

    append: Append
    """The append, encoded for the first fence."""


Write = Create | Acquire | Append | Begin


class RunHead(NamedTuple):
    """The state of a run that decides what may be appended to it."""

    fence: int
    """The fence of the newest lease."""

    next_seq: int
    """The seq of the next event."""

    link: bytes
    """The link of the last event."""


class Batch:
    """The writes of one transaction: `decide` each, then `write` them all. Begin the transaction before."""

    __slots__ = (
        "_acquired",
        "_artifacts",
        "_begun",
        "_connection",
        "_created",
        "_descriptions",
        "_events",
        "_heads",
        "_links",
        "_marks",
        "_path",
        "_replaced",
        "_unusual",
    )

    def __init__(self, connection: sqlite3.Connection, path: Path, heads: dict[str, RunHead]) -> None:
        self._connection, self._path, self._heads = connection, path, heads
        self._created: dict[str, int] = {}
        self._replaced: list[tuple[str]] = []
        self._acquired: dict[str, int] = {}
        self._events: list[Any] = []  # the columns of all events one after another
        self._begun: list[tuple[str, bytes]] = []  # the runs that began, each with the link of its first event
        self._unusual: list[str] = []  # those of them that do not begin with `run_started`
        self._links: dict[str, bytes] = {}  # the new head of each run that grew
        self._artifacts: list[tuple[str, str, str, str]] = []
        self._marks: list[tuple[str, float, Fact]] = []
        self._descriptions: dict[str, tuple[bytes, str]] = {}  # of the runs that began: digest and text

    def decide(self, write: Write) -> Lease | None:
        """Accept one write (and return the lease that it takes) or refuse it, in which case it changes nothing.

        Raises:
            RunExists, RunNotFound, FenceLost, IllegalEvent: as the Protocol says.
        """
        match write:
            case Append():
                self._append(write)
                return None
            case Create(run_id):
                return self._create(run_id)
            case Acquire(run_id, at):
                head = self._head(run_id)
                if at is not None and at != head.next_seq:
                    raise run_grew(self._path, run_id)
                self._heads[run_id] = RunHead(head.fence + 1, head.next_seq, head.link)
                self._acquired[run_id] = head.fence + 1
                return Lease(run_id=run_id, fence=head.fence + 1)
            case Begin(run_id, append):
                if run_id in self._heads:  # also one without events: somebody has its lease
                    raise run_exists(self._path, run_id)
                lease = self._create(run_id)
                self._append(append)
                return lease

    def write(self) -> None:
        """Put everything that was accepted into the open transaction."""
        connection = self._connection
        if self._replaced:
            connection.executemany("DELETE FROM artifact WHERE run_id = ?", self._replaced)
        if self._created:
            connection.executemany(_CREATE, self._created_rows())
        if self._acquired:
            fences = [(fence, str(own_identity()), run_id) for run_id, fence in self._acquired.items()]
            connection.executemany("UPDATE run SET fence = ?, holder = ? WHERE id = ?", fences)
        for start in range(0, len(self._events), _ROWS_AT_ONCE * _COLUMNS):
            part = self._events[start : start + _ROWS_AT_ONCE * _COLUMNS]
            connection.execute(_insert_events(len(part) // _COLUMNS), part)
        if self._artifacts:
            connection.executemany(_INSERT_ARTIFACT, self._artifacts)
        if links := [(last, run_id) for run_id, last in self._links.items() if run_id not in self._created]:
            connection.executemany("UPDATE run SET head = ? WHERE id = ?", links)
        if self._descriptions:
            texts = list(self._descriptions.values())
            connection.executemany("INSERT OR IGNORE INTO description VALUES (?, ?)", texts)
        if self._begun:
            self._log()
        if unusual := [(run_id,) for run_id in self._unusual if run_id not in self._created]:
            connection.executemany("UPDATE run SET begun = 1 WHERE id = ?", unusual)
        for run_id, at, fact in self._marks:
            if run_id not in self._created:
                self._mark(run_id, at, fact)

    def _created_rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the runs that are created, with all that this transaction adds to them.

        Each is written once as it is to be: every change of it would change all the indexes of runs again.
        """
        holder, begun = str(own_identity()), {run_id for run_id, _ in self._begun}
        statuses, starts = dict[str, str | None](), dict[str, tuple[Any, ...]]()
        for run_id, at, fact in self._marks:
            statuses[run_id] = status_after(fact)
            if isinstance(fact, RunStarted):
                starts[run_id] = self._start_values(run_id, at, fact)
        for run_id, fence in self._created.items():
            fixed = run_id, fence, holder, run_id in begun, self._links.get(run_id, b"")
            yield *fixed, statuses.get(run_id, RUNNING), *starts.get(run_id, _UNBEGUN)

    def _create(self, run_id: str) -> Lease:
        head = self._heads.get(run_id)
        # Nor is the id of a pruned run given again: its effects could be repeated under it.
        is_begun = head is not None and head.next_seq
        if is_begun or self._connection.execute(_WAS_PRUNED, (run_id,)).fetchone() is not None:
            raise run_exists(self._path, run_id)
        fence = FIRST_FENCE
        if head is not None:  # it never began
            fence = head.fence + 1
            self._replaced.append((run_id,))
            self._artifacts = [row for row in self._artifacts if row[0] != run_id]
            self._acquired.pop(run_id, None)
        self._heads[run_id] = RunHead(fence, 0, genesis_hash(run_id))
        self._created.pop(run_id, None)  # the order is that of creation
        self._created[run_id] = fence
        return Lease(run_id=run_id, fence=fence)

    def _append(self, append: Append) -> None:
        run_id = append.run_id
        head = self._head(run_id)
        if head.fence != append.fence:
            raise fence_lost(self._path, run_id)
        if append.first is not None:
            if append.first != head.next_seq:
                raise IllegalEvent(f"Run {run_id!r} expects event {head.next_seq}, not {append.first}.")
            links = list(accumulate(append.contents, event_hash, initial=head.link))
            for row, link in zip(append.rows, links[1:], strict=True):
                self._events += row
                self._events.append(link)
            self._heads[run_id] = RunHead(head.fence, head.next_seq + len(append.rows), links[-1])
            if append.first == 0:
                self._begun.append((run_id, links[1]))
                if append.description[0]:
                    digest, text = append.description
                    self._descriptions[run_id] = digest, text.decode()
                if not any(isinstance(fact, RunStarted) for _, fact in append.marks):
                    self._unusual.append(run_id)
            if append.moves_head:
                self._links[run_id] = links[-1]
        self._artifacts += append.artifacts
        self._marks += ((run_id, at, fact) for at, fact in append.marks)

    def _log(self) -> None:
        """Enter the runs that began into the log."""
        enter_in_log(self._connection, [(run_id, first, None) for run_id, first in self._begun])

    def _head(self, run_id: str) -> RunHead:
        head = self._heads.get(run_id)
        if head is None:
            raise not_found(self._path, run_id, self._connection)
        return head

    def _mark(self, run_id: str, at: float, fact: Fact) -> None:
        status = status_after(fact)
        if isinstance(fact, RunStarted):
            self._connection.execute(_MARK_START, (status, *self._start_values(run_id, at, fact), run_id))
        else:
            self._connection.execute("UPDATE run SET status = ? WHERE id = ?", (status, run_id))

    def _start_values(self, run_id: str, at: float, fact: RunStarted) -> tuple[Any, ...]:
        """What the row of a run says of how it began, in the order of its columns."""
        task, agent, parent, key, model = row_values(fact)
        digest, _ = self._descriptions.get(run_id, (None, ""))
        return task, agent, at, parent, key, model, digest


def enter_in_log(connection: sqlite3.Connection, entries: Sequence[tuple[str, bytes, str | None]]) -> None:
    """Add entries to the log of runs, in a transaction.

    Each has its run, the link of its first event, and None; or, of a run that is removed, the digest of its record and
    the record.
    """
    end, last = connection.execute(schema.LOG_END).fetchone()
    last = last if isinstance(last, bytes) else LOG_ORIGIN  # else somebody edited it
    rows: list[tuple[int, str, bytes, bytes, str | None]] = []
    for number, (run_id, first, record) in enumerate(entries, start=end + 1):
        last = log_hash(last, number, run_id, first, is_sealed_later=False)
        rows.append((number, run_id, first, last, record))
    connection.executemany(
        "INSERT INTO run_log (number, run_id, first, sealed_later, link, pruned) VALUES (?, ?, ?, 0, ?, ?)", rows
    )


class RunHeads:
    """The heads of runs as this connection wrote them. They are looked up again once anybody else writes to the file.

    `PRAGMA data_version` shows that, for any connection in any process (https://sqlite.org/pragma.html).
    """

    __slots__ = ("_known", "_version")

    def __init__(self) -> None:
        self._known: dict[str, RunHead] = {}
        self._version = -1

    def of(self, connection: sqlite3.Connection, run_ids: Sequence[str]) -> dict[str, RunHead]:
        """Those of the runs that exist, in a transaction. A caller that changes them and fails calls `forget`."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version or len(self._known) > _HEADS_KEPT:
            self._known, self._version = {}, version
        known = self._known
        missing = [run_id for run_id in run_ids if run_id not in known]
        if missing:
            known |= look_up(connection, missing)
        return known

    def forget(self) -> None:
        """Drop all heads: what was written is not in the file after all."""
        self._known, self._version = {}, -1


def look_up(connection: sqlite3.Connection, run_ids: Sequence[str]) -> dict[str, RunHead]:
    """The heads of those runs that exist: one cheap statement for a single run, another one for many."""
    if len(run_ids) == 1:
        row = connection.execute(_HEAD, run_ids).fetchone()
        return {} if row is None else {run_ids[0]: _head(run_ids[0], *row)}
    ids = json.dumps(list(dict.fromkeys(run_ids)), ensure_ascii=False)
    heads = json.loads(connection.execute(_HEADS, (ids,)).fetchone()[0])
    return {run_id: _head(run_id, fence, seq, bytes.fromhex(link)) for run_id, fence, seq, link in heads}


def _head(run_id: str, fence: int, seq: int | None, link: object) -> RunHead:
    if seq is None:
        return RunHead(fence, 0, genesis_hash(run_id))
    return RunHead(fence, seq + 1, link if isinstance(link, bytes) else b"")  # else somebody edited it


@cache
def _insert_events(count: int) -> str:
    rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * count)
    return f"INSERT INTO event (run_id, seq, at, kind, fence, body, link) VALUES {rows}"  # noqa: S608  # placeholders only
