"""A workspace: a folder that tools can read and write and never leave."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from taoloop.core.search import suggest_names
from taoloop.errors import ConfigError, ToolError
from taoloop.tools.workspace.confined_dir import ConfinedDirectory, Opener, Parts, is_database, refuse, split_path
from taoloop.tools.workspace.file_changes import FileChange, FileChanger, key_name
from taoloop.tools.workspace.walk import Found, Scanned, WalkEntry, check_pattern, fits, scan_file, walk

NO_KEY = "by-hand"  # the key of a ToolContext that no run made: every such call is a change of its own
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

_OTHERS: dict[int, tuple[str, str, str]] = {
    errno.ENOENT: ("not_found", "there is no such file or folder", "List the files with list_files."),
    errno.ENOTDIR: ("not_found", "a part of it is a file, not a folder", "List the files with list_files."),
    errno.EISDIR: ("not_a_file", "it is a folder", "Give the path of a file."),
    errno.ENXIO: ("not_a_file", "it is not a regular file", "Only regular files are opened."),
    errno.ENODEV: ("not_a_file", "it is not a regular file", "Only regular files are opened."),
    errno.ELOOP: (
        "path_refused",
        "it leads through a symbolic link",
        "Use the real path inside the workspace.",
    ),
    errno.EXDEV: ("path_refused", "it leads out of the workspace", "Use a path inside the workspace."),
    errno.EMLINK: ("path_refused", "the file has hard links", "Copy the file to another name."),
    errno.EACCES: ("permission_denied", "the system denies access", "Use another place."),
    errno.EPERM: ("permission_denied", "the system denies access", "Use another place."),
    errno.EROFS: ("permission_denied", "the file system is read-only", "Use another place."),
    errno.ENOSPC: ("disk_full", "no space is left on the device", "Stop writing and tell the user."),
    errno.EDQUOT: ("disk_full", "the disk quota is used up", "Stop writing and tell the user."),
    errno.EFBIG: ("disk_full", "the file would be larger than the system permits", "Write less."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLimits:
    """The bounds of one call in a workspace."""

    read_bytes: int = 1_000_000
    write_bytes: int = 1_000_000
    kept_bytes: int = 64_000_000  # the largest file that may be overwritten, as it is copied into the backup first
    entries: int = 500  # listed
    scanned: int = 20_000  # looked at, in a listing or a search
    matches: int = 100
    search_bytes: int = 64_000_000
    search_s: float = 5.0  # wall time


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """`complete` is False if a bound of matches, files, bytes or time was met; `skipped` were not text."""

    matches: tuple[Found, ...]
    searched: int
    skipped: int
    complete: bool


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

    def close(self) -> None:
        """Give the descriptor of the folder back; the next use opens it again."""
        with self._lock:
            if self._opened is not None:
                self._opened[0].close()
                self._opened = None

    def __enter__(self) -> Workspace:
        """Use the workspace in a `with`; its end closes it."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()

    def __del__(self) -> None:
        """Close."""
        if getattr(self, "_opened", None) is not None:
            self.close()

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
                raise ToolError(
                    f"The file {path!r} has {status.st_size:,} bytes; at most {limit:,} are read.",
                    code="too_large",
                    hint="Find the part that matters with search_files.",
                )
        text = _text(data)
        if text is None:
            raise ToolError(f"The file {path!r} is not UTF-8 text.", code="not_text", hint="Only text files are read.")
        return text

    def write_text(self, path: str, content: str, key: str = NO_KEY) -> tuple[FileChange, str]:
        """Make `content` the file's text; gives what changed and the name of the backup.

        Folders are made as needed. A second call with the same key changes nothing.

        Raises:
            ToolError: the path is refused or no file, the content too large or not text, or the disk failed.
        """
        parts = split_path(path)
        if not parts:
            raise refuse("it names the workspace itself", path)
        if _CONTROL.search(path):
            raise refuse("a new name must not contain line breaks or control characters", path)
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise ToolError("The content is not valid text (lone surrogates).", code="not_text") from None
        if len(data) > self.limits.write_bytes:
            raise ToolError(
                f"The content has {len(data):,} bytes; at most {self.limits.write_bytes:,} are written.",
                code="too_large",
                hint="Write it as several files.",
            )
        return self._change(path, parts, data, key)

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
                raise ToolError(f"There is no backup {backup!r} of {path!r}.", code="no_backup")
            present = keeper.digest(parts)
            own = keeper.record(key_name(key)) if key != NO_KEY else None
            if own is None and present != undone.after:
                raise ToolError(
                    f"{path!r} was changed after the write that {backup!r} belongs to; it was not restored.",
                    code="changed_since",
                    hint="Read the file and write what it should contain.",
                )
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
            raise ToolError("The text to search is empty or has several lines.", code="bad_text")
        matches: list[Found] = []
        searched = skipped = bytes_read = 0
        complete = True
        deadline = self._clock() + self.limits.search_s
        with self._translate_errors(path, parts):
            for count, entry in enumerate(self._files(parts)):
                in_budget = (
                    bytes_read < self.limits.search_bytes and self._clock() < deadline and count < self.limits.scanned
                )
                if not in_budget or len(matches) > self.limits.matches:
                    complete = False
                    break
                if entry.kind != "file" or not fits(pattern, entry.parts[len(parts) :] or entry.parts[-1:]):
                    continue
                room, remaining_bytes = self.limits.matches + 1 - len(matches), self.limits.search_bytes - bytes_read
                scanned = self._scan(entry, text, at_most=room, most_bytes=remaining_bytes, deadline=deadline)
                if scanned is None:
                    skipped += 1
                    continue
                searched, bytes_read = searched + 1, bytes_read + scanned.bytes_read
                complete = complete and scanned.whole
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
                yield WalkEntry(parts=parts, kind="file", size=status.st_size)

    def _scan(self, entry: WalkEntry, text: str, *, at_most: int, most_bytes: int, deadline: float) -> Scanned | None:
        if is_database(entry.parts[-1]):
            return None
        try:
            with self._directory.regular_file(entry.parts) as (fd, _):
                return scan_file(
                    fd,
                    entry.path,
                    text,
                    at_most=at_most,
                    most_bytes=most_bytes,
                    in_time=lambda: self._clock() < deadline,
                )
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
            code, what, hint = _OTHERS.get(error.errno or 0, ("io_error", error.strerror or str(error), ""))
            if code == "not_found" and (near := self._near(parts)):
                hint = f"Near names: {', '.join(near)}."
            raise ToolError(
                f"{path!r} cannot be used: {what}.",
                code=code,
                hint=hint,
                retryable=error.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EBUSY),
            ) from error

    def _near(self, parts: Parts) -> tuple[str, ...]:
        try:
            siblings = [entry.path for entry in walk(self._directory, parts[:-1], deep=False) if entry.kind == "file"]
        except OSError:
            return ()
        return suggest_names("/".join(parts), siblings)


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
