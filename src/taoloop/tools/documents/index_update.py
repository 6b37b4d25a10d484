"""Updating an index: new and changed files are read, and removed ones are deleted from it."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice

from taoloop.errors import ToolError
from taoloop.tools.documents.index import (
    Index,
    IndexedFile,
    add_vectors,
    confirm_unchanged,
    indexed_files,
    remove_file,
    replace_file,
    select_embedder,
)
from taoloop.tools.documents.readers import SUFFIXES, kind_of, read_document, suffix_of
from taoloop.tools.documents.search import to_blobs
from taoloop.tools.documents.settings import DocumentFolder, printable_path
from taoloop.tools.embedding import BATCH_SIZE, Embedder, embed_texts
from taoloop.tools.isolated_parser import IsolatedParser, UnreadableFileError
from taoloop.tools.toolbox import LoadProblem
from taoloop.tools.workspace.confined_dir import ConfinedDirectory, Parts, check_regular

_MAX_DEPTH = 32
_TOO_DEEP = f"it is more than {_MAX_DEPTH} folders deep"
_MAX_ENTRIES = 500_000  # in the whole folder
_SETTLE_NS = 2_000_000_000  # a file that changed so shortly before it was read may have changed again
_MAX_LISTED = 5  # names in a message
_MAX_TYPES = 10  # suffixes in a message
_SUCCESSORS = {  # the types that are read, by older or other ones for the same purpose
    **dict.fromkeys((".doc", ".odt", ".rtf"), ".docx"),
    **dict.fromkeys((".xls", ".ods", ".xlsb"), ".xlsx"),
    **dict.fromkeys((".ppt", ".odp"), ".pptx"),
    **dict.fromkeys((".mobi", ".azw3"), ".epub"),
}
_MAX_PROBLEMS = 200  # reported individually
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # allowed in names, but not in messages
_ERROR_TEXTS = {
    errno.ELOOP: ("it is a symbolic link, or is reached through one", "Put the file itself into the folder."),
    errno.EMLINK: ("it has hard links", "Copy it to another name."),
    errno.EXDEV: ("it is on another file system", "Configure that folder separately."),
    errno.EACCES: ("the system denies access", "Grant read permission."),
    errno.EPERM: ("the system denies access", "Grant read permission."),
}


@dataclass(frozen=True, slots=True)
class _FoundFile:
    """A file in the folder, by name and status."""

    parts: Parts
    path: str
    changed_ns: int
    stamp: str


@dataclass(slots=True)
class _FolderWalk:
    """The result of a walk through the folder."""

    files: list[_FoundFile] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    unreadable_folders: list[tuple[str, str]] = field(default_factory=list)  # with the reasons
    other_types: dict[str, list[str]] = field(default_factory=dict)  # files whose type is not read, by suffix
    complete: bool = True
    omitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """The result of one update."""

    files_read: int
    """How many new or changed files were read."""
    files_removed: int
    """How many files were removed from the index."""
    problems: tuple[LoadProblem, ...]
    """What could not be read, in this update or before."""


def update_index(index: Index, clock: Callable[[], float] = time.monotonic) -> UpdateResult:
    """Update an index from its folder.

    Raises:
        ConfigError: the folder cannot be opened.
        ToolError: the index cannot be used.
    """
    settings = index.settings
    with (
        closing(ConfinedDirectory(settings.folder)) as directory,
        index.open() as database,
        IsolatedParser(settings.max_file_s, settings.max_memory_bytes) as parser,
    ):
        index.reset_if_outdated(database)
        return _Updater(settings, directory, database, parser, clock).run()


class _Updater:
    """One update of an index."""

    def __init__(
        self,
        settings: DocumentFolder,
        directory: ConfinedDirectory,
        database: sqlite3.Connection,
        parser: IsolatedParser,
        clock: Callable[[], float],
    ) -> None:
        self._settings, self._directory, self._database, self._parser = settings, directory, database, parser
        self._clock, self._deadline = clock, clock() + settings.max_index_s
        self._problems: list[LoadProblem] = []
        self._read_count = self._omitted_problems = 0

    def run(self) -> UpdateResult:
        indexed = indexed_files(self._database)
        walk = self._walk()
        unread_count = 0
        for file in walk.files:
            if self._clock() > self._deadline:
                unread_count += 1
                continue
            self._update_file(file, indexed.get(file.path))
        current_paths = {file.path for file in walk.files}
        missing_paths = [path for path in indexed if path not in current_paths] if walk.complete else []
        removed_paths = [path for path in missing_paths if not self._is_there(path)]
        for path in removed_paths:
            remove_file(self._database, path)
        if (self._read_count + len(removed_paths)) * 10 > len(current_paths):  # a merged index is searched faster
            self._database.execute("INSERT INTO passage_words (passage_words) VALUES ('optimize')")
        if self._settings.embedder is not None:
            unread_count += self._embed(self._settings.embedder)
        self._report_folder(walk, unread_count)
        problems = tuple(self._problems)
        return UpdateResult(files_read=self._read_count, files_removed=len(removed_paths), problems=problems)

    def _walk(self) -> _FolderWalk:
        walk, count = _FolderWalk(), 0
        for parts, status, error in _entries(self._directory, ()):
            count += 1
            path = printable_path("/".join(parts))
            if count > _MAX_ENTRIES or self._clock() > self._deadline:
                walk.complete = False
                break
            if status is None:
                walk.unreadable_folders.append((path, error))
            elif stat.S_ISLNK(status.st_mode):
                if self._fits(parts) or kind_of(parts[-1]) is None:
                    walk.links.append(path)
            elif stat.S_ISDIR(status.st_mode):
                continue
            elif not self._fits(parts):
                if kind_of(parts[-1]) is None and self._settings.includes(parts) and not self._is_index(parts):
                    walk.other_types.setdefault(suffix_of(parts[-1]), []).append(path)
            else:
                if len(walk.files) >= self._settings.max_files:
                    walk.omitted += 1
                    continue
                changed = max(status.st_mtime_ns, status.st_ctime_ns)
                walk.files.append(_FoundFile(parts, path, changed, self._stamp_of(status)))
        return walk

    def _stamp_of(self, status: os.stat_result) -> str:
        """What of a file differs after a change; also a larger time limit means another attempt."""
        signature = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, self._settings.max_file_s)
        return " ".join(map(str, signature))

    def _is_index(self, parts: Parts) -> bool:
        """Whether a file belongs to the index, which may be in the folder."""
        return str(self._settings.folder.joinpath(*parts)).startswith(str(self._settings.index_file))

    def _fits(self, parts: Parts) -> bool:
        """Whether a file is read, by its name."""
        return kind_of(parts[-1]) is not None and self._settings.includes(parts)

    def _update_file(self, found_file: _FoundFile, indexed: IndexedFile | None) -> None:
        """Read a file unless it certainly has not changed."""
        settled_ns = found_file.changed_ns + _SETTLE_NS
        if indexed is not None and indexed.stamp == found_file.stamp and settled_ns < indexed.read_ns:
            self._report_file(indexed)
            return
        file = IndexedFile(path=found_file.path, stamp=found_file.stamp, read_ns=time.time_ns(), digest="")
        document = None
        try:
            data = self._read_bytes(found_file)
            file = replace(file, digest=hashlib.sha256(data).hexdigest())
            if indexed is not None and indexed.digest == file.digest and not indexed.message and not indexed.notes:
                confirm_unchanged(self._database, file)
                self._report_file(indexed)
                return
            document = read_document(found_file.path, data, self._settings, self._parser)
            file = replace(file, notes=document.notes)
        except FileNotFoundError:  # removed since the walk: the next update deletes it
            return
        except UnreadableFileError as error:
            stamp = "" if error.is_transient else found_file.stamp
            file = replace(file, stamp=stamp, message=error.message, hint=error.hint)
        try:
            replace_file(self._database, file, document)
        except sqlite3.IntegrityError:  # two passages with one id: improbable, but it must not stop the update
            file = replace(file, message="it has a passage whose id exists already", hint="Rename the file.")
            replace_file(self._database, file, None)
        self._read_count += document is not None
        self._report_file(file)

    def _read_bytes(self, file: _FoundFile) -> bytes:
        max_bytes = self._settings.max_file_bytes
        try:
            "/".join(file.parts).encode()
            with self._directory.regular_file(file.parts) as (fd, status):
                if status.st_size > max_bytes:
                    raise UnreadableFileError(
                        f"it has {status.st_size:,} bytes; at most {max_bytes:,} are read",
                        "Split it, or raise max_file_bytes.",
                        is_transient=True,
                    )
                with os.fdopen(os.dup(fd), "rb") as stream:
                    return stream.read(max_bytes)
        except UnicodeEncodeError:
            raise UnreadableFileError("its name is not UTF-8", "Rename it.", is_transient=True) from None
        except FileNotFoundError:
            raise
        except OSError as error:
            message, hint = _ERROR_TEXTS.get(error.errno or 0, (str(error.strerror or error), "Check the file."))
            raise UnreadableFileError(message, hint, is_transient=True) from error

    def _is_there(self, path: str) -> bool:
        """Whether a file appeared after the walk; another process may have read it."""
        parts = tuple(path.split("/"))
        if not self._fits(parts):
            return False
        try:
            with self._directory.folder(parts[:-1]) as parent:
                check_regular(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False))
        except OSError:
            return False
        return True

    def _embed(self, embedder: Embedder) -> int:
        """Compute the missing vectors; return how many are still missing."""
        try:
            select_embedder(self._database, embedder.name)
            query = "SELECT number, text FROM passage WHERE number NOT IN (SELECT number FROM vector)"
            rows = self._database.execute(query).fetchall()
            for first in range(0, len(rows), BATCH_SIZE):
                if self._clock() > self._deadline:
                    return len(rows) - first
                batch = rows[first : first + BATCH_SIZE]
                vectors = embed_texts(embedder, [text for _, text in batch])
                vector_rows = ((number, *to_blobs(vector)) for (number, _), vector in zip(batch, vectors, strict=True))
                add_vectors(self._database, embedder.name, vector_rows)
        except ToolError as error:
            self._add_problem("", error.message, error.hint)
        return 0

    def _report_file(self, file: IndexedFile) -> None:
        """Report the problems of a file, including those of an earlier update."""
        if file.message:
            self._add_problem(file.path, _sentence(file.message), file.hint)
        for note in file.notes:
            self._add_problem(file.path, _sentence(note))

    def _report_folder(self, walk: _FolderWalk, unread_count: int) -> None:
        for path, reason in walk.unreadable_folders:
            hint = "Move it up." if reason == _TOO_DEEP else "Grant read permission."
            self._add_problem(path, _sentence(f"this folder cannot be read: {reason}"), hint)
        if walk.links:
            names = ", ".join(walk.links[:_MAX_LISTED]) + (" …" if len(walk.links) > _MAX_LISTED else "")
            message = f"Symbolic links are not followed: {names}."
            self._add_problem("", message, "Put the files themselves into the folder.")
        if walk.other_types:
            paths_by_count = sorted(walk.other_types.items(), key=lambda item: -len(item[1]))
            types = [f"{suffix} ({_count_paths(paths)})" for suffix, paths in paths_by_count[:_MAX_TYPES]]
            names = ", ".join(types) + (" …" if len(paths_by_count) > _MAX_TYPES else "")
            count = sum(map(len, walk.other_types.values()))
            message = f"{count:,} files are skipped because their type is not read: {names}."
            self._add_problem("", message, _types_hint(walk.other_types))
        if walk.omitted:
            message = f"{walk.omitted:,} files beyond the first {self._settings.max_files:,} are skipped."
            self._add_problem("", message, "Raise max_files, or configure subfolders separately.")
        if not walk.complete:
            message = "The folder is too large; only a part of it was searched for files."
            self._add_problem("", message, "Configure subfolders separately.")
        if self._omitted_problems:
            message = f"{self._omitted_problems:,} more documents have problems."
            self._add_problem("", message, "Correct those above first.")
        if unread_count:
            message = f"{unread_count:,} files or passages could not be read in {self._settings.max_index_s:g} s."
            self._add_problem("", message, "The next update continues with them; or raise max_index_s.")

    def _add_problem(self, path: str, message: str, hint: str = "") -> None:
        if path and len(self._problems) >= _MAX_PROBLEMS:
            self._omitted_problems += 1
            return
        source = str(self._settings.folder / path) if path else str(self._settings.folder)
        self._problems.append(LoadProblem(source=_one_line(source), place="", message=_one_line(message), hint=hint))


def _count_paths(paths: Sequence[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{len(paths):,} such as {paths[0]}"


def _types_hint(suffixes: Iterable[str]) -> str:
    """What to do about files of these types."""
    present = set(suffixes)
    steps = [f"Save {old} as {new}." for old, new in _SUCCESSORS.items() if old in present]
    return " ".join([*steps, f"Read are {', '.join(SUFFIXES)}; `exclude` stops this message."])


def _entries(directory: ConfinedDirectory, parts: Parts) -> Iterator[tuple[Parts, os.stat_result | None, str]]:
    """Everything below a folder, sorted, except hidden entries; the status is None for a folder that cannot be read."""
    try:
        with directory.folder(parts) as fd, os.scandir(fd) as entries:
            visible = (item for item in entries if not item.name.startswith("."))
            items = [entry for item in islice(visible, _MAX_ENTRIES) if (entry := _status(item)) is not None]
    except FileNotFoundError:  # removed meanwhile
        return
    except OSError as error:
        yield parts, None, _ERROR_TEXTS.get(error.errno or 0, (str(error.strerror or error), ""))[0]
        return
    for name, status in sorted(items, key=lambda item: item[0]):
        yield (*parts, name), status, ""
        if not stat.S_ISDIR(status.st_mode):
            continue
        if len(parts) < _MAX_DEPTH:
            yield from _entries(directory, (*parts, name))
        else:
            yield (*parts, name), None, _TOO_DEEP


def _one_line(text: str) -> str:
    """One printable line, whatever file names are in it."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), printable_path(text))


def _status(item: os.DirEntry[str]) -> tuple[str, os.stat_result] | None:
    try:
        return item.name, item.stat(follow_symlinks=False)
    except OSError:  # removed meanwhile
        return None


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
