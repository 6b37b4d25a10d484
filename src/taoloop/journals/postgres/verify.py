"""Whether a run in a PostgreSQL journal is as it was written: its events, its artifacts and its row in the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taoloop.core.stored_events import ChainError, ChainReport, check, genesis_hash
from taoloop.journals.base import translate
from taoloop.journals.postgres.reading import OF_RUN, linked_rows
from taoloop.journals.postgres.statements import stored_text
from taoloop.journals.run_check import artifact_flaws, row_flaws
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

_ROW = """
SELECT link, sealed_later, events, status, task, agent, started_at, parent, key, model, description
FROM @.run WHERE id = $1
"""
_ARTIFACTS = f"SELECT ref, form, body FROM @.artifact WHERE {OF_RUN} ORDER BY ref"  # noqa: S608  # no input


async def verify(database: JournalDatabase, run_id: str, connection: PostgresConnection) -> ChainReport:
    """Look through one run, in a transaction of one snapshot. Linear in its size; nothing is changed.

    Raises:
        RunNotFound: there is no such run.
    """
    rows = await linked_rows(database, run_id, connection)
    head = rows[-1].link if rows else genesis_hash(run_id)
    link, sealed_later, events, status, task, *columns, description = await connection.fetchrow(
        database.sql(_ROW), run_id
    )
    flaws = check(run_id, rows, link or genesis_hash(run_id))
    if events != len(rows) and not any(flaw.what == "cut" for flaw in flaws):
        text = mark("the list of runs gives another {name} than the events do ({value})")
        flaws.append(ChainError(None, "run_row", translate(text, name="events", value=events)))
    stored = (status, task.decode("utf-8", "replace"), *columns, (description or b"").hex().upper())
    flaws += row_flaws(rows, stored, stored_text)
    if rows:  # else it is replaced when it is created again
        flaws += artifact_flaws(rows, await connection.fetch(database.sql(_ARTIFACTS), run_id))
    return ChainReport(run_id=run_id, events=len(rows), head=head.hex(), flaws=tuple(flaws), sealed_later=sealed_later)
