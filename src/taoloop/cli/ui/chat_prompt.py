"""The lines that a person types in a chat: with editing and history at a terminal, as they come from anywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MAX_HISTORY_LINES = 1_000
"""How many lines the file of the history keeps."""


def read_chat_lines(history: Path) -> Iterator[str]:
    """Each line until the end of input (Ctrl-D) or Ctrl-C; at a terminal `history` keeps them for the next time."""
    if not sys.stdin.isatty():
        yield from (line.rstrip("\r\n") for line in sys.stdin)
        return
    _load(history)
    try:
        while True:
            yield input("> ")
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
    finally:
        _save(history)


def _load(history: Path) -> None:
    with suppress(ImportError, OSError):  # a system without the library, or nothing kept yet
        import readline  # noqa: PLC0415  # only at a terminal; with it `input` can edit

        readline.set_history_length(MAX_HISTORY_LINES)
        readline.read_history_file(history)


def _save(history: Path) -> None:
    with suppress(ImportError, OSError):  # the history is a help, and no reason to fail
        import readline  # noqa: PLC0415  # as above

        os.close(os.open(history, os.O_WRONLY | os.O_CREAT, 0o600))  # others must not read it
        readline.write_history_file(history)
