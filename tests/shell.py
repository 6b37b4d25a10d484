"""The command line in a test: `tao` called in this process, as if it had one of its own, or started as a real one."""

from __future__ import annotations

import contextvars
import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml
from tests.fork_server import ForkedProcess, is_forkable

from taoloop.cli.app import execute
from taoloop.tools.mcp.loop_thread import close_all

ENTRY = (sys.executable, "-c", "from taoloop.cli import main; main()")
WAIT_S = 60.0
"""How long a test waits for a process: longer than any takes on a busy machine."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "XDG_CACHE_HOME", "XDG_DATA_HOME")
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE") if hasattr(signal, name))


@dataclass(frozen=True)
class Ended:
    """A `tao` command that has ended."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def one_line(self) -> str:
        """What the command complained about: exactly one line."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("tao: ")
        return lines[0]


class Shell:
    """A folder to call `tao` in, with a database of its own and none of the outer configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.env |= {"TAOLOOP_DB": str(folder / "runs.db"), "TAOLOOP_LANG": "en", "PYTHONUTF8": "1"}

    def __call__(self, *args: str, code: int | None = None, stdin: str = "", **env: str) -> Ended:
        """Run a command in this process; for signals, pipes and the interpreter's own variables see `process`."""
        assert not any(name.startswith("PYTHON") for name in env), "only a process of its own reads these: tao.process"
        return _checked(run_in_process(args, self.folder, self.env | env, stdin), code)

    def process(self, *args: str, code: int | None = None, stdin: str = "", **env: str) -> Ended:
        """Run a command in a process of its own."""
        pipe = subprocess.PIPE
        process = launch(args, self.folder, self.env | env, stdin=pipe, stdout=pipe, stderr=pipe)
        return _ended(process, stdin, code)

    def fresh_process(self, *args: str, code: int | None = None, **env: str) -> Ended:
        """Run a command in a process that begins with the interpreter and the entry point."""
        process = _fresh_process(args, self.folder, self.env | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return _ended(process, "", code)

    def start(self, *args: str, stdin: int = subprocess.DEVNULL, **env: str) -> subprocess.Popen[str]:
        """Start a command in a process of its own, which is read with `until` and may be sent signals."""
        pipe = subprocess.PIPE
        return launch(args, self.folder, self.env | env, stdin=stdin, stdout=pipe, stderr=pipe)

    def write(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path

    def script(self, *replies: Any, name: str = "script.yaml") -> str:
        """The spec of a scripted model with these replies."""
        self.write(name, yaml.safe_dump(list(replies), allow_unicode=True))
        return f"scripted:{name}"


def launch(args: Sequence[str], folder: Path, env: Mapping[str, str], **options: Any) -> subprocess.Popen[str]:
    """Start `tao` in a process of its own, forked from one that has everything imported if `env` allows that.

    `options`: `stdin`, `stdout` and `stderr` as of `subprocess.Popen`, and `has_terminal`: the process leads a session
    whose terminal is its standard input.
    """
    if is_forkable(env):
        return ForkedProcess(args, folder, env, **options)
    has_terminal = options.pop("has_terminal", False)
    return _fresh_process(args, folder, env, start_new_session=has_terminal, **options)


def _fresh_process(args: Sequence[str], folder: Path, env: Mapping[str, str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([*ENTRY, *args], cwd=folder, env=env, encoding="utf-8", **options)


def _ended(process: subprocess.Popen[str], stdin: str, code: int | None) -> Ended:
    out, err = process.communicate(stdin, timeout=WAIT_S)
    return _checked(Ended(process.returncode, out, err), code)


def _checked(ended: Ended, code: int | None) -> Ended:
    assert code is None or ended.code == code, f"{ended.code}: {ended.out}{ended.err}"
    return ended


def call(name: str, /, **args: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return {"text": f"I use {name}.", "tool_calls": [{"name": name, "args": args}]}


@contextmanager
def waiting(
    process: subprocess.Popen[Any], what: str, shown: Callable[[], str] = str, limit_s: float = WAIT_S
) -> Iterator[None]:
    """Wait for `what` from a process in the block, however that is done; killing a process that is too slow ends it.

    Raises:
        AssertionError: it has not come in time; says what was waited for, and what the process has `shown`.
    """
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(limit_s, give_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if is_late.is_set():
            raise AssertionError(f"{what} did not come within {limit_s:g} s: {shown()}")


def until(process: subprocess.Popen[str], kind: str) -> list[dict[str, Any]]:
    """The events that a process prints, up to the first of this kind."""
    events: list[dict[str, Any]] = []
    until_line(process, process.stdout, f'"kind":"{kind}"', lambda line: events.append(json.loads(line)))
    return events


def until_line(
    process: subprocess.Popen[str], stream: IO[str] | None, text: str, each: Callable[[str], object] = str
) -> str:
    """The next line with this text that a process writes to one of its streams; `each` gets every line up to it."""
    assert stream is not None
    with waiting(process, f"a line with {text!r}"):
        for line in stream:
            each(line)
            if text in line:
                return line
        errors = process.stderr.read() if process.stderr else ""
        raise AssertionError(f"the process ended before a line with {text!r}: {errors}")


def until_true(process: subprocess.Popen[Any], what: str, holds: Callable[[], object]) -> None:
    """Wait for what a process does elsewhere, in a file for example."""
    with waiting(process, what):
        while not holds():
            assert process.poll() is None, f"the process ended before {what}"
            os.sched_yield()


Call = Callable[..., dict[str, Any]]


def run_in_process(args: Sequence[str], folder: Path, env: Mapping[str, str], stdin: str = "") -> Ended:
    """Run a `tao` command in this process, with the surroundings that a process of its own would have.

    The three standard descriptors are files meanwhile, so what C code and child processes write is seen too. What the
    command changes in the process is undone: environment, folder, import path, modules that lie in `folder`, signal
    handlers, handlers of the log, connections to MCP servers. It must be called in the main thread.
    """
    assert not Path(__file__).is_relative_to(folder), "the modules in the folder are those of the command"
    assert threading.current_thread() is threading.main_thread(), "commands side by side are processes: tao.process"
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(stdin.encode())
        files[0].seek(0)
        surroundings = _environment(env), _folder(folder), _modules_of(folder), _signals(), _no_log_handlers()
        with ExitStack() as command:
            for part in (*surroundings, _standard_streams(files)):
                command.enter_context(part)
            command.callback(_end_of_process, frozenset(threading.enumerate()))
            code = contextvars.copy_context().run(execute, list(args))
        out, err = (_text(file) for file in files[1:])
    return Ended(code, out, err)


def _end_of_process(earlier: frozenset[threading.Thread]) -> None:
    """What the interpreter does when a process ends: close MCP servers, wait for threads that are not daemons.

    Threads that were there before the command belong to other tests of this process and are not waited for.
    """
    close_all()
    for thread in threading.enumerate():
        if not thread.daemon and thread not in earlier and thread is not threading.current_thread():
            thread.join(timeout=60)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def _standard_streams(files: Sequence[IO[bytes]]) -> Iterator[None]:
    """The standard descriptors and streams, over these files; the streams are what Python opens in UTF-8 mode."""
    outer = sys.stdin, sys.stdout, sys.stderr
    for stream in outer[1:]:
        stream.flush()
    duplicates = [os.dup(number) for number in range(3)]
    for number, file in enumerate(files):
        file.flush()
        os.dup2(file.fileno(), number)
    try:
        with (
            open(0, encoding="utf-8", errors="surrogateescape", closefd=False) as sys.stdin,
            open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False) as sys.stdout,
            open(2, "w", 1, "utf-8", "backslashreplace", closefd=False) as sys.stderr,
        ):
            yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = outer
        for number, duplicate in enumerate(duplicates):
            os.dup2(duplicate, number)
            os.close(duplicate)


@contextmanager
def _environment(env: Mapping[str, str]) -> Iterator[None]:
    outer = dict(os.environ)
    _set_environment(env)
    try:
        yield
    finally:
        _set_environment(outer)


def _set_environment(env: Mapping[str, str]) -> None:
    zone = os.environ.get("TZ")
    os.environ.clear()
    os.environ.update(env)
    if env.get("TZ") != zone and hasattr(time, "tzset"):
        time.tzset()


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    outer = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(outer)


@contextmanager
def _modules_of(folder: Path) -> Iterator[None]:
    """An import path that begins in the current folder; modules that lie there are imported afresh by each command."""
    path, modules, bytecode = list(sys.path), set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, "")
    sys.dont_write_bytecode = True  # a module that is written again within a second would be taken from the cache
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, bytecode
        for name in set(sys.modules) - modules:
            if _is_in(sys.modules[name], folder):
                del sys.modules[name]
        for entry in [entry for entry in sys.path_importer_cache if entry.startswith(str(folder))]:
            del sys.path_importer_cache[entry]


def _is_in(module: Any, folder: Path) -> bool:
    places = [getattr(module, "__file__", None) or "", *(getattr(module, "__path__", None) or ())]
    return any(Path(place).resolve().is_relative_to(folder.resolve()) for place in places if place)


@contextmanager
def _signals() -> Iterator[None]:
    outer = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in outer.items():
            if signal.getsignal(number) is not handler:
                with suppress(TypeError):  # it was not set from Python
                    signal.signal(number, handler)


@contextmanager
def _no_log_handlers() -> Iterator[None]:
    """A log that nobody has configured, as a process begins with: warnings go to standard error."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
