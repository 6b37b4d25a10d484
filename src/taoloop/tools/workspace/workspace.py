"""A workspace: a folder that tools can read, write and search, and never leave.

A file is searched block by block, so that no more than about one block of it is in memory.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import unified_diff
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from pathlib import Path

from typing_extensions import TypedDict

from taoloop.core.images import Image, is_image
from taoloop.core.search import suggest_names
from taoloop.errors import ConfigError
from taoloop.tools.texts import TEXTS
from taoloop.tools.workspace.confined_dir import (
    ConfinedDirectory,
    Opener,
    Parts,
    WalkEntry,
    is_database,
    path_refused,
    split_path,
    walk,
)
from taoloop.tools.workspace.file_changes import FileChange, FileChanger, key_name

NO_KEY = "by-hand"  # the key of a RunContext that no run made: every such call is a change of its own
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

_FILE_ERRORS = {  # what the system reports, by the code of the error; the texts have these names
    "not_found": ("ENOENT", "ENOTDIR"),
    "not_a_file": ("EISDIR", "ENXIO"),
    "path_refused": ("ELOOP", "EXDEV", "EMLINK"),
    "permission_denied": ("EACCES", "EROFS"),
    "disk_full": ("ENOSPC", "EDQUOT", "EFBIG"),
}
_SAME_ERRORS = {"ENODEV": "ENXIO", "EPERM": "EACCES"}
_LONGEST_PATTERN = 200
_MAX_LINE_CHARS = 200
_HEAD_BYTES = 16  # show whether a file is an image
_MAX_LINES_NAMED = 5
_MAX_DIFF_CHARS = 4_000
BLOCK_BYTES = 1_000_000


def check_pattern(pattern: str) -> str:
    """`pattern`, if it is short enough to be matched quickly.

    Raises:
        ToolError: `bad_pattern`.
    """
    if not pattern or len(pattern) > _LONGEST_PATTERN or pattern.count("*") > 10:
        raise TEXTS.error("bad_pattern", "bad_pattern")
    return pattern


def fits(pattern: str, below: Parts) -> bool:
    """True if a path matches: by its name if the pattern has no '/', else part by part (`**` is any)."""
    if "/" not in pattern:
        return fnmatchcase(below[-1], pattern)
    return _fits(tuple(part for part in pattern.split("/") if part not in ("", ".")), below)


@lru_cache(maxsize=4_096)
def _fits(pattern: Parts, parts: Parts) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _fits(pattern[1:], parts) or (bool(parts) and _fits(pattern, parts[1:]))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(pattern[1:], parts[1:])


class Line(TypedDict):
    """One matching line."""

    path: str
    """The file."""
    line: int
    """The number of the line, from 1."""
    text: str
    """At most 200 characters of the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatches:
    """What the search of one file found."""

    matches: tuple[Line, ...]
    """The lines with the text."""
    bytes_read: int
    """How much of the file was read."""
    is_whole: bool
    """Whether that was all of it."""


