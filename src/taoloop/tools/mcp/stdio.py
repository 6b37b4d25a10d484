"""A server that is a program: started with its own environment, spoken to line by line, and ended with all it started.

Every size is bounded: a line, the garbage between lines, and what is kept of its standard error for messages. The
transport of the SDK bounds none of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from taoloop.errors import ConfigError, ToolError
from taoloop.tools.mcp.errors import server_error
from taoloop.tools.mcp.settings import McpSandbox, McpServer
from taoloop.tools.mcp.texts import TEXTS
from taoloop.tools.sandbox.confinement import SandboxLimits, SandboxMounts, checked_readable
from taoloop.tools.sandbox.sandbox import require_sandbox

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "COMSPEC")
_OF_SANDBOX = ("PATH", "HOME", "TMPDIR")  # the sandbox has its own
_KEPT_BYTES = 65_536  # of standard error
_SHOWN_CHARS = 400
_MAX_GARBAGE = 1_000  # lines that are no message, before the server is given up
_LEAVE_S = 1.0  # for ending by itself once its input is closed, and again after SIGTERM
_POLL_S = 0.01
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class StdioTransport:
    """A started program as a transport of the SDK: entering starts it and gives the streams, leaving ends it.

    Raises (on entering):
        McpFailed: `server_away`, the program cannot be started.
    """

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._process: Process | None = None
        self._stderr = b""
        self._reason = ""
        self._output_ended = self._leaving = False

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[Any]]:
        process = self._process = await self._start()
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        assert stdin is not None and stdout is not None and stderr is not None  # noqa: PT018, S101  # they are pipes
        to_session, from_server = anyio.create_memory_object_stream[Any](0)
        to_server, from_session = anyio.create_memory_object_stream[Any](0)
        self._stdin, self._streams = stdin, (from_server, to_server, to_session, from_session)
        self._reader = asyncio.create_task(self._read_messages(stdout, to_session))
        self._writer = asyncio.create_task(_write_messages(stdin, from_session, to_session))
        self._stderr_reader = asyncio.create_task(self._read_stderr(stderr))
        return from_server, to_server

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.shield(asyncio.create_task(self._end()))

    async def ending(self) -> str:
        """Why the program is gone or was given up, once that is known; empty while it is there, or if we ended it."""
        process = self._process
        if process is not None and not self._reason and not self._leaving:
            if self._output_ended:  # soon it is seen to be gone
                await _wait_for_exit(process)
                await asyncio.wait([self._stderr_reader], timeout=_LEAVE_S / 4)
            if (code := process.returncode) is not None:
                self._reason = TEXTS.run_text("ended_code" if code >= 0 else "ended_signal", code=abs(code))
            elif self._output_ended:
                self._reason = TEXTS.run_text("output_closed")
        return f"{self._reason}{self.stderr_tail}" if self._reason else ""

    @property
    def stderr_tail(self) -> str:
        """The end of its standard error for a message; empty if there is none."""
        lines = [line.strip() for line in self._stderr.decode(errors="replace").splitlines() if line.strip()]
        text = " | ".join(lines)[-_SHOWN_CHARS:]
        return TEXTS.run_text("last_words", text=text) if text else ""

    async def _start(self) -> Process:
        server = self._server
        with ExitStack() as stack:
            try:
                argv, env, fds = [server.command, *server.args], environment(server), list[int]()
                if os.name == "nt":  # there, a command is often a script with a suffix of its own
                    argv[0] = shutil.which(argv[0]) or argv[0]
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
                raise server_error(server, "not_sandboxed", hint=error.hint, reason=error.message) from error

    async def _read_messages(self, stdout: StreamReader, to_session: MemoryObjectSendStream[Any]) -> None:
        """Pass on each line that is a message, until the output ends or goes beyond the bounds; drop the rest."""
        garbage = 0
        try:
            while garbage <= _MAX_GARBAGE:
                line = await stdout.readuntil(b"\n")
                if (message := _parse_message(line)) is not None:
                    await to_session.send(message)
                elif line.strip():
                    garbage += 1
            self._reason = TEXTS.run_text("garbage", limit=_MAX_GARBAGE)
        except asyncio.IncompleteReadError as error:  # the end; a last line without its end may still be a message
            if (message := _parse_message(error.partial)) is not None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await to_session.send(message)
        except asyncio.LimitOverrunError:
            self._reason = TEXTS.run_text("long_line", limit=self._server.max_message_bytes)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass  # the session has ended, or the pipe has: both are seen elsewhere
        finally:
            self._output_ended = True
            await to_session.aclose()
        with suppress(OSError):
            while await stdout.read(_KEPT_BYTES):
                pass  # a program that waits to write would not come to its end

    async def _read_stderr(self, stderr: StreamReader) -> None:
        """Keep the end of its standard error, which is never a way for it to stop itself."""
        with suppress(OSError):
            while chunk := await stderr.read(_KEPT_BYTES):
                self._stderr = (self._stderr + chunk)[-_KEPT_BYTES:]

    async def _end(self) -> None:
        """Close its input, then SIGTERM, then SIGKILL to its group; leave no task, pipe or process behind."""
        process = self._process
        assert process is not None  # noqa: S101  # it has started
        await self.ending()  # before any signal of ours
        self._leaving = True
        for stream in self._streams[:2]:
            stream.close()
        await asyncio.wait([self._writer], timeout=_LEAVE_S / 2)  # what was accepted is written first
        self._stdin.close()
        if not self._reason or process.returncode is not None:
            await _wait_for_exit(process)
        if process.returncode is None:
            _signal(process, signal.SIGTERM)
            await _wait_for_exit(process)
        _signal(process, _KILL)  # also what it left behind in its group
        await _wait_for_exit(process)
        tasks = (self._reader, self._writer, self._stderr_reader)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in self._streams[2:]:
            stream.close()
        if (transport := getattr(process, "_transport", None)) is not None:  # nothing public lets go of its pipes
            with suppress(PermissionError):
                transport.close()


async def _write_messages(
    stdin: StreamWriter, messages: MemoryObjectReceiveStream[SessionMessage], to_session: MemoryObjectSendStream[Any]
) -> None:
    """Write each message as a line; where the program takes no more, the end of its output tells."""
    async with messages:
        async for message in messages:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                stdin.write(line.encode(errors="replace") + b"\n")
                await stdin.drain()
            except (OSError, RuntimeError):
                await to_session.aclose()  # waiting requests end now and not at their time limits
                return


def _parse_message(line: bytes) -> SessionMessage | None:
    """The message that a line is, if it is one."""
    with suppress(ValueError, RecursionError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    with suppress(ValueError, RecursionError):  # half an emoji, where a server cut a text: no reason to lose an answer
        whole = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False).encode(errors="replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(whole, by_name=False))
    return None


def _signal(process: Process, number: int) -> None:
    """Send a signal to the whole group; the group has the number of its first process, also after its end."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif process.returncode is None:
            process.kill()


async def _wait_for_exit(process: Process) -> None:
    """Wait a moment for its end. Not by `Process.wait`: that waits for pipes, which a grandchild may hold open."""
    remaining_s = _LEAVE_S
    while process.returncode is None and remaining_s > 0:
        await asyncio.sleep(_POLL_S)
        remaining_s -= _POLL_S


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
    return server_error(server, "not_started", hint=TEXTS.run_text(f"{name}_hint"), reason=reason)


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
    mounts = SandboxMounts(
        workspace=workspace,
        readable=checked_readable(sandbox.readable),
        network=sandbox.network,
        scratch_bytes=SandboxLimits().disk_bytes,
    )
    fds: list[int] = []

    def hold(data: bytes) -> int:
        fd = os.memfd_create("taoloop-mcp")  # a file in memory, for a pipe may be too small
        stack.callback(os.close, fd)
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        fds.append(fd)
        return fd

    options = mounts.options(hold, marker=".ready", script=(hold(b""), "empty"))
    for name, value in env.items():
        if name not in _OF_SANDBOX:
            options += ["--setenv", name, value]
    arguments = hold(b"".join(os.fsencode(option) + b"\0" for option in options))
    return [program, "--args", str(arguments), "--", *argv], fds, {}
