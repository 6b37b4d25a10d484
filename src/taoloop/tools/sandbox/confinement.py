"""The confinement of a program: what it sees, which system calls it cannot make, and how much it may use.

It sees some folders, an environment and an interpreter, as bubblewrap's options say. Namespaces hide what a program
must not touch; the filter of system calls, a small classic BPF program, takes away calls that have let programs out of
namespaces before, and those that would go round the limits. Everything else is allowed: it is the second wall, not the
first. The kernel's limits of a process (`setrlimit`) bind each process for itself, and the one on their number does not
bind root. So what all processes use is counted from outside: the sandbox's own /proc lists them and no others.
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from taoloop.errors import ConfigError
from taoloop.tools.settings_check import Count, Seconds, check_fields
from taoloop.tools.workspace.confined_dir import RESERVED

WORKSPACE = "/workspace"
SCRIPTS = "/sandbox"
_UID = 65_534  # nobody
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
_NETWORK_SETTINGS = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
)
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108  # a folder of the sandbox
    "TMPDIR": "/tmp",  # noqa: S108  # likewise
    "LANG": "C.UTF-8",
    "PYTHONPATH": WORKSPACE,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",  # what was printed before a limit is not lost
}

_PASSWD = f"sandbox:x:{_UID}:{_UID}::/tmp:/bin/sh\n".encode()
_GROUP = f"sandbox:x:{_UID}:\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxMounts:
    """What is mounted in the sandbox."""

    workspace: Path | None
    """The folder that programs may change; None: an empty one that is gone afterwards."""
    readable: tuple[Path, ...]
    """Further folders that may be read, each at its own path."""
    network: bool
    """Whether there is the machine's own network."""
    scratch_bytes: int
    """The size of each folder for temporary files."""

    mounted: tuple[tuple[Path, str], ...] = ()
    """Further folders that may be read, each with its path in the sandbox."""

    def options(self, hold: Callable[[bytes], int], *, marker: str, script: tuple[int, str]) -> list[str]:
        """Bubblewrap's options.

        Args:
            hold: Gives a descriptor to read these bytes from, which bubblewrap inherits.
            marker: A name in the root folder that exists once everything is mounted.
            script: The descriptor of a file that is copied into the sandbox, and its name there.
        """
        options = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
        options += ["--share-net"] if self.network else []
        options += ["--cap-drop", "ALL", "--uid", str(_UID), "--gid", str(_UID), "--hostname", "sandbox", "--clearenv"]
        for name, value in _ENVIRONMENT.items():
            options += ["--setenv", name, value]
        options += ["--ro-bind", "/usr", "/usr", *self._system()]
        for path in (*_SETTINGS, *(_NETWORK_SETTINGS if self.network else ())):
            options += ["--ro-bind-try", path, path]
        options += ["--file", str(hold(_PASSWD)), "/etc/passwd", "--file", str(hold(_GROUP)), "/etc/group"]
        options += ["--proc", "/proc", "--dev", "/dev"]
        options += [*self._scratch("/dev/shm"), *self._scratch("/tmp")]  # noqa: S108  # mounted in the sandbox
        for folder in self.readable:
            options += ["--ro-bind", str(folder), str(folder)]
        for folder, path in self.mounted:
            options += ["--ro-bind", str(folder), path]
        options += self._workspace()
        options += ["--file", str(script[0]), f"{SCRIPTS}/{script[1]}"]
        options += ["--symlink", "ready", f"/{marker}"]
        for mount_point in ("/dev", "/proc", "/"):  # they are memory of nobody's, or switches of the kernel
            options += ["--remount-ro", mount_point]
        if (rules := seccomp_filter(network=self.network)) is not None:
            options += ["--seccomp", str(hold(rules))]
        return [*options, "--chdir", WORKSPACE]

    def _system(self) -> Iterator[str]:
        """The folders beside /usr: links into it, as nearly everywhere, or folders of their own."""
        for system_path in map(Path, _SYSTEM):
            if system_path.is_symlink():
                yield from ("--symlink", str(system_path.readlink()), str(system_path))
            elif system_path.is_dir():
                yield from ("--ro-bind", str(system_path), str(system_path))

    def _scratch(self, path: str) -> list[str]:
        return ["--size", str(self.scratch_bytes), "--tmpfs", path]

    def _workspace(self) -> list[str]:
        if self.workspace is None:
            return self._scratch(WORKSPACE)
        reserved = f"{WORKSPACE}/{RESERVED}"  # the runtime's backups are not the program's to change
        hidden = ["--size", "4096", "--tmpfs", reserved, "--remount-ro", reserved]
        return ["--bind", str(self.workspace), WORKSPACE, *hidden]


def find_python(interpreter: Path | None = None) -> tuple[Path, tuple[Path, ...]]:
    """The Python for the sandbox, and what must be readable for it beside the system's folders.

    It is `interpreter`, or the system's, or that of this process.

    Raises:
        ConfigError: there is none, or to show this process's own would show the home folder.
    """
    if interpreter is not None:
        if not os.access(interpreter, os.X_OK):
            raise ConfigError(f"{str(interpreter)!r} is no program.", hint="Name a Python interpreter.")
        return interpreter.absolute(), ()
    if system_python := shutil.which("python3", path=_ENVIRONMENT["PATH"]):
        return Path(system_python), ()
    prefix = Path(sys.base_prefix).resolve()
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if Path.home().resolve().is_relative_to(prefix) or not program.is_relative_to(prefix):
        raise ConfigError(
            "No Python was found that the sandbox could show: none under /usr, and this one has no folder of its own.",
            hint="Install python3 from the system, or give sandbox_tools(python=…, readable=…).",
        )
    return program, (prefix,)


def checked_readable(folders: Sequence[Path | str]) -> tuple[Path, ...]:
    """The absolute paths of further folders that the sandbox may read.

    Raises:
        ConfigError: one does not exist, or would take the place of the sandbox's own.
    """
    own = (*map(Path, (WORKSPACE, SCRIPTS, "/proc", "/dev", "/sys", "/tmp", "/etc", "/usr")),)  # noqa: S108  # likewise
    checked = []
    for folder in folders:
        path = Path(folder).absolute()
        if not path.exists() or path in own or path == Path("/"):
            raise ConfigError(
                f"The sandbox cannot show {str(folder)!r}.", hint="Name an existing folder that is no system folder."
            )
        checked.append(path)
    return tuple(checked)


_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}  # linux/audit.h

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/bpf_common.h
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000  # linux/seccomp.h
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data; little endian: the low half is first
_X32 = 0x40000000  # the second set of numbers that x86_64 has

_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CREATING = 0x400040  # O_CREAT, O_TMPFILE
_SET_ID = 0o6000  # a set-user-ID file in the workspace would carry the operator's rights, outside too
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # typing into a terminal
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK; AF_VSOCK would pass by the network namespace
_UNIX = 1


class _Test(NamedTuple):
    """What an argument must be for a rule to hold."""

    argument: int
    kind: Literal["any_bit", "equal", "not_in"]
    values: tuple[int, ...]


class _Rule(NamedTuple):
    """A call that fails with `error` where all tests hold: its numbers on x86_64 (None: none) and elsewhere."""

    x86_64: int | None
    generic: int | None
    error: int = errno.EPERM
    tests: tuple[_Test, ...] = ()


def _bits(argument: int, mask: int) -> _Test:
    return _Test(argument, "any_bit", (mask,))


_RULES: dict[str, _Rule] = {
    # Other processes, and the kernel itself.
    "ptrace": _Rule(101, 117),
    "process_vm_readv": _Rule(310, 270),
    "process_vm_writev": _Rule(311, 271),
    "kcmp": _Rule(312, 272),
    "pidfd_getfd": _Rule(438, 438),
    "bpf": _Rule(321, 280),
    "perf_event_open": _Rule(298, 241),
    "userfaultfd": _Rule(323, 282),
    "io_uring_setup": _Rule(425, 425),
    "io_uring_enter": _Rule(426, 426),
    "io_uring_register": _Rule(427, 427),
    "keyctl": _Rule(250, 219),
    "add_key": _Rule(248, 217),
    "request_key": _Rule(249, 218),
    "syslog": _Rule(103, 116),
    "acct": _Rule(163, 89),
    "quotactl": _Rule(179, 60),
    "reboot": _Rule(169, 142),
    "swapon": _Rule(167, 224),
    "swapoff": _Rule(168, 225),
    "kexec_load": _Rule(246, 104),
    "kexec_file_load": _Rule(320, 294),
    "init_module": _Rule(175, 105),
    "finit_module": _Rule(313, 273),
    "delete_module": _Rule(176, 106),
    # Mounts, handles that know no path, and further namespaces.
    "mount": _Rule(165, 40),
    "umount2": _Rule(166, 39),
    "pivot_root": _Rule(155, 41),
    "chroot": _Rule(161, 51),
    "open_tree": _Rule(428, 428),
    "move_mount": _Rule(429, 429),
    "fsopen": _Rule(430, 430),
    "fsconfig": _Rule(431, 431),
    "fsmount": _Rule(432, 432),
    "fspick": _Rule(433, 433),
    "mount_setattr": _Rule(442, 442),
    "name_to_handle_at": _Rule(303, 264),
    "open_by_handle_at": _Rule(304, 265),
    "setns": _Rule(308, 268),
    "unshare": _Rule(272, 97),
    "clone": _Rule(56, 220, tests=(_bits(0, _NAMESPACES),)),
    "clone3": _Rule(435, 435, errno.ENOSYS),  # its flags lie in memory, where no filter looks; libraries fall back
    # Memory that belongs to no process, so that nobody could count it.
    "memfd_create": _Rule(319, 279, errno.ENOSYS),
    "memfd_secret": _Rule(447, 447, errno.ENOSYS),
    "shmget": _Rule(29, 194, errno.ENOSYS),
    "mq_open": _Rule(240, 180, errno.ENOSYS),
    # Files with the set-user-ID bit.
    "chmod": _Rule(90, None, tests=(_bits(1, _SET_ID),)),
    "fchmod": _Rule(91, 52, tests=(_bits(1, _SET_ID),)),
    "fchmodat": _Rule(268, 53, tests=(_bits(2, _SET_ID),)),
    "fchmodat2": _Rule(452, 452, tests=(_bits(2, _SET_ID),)),
    "creat": _Rule(85, None, tests=(_bits(1, _SET_ID),)),
    "open": _Rule(2, None, tests=(_bits(1, _CREATING), _bits(2, _SET_ID))),
    "openat": _Rule(257, 56, tests=(_bits(2, _CREATING), _bits(3, _SET_ID))),
    "openat2": _Rule(437, 437, errno.ENOSYS),  # its mode lies in memory
    "mknod": _Rule(133, None, tests=(_bits(1, _SET_ID),)),
    "mknodat": _Rule(259, 33, tests=(_bits(2, _SET_ID),)),
    # Terminals, and sockets that no namespace holds.
    "ioctl TIOCSTI": _Rule(16, 29, tests=(_Test(1, "equal", (_TIOCSTI,)),)),
    "ioctl TIOCLINUX": _Rule(16, 29, tests=(_Test(1, "equal", (_TIOCLINUX,)),)),
    "socket": _Rule(41, 198, errno.EAFNOSUPPORT, (_Test(0, "not_in", _FAMILIES),)),
}

_NETWORK_RULE = _Rule(41, 198, errno.EAFNOSUPPORT, (_Test(0, "equal", (_UNIX,)),))
"""With the machine's own network come its abstract sockets (of the desktop, of container engines)."""


