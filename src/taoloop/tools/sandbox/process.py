"""One program in bubblewrap, from its start to the end of all its processes."""

from __future__ import annotations

import json
import math
import os
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from taoloop.errors import ToolError
from taoloop.tools.sandbox.confinement import Bound, SandboxLimits, SandboxMounts, UsageWatch
from taoloop.tools.texts import TEXTS, system_reason


class BoundedOutput:
    """The beginning and the end of a stream of bytes, at most `limit` of them; `total` counts all."""

    __slots__ = ("_end", "_head", "_tail", "total")

    def __init__(self, limit: int) -> None:
        self._head, self._tail = limit - limit // 2, limit // 2
        self._end = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take what came next."""
        self.total += len(data)
        self._end += data
        if len(self._end) > self._head + 2 * self._tail + 65_536:  # cut now and then, not at each piece
            del self._end[self._head : len(self._end) - self._tail]

    @property
    def is_cut(self) -> bool:
        """True if not everything was kept."""
        return self.total > self._head + self._tail

    def text(self) -> str:
        """What was kept, with a line between that says how much is missing; bytes that are no UTF-8 become U+FFFD."""
        if not self.is_cut:
            return self._end.decode(errors="replace")
        head, tail = bytes(self._end[: self._head]), bytes(self._end[len(self._end) - self._tail :])
        missing = self.total - len(head) - len(tail)
        note = TEXTS.run_text("left_out", count=missing)
        return "\n".join((head.decode(errors="replace"), note, tail.decode(errors="replace")))


_START_S = 10.0  # bubblewrap needs some hundredths of a second
_END_S = 10.0  # for processes that were killed and hang in the kernel
_LOOK_S = 0.02  # between two looks at what is used
_WAIT_S = 0.001  # between two looks whether it has started
_NICE = 10  # who watches comes before who is watched, and so does the rest of the machine
_CHUNK = 65_536
_BY_SIGNAL: dict[int, Bound] = {128 + 24: "cpu", 128 + 25: "file_size"}  # SIGXCPU, SIGXFSZ as bubblewrap tells them

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """How a program ended."""

    exit_code: int | None
    """Its exit code; None where a limit ended it."""
    limit: Bound | None
    """The limit that ended it, if one did."""
    stdout: str
    """What it printed, within the limit of one stream."""
    stderr: str
    """What it wrote to its standard error, within the limit of one stream."""
    cut: tuple[Stream, ...]
    """The streams of which the middle is missing."""


def sandbox_failed(reason: str) -> ToolError:
    """The error of a sandbox that did not start, or cannot be ended."""
    return TEXTS.error("sandbox_failed", "sandbox_failed", reason=reason[:1_000])


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a program has printed since some time."""

    stdout: BoundedOutput
    """Its standard output."""
    stderr: BoundedOutput
    """Its standard error."""

    @classmethod
    def bounded(cls, output_bytes: int) -> Outputs:
        """Nothing yet, and at most so many bytes of each stream later."""
        return cls(BoundedOutput(output_bytes), BoundedOutput(output_bytes))

    def result(self, exit_code: int | None, limit: Bound | None) -> ProcessResult:
        """The result of a program that printed this and ended so."""
        return ProcessResult(
            exit_code=None if limit else exit_code,
            limit=limit,
            stdout=self.stdout.text(),
            stderr=self.stderr.text(),
            cut=tuple(name for name in ("stdout", "stderr") if getattr(self, name).is_cut),
        )


