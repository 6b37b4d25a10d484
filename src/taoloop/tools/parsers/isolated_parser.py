"""Running a parser in a child process (`parser_process.py`) with limits on time, memory and output.

A file that makes the parser hang, crash or fill the memory only costs the child, which is killed; the next file gets a
new one. Protocol: the parent writes one line of JSON and the bytes of the file; the child replies with lines of JSON,
of which the last one has the key `end` or `error`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, BinaryIO, Literal, cast

ParserKind = Literal["html", "pdf", "text"]
"""The parsers: `html.read_page`, `pdf.read_pdf`, and `html.read_text`."""

_ENVIRONMENT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")  # some Pythons need them to start
_START_S = 20.0  # for the start of the child on a busy machine
_MAX_REPLY_BYTES = 128 * 1024 * 1024


class UnreadableFileError(Exception):
    """A file that cannot be read: `message` says why, `hint` what to do.

    `is_transient`: another attempt may succeed, even if the file does not change.
    """

    def __init__(self, message: str, hint: str = "", *, is_transient: bool = False) -> None:
        super().__init__(message)
        self.message, self.hint, self.is_transient = message, hint, is_transient


class ParserTimeoutError(UnreadableFileError):
    """The time limit was reached before the file was parsed."""


class IsolatedParser:
    """A child process that parses one file after the other; it starts with the first one.

    Use it in a `with` statement, from one thread.

    Args:
        max_file_s: Time limit for one file in seconds.
        max_memory_bytes: Memory limit of the child.
        start_s: Additional time for the first file, in which the child starts.
        clock: Seconds that only increase; for tests.
    """

    def __init__(
        self,
        max_file_s: float,
        max_memory_bytes: int,
        *,
        start_s: float = _START_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_file_s, self._max_memory_bytes = max_file_s, int(max_memory_bytes)
        self._start_s, self._clock = start_s, clock
        self._child: subprocess.Popen[bytes] | None = None
        self._exchange: threading.Thread | None = None

    def __enter__(self) -> IsolatedParser:
        """The child is not started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the child."""
        self._end()

    def parse(self, kind: ParserKind, data: bytes, **options: Any) -> Iterator[dict[str, Any]]:
        """Parse a file with the options of its parser, and yield what the parser yields.

        Raises:
            ParserTimeoutError: the time limit was reached; the child was ended.
            UnreadableFileError: the file cannot be parsed.
        """
        deadline = self._clock() + self._max_file_s + (self._start_s if self._child is None else 0.0)
        head = {"kind": kind, "bytes": len(data), "seconds": self._max_file_s, "options": options}
        replies: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        is_finished = False
        try:
            child = self._start()
            self._exchange = threading.Thread(target=_exchange, args=(child, head, data, replies), daemon=True)
            self._exchange.start()
            while not is_finished:
                reply = self._next_reply(replies, deadline)
                is_finished = "end" in reply or "error" in reply
                if "error" in reply:
                    raise UnreadableFileError(reply["error"], reply["hint"], is_transient=reply["is_transient"])
                if not is_finished:
                    yield reply
        finally:
            if not is_finished:  # the child is in the middle of a file, or dead
                self._end()

    def _next_reply(self, replies: SimpleQueue[dict[str, Any] | None], deadline: float) -> dict[str, Any]:
        remaining_s = deadline - self._clock()
        try:
            if remaining_s <= 0:
                raise Empty
            reply = replies.get(timeout=remaining_s)
        except Empty:
            message = f"parsing it takes more than {self._max_file_s:g} s"
            raise ParserTimeoutError(message, "Make it smaller, or raise the time limit.") from None
        if reply is None:
            raise UnreadableFileError("parsing it made the parser crash", "Convert the file to another format.")
        return reply

    def _start(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            paths = [path for path in sys.path if path]
            code = (
                f"import sys; sys.path[:] = {paths!r}; from taoloop.tools.parsers.parser_process import serve; "
                f"serve(sys.stdin.buffer, sys.stdout.buffer, {self._max_memory_bytes})"
            )
            try:
                self._child = subprocess.Popen(  # noqa: S603  # this very Python, and nothing of the file
                    [sys.executable, "-s", "-P", "-X", "utf8", "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                    start_new_session=True,  # Ctrl-C is for the parent, which ends the child
                )
            except OSError as error:
                reason = error.strerror or str(error)
                raise UnreadableFileError(f"its parser did not start: {reason}", is_transient=True) from None
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        if self._exchange is not None:
            self._exchange.join()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _exchange(
    child: subprocess.Popen[bytes], head: dict[str, Any], data: bytes, replies: SimpleQueue[dict[str, Any] | None]
) -> None:
    """Send a request to the child and queue its replies; None: the child broke off."""
    to_child, from_child = cast("BinaryIO", child.stdin), cast("BinaryIO", child.stdout)
    with suppress(OSError, ValueError):
        to_child.write(json.dumps(head).encode() + b"\n" + data)
        to_child.flush()
        while (line := from_child.readline(_MAX_REPLY_BYTES)).endswith(b"\n"):
            reply: dict[str, Any] = json.loads(line)
            replies.put(reply)
            if "end" in reply or "error" in reply:
                return
    replies.put(None)
