"""A server that is a program: started with its own environment, spoken to line by line, and ended with all it started.

Every size is bounded: a line, the garbage between lines, and what is kept of its standard error for messages.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taoloop.errors import ConfigError, McpFailed, ToolError
from taoloop.tools.mcp.texts import TEXTS
from taoloop.tools.sandbox.limits import SandboxLimits
from taoloop.tools.sandbox.mounts import GROUP, PASSWD, WORKSPACE, SandboxMounts, checked_readable
from taoloop.tools.sandbox.sandbox import require_sandbox
from taoloop.tools.sandbox.seccomp import seccomp_filter

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

    from taoloop.tools.mcp.settings import McpSandbox, McpServer

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "COMSPEC")
_KEPT_BYTES = 65_536  # of standard error
_SHOWN_CHARS = 400
_MAX_GARBAGE = 1_000  # lines that are no message, before the server is given up
_LEAVE_S = 1.0  # for ending by itself once its input is closed, and again after SIGTERM
_POLL_S = 0.01


class StdioTransport:
    """A started program as a transport of the SDK: entering starts it and gives the streams, leaving ends it.

    Raises (on entering):
        McpFailed: `server_away`, the program cannot be started.
    """

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._said = b""
        self._why = ""
        self._leaving = False

    async def __aenter__(self) -> TransportStreams:
        import anyio  # noqa: PLC0415  # comes with the SDK, which is optional

        self._process = await self._start()
        to_session, from_server = anyio.create_memory_object_stream[Any](0)
        to_server, from_session = anyio.create_memory_object_stream[Any](0)
        self._streams = (to_session, from_server, to_server, from_session)
        self._tasks = [
            asyncio.create_task(self._read_messages(to_session)),
            asyncio.create_task(self._write(from_session)),
            asyncio.create_task(self._listen()),
        ]
        return from_server, to_server

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.shield(asyncio.create_task(self._end()))

    async def ending(self) -> str:
        """Why the program is gone or was given up, once that is known; empty while it is there, or if we ended it."""
        process = self._process
        if process is None:
            return ""
        if self._leaving:
            return f"{self._why}{self.stderr_tail}" if self._why else ""
        if not self._why and self._tasks[0].done():  # its output has ended: soon it is seen to be gone
            await _until(lambda: process.returncode is not None, _LEAVE_S)
            await asyncio.wait(self._tasks[2:], timeout=_LEAVE_S / 4)
        if not self._why and process.returncode is not None:
            code = process.returncode
            self._why = TEXTS.run_text("ended_code" if code >= 0 else "ended_signal", code=abs(code))
        if not self._why and self._tasks[0].done():
            self._why = TEXTS.run_text("output_closed")
        return f"{self._why}{self.stderr_tail}" if self._why else ""

    @property
    def stderr_tail(self) -> str:
        """The end of its standard error for a message; empty if there is none."""
        lines = [line.strip() for line in self._said.decode(errors="replace").splitlines() if line.strip()]
        text = " | ".join(lines)[-_SHOWN_CHARS:]
        return TEXTS.run_text("last_words", text=text) if text else ""

    async def _start(self) -> asyncio.subprocess.Process:
        server = self._server
        with ExitStack() as stack:
            try:
                argv, env = [server.command, *server.args], environment(server)
                if os.name == "nt":  # there, a command is often a script with a suffix of its own
                    argv[0] = shutil.which(argv[0]) or argv[0]
                fds: list[int] = []
                if server.sandbox is not None:
                    argv, fds, env = sandboxed_command(argv, server.sandbox, env, stack)
                return await asyncio.create_subprocess_exec(
                    *argv,
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    env=env,
                    cwd=server.folder,
                    pass_fds=tuple(fds),
                    start_new_session=True,  # its own group, to be ended with all that it starts
                    limit=server.max_message_bytes,
                )
            except (OSError, ValueError) as error:
                raise _not_started(server, error) from error
            except (ConfigError, ToolError) as error:
                values: dict[str, Any] = {"server": server.display_name, "reason": error.message}
                raise TEXTS.error(
                    "not_sandboxed", "server_away", error_type=McpFailed, hint=error.hint, **values
                ) from error

    async def _read_messages(self, out: Any) -> None:
        """Hand each line that is a message on; end with the program's output, or where it goes beyond the bounds."""
        assert self._process is not None and self._process.stdout is not None  # noqa: PT018, S101  # it has started
        import anyio  # noqa: PLC0415  # comes with the SDK

        source, garbage = self._process.stdout, 0
        try:
            while True:
                line = await source.readuntil(b"\n")
                message = _message_in(line)
                if message is not None:
                    await out.send(message)
                elif line.strip() and (garbage := garbage + 1) > _MAX_GARBAGE:
                    self._why = TEXTS.run_text("garbage", limit=_MAX_GARBAGE)
                    return
        except asyncio.IncompleteReadError as error:  # the end; a last line without its end may still be a message
            if (message := _message_in(error.partial)) is not None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await out.send(message)
        except asyncio.LimitOverrunError:
            self._why = TEXTS.run_text("long_line", limit=self._server.max_message_bytes)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass  # the session has ended, or the pipe has: both are seen elsewhere
        finally:
            await out.aclose()

    async def _write(self, messages: Any) -> None:
        """Write each message as a line; where the program takes no more, the end of its output tells."""
        assert self._process is not None and self._process.stdin is not None  # noqa: PT018, S101  # it has started
        sink = self._process.stdin
        async with messages:
            async for message in messages:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    sink.write(line.encode(errors="replace") + b"\n")
                    await sink.drain()
                except (OSError, RuntimeError):
                    await self._streams[0].aclose()  # waiting requests end now and not at their time limits
                    return

    async def _listen(self) -> None:
        """Keep the end of its standard error, which is never a way for it to stop itself."""
        assert self._process is not None and self._process.stderr is not None  # noqa: PT018, S101  # it has started
        with suppress(OSError):
            while chunk := await self._process.stderr.read(_KEPT_BYTES):
                self._said = (self._said + chunk)[-_KEPT_BYTES:]

    async def _end(self) -> None:
        """Close its input, then SIGTERM, then SIGKILL to its group; leave no task, pipe or process behind."""
        process = self._process
        assert process is not None and process.stdin is not None  # noqa: PT018, S101  # it has started
        to_session, from_server, to_server, from_session = self._streams
        await self.ending()  # before any signal of ours
        self._leaving = True
        from_server.close()
        to_server.close()
        await asyncio.wait(self._tasks[1:2], timeout=_LEAVE_S / 2)  # what was accepted is written first
        process.stdin.close()
        drained = asyncio.create_task(self._drain())  # a program that waits to write would not come to its end
        if not self._why or process.returncode is not None:
            await _until(lambda: process.returncode is not None, _LEAVE_S)
        if process.returncode is None:
            _signal(process, signal.SIGTERM)
            await _until(lambda: process.returncode is not None, _LEAVE_S)
        _signal(process, _KILL)  # also what it left behind in its group
        await _until(lambda: process.returncode is not None, _LEAVE_S)
        for task in (*self._tasks, drained):
            task.cancel()
        await asyncio.gather(*self._tasks, drained, return_exceptions=True)
        to_session.close()
        from_session.close()
        if (transport := getattr(process, "_transport", None)) is not None:  # nothing public lets go of its pipes
            with suppress(PermissionError):
                transport.close()

    async def _drain(self) -> None:
        assert self._process is not None and self._process.stdout is not None  # noqa: PT018, S101  # it has started
        await asyncio.wait(self._tasks[:1])  # two readers of one stream cannot be
        with suppress(OSError):
            while await self._process.stdout.read(_KEPT_BYTES):
                pass


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def environment(server: McpServer) -> dict[str, str]:
    """The variables that a program gets: a few of this process without which programs are not found, and its own."""
    names = (*_INHERITED, *(_WINDOWS if os.name == "nt" else ()))
    return {name: os.environ[name] for name in names if name in os.environ} | dict(server.env)


