"""What tools print, kept apart from what the program prints."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

KEPT_CHARS = 2_000


class CapturedOutput:
    """The beginning of what one call printed, and how much it was."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.kept = self.total = 0

    def write(self, text: str) -> None:
        """Take in a piece; only the first 2,000 characters of a call are kept."""
        self.total += len(text)
        if self.kept < KEPT_CHARS:
            part = text[: KEPT_CHARS - self.kept]
            self.parts.append(part)
            self.kept += len(part)

    def __str__(self) -> str:
        """What is kept, with the cut told."""
        text = "".join(self.parts)
        return text if self.total <= KEPT_CHARS else f"{text}\n[… {self.total - self.kept:,} more characters printed]"


_current: contextvars.ContextVar[CapturedOutput | None] = contextvars.ContextVar("taoloop_printed", default=None)


class _Divider:
    """A standard output that gives what a tool call prints to that call, and the rest to the real one."""

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
    """While this is entered, what tool calls print goes into their observations and not to the terminal.

    For programs that own their standard output, such as the command line; the library itself never touches it.
    """
    real = sys.stdout
    sys.stdout = _Divider(real)
    try:
        yield
    finally:
        sys.stdout = real


class capture_output:  # noqa: N801  # used like a function: `with collecting() as printed`
    """Collect what is printed in this context, and in threads started with a copy of it.

    Outside `dividing_stdout` nothing is collected, and what tools print goes where the program's output goes.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> CapturedOutput:
        """Begin; gives what will hold the text."""
        self._token: contextvars.Token[CapturedOutput | None] | None = None
        if type(sys.stdout) is not _Divider:
            return NOTHING
        printed = CapturedOutput()
        self._token = _current.set(printed)
        return printed

    def __exit__(self, *_raised: object) -> None:
        """End; what is printed from here on belongs to the caller again."""
        if self._token is not None:
            _current.reset(self._token)


NOTHING = CapturedOutput()
"""What was collected where nothing is collected."""
