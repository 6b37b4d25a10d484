"""The index of a folder: an SQLite file with the passages, the words that they are found by, and their vectors.

It holds nothing that the documents do not say: it may be deleted at any time and is made anew. Every use opens the
file for itself, so that any thread and process may; each file's passages are replaced in one transaction.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from taoloop.errors import ToolError
from taoloop.tools.documents.readers import READER, Document
from taoloop.tools.documents.settings import DocumentFolder, writable
from taoloop.tools.fts_words import TOKENIZER, index_terms

BUSY_S = 10.0

_APPLICATION_ID = 0x54616F44  # "TaoD"
_VERSION = 1
_RANK = "bm25(2.0, 1.0)"  # a word of the headings or of the file's name counts twice
_SEPARATOR = "\x1f"  # between headings

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
CREATE TABLE vector (number INTEGER PRIMARY KEY, signs BLOB NOT NULL, vector BLOB NOT NULL);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
"""
_PASSAGE = """
SELECT passage.number, passage.id, file.path, passage.ordinal, passage.start, passage.stop, passage.line, passage.page,
  passage.heading, passage.text FROM passage JOIN file ON file.number = passage.file
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedPassage:
    """A passage as the index has it; `file` is the path in the folder, the rest as in `Passage`."""

    number: int
    id: str
    file: str
    ordinal: int
    start: int
    end: int
    line: int
    page: int
    heading: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFile:
    """A file as it was read: its bytes' digest, and by `stamp` and `read_ns` whether it may have changed since.

    `message` is empty for a file that could be read, else why it could not; `notes` what of it could not.
    """

    path: str
    stamp: str
    read_ns: int
    digest: str
    message: str = ""
    notes: tuple[str, ...] = ()
    hint: str = ""


class Index:
    """The index of one folder. `busy_s`: how long a call waits for another process that is writing, in seconds."""

    def __init__(self, settings: DocumentFolder, busy_s: float = BUSY_S) -> None:
        self.settings, self._busy_s = settings, busy_s
        self.path: Path = settings.index_file
        self._folder, self._shown = writable(str(settings.folder)), writable(str(self.path))

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """A connection in autocommit mode for the length of a `with`; a missing file is made.

        Raises:
            ToolError: `documents_unusable`: the file cannot be used; names it and says why.
        """
        try:
            self._make_private()
            with closing(sqlite3.connect(self.path, timeout=self._busy_s, isolation_level=None)) as database:
                self._prepare(database)
                yield database
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def made_anew(self, database: sqlite3.Connection) -> bool:
        """Empty the index if other settings or an older reader made it; whether it was emptied."""
        if _about(database, "made_by") == self._made_by:
            return False
        with _transaction(database):
            if _about(database, "made_by") == self._made_by:
                return False
            for table in ("vector", "passage", "file"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608  # a name of ours
            database.execute("INSERT INTO passage_words (passage_words) VALUES ('delete-all')")
            _set_about(database, "made_by", self._made_by)
        return True

    @property
    def _made_by(self) -> str:
        return f"{READER} {self.settings.made_by}"

    def _make_private(self) -> None:
        """A new file is readable by its owner only: documents may not be for everybody."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process was quicker
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Make the tables in a new file; refuse a file that is something else."""
        database.execute("BEGIN")  # what is seen of the file is of one moment
        ready = self._is_ours(database)
        database.execute("COMMIT")
        if not ready:
            with _transaction(database):  # of several processes that find a new file one makes the tables
                if not self._is_ours(database):
                    for statement in _TABLES.split(";"):
                        database.execute(statement)
                    database.execute("INSERT INTO passage_words (passage_words, rank) VALUES ('rank', ?)", (_RANK,))
                    _set_about(database, "folder", self._folder)
                    _set_about(database, "generation", str(time.time_ns()))  # none that a deleted index had
            database.execute("PRAGMA busy_timeout = 0")
            with suppress(sqlite3.OperationalError):  # another process has the file open; it works without, too
                database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA busy_timeout = {self._busy_s * 1000:.0f}")
        database.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes is read from the documents again

    def _is_ours(self, database: sqlite3.Connection) -> bool:
        kind, version, tables = (
            int(database.execute(query).fetchone()[0])
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if kind == _APPLICATION_ID and version > _VERSION:
            raise self._refused("written by a newer taoloop; it was not touched", "Upgrade, or name another file.")
        if kind != _APPLICATION_ID and (kind or version or tables):
            raise self._refused("another kind of database; it was not touched", "Name a new file for the index.")
        if kind == _APPLICATION_ID and (of := _about(database, "folder")) != self._folder:
            raise self._refused(f"the index of another folder, {of}", "Name another file for the index.")
        return kind == _APPLICATION_ID

    def _refused(self, what: str, hint: str) -> ToolError:
        return ToolError(f"{self._shown}: this is {what}.", code="documents_unusable", hint=hint)

    def _unusable(self, error: Exception) -> ToolError:
        words = writable(str(error))
        locked = "locked" in words
        if "fts5" in words:
            hint = "This Python's SQLite has no full-text search (FTS5); another build has it."
        elif locked:
            hint = "Another program holds it; try again."
        elif any(sign in words for sign in ("not a database", "malformed", "corrupt", "no such table")):
            hint = "Delete this file if it is the index: it is made anew. Else name another."
        else:
            hint = "Check the permissions and the space there, or name another file for the index."
        return ToolError(
            f"{self._shown}: the index cannot be used: {words}.", code="documents_unusable", retryable=locked, hint=hint
        )


def replace_file(database: sqlite3.Connection, seen: IndexedFile, document: Document | None) -> bool:
    """Put what was read of a file in place of what was known of it; False if another process read it later."""
    with _transaction(database):
        known = database.execute("SELECT number, read_ns FROM file WHERE path = ?", (seen.path,)).fetchone()
        if known is not None:
            if seen.read_ns < known[1] <= time.time_ns():  # what was read in the future was read by a wrong clock
                return False
            _drop(database, known[0], seen.path)
        kind, encoding, title = (document.kind, document.encoding, document.title) if document else ("", "", "")
        readable = not seen.message
        notes = "\n".join(seen.notes) if readable else seen.message
        added = database.execute(
            "INSERT INTO file (path, stamp, read_ns, digest, kind, encoding, title, readable, notes, hint)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (seen.path, seen.stamp, seen.read_ns, seen.digest, kind, encoding, title, readable, notes, seen.hint),
        )
        for one in document.passages if document else ():
            heading = _SEPARATOR.join(one.heading)
            place = (one.id, added.lastrowid, one.ordinal, one.start, one.end, one.line, one.page, heading, one.text)
            number = database.execute(
                "INSERT INTO passage (id, file, ordinal, start, stop, line, page, heading, text)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                place,
            ).lastrowid
            words = _words(seen.path, heading, one.text)
            database.execute("INSERT INTO passage_words (rowid, titles, words) VALUES (?, ?, ?)", (number, *words))
        _changed(database)
    return True


def same_file(database: sqlite3.Connection, seen: IndexedFile) -> None:
    """A file was looked at again and has not changed."""
    database.execute(
        "UPDATE file SET stamp = ?, read_ns = ? WHERE path = ? AND digest = ?",
        (seen.stamp, seen.read_ns, seen.path, seen.digest),
    )


def remove_file(database: sqlite3.Connection, path: str) -> None:
    """Forget a file that is gone."""
    with _transaction(database):
        known = database.execute("SELECT number FROM file WHERE path = ?", (path,)).fetchone()
        if known is not None:
            _drop(database, known[0], path)
            _changed(database)


def files(database: sqlite3.Connection) -> dict[str, IndexedFile]:
    """The files that were read, by path."""
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


def embedded(database: sqlite3.Connection) -> str:
    """The embedding model whose vectors the index has."""
    return _about(database, "embedder")


def generation(database: sqlite3.Connection) -> int:
    """A number that is another one after every change."""
    return int(_about(database, "generation") or 0)


def passages(database: sqlite3.Connection, where: str, values: Iterable[object]) -> list[IndexedPassage]:
    """The passages for which a condition (of ours, with `?` for values) holds."""
    rows = database.execute(_PASSAGE + where, tuple(values))
    return [
        IndexedPassage(
            number=number,
            id=name,
            file=path,
            ordinal=ordinal,
            start=start,
            end=stop,
            line=line,
            page=page,
            heading=tuple(heading.split(_SEPARATOR)) if heading else (),
            text=text,
        )
        for number, name, path, ordinal, start, stop, line, page, heading, text in rows
    ]


def embedded_by(database: sqlite3.Connection, name: str) -> None:
    """Forget the vectors of another embedding model."""
    if _about(database, "embedder") != name:
        with _transaction(database):
            database.execute("DELETE FROM vector")
            _set_about(database, "embedder", name)
            _changed(database)


def add_vectors(database: sqlite3.Connection, name: str, rows: Iterable[tuple[int, bytes, bytes]]) -> None:
    """Keep the vectors of passages (number, signs, vector) that are still there, if `name` is still the model."""
    with _transaction(database):
        if _about(database, "embedder") == name:
            database.executemany(
                "INSERT OR REPLACE INTO vector SELECT ?1, ?2, ?3"
                " WHERE EXISTS (SELECT 1 FROM passage WHERE number = ?1)",
                rows,
            )
            _changed(database)


def _drop(database: sqlite3.Connection, number: int, path: str) -> None:
    """Delete a file and its passages; the words must be the very ones that were added."""
    old = database.execute("SELECT number, heading, text FROM passage WHERE file = ?", (number,)).fetchall()
    database.executemany(
        "INSERT INTO passage_words (passage_words, rowid, titles, words) VALUES ('delete', ?, ?, ?)",
        ((passage, *_words(path, heading, text)) for passage, heading, text in old),
    )
    database.execute("DELETE FROM vector WHERE number IN (SELECT number FROM passage WHERE file = ?)", (number,))
    database.execute("DELETE FROM passage WHERE file = ?", (number,))
    database.execute("DELETE FROM file WHERE number = ?", (number,))


def _words(path: str, heading: str, text: str) -> tuple[str, str]:
    """What a passage is found by: the words of its headings and of the file's name, which count twice, and its own."""
    name = path.rpartition("/")[2].rpartition(".")[0]
    return " ".join(index_terms(f"{name}\n{heading}")), " ".join(index_terms(text))


def _changed(database: sqlite3.Connection) -> None:
    _set_about(database, "generation", str(generation(database) + 1))


def _about(database: sqlite3.Connection, key: str) -> str:
    row = database.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else ""


def _set_about(database: sqlite3.Connection, key: str, value: str) -> None:
    database.execute("INSERT OR REPLACE INTO about (key, value) VALUES (?, ?)", (key, value))


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
