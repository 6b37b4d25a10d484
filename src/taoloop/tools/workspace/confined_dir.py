"""Opening and listing files beneath a directory and nowhere else.

`ConfinedDirectory` holds a descriptor of the directory, so that nobody can exchange it; every open goes through the
kernel's `openat2` (RESOLVE_BENEATH, no symlinks, no magic links, no other mount) or, where there is none,
component by component with O_NOFOLLOW. Only regular files with a single link are opened, never blocking.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal

from taoloop.errors import ConfigError, ToolError
from taoloop.tools.texts import TEXTS

RESERVED = ".taoloop"  # kept for backups; not reachable through a path
_MAX_PATH_BYTES = 1_024
_MAX_NAME_BYTES = 255
MAX_DEPTH = 32
"""Folders on a path; what is deeper is neither opened nor listed."""
_DRIVE = re.compile(r"[A-Za-z]:")

_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_SAFE = _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_OPENAT2 = 437  # the same number on every architecture that Linux had when the call was added, but Alpha
_RESOLVE = 0x01 | 0x02 | 0x04 | 0x08  # NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH

Parts = tuple[str, ...]
Opener = Callable[[int, Parts, int, int], int]
"""Takes the directory, the components, flags and mode; gives a descriptor or raises OSError."""


def path_refused(reason: str, path: str, **values: object) -> ToolError:
    """The error for a path that is not allowed; `reason` names the text that says why, with `values`."""
    path_text = repr(path) if len(path) <= 200 else f"{path[:200]!r}…"
    hint = TEXTS.run_text(f"{reason}_hint" if f"{reason}_hint" in TEXTS else "path_refused_hint")
    reason_text = TEXTS.run_text(reason, **values)
    return TEXTS.error("path_refused", "path_refused", hint=hint, path=path_text, reason=reason_text)


def split_path(path: str, *, internal: bool = False) -> Parts:
    """The components of a relative path with '/' between them; '.' and empty components fall away.

    `internal` permits the reserved folder.

    Raises:
        ToolError: `path_refused` for anything that could mean a place outside, or that no file system takes.
    """
    if not path or path.isspace():
        raise path_refused("path_empty", path)
    if "\0" in path:
        raise path_refused("path_nul", path)
    if path.startswith(("/", "~/")) or path == "~" or _DRIVE.match(path):
        raise path_refused("path_absolute", path)
    if "\\" in path:
        raise path_refused("path_backslash", path)
    try:
        encoded = [part.encode() for part in path.split("/")]
    except UnicodeEncodeError:
        raise path_refused("path_encoding", path) from None
    if sum(map(len, encoded)) > _MAX_PATH_BYTES or max(map(len, encoded)) > _MAX_NAME_BYTES:
        raise path_refused("path_long", path)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise path_refused("path_parent", path)
    if len(parts) > MAX_DEPTH:
        raise path_refused("path_deep", path, limit=MAX_DEPTH)
    if not internal and any(map(is_reserved, parts)):
        raise path_refused("path_reserved", path, name=RESERVED)
    if parts and is_database(parts[-1]):
        raise path_refused("path_database", path)
    return parts


_DATABASE = re.compile(r"\.(db|db3|sqlite|sqlite3)(-wal|-shm|-journal)?$")


def is_reserved(name: str) -> bool:
    """True for the runtime's own folder and temporary files, however a file system may fold the name."""
    plain = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    return plain.casefold().strip(" ") == RESERVED or plain.casefold().startswith(f"{RESERVED}-")


def is_database(name: str) -> bool:
    """True for the name of an SQLite database or of a file beside one.

    Such files are never opened: closing one drops the locks that this very process may hold on it, for SQLite keeps
    them per process ("How To Corrupt An SQLite Database File", section 2.2). They are no text anyway.
    """
    return _DATABASE.search(name.casefold()) is not None


