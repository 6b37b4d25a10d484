"""What a program in the sandbox sees: the folders, the environment and the interpreter, as bubblewrap's options."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from taoloop.errors import ConfigError
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

PASSWD = f"sandbox:x:{_UID}:{_UID}::/tmp:/bin/sh\n".encode()
GROUP = f"sandbox:x:{_UID}:\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python for the sandbox."""

    program: Path
    """Its program."""
    readable: tuple[Path, ...] = ()
    """What must be readable beside the system's folders."""


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

    def options(self, *, marker: str, script: tuple[int, str], passwd: int, group: int) -> list[str]:
        """Bubblewrap's options. The numbers are descriptors of files that are copied into the sandbox.

        `marker` is a name in the root folder that exists once everything is mounted.
        """
        options = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
        options += ["--share-net"] if self.network else []
        options += ["--cap-drop", "ALL", "--uid", str(_UID), "--gid", str(_UID), "--hostname", "sandbox", "--clearenv"]
        for name, value in _ENVIRONMENT.items():
            options += ["--setenv", name, value]
        options += ["--ro-bind", "/usr", "/usr", *self._system()]
        for path in (*_SETTINGS, *(_NETWORK_SETTINGS if self.network else ())):
            options += ["--ro-bind-try", path, path]
        options += ["--file", str(passwd), "/etc/passwd", "--file", str(group), "/etc/group"]
        options += ["--proc", "/proc", "--dev", "/dev"]
        options += [*self._scratch("/dev/shm"), *self._scratch("/tmp")]  # noqa: S108  # mounted in the sandbox
        for folder in self.readable:
            options += ["--ro-bind", str(folder), str(folder)]
        options += self._workspace()
        options += ["--file", str(script[0]), f"{SCRIPTS}/{script[1]}"]
        options += ["--symlink", "ready", f"/{marker}"]
        for mount_point in ("/dev", "/proc", "/"):  # they are memory of nobody's, or switches of the kernel
            options += ["--remount-ro", mount_point]
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
        return [
            "--bind",
            str(self.workspace),
            WORKSPACE,
            "--size",
            "4096",
            "--tmpfs",
            reserved,
            "--remount-ro",
            reserved,
        ]


def find_python(interpreter: Path | None = None) -> Interpreter:
    """The Python for the sandbox: `interpreter`, or the system's, or that of this process.

    Raises:
        ConfigError: there is none, or to show this process's own would show the home folder.
    """
    if interpreter is not None:
        if not os.access(interpreter, os.X_OK):
            raise ConfigError(f"{str(interpreter)!r} is no program.", hint="Name a Python interpreter.")
        return Interpreter(program=interpreter.absolute())
    if system_python := shutil.which("python3", path=_ENVIRONMENT["PATH"]):
        return Interpreter(program=Path(system_python))
    prefix = Path(sys.base_prefix).resolve()
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if Path.home().resolve().is_relative_to(prefix) or not program.is_relative_to(prefix):
        raise ConfigError(
            "No Python was found that the sandbox could show: none under /usr, and this one has no folder of its own.",
            hint="Install python3 from the system, or give sandbox_tools(python=…, readable=…).",
        )
    return Interpreter(program=program, readable=(prefix,))


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
