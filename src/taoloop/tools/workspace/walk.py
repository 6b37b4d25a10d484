"""Listing and searching the folders of a workspace, within bounds of entries, bytes and time."""

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

from taoloop.errors import ToolError
from taoloop.tools.workspace.confined_dir import ConfinedDirectory, Parts, is_reserved

_MAX_DEPTH = 32
_MAX_IN_FOLDER = 50_000  # more than any caller looks at, so that a cut is noticed
_LONGEST_PATTERN = 200

Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkEntry:
    """One thing in a folder: its path from the root and its size in bytes (0 for what is no file)."""

    parts: Parts
    kind: Kind
    size: int

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
        raise ToolError(
            "The pattern is empty or too complicated.",
            code="bad_pattern",
            hint="Use a pattern such as *.txt or **/*.py.",
        )
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


BLOCK_BYTES = 1_000_000
_MAX_LINE_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A line that contains the text: `line` counts from 1, `text` is at most 200 characters of it."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What one file gave: `read` bytes were looked at, and `whole` says whether that was all of it."""

    matches: tuple[Found, ...]
    bytes_read: int
    whole: bool


def scan_file(
    fd: int,
    path: str,
    text: str,
    *,
    at_most: int,
    most_bytes: int,
    in_time: Callable[[], bool],
    block_bytes: int = BLOCK_BYTES,
) -> Scanned | None:
    """The first `at_most` lines with `text`; None if the file is not UTF-8 text.

    No more than about a block of the file is in memory, however long its lines are.
    """
    search = _Search(path, text, block_bytes)
    bytes_read, whole = 0, False
    try:
        for block in _blocks(fd, most_bytes, block_bytes):
            if b"\0" in block:
                return None
            search.take(block)
            bytes_read += len(block)
            if len(search.found) >= at_most or not in_time():
                break
        else:
            whole = not os.read(fd, 1)
        if whole or bytes_read < most_bytes:
            search.end(whole=whole)
    except UnicodeDecodeError:
        return None
    return Scanned(matches=tuple(search.found[:at_most]), bytes_read=bytes_read, whole=whole)


def _blocks(fd: int, most_bytes: int, block_bytes: int) -> Iterator[bytes]:
    remaining = most_bytes
    while remaining > 0 and (block := os.read(fd, min(block_bytes, remaining))):
        remaining -= len(block)
        yield block


class _Search:
    """What was found so far, and the line that is not over yet."""

    def __init__(self, path: str, text: str, longest: int) -> None:
        self.path, self.text, self.longest = path, text, longest
        self.found: list[Found] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest, self._number, self._told = "", 1, False

    def take(self, block: bytes) -> None:
        """Look at the next block."""
        *lines, self._rest = (self._rest + self._decoder.decode(block)).split("\n")
        for line in lines:
            self._look(line)
            self._number, self._told = self._number + 1, False
        if len(self._rest) > self.longest:  # an endless line: its end is kept, in which a match may have begun
            self._look(self._rest)
            self._rest = self._rest[-(_MAX_LINE_CHARS + len(self.text)) :]

    def end(self, *, whole: bool) -> None:
        """Look at the last line.

        Raises:
            UnicodeDecodeError: the whole file ends within a character.
        """
        if whole:
            self._rest += self._decoder.decode(b"", final=True)
        self._look(self._rest)

    def _look(self, line: str) -> None:
        at = -1 if self._told else line.find(self.text)
        if at < 0:
            return
        start = max(0, at - _MAX_LINE_CHARS // 2) if len(line) > _MAX_LINE_CHARS else 0
        text = line[start : start + _MAX_LINE_CHARS].rstrip("\r")
        self.found.append(Found(path=self.path, line=self._number, text=text))
        self._told = True