def _not_started(server: McpServer, error: Exception) -> ToolError:
    name, reason = "not_started", f"{server.command!r}: {getattr(error, 'strerror', None) or error}"
    if server.folder is not None and not Path(server.folder).is_dir():
        name, reason = "no_folder", TEXTS.run_text("no_folder", folder=str(server.folder))
    elif isinstance(error, FileNotFoundError):
        name, reason = "no_program", TEXTS.run_text("no_program", command=server.command)
    values: dict[str, Any] = {"server": server.display_name, "reason": reason}
    hint = TEXTS.run_text(f"{name}_hint")
    return TEXTS.error("not_started", "server_away", error_type=McpFailed, hint=hint, **values)


def _message_in(line: bytes) -> SessionMessage | None:
    """The message that a line is, if it is one."""
    import mcp_types  # noqa: PLC0415  # comes with the SDK
    from mcp.shared.message import SessionMessage  # noqa: PLC0415  # likewise

    if not line.strip():
        return None
    judge = mcp_types.jsonrpc_message_adapter
    with suppress(ValueError, RecursionError):
        return SessionMessage(judge.validate_json(line, by_name=False))
    with suppress(ValueError, RecursionError):  # half an emoji, where a server cut a text: no reason to lose an answer
        whole = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False).encode(errors="replace")
        return SessionMessage(judge.validate_json(whole, by_name=False))
    return None


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    """Send a signal to the whole group; the group has the number of its first process, also after its end."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.kill()


async def _until(condition: Any, at_most_s: float) -> None:
    """Wait for a condition. Not for `Process.wait`: that waits for pipes, which a grandchild may hold open."""
    remaining_s = at_most_s
    while not condition() and remaining_s > 0:
        await asyncio.sleep(_POLL_S)
        remaining_s -= _POLL_S


_OWN = ("PATH", "HOME", "TMPDIR")  # the sandbox has its own


def sandboxed_command(
    argv: Sequence[str], sandbox: McpSandbox, env: Mapping[str, str], stack: ExitStack
) -> tuple[list[str], list[int], dict[str, str]]:
    """The command line that runs `argv` in the sandbox, the descriptors that it takes, and its environment.

    The descriptors are closed with `stack`. Variables go through one of them, so that no list of processes shows them.

    Raises:
        ConfigError: there is no sandbox on this machine, or a folder cannot be shown.
    """
    program = require_sandbox().program or ""
    workspace = None if sandbox.workspace is None else sandbox.workspace.absolute()
    if workspace is not None and not workspace.is_dir():
        raise ConfigError(f"The workspace {str(workspace)!r} is no folder.", hint="Make it, or name another.")
    house = SandboxMounts(
        workspace=workspace,
        readable=checked_readable(sandbox.readable),
        network=sandbox.network,
        scratch_bytes=SandboxLimits().disk_bytes,
    )
    passwd, group, nothing = (_holding(data, stack) for data in (PASSWD, GROUP, b""))
    options = house.options(marker=".ready", script=(nothing, "empty"), passwd=passwd, group=group)
    for name, value in env.items():
        if name not in _OWN:
            options += ["--setenv", name, value]
    fds = [passwd, group, nothing]
    if (rules := seccomp_filter(network=sandbox.network)) is not None:
        fds.append(_holding(rules, stack))
        options += ["--seccomp", str(fds[-1])]
    options += ["--chdir", WORKSPACE]
    fds.append(_holding(b"".join(os.fsencode(option) + b"\0" for option in options), stack))
    return [program, "--args", str(fds[-1]), "--", *argv], fds, {}


def _holding(data: bytes, stack: ExitStack) -> int:
    """A descriptor to read this from; a file in memory, for a pipe may be too small."""
    fd = os.memfd_create("taoloop-mcp") if hasattr(os, "memfd_create") else _pipe(data)
    stack.callback(os.close, fd)
    if hasattr(os, "memfd_create"):
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _pipe(data: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading
