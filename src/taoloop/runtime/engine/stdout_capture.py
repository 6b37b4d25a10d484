"""The output that tools print, separate from what the program prints."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from taoloop.runtime.texts import TEXTS

MAX_CAPTURED_CHARS = 2_000


class CapturedOutput:
    """The beginning of the output of one call, and how much it printed."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.captured_chars = self.total = 0

    def write(self, text: str) -> None:
        """Add a piece; only the first 2,000 characters of a call are captured."""
        self.total += len(text)
        if self.captured_chars < MAX_CAPTURED_CHARS:
            part = text[: MAX_CAPTURED_CHARS - self.captured_chars]
            self.parts.append(part)
            self.captured_chars += len(part)

    def __str__(self) -> str:
        """The captured text, with a note if more was printed."""
        text = "".join(self.parts)
        if self.total <= MAX_CAPTURED_CHARS:
            return text
        return text + TEXTS.run_text("printed_cut", n=self.total - self.captured_chars)


_current: contextvars.ContextVar[CapturedOutput | None] = contextvars.ContextVar("taoloop_printed", default=None)


class _RoutedOutput:
    """A standard output that passes the output of a tool call to that call, and the rest to the real one."""

    def __init__(self, real: TextIO) -> None:
        self._real = real

    def write(self, text: str) -> int:
        printed = _current.get()
        if printed is None:
            return self._real.write(text)
        printed.write(text)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if _current.get() is None:
            self._real.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


@contextmanager
def redirect_stdout() -> Iterator[None]:
    """Put the output of tool calls into their observations, and not on the terminal, while the block runs.

    For programs that own their standard output, such as the command line; the library itself never touches it.
    """
    real = sys.stdout
    sys.stdout = _RoutedOutput(real)
    try:
        yield
    finally:
        sys.stdout = real


class capture_output:  # noqa: N801  # used like a function: `with capture_output() as printed`
    """Capture the output of this context, and of threads started with a copy of it.

    Outside `redirect_stdout` nothing is captured, and tools print where the program prints.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> CapturedOutput:
        """Begin. Returns the object that captures the text."""
        self._token: contextvars.Token[CapturedOutput | None] | None = None
        if type(sys.stdout) is not _RoutedOutput:
            return NOTHING
        printed = CapturedOutput()
        self._token = _current.set(printed)
        return printed

    def __exit__(self, *_error: object) -> None:
        """End: from here on the output is the caller's again."""
        if self._token is not None:
            _current.reset(self._token)


NOTHING = CapturedOutput()
"""The captured output where nothing is captured."""
