"""Bringing an index up to date with its folder: what is new or has changed is read, what is gone is forgotten."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from taoloop.errors import ToolError
from taoloop.tools.documents.embedding import Embedder, sign_bits, to_blob, vectors_of
from taoloop.tools.documents.index import (
    Index,
    IndexedFile,
    add_vectors,
    embedded_by,
    files,
    remove_file,
    replace_file,
    same_file,
)
from taoloop.tools.documents.isolated_parser import ForeignError, IsolatedParser
from taoloop.tools.documents.readers import kind_of, read_document
from taoloop.tools.documents.settings import DocumentFolder, writable
from taoloop.tools.load_result import LoadProblem
from taoloop.tools.workspace.confined_dir import ConfinedDirectory, Parts, check_regular

_MAX_DEPTH = 32
_TOO_DEEP = f"it lies more than {_MAX_DEPTH} folders deep"
_MAX_ENTRIES = 500_000  # looked at in the whole folder
_YOUNG_NS = 2_000_000_000  # what changed so shortly before it was read may have changed again at the same time
_AT_ONCE = 64  # passages given to the embedding model
_LISTED = 5  # names in a message
_MOST_PROBLEMS = 200  # told one by one
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # may stand in names, but not in a message
_REFUSED = {
    errno.ELOOP: ("it is a symbolic link, or stands behind one", "Put the file itself into the folder."),
    errno.EMLINK: ("it has hard links", "Copy it to another name."),
    errno.EXDEV: ("it lies on another file system", "Name that place as a folder of its own."),
    errno.EACCES: ("the system denies access", "Permit reading it."),
    errno.EPERM: ("the system denies access", "Permit reading it."),
}


@dataclass(frozen=True, slots=True)
class _Found:
    """A file in the folder, by name and status."""

    parts: Parts
    path: str
    size: int
    changed_ns: int
    stamp: str


@dataclass(slots=True)
class _Walked:
    """What a walk through the folder saw."""

    found: list[_Found] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)  # folders that could not be opened, and why
    complete: bool = True
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one look through the folder did: files read anew, and forgotten; and what is wrong with the others."""

    read: int
    removed: int
    problems: tuple[LoadProblem, ...]


def update(index: Index, clock: Callable[[], float] = time.monotonic) -> Update:
    """Look through the folder, and bring the index up to date.

    Raises:
        ConfigError: the folder cannot be opened.
        ToolError: the index cannot be used.
    """
    settings = index.settings
    beneath = ConfinedDirectory(settings.folder)
    try:
        with (
            index.open() as database,
            IsolatedParser(settings.max_file_s, settings.max_memory_bytes) as foreign,
        ):
            index.made_anew(database)
            return _Updater(settings, beneath, database, foreign, clock).run()
    finally:
        beneath.close()


