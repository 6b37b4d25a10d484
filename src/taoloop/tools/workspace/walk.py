"""Listing and searching the folders of a workspace, within bounds of entries, bytes and time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
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
