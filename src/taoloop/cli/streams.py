"""The standard output of the process, kept from everybody else while a command owns it."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from taoloop.cli.text import clean
from taoloop.runtime.printed import dividing_stdout


@contextmanager
def owning_stdout() -> Iterator[TextIO]:
    """The stream for what the command itself says.

    Meanwhile everything else that is written to standard output (imported code, child processes, C code) goes to
    standard error, and what a tool prints goes into its observation.
    """
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
    except (
        OSError,
        io.UnsupportedOperation,
    ):  # a stand-in, as in a test or a notebook: there is nothing to divide
        yield sys.stdout
        return
    kept = os.dup(number)
    encoding = "utf-8" if not os.isatty(number) else sys.stdout.encoding
    ours = open(kept, "w", encoding=encoding, errors="backslashreplace", newline="\n", closefd=False)  # noqa: SIM115
    if os.isatty(kept):
        ours.reconfigure(line_buffering=True)
    try:
        with suppress(OSError):  # no standard error: then it stays as it is
            os.dup2(2, number)
        with dividing_stdout():
            yield ours
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(kept, number)
        try:
            ours.close()  # flushes; a pipe that nobody reads is told to the caller
        finally:
            os.close(kept)


def say(text: str) -> None:
    """One line to the person on standard error, as `tao: …`."""
    line = f"tao: {clean(text)}"
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            line = _folded(line)
        print(line, file=sys.stderr, flush=True)  # noqa: T201  # this is where the CLI prints


def _folded(line: str) -> str:
    """The line broken between words, so that a terminal does not break it inside one."""
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        line, max(width, 20), subsequent_indent="     ", break_long_words=False, break_on_hyphens=False
    )


def silence_stdout() -> None:
    """Let the interpreter flush to nowhere when it ends: the reader of the pipe is gone."""
    with suppress(OSError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
