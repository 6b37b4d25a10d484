"""A sandbox: programs that somebody else wrote, in bubblewrap (Linux) and nowhere else.

A program sees the system's folders (for reading), one workspace and an empty `/tmp`. It has no network unless the
operator gives it, nothing of this process's environment or descriptors, and no way to other processes; when it ends,
everything that it started ends. Where bubblewrap cannot be used there is no sandbox, and nothing is run.
"""

from __future__ import annotations

import shutil
import stat
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from taoloop.errors import ConfigError, ToolError
from taoloop.tools.sandbox.confinement import (
    MAX_SCRIPT_BYTES,
    SCRIPTS,
    SandboxLimits,
    SandboxMounts,
    checked_readable,
    find_python,
)
from taoloop.tools.sandbox.process import ProcessResult, SandboxProcess
from taoloop.tools.sandbox.session import (
    DRIVER,
    MAX_CALLS,
    PythonSession,
    PythonSessions,
    SessionResult,
    driver_argv,
    driver_source,
)
from taoloop.tools.texts import TEXTS, system_reason
from taoloop.tools.tool import run_in_thread
from taoloop.tools.workspace.confined_dir import RESERVED

INSTALL = TEXTS.text("en", "no_sandbox_hint")
_PROGRAM = "bwrap"
_SHELL = "/bin/sh"
_working_probes: dict[str, SandboxProbe] = {}  # only what works is remembered, so that an installation is noticed


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxProbe:
    """Whether this machine has a sandbox."""

    program: str | None
    """The path of bubblewrap; None: there is no sandbox."""
    reason: str = ""
    """Why there is none."""
    start_s: float = 0.0
    """How long a start takes, in seconds."""


def probe_sandbox(program: str | None = None) -> SandboxProbe:
    """Try it: run `true` in a sandbox, with all that a real one has. A few hundredths of a second, once.

    `program` is the path of bubblewrap; None looks for it in PATH.
    """
    if sys.platform != "linux":
        return SandboxProbe(program=None, reason=TEXTS.run_text("needs_linux"))
    program_path = program or shutil.which(_PROGRAM)
    if program_path is None:
        return SandboxProbe(program=None, reason=TEXTS.run_text("no_bubblewrap", program=_PROGRAM))
    if program_path not in _working_probes:
        began = time.monotonic()
        try:
            limits = SandboxLimits(wall_s=10)
            mounts = SandboxMounts(workspace=None, readable=(), network=False, scratch_bytes=1_000_000)
            ended = SandboxProcess(
                program_path,
                mounts,
                limits,
                argv=(_SHELL, "-c", "true"),
                script=("none", b""),
                is_workspace=lambda _: True,
            ).run()
        except (ToolError, OSError) as error:
            return SandboxProbe(program=None, reason=getattr(error, "message", str(error)))
        if ended.exit_code != 0:
            return SandboxProbe(program=None, reason=TEXTS.run_text("true_failed", reason=ended.stderr.strip()))
        _working_probes[program_path] = SandboxProbe(program=program_path, start_s=time.monotonic() - began)
    return _working_probes[program_path]


def require_sandbox(program: str | None = None) -> SandboxProbe:
    """The machine's sandbox.

    Raises:
        ConfigError: there is none; says why and what to install.
    """
    probe = probe_sandbox(program)
    if probe.program is None:
        reason = probe.reason if probe.reason.endswith((".", "。")) else TEXTS.run_text("sentence", text=probe.reason)
        hint = TEXTS.run_text("no_sandbox_hint")
        raise ConfigError(TEXTS.run_text("no_sandbox", reason=reason), hint=hint)
    return probe


