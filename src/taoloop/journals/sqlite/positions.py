"""Places among all events of a file, in the order in which they were committed: how readers go on where they were.

The problem: SQLite gives the rowid of a removed row at the end of a table again, so after retention removed the newest
events, a rowid alone could mean an event that was read, or one that was not.

The idea: each time that this happens an epoch begins, which records the newest event that was left. A position names
its epoch; if later ones have begun, whatever is above the lowest of their records is new.

The invariant: from a position on, each event that was committed after it is seen, and none that was before it.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from taoloop.journals.queries import parse_number
from taoloop.journals.sqlite import schema

_END = "SELECT coalesce((SELECT max(rowid) FROM event), 0)"
_START = "SELECT min(last) FROM event_epoch WHERE number > ?"


class Position(NamedTuple):
    """A place after an event."""

    epoch: int
    """The epoch in which it was the place after this event."""
    rowid: int
    """The rowid of the event; 0: before the first one."""

    def __str__(self) -> str:
        """As others keep it."""
        return f"{self.epoch}-{self.rowid}"

    def resolve(self, connection: sqlite3.Connection) -> int:
        """The rowid above which events are new."""
        if schema.version(connection) < schema.INDEXED:
            return self.rowid
        (lowest,) = connection.execute(_START, (self.epoch,)).fetchone()
        return self.rowid if lowest is None else min(lowest, self.rowid)


START = Position(1, 0)
"""Before the first event."""


def parse_position(text: str) -> Position:
    """The position that was written as `text`.

    Raises:
        ConfigError: it is none.
    """
    epoch, _, rowid = text.partition("-")
    return Position(parse_number(epoch, "position"), parse_number(rowid, "position"))


def end(connection: sqlite3.Connection) -> Position:
    """The place after the newest event. In a transaction, unless no other connection writes."""
    (rowid,) = connection.execute(_END).fetchone()
    return at(connection, rowid)


def at(connection: sqlite3.Connection, rowid: int) -> Position:
    """The place after the event with this rowid, now."""
    if schema.version(connection) < schema.INDEXED:
        return Position(START.epoch, rowid)
    return Position(connection.execute("SELECT max(number) FROM event_epoch").fetchone()[0], rowid)


def begin_epoch(connection: sqlite3.Connection, before: Position) -> None:
    """Begin an epoch if events were removed at the end since `before`, in the transaction that removed them."""
    (rowid,) = connection.execute(_END).fetchone()
    if rowid < before.rowid:
        connection.execute("INSERT INTO event_epoch (last) VALUES (?)", (rowid,))
