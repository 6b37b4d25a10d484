"""Processes of `tao` that share one start: a server that has everything imported forks one for each test.

A process from here is a real one: it has an own id, environment, folder, standard streams, signals and exit code, and
the interpreter ends as it always does. Only the imports were done before. That saves most of the time that a test with
a process takes. What the interpreter itself reads from the environment is not repeated: see `is_forkable`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from select import select
from typing import IO, Any, NoReturn

_LENGTH = struct.Struct("!I")
_REPEATED = {"PYTHONUTF8", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
"""What the interpreter reads from the environment and a fork has as well, or makes no difference to `tao`."""
_STREAMS = ("stdin", "stdout", "stderr")
_STARTING = threading.Lock()
_PRELOADED = ("cli", "core", "runtime", "serve")
"""The packages of taoloop whose modules the server imports."""


def is_forkable(env: Mapping[str, str]) -> bool:
    """Whether a process with this environment can be a fork: nothing in it is for the start of the interpreter."""
    variables = {name for name in env if name.startswith("PYTHON")}
    return hasattr(os, "fork") and env.get("PYTHONUTF8") == "1" and variables <= _REPEATED


class ForkedProcess(subprocess.Popen[str]):
    """A `tao` command in a process that the server has forked, with the interface of `subprocess`."""

    def __init__(  # the options of `subprocess` that tests use, and one of its own
        self,
        args: Sequence[str],
        folder: Path,
        env: Mapping[str, str],
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        has_terminal: bool = False,
    ) -> None:
        """Start it; `has_terminal`: it leads a session whose terminal is its standard input."""
        self.args = args
        self.returncode: Any = None  # as `subprocess` declares it
        self.stdin = self.stdout = self.stderr = None
        ended, status = os.pipe()
        theirs: list[int] = []
        for name, way in zip(_STREAMS, (stdin, stdout, stderr), strict=True):
            theirs.append(os.dup(theirs[1]) if way == subprocess.STDOUT else self._stream(name, way))
        request = {"args": list(args), "folder": str(folder), "env": dict(env), "has_terminal": has_terminal}
        with _STARTING:  # several threads may need the first process at once
            server = _server()
        server.fork(request, [*theirs, status])
        for number, way in zip(theirs, (stdin, stdout, stderr), strict=True):
            if number != way:
                os.close(number)
        os.close(status)
        self._status = os.fdopen(ended, "rb", buffering=0)
        self.pid = _LENGTH.unpack(self._status.read(_LENGTH.size))[0]

    def _stream(self, name: str, way: int | None) -> int:
        """The descriptor of the process for one of its standard streams; this side of a pipe becomes an attribute."""
        if way is None:
            return os.dup(_STREAMS.index(name))
        if way == subprocess.DEVNULL:
            return os.open(os.devnull, os.O_RDWR)
        if way != subprocess.PIPE:
            return way
        reading, writing = os.pipe()
        is_input = name == "stdin"
        ours, theirs = (writing, reading) if is_input else (reading, writing)
        setattr(self, name, os.fdopen(ours, "w" if is_input else "r", encoding="utf-8"))
        return theirs

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        code: int | None = self.returncode
        if code is None:
            if not select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            code = self.returncode = int(self._status.read())
            self._status.close()
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[Any, Any]:  # noqa: A002
        """What it wrote until it ended. A process that takes longer than `timeout` is killed."""
        timer = threading.Timer(timeout or threading.TIMEOUT_MAX, self.kill)
        timer.daemon = True
        timer.start()
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.append(_read(self.stderr)))
        reader.start()
        if self.stdin is not None:
            with self.stdin:
                self.stdin.write(input or "")
        out = _read(self.stdout)
        reader.join()
        self.wait()
        timer.cancel()
        return out, errors[0]


def _read(stream: IO[str] | None) -> str:
    if stream is None or stream.closed:
        return ""
    with stream:
        return stream.read()


class _Server:
    """The process that forks, as the tests see it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-X", "utf8", __file__, str(number)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[number])

    def fork(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        data = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._socket, [_LENGTH.pack(len(data)) + data], descriptors)

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()


@cache
def _server() -> _Server:
    server = _Server()
    atexit.register(server.close)
    return server


# The server


def serve(requests: socket.socket) -> None:
    """Fork a process for each request. Returns in each of them, with its surroundings; ends with the tests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal of the tests
    for package in _PRELOADED:
        name = f"taoloop.{package}"
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 1 << 16, 4)
        if not data:
            os._exit(0)
        length = _LENGTH.unpack_from(data)[0]
        data = data[_LENGTH.size :]
        while len(data) < length:
            data += requests.recv(length - len(data))
        watcher = os.fork()
        if watcher == 0:
            requests.close()
            process = os.fork()
            if process == 0:
                os.close(descriptors.pop())
                _become(json.loads(data), descriptors)
                return
            _watch(process, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _watch(process: int, descriptors: list[int]) -> NoReturn:
    """Report the id of a process and how it ended. Its standard streams are not kept open meanwhile."""
    status = descriptors.pop()
    for descriptor in (*descriptors, 1, 2):
        os.close(descriptor)
    os.write(status, _LENGTH.pack(process))
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.write(status, str(code).encode())
    os._exit(0)


def _become(request: Mapping[str, Any], streams: list[int]) -> None:
    """Take the surroundings that the request names, as the interpreter does when a process starts."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if request["has_terminal"]:
        os.setsid()
        import fcntl  # noqa: PLC0415  # not on every system
        import termios  # noqa: PLC0415  # the same

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[1:] = request["args"]
    sys.path[:1] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    importlib.invalidate_caches()
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # type: ignore[misc]
    buffering = 1 if os.isatty(1) else -1
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", buffering, "utf-8", "surrogateescape", closefd=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # type: ignore[misc]


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv.pop())))
    from taoloop.cli import main

    main()
