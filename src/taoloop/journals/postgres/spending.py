"""What was used per day, in a table that grows with days and not with runs: brought up to date by its readers.

Writers do nothing for it. Whoever asks adds the events after the position of the table and stores the sums, a bounded
number of events per transaction; a reader that must not write adds them in memory. Retention does the same before it
removes a run, in the same transaction, so its costs stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from taoloop.errors import JournalCorrupt
from taoloop.journals.base import translate
from taoloop.journals.postgres import schema
from taoloop.journals.postgres.positions import START, WITHIN, SnapshotPosition, parse_position, read_part
from taoloop.journals.stored_usage import UNREADABLE, add_counts, add_stored_event, usage_row
from taoloop.journals.usage import COUNTED_KINDS, FORKED, RunOrigin, UsageLedger, UsageRow
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

_AT_ONCE = 5_000
"""Events per transaction."""

_NOTE: Final = "spending"
_POSITION = "SELECT value FROM @.about WHERE key = 'spending'"
_EVENTS = f"""
SELECT id, seq, at, kind, body FROM @.event JOIN @.run USING (number, born)
WHERE {WITHIN} AND kind = ANY($5::text[]) ORDER BY xid, number, seq
"""  # noqa: S608  # no input
_EVENT = """
SELECT id, seq, at, kind, body FROM @.event JOIN @.run USING (number, born) WHERE id = $1 AND seq = $2
"""
_ROW = """
SELECT agent, model, key, parent, CASE WHEN first.body LIKE '%"forked_from"%' THEN first.body END
FROM @.run LEFT JOIN @.event AS first ON first.number = run.number AND first.born = run.born AND first.seq = 0
WHERE id = $1
"""
_RESUMED = """
SELECT seq, at, body FROM @.event JOIN @.run USING (number, born) WHERE id = $1 AND kind = 'resumed' ORDER BY seq DESC
"""
_STORED = "SELECT day, key, agent, model, counts FROM @.spending WHERE day >= $1"
_COUNTS = "SELECT counts FROM @.spending WHERE day = $1 AND key = $2 AND agent = $3 AND model = $4"
_STORE = """
INSERT INTO @.spending VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (day, key, agent, model) DO UPDATE SET counts = excluded.counts
"""


class _Reached(NamedTuple):
    """How far events are added up, and which of them could not be read."""

    position: SnapshotPosition
    unread: tuple[tuple[str, int], ...] = ()


class UsageSums:
    """Brings the sums up to date over one connection, in a transaction that the caller begins."""

    def __init__(self, database: JournalDatabase, connection: PostgresConnection) -> None:
        self._database, self._connection = database, connection
        self._origins: dict[str, RunOrigin] = {}

    async def read(self, since_day: str | None) -> list[UsageRow]:
        """All rows, without storing anything, at one moment."""
        rows = await self._connection.fetch(self._database.sql(_STORED), since_day or "")
        ledger = UsageLedger(usage_row(*row) for row in rows)
        reached, is_last = await self._reached(), False
        while not is_last:
            reached, is_last = await self._add(ledger, reached)
        if reached.unread:
            run_id, seq = reached.unread[0]
            text = mark("{path}: event {seq} of run {run_id!r}, which usage is summed from, cannot be read.")
            message = translate(text, path=self._database.location, seq=seq, run_id=run_id)
            raise JournalCorrupt(message, hint=translate("`tao verify` finds the run."))
        return ledger.rows(since_day)

    async def update(self) -> bool:
        """Add some events and store the sums. True: there were no more."""
        await schema.lock(self._connection, self._database.settings.schema, _NOTE)
        before, ledger = await self._reached(), UsageLedger()
        reached, is_last = await self._add(ledger, before)
        for row in ledger.rows():
            group = (row.day, row.key, row.agent, row.model)
            counts = add_counts(row, await self._connection.fetchval(self._database.sql(_COUNTS), *group))
            await self._connection.execute(self._database.sql(_STORE), *group, counts)
        if reached != before:
            await self._note(reached)
        return is_last

    async def skip_own(self) -> None:
        """Count nothing that this transaction stores: it was counted before, elsewhere. After `update`."""
        reached = await self._reached()
        own = int(await self._connection.fetchval("SELECT pg_current_xact_id()::text"))
        limit, running = reached.position
        # Whatever began in between is not counted yet, and stays new.
        position = SnapshotPosition(max(limit, own + 1), tuple({*running, *range(limit, own)} - {own}))
        await self._note(reached._replace(position=position))

    async def replace(self, rows: Sequence[UsageRow]) -> None:
        """Take these sums in the place of those that are stored."""
        await self._connection.execute(self._database.sql("DELETE FROM @.spending"))
        for row in rows:
            group = (row.day, row.key, row.agent, row.model)
            await self._connection.execute(self._database.sql(_STORE), *group, add_counts(row, None))

    async def _note(self, reached: _Reached) -> None:
        text = json.dumps({"position": str(reached.position), "unread": reached.unread}, ensure_ascii=False)
        await schema.note(self._connection, self._database.settings.schema, _NOTE, text)

    async def _reached(self) -> _Reached:
        text = await self._connection.fetchval(self._database.sql(_POSITION))
        if text is None:
            return _Reached(START)
        stored = json.loads(text)
        unread = tuple((run_id, seq) for run_id, seq in stored["unread"])
        return _Reached(parse_position(stored["position"]), unread)

    async def _add(self, ledger: UsageLedger, reached: _Reached) -> tuple[_Reached, bool]:
        """Add the events of the part after a position; how far that went, and whether it was to the end."""
        connection, sql, unread = self._connection, self._database.sql, list[tuple[str, int]]()
        for run_id, seq in reached.unread:  # somebody may have restored it
            row = await connection.fetchrow(sql(_EVENT), run_id, seq)
            if row is not None and not await self._add_event(ledger, *row):
                unread.append((run_id, seq))
        position, is_last = await read_part(connection, self._database, reached.position, _AT_ONCE)
        values = (*reached.position.values, *position.values, list(COUNTED_KINDS))
        for row in await connection.fetch(sql(_EVENTS), *values):
            if not await self._add_event(ledger, *row):
                unread.append((row[0], row[1]))
        return _Reached(position, tuple(unread)), is_last

    async def _add_event(self, ledger: UsageLedger, run_id: str, seq: int, at: float, kind: str, body: str) -> bool:
        origin = await self._origin(run_id)
        try:
            add_stored_event(ledger, origin, seq, at, kind, body)
        except UNREADABLE:  # it was edited
            return False
        return True

    async def _origin(self, run_id: str) -> RunOrigin:
        if (origin := self._origins.get(run_id)) is None:
            agent, model, key, parent, start = await self._row(run_id) or ("", "", "", None, None)
            seen = {run_id}
            while parent is not None and parent not in seen and (outer := await self._row(parent)) is not None:
                seen.add(parent)  # in case somebody made the runs each other's parents
                _, _, key, parent, _ = outer
            own = (await self._own(run_id)) if start is not None and _field(start, "forked_from") else (0, None)
            origin = self._origins[run_id] = RunOrigin(key, agent, model, *own)
        return origin

    async def _own(self, run_id: str) -> tuple[int, float | None]:
        """From which event on a fork's events are its own, and when it was forked."""
        for seq, at, body in await self._connection.fetch(self._database.sql(_RESUMED), run_id):
            if str(_field(body, "reason")).startswith(FORKED):
                return seq, at
        return 0, None

    async def _row(self, run_id: str) -> Any:
        return await self._connection.fetchrow(self._database.sql(_ROW), run_id)


def _field(body: str, name: str) -> Any:
    with suppress(ValueError, RecursionError, AttributeError):  # it was edited
        return json.loads(body).get(name)
    return None
