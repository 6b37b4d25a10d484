"""Appends to the database: what waits travels together, and what became of it is known even if the server goes away.

The problem: an append is a round trip and a wait for the disk, and costs more in the driver than in the server. A
worker with a hundred runs would spend its time on that. And a connection that breaks while a statement is on its way
leaves open whether its events are stored; to send them again could store them twice, to give up could lose them.

The idea: while statements are on their way, further appends gather, and go with the next one: the driver sends all of
them at once, in one transaction. Of a run at most one append is on its way, so their order is that of the calls. After
a broken connection the writer looks: the link of the event in question tells whether the events are there, because a
link covers all that came before it. If they are not, they are sent again, under the same fence, the same number of
events and the same last link: a first statement that is still at work in the server holds the row, and whichever of the
two is second changes nothing.

The invariant: an append that returns is committed, once; one that is refused changed nothing and harms no other. One
whose outcome nobody could find out raises JournalUnreachable, which says so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg

from taoloop.core.stored_events import event_hash, genesis_hash
from taoloop.errors import IllegalEvent, JournalError
from taoloop.journals.base import RUNNING, Lease, translate
from taoloop.journals.postgres import schema
from taoloop.journals.postgres.connections import JournalDatabase
from taoloop.journals.postgres.errors import code_of, explain, is_lost
from taoloop.journals.postgres.statements import (
    HEADS,
    WriteStatement,
    append_statement,
    append_values,
    status_of,
)
from taoloop.journals.refusals import fence_lost, run_exists, run_missing
from taoloop.journals.stored_append import Append
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.journals.postgres.driver import PostgresConnection
_AT_ONCE = 2
"""Statements on their way: one waits for the disk while the next one is made."""

_MOST = 64
"""Appends in one transaction."""

_ATTEMPTS = 20
"""How often an append that met other writers is decided anew."""

_HEADS_KEPT = 4_096

_LINK = """
SELECT link FROM @.event WHERE seq = $2 AND number = (SELECT number FROM @.run WHERE id = $1)
AND born = (SELECT born FROM @.run WHERE id = $1)
"""
_KEPT = """
SELECT count(*) FROM @.artifact WHERE ref = ANY($2::text[]) AND number = (SELECT number FROM @.run WHERE id = $1)
AND born = (SELECT born FROM @.run WHERE id = $1)
"""


class Head(NamedTuple):
    """What may be appended to a run."""

    fence: int
    """The fence of the newest lease."""
    next_seq: int
    """The seq of the next event."""
    link: bytes
    """The link of the last event; empty before the first one."""
    status: str | None = None
    """The status of the run, if this process wrote it."""


class PendingAppend:
    """One append that waits, or is on its way."""

    __slots__ = ("append", "future", "is_new", "is_stored", "kind", "links", "was_sent")

    def __init__(self, append: Append, future: asyncio.Future[None], *, is_new: bool) -> None:
        self.append, self.future, self.is_new = append, future, is_new
        self.kind = WriteStatement(is_new, append.first == 0 and not is_new, bool(append.artifacts))
        self.links: list[bytes] = []
        self.is_stored = False  # once the transaction is committed
        self.was_sent = False  # with an outcome that is not known


class AppendWriter:
    """The appends of one journal in one event loop. `lease_s` tells how long a lease that is held now goes on."""

    def __init__(self, database: JournalDatabase, lease_s: Callable[[str, int], float | None]) -> None:
        self._database, self._lease_s = database, lease_s
        self._queue: deque[PendingAppend] = deque()
        self._flights: set[asyncio.Task[None]] = set()
        self._busy: set[str] = set()  # the runs with an append on its way
        self._heads: dict[str, Head] = {}

    async def append(self, append: Append, *, is_new: bool) -> None:
        """Store an append; returns when it is committed. Cancelling the caller does not undo it."""
        ticket = PendingAppend(append, asyncio.get_running_loop().create_future(), is_new=is_new)
        self._queue.append(ticket)
        self._launch()
        await ticket.future

    def learn(self, lease: Lease, next_seq: int, link: bytes, status: str | None = None) -> None:
        """Note the head of a run that was just acquired or created."""
        if len(self._heads) > _HEADS_KEPT:
            self._heads.clear()
        self._heads[lease.run_id] = Head(lease.fence, next_seq, link, status)

    def is_running(self, lease: Lease) -> bool:
        """Whether the run is still running under this lease, for all that this process knows."""
        head = self._heads.get(lease.run_id)
        return head is None or head.fence != lease.fence or head.status in (None, RUNNING)

    async def drain(self) -> None:
        """Wait until all appends are stored or refused."""
        while self._flights:
            await asyncio.wait(self._flights)

    def _launch(self) -> None:
        while self._queue and len(self._flights) < _AT_ONCE:
            if not (tickets := self._next()):
                return
            flight = asyncio.create_task(self._fly(tickets))
            self._flights.add(flight)
            flight.add_done_callback(self._land)

    def _land(self, flight: asyncio.Task[None]) -> None:
        self._flights.discard(flight)
        if not flight.cancelled():
            flight.result()
        self._launch()

    def _next(self) -> list[PendingAppend]:
        """The appends that may go together: of one statement, and of runs that have none on its way."""
        tickets: list[PendingAppend] = []
        postponed: list[PendingAppend] = []
        passed: set[str] = set()
        while self._queue and len(tickets) < _MOST:
            ticket = self._queue.popleft()
            run_id = ticket.append.run_id
            is_other = bool(tickets) and ticket.kind != tickets[0].kind
            if run_id in self._busy or run_id in passed or is_other:
                passed.add(run_id)
                postponed.append(ticket)
                continue
            passed.add(run_id)
            tickets.append(ticket)
        self._queue.extendleft(reversed(postponed))
        self._busy |= {ticket.append.run_id for ticket in tickets}
        return tickets

    async def _fly(self, tickets: list[PendingAppend]) -> None:
        try:
            await self._store_together(tickets)
        except BaseException as error:
            for ticket in tickets:
                if not ticket.future.done():
                    _settle(ticket, explain(error, self._database.location) if isinstance(error, Exception) else None)
            if not isinstance(error, Exception):
                raise
        finally:
            self._busy -= {ticket.append.run_id for ticket in tickets}

    async def _store_together(self, tickets: list[PendingAppend]) -> None:
        """Store the appends in one transaction, and each alone where that fails."""
        try:
            rest = await self._commit(tickets)
        except Exception as error:  # noqa: BLE001  # each is tried alone, which says what is wrong
            for ticket in tickets:
                ticket.was_sent = ticket.was_sent or (is_lost(error) and bool(ticket.links))
            rest = tickets
        for ticket in rest:
            if not ticket.future.done():
                await self._store_alone(ticket)

    async def _store_alone(self, ticket: PendingAppend) -> None:
        """Store one append, however often the server goes away meanwhile."""

        async def attempt(_work: object) -> None:
            was_refused = False
            for _ in range(_ATTEMPTS):
                try:
                    rest = await self._commit([ticket])
                except asyncpg.CheckViolationError:  # there is no partition for its month yet
                    await self._database.once(self._make_partitions)
                    continue
                except Exception as error:
                    ticket.was_sent = ticket.was_sent or (is_lost(error) and bool(ticket.links))
                    if code_of(error) != "23505" or not ticket.was_sent or was_refused:
                        raise
                    was_refused = True  # unless its own artifacts are those that are there already
                else:
                    if not rest:
                        return
                self._heads.pop(ticket.append.run_id, None)
            text = mark("{path}: run {run_id!r} is changed by others all the time; nothing was written.")
            values = {"path": self._database.location, "run_id": ticket.append.run_id}
            raise JournalError(translate(text, **values), hint=translate("Stop the other workers of the run."))

        try:
            await self._database.retry(attempt, None)
        except Exception as error:  # noqa: BLE001  # it is raised where the caller waits
            _settle(ticket, error)

    async def _commit(self, tickets: Sequence[PendingAppend]) -> list[PendingAppend]:
        """Send the appends and commit them; only then are they answered. Returns those to decide anew."""
        for ticket in tickets:
            ticket.is_stored = False
        rest = await self._database.once(lambda connection: self._send(connection, tickets))
        for ticket in tickets:
            if ticket.is_stored:
                self._stored(ticket)
        return rest

    async def _make_partitions(self, connection: PostgresConnection) -> None:
        await schema.make_partitions(connection, self._database.settings.schema)

    async def _send(self, connection: PostgresConnection, tickets: Sequence[PendingAppend]) -> list[PendingAppend]:
        """Send the appends of one statement; returns those that have to be decided anew."""
        await self._look_up(connection, tickets)
        ready: list[tuple[PendingAppend, list[Any]]] = []
        rest: list[PendingAppend] = []
        for ticket in tickets:
            if ticket.was_sent and await self._is_stored(connection, ticket):
                ticket.is_stored = True
                continue
            try:
                ready.append((ticket, self._decide(ticket)))
            except Exception as refusal:  # noqa: BLE001  # it is raised where the caller waits
                _settle(ticket, refusal)
        for kind in dict.fromkeys(ticket.kind for ticket, _ in ready):
            same = [(ticket, values) for ticket, values in ready if ticket.kind == kind]
            statement = self._database.sql(append_statement(kind))
            if len(same) == 1:
                rows = [await connection.fetchrow(statement, *same[0][1])]
            else:
                rows = await connection.fetchmany(statement, [values for _, values in same])
            for (ticket, _), row in zip(same, rows, strict=True):
                if row is not None and row["number"] is not None:
                    ticket.is_stored = True
                elif not ticket.is_new:
                    self._heads.pop(ticket.append.run_id, None)
                    rest.append(ticket)
                elif ticket.was_sent and await self._is_stored(connection, ticket):
                    ticket.is_stored = True
                else:  # the run is there, or was removed by retention
                    _settle(ticket, run_exists(self._database.location, ticket.append.run_id))
        return rest

    async def _look_up(self, connection: PostgresConnection, tickets: Sequence[PendingAppend]) -> None:
        """Learn the heads of the runs that are not known to fit."""
        missing = [ticket.append.run_id for ticket in tickets if ticket.was_sent or not self._fits(ticket)]
        if missing:
            for run_id in missing:
                self._heads.pop(run_id, None)
            for run_id, fence, events, link in await connection.fetch(self._database.sql(HEADS), missing):
                self._heads[run_id] = Head(fence, events, link)

    def _fits(self, ticket: PendingAppend) -> bool:
        append, head = ticket.append, self._heads.get(ticket.append.run_id)
        if ticket.is_new:
            return head is None and not ticket.was_sent
        return head is not None and head.fence == append.fence and append.first in (None, head.next_seq)

    def _decide(self, ticket: PendingAppend) -> list[Any]:
        """The values of an append that may be sent.

        Raises:
            RunExists, RunNotFound, FenceLost, IllegalEvent: it may not.
        """
        append, location = ticket.append, self._database.location
        head = self._heads.get(append.run_id)
        if ticket.is_new:
            if head is not None:
                raise run_exists(location, append.run_id)
            head = Head(append.fence, 0, b"")
        if head is None:
            raise run_missing(location, append.run_id)
        if head.fence != append.fence:
            raise fence_lost(location, append.run_id)
        if append.first not in (None, head.next_seq):
            raise IllegalEvent(f"Run {append.run_id!r} expects event {head.next_seq}, not {append.first}.")
        before = head.link or genesis_hash(append.run_id)
        ticket.links = list(accumulate(append.contents, event_hash, initial=before))[1:]
        append = append._replace(first=head.next_seq)
        lease_s = self._lease_s(append.run_id, append.fence)
        return append_values(ticket.kind, append, head.link, ticket.links, lease_s)

    async def _is_stored(self, connection: PostgresConnection, ticket: PendingAppend) -> bool:
        """Whether an append is there whose outcome was not known."""
        append, run_id = ticket.append, ticket.append.run_id
        if append.first is None:
            refs = list({row[1] for row in append.artifacts})
            return bool(refs) and len(refs) == await connection.fetchval(self._database.sql(_KEPT), run_id, refs)
        last = append.first + len(append.rows) - 1
        return bool(await connection.fetchval(self._database.sql(_LINK), run_id, last) == ticket.links[-1])

    def _stored(self, ticket: PendingAppend) -> None:
        append = ticket.append
        known = self._heads.get(append.run_id)
        fence = append.fence if known is None or ticket.is_new else known.fence
        status = status_of(append) or (None if known is None else known.status)
        if append.first is not None:
            self.learn(
                Lease(run_id=append.run_id, fence=fence),
                append.first + len(append.rows),
                ticket.links[-1],
                status,
            )
        _settle(ticket, None)


def _settle(ticket: PendingAppend, error: Exception | None) -> None:
    if ticket.future.done():  # cancelled: it is written, but nobody waits for it
        return
    if error is None:
        ticket.future.set_result(None)
    else:
        ticket.future.set_exception(error)