class _Updater:
    """One look through the folder."""

    def __init__(
        self,
        settings: DocumentFolder,
        beneath: ConfinedDirectory,
        database: sqlite3.Connection,
        foreign: IsolatedParser,
        clock: Callable[[], float],
    ) -> None:
        self._settings, self._beneath, self._database, self._foreign = settings, beneath, database, foreign
        self._clock, self._deadline = clock, clock() + settings.max_index_s
        self._problems: list[LoadProblem] = []
        self._read = self._untold = 0

    def run(self) -> Update:
        known = files(self._database)
        walked = self._walk()
        unread = 0
        for one in walked.found:
            if self._clock() > self._deadline:
                unread += 1
                continue
            self._look(one, known.get(one.path))
        wanted = {one.path for one in walked.found}
        gone = [path for path in known if path not in wanted and not self._is_there(path)] if walked.complete else []
        for path in gone:
            remove_file(self._database, path)
        if (self._read + len(gone)) * 10 > len(wanted):  # much has changed: searching is quicker in one piece
            self._database.execute("INSERT INTO passage_words (passage_words) VALUES ('optimize')")
        if self._settings.embedder is not None:
            unread += self._embed(self._settings.embedder)
        self._tell(walked, unread)
        return Update(read=self._read, removed=len(gone), problems=tuple(self._problems))

    def _walk(self) -> _Walked:
        walked, looked = _Walked(), 0
        for parts, status, error in _entries(self._beneath, ()):
            looked += 1
            path = writable("/".join(parts))
            if looked > _MAX_ENTRIES or self._clock() > self._deadline:
                walked.complete = False
                break
            if status is None:
                walked.unread.append((path, error))
            elif stat.S_ISLNK(status.st_mode):
                if self._fits(parts) or kind_of(parts[-1]) is None:
                    walked.links.append(path)
            elif not stat.S_ISDIR(status.st_mode) and self._fits(parts):
                if len(walked.found) >= self._settings.max_files:
                    walked.left_out += 1
                    continue
                changed = max(status.st_mtime_ns, status.st_ctime_ns)
                stamp = " ".join(map(str, (*_unlike(status), self._settings.max_file_s)))  # a limit that was met counts
                walked.found.append(_Found(parts, path, status.st_size, changed, stamp))
        return walked

    def _fits(self, parts: Parts) -> bool:
        """Whether a file is to be read, by its name."""
        return kind_of(parts[-1]) is not None and self._settings.takes(parts)

    def _look(self, one: _Found, known: IndexedFile | None) -> None:
        """Read a file unless it is certainly as it was."""
        if known is not None and known.stamp == one.stamp and one.changed_ns + _YOUNG_NS < known.read_ns:
            self._repeat(known)
            return
        seen = IndexedFile(path=one.path, stamp=one.stamp, read_ns=time.time_ns(), digest="")
        document = None
        try:
            data = self._bytes(one)
            seen = replace(seen, digest=hashlib.sha256(data).hexdigest())
            if known is not None and known.digest == seen.digest and not known.message and not known.notes:
                same_file(self._database, seen)
                self._repeat(known)
                return
            document = read_document(one.path, data, self._settings, self._foreign)
            seen = replace(seen, notes=document.notes)
        except FileNotFoundError:  # it went since the walk: the next look forgets what is known of it
            return
        except ForeignError as error:
            stamp = "" if error.again else one.stamp
            seen = replace(seen, stamp=stamp, message=error.message, hint=error.hint)
        try:
            replace_file(self._database, seen, document)
        except sqlite3.IntegrityError:  # two passages with one id: nobody has seen that, but it may not stop the rest
            seen = replace(seen, message="it has a passage with an id that exists", hint="Rename the file.")
            replace_file(self._database, seen, None)
        self._read += document is not None
        self._repeat(seen)

    def _bytes(self, one: _Found) -> bytes:
        most = self._settings.max_file_bytes
        try:
            "/".join(one.parts).encode()
            with self._beneath.regular_file(one.parts) as (fd, status):
                if status.st_size > most:
                    raise ForeignError(
                        f"it has {status.st_size:,} bytes; at most {most:,} are read",
                        "Split it, or raise max_file_bytes.",
                        again=True,
                    )
                with os.fdopen(os.dup(fd), "rb") as file:
                    return file.read(most)
        except UnicodeEncodeError:
            raise ForeignError("its name is not UTF-8", "Rename it.", again=True) from None
        except FileNotFoundError:
            raise
        except OSError as error:
            message, hint = _REFUSED.get(error.errno or 0, (str(error.strerror or error), "Look at the file."))
            raise ForeignError(message, hint, again=True) from error

    def _is_there(self, path: str) -> bool:
        """Whether a file that the walk did not see came in the meantime (another process may have read it)."""
        parts = tuple(path.split("/"))
        if not self._fits(parts):
            return False
        try:
            with self._beneath.folder(parts[:-1]) as parent:
                check_regular(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False))
        except OSError:
            return False
        return True

    def _embed(self, embedder: Embedder) -> int:
        """Give vectors to the passages that have none; how many are left."""
        try:
            embedded_by(self._database, embedder.name)
            query = "SELECT number, text FROM passage WHERE number NOT IN (SELECT number FROM vector)"
            without = self._database.execute(query).fetchall()
            for first in range(0, len(without), _AT_ONCE):
                if self._clock() > self._deadline:
                    return len(without) - first
                some = without[first : first + _AT_ONCE]
                vectors = vectors_of(embedder, [text for _, text in some])
                rows = (
                    (number, signs_blob(sign_bits(vector)), to_blob(vector))
                    for (number, _), vector in zip(some, vectors, strict=True)
                )
                add_vectors(self._database, embedder.name, rows)
        except ToolError as error:
            self._say("", error.message, error.hint)
        return 0

    def _repeat(self, seen: IndexedFile) -> None:
        """Say what is wrong with a file, also where an earlier look found it out."""
        if seen.message:
            self._say(seen.path, _sentence(seen.message), seen.hint)
        for note in seen.notes:
            self._say(seen.path, _sentence(note))

    def _tell(self, walked: _Walked, unread: int) -> None:
        settings = self._settings
        for path, why in walked.unread:
            hint = "Move it up." if why == _TOO_DEEP else "Permit reading it."
            self._say(path, _sentence(f"this folder cannot be read: {why}"), hint)
        if walked.links:
            names = ", ".join(walked.links[:_LISTED]) + (" …" if len(walked.links) > _LISTED else "")
            self._say("", f"Symbolic links are not followed: {names}.", "Put the files themselves into the folder.")
        if walked.left_out:
            message = f"{walked.left_out:,} files beyond the first {settings.max_files:,} are left out."
            self._say("", message, "Raise max_files, or name subfolders.")
        if not walked.complete:
            self._say("", "The folder is too large to be looked through; a part of it was.", "Name subfolders.")
        if self._untold:
            self._say("", f"{self._untold:,} more documents have problems.", "Correct those above first.")
        if unread:
            message = f"{unread:,} files or passages could not be read in {settings.max_index_s:g} s."
            self._say("", message, "The next look goes on with them; or raise max_index_s.")

    def _say(self, path: str, message: str, hint: str = "") -> None:
        if path and len(self._problems) >= _MOST_PROBLEMS:
            self._untold += 1
            return
        source = str(self._settings.folder / path) if path else str(self._settings.folder)
        self._problems.append(LoadProblem(source=_line(source), place="", message=_line(message), hint=hint))


