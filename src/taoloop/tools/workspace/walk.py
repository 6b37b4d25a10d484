"""Listing and searching the folders of a workspace, within bounds of entries, bytes and time.

A file is searched block by block, so that no more than about one block of it is in memory.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from typing import Literal

from taoloop.tools.texts import TEXTS
from taoloop.tools.workspace.confined_dir import ConfinedDirectory, Parts, is_reserved

_MAX_DEPTH = 32
_MAX_IN_FOLDER = 50_000  # more than any caller looks at, so that a cut is noticed
_LONGEST_PATTERN = 200
_MAX_LINE_CHARS = 200
BLOCK_BYTES = 1_000_000

Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkEntry:
    """One thing in a folder."""

    parts: Parts
    """Its path from the root."""
    kind: Kind
    """What it is."""
    size: int
    """Its size in bytes, 0 for what is not a file."""

    @property
    def path(self) -> str:
        """The path with '/', readable also where the name is not UTF-8."""
        return "/".join(self.parts).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def walk(directory: ConfinedDirectory, parts: Parts, *, deep: bool) -> Iterator[WalkEntry]:
    """The entries of a folder, sorted; `deep` goes into folders, but never through links."""
    with directory.folder(parts) as fd:
        entries = sorted(islice(_scan(fd, parts), _MAX_IN_FOLDER), key=lambda entry: entry.parts)
    for entry in entries:
        yield entry
        if deep and entry.kind == "folder" and len(entry.parts) < _MAX_DEPTH:
            try:
                yield from walk(directory, entry.parts, deep=True)
            except OSError:  # vanished, another file system, no permission: listed, but not entered
                continue


def _scan(fd: int, parts: Parts) -> Iterator[WalkEntry]:
    with os.scandir(fd) as scandir_entries:
        for item in scandir_entries:
            if is_reserved(item.name):
                continue
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:
                continue
            kind = _kind(status.st_mode)
            yield WalkEntry(parts=(*parts, item.name), kind=kind, size=status.st_size if kind == "file" else 0)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingLine:
    """A line that contains the text."""

    path: str
    """The file."""
    line: int
    """The number of the line, from 1."""
    text: str
    """At most 200 characters of the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatches:
    """What the search of one file found."""

    matches: tuple[MatchingLine, ...]
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
    search = _FileSearch(path, text, block_bytes)
    bytes_read, is_whole = 0, False
    try:
        for block in _blocks(fd, most_bytes, block_bytes):
            if b"\0" in block:
                return None
            search.add(block)
            bytes_read += len(block)
            if len(search.matches) >= at_most or not in_time():
                break
        else:
            is_whole = not os.read(fd, 1)
        if is_whole or bytes_read < most_bytes:
            search.finish(is_whole=is_whole)
    except UnicodeDecodeError:
        return None
    return FileMatches(matches=tuple(search.matches[:at_most]), bytes_read=bytes_read, is_whole=is_whole)


def _blocks(fd: int, most_bytes: int, block_bytes: int) -> Iterator[bytes]:
    remaining = most_bytes
    while remaining > 0 and (block := os.read(fd, min(block_bytes, remaining))):
        remaining -= len(block)
        yield block


class _FileSearch:
    """The matches so far, and the line that is not complete yet."""

    def __init__(self, path: str, text: str, max_line_chars: int) -> None:
        self.path, self.text, self.max_line_chars = path, text, max_line_chars
        self.matches: list[MatchingLine] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest, self._number, self._has_match = "", 1, False

    def add(self, block: bytes) -> None:
        """Search the next block."""
        *lines, self._rest = (self._rest + self._decoder.decode(block)).split("\n")
        for line in lines:
            self._search(line)
            self._number, self._has_match = self._number + 1, False
        if len(self._rest) > self.max_line_chars:  # of an endless line the end stays: a match may have begun there
            self._search(self._rest)
            self._rest = self._rest[-(_MAX_LINE_CHARS + len(self.text)) :]

    def finish(self, *, is_whole: bool) -> None:
        """Search the last line.

        Raises:
            UnicodeDecodeError: the whole file ends within a character.
        """
        if is_whole:
            self._rest += self._decoder.decode(b"", final=True)
        self._search(self._rest)

    def _search(self, line: str) -> None:
        position = -1 if self._has_match else line.find(self.text)
        if position < 0:
            return
        start = max(0, position - _MAX_LINE_CHARS // 2) if len(line) > _MAX_LINE_CHARS else 0
        text = line[start : start + _MAX_LINE_CHARS].rstrip("\r")
        self.matches.append(MatchingLine(path=self.path, line=self._number, text=text))
        self._has_match = True
