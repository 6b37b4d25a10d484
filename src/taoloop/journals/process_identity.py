"""Which process of which machine acquired a lease, and how such a process is ended without hitting another one.

The number of a process says nothing on another machine, in another container, or after a reboot, and the system gives
it away again. So a lease is stored with the boot and the machine, the process namespace, the number, and the time at
which the process started. Only Linux tells all of this; elsewhere a process is not identified, and is never ended.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from functools import cache
from pathlib import Path
from platform import node
from typing import NamedTuple

_UNKNOWN = "-"
_ENDED = ("Z", "X")  # its parent has not asked yet how it ended
_START_FIELD = 19  # of /proc/PID/stat, counted behind the name, which may contain anything

TERM_S = 10.0
"""The seconds that a process has to end by itself after SIGTERM."""

KILL_S = 10.0
"""The seconds that the system has to end it after SIGKILL."""


class ProcessIdentity(NamedTuple):
    """A process, among all that ever ran. What is not known is `-`."""

    boot: str
    """The id of this start of the machine."""

    machine: str
    """The id of the machine."""

    host: str
    """The name of the machine."""

    namespace: str
    """The namespace of process numbers, as a container has its own."""

    process: str
    """The number of the process."""

    started: str
    """When it started, in ticks since the start of the machine."""

    def __str__(self) -> str:
        """As it is stored."""
        return " ".join(self)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it may be alive where its locks cannot be seen from here: on another machine."""
        own = own_identity()
        if _UNKNOWN not in (self.boot, own.boot) and self.boot == own.boot:
            return False
        same_host = (self.machine, self.host) == (own.machine, own.host)
        is_known = self.boot == own.boot or self.machine != _UNKNOWN  # else the name alone might be that of many
        return not (same_host and is_known)  # else this machine was started again, and nothing of then is alive

    @property
    def is_identified(self) -> bool:
        """Whether it is a process of this system and namespace, and alive."""
        own = own_identity()
        here = (self.boot, self.namespace) == (own.boot, own.namespace) and _UNKNOWN not in self
        return here and _started(self.process) == self.started

    @property
    def is_gone(self) -> bool:
        """Whether it has certainly ended: it was of this machine, and is not there. False where nobody can tell."""
        own = own_identity()
        if _UNKNOWN in self or self.is_elsewhere:
            return False
        return self.boot != own.boot or (self.namespace == own.namespace and not self.is_identified)


def parse_identity(text: str) -> ProcessIdentity | None:
    """The identity as it was stored; None where there is none."""
    parts = text.split(" ")
    return ProcessIdentity(*parts) if len(parts) == len(ProcessIdentity._fields) else None


def own_identity() -> ProcessIdentity:
    """The identity of this process."""
    return _identity(os.getpid())


def end_process(identity: ProcessIdentity, *, term_s: float = TERM_S) -> bool:
    """End a process and wait until it is gone: SIGTERM, and SIGKILL after `term_s` seconds. Blocks.

    Returns whether it is gone; False also where it is not identified.

    Raises:
        OSError: the system refuses it.
    """
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        descriptor = os.pidfd_open(int(identity.process))
    except ProcessLookupError:
        return True
    try:
        if not identity.is_identified:  # checked behind the descriptor, which never means a later process
            return not _is_alive(descriptor)
        for number, limit_s in ((signal.SIGTERM, term_s), (signal.SIGKILL, KILL_S)):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
            if not _is_alive(descriptor, limit_s):
                return True
        return False
    finally:
        os.close(descriptor)


def _is_alive(descriptor: int, limit_s: float = 0.0) -> bool:
    return not select.select([descriptor], [], [], limit_s)[0]


@cache
def _identity(process: int) -> ProcessIdentity:
    boot = _line(Path("/proc/sys/kernel/random/boot_id"))
    machine = _line(Path("/etc/machine-id"))
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # no path to a file
    except OSError:
        namespace = _UNKNOWN
    host = "".join(node().split()) or _UNKNOWN
    return ProcessIdentity(boot, machine, host, namespace, str(process), _started(str(process)))


def _line(path: Path) -> str:
    try:
        return "".join(path.read_text(encoding="ascii", errors="replace").split()) or _UNKNOWN
    except OSError:
        return _UNKNOWN


def _started(process: str) -> str:
    """When a process started; `-` where there is none, or that is not known. One that only its parent has is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _UNKNOWN
    fields = stat.rpartition(")")[2].split()
    is_there = len(fields) > _START_FIELD and fields[0] not in _ENDED
    return fields[_START_FIELD] if is_there else _UNKNOWN
