"""Python sessions: an interpreter in a sandbox that stays between calls, with the variables of the earlier ones.

A session belongs to one run and has a name there. The interpreter is one sandboxed process, attended to by one thread
from its start to its end, as bubblewrap demands; calls are handed to that thread, one at a time. The limits of a call
hold for each call anew, but for memory, which is what the session holds. Between calls the session is watched too.
Whatever ends the interpreter (a limit, a cancelled call, `os._exit`, a long pause, the end of this process) ends the
session, and the next call by its name starts another: nothing of a session is kept on disk but the files it wrote.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from taoloop.errors import ToolError
from taoloop.tools.sandbox.confinement import SCRIPTS, Bound, SandboxLimits
from taoloop.tools.sandbox.process import Outputs, ProcessResult, RunningProgram, SandboxProcess
from taoloop.tools.texts import TEXTS

DRIVER = "session.py"
"""The name of the driver in the sandbox."""

MAX_SESSIONS = 16
"""How many sessions one sandbox keeps; the one that was not used for the longest time makes room for another."""

MAX_CALLS = 1_000
"""How many times the processor time of one call a session may use; a backstop, as each call is watched."""

IDLE_S = 600.0
"""How long a session waits for its next call, in seconds."""

_IDLE_LOOK_S = 0.5  # between two looks at what a waiting session uses
_SEND_S = 5.0  # for the code of a call to reach the interpreter
_MAX_REPLY_BYTES = 1_000

SessionState = Literal["started", "continued"]


def driver_source() -> bytes:
    """The source of the driver."""
    return Path(__file__).with_name("session_driver.py").read_bytes()


def driver_argv(interpreter: Path, channel: int) -> tuple[str, ...]:
    """The command that starts the driver, which reads from the descriptor `channel`."""
    return str(interpreter), f"{SCRIPTS}/{DRIVER}", str(channel)


@dataclass(slots=True)
class _Call:
    """A piece of code that waits for its turn, and its result."""

    code: str
    result: Future[ProcessResult] = field(default_factory=Future)


class PythonSession:
    """One interpreter. `make_process` gets the descriptor that the driver inherits.

    Raises:
        ToolError: `no_free_thread`, or as `make_process`.
    """

    def __init__(
        self, make_process: Callable[[int], SandboxProcess], limits: SandboxLimits, *, idle_s: float = IDLE_S
    ) -> None:
        self._limits, self._idle_s = limits, idle_s
        self._channel, driver_end = socket.socketpair()
        self._wake, self._woken = socket.socketpair()  # a call is there
        self._calls: list[_Call] = []
        self._lock = threading.Lock()
        self.last_used = time.monotonic()
        self.has_ended = False
        try:
            self._process = make_process(driver_end.fileno())
            self._thread = threading.Thread(
                target=self._serve, args=(driver_end,), name="taoloop-python-session", daemon=True
            )
            self._thread.start()
        except BaseException as error:
            for end in (self._channel, driver_end, self._wake, self._woken):
                end.close()
            if isinstance(error, RuntimeError):
                raise TEXTS.error("no_thread", "no_free_thread", retryable=True, reason=error) from error
            raise

    @property
    def is_busy(self) -> bool:
        """Whether a call is running or waits."""
        return bool(self._calls)

    def run(self, code: str) -> ProcessResult | None:
        """Run code in the session, after the calls before it; None if the session had ended before it began.

        Raises:
            ToolError: `sandbox_failed`; the code was not run.
        """
        call = _Call(code)
        with self._lock:
            if self.has_ended:
                return None
            self._calls.append(call)
            self._wake.send(b".")
        try:
            return call.result.result()
        except _SessionEnded:
            return None

    def stop(self) -> None:
        """End the interpreter now; the thread ends by itself."""
        self._process.stop()

    def join(self) -> None:
        """Wait until the interpreter and all that it started are gone."""
        self._thread.join()

    def _serve(self, driver_end: socket.socket) -> None:
        running: list[_Call] = []
        outputs = [Outputs.bounded(self._limits.output_bytes)]
        error: ToolError | None = None
        limit: Bound | None = None
        code: int | None = None
        try:
            with driver_end:
                limit, code = self._process.attend(
                    lambda program: self._converse(program, driver_end, running, outputs)
                )
        except ToolError as raised:
            error = raised
        with self._lock:
            self.has_ended = True
            waiting, self._calls = self._calls, []
        for end in (self._channel, self._wake, self._woken):
            end.close()
        for call in waiting:
            if call not in running:
                call.result.set_exception(error or _SessionEnded())
            elif limit is None and code is None:  # it was stopped
                call.result.set_exception(error or TEXTS.error("session_stopped", "sandbox_failed"))
            else:
                call.result.set_result(outputs[0].result(code, limit))

    def _converse(
        self, program: RunningProgram, driver_end: socket.socket, running: list[_Call], outputs: list[Outputs]
    ) -> Bound | None:
        """Run call after call until none comes for a while; `running` and `outputs` are those of the latest one."""
        driver_end.close()  # the driver has its own
        self._channel.settimeout(_SEND_S)
        while True:
            limit = program.watch(
                Outputs.bounded(self._limits.output_bytes),
                wall_s=self._idle_s,
                until=self._woken.fileno(),
                look_s=_IDLE_LOOK_S,
            )
            if limit is not None or program.has_ended:
                return limit
            self._woken.recv(1)
            running[:] = self._calls[:1]
            outputs[:] = [Outputs.bounded(self._limits.output_bytes)]
            program.usage.restart()
            with suppress(OSError):  # it does not read: its end, or the time limit, says so
                self._channel.sendall(json.dumps({"code": running[0].code}).encode() + b"\n")
            limit = program.watch(outputs[0], wall_s=self._limits.wall_s, until=self._channel.fileno())
            if limit is not None or program.has_ended:
                return limit
            exit_code = self._reply()
            if exit_code is None:  # the channel is closed or was misused, so nothing can be run any more
                return program.watch(outputs[0], wall_s=self._limits.wall_s)
            call = running.pop()
            with self._lock:
                self._calls.remove(call)
            call.result.set_result(outputs[0].result(exit_code, None))

    def _reply(self) -> int | None:
        """The exit code that the driver wrote."""
        try:
            data = self._channel.recv(_MAX_REPLY_BYTES)
            exit_code = json.loads(data)["exit_code"]
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return exit_code if isinstance(exit_code, int) else None


class _SessionEnded(Exception):
    """The session ended before a call began."""


class PythonSessions:
    """The sessions of one sandbox, by run and name. At most `MAX_SESSIONS` are kept."""

    def __init__(self, start: Callable[[], PythonSession], *, at_most: int = MAX_SESSIONS) -> None:
        self._start, self._at_most = start, at_most
        self._sessions: dict[tuple[str, str], PythonSession] = {}
        self._lock = threading.Lock()

    def run(self, run_id: str, name: str, code: str, started: Callable[[PythonSession], None]) -> SessionResult:
        """Run code in a session of a run, which is started if there is none; blocks until it has ended.

        `started` is told the session before the code runs, so that a cancelled caller can stop it.

        Raises:
            ToolError: `sandbox_failed` or `no_free_thread`; the code was not run, unless the session was stopped.
        """
        while True:
            session, state = self._session(run_id, name)
            started(session)
            result = session.run(code)
            if result is not None:
                return SessionResult(result=result, state=state, has_ended=session.has_ended)
            with self._lock:
                if self._sessions.get((run_id, name)) is session:
                    del self._sessions[run_id, name]

    def _session(self, run_id: str, name: str) -> tuple[PythonSession, SessionState]:
        with self._lock:
            session = self._sessions.get((run_id, name))
            if session is not None and not session.has_ended:
                session.last_used = time.monotonic()
                return session, "continued"
            self._sessions = {key: other for key, other in self._sessions.items() if not other.has_ended}
            if len(self._sessions) >= self._at_most:
                idle = [key for key, other in self._sessions.items() if not other.is_busy]
                if not idle:
                    raise TEXTS.error("sessions_busy", "sandbox_failed", count=self._at_most)
                self._sessions.pop(min(idle, key=lambda key: self._sessions[key].last_used)).stop()
            session = self._sessions[run_id, name] = self._start()
            return session, "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResult:
    """What a call in a session gave."""

    result: ProcessResult
    """How the code ended, and what was printed meanwhile."""
    state: SessionState
    """Whether the session was there before the call."""
    has_ended: bool
    """Whether the session ended with the call, and its variables with it."""
