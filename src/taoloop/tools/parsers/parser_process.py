"""The child process in which parsers run: it limits itself, and parses files until its parent closes the pipe."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from taoloop.tools.parsers.isolated_parser import ParserKind, UnreadableFileError

_EXTRA = {"html": "web", "text": "web", "pdf": "documents"}


def serve(requests: BinaryIO, replies: BinaryIO, max_memory_bytes: int) -> None:
    """Parse the file of each request until the parent closes the pipe."""
    limit_memory(max_memory_bytes)
    while line := requests.readline():
        head = json.loads(line)
        data = requests.read(head["bytes"])
        limit_time(head["seconds"])
        try:
            for reply in _parse(head["kind"], data, head["options"]):
                replies.write(json.dumps(reply).encode() + b"\n")
                replies.flush()
        except MemoryError:
            error = UnreadableFileError("parsing it takes too much memory", "Make it smaller.")
            replies.write(json.dumps(_error_reply(error)).encode() + b"\n")
            replies.flush()


def _parse(kind: ParserKind, data: bytes, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        if kind == "pdf":
            from taoloop.tools.parsers.pdf import read_pdf  # noqa: PLC0415  # each file needs one of these parsers

            yield from read_pdf(data, **options)
        else:
            from taoloop.tools.parsers.html import read_page, read_text  # noqa: PLC0415  # as above

            yield read_page(data, **options) if kind == "html" else {"text": read_text(data, **options)}
        yield {"end": True}
    except UnreadableFileError as error:
        yield _error_reply(error)
    except ImportError as error:
        message = f"{error.name or 'a library'}, which reads {kind.upper()}, is not installed"
        hint = f"pip install 'taoloop[{_EXTRA[kind]}]'."
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
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    _set_limit(resource.RLIMIT_AS, max_bytes)
    _set_limit(resource.RLIMIT_CORE, 0)


def limit_time(seconds: float) -> None:
    """Limit the processor time for the next file: the parent ends the child first, unless it is gone itself."""
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _set_limit(resource.RLIMIT_CPU, math.ceil(usage.ru_utime + usage.ru_stime + seconds) + 1, keeps_hard=True)


def _set_limit(kind: int, value: int, *, keeps_hard: bool = False) -> None:
    import resource  # noqa: PLC0415  # the callers have checked that it exists

    hard = resource.getrlimit(kind)[1]
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with suppress(ValueError, OSError):  # macOS refuses to limit the address space
        resource.setrlimit(kind, (soft, hard if keeps_hard else soft))
