"""The index of a folder: an SQLite file with the passages, the search terms of their sections, and their vectors.

The terms of a section are in the row of `passage_words` with the number of its first passage; the passages up to the
next row belong to it. A passage without a heading is a section of its own.

Everything in it comes from the documents, so it may be deleted at any time and is built again. Each use opens the file
by itself, so any thread or process may use it; the passages of a file are replaced in one transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from taoloop.core.words import TOKENIZER, index_terms, name_parts
from taoloop.errors import ToolError
from taoloop.tools.documents.readers import READER_VERSION, ParsedDocument, ParsedPassage
from taoloop.tools.documents.settings import DocumentFolder, printable_path
from taoloop.tools.private_database import DatabaseKind, open_database, transaction
from taoloop.tools.texts import TEXTS

BUSY_TIMEOUT_S = 10.0

TITLE_WEIGHT = 2.0
"""How much a word in the headings or in the file name counts, beside one in the text."""

MAX_SECTION_PASSAGES = 16
"""How many passages are scored as one section; a longer section counts as several."""

_SEPARATOR = "\x1f"  # between headings
_Passage = TypeVar("_Passage", bound=ParsedPassage)
_HINTS = {  # what to do, by a part of what SQLite says
    "fts5": "no_fts5",
    "locked": "locked_hint",
    **dict.fromkeys(("not a database", "malformed", "corrupt", "no such table"), "damaged_hint"),
}

_TABLES = f"""
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file (
  number INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  stamp TEXT NOT NULL,
  read_ns INTEGER NOT NULL,
  digest TEXT NOT NULL,
  kind TEXT NOT NULL,
  encoding TEXT NOT NULL,
  title TEXT NOT NULL,
  readable INTEGER NOT NULL,
  notes TEXT NOT NULL,
  hint TEXT NOT NULL
);
CREATE TABLE passage (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  file INTEGER NOT NULL REFERENCES file (number),
  ordinal INTEGER NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  line INTEGER NOT NULL,
  page INTEGER NOT NULL,
  heading TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (file, ordinal)
);
CREATE VIRTUAL TABLE passage_words USING fts5(titles, words, content='', tokenize='{TOKENIZER}');
INSERT INTO passage_words (passage_words, rank) VALUES ('rank', 'bm25({TITLE_WEIGHT}, 1.0)');
CREATE TABLE vector (number INTEGER PRIMARY KEY, signs BLOB NOT NULL, vector BLOB NOT NULL);
"""  # noqa: S608  # constants
_KIND = DatabaseKind(application_id=0x54616F44, version=1, tables=_TABLES)  # "TaoD"
_SECTION = "(SELECT max(id) FROM passage_words_docsize WHERE id <= passage.number)"
_SELECT_PASSAGE = f"""
SELECT passage.number, {_SECTION} AS section, passage.id, file.path AS file, ordinal, start, stop AS "end", line, page,
    heading, text
  FROM passage JOIN file ON file.number = passage.file
"""  # noqa: S608  # a constant


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedPassage(ParsedPassage):
    """A passage in the index."""

    number: int
    """Its row in the index."""
    section: int
    """The number of its section: that of the first passage of it."""
    file: str
    """The path of its file in the folder."""


class IndexTotals(NamedTuple):
    """What an index has in total."""

    passages: int = 0
    """How many passages."""
    sections: int = 0
    """How many sections."""
    terms: int = 0
    """How many terms, without those of titles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFile:
    """A file as it was when it was read."""

    path: str
    """Its path in the folder."""
    stamp: str
    """Its size, times and inode; another stamp means that it may have changed."""
    read_ns: int
    """When it was read, in nanoseconds since the epoch."""
    digest: str
    """The digest of its bytes; empty if they could not be read."""
    message: str = ""
    """Why it could not be read; empty if it could."""
    notes: tuple[str, ...] = ()
    """What of it could not be read."""
    hint: str = ""
    """What to do about `message`."""


