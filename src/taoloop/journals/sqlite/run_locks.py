"""Leases and fencing: which process is at work on a run, and which one may write to it.

The problem: a process that drives a run may be killed, may hang, or may be stopped and wake up an hour later, when
another process has resumed its run. Two writers would mix two histories in one trace, and from silence alone nobody can
tell a dead process from a slow one.

The idea has two independent parts. Who may write is decided by the fence alone: whoever acquires a run raises its fence
in the database, every append carries the fence of its lease, and the transaction that would store an append with an
older fence refuses it (`FenceLost`, in `batch`). Who is at work is shown by locks of the operating system in an empty
file beside the database, which end with their process. Each lease has a byte of its own, found by the hash of its run
and fence, and its holder keeps this byte locked. So nothing is written, no heartbeat is needed, and a process that was
killed holds nothing from that moment on, whichever process gets its number next. A newer lease of the same run has
another byte: a process that is only stopped, or hangs, is not mistaken for the new holder.

The invariant: of all leases of a run only the one with the highest fence can append. The locks only inform recovery and
people; where a system has none, nothing can be stored twice or lost because of that.

Tested in `tests/journals/sqlite/test_run_locks.py` (processes that are killed, stopped and forked), and in the contract
suite: `test_a_zombie_writes_nothing`, `test_taking_a_run_raises_its_fence_and_keeps_its_events`.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from taoloop.journals.base import Lease, LockHolder, is_unresumed_fork
from taoloop.journals.process_identity import ProcessIdentity, parse_identity
from taoloop.journals.sqlite import schema
from taoloop.journals.sqlite.errors import explain

try:
    import fcntl

    _HAS_FCNTL = True
except ImportError:  # Windows: there are no such locks
    _HAS_FCNTL = False


T = TypeVar("T")

_RECHECK_S = 1.0
"""How long an open lock file counts as the file at the path: to check costs as much as to lock."""

_LOCK_ATTEMPTS, _LOCK_PAUSE_S = 100, 0.002
"""How long a lock that somebody has is tried again: testing it takes microseconds."""

_FLOCK = struct.Struct("hhqqi")  # of Linux: type, whence, start, length, process

_FENCE = "SELECT fence FROM run WHERE id = ?"
_HOLDER = "SELECT holder FROM run WHERE id = ?"
_RUNNING = """
SELECT id, fence FROM run WHERE status = 'running' AND EXISTS (SELECT 1 FROM event WHERE run_id = run.id)
ORDER BY number
"""
_START = """
SELECT json_extract(body, '$.parent'), json_extract(body, '$.submission.queue'), json_extract(body, '$.forked_from'), (
  SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.reason') END
  FROM event AS later WHERE later.run_id = event.run_id AND kind = 'resumed' ORDER BY seq DESC LIMIT 1
) FROM event WHERE run_id = ? AND seq = 0 AND json_valid(body)
"""


class _Start(NamedTuple):
    """What the beginning of a run says about who sees to it if its process dies."""

    parent: str | None
    """The run around it."""

    queue: str | None
    """The queue of its workers, if it was submitted."""

    is_new_fork: bool
    """Whether it is a fork that nobody has resumed yet."""


def _start_of(connection: sqlite3.Connection, run_id: str) -> _Start:
    parent, queue, origin, reason = connection.execute(_START, (run_id,)).fetchone() or (None, None, None, None)
    return _Start(parent, queue, is_unresumed_fork(origin, reason))


class _ReadDatabase(Protocol):
    """Reads from the database of the journal."""

    def __call__(self, query: Callable[[sqlite3.Connection], T], /) -> Awaitable[T]: ...


def run_locks_beside(path: Path, read_database: _ReadDatabase) -> FileRunLocks | None:
    """The run locks of the journal in the file `path`; None on a system without such locks."""
    return FileRunLocks(path, read_database) if _HAS_FCNTL else None


class FileRunLocks:
    """Which processes of this machine are at work on the runs of a database."""

    def __init__(self, path: Path, read_database: _ReadDatabase) -> None:
        self._database, self._read_database = path, read_database
        self._path = path.with_name(f"{path.name}-held")
        self._files: dict[int, tuple[Lease, _File]] = {}  # by identity: two that begin one run have equal leases
        self._current_file: _File | None = None
        self._checked_at = 0.0

    async def holder(self, run_id: str) -> LockHolder | None:
        """The holder of the newest lease of a run; None if there is none."""
        row = await self._read_database(lambda connection: connection.execute(_FENCE, (run_id,)).fetchone())
        holder = None if row is None else self._holder(Lease(run_id=run_id, fence=row[0]))
        if holder is None or holder.process is None or (identity := await self._identity(run_id)) is None:
            return holder
        is_same = identity.process == str(holder.process) and identity.is_identified
        return replace(holder, identity=identity) if is_same else holder

    async def was_elsewhere(self, run_id: str) -> bool:
        """As `RunLocks.was_elsewhere`; of a lease of an older version nothing is known but its lock."""
        identity = await self._identity(run_id)
        return identity is not None and identity.is_elsewhere

    async def _identity(self, run_id: str) -> ProcessIdentity | None:
        """Which process acquired the newest lease."""

        def find(connection: sqlite3.Connection) -> str:
            if schema.version(connection) < schema.HELD:
                return ""
            row = connection.execute(_HOLDER, (run_id,)).fetchone()
            return "" if row is None else str(row[0])

        return parse_identity(await self._read_database(find))

    async def orphans(self) -> list[str]:
        """As `RunLocks.orphans`."""

        def find(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(_RUNNING).fetchall()
            idle = [run_id for run_id, fence in rows if self._holder(Lease(run_id=run_id, fence=fence)) is None]
            return [run_id for run_id in idle if _start_of(connection, run_id) == (None, None, False)]

        return await self._read_database(find)

    async def is_new_fork(self, run_id: str) -> bool:
        """Whether a run is a fork that nobody has resumed yet."""
        return (await self._read_database(lambda connection: _start_of(connection, run_id))).is_new_fork

    def lock(self, lease: Lease) -> None:
        """Lock a lease that was just acquired.

        Of two workers that begin the same run at once, one gets the lock; the other is told at its first append.

        Raises:
            JournalError: the file beside the database cannot be created, opened or locked.
        """
        try:
            with _GUARD:
                file = self._file()
                if file.lock(_byte(lease)):
                    self._files[id(lease)] = lease, file
        except OSError as error:
            raise explain(error, self._path) from error

    def release(self, lease: Lease) -> None:
        """Unlock a lease. Doing it twice is harmless."""
        with _GUARD:
            if (locked := self._files.pop(id(lease), None)) is not None:
                locked[1].unlock(_byte(lease))

    def _file(self) -> _File:
        now = time.monotonic()
        if self._current_file is None or not self._current_file.is_open or now - self._checked_at > _RECHECK_S:
            self._current_file, self._checked_at = _lock_file(self._path, like=self._database), now
            assert self._current_file is not None  # noqa: S101  # it was made
        return self._current_file

    def _holder(self, lease: Lease) -> LockHolder | None:
        try:
            with _GUARD:
                file = _lock_file(self._path, like=None)
                return None if file is None else file.holder(_byte(lease))
        except OSError as error:
            raise explain(error, self._path) from error


class _File:
    """One open file of locks; used under `_GUARD` only.

    Locks of this kind belong to the process, not to the descriptor, and closing any descriptor of the file ends all of
    them: so there is one per file and process, and it is closed when nothing is locked.
    """

    def __init__(self, descriptor: int, key: tuple[int, int]) -> None:
        self._descriptor, self._key = descriptor, key
        self.is_open = True
        self._locked_bytes: set[int] = set()

    def lock(self, byte: int) -> bool:
        """Lock a byte; False if it is another worker's. A process that only tests the lock is waited for."""
        try:
            for _ in range(_LOCK_ATTEMPTS):
                if byte in self._locked_bytes:
                    return False
                try:
                    fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
                except (BlockingIOError, PermissionError):
                    time.sleep(_LOCK_PAUSE_S)
                else:
                    self._locked_bytes.add(byte)
                    return True
            return False
        finally:
            self._close_unused()

    def unlock(self, byte: int) -> None:
        if byte in self._locked_bytes:
            self._locked_bytes.remove(byte)
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, byte)
            self._close_unused()

    def holder(self, byte: int) -> LockHolder | None:
        if byte in self._locked_bytes:
            return LockHolder(process=os.getpid())
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):
            return LockHolder(process=self._process(byte))
        else:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, byte)
            return None
        finally:
            self._close_unused()

    def forget(self) -> None:
        """In a forked child: the locks are the parent's."""
        self._locked_bytes.clear()
        self._close()

    def _process(self, byte: int) -> int | None:
        if sys.platform != "linux":
            return None
        query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        answer = _FLOCK.unpack(fcntl.fcntl(self._descriptor, fcntl.F_GETLK, query))
        return answer[4] if answer[0] != fcntl.F_UNLCK and answer[4] > 0 else None  # 0: of another container

    def _close_unused(self) -> None:
        if not self._locked_bytes:
            _FILES.pop(self._key, None)
            self._close()

    def _close(self) -> None:
        self.is_open = False
        os.close(self._descriptor)


