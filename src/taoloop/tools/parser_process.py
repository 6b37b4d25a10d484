"""The child process of `isolated_parser`: it parses one file after the other within its limits, and replies in JSON."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from taoloop.tools.isolated_parser import (
    ParserKind,
    UnreadableFileError,
    detect_encoding,
    read_page,
    read_pdf,
    read_search_results,
    read_text,
)
from taoloop.tools.office_files import read_office

_EXTRA = {"html": "web", "results": "web", "text": "web", "pdf": "documents", "encoding": "documents"}
_EXTRA |= {"epub": "documents"}
_OFFICE_EXTRA = "office"  # of all others
_PACKAGES = {"docx": "python-docx", "pptx": "python-pptx"}  # where the name of a module is another one


def serve(requests: BinaryIO, replies: BinaryIO, max_memory_bytes: int) -> None:
    """Parse the file of each request until the parent closes the pipe."""
    limit_memory(max_memory_bytes)
    while line := requests.readline():
        head = json.loads(line)
        data = requests.read(head["bytes"])
        limit_time(head["seconds"])
        try:
            for reply in _parse(head["kind"], data, head["options"]):
                _write(replies, reply)
        except MemoryError:
            _write(replies, _error_reply(UnreadableFileError("parsing it takes too much memory", "Make it smaller.")))


def _write(replies: BinaryIO, reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply).encode() + b"\n")
    replies.flush()


def _parse(kind: ParserKind, data: bytes, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        if kind == "pdf":
            yield from read_pdf(data, **options)
        elif kind == "results":
            yield from read_search_results(data, **options)
        elif kind == "html":
            yield read_page(data, **options)
        elif kind == "text":
            yield {"text": read_text(data, **options)}
        elif kind == "encoding":
            yield {"encoding": detect_encoding(data)}
        else:
            yield from read_office(kind, data, **options)
        yield {"end": True}
    except UnreadableFileError as error:
        yield _error_reply(error)
    except ImportError as error:
        package = (error.name or "a library").partition(".")[0]
        message = f"{_PACKAGES.get(package, package)}, which reads {kind.upper()}, is not installed"
        hint = f"pip install 'taoloop[{_EXTRA.get(kind, _OFFICE_EXTRA)}]'."
        yield _error_reply(UnreadableFileError(message, hint, is_transient=True))
    except (Exception, RecursionError) as error:  # an untrusted file may cause any error in a parser
        if isinstance(error, MemoryError):
            raise
        message = f"it is damaged ({type(error).__name__}: {str(error)[:200]})"
        yield _error_reply(UnreadableFileError(message, "Save it again."))


def _error_reply(error: UnreadableFileError) -> dict[str, Any]:
    return {"error": error.message, "hint": error.hint, "is_transient": error.is_transient}


def limit_memory(max_bytes: int) -> None:
    """Limit the address space of this process, and write no core files, where the system allows such limits."""
    _set_limit("RLIMIT_AS", max_bytes)
    _set_limit("RLIMIT_CORE", 0)


def limit_time(seconds: float) -> None:
    """Limit the processor time for the next file: the parent ends the child first, unless it is gone itself."""
    _set_limit("RLIMIT_CPU", math.ceil(time.process_time() + seconds) + 1, keeps_hard=True)


def _set_limit(name: str, value: int, *, keeps_hard: bool = False) -> None:
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    kind: int = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with suppress(ValueError, OSError):  # macOS refuses to limit the address space
        resource.setrlimit(kind, (soft, hard if keeps_hard else soft))