def scan_file(
    fd: int,
    path: str,
    text: str,
    *,
    at_most: int,
    most_bytes: int,
    in_time: Callable[[], bool],
    block_bytes: int = BLOCK_BYTES,
) -> FileMatches | None:
    """The first `at_most` lines with `text`; None if the file is not UTF-8 text.

    No more than about a block of the file is in memory, however long its lines are.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    matches: dict[int, Line] = {}  # by the number of the line
    rest, number, bytes_read, is_whole = "", 1, 0, False

    def search_line(line: str) -> None:
        position = -1 if number in matches else line.find(text)
        if position >= 0:
            start = max(0, position - _MAX_LINE_CHARS // 2) if len(line) > _MAX_LINE_CHARS else 0
            line_text = line[start : start + _MAX_LINE_CHARS].rstrip("\r")
            matches[number] = Line(path=path, line=number, text=line_text)

    try:
        for block in _blocks(fd, most_bytes, block_bytes):
            if b"\0" in block:
                return None
            bytes_read += len(block)
            *lines, rest = (rest + decoder.decode(block)).split("\n")
            for line in lines:
                search_line(line)
                number += 1
            if len(rest) > block_bytes:  # of an endless line the end stays: a match may have begun there
                search_line(rest)
                rest = rest[-(_MAX_LINE_CHARS + len(text)) :]
            if len(matches) >= at_most or not in_time():
                break
        else:
            is_whole = not os.read(fd, 1)
        if is_whole or bytes_read < most_bytes:
            search_line(rest + decoder.decode(b"", final=is_whole))
    except UnicodeDecodeError:
        return None
    return FileMatches(matches=tuple(islice(matches.values(), at_most)), bytes_read=bytes_read, is_whole=is_whole)


def _blocks(fd: int, most_bytes: int, block_bytes: int) -> Iterator[bytes]:
    remaining = most_bytes
    while remaining > 0 and (block := os.read(fd, min(block_bytes, remaining))):
        remaining -= len(block)
        yield block


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLimits:
    """The bounds of one call in a workspace."""

    read_bytes: int = 1_000_000
    """The largest text that is read."""
    image_bytes: int = 5_000_000
    """The largest image that is read; the largest that all providers take is of about this size."""
    write_bytes: int = 1_000_000
    """The largest content that is written."""
    kept_bytes: int = 64_000_000
    """The largest file that may be overwritten, as it is copied into the backup first."""
    entries: int = 500
    """How many entries a listing shows."""
    scanned: int = 20_000
    """How many entries a listing or a search looks at."""
    matches: int = 100
    """How many matches a search shows."""
    search_bytes: int = 64_000_000
    """How much a search reads."""
    search_s: float = 5.0
    """How long a search takes, in seconds of wall time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found."""

    matches: tuple[Line, ...]
    """The lines with the text."""
    searched: int
    """How many files were searched."""
    skipped: int
    """How many files were not text."""
    complete: bool
    """False if a bound of matches, files, bytes or time was met."""


class Workspace:
    """A folder that cannot be left: no absolute path, no `..`, no link, no device, no other file system.

    Nothing is opened before the first use, which raises ConfigError if the folder cannot be used
    (`create` makes a missing one). `opener` replaces the way files are opened; `clock` bounds searches.
    """

    def __init__(
        self,
        root: Path | str,
        limits: WorkspaceLimits | None = None,
        *,
        create: bool = False,
        opener: Opener | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root, self.limits = Path(root), limits or WorkspaceLimits()
        self._create, self._opener, self._clock = create, opener, clock
        self._lock = threading.Lock()
        self._opened: tuple[ConfinedDirectory, FileChanger] | None = None

    def open(self) -> Workspace:
        """Open the folder now instead of at the first use.

        Raises:
            ConfigError: it cannot be made or opened.
        """
        self._open()
        return self

    def read_text(self, path: str) -> str:
        """The content of a UTF-8 file.

        Raises:
            ToolError: the path is refused or leads to no file, or the file is too large or not text.
        """
        parts = split_path(path)
        with self._translate_errors(path, parts), self._directory.regular_file(parts) as (fd, status):
            limit = self.limits.read_bytes
            data = b"" if status.st_size > limit else _read_file(fd, limit + 1)
            if status.st_size > limit or len(data) > limit:
                raise TEXTS.error("file_large", "too_large", path=path, size=status.st_size, limit=limit)
        text = _text(data)
        if text is None:
            raise TEXTS.error("file_not_text", "not_text", path=path)
        return text

    def read(self, path: str) -> str | Image:
        """The content of a file that is an image by its bytes, or UTF-8 text.

        Raises:
            ToolError: as `read_text`.
            ImageError: the image is broken.
        """
        parts = split_path(path)
        with self._translate_errors(path, parts), self._directory.regular_file(parts) as (fd, status):
            data = _read_file(fd, _HEAD_BYTES)
            if is_image(data):
                limit = self.limits.image_bytes
                data += b"" if status.st_size > limit else _read_file(fd, limit + 1 - len(data))
                if status.st_size > limit or len(data) > limit:
                    raise TEXTS.error("file_large", "too_large", path=path, size=status.st_size, limit=limit)
                return Image(data, alt=parts[-1])
        return self.read_text(path)

    def present(self, path: str) -> str:
        """The file at a path and its size, in words; empty if nothing is there.

        Raises:
            ToolError: the path is refused or leads to no file.
        """
        parts = split_path(path)
        with self._translate_errors(path, parts), self._directory.regular_file(parts) as (_, status):
            size = f"{status.st_size} B" if status.st_size < 1_000 else f"{status.st_size / 1_000:.1f} KB"
        return f"{'/'.join(parts)}, {size}"

    def write_text(self, path: str, content: str, key: str = NO_KEY) -> tuple[FileChange, str]:
        """Make `content` the file's text; gives what changed and the name of the backup.

        Folders are made as needed. A second call with the same key changes nothing.

        Raises:
            ToolError: the path is refused or no file, the content too large or not text, or the disk failed.
        """
        parts = split_path(path)
        if not parts:
            raise path_refused("path_root", path)
        if _CONTROL.search(path):
            raise path_refused("path_control", path)
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise TEXTS.error("content_not_text", "not_text") from None
        if len(data) > self.limits.write_bytes:
            raise TEXTS.error("content_large", "too_large", size=len(data), limit=self.limits.write_bytes)
        return self._change(path, parts, data, key)

    def edit_text(self, path: str, old: str, new: str, key: str = NO_KEY) -> tuple[FileChange, str, str]:
        """Replace the only occurrence of `old` in the file by `new`; gives what changed, the backup and a diff.

        A second call with the same key changes nothing: the text is then looked for in what the first call replaced.

        Raises:
            ToolError: as `write_text`; there is no file, `old` is not in it (`no_match`) or more than once
                (`several_matches`), or the two texts are the same (`same_text`).
        """
        if old == new:
            raise TEXTS.error("same_text", "same_text")
        parts = split_path(path)
        with self._translate_errors(path, parts):
            keeper, name = self._keeper, key_name(key)
            earlier = keeper.record(name) if key != NO_KEY else None
            is_repeated = earlier is not None and earlier.existed and earlier.path == "/".join(parts)
            before = _text(keeper.stored_bytes(name, parts)) if is_repeated else self.read_text(path)
        lines = _lines_with(before or "", old)
        if before is None or not lines:
            raise TEXTS.error("no_match", "no_match", path=path)
        if len(lines) > 1:
            numbers = ", ".join(map(str, lines[:_MAX_LINES_NAMED]))
            raise TEXTS.error("several_matches", "several_matches", path=path, count=len(lines), lines=numbers)
        after = before.replace(old, new)
        change, backup = self.write_text(path, after, key)
        return change, backup, _diff(before, after, change.path)

    def restore(self, path: str, backup: str, key: str = NO_KEY) -> tuple[FileChange, str]:
        """Undo the change whose backup has this name; that is a change with a backup of its own.

        Raises:
            ToolError: there is no such backup of this file (`no_backup`), or the file was changed since
                (`changed_since`).
        """
        parts = split_path(path)
        with self._translate_errors(path, parts):
            keeper, name = self._keeper, key_name(backup)
            undone = keeper.record(name)
            if undone is None or undone.path != "/".join(parts):
                raise TEXTS.error("no_backup", "no_backup", backup=backup, path=path)
            present = keeper.digest(parts)
            own = keeper.record(key_name(key)) if key != NO_KEY else None
            if own is None and present != undone.after:
                raise TEXTS.error("changed_since", "changed_since", path=path, backup=backup)
            data = keeper.stored_bytes(name, parts) if undone.existed else None
        return self._change(path, parts, data, key)

    def entries(self, path: str = ".", pattern: str = "*") -> tuple[tuple[WalkEntry, ...], int, bool]:
        """The matching entries, sorted, how many more there are, and whether all were looked at.

        A pattern without '/' is held against the names in the folder itself; with `**/` also those below.
        """
        parts, pattern = split_path(path), check_pattern(pattern)
        with self._translate_errors(path, parts):
            walked = list(islice(walk(self._directory, parts, deep="/" in pattern), self.limits.scanned + 1))
        matching = [entry for entry in walked[: self.limits.scanned] if fits(pattern, entry.parts[len(parts) :])]
        listed = tuple(matching[: self.limits.entries])
        return listed, len(matching) - len(listed), len(walked) <= self.limits.scanned

    def search(self, text: str, path: str = ".", pattern: str = "*") -> SearchResult:
        """The lines with `text`, case-sensitive, in the text files of a folder and below, or in one file."""
        parts, pattern = split_path(path), check_pattern(pattern)
        if not text or "\n" in text:
            raise TEXTS.error("bad_text", "bad_text")
        matches: list[Line] = []
        searched = skipped = bytes_read = 0
        complete = True
        deadline = self._clock() + self.limits.search_s

        def in_time() -> bool:
            return self._clock() < deadline

        with self._translate_errors(path, parts):
            for count, entry in enumerate(self._files(parts)):
                in_budget = bytes_read < self.limits.search_bytes and in_time() and count < self.limits.scanned
                if not in_budget or len(matches) > self.limits.matches:
                    complete = False
                    break
                if entry.kind != "file" or not fits(pattern, entry.parts[len(parts) :] or entry.parts[-1:]):
                    continue
                room, remaining_bytes = self.limits.matches + 1 - len(matches), self.limits.search_bytes - bytes_read
                scanned = self._scan(entry, text, at_most=room, most_bytes=remaining_bytes, in_time=in_time)
                if scanned is None:
                    skipped += 1
                    continue
                searched, bytes_read = searched + 1, bytes_read + scanned.bytes_read
                complete = complete and scanned.is_whole
                matches += scanned.matches
        return SearchResult(
            matches=tuple(matches[: self.limits.matches]),
            searched=searched,
            skipped=skipped,
            complete=complete and len(matches) <= self.limits.matches,
        )

    def _files(self, parts: Parts) -> Iterator[WalkEntry]:
        """The entry at `parts` if it is a file, else all below it; a folder counts too, as it costs time."""
        try:
            yield from walk(self._directory, parts, deep=True)
        except NotADirectoryError:
            with self._directory.regular_file(parts) as (_, status):
                yield WalkEntry(parts=parts, kind="file", size=status.st_size, status=status)

    def _scan(
        self, entry: WalkEntry, text: str, *, at_most: int, most_bytes: int, in_time: Callable[[], bool]
    ) -> FileMatches | None:
        if is_database(entry.parts[-1]):
            return None
        try:
            with self._directory.regular_file(entry.parts) as (fd, _):
                return scan_file(fd, entry.path, text, at_most=at_most, most_bytes=most_bytes, in_time=in_time)
        except OSError:
            return None

    def _change(self, path: str, parts: Parts, data: bytes | None, key: str) -> tuple[FileChange, str]:
        name = key_name(f"{NO_KEY}-{uuid.uuid4().hex}" if key == NO_KEY else key)
        with self._translate_errors(path, parts):
            return self._keeper.change(parts, data, name), name

    @property
    def _directory(self) -> ConfinedDirectory:
        return self._open()[0]

    @property
    def _keeper(self) -> FileChanger:
        return self._open()[1]

    def _open(self) -> tuple[ConfinedDirectory, FileChanger]:
        with self._lock:
            if self._opened is None:
                if self._create:
                    try:
                        self.root.mkdir(parents=True, exist_ok=True)
                    except OSError as error:
                        raise ConfigError(
                            f"The workspace {str(self.root)!r} cannot be made: {error.strerror}."
                        ) from error
                directory = ConfinedDirectory(self.root, self._opener)
                self._opened = directory, FileChanger(directory, self.limits.kept_bytes)
            return self._opened

    @contextmanager
    def _translate_errors(self, path: str, parts: Parts) -> Iterator[None]:
        """Turn what the system says into a ToolError that names the path."""
        try:
            yield
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "")
            name = _SAME_ERRORS.get(name, name)
            code = next((code for code, names in _FILE_ERRORS.items() if name in names), "io_error")
            reason, hint = error.strerror or str(error), ""
            if code != "io_error":
                reason = TEXTS.run_text(name)
                hint = TEXTS.run_text(f"{name}_hint" if f"{name}_hint" in TEXTS else f"{code}_hint")
            if code == "not_found" and (near := self._near(parts)):
                hint = TEXTS.run_text("near_names", names=", ".join(near))
            is_transient = error.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EBUSY)
            raise TEXTS.error(
                "file_failed", code, hint=hint, retryable=is_transient, path=path, reason=reason
            ) from error

    def _near(self, parts: Parts) -> tuple[str, ...]:
        try:
            siblings = [entry.path for entry in walk(self._directory, parts[:-1], deep=False) if entry.kind == "file"]
        except OSError:
            return ()
        return suggest_names("/".join(parts), siblings)


def _lines_with(text: str, part: str) -> list[int]:
    """The numbers of the lines in which `part` begins, one for each time that it occurs, overlapping ones too."""
    lines, start = [], text.find(part) if part else -1
    while start >= 0:
        lines.append(text.count("\n", 0, start) + 1)
        start = text.find(part, start + 1) if len(lines) <= _MAX_LINES_NAMED else -1
    return lines


def _diff(before: str, after: str, path: str) -> str:
    """The change as a unified diff, cut to a bounded size."""
    lines = unified_diff(before.splitlines(), after.splitlines(), path, path, n=2, lineterm="")
    text = "\n".join(lines)
    return text if len(text) <= _MAX_DIFF_CHARS else f"{text[:_MAX_DIFF_CHARS]}…"


def _read_file(fd: int, at_most: int) -> bytes:
    data = bytearray()
    while len(data) < at_most and (chunk := os.read(fd, at_most - len(data))):
        data += chunk
    return bytes(data)


def _text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