_GUARD = threading.Lock()
_FILES: dict[tuple[int, int], _File] = {}  # by device and inode


def _lock_file(path: Path, *, like: Path | None) -> _File | None:
    """The open lock file. With `like` a missing one is created with the permissions of that file; else it is None."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if like is None:
            return None
        _make(path, like)
        status = path.stat()
    key = (status.st_dev, status.st_ino)
    if (file := _FILES.get(key)) is None:
        try:
            descriptor = os.open(path, os.O_RDWR)
        except PermissionError:
            if like is not None:
                raise
            descriptor = os.open(path, os.O_RDONLY)  # enough to test locks
        file = _FILES[key] = _File(descriptor, key)
    return file


def _make(path: Path, like: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another process was faster
        return
    try:
        os.fchmod(descriptor, like.stat().st_mode & 0o666)  # as SQLite does with its own files
    finally:
        os.close(descriptor)


def _byte(lease: Lease) -> int:
    """The offset of a lease's lock: any that a file could have, so that two leases never share one."""
    key = f"{lease.fence} {lease.run_id}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest()) >> 2


def _forget() -> None:
    """Forget the parent's locks, in a forked child."""
    global _GUARD  # noqa: PLW0603  # the parent's may be held by a thread that is not here
    _GUARD = threading.Lock()
    files = list(_FILES.values())
    _FILES.clear()
    for file in files:
        file.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
