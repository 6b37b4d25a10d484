"""Search over the runs of a PostgreSQL journal: an index in the database, brought up to date by whoever searches.

Writers do nothing for it. A reader adds what has changed since the position of the index, a bounded number of events at
a time. The words are those of the SQLite journal (`taoloop.core.words`): without accents, English without its endings,
of Chinese every character and every pair; a run that is at work is found by its task, all of it once it waits or is
over.
"""

from __future__ import annotations

import json
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from taoloop.core.words import index_terms, query_terms
from taoloop.journals.base import RUNNING
from taoloop.journals.postgres import schema
from taoloop.journals.postgres.positions import START, WITHIN, parse_position, read_part
from taoloop.journals.search_index import INDEXED_KINDS, MOST_CHARS, VERSION, Document, document_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taoloop.journals.postgres.connections import JournalDatabase
    from taoloop.journals.postgres.driver import PostgresConnection

_AT_ONCE = 2_000
"""Events that are looked at in one part."""

_MOST_BYTES = 700_000  # of the words of a run: PostgreSQL holds at most 1 MB
_LONGEST_WORD = 200  # characters

_NOTE: Final = "search"
_POSITION = "SELECT value FROM @.about WHERE key = 'search'"
_GREW = f"""
SELECT run.number, run.born, id, status, task, EXISTS (SELECT 1 FROM @.run_words WHERE run_words.number = run.number)
FROM @.run JOIN (SELECT DISTINCT number, born FROM @.event WHERE {WITHIN}) AS grown USING (number, born)
"""  # noqa: S608  # no input
_EVENTS = "SELECT kind, body FROM @.event WHERE number = $1 AND born = $2 AND kind = ANY($3::text[]) ORDER BY seq"
_PUT = """
INSERT INTO @.run_words SELECT number, id, array_to_tsvector(ARRAY(
  SELECT DISTINCT coalesce((ts_lexize('@.stem', word))[1], word) FROM unnest($2::text[]) AS word
)) FROM @.run WHERE number = $1
ON CONFLICT (number) DO UPDATE SET words = excluded.words
"""
_STEMS = "SELECT DISTINCT coalesce((ts_lexize('@.stem', word))[1], word) FROM unnest($1::text[]) AS word"


async def update_search(database: JournalDatabase, connection: PostgresConnection) -> bool:
    """Add a part of what the index lacks, in a transaction. True: nothing is left."""
    await schema.lock(connection, database.settings.schema, _NOTE)
    noted = await connection.fetchval(database.sql(_POSITION))
    version, _, text = (noted or "").partition(" ")
    if version != str(VERSION):
        await connection.execute(database.sql("DELETE FROM @.run_words"))
        text = str(START)
    position = parse_position(text)
    reached, is_last = await read_part(connection, database, position, _AT_ONCE)
    if reached == position and noted is not None:
        return True
    for number, born, _, status, task, is_known in await connection.fetch(
        database.sql(_GREW), *position.values, *reached.values
    ):
        if status != RUNNING:
            events = await connection.fetch(database.sql(_EVENTS), number, born, list(INDEXED_KINDS))
            document = _document(events)
        elif not is_known:
            document = Document(task.decode("utf-8", "replace"))
        else:
            continue
        await connection.execute(database.sql(_PUT), number, _index_words(document))
    await schema.note(connection, database.settings.schema, _NOTE, f"{VERSION} {reached}")
    return is_last


async def matching(database: JournalDatabase, text: str, connection: PostgresConnection) -> str | None:
    """The words of a text as `@@` wants them; None: no text is looked for; "": nothing can be found by it."""
    if not text.strip():
        return None
    words = [_plain(word)[:_LONGEST_WORD] for word in query_terms(text)]
    stems = [row[0] for row in await connection.fetch(database.sql(_STEMS), words)] if words else []
    return " & ".join("'" + stem.replace("\\", "\\\\").replace("'", "''") + "'" for stem in stems)


def _document(rows: Iterable[tuple[str, str]]) -> Document:
    facts = []
    for kind, body in rows:
        with suppress(ValueError, RecursionError):  # edited, which `tao verify` shows: it is not found by this event
            fields: Any = json.loads(body)
            if isinstance(fields, dict):
                facts.append((kind, fields))
    return document_of(facts)


def _index_words(document: Document) -> list[str]:
    """The words of a run, each once, as many as PostgreSQL can hold."""
    words: dict[str, None] = {}
    room = _MOST_BYTES
    for part in document:
        for term in index_terms(part[:MOST_CHARS]):
            word = _plain(term)[:_LONGEST_WORD]
            if word and word not in words:
                words[word] = None
                room -= len(word.encode()) + 8
                if room < 0:
                    return list(words)
    return list(words)


def _plain(word: str) -> str:
    """A word without its accents."""
    if word.isascii():
        return word.replace("\x00", "")
    marks = unicodedata.normalize("NFD", word)
    plain = "".join(char for char in marks if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", plain)
