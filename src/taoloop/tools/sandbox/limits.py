"""The bounds of one call in a sandbox, and what its processes use together, measured from outside.

The kernel's limits of a process (`setrlimit`) bind each process for itself, and the one on their number does not bind
root. So they are counted here: the sandbox's own /proc lists its processes and no others.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Self

from taoloop.tools.json_schema import Count, Seconds, check_fields
from taoloop.tools.sandbox.confinement import WORKSPACE

Bound = Literal["time", "cpu", "memory", "processes", "output", "disk", "file_size"]
"""Which limit ended a program."""

MAX_SCRIPT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """What one call may use, all its processes together unless a field says otherwise.

    Raises:
        ConfigError: a bound is not a number above 0.
    """

    wall_s: Seconds = 30.0
    """Wall time in seconds."""
    cpu_s: Seconds = 30.0
    """Processor time in seconds."""
    memory_bytes: Count = 2 * 1024**3
    """Resident memory, temporary files included; also the address space of each process."""
    processes: Count = 64
    """Processes and threads."""
    output_bytes: Count = 100_000
    """How much is stored of each of stdout and stderr: its beginning and its end."""
    flow_bytes: Count = 64 * 1024**2
    """How much may be printed; a program that prints more is ended."""
    file_bytes: Count = 64 * 1024**2
    """The size of one file."""
    disk_bytes: Count = 256 * 1024**2
    """How much free space the workspace's file system may lose meanwhile; temporary files have as much again."""
    files: Count = 20_000
    """How many free file entries the workspace's file system may lose meanwhile."""
    open_files: Count = 256
    """Open files of each process."""

    def __post_init__(self) -> None:
        """Refuse what bounds nothing."""
        check_fields(self, "The sandbox")


_SCRATCH = ("tmp", "dev/shm")
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_COUNTED = (b"Threads:", b"RssAnon:", b"RssShmem:", b"VmSwap:")


@dataclass(frozen=True, slots=True)
class _Space:
    """A file system with its free bytes and file entries at the beginning; `in_memory`: what it holds is memory."""

    fd: int
    free_bytes: int
    free_files: int
    in_memory: bool

    @classmethod
    def at(cls, fd: int, *, in_memory: bool) -> _Space:
        status = os.fstatvfs(fd)
        return cls(fd, status.f_bfree * status.f_frsize, status.f_ffree, in_memory)

    def used(self) -> tuple[int, int]:
        """The bytes and the file entries that are gone since."""
        status = os.fstatvfs(self.fd)
        return self.free_bytes - status.f_bfree * status.f_frsize, self.free_files - status.f_ffree


class UsageWatch:
    """Counts what a sandbox uses; `root` is the path of its root folder as seen from outside.

    Raises:
        OSError: this process may not look into it.
    """

    def __init__(self, root: str, limits: SandboxLimits, *, workspace_is_scratch: bool) -> None:
        self._limits = limits
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._fds: list[int] = []
        try:
            self._proc = self._open(f"{root}/proc")
            self._spaces = [_Space.at(self._open(f"{root}/{folder}"), in_memory=True) for folder in _SCRATCH]
            workspace = self._open(root + WORKSPACE)
            self._spaces.append(_Space.at(workspace, in_memory=workspace_is_scratch))
            self.workspace = os.fstat(workspace)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Use it in a `with`; its end closes it."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Give the descriptors back."""
        while self._fds:
            os.close(self._fds.pop())

    def exceeded(self) -> Bound | None:
        """The first limit that is exceeded now."""
        tasks = memory = 0
        cpu_s = 0.0
        with suppress(OSError):  # the sandbox is just ending
            for name in os.listdir(self._proc):  # noqa: PTH208  # a descriptor, which stays with this sandbox
                if not name.isdigit():
                    continue
                with suppress(OSError, ValueError, IndexError):  # this process is just ending
                    own_tasks, own_memory = self._status(name)
                    tasks, memory = tasks + own_tasks, memory + own_memory
                    cpu_s += self._cpu_s(name)
                if tasks > self._limits.processes + 2:  # the first process of the sandbox, and the script itself
                    return "processes"
        for space in self._spaces:
            used_bytes, files = space.used()
            memory += max(0, used_bytes) if space.in_memory else 0
            if files > self._limits.files or (not space.in_memory and used_bytes > self._limits.disk_bytes):
                return "disk"
        if memory > self._limits.memory_bytes:
            return "memory"
        return "cpu" if cpu_s > self._limits.cpu_s else None

    def _open(self, path: str) -> int:
        fd = os.open(path, os.O_RDONLY | _FOLDER)
        self._fds.append(fd)
        return fd

    def _status(self, pid: str) -> tuple[int, int]:
        """The threads of a process, and its memory in bytes: what it alone holds, and what it shares on purpose."""
        counted = dict.fromkeys(_COUNTED, 0)
        for line in self._read_file(f"{pid}/status").splitlines():
            key, _, rest = line.partition(b"\t")
            if key in counted:
                counted[key] = int(rest.split()[0])
        tasks = counted.pop(b"Threads:")
        return tasks, sum(counted.values()) * 1024

    def _cpu_s(self, pid: str) -> float:
        """Its processor time in seconds, with that of the children it has waited for."""
        fields = self._read_file(f"{pid}/stat").rpartition(b")")[2].split()
        return sum(map(int, fields[11:15])) / self._ticks

    def _read_file(self, path: str) -> bytes:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0), dir_fd=self._proc)
        try:
            return os.read(fd, 8_192)
        finally:
            os.close(fd)