def seccomp_filter(*, network: bool, machine: str | None = None) -> bytes | None:
    """The program for this machine (or the one named), as the kernel takes it; None where no numbers are known.

    `network`: the sandbox shares the machine's network, so sockets of the family UNIX are taken away.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES or struct.calcsize("P") != 8:
        return None
    x86 = machine == "x86_64"
    program = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_IF_EQUAL, _ARCHITECTURES[machine], yes=1),
        _step(_RETURN, _KILL),  # another architecture's calls, with numbers of their own
        _step(_LOAD, _NUMBER),
    ]
    if x86:
        program += [_step(_IF_AT_LEAST, _X32, no=1), _step(_RETURN, _KILL)]
    for rule in (*_RULES.values(), *((_NETWORK_RULE,) if network else ())):
        number = rule.x86_64 if x86 else rule.generic
        if number is not None:
            program += _block(number, rule)
    program.append(_step(_RETURN, _ALLOW))
    return b"".join(program)


def _block(number: int, rule: _Rule) -> list[bytes]:
    """The steps of one rule; whoever it does not concern leaves it with the number loaded as before."""
    refused = [_step(_RETURN, _ERRNO | rule.error)]
    if not rule.tests:
        return [_step(_IF_EQUAL, number, no=1), *refused]
    inner = refused
    for test in reversed(rule.tests):
        inner = [*_tested(test, len(inner)), *inner]
    return [_step(_IF_EQUAL, number, no=len(inner) + 1), *inner, _step(_LOAD, _NUMBER)]


def _tested(test: _Test, offset: int) -> Iterator[bytes]:
    """The steps of one test: continue if it holds, else skip the `offset` steps that follow."""
    yield _step(_LOAD, _ARGUMENTS + 8 * test.argument)
    for remaining, value in zip(reversed(range(len(test.values))), test.values, strict=True):
        if test.kind == "not_in":
            yield _step(_IF_EQUAL, value, yes=remaining + offset)
        else:
            yield _step(_IF_EQUAL if test.kind == "equal" else _IF_ANY_BIT, value, no=offset)


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` are how many of the next ones a jump leaves out."""
    return struct.pack("=HBBI", code, yes, no, value)


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
            folders = {self._open(f"{root}/{folder}"): True for folder in _SCRATCH}
            workspace = self._open(root + WORKSPACE)
            folders[workspace] = workspace_is_scratch
            # file systems as they are at the beginning, and whether what they hold is memory
            self._spaces = [(fd, os.fstatvfs(fd), in_memory) for fd, in_memory in folders.items()]
            self.workspace = os.fstat(workspace)
            self._spent_cpu_s = 0.0
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the descriptors back."""
        while self._fds:
            os.close(self._fds.pop())

    def restart(self) -> None:
        """Count processor time, and the disk space of the workspace, from now on; memory stays what it is."""
        self._spent_cpu_s = self._total_cpu_s()
        self._spaces = [
            (fd, at_start if in_memory else os.fstatvfs(fd), in_memory) for fd, at_start, in_memory in self._spaces
        ]

    def _total_cpu_s(self) -> float:
        total_s = 0.0
        with suppress(OSError):  # the sandbox is just ending
            for name in os.listdir(self._proc):  # noqa: PTH208  # a descriptor, which stays with this sandbox
                if name.isdigit():
                    with suppress(OSError, ValueError, IndexError):  # this process is just ending
                        total_s += self._cpu_s(name)
        return total_s

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
        for fd, at_start, in_memory in self._spaces:
            status = os.fstatvfs(fd)
            used_bytes = (at_start.f_bfree - status.f_bfree) * status.f_frsize
            memory += max(0, used_bytes) if in_memory else 0
            used_files = at_start.f_ffree - status.f_ffree
            if used_files > self._limits.files or (not in_memory and used_bytes > self._limits.disk_bytes):
                return "disk"
        if memory > self._limits.memory_bytes:
            return "memory"
        return "cpu" if cpu_s - self._spent_cpu_s > self._limits.cpu_s else None

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
