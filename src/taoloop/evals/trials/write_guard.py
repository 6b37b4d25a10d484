"""Prevents writes of a tool in Python outside the folder of its trial, and tells where in its code they are.

An audit hook of the interpreter (PEP 578) sees every file that Python code opens, removes or renames. It is not a
sandbox against an attacker: what a child process or a C library does is not seen. It finds the tool that would let
trials see each other, or that would leave something behind.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import taoloop

OnWrite = Callable[[str, str], None]
"""Called with the path and with the line of code, as `FILE:LINE`."""

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS: dict[str, tuple[int, ...]] = {
    "open": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.truncate": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
}
"""The events that change files, and which of their arguments are paths that change."""
_MADE_OR_REMOVED = ("os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.chmod")


@dataclass(frozen=True, slots=True)
class _Guard:
    folder: str
    on_write: OnWrite


_guard: ContextVar[_Guard | None] = ContextVar("taoloop_eval_write_guard", default=None)


@contextmanager
def guarded_writes(folder: Path, on_write: OnWrite) -> Iterator[None]:
    """Prevent writes outside `folder` by the code in the block, with a PermissionError; `on_write` is called first.

    New files of one's own in the system's folder for temporary files are allowed.
    """
    _install()
    token = _guard.set(_Guard(os.path.realpath(folder), on_write))
    try:
        yield
    finally:
        _guard.reset(token)


@cache
def _install() -> None:
    sys.addaudithook(_audit)  # for good: there is no way to remove one


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _PATHS or (guard := _guard.get()) is None:
        return
    if event == "open" and not _opens_for_writing(arguments):
        return
    for index in _PATHS[event]:
        path = arguments[index]
        if isinstance(path, str | bytes | os.PathLike):
            _require_inside(guard, event, os.fsdecode(path), arguments)


def _opens_for_writing(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    return (
        bool(flags & _WRITE_FLAGS)
        if isinstance(flags, int)
        else isinstance(mode, str) and bool(set(mode) & set("wax+"))
    )


def _require_inside(guard: _Guard, event: str, path: str, arguments: tuple[Any, ...]) -> None:
    real = os.path.realpath(path)
    if real == os.devnull or "__pycache__" in real or _is_in(real, guard.folder):
        return
    is_own = event in _MADE_OR_REMOVED or (event == "open" and bool(arguments[2] & os.O_EXCL))
    if is_own and _is_in(real, os.path.realpath(tempfile.gettempdir())):
        return
    guard.on_write(path, _line_of_code(sys._getframe(1)))  # the interpreter's documented way
    raise PermissionError(f"{path} is outside the folder of the trial, {guard.folder}.")


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


@cache
def _foreign_folders() -> tuple[str, ...]:
    """Where code is that is not a tool's own: the standard library, installed packages and this one."""
    paths = sysconfig.get_paths()
    own = Path(taoloop.__file__).resolve().parent
    return (str(own), *(os.path.realpath(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")))


def _line_of_code(frame: FrameType | None) -> str:
    """The innermost line that is the tool's own, as `FILE:LINE`; empty if there is none."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<") and not any(_is_in(os.path.realpath(name), each) for each in _foreign_folders()):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
