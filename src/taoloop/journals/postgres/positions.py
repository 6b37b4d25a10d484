"""Places among all events, in the order in which they became visible: how readers go on where they were.

The problem: transactions commit in another order than they begin. An event with a lower number, or an earlier time, may
appear after a reader has passed it; a reader that keeps "the last number" loses it.

The idea: every event names the transaction that stored it. A position is what PostgreSQL calls a snapshot: all
transactions below `limit` are over, except those in `running`. What is new at a later moment is what those stored, and
what transactions from `limit` on did: two conditions that an index answers, however long a transaction stays open.

The invariant: from a position on, each event that became visible after it is seen, and none that was visible before.

https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SNAPSHOT
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from taoloop.journals.queries import foreign_text

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

NEW: Final = "(xid >= $1::text::xid8 OR xid = ANY($2::text[]::xid8[]))"
"""True for the events after a position, whose `values` are the first two."""

SNAPSHOT: Final = "SELECT pg_current_snapshot()::text, (SELECT max(xid)::text FROM @.event)"
"""Reads what `position_of` needs."""

CUT: Final = f"SELECT xid::text FROM @.event WHERE {NEW} ORDER BY xid OFFSET $3 LIMIT 1"  # noqa: S608  # no input
"""Reads the transaction of the event that is so many after a position."""

WITHIN: Final = f"({NEW} AND xid < $3::text::xid8 AND xid <> ALL($4::text[]::xid8[]))"
"""True for the events between two positions, whose `values` are the first four; at any later moment, too."""

_TEXT = re.compile(r"(?P<limit>[0-9]{1,18})(?:-(?P<running>[0-9]{1,18}(?:\.[0-9]{1,18})*))?", re.ASCII)


class SnapshotPosition(NamedTuple):
    """A moment of the database, by its transactions."""

    limit: int
    """Below this number every transaction is over, except `running`."""

    running: tuple[int, ...] = ()
    """Those that were not over; what they store is new."""

    def __str__(self) -> str:
        """As others keep it."""
        return f"{self.limit}-{'.'.join(map(str, self.running))}" if self.running else str(self.limit)

    @property
    def values(self) -> tuple[str, list[str]]:
        """What `NEW` compares with."""
        return str(self.limit), [str(number) for number in self.running]


START: Final = SnapshotPosition(0)
"""Before the first event."""


def parse_position(text: str) -> SnapshotPosition:
    """The position that was written as `text`.

    Raises:
        ConfigError: it is none.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise foreign_text(text, "position")
    running = match["running"]
    return SnapshotPosition(int(match["limit"]), tuple(map(int, running.split("."))) if running else ())


def position_of(snapshot: str, newest: str | None) -> SnapshotPosition:
    """The position of a snapshot as PostgreSQL writes it; `newest` is the highest transaction that stored an event.

    The same for as long as nothing is added, although other transactions come and go.
    """
    _, limit, running = snapshot.split(":")
    if running:
        return SnapshotPosition(int(limit), tuple(map(int, running.split(","))))
    return SnapshotPosition(min(int(limit), int(newest or 0) + 1))


async def read_part(
    connection: PostgresConnection, database: JournalDatabase, position: SnapshotPosition, at_most: int
) -> tuple[SnapshotPosition, bool]:
    """Where the next `at_most` events after a position end, in a transaction of one snapshot; whether none follow."""
    now = position_of(*await connection.fetchrow(database.sql(SNAPSHOT)))
    cut = await connection.fetchval(database.sql(CUT), *position.values, at_most)
    if cut is None:
        return now, True
    limit = int(cut) + 1  # all events of one transaction are in one part
    return SnapshotPosition(limit, tuple(number for number in now.running if number < limit)), False
