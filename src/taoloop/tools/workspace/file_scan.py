"""Looks for a text in a file of any size, block by block: lines with their numbers, and nothing of what is not text."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
