"""The standard streams of the process, and untrusted text on its way to a terminal."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TextIO

from taoloop.cli.translation import stream_encoding, translate
from taoloop.errors import TaoError
from taoloop.runtime.engine.stdout_capture import redirect_stdout

_PLAIN = "taoloop.plain"
_SIGNS = {"…": "...", "·": "-", "–": "-", "→": "->", "≠": "!=", "│": "|", "“": '"', "”": '"', "。": "."}
_WIDE = 0xFEE0  # from a sign of ASCII to its full-width form


class OutputError(TaoError):
    """Standard output cannot be written, and it is not that its reader has left."""

    code = "output"


class _Output(io.TextIOWrapper):
    """Standard output; an error of writing it is distinct from every other error of the system."""

    def write(self, text: str, /) -> int:
        with _telling():
            return super().write(text)

    def flush(self) -> None:
        with _telling():
            super().flush()

    def close(self) -> None:
        with _telling():
            super().close()


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(translate("Standard output cannot be written: {reason}.", reason=reason)) from error


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Signs of ours that an encoding lacks, in plain ones; a question mark for every other character."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_SIGNS.get(char) or _narrow(char) for char in text), error.end


def _narrow(char: str) -> str:
    return chr(ord(char) - _WIDE) if "\uff01" <= char <= "\uff0f" or "\uff1a" <= char <= "\uff1f" else "?"


codecs.register_error(_PLAIN, _plain)


def reopen_closed_streams() -> None:
    """Put the null device where the process was started without a standard stream, so that no file takes its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  # open to the end


@contextmanager
def capture_stdout() -> Iterator[TextIO]:
    """The stream for what the command itself says.

    Meanwhile everything else that is written to standard output (imported code, child processes, C code) goes to
    standard error, and what a tool prints goes into its observation.
    """
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
    except OSError:  # no real stream, as in a test or a notebook: there is nothing to separate
        yield sys.stdout
        return
    saved_fd = os.dup(number)
    encoding = "utf-8" if not os.isatty(number) else sys.stdout.encoding
    raw = open(saved_fd, "wb", closefd=False)  # noqa: SIM115
    ours = _Output(raw, encoding=encoding, errors=_PLAIN, newline="\n", line_buffering=os.isatty(saved_fd))
    try:
        with suppress(OSError):  # no standard error: then it stays as it is
            os.dup2(2, number)
        with redirect_stdout():
            yield ours
    finally:
        is_reported = isinstance(sys.exception(), OutputError)
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(saved_fd, number)
        try:
            with suppress(OutputError) if is_reported else nullcontext():
                ours.close()  # flushes; a pipe that nobody reads is an error for the caller
        finally:
            os.close(saved_fd)


def print_stderr(text: str) -> None:
    """One line to the person on standard error, as `tao: …`."""
    line = f"tao: {strip_control_codes(text)}"
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            line = _folded(line)
        encoding = stream_encoding(sys.stderr)
        line = line.encode(encoding, _PLAIN).decode(encoding)
        print(line, file=sys.stderr, flush=True)  # noqa: T201  # this is where the CLI prints


def _folded(line: str) -> str:
    """The line broken between words, so that a terminal does not break it inside one."""
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        line, max(width, 20), subsequent_indent="     ", break_long_words=False, break_on_hyphens=False
    )


def write_json_lines(stream: TextIO, records: Iterable[Mapping[str, Any]]) -> None:
    """Records for programs, one per line and at once; what JSON does not know is a text."""
    stream.writelines(json.dumps(record, ensure_ascii=False, default=str) + "\n" for record in records)
    stream.flush()


def silence_stdout() -> None:
    """Let the interpreter flush to nowhere when it ends: the reader of the pipe is gone."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erasing
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and the like: titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"  # what changes the direction or the lines
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def strip_control_codes(text: str) -> str:
    """`text` without escape sequences, control characters and marks that reorder what is shown."""
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


def one_line(text: str) -> str:
    """`clean` on one line."""
    return " ".join(strip_control_codes(text).split())


def truncate(text: str, max_chars: int, max_lines: int) -> tuple[str, int]:
    """The beginning of `text` within both bounds, and how many characters were left out."""
    shortened = "\n".join(text.split("\n", max_lines)[:max_lines])[:max_chars]
    return shortened, len(text) - len(shortened)
