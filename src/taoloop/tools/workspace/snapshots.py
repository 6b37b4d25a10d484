"""Snapshots of a workspace, so that what a program did to its files can be taken back.

A program changes files as it likes, so nobody can keep a file at the moment when it is about to change. Instead the
workspace is looked at before and after: what differs is what the program did. Under `.taoloop/snapshots/`, `objects/`
holds the content of every file under its SHA-256, `index.json` says which file had which content when it was last
looked at, and `<key>.json` what the call with that key changed.

A file is read again only if the system's own record of it (size, times, inode) has changed; programs cannot set the
time of change (ctime). A file that changed just before it was read is read again the next time too, because a second
change within the clock's granularity would leave no trace (git calls such an entry racy).

Restoring goes file by file. Each is either as the call left it or already as it was before, else nothing at all is
touched; so a restore that was interrupted is simply done again.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from taoloop.errors import ToolError
from taoloop.tools.texts import TEXTS
from taoloop.tools.workspace.confined_dir import (
    MAX_DEPTH,
    RESERVED,
    ConfinedDirectory,
    Parts,
    WalkEntry,
    is_database,
    readable_path,
    walk,
)
from taoloop.tools.workspace.file_changes import key_name, read_chunks, store_file
from taoloop.tools.workspace.workspace import NO_KEY

_FOLDER: Parts = (RESERVED, "snapshots")
_RACY_NS = 50_000_000  # a few ticks of the clock by which the system notes changes


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLimits:
    """How much of a workspace is kept."""

    file_bytes: int = 64_000_000
    """The largest file whose content is kept."""
    total_bytes: int = 1_000_000_000
    """How much the kept files may have together."""
    entries: int = 20_000
    """How many files and folders are looked at."""


class FileState(NamedTuple):
    """What is at a path."""

    kind: str
    """`file`, `folder`, `link`, or `unkept`: something whose content is not kept."""
    content: str = ""
    """The SHA-256 of a file, the target of a link, or what tells an unkept thing from another."""
    mode: int = 0
    """The permission bits of a file or folder; 0 for a folder of an earlier record."""


Change = tuple[FileState | None, FileState | None]
"""What was at a path before and after; None: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChanges:
    """What changed between two looks."""

    backup: str
    """The name by which it can be restored."""
    changes: Mapping[str, Change]
    """Each path with what was there before and after."""

    @property
    def paths(self) -> list[str]:
        """The readable paths of changed files and links, and of folders made, removed or changed in mode, sorted."""
        return sorted(map(readable_path, self.changes))

    @property
    def unkept(self) -> list[str]:
        """The paths whose earlier content was not kept, so that they cannot be restored."""
        return sorted(readable_path(path) for path, (before, _) in self.changes.items() if _is_unkept(before))


