"""Leases held by locks of the operating system, in an empty file beside the database: they end with their process.

A lease has a byte of its own, found by the hash of its run and fence, and who works under it has this byte locked. So
nothing is written, no heartbeat is needed, and a process that was killed holds nothing from that moment on, whoever has
its number next. A lease that a newer one voided has another byte than that one: a process that is only stopped, or
hangs, does not pass for the new owner.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol, TypeVar

from taoloop.journals.base import Lease
from taoloop.journals.run_locks import LockHolder, is_unresumed_fork
from taoloop.journals.sqlite.errors import explain

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # Windows: nothing is held, and nobody can tell
    _HAS_LOCKS = False

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Awaitable, Callable
    from pathlib import Path

T = TypeVar("T")

_LOOK_AGAIN_S = 1.0
"""For so long a file of locks that is in use counts as the one that the path leads to: a look costs as much as a lock.
"""

_FLOCK = struct.Struct("hhqqi")  # of Linux: type, whence, start, length, process

_FENCE = "SELECT fence FROM run WHERE id = ?"
_RUNNING = """
SELECT id, fence FROM run WHERE status = 'running' AND EXISTS (SELECT 1 FROM event WHERE run_id = run.id)
ORDER BY number
"""
_BEGINNING = """
SELECT json_extract(body, '$.parent'), json_extract(body, '$.forked_from')
FROM event WHERE run_id = ? AND seq = 0 AND json_valid(body)
"""
_TAKEN_UP = """
SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.reason') END
FROM event WHERE run_id = ? AND kind = 'resumed' ORDER BY seq DESC LIMIT 1
"""


def _beginning(connection: sqlite3.Connection, run_id: str) -> tuple[str | None, str | None]:
    """The run around a run, and the one that it was forked from."""
    found: tuple[str | None, str | None] | None = connection.execute(_BEGINNING, (run_id,)).fetchone()
    return found or (None, None)


def _is_new(connection: sqlite3.Connection, run_id: str, origin: str | None) -> bool:
    if origin is None:
        return False
    found = connection.execute(_TAKEN_UP, (run_id,)).fetchone()
    return found is not None and is_unresumed_fork(origin, found[0])


class _Read(Protocol):
    """Asks the database."""

    def __call__(self, query: Callable[[sqlite3.Connection], T], /) -> Awaitable[T]: ...


def holds_beside(path: Path, read: _Read) -> FileRunLocks | None:
    """The holds of the journal in the file `path`; None on a system without such locks."""
    return FileRunLocks(path, read) if _HAS_LOCKS else None


class FileRunLocks:
    """Who is at work on the runs of a database, over all processes of the machine."""

    def __init__(self, path: Path, read: _Read) -> None:
        self._database, self._read = path, read
        self._path = path.with_name(f"{path.name}-held")
        self._files: dict[Lease, _File] = {}
        self._used: _File | None = None
        self._looked_at = 0.0

    async def holder(self, run_id: str) -> LockHolder | None:
        """Who holds the newest lease of a run; None: nobody."""
        row = await self._read(lambda connection: connection.execute(_FENCE, (run_id,)).fetchone())
        return None if row is None else self._holder(Lease(run_id=run_id, fence=row[0]))

    async def left(self) -> list[str]:
        """As `Holds.left`."""

        def find(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(_RUNNING).fetchall()
            found = []
            for run_id, fence in rows:
                if self._holder(Lease(run_id=run_id, fence=fence)) is None:
                    parent, origin = _beginning(connection, run_id)
                    if parent is None and not _is_new(connection, run_id, origin):
                        found.append(run_id)
            return found

        return await self._read(find)

    async def is_new_fork(self, run_id: str) -> bool:
        """Whether a run is a fork that nobody has gone on with yet."""
        return await self._read(lambda connection: _is_new(connection, run_id, _beginning(connection, run_id)[1]))

    def hold(self, lease: Lease) -> None:
        """Begin to hold a lease that was just taken.

        Raises:
            JournalError: the file beside the database cannot be made, opened or locked.
        """
        try:
            with _GUARD:
                self._files[lease] = self._file().lock(_byte(lease))
        except OSError as error:
            raise explain(error, self._path) from error

    def let_go(self, lease: Lease) -> None:
        """End it. Again is harmless."""
        with _GUARD:
            if (file := self._files.pop(lease, None)) is not None:
                file.unlock(_byte(lease))

    def _file(self) -> _File:
        now = time.monotonic()
        if self._used is None or not self._used.is_open or now - self._looked_at > _LOOK_AGAIN_S:
            self._used, self._looked_at = _entered(self._path, like=self._database), now
            assert self._used is not None  # noqa: S101  # it was made
        return self._used

    def _holder(self, lease: Lease) -> LockHolder | None:
        try:
            with _GUARD:
                file = _entered(self._path, like=None)
                return None if file is None else file.holder(_byte(lease))
        except OSError as error:
            raise explain(error, self._path) from error


class _File:
    """One open file of locks; used under `_GUARD` only.

    Locks of this kind belong to the process and not to the descriptor, and all go with the first descriptor of the file
    that is closed: so there is one per file and process, which is closed when nothing is held.
    """

    def __init__(self, descriptor: int, key: tuple[int, int]) -> None:
        self._descriptor, self._key = descriptor, key
        self.is_open = True
        self._held: set[int] = set()

    def lock(self, byte: int) -> _File:
        try:
            # Nobody else takes the same lease: this waits at most for who looks at this moment whether it is held.
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, 1, byte)
            self._held.add(byte)
        finally:
            self._close_unused()
        return self

    def unlock(self, byte: int) -> None:
        if byte in self._held:
            self._held.remove(byte)
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, byte)
            self._close_unused()

    def holder(self, byte: int) -> LockHolder | None:
        if byte in self._held:
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
        self._held.clear()
        self._close()

    def _process(self, byte: int) -> int | None:
        if sys.platform != "linux":
            return None
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        found = _FLOCK.unpack(fcntl.fcntl(self._descriptor, fcntl.F_GETLK, asked))
        return found[4] if found[0] != fcntl.F_UNLCK and found[4] > 0 else None  # 0: of another container

    def _close_unused(self) -> None:
        if not self._held:
            _FILES.pop(self._key, None)
            self._close()

    def _close(self) -> None:
        self.is_open = False
        os.close(self._descriptor)


_GUARD = threading.Lock()
_FILES: dict[tuple[int, int], _File] = {}  # by device and inode


def _entered(path: Path, *, like: Path | None) -> _File | None:
    """The open file of locks. With `like` it is made where it is missing, for whom that file is; else None then."""
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
            descriptor = os.open(path, os.O_RDONLY)  # enough to look
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
    """Where the lock of a lease is: any place that a file could have, so that two never meet."""
    named = f"{lease.fence} {lease.run_id}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(named, digest_size=8).digest()) >> 2


def _forget() -> None:
    """In a forked child, which holds nothing of its parent's."""
    global _GUARD  # noqa: PLW0603  # the parent's may be held by a thread that is not here
    _GUARD = threading.Lock()
    files = list(_FILES.values())
    _FILES.clear()
    for file in files:
        file.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