class ConfinedDirectory:
    """A directory, opened once; everything is reached from its descriptor and stays beneath it.

    `opener` None takes `openat2` where the kernel has it. The descriptor is closed with the object, if not before.

    Raises:
        ConfigError: the directory cannot be opened, or this system cannot open files beneath a descriptor.
    """

    fd = -1

    def __init__(self, root: Path, opener: Opener | None = None) -> None:
        if os.open not in os.supports_dir_fd or not _NOFOLLOW or not _DIRECTORY:
            raise ConfigError("A workspace needs Linux or macOS.", hint="Leave the file tools away on this system.")
        try:
            self.fd = os.open(root, os.O_RDONLY | _DIRECTORY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise ConfigError(
                f"The workspace {str(root)!r} cannot be opened: {error.strerror}.",
                hint="Give an existing folder.",
            ) from error
        self._open = opener or best_opener()

    def close(self) -> None:
        """Give the descriptor back; the object cannot be used afterwards."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        """Close."""
        self.close()

    def open_folder(self, parts: Parts) -> int:
        """A descriptor of a folder beneath the root."""
        if not parts:
            return os.dup(self.fd)
        return self._open(self.fd, parts, os.O_RDONLY | _DIRECTORY | _SAFE, 0)

    @contextmanager
    def folder(self, parts: Parts, *, create: bool = False) -> Iterator[int]:
        """A descriptor of a folder for the length of a `with`; `create` makes what folders are missing."""
        if create:
            self._make_folders(parts)
        fd = self.open_folder(parts)
        try:
            yield fd
        finally:
            os.close(fd)

    def _make_folders(self, parts: Parts) -> None:
        missing = 0  # how many of the last components are missing
        while missing < len(parts):
            with suppress(FileNotFoundError):
                os.close(self.open_folder(parts[: len(parts) - missing]))
                break
            missing += 1
        for depth in range(len(parts) - missing, len(parts)):
            with self.folder(parts[:depth]) as parent, suppress(FileExistsError):
                os.mkdir(parts[depth], dir_fd=parent)  # beneath the descriptor
                os.fsync(parent)

    @contextmanager
    def regular_file(self, parts: Parts) -> Iterator[tuple[int, os.stat_result]]:
        """A descriptor (to read) and the status of a regular file with one link.

        Raises:
            OSError: as `open` does; EISDIR for a folder, ENXIO for what is no file, EMLINK for a hard link.
        """
        if not parts:
            raise IsADirectoryError(errno.EISDIR, "a folder")
        with self.folder(parts[:-1]) as parent:
            check_regular(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False))  # some devices act when opened
        fd = self._open(self.fd, parts, os.O_RDONLY | _SAFE, 0)
        try:
            status = os.fstat(fd)
            check_regular(status)
            yield fd, status
        finally:
            os.close(fd)


def check_regular(status: os.stat_result) -> None:
    """Raise OSError unless it is a regular file with one link."""
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "a symbolic link")
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, "a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, "not a regular file")
    if status.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has hard links")


def open_stepwise(root: int, parts: Parts, flags: int, mode: int) -> int:
    """`Opener` for every POSIX system: component by component, none of them a link or on another device."""
    device = os.fstat(root).st_dev
    here = os.dup(root)
    try:
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            there = open_member(here, part, flags if last else os.O_RDONLY | _DIRECTORY, mode, device=device)[0]
            os.close(here)
            here = there
    except BaseException:
        os.close(here)
        raise
    return here


def open_member(folder: int, name: str, flags: int, mode: int = 0, *, device: int) -> tuple[int, os.stat_result]:
    """A member of an open folder, neither a link nor on another device than this one, and its status."""
    try:
        fd = os.open(name, flags | _SAFE, mode, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, "a symbolic link") from None
        raise
    status = os.fstat(fd)
    if status.st_dev != device:
        os.close(fd)
        raise OSError(errno.EXDEV, "another file system")
    return fd, status


@cache
def best_opener() -> Opener:
    """`openat2` if this kernel has it and permits it, else `open_stepwise`."""
    opener = _openat2_opener() if sys.platform == "linux" else None
    return opener or open_stepwise


def _openat2_opener() -> Opener | None:
    import ctypes  # noqa: PLC0415  # only Linux, and only when a workspace is opened

    class OpenHow(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    try:
        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None

    def opener(root: int, parts: Parts, flags: int, mode: int) -> int:
        path = os.fsencode("/".join(parts))
        how = OpenHow((flags | _SAFE) & ~_NOFOLLOW, mode, _RESOLVE)  # RESOLVE_NO_SYMLINKS says ELOOP, as it should
        for _attempt in range(32):  # EAGAIN: a rename raced with the walk
            fd = syscall(
                ctypes.c_long(_OPENAT2),
                ctypes.c_int(root),
                path,
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
            if fd >= 0:
                return int(fd)
            code = ctypes.get_errno()
            if code not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(code, os.strerror(code), path.decode(errors="replace"))

    try:
        probe = os.open("/", os.O_RDONLY | _DIRECTORY)
        try:
            os.close(opener(probe, (".",), os.O_RDONLY | _DIRECTORY, 0))
        finally:
            os.close(probe)
    except OSError:  # ENOSYS of an old kernel, EPERM of a strict container
        return None
    return opener


_MAX_IN_FOLDER = 50_000  # more than any caller looks at, so that a cut is noticed

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
    status: os.stat_result
    """What the system says of it."""

    @property
    def path(self) -> str:
        """The path with '/', readable also where the name is not UTF-8."""
        return readable_path("/".join(self.parts))


def readable_path(path: str) -> str:
    """A path as text: bytes of a name that are not UTF-8 are written in hexadecimal."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def walk(directory: ConfinedDirectory, parts: Parts, *, deep: bool) -> Iterator[WalkEntry]:
    """The entries of a folder, sorted; `deep` goes into folders, but never through links."""
    with directory.folder(parts) as fd:
        entries = sorted(islice(_scan(fd, parts), _MAX_IN_FOLDER), key=lambda entry: entry.parts)
    for entry in entries:
        yield entry
        if deep and entry.kind == "folder" and len(entry.parts) < MAX_DEPTH:
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
            size = status.st_size if kind == "file" else 0
            yield WalkEntry(parts=(*parts, item.name), kind=kind, size=size, status=status)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"