class RunningProgram:
    """A program that has begun, for the thread that attends to it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        init: int,
        watch: UsageWatch,
        limits: SandboxLimits,
        kill: Callable[[], None],
    ) -> None:
        assert process.stdout and process.stderr  # noqa: PT018, S101  # they are pipes
        self._streams = {"stdout": process.stdout, "stderr": process.stderr}
        for stream in self._streams.values():
            os.set_blocking(stream.fileno(), False)
        self._init, self._limits, self._kill = init, limits, kill
        self.usage = watch
        self.has_ended = False
        self._latest = Outputs.bounded(limits.output_bytes)

    def watch(
        self, outputs: Outputs, *, wall_s: float = math.inf, until: int | None = None, look_s: float = _LOOK_S
    ) -> Bound | None:
        """Read what it prints and look at what it uses until it has ended; gives the limit that ended it.

        With `until` only until that descriptor can be read. What it uses is looked at every `look_s` seconds.
        """
        self._latest = outputs
        limit: Bound | None = None
        is_readable = False
        deadline, look_at = time.monotonic() + wall_s, 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(self._init, selectors.EVENT_READ, "end")  # readable once all of the sandbox is gone
            for name, stream in self._streams.items():
                selector.register(stream, selectors.EVENT_READ, getattr(outputs, name))
            if until is not None:
                selector.register(until, selectors.EVENT_READ, "until")
            while limit is None and not self.has_ended and not is_readable:
                is_readable = self._read_output(selector, min(look_s, max(0.0, deadline - time.monotonic())))
                now = time.monotonic()
                if now >= deadline:
                    limit = "time"
                elif outputs.stdout.total + outputs.stderr.total > self._limits.flow_bytes:
                    limit = "output"
                elif now >= look_at:
                    limit, look_at = self.usage.exceeded(), time.monotonic() + look_s
            if limit is not None:
                self._kill()
                end = time.monotonic() + _END_S
                while not self.has_ended and time.monotonic() < end:
                    self._read_output(selector, _LOOK_S)
        for name, stream in self._streams.items():
            with suppress(BlockingIOError):  # empty; whoever still has its other end is none of the sandbox
                while data := os.read(stream.fileno(), _CHUNK):
                    getattr(outputs, name).add(data)
        return limit

    def last_words(self) -> str:
        """What it wrote to its standard error since it was last watched."""
        return self._latest.stderr.text().strip()

    def _read_output(self, selector: selectors.BaseSelector, wait_s: float) -> bool:
        """Take what the program has printed by now; True once the descriptor that was waited for can be read."""
        is_readable = False
        for key, _ in selector.select(wait_s):
            if key.data == "end":
                self.has_ended = True
            elif key.data == "until":
                is_readable = True
            else:
                try:
                    data = os.read(key.fd, _CHUNK)
                except BlockingIOError:
                    continue
                if data:
                    key.data.add(data)
                else:
                    selector.unregister(key.fileobj)
        return is_readable


class SandboxProcess:
    """One program; `run` blocks its thread until all its processes are gone, `stop` may come from any other.

    `script` is the name and the content of the file that `argv` names. `is_workspace` says whether what was mounted is
    the folder that was meant. The program inherits the descriptor `channel`. It may serve `most_calls` calls, each with
    the processor time of the limits.
    """

    def __init__(
        self,
        bwrap: str,
        mounts: SandboxMounts,
        limits: SandboxLimits,
        *,
        argv: tuple[str, ...],
        script: tuple[str, bytes],
        is_workspace: Callable[[os.stat_result], bool],
        channel: int | None = None,
        most_calls: int = 1,
    ) -> None:
        self._bwrap, self._mounts, self._limits = bwrap, mounts, limits
        self._channel, self._most_calls = channel, most_calls
        self._argv, self._script, self._is_workspace = argv, script, is_workspace
        self._lock = threading.Lock()
        self._stopped = False
        self._pid = 0  # of the sandbox's first process
        self._init: int | None = None  # its pidfd: the number could pass to another

    def stop(self) -> None:
        """End everything, now or as soon as it has begun."""
        with self._lock:
            self._stopped = True
            self._kill()

    def run(self) -> ProcessResult:
        """Start the program and give back how it ended.

        Raises:
            ToolError: `sandbox_failed`, the sandbox did not come up and nothing was run, or it cannot be ended.
        """
        outputs = Outputs.bounded(self._limits.output_bytes)
        limit, code = self.attend(lambda program: program.watch(outputs, wall_s=self._limits.wall_s))
        return outputs.result(code, limit)

    def attend(self, attendance: Callable[[RunningProgram], Bound | None]) -> tuple[Bound | None, int | None]:
        """Start the program, leave it to `attendance`, and end what is left; gives its limit, or its exit code.

        `attendance` is called once the program has begun, in this thread, and gives the limit that ended it.

        Raises:
            ToolError: as `run`.
        """
        marker = f".ready-{secrets.token_hex(8)}"
        with ExitStack() as stack:
            (status, status_end), (release_end, release), (script_end, script) = (_pipe(stack) for _ in range(3))
            inherited = [status_end, release_end, script_end]

            def hold(data: bytes) -> int:
                end, writing = _pipe(stack)
                with writing:
                    writing.write(data)  # it fits into the smallest pipe
                inherited.append(end)
                return end.fileno()

            options = self._mounts.options(hold, marker=marker, script=(script_end.fileno(), self._script[0]))
            options += ["--json-status-fd", str(status_end.fileno()), "--block-fd", str(release_end.fileno())]
            passed = [end.fileno() for end in inherited] + ([] if self._channel is None else [self._channel])
            with self._started([self._bwrap, *options, "--", *self._argv], passed) as process:
                for end in inherited:
                    end.close()
                try:
                    pid = self._child(status.fileno())
                    with script:  # not before: a death of ours now ends all
                        script.write(self._script[1])
                    root = f"/proc/{pid}/root"
                    _wait_for(f"{root}/{marker}", process)
                    watch = self._bounded(pid, root)
                except (OSError, ValueError, KeyError) as error:
                    raise self._not_started(process, error) from error
                with closing(watch):
                    assert self._init is not None  # noqa: S101  # it has started
                    release.close()  # what bubblewrap waits for before it begins the program
                    program = RunningProgram(process, self._init, watch, self._limits, self._kill_now)
                    limit = attendance(program)
            code = _exit_code(status.read())
        if code is None and limit is None and not self._stopped:
            raise sandbox_failed(program.last_words() or TEXTS.run_text("no_word"))
        limit = limit or _BY_SIGNAL.get(code or 0)
        return limit, None if limit else code

    @contextmanager
    def _started(self, argv: list[str], inherited: list[int]) -> Iterator[subprocess.Popen[bytes]]:
        """Bubblewrap with none of this process's descriptors but the `inherited` ones; it is gone at the end."""
        try:
            process = subprocess.Popen(  # noqa: S603  # the program's own text goes through a file, never through these
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=inherited,
                env={},  # the first process in the sandbox can read what bubblewrap was started with
                start_new_session=True,  # Ctrl-C at the terminal is for the run, which ends this in its own way
            )
        except OSError as error:
            raise sandbox_failed(TEXTS.run_text("not_started", program=argv[0], reason=system_reason(error))) from error
        with process:
            try:
                yield process
            finally:
                self._end(process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Leave nothing behind: bubblewrap ends when the last process in the sandbox has."""
        with self._lock:
            self._kill()
            if self._init is None:
                process.kill()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise sandbox_failed(TEXTS.run_text("not_killed")) from error
        finally:
            with self._lock:
                if self._init is not None:
                    with suppress(ChildProcessError):  # it is ours if this process takes orphans, as pid 1 does
                        os.waitid(os.P_PIDFD, self._init, os.WEXITED | os.WNOHANG)
                    os.close(self._init)
                    self._init = None

    def _kill_now(self) -> None:
        with self._lock:
            self._kill()

    def _kill(self) -> None:
        """Kill the sandbox's first process, and so all of them: the kernel ends a pid namespace with its first."""
        if self._init is not None and not _has_ended(self._init):
            with suppress(OSError):  # root may, and needs it: among hundreds that fork, it must have its turn at once
                os.sched_setscheduler(self._pid, os.SCHED_FIFO, os.sched_param(1))
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)

    def _child(self, status: int) -> int:
        """The pid of the sandbox's first process, which bubblewrap tells."""
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(status, selectors.EVENT_READ)
            deadline = time.monotonic() + _START_S
            while b"\n" not in line:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError("bubblewrap did not start in time")
                if not (chunk := os.read(status, _CHUNK)):
                    raise ValueError("bubblewrap did not start")
                line += chunk
        pid = int(json.loads(line.partition(b"\n")[0])["child-pid"])
        with self._lock:
            self._pid, self._init = pid, os.pidfd_open(pid)
            if self._stopped:
                self._kill()
        return pid

    def _bounded(self, pid: int, root: str) -> UsageWatch:
        """Put the limits on the waiting process, which all others will have from it, and look at what it has."""
        import resource  # noqa: PLC0415  # only where there are such limits

        limits = self._limits
        seconds = int(limits.cpu_s * self._most_calls) + 1
        for which, soft, hard in (
            (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
            (resource.RLIMIT_CPU, seconds, seconds + 1),  # a warning by SIGXCPU, which names the limit, then the end
            (resource.RLIMIT_NPROC, limits.processes + 2, limits.processes + 2),
            (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
            (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
            (resource.RLIMIT_CORE, 0, 0),
            (resource.RLIMIT_MEMLOCK, 0, 0),
            (resource.RLIMIT_MSGQUEUE, 0, 0),
        ):
            ceiling = resource.prlimit(pid, which)[1]
            if ceiling == resource.RLIM_INFINITY:
                resource.prlimit(pid, which, (soft, hard))
            else:  # nobody but root may raise what the operator's own session has
                resource.prlimit(pid, which, (min(soft, ceiling), min(hard, ceiling)))
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, _NICE)
        with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as score:  # noqa: PTH123  # no file
            score.write("1000")  # if the machine's memory ends first, the sandbox goes first
        watch = UsageWatch(root, limits, workspace_is_scratch=self._mounts.workspace is None)
        if self._mounts.workspace is not None and not self._is_workspace(watch.workspace):
            watch.close()
            raise ValueError("the workspace was replaced by another folder")
        return watch

    def _not_started(self, process: subprocess.Popen[bytes], error: Exception) -> ToolError:
        """What bubblewrap says of why it did not come up, or else what was seen of it."""
        with suppress(ToolError):
            self._end(process)
        assert process.stderr is not None  # noqa: S101  # it is a pipe
        os.set_blocking(process.stderr.fileno(), False)
        stderr_text = (process.stderr.read() or b"").decode(errors="replace").strip().removeprefix("bwrap: ")
        return sandbox_failed(stderr_text.rstrip(".") or str(error))


def _pipe(stack: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """The end of a pipe to read from, and the end to write to; `stack` closes what is still open."""
    reading, writing = os.pipe()
    return stack.enter_context(os.fdopen(reading, "rb")), stack.enter_context(os.fdopen(writing, "wb"))


def _has_ended(pidfd: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(pidfd, selectors.EVENT_READ)
        return bool(selector.select(0))


def _wait_for(path: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while not os.path.lexists(path):  # a link that leads nowhere
        if process.poll() is not None:
            raise ValueError("bubblewrap ended before the program began")
        if time.monotonic() >= deadline:
            raise TimeoutError("bubblewrap did not set up the sandbox in time")
        time.sleep(_WAIT_S)


def _exit_code(status_lines: bytes) -> int | None:
    """The exit code that bubblewrap told at last; None if the program never came so far."""
    for line in status_lines.splitlines():
        with suppress(ValueError):
            status: Any = json.loads(line)
            if isinstance(status, dict) and isinstance(code := status.get("exit-code"), int):
                return code
    return None
