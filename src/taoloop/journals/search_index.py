"""Full-text search over runs: SQLite FTS5 with the words that `recall` and documents are found by.

The index is derived from what is stored, and may be deleted at any time. A document is a run; its number is the order
of creation, so that the newest hits come first without sorting.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from taoloop.core.words import TOKENIZER, index_terms, query_terms
from taoloop.errors import JournalError
from taoloop.journals.base import translate

VERSION: Final = 1
"""Raised when what is indexed changes; an index of another version is made anew."""

INDEXED_KINDS = ("run_started", "action_requested", "observed", "model_erred", "reply_rejected", "finished")
"""The kinds of events that have a part in a document."""

MOST_CHARS: Final = 50_000
"""Of each part of a document: long texts are found by their beginning."""

_TABLES = f"""
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE document (number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE);
CREATE VIRTUAL TABLE run_words USING fts5(
  task, answer, tools, errors, detail='column', columnsize=0, tokenize='{TOKENIZER}'
);
INSERT INTO about VALUES ('version', '{VERSION}');
"""  # noqa: S608  # no input
_HITS = """
SELECT run_words.rowid, run_id FROM run_words JOIN document ON number = run_words.rowid
WHERE run_words MATCH ? AND run_words.rowid < ? ORDER BY run_words.rowid DESC LIMIT ?
"""
_NUMBERS = "SELECT json_group_array(rowid) FROM run_words WHERE run_words MATCH ?"


class Document(NamedTuple):
    """What a run is found by."""

    task: str
    """Its task."""
    answer: str = ""
    """Its answer."""
    tools: str = ""
    """The tools that it called, with their arguments."""
    errors: str = ""
    """What went wrong."""


class SearchIndex:
    """The index in a SQLite database, which is made if it is empty. Whoever changes it begins and ends transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            self._make()

    def about(self, key: str) -> str | None:
        """A value that was noted with the index; None if there is none."""
        row = self.connection.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def note(self, key: str, value: str) -> None:
        """Note a value."""
        self.connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, value))

    def clear(self) -> None:
        """Forget all documents and notes but the version."""
        self.connection.execute("DELETE FROM run_words")
        self.connection.execute("DELETE FROM document")
        self.connection.execute("DELETE FROM about WHERE key != 'version'")

    def put(self, number: int, run_id: str, document: Document) -> None:
        """Add a run, or replace what it is found by."""
        self.remove([run_id])
        self.connection.execute("DELETE FROM run_words WHERE rowid = ?", (number,))
        self.connection.execute("INSERT OR REPLACE INTO document VALUES (?, ?)", (number, run_id))
        words = [" ".join(index_terms(part[:MOST_CHARS])) for part in document]
        self.connection.execute(
            "INSERT INTO run_words (rowid, task, answer, tools, errors) VALUES (?, ?, ?, ?, ?)", (number, *words)
        )

    def has(self, run_id: str) -> bool:
        """Whether a run is in it."""
        return self.connection.execute("SELECT 1 FROM document WHERE run_id = ?", (run_id,)).fetchone() is not None

    def remove(self, run_ids: Iterable[str]) -> None:
        """Remove runs; those that are not in it are ignored."""
        for run_id in run_ids:
            row = self.connection.execute("SELECT number FROM document WHERE run_id = ?", (run_id,)).fetchone()
            if row is not None:
                self.connection.execute("DELETE FROM run_words WHERE rowid = ?", row)
                self.connection.execute("DELETE FROM document WHERE number = ?", row)

    def hits(self, text: str, below: int, limit: int) -> list[tuple[int, str]]:
        """The newest runs with all words of a text whose number is below a number: numbers and ids."""
        matching = _matching(text)
        return self.connection.execute(_HITS, (matching, below, limit)).fetchall() if matching else []

    def numbers(self, text: str) -> str:
        """The numbers of all runs with all words of a text, as a JSON array: SQLite makes and reads it by itself."""
        matching = _matching(text)
        return str(self.connection.execute(_NUMBERS, (matching,)).fetchone()[0]) if matching else "[]"

    def _make(self) -> None:
        try:
            self.connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT")
        except sqlite3.OperationalError as error:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            if "already exists" in str(error):  # another process made it at this moment
                return
            if "fts5" not in str(error):
                raise
            message = translate("Runs cannot be searched: this Python's SQLite has no full-text search (FTS5).")
            raise JournalError(message, hint=translate("Use a Python whose SQLite has it.")) from error
        if sqlite3.sqlite_version_info >= (3, 42, 0):  # else the words of removed runs stay until FTS5 merges its pages
            self.connection.execute("INSERT INTO run_words (run_words, rank) VALUES ('secure-delete', 1)")


def _matching(text: str) -> str:
    """The words of a text as FTS5 wants them; empty if there is none."""
    return " ".join(f'"{term}"' for term in query_terms(text))


def document_of(facts: Iterable[tuple[str, Mapping[str, Any]]]) -> Document:
    """What a run is found by, from the kinds and the stored fields of its events."""
    task, answer, tools, errors = "", "", _Part(), _Part()
    for kind, fields in facts:
        match kind:
            case "run_started":
                task = str(fields.get("task") or "")
            case "action_requested":
                tools.add(fields.get("tool"), *_leaves(fields.get("args")))
            case "observed":
                fault = fields.get("error")
                errors.add(*(fault.get(name) for name in ("code", "message")) if isinstance(fault, dict) else ())
            case "model_erred" | "reply_rejected":
                errors.add(fields.get("code"), fields.get("message"))
            case "finished":
                answer = str(fields.get("answer") or "")
                if fields.get("status") != "completed":
                    errors.add(fields.get("error"), fields.get("reason"))
    return Document(task, answer, tools.text, errors.text)


class _Part:
    """A part of a document; what is beyond its bound is left out."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}  # each once, in their order
        self._chars = 0

    def add(self, *texts: Any) -> None:
        for text in texts:
            if isinstance(text, str) and text and text not in self._texts and self._chars < MOST_CHARS:
                self._texts[text] = None
                self._chars += len(text)

    @property
    def text(self) -> str:
        return "\n".join(self._texts)


def _leaves(value: Any) -> Iterator[str]:
    """The names and values in arguments, as texts."""
    open_values = [value]
    while open_values:
        match open_values.pop():
            case dict() as mapping:
                yield from map(str, mapping)
                open_values += mapping.values()
            case list() | tuple() as items:
                open_values += items
            case str() as text:
                yield text
            case bool() | None:
                pass
            case number:
                yield json.dumps(number, default=str)
