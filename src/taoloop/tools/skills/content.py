"""The content of a skill: every file of its folder, by name and SHA-256, and one digest of all.

A link, a device or a second file system in it makes the skill unusable, so that what is hashed is what is read.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from taoloop.tools.skills.settings import SkillFolder
from taoloop.tools.workspace.confined_dir import (
    MAX_DEPTH,
    ConfinedDirectory,
    check_regular,
    open_member,
    readable_path,
)

_CHUNK = 256 * 1024
_FLATTEN = "Put its files into fewer folders."
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_JOINERS = "\u200c\u200d"  # between signs of an emoji or letters of some scripts
_HIDDEN = frozenset(("Cc", "Cf", "Co", "Cs"))


class ContentError(Exception):
    """A skill that is not read: `place` in it (may be empty), what is wrong and the way out."""

    def __init__(self, message: str, *, place: str = "", hint: str) -> None:
        super().__init__(message)
        self.message, self.place, self.hint = message, place, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillContent:
    """What a folder of a skill held when it was read."""

    files: Mapping[str, str]
    """The SHA-256 of each file, by its path from the folder of the skill, sorted."""
    kept: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The bytes of the files that were asked for."""

    @property
    def digest(self) -> str:
        """The digest of all: `sha256:` and the SHA-256 of the lines `SHA-256  PATH`."""
        lines = "".join(f"{digest}  {path}\n" for path, digest in self.files.items())
        return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def read_content(top: ConfinedDirectory, name: str, settings: SkillFolder, keep: Callable[[str], bool]) -> SkillContent:
    """Read the skill in the folder `name`; the bytes of the files whose path `keep` accepts are kept.

    Raises:
        ContentError: it has too many files or bytes, a link, or something that cannot be read.
    """
    with _Errors(""):
        fd = top.open_folder((name,))
    try:
        reader = _Reader(settings, keep, os.fstat(fd).st_dev)
        reader.read_folder(fd, "", 0)
    finally:
        os.close(fd)
    return SkillContent(files=dict(sorted(reader.files.items())), kept=reader.kept)


class _Reader:
    """Reads one skill within its bounds."""

    def __init__(self, settings: SkillFolder, keep: Callable[[str], bool], device: int) -> None:
        self.files: dict[str, str] = {}
        self.kept: dict[str, bytes] = {}
        self._settings, self._keep, self._device = settings, keep, device
        self._entries = self._bytes = 0

    def read_folder(self, folder: int, prefix: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ContentError(f"it is more than {MAX_DEPTH} folders deep", place=prefix.rstrip("/"), hint=_FLATTEN)
        with _Errors(prefix), os.scandir(folder) as entries:
            for entry in entries:
                path = f"{prefix}{readable_path(entry.name)}"
                self._entries += 1
                if self._entries > self._settings.max_files:
                    message = f"it has more than {self._settings.max_files:,} files and folders"
                    raise ContentError(message, hint="Remove what is no part of it, or raise `max_files`.")
                with _Errors(path):
                    if entry.is_dir(follow_symlinks=False):
                        self._read_inner(folder, entry.name, path, depth)
                    else:
                        self._read_file(folder, entry, path)

    def _read_inner(self, folder: int, name: str, path: str, depth: int) -> None:
        fd, _ = open_member(folder, name, _FOLDER, device=self._device)
        try:
            self.read_folder(fd, f"{path}/", depth + 1)
        finally:
            os.close(fd)

    def _read_file(self, folder: int, entry: os.DirEntry[str], path: str) -> None:
        if not entry.is_file(follow_symlinks=False):  # some devices act when opened
            check_regular(entry.stat(follow_symlinks=False))
        fd, status = open_member(folder, entry.name, os.O_RDONLY, device=self._device)
        try:
            check_regular(status)
            digest, kept = hashlib.sha256(), bytearray() if self._keep(path) else None
            while chunk := os.read(fd, _CHUNK):
                self._bytes += len(chunk)
                if self._bytes > self._settings.max_skill_bytes:
                    message = f"its files have more than {self._settings.max_skill_bytes:,} bytes together"
                    hint = "Remove what is no part of it, or raise `max_skill_bytes`."
                    raise ContentError(message, place=path, hint=hint)
                digest.update(chunk)
                if kept is not None:
                    kept += chunk
        finally:
            os.close(fd)
        self.files[path] = digest.hexdigest()
        if kept is not None:
            self.kept[path] = bytes(kept)


class _Errors:
    """Turns what the system says into a ContentError. A class: it is entered for every file."""

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, OSError):
            hint = "Put the file or folder itself there, or grant the right to read it."
            raise ContentError(f"it cannot be read: {error.strerror or error}", place=self._place, hint=hint) from None


def hidden_character(text: str) -> tuple[int, str] | None:
    """The line (from 1) and the code of the first character that a person who reviews a text does not see; None: none.

    Such characters can carry instructions that only a model reads. A joiner is one unless signs outside of ASCII are on
    both of its sides, as within an emoji.
    """
    if text.isascii() and _CONTROL.search(text) is None:
        return None
    for index, char in enumerate(text):
        if char in "\t\n\r\f" or unicodedata.category(char) not in _HIDDEN:
            continue
        neighbours = text[index - 1 : index], text[index + 1 : index + 2]
        if char in _JOINERS and all(side and not side.isascii() for side in neighbours):
            continue
        return text.count("\n", 0, index) + 1, f"U+{ord(char):04X}"
    return None