class Index:
    """The index of one folder. `busy_s`: how many seconds a call waits for another process that is writing."""

    def __init__(self, settings: DocumentFolder, busy_s: float = BUSY_TIMEOUT_S) -> None:
        self.settings, self._busy_s = settings, busy_s
        self.path: Path = settings.index_file
        self._folder, self._path_text = printable_path(str(settings.folder)), printable_path(str(self.path))

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """A connection in autocommit mode for a `with` statement; a missing file is created.

        Raises:
            ToolError: `documents_unusable`: the file cannot be used; the error names it and says why.
        """
        try:
            with open_database(self.path, _KIND, self._busy_s, self._refusal) as database:
                if (folder := _about(database, "folder") or self._record_folder(database)) != self._folder:
                    raise self._refusal("other_folder", folder=folder)
                database.execute("PRAGMA synchronous = NORMAL")  # what a power failure takes is read from files again
                yield database
        except (sqlite3.Error, OSError) as error:
            raise self._unusable_error(error) from error

    def reset_if_outdated(self, database: sqlite3.Connection) -> bool:
        """Empty the index if it was built with other settings or by an older version; return whether it was."""
        if _about(database, "made_by") == self._fingerprint:
            return False
        with transaction(database):
            if _about(database, "made_by") == self._fingerprint:
                return False
            for table in ("vector", "passage", "file"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608  # a constant name
            database.execute("INSERT INTO passage_words (passage_words) VALUES ('delete-all')")
            _set_about(database, "made_by", self._fingerprint)
        return True

    @property
    def _fingerprint(self) -> str:
        return f"{READER_VERSION} {self.settings.reading_settings}"

    def _record_folder(self, database: sqlite3.Connection) -> str:
        """Record the folder of a new index; give back the one that another process has recorded, if it was first."""
        with transaction(database):
            if not _about(database, "folder"):
                _set_about(database, "folder", self._folder)
                _set_about(database, "generation", str(time.time_ns()))  # never one that a deleted index had
            return _about(database, "folder")

    def _refusal(self, problem: str, **values: Any) -> ToolError:
        return TEXTS.error(f"index_{problem}", "documents_unusable", index=self._path_text, **values)

    def _unusable_error(self, error: Exception) -> ToolError:
        reason = printable_path(str(error))
        hint = next((hint for part, hint in _HINTS.items() if part in reason), "index_unusable_hint")
        return TEXTS.error(
            "index_unusable",
            "documents_unusable",
            retryable="locked" in reason,
            hint=TEXTS.run_text(hint),
            index=self._path_text,
            reason=reason,
        )


def replace_file(database: sqlite3.Connection, file: IndexedFile, document: ParsedDocument | None) -> bool:
    """Replace the content of a file in the index; False if another process has read it later."""
    with transaction(database):
        row = database.execute("SELECT number, read_ns FROM file WHERE path = ?", (file.path,)).fetchone()
        if row is not None:
            if file.read_ns < row[1] <= time.time_ns():  # a time in the future comes from a wrong clock
                return False
            _delete_file(database, row[0], file.path)
        kind, encoding, title = (document.kind, document.encoding, document.title) if document else ("", "", "")
        readable = not file.message
        notes = "\n".join(file.notes) if readable else file.message
        cursor = database.execute(
            "INSERT INTO file (path, stamp, read_ns, digest, kind, encoding, title, readable, notes, hint)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (file.path, file.stamp, file.read_ns, file.digest, kind, encoding, title, readable, notes, file.hint),
        )
        for section in _split_sections(document.passages if document else ()):
            numbers = [_insert_passage(database, cursor.lastrowid, passage) for passage in section]
            words = _index_words(file.path, section)
            database.execute("INSERT INTO passage_words (rowid, titles, words) VALUES (?, ?, ?)", (numbers[0], *words))
        _advance_generation(database)
    return True


def confirm_unchanged(database: sqlite3.Connection, file: IndexedFile) -> None:
    """Record that a file has not changed."""
    database.execute(
        "UPDATE file SET stamp = ?, read_ns = ? WHERE path = ? AND digest = ?",
        (file.stamp, file.read_ns, file.path, file.digest),
    )


def remove_file(database: sqlite3.Connection, path: str) -> None:
    """Remove a file from the index."""
    with transaction(database):
        row = database.execute("SELECT number FROM file WHERE path = ?", (path,)).fetchone()
        if row is not None:
            _delete_file(database, row[0], path)
            _advance_generation(database)


def indexed_files(database: sqlite3.Connection) -> dict[str, IndexedFile]:
    """The files in the index, by path."""
    rows = database.execute("SELECT path, stamp, read_ns, digest, readable, notes, hint FROM file")
    return {
        path: IndexedFile(
            path=path,
            stamp=stamp,
            read_ns=read_ns,
            digest=digest,
            message="" if readable else notes,
            notes=tuple(notes.split("\n")) if readable and notes else (),
            hint=hint,
        )
        for path, stamp, read_ns, digest, readable, notes, hint in rows
    }


def embedder_name(database: sqlite3.Connection) -> str:
    """The embedding model of the vectors in the index."""
    return _about(database, "embedder")


def read_generation(database: sqlite3.Connection) -> int:
    """A number that changes with every change of the index."""
    return int(_about(database, "generation") or 0)


def title_text(path: str, heading: Iterable[str]) -> str:
    """The file name and the headings of a passage, as they are indexed."""
    name = path.rpartition("/")[2].rpartition(".")[0]
    return "\n".join((name, *heading))


def find_passages(database: sqlite3.Connection, where: str, values: Iterable[object]) -> list[IndexedPassage]:
    """The passages that satisfy a condition, which is a constant with `?` for the values."""
    cursor = database.execute(_SELECT_PASSAGE + where, tuple(values))
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    headings = (tuple(row["heading"].split(_SEPARATOR)) if row["heading"] else () for row in rows)
    return [IndexedPassage(**{**row, "heading": heading}) for row, heading in zip(rows, headings, strict=True)]


def find_sections(database: sqlite3.Connection, numbers: Collection[int]) -> list[list[IndexedPassage]]:
    """The passages of the sections with these numbers, in this order."""
    placeholders = ",".join("?" * len(numbers))
    where = f"""
WHERE passage.number IN (
  SELECT passage.number FROM passage_words_docsize AS first CROSS JOIN passage
      ON passage.number BETWEEN first.id AND first.id + {MAX_SECTION_PASSAGES - 1}
    WHERE first.id IN ({placeholders}) AND first.id = {_SECTION})
  ORDER BY passage.number
"""  # noqa: S608  # question marks
    passages = find_passages(database, where, numbers)
    sections = {number: [*section] for number, section in groupby(passages, key=lambda passage: passage.section)}
    return [sections[number] for number in numbers if number in sections]


def read_totals(database: sqlite3.Connection) -> IndexTotals:
    """What an index has in total; FTS5 keeps its number of rows and of terms (the "averages record")."""
    block = database.execute("SELECT block FROM passage_words_data WHERE id = 1").fetchone()[0]
    sections, _, terms = [*_read_varints(block), 0, 0, 0][:3]
    return IndexTotals(database.execute("SELECT count(*) FROM passage").fetchone()[0], sections, max(terms, 1))


def _read_varints(block: bytes) -> Iterator[int]:
    """The numbers in a block of SQLite: seven bits a byte, the highest first; the last byte of each is below 128."""
    number = 0
    for byte in block:
        number = number << 7 | byte & 127
        if byte < 128:
            yield number
            number = 0


def select_embedder(database: sqlite3.Connection, name: str) -> None:
    """Remove the vectors of another embedding model."""
    if _about(database, "embedder") != name:
        with transaction(database):
            database.execute("DELETE FROM vector")
            _set_about(database, "embedder", name)
            _advance_generation(database)


def add_vectors(database: sqlite3.Connection, name: str, rows: Iterable[tuple[int, bytes, bytes]]) -> None:
    """Store the vectors of existing passages (number, signs, vector), if `name` is still the model."""
    with transaction(database):
        if _about(database, "embedder") == name:
            database.executemany(
                "INSERT OR REPLACE INTO vector SELECT number, ?, ? FROM passage WHERE number = ?",
                ((signs, vector, number) for number, signs, vector in rows),
            )
            _advance_generation(database)


def _delete_file(database: sqlite3.Connection, number: int, path: str) -> None:
    """Delete a file and its passages; FTS5 needs the same words with which they were added."""
    sections = [*_split_sections(find_passages(database, "WHERE passage.file = ? ORDER BY ordinal", (number,)))]
    database.executemany(
        "INSERT INTO passage_words (passage_words, rowid, titles, words) VALUES ('delete', ?, ?, ?)",
        ((section[0].number, *_index_words(path, section)) for section in sections),
    )
    database.execute("DELETE FROM vector WHERE number IN (SELECT number FROM passage WHERE file = ?)", (number,))
    database.execute("DELETE FROM passage WHERE file = ?", (number,))
    database.execute("DELETE FROM file WHERE number = ?", (number,))


def _insert_passage(database: sqlite3.Connection, file: int | None, passage: ParsedPassage) -> int | None:
    """Insert a passage, and return its number."""
    position = (passage.ordinal, passage.start, passage.end, passage.line, passage.page)
    return database.execute(
        "INSERT INTO passage (id, file, ordinal, start, stop, line, page, heading, text)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (passage.id, file, *position, _SEPARATOR.join(passage.heading), passage.text),
    ).lastrowid


def _split_sections(passages: Iterable[_Passage]) -> Iterator[list[_Passage]]:
    """The passages of a file in their order, grouped by sections."""
    section: list[_Passage] = []
    for passage in passages:
        if section and (
            not passage.heading or passage.heading != section[0].heading or len(section) == MAX_SECTION_PASSAGES
        ):
            yield section
            section = []
        section.append(passage)
    if section:
        yield section


def _index_words(path: str, section: Sequence[ParsedPassage]) -> tuple[str, str]:
    """The search terms of a section: those of its headings and file name, and those of its text."""
    titles, text = title_text(path, section[0].heading), "\n".join(passage.text for passage in section)
    title_words, words = ([*index_terms(part), *name_parts(part)] for part in (titles, text))
    return " ".join(title_words), " ".join(words)


def _advance_generation(database: sqlite3.Connection) -> None:
    _set_about(database, "generation", str(read_generation(database) + 1))


def _about(database: sqlite3.Connection, key: str) -> str:
    row = database.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else ""


def _set_about(database: sqlite3.Connection, key: str, value: str) -> None:
    database.execute("INSERT OR REPLACE INTO about (key, value) VALUES (?, ?)", (key, value))
