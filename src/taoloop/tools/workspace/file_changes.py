"""Changing files of a workspace so that nothing is half written, nothing done twice and nothing lost.

Every change has a key. Under `.taoloop/backup/` a record `<key>.json` says what the change did, and
`<key>/<path>` holds what it replaced. The order is: the old content into the backup, the record, the new
content under a temporary name beside the file, and only then the rename; a crash at any point leaves the old
file or the new one, and the same key finishes the work.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass

from taoloop.tools.texts import TEXTS
from taoloop.tools.workspace.confined_dir import RESERVED, ConfinedDirectory, Parts

_FOLDER: Parts = (RESERVED, "backup")
_SAFE_KEY = re.compile(r"[A-Za-z0-9_-]{1,80}")
_CHUNK = 256 * 1024
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What one change did."""

    path: str
    """The file, from the top of the workspace."""
    before: str
    """The SHA-256 of the file before, empty where there was none."""
    after: str
    """The SHA-256 of the file after, empty where there is none."""
    before_bytes: int
    """The size of the file before."""

    @property
    def existed(self) -> bool:
        """True if the change replaced or removed a file, which is then in the backup."""
        return bool(self.before)


class FileChanger:
    """Changes files beneath a directory and keeps what they replaced. One change at a time."""

    def __init__(self, directory: ConfinedDirectory, max_kept_bytes: int) -> None:
        self._beneath, self._max_kept_bytes = directory, max_kept_bytes
        self._lock = threading.Lock()

    def change(self, parts: Parts, data: bytes | None, key: str) -> FileChange:
        """Make `data` the content of the file (None removes it); the same key changes nothing a second time.

        Raises:
            ToolError: `key_reused`: the key belongs to another change; `too_large`: it cannot be kept.
            OSError: the file system refused; the file is as it was.
        """
        name, path = key_name(key), "/".join(parts)
        after = hashlib.sha256(data).hexdigest() if data is not None else ""
        with self._lock:
            now, size, mode = self._present(parts)
            done = self.record(name)
            if done is not None:
                if (done.path, done.after) != (path, after):
                    raise TEXTS.error("key_reused", "key_reused", key=key, path=done.path)
                if now != done.before or now == after:
                    return done  # carried out before; what happened to the file since then is not ours to undo
            else:
                if now:
                    self._check_size(size)
                    with self._beneath.regular_file(parts) as (fd, _):
                        store_file(self._beneath, (*_FOLDER, name, *parts), read_chunks(fd), mode=0o600)
                done = FileChange(path=path, before=now, after=after, before_bytes=size)
                store_file(self._beneath, (*_FOLDER, f"{name}.json"), [json.dumps(asdict(done)).encode()])
            if data is None:
                self._remove(parts)
            else:
                store_file(
                    self._beneath, parts, [data], mode=None if mode is None else mode & 0o666
                )  # never executable
            return done

    def record(self, name: str) -> FileChange | None:
        """What the change with this backup name did, or None if there was none."""
        try:
            with self._beneath.regular_file((*_FOLDER, f"{name}.json")) as (fd, _):
                return FileChange(**json.loads(b"".join(read_chunks(fd))))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise TEXTS.error("bad_record", "io_error", name=name) from error

    def stored_bytes(self, name: str, parts: Parts) -> bytes:
        """The content that the change with this backup name replaced."""
        with self._beneath.regular_file((*_FOLDER, name, *parts)) as (fd, _):
            return b"".join(read_chunks(fd))

    def digest(self, parts: Parts) -> str:
        """SHA-256 of the file as it is now; empty if there is none."""
        return self._present(parts)[0]

    def _present(self, parts: Parts) -> tuple[str, int, int | None]:
        try:
            with self._beneath.regular_file(parts) as (fd, status):
                if not status.st_mode & 0o222:
                    raise PermissionError(1, "the file is marked read-only")
                self._check_size(status.st_size)
                digest = hashlib.sha256()
                for chunk in read_chunks(fd):
                    digest.update(chunk)
                return digest.hexdigest(), status.st_size, stat.S_IMODE(status.st_mode)
        except FileNotFoundError:
            return "", 0, None

    def _check_size(self, size: int) -> None:
        if size > self._max_kept_bytes:
            raise TEXTS.error("backup_large", "too_large", size=size, limit=self._max_kept_bytes)

    def _remove(self, parts: Parts) -> None:
        with self._beneath.folder(parts[:-1]) as parent:
            with suppress(FileNotFoundError):
                os.unlink(parts[-1], dir_fd=parent)  # beneath the descriptor
            os.fsync(parent)


def key_name(key: str) -> str:
    """The key as a file name: itself where that is harmless, else a digest of it."""
    if _SAFE_KEY.fullmatch(key):
        return key
    return f"key-{hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()}"


def read_chunks(fd: int) -> Iterator[bytes]:
    """The rest of an open file, piece by piece."""
    while chunk := os.read(fd, _CHUNK):
        yield chunk


def store_file(
    directory: ConfinedDirectory,
    parts: Parts,
    chunks: Iterable[bytes],
    *,
    mode: int | None = None,
    durable: bool = True,
) -> None:
    """Write a file under a temporary name beside its place and rename it; `mode` are its permission bits.

    With `durable` it is on the disk afterwards, and so is its name: a loss of power takes neither.
    """
    with directory.folder(parts[:-1], create=True) as parent:
        temporary = f"{RESERVED}-{secrets.token_hex(8)}"
        fd = os.open(temporary, _CREATE, 0o666, dir_fd=parent)
        try:
            try:
                if mode is not None:
                    os.fchmod(fd, mode & 0o777)
                for chunk in chunks:
                    view = memoryview(chunk)
                    while view:
                        view = view[os.write(fd, view) :]
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(temporary, parts[-1], src_dir_fd=parent, dst_dir_fd=parent)  # beneath it
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)  # likewise
            raise
        if durable:
            os.fsync(parent)