class Snapshots:
    """The snapshots of one workspace. Nothing is opened before the first use."""

    def __init__(self, root: Path, limits: SnapshotLimits | None = None) -> None:
        self._root, self._limits = root, limits or SnapshotLimits()
        self._lock = threading.Lock()
        self._opened: ConfinedDirectory | None = None

    def take(self) -> dict[str, FileState]:
        """Look at the workspace now, and keep what was not kept yet.

        Raises:
            ConfigError: the folder cannot be opened.
            ToolError: `snapshot_failed`, it cannot be read or kept.
        """
        with self._lock:
            try:
                return _Look(self._directory, self._limits).states()
            except OSError as error:
                reason = error.strerror or str(error)
                raise TEXTS.error("snapshot_failed", "snapshot_failed", reason=reason) from error

    def record(self, before: Mapping[str, FileState], key: str) -> SnapshotChanges:
        """Note what changed since `before`, under the key of a call; it can be restored from now on.

        Raises:
            ToolError: as `take`.
        """
        after = self.take()
        changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        return self._note({path: (before.get(path), after.get(path)) for path in changed}, key)

    def restore(self, backup: str, key: str = NO_KEY) -> SnapshotChanges:
        """Bring back what the call with this backup changed; that is a change with a backup of its own.

        Raises:
            ToolError: there is no such backup (`no_backup`), files were changed since (`changed_since`), the content
                of some was not kept (`not_kept`): nothing was changed. `restore_failed`: some may be restored; again.
        """
        changes = self._load(backup)
        present = self.take()
        differing = sorted(path for path, change in changes.items() if not _is_any(present.get(path), change))
        if differing:
            raise TEXTS.error("files_changed_since", "changed_since", paths=_listed(differing), backup=backup)
        todo = {path: before for path, (before, _) in changes.items() if present.get(path) != before}
        unkept = sorted(path for path, before in todo.items() if _is_unkept(before))
        if unkept:
            raise TEXTS.error("files_not_kept", "not_kept", paths=_listed(unkept))
        try:
            self._bring_back(todo, present)
        except OSError as error:
            reason = error.strerror or str(error)
            raise TEXTS.error("restore_failed", "restore_failed", reason=reason, backup=backup) from error
        return self._note({path: (after, before) for path, (before, after) in changes.items()}, key)

    def _bring_back(self, todo: Mapping[str, FileState | None], present: Mapping[str, FileState]) -> None:
        for path in sorted(todo):  # a program may have locked a folder, for its owner too
            if path in present and present[path].kind == "folder" and present[path].mode & 0o700 != 0o700:
                self._set_mode(_parts(path), present[path].mode | 0o700)
        for path in sorted(todo, reverse=True):  # what is in a folder comes before it
            if path in present and (todo[path] is None or not _can_replace(present[path], todo[path])):
                self._remove(_parts(path), is_folder=present[path].kind == "folder")
        for path in sorted(todo):
            state, parts = todo[path], _parts(path)
            if state is None:
                continue
            with self._directory.folder(parts[:-1], create=True) as parent:
                if state.kind == "folder":
                    with suppress(FileExistsError):
                        os.mkdir(parts[-1], dir_fd=parent)
                elif state.kind == "link":
                    os.symlink(state.content, parts[-1], dir_fd=parent)
            if state.kind == "file":
                store_file(self._directory, parts, [self._kept(state.content)], mode=state.mode)
        for path in sorted(todo, reverse=True):  # last of all: a folder may not let anything be written into it
            if (state := todo[path]) is not None and state.kind == "folder" and state.mode:
                self._set_mode(_parts(path), state.mode)

    def _set_mode(self, parts: Parts, mode: int) -> None:
        with self._directory.folder(parts) as fd:
            os.fchmod(fd, mode)

    def _remove(self, parts: Parts, *, is_folder: bool) -> None:
        with self._directory.folder(parts[:-1]) as parent, suppress(FileNotFoundError):
            if is_folder:
                with suppress(OSError):  # not empty: somebody else has put something there since
                    os.rmdir(parts[-1], dir_fd=parent)
            else:
                os.unlink(parts[-1], dir_fd=parent)

    def _kept(self, digest: str) -> bytes:
        with self._directory.regular_file((*_FOLDER, "objects", digest)) as (fd, _):
            data = b"".join(read_chunks(fd))
        if hashlib.sha256(data).hexdigest() != digest:
            raise OSError(0, TEXTS.run_text("object_damaged", digest=digest))
        return data

    def _note(self, changes: Mapping[str, Change], key: str) -> SnapshotChanges:
        name = key_name(f"{NO_KEY}-{uuid.uuid4().hex}" if key == NO_KEY else key)
        _write_json(self._directory, f"{name}.json", {"changes": changes}, durable=True)
        return SnapshotChanges(backup=name, changes=changes)

    def _load(self, backup: str) -> dict[str, Change]:
        record = _read_json(self._directory, f"{key_name(backup)}.json")
        if record is None:
            raise TEXTS.error("no_snapshot", "no_backup", backup=backup)
        try:
            return {path: (_state(before), _state(after)) for path, (before, after) in record["changes"].items()}
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise TEXTS.error("bad_record", "io_error", name=backup) from error

    @property
    def _directory(self) -> ConfinedDirectory:
        if self._opened is None:
            self._opened = ConfinedDirectory(self._root)
        return self._opened


