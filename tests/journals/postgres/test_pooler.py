"""Behind a pooler in transaction mode, which gives each transaction another session: here the session is emptied."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from taoloop.core.events import Finished
from taoloop.errors import JournalError
from taoloop.journals.postgres.journal import PostgresJournal
from taoloop.journals.queries import RunQuery
from taoloop.journals.retention import Retention
from taoloop.testing.journal_contract import DAY_S, STARTED, events, note, refused, start_run
from taoloop.testing.postgres_server import PostgresServer

OVER = Finished(status="completed", answer="5", reason="answered")
_QUERY = b"DISCARD ALL\x00"
_DISCARD = b"Q" + struct.pack(">i", len(_QUERY) + 4) + _QUERY


class _Session:
    """One connection of a client, passed on; between two transactions all that the session knows is discarded."""

    def __init__(self, server: asyncio.StreamWriter) -> None:
        self._server = server
        self._is_idle, self._swallows = False, False
        self._discarded = asyncio.Event()

    async def send(self, client: asyncio.StreamReader) -> None:
        while data := await client.read(65_536):
            if self._is_idle:
                self._is_idle, self._swallows = False, True
                self._server.write(_DISCARD)
                await self._discarded.wait()
                self._discarded.clear()
            self._server.write(data)
        self._server.close()

    async def receive(self, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await server.readexactly(5)
                body = await server.readexactly(struct.unpack(">i", head[1:])[0] - 4)
                is_ready = head[:1] == b"Z"
                if not self._swallows:
                    self._is_idle = is_ready and body == b"I"
                    client.write(head + body)
                elif is_ready:
                    self._swallows = False
                    self._discarded.set()
        client.close()


@asynccontextmanager
async def pooler(folder: Path, server: PostgresServer) -> AsyncIterator[None]:
    """A pooler whose socket is in `folder`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_unix_connection(server.folder / ".s.PGSQL.5432")
        session = _Session(upstream[1])
        await asyncio.gather(session.send(reader), session.receive(upstream[0], writer), return_exceptions=True)

    listening = await asyncio.start_unix_server(serve, folder / ".s.PGSQL.5432")
    try:
        yield
    finally:
        listening.close()
        await listening.wait_closed()


def test_a_journal_works_behind_a_pooler(url: str, server: PostgresServer, tmp_path: Path) -> None:
    pooled = url.replace(str(server.folder), str(tmp_path))

    async def body() -> None:
        async with pooler(tmp_path, server):
            async with PostgresJournal(f"{pooled}&pooler=1") as journal:
                leases = [await start_run(journal, f"r{number}") for number in range(3)]
                await asyncio.gather(*(journal.append(lease, events(note(1), start=1)) for lease in leases))
                await journal.append(await journal.acquire("r1"), events(OVER, start=2))
                new = await journal.begin("r3")
                await journal.append(new, events(STARTED, OVER, at=99 * DAY_S))
                assert [row.events for row in await journal.runs()] == [2, 2, 3, 2]
                assert len((await journal.find(RunQuery(text="posts"))).rows) == 4
                assert [row.runs for row in await journal.usage()] == [3, 1]
                assert (await journal.verify_log()).flaws == ()
                growth = await anext(journal.tail("0", interval_s=0.001))
                assert growth.runs == {"r0": 1, "r1": 2, "r2": 1, "r3": 1}
                assert len((await journal.prune(Retention(days=1), now=200 * DAY_S)).pruned) == 2
            async with PostgresJournal(pooled, reconnect_s=0) as unaware:
                await refused(JournalError, _often(unaware))

    asyncio.run(body())


async def _often(journal: PostgresJournal) -> None:
    """The second time the driver names a statement that the session does not know any more."""
    for _ in range(3):
        await journal.load("r2")
