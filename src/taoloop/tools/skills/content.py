"""The content of a skill: every file of its folder, by name and SHA-256, and one digest of all.

A link, a device or a second file system in it makes the skill unusable, so that what is hashed is what is read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from taoloop.tools.skills.settings import SkillFolder
from taoloop.tools.workspace.confined_dir import (
    MAX_DEPTH,
    ConfinedDirectory,
    check_regular,
    open_stepwise,
    readable_path,
)

_CHUNK = 256 * 1024
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


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
    reader = _Reader(settings, keep)
    with _errors(""):
        fd = top.open_folder((name,))
    try:
        reader.read_folder(fd, "", 0)
    finally:
        os.close(fd)
    return SkillContent(files=dict(sorted(reader.files.items())), kept=reader.kept)


class _Reader:
    """Reads one skill within its bounds."""

    def __init__(self, settings: SkillFolder, keep: Callable[[str], bool]) -> None:
        self.files: dict[str, str] = {}
        self.kept: dict[str, bytes] = {}
        self._settings, self._keep = settings, keep
        self._entries = self._bytes = 0

    def read_folder(self, folder: int, prefix: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ContentError(f"it is more than {MAX_DEPTH} folders deep", hint="Flatten it.")
        with _errors(prefix), os.scandir(folder) as entries:
            for entry in entries:
                path = f"{prefix}{readable_path(entry.name)}"
                self._entries += 1
                if self._entries > self._settings.max_files:
                    message = f"it has more than {self._settings.max_files:,} files and folders"
                    raise ContentError(message, hint="Remove what is no part of it, or raise `max_files`.")
                with _errors(path):
                    if entry.is_dir(follow_symlinks=False):
                        self._read_inner(folder, entry.name, path, depth)
                    else:
                        self._read_file(folder, entry, path)

    def _read_inner(self, folder: int, name: str, path: str, depth: int) -> None:
        fd = open_stepwise(folder, (name,), _FOLDER, 0)
        try:
            self.read_folder(fd, f"{path}/", depth + 1)
        finally:
            os.close(fd)

    def _read_file(self, folder: int, entry: os.DirEntry[str], path: str) -> None:
        if not entry.is_file(follow_symlinks=False):  # some devices act when opened
            check_regular(entry.stat(follow_symlinks=False))
        fd = open_stepwise(folder, (entry.name,), os.O_RDONLY, 0)
        try:
            check_regular(os.fstat(fd))
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


@contextmanager
def _errors(place: str) -> Iterator[None]:
    """Turn what the system says into a ContentError."""
    try:
        yield
    except OSError as error:
        hint = "Put the file or folder itself there, or grant the right to read it."
        raise ContentError(f"it cannot be read: {error.strerror or error}", place=place, hint=hint) from None