class _Look:
    """One look at a workspace: what is at each path, with the content of files kept."""

    def __init__(self, directory: ConfinedDirectory, limits: SnapshotLimits) -> None:
        self._directory, self._limits = directory, limits
        self._index: dict[str, list[Any]] = {}
        self._total_bytes = 0
        self._objects: set[str] | None = None

    def states(self) -> dict[str, FileState]:
        """What is at each path."""
        earlier: dict[str, list[Any]] = {}
        with suppress(ToolError):  # damaged: everything is read again
            earlier = _read_json(self._directory, "index.json") or {}
        states: dict[str, FileState] = {}
        for count, entry in enumerate(walk(self._directory, (), deep=True)):
            if count >= self._limits.entries:
                raise OSError(0, TEXTS.run_text("too_many_files", limit=self._limits.entries))
            if entry.kind == "folder" and len(entry.parts) >= MAX_DEPTH:
                raise OSError(0, TEXTS.run_text("too_deep_folders", limit=MAX_DEPTH))
            states["/".join(entry.parts)] = self._state(entry, earlier)
        if self._index != earlier:
            _write_json(self._directory, "index.json", self._index, durable=False)
        return states

    def _state(self, entry: WalkEntry, earlier: Mapping[str, list[Any]]) -> FileState:
        status, path = entry.status, "/".join(entry.parts)
        if entry.kind == "folder":
            return FileState("folder", mode=stat.S_IMODE(status.st_mode))
        if entry.kind == "link":
            with self._directory.folder(entry.parts[:-1]) as parent:
                return FileState("link", os.readlink(entry.parts[-1], dir_fd=parent))
        identity = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        unkept = FileState("unkept", "-".join(map(str, (status.st_size, status.st_mtime_ns, status.st_ino))))
        self._total_bytes += entry.size
        is_large = entry.size > self._limits.file_bytes or self._total_bytes > self._limits.total_bytes
        if entry.kind != "file" or is_large or status.st_nlink > 1 or is_database(entry.parts[-1]):
            return unkept
        known = earlier.get(path)
        if known is not None and known[:4] == identity and known[4] > status.st_ctime_ns + _RACY_NS:
            self._index[path] = known
            digest = known[5]
        else:
            looked_ns = time.time_ns()
            try:
                digest = self._keep(entry.parts)
            except PermissionError:
                return unkept
            self._index[path] = [*identity, looked_ns, digest]
        return FileState("file", digest, stat.S_IMODE(status.st_mode))

    def _keep(self, parts: Parts) -> str:
        """The SHA-256 of a file whose content is kept now."""
        with self._directory.regular_file(parts) as (fd, _):
            hashed = hashlib.sha256()
            for chunk in read_chunks(fd):
                hashed.update(chunk)
            digest = hashed.hexdigest()
            if digest not in self._kept_objects():
                os.lseek(fd, 0, os.SEEK_SET)
                store_file(self._directory, (*_FOLDER, "objects", digest), read_chunks(fd), mode=0o600, durable=False)
                self._kept_objects().add(digest)
        return digest

    def _kept_objects(self) -> set[str]:
        if self._objects is None:
            with self._directory.folder((*_FOLDER, "objects"), create=True) as fd:
                self._objects = set(os.listdir(fd))  # noqa: PTH208  # beneath the descriptor
        return self._objects


def _is_unkept(state: FileState | None) -> bool:
    return state is not None and state.kind == "unkept"


def _is_any(present: FileState | None, change: Change) -> bool:
    """Whether what is at a path is one of two states; of a folder only that it is one counts, not its mode."""
    is_folder = present is not None and present.kind == "folder"
    return present in change or (is_folder and any(state is not None and state.kind == "folder" for state in change))


def _can_replace(present: FileState, state: FileState | None) -> bool:
    """Whether a file or folder can be made in place of what is there without removing it first."""
    return state is not None and present.kind == state.kind and state.kind in ("file", "folder")


def _state(stored: list[Any] | None) -> FileState | None:
    return None if stored is None else FileState(*stored)


def _parts(path: str) -> Parts:
    return tuple(path.split("/"))


def _listed(paths: Iterable[str]) -> str:
    paths = list(map(readable_path, paths))
    return ", ".join(paths[:10]) + (f" (+{len(paths) - 10})" if len(paths) > 10 else "")


def _read_json(directory: ConfinedDirectory, name: str) -> Any:
    try:
        with directory.regular_file((*_FOLDER, name)) as (fd, _):
            return json.loads(b"".join(read_chunks(fd)))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise TEXTS.error("bad_record", "io_error", name=name) from error


def _write_json(directory: ConfinedDirectory, name: str, value: Any, *, durable: bool) -> None:
    store_file(directory, (*_FOLDER, name), [json.dumps(value).encode()], mode=0o600, durable=durable)