class Sandbox:
    """Where programs run. Nothing is looked for before the first one.

    Args:
        workspace: The folder that programs may change, made if it is missing; None gives each an empty one that is gone
            afterwards.
        network: The machine's own network, this machine's services included. Without it there is none at all.
        limits: The bounds of one program.
        python: The interpreter for Python programs; None takes the system's.
        readable: Further folders that may be read, each at its own path.
        program: The path of bubblewrap; None looks for it in PATH.

    Raises:
        ConfigError: a folder of `readable` cannot be shown.
    """

    def __init__(
        self,
        workspace: Path | str | None = None,
        *,
        network: bool = False,
        limits: SandboxLimits | None = None,
        python: Path | str | None = None,
        readable: Sequence[Path | str] = (),
        program: str | None = None,
    ) -> None:
        self.workspace = None if workspace is None else Path(workspace)
        self.network, self.limits = network, limits or SandboxLimits()
        self._python = None if python is None else Path(python)
        self._readable, self._program = checked_readable(readable), program
        self._sessions = PythonSessions(lambda: PythonSession(self._session_process, self.limits))

    async def run_python(self, code: str) -> ProcessResult:
        """Run a Python program to its end; a cancellation ends it.

        Raises:
            ToolError: `no_sandbox`, `sandbox_failed` or `bad_script`; nothing was run.
        """
        return await _run(self._process("code.py", code))

    async def run_in_session(self, code: str, *, run_id: str, name: str) -> SessionResult:
        """Run Python code in the session `name` of a run, which is started if there is none; a cancellation ends it.

        Raises:
            ToolError: as `run_python`; also `no_free_thread`. The code was not run, unless the session was stopped.
        """
        data = _script(code)
        current: list[PythonSession] = []

        def started(session: PythonSession) -> None:
            current[:] = [session]

        def stop() -> None:
            for session in current:
                session.stop()

        def run() -> SessionResult:
            return self._sessions.run(run_id, name, data.decode(), started)

        return await run_in_thread(run, stop, name="taoloop-sandbox")

    def _session_process(self, channel: int) -> SandboxProcess:
        interpreter, readable = self._python_program()
        return self._sandboxed(
            driver_argv(interpreter, channel),
            (DRIVER, driver_source()),
            readable,
            channel=channel,
            most_calls=MAX_CALLS,
        )

    async def run_command(self, command: str) -> ProcessResult:
        """Run a script of the POSIX shell to its end; a cancellation ends it.

        Raises:
            ToolError: `no_sandbox`, `sandbox_failed` or `bad_script`; nothing was run.
        """
        return await _run(self._process("command", command, _SHELL))

    async def run_file(self, folder: Path, path: str, args: Sequence[str], *, at: str) -> ProcessResult:
        """Run the file `path` of a folder that the sandbox shows read-only as `at`; a cancellation ends it.

        A file `.py` is for Python, `.sh` for the shell, unless it names its own interpreter in a line `#!`.

        Raises:
            ToolError: `no_sandbox`, `sandbox_failed`, or `bad_script`: nothing says what runs it. Nothing was run.
        """
        file = f"{at}/{path}"
        readable: tuple[Path, ...] = ()
        argv: tuple[str, ...] = (file,)
        if path.endswith(".py"):
            interpreter, readable = self._python_program()
            argv = (str(interpreter), file)
        elif (folder / path).read_bytes()[:2] != b"#!":
            if not path.endswith(".sh"):
                raise TEXTS.error("script_interpreter", "bad_script", path=path)
            argv = (_SHELL, file)
        mounted = ((folder, at),)
        return await _run(self._sandboxed((*argv, *args), ("none", b""), readable, mounted=mounted))

    @cached_property
    def _folder(self) -> tuple[Path, int, int] | None:
        """The workspace with its device and inode, as it was at the first use: it must stay the same folder."""
        if self.workspace is None:
            return None
        try:
            self.workspace.mkdir(parents=True, exist_ok=True)
            path = self.workspace.resolve(strict=True)
            status = path.stat()
        except OSError as error:
            raise ConfigError(
                f"The workspace {str(self.workspace)!r} cannot be used: {error.strerror}.", hint="Give another folder."
            ) from error
        if not stat.S_ISDIR(status.st_mode) or path == Path(path.anchor):
            raise ConfigError(f"The workspace {str(self.workspace)!r} is no folder for this.", hint="Give another.")
        return path, status.st_dev, status.st_ino

    def _process(self, name: str, text: str, program: str = "") -> SandboxProcess:
        """The process of `program`, or of Python, with the script `name`."""
        data = _script(text)
        interpreter, readable = (Path(program), ()) if program else self._python_program()
        return self._sandboxed((str(interpreter), f"{SCRIPTS}/{name}"), (name, data), readable)

    def _python_program(self) -> tuple[Path, tuple[Path, ...]]:
        try:
            return find_python(self._python)
        except ConfigError as error:
            raise ToolError(error.message, code="no_sandbox", hint=error.hint) from error

    def _sandboxed(
        self,
        argv: tuple[str, ...],
        script: tuple[str, bytes],
        readable: tuple[Path, ...],
        *,
        channel: int | None = None,
        most_calls: int = 1,
        mounted: tuple[tuple[Path, str], ...] = (),
    ) -> SandboxProcess:
        try:
            bwrap = require_sandbox(self._program).program or ""
        except ConfigError as error:
            raise ToolError(error.message, code="no_sandbox", hint=error.hint) from error
        workspace, *identity = self._folder or (None,)
        if workspace is not None:
            _keep_apart(workspace)
        mounts = SandboxMounts(
            workspace=workspace,
            readable=(*readable, *self._readable),
            network=self.network,
            scratch_bytes=self.limits.disk_bytes,
            mounted=mounted,
        )
        return SandboxProcess(
            bwrap,
            mounts,
            self.limits,
            argv=argv,
            script=script,
            is_workspace=lambda stat: workspace is None or [stat.st_dev, stat.st_ino] == identity,
            channel=channel,
            most_calls=most_calls,
        )


def _script(text: str) -> bytes:
    """The text of a program as UTF-8.

    Raises:
        ToolError: `bad_script`.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise TEXTS.error("script_surrogates", "bad_script") from None
    if not text.strip() or b"\0" in data or len(data) > MAX_SCRIPT_BYTES:
        name = "script_empty" if not text.strip() else "script_nul" if b"\0" in data else "script_long"
        raise TEXTS.error(name, "bad_script", hint=TEXTS.run_text("script_hint"))
    return data


def _keep_apart(workspace: Path) -> None:
    """Make the runtime's folder in the workspace, so that something can be mounted over it."""
    path = workspace / RESERVED
    try:
        path.mkdir(exist_ok=True)
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
    except OSError as error:
        raise TEXTS.error("reserved_failed", "sandbox_failed", name=RESERVED, reason=system_reason(error)) from error
    if not is_folder:
        raise TEXTS.error("reserved_no_folder", "sandbox_failed", name=RESERVED)


async def _run(process: SandboxProcess) -> ProcessResult:
    """Run it in a thread of its own, where no other work can hold up the watch over it.

    The thread lives as long as the process: bubblewrap ends itself when the thread that started it does.
    """
    try:
        return await run_in_thread(process.run, process.stop, name="taoloop-sandbox")
    finally:
        process.stop()
