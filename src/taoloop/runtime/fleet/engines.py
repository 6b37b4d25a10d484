"""Which engine an address names. The one place where engines are looked up."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from taoloop.core.agent_spec import DEFAULT_QUEUE
from taoloop.errors import ConfigError, MissingExtra
from taoloop.journals.base import Journal
from taoloop.journals.postgres.connections import JournalDatabase
from taoloop.runtime.fleet.engine import Engine
from taoloop.runtime.fleet.local_engine import DEFAULT_LEASE_S, LocalEngine
from taoloop.runtime.fleet.postgres_engine import PostgresEngine
from taoloop.runtime.fleet.postgres_queue import PostgresQueue

ENGINE_VARIABLE: Final = "TAOLOOP_ENGINE"
"""The environment variable with the address of the engine, where none is named otherwise."""

_IN_MEMORY: WeakKeyDictionary[Journal, LocalEngine] = WeakKeyDictionary()
"""The engines of journals in memory: whoever submits and whoever serves must meet in one."""


def require_engine_address(address: str) -> None:
    """Refuse what names no engine.

    Raises:
        ConfigError: says what an address looks like.
    """
    is_temporal = re.fullmatch(r"temporal://(\[[0-9a-fA-F:.]+\]|[^\s/:@\[\]]+)(:\d{1,5})?/[^\s/?#]+/?", address)
    if address not in ("", "local", "postgres") and not is_temporal:
        raise ConfigError(
            f"{address!r} names no engine.", hint="Write local, postgres or temporal://HOST:PORT/NAMESPACE."
        )


@asynccontextmanager
async def open_engine(
    address: str | None,
    journal: Journal,
    *,
    queues: Sequence[str] = (DEFAULT_QUEUE,),
    concurrency: int = 10,
    lease_s: float = DEFAULT_LEASE_S,
) -> AsyncIterator[Engine]:
    """The engine at an address, open as long as the block runs, for the runs of `journal`.

    Args:
        address: `local` (a file beside a SQLite journal), `postgres` (in the database of the journal) or
            `temporal://HOST:PORT/NAMESPACE`. None or empty: the variable `TAOLOOP_ENGINE`, else the one that needs
            nothing but the journal.
        journal: The journal of the runs.
        queues: The queues that `serve` takes runs from.
        concurrency: How many runs `serve` advances at once.
        lease_s: How long a worker that says nothing keeps its runs; Temporal gives it 5 seconds, whatever this is.

    Raises:
        ConfigError: the address names none, or the engine does not fit the journal or needs what is not here.
        JournalError: it cannot be reached.
    """
    address = address or os.environ.get(ENGINE_VARIABLE, "").strip()
    require_engine_address(address)
    database: object = getattr(journal, "database", None)
    if isinstance(database, JournalDatabase) and not address.startswith("temporal:"):
        if address == "local":
            raise ConfigError(
                "The engine local has no file beside a PostgreSQL journal.",
                hint="Leave the engine out: workers share the runs by the journal itself.",
            )
        yield PostgresEngine(PostgresQueue(database), queues=queues, concurrency=concurrency, lease_s=lease_s)
        return
    if address == "postgres":
        raise ConfigError(
            "The engine postgres needs a PostgreSQL journal.",
            hint="Name the journal with --db postgresql://…, or use --engine local.",
        )
    if address.startswith("temporal:"):
        yield await _open_temporal(address, queues, concurrency)
        return
    path: object = getattr(journal, "path", None)
    if not isinstance(path, Path):
        if journal not in _IN_MEMORY:
            _IN_MEMORY[journal] = LocalEngine(None, queues=queues, concurrency=concurrency, lease_s=lease_s)
        yield _IN_MEMORY[journal]
        return
    async with LocalEngine(queue_beside(path), queues=queues, concurrency=concurrency, lease_s=lease_s) as engine:
        yield engine


async def _open_temporal(address: str, queues: Sequence[str], concurrency: int) -> Engine:
    try:
        from taoloop.runtime.fleet.temporal.connection import connect  # noqa: PLC0415  # an extra
        from taoloop.runtime.fleet.temporal.engine import TemporalEngine  # noqa: PLC0415  # an extra
    except ImportError as error:  # it is missing, or of an older version
        raise MissingExtra(
            "The engine temporal needs the extra: pip install 'taoloop[temporal]'.", hint="Or use --engine local."
        ) from error
    return TemporalEngine(await connect(address), queues=queues, concurrency=concurrency)


def queue_beside(database: Path) -> Path:
    """The file of the local engine for the journal in the file `database`."""
    whole = Path(os.path.realpath(database))
    return whole.with_name(f"{whole.name}-queue")