def signs_blob(value: int) -> bytes:
    """Signs as they are stored."""
    return value.to_bytes((value.bit_length() + 7) // 8)


def _entries(beneath: ConfinedDirectory, parts: Parts) -> Iterator[tuple[Parts, os.stat_result | None, str]]:
    """Everything below a folder, sorted, without what is hidden; no status for a folder that cannot be opened."""
    try:
        with beneath.folder(parts) as fd, os.scandir(fd) as scanned:
            visible = (item for item in scanned if not item.name.startswith("."))
            items = [one for item in islice(visible, _MAX_ENTRIES) if (one := _status(item)) is not None]
    except FileNotFoundError:  # vanished in this moment
        return
    except OSError as error:
        yield parts, None, _REFUSED.get(error.errno or 0, (str(error.strerror or error), ""))[0]
        return
    for name, status in sorted(items, key=lambda item: item[0]):
        yield (*parts, name), status, ""
        if not stat.S_ISDIR(status.st_mode):
            continue
        if len(parts) < _MAX_DEPTH:
            yield from _entries(beneath, (*parts, name))
        else:
            yield (*parts, name), None, _TOO_DEEP


def _unlike(status: os.stat_result) -> tuple[int, ...]:
    """What of a file's status is another after a change."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _line(words: str) -> str:
    """One line that can be printed, whatever names are in it."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), writable(words))


def _status(item: os.DirEntry[str]) -> tuple[str, os.stat_result] | None:
    try:
        return item.name, item.stat(follow_symlinks=False)
    except OSError:  # vanished in this moment
        return None


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
