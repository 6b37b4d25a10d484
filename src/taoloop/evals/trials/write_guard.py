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
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import taoloop

OnWrite = Callable[[str, str], None]
"""Called with the path and with the line of code, as `FILE:LINE`."""

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS: dict[str, tuple[tuple[int, int | None], ...]] = {
    "open": ((0, None),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.rmdir": ((0, 1),),
    "os.truncate": ((0, None),),
    "os.link": ((1, 3),),
    "os.symlink": ((1, 2),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.utime": ((0, 3),),
    "sqlite3.connect": ((0, None),),
}
"""The events that change files: which of their arguments are paths that change, and the open folders that these are
relative to."""


@dataclass(frozen=True, slots=True)
class _Guard:
    folder: str
    on_write: OnWrite
    temporary: set[str] = field(default_factory=set)
    """What the block made in the folder for temporary files."""


_Guards = ContextVar[_Guard | None]
_guard: _Guards = ContextVar("taoloop_eval_write_guard", default=None)


@contextmanager
def guarded_writes(folder: Path, on_write: OnWrite) -> Iterator[None]:
    """Prevent writes outside `folder` (a real path) by the code in the block, with a PermissionError.

    `on_write` is called before the error is raised. What the block makes in the system's folder for temporary files is
    its own, and may be written.
    """
    _install()
    token = _guard.set(_Guard(str(folder), on_write))
    try:
        yield
    finally:
        _guard.reset(token)


@cache
def _install() -> None:
    sys.addaudithook(_audit)  # for good: there is no way to remove one


def _audit(
    event: str, arguments: tuple[Any, ...], *, watched: Collection[str] = _PATHS, guards: _Guards = _guard
) -> None:
    # bound here, because the interpreter still calls it at its end, when the names of this module are gone
    if event not in watched or (guard := guards.get()) is None:
        return
    if event == "open" and not _opens_for_writing(arguments):
        return
    if event == "sqlite3.connect" and not _is_writable_database(arguments[0]):
        return
    for index, folder_index in _PATHS[event]:
        path = _file_of_uri(arguments[index]) if event == "sqlite3.connect" else arguments[index]
        if isinstance(path, str | bytes | os.PathLike):
            folder = "" if folder_index is None else _open_folder(arguments[folder_index])
            if folder is not None:
                _require_inside(guard, event, os.path.join(folder, os.fsdecode(path)), arguments)  # noqa: PTH118


def _is_writable_database(name: Any) -> bool:
    """Whether SQLite opens a file for writing: not in memory, and not by a URI that only reads (`file:…?mode=ro`)."""
    text = os.fsdecode(name)
    only_reads = text.startswith("file:") and ("mode=ro" in text or "mode=memory" in text or "immutable=1" in text)
    return text not in ("", ":memory:") and not text.startswith("file::memory:") and not only_reads


def _file_of_uri(name: Any) -> str:
    text = os.fsdecode(name)
    return url2pathname(urlsplit(text).path) if text.startswith("file:") else text


def _open_folder(descriptor: int) -> str | None:
    """The folder that is open as a descriptor; empty for none, None where the system does not tell."""
    if descriptor < 0:
        return ""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115  # cheap: it runs at each write
    except OSError:
        return None


def _opens_for_writing(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    return (
        bool(flags & _WRITE_FLAGS)
        if isinstance(flags, int)
        else isinstance(mode, str) and bool(set(mode) & set("wax+"))
    )


def _require_inside(guard: _Guard, event: str, path: str, arguments: tuple[Any, ...]) -> None:
    real = os.path.realpath(path)
    if (
        real == os.devnull
        or "__pycache__" in real
        or any(_is_in(real, each) for each in (guard.folder, *guard.temporary))
    ):
        return
    if event == "open" and os.path.isdir(real):  # noqa: PTH112  # `tempfile` opens its folder, and then the file in it
        return
    is_new = event == "os.mkdir" or (event == "open" and bool(arguments[2] & os.O_EXCL))
    if is_new and _is_in(real, os.path.realpath(tempfile.gettempdir())):
        guard.temporary.add(real)
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
