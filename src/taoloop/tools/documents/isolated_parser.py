"""Reading PDF and HTML in a process of its own, whose time and memory are bounded.

Such files come from anywhere, and what parses them is large. A file that hangs, crashes or fills the memory costs the
child, which is killed; the next file gets a new one. The child is asked by a line of JSON and the file's bytes behind
it, and answers in lines of JSON: one for each page, and one at the end.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, cast

MAX_CHARS = 20_000_000
"""What is read of one file at most."""

_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "LANG", "LC_ALL", "TMPDIR")
_START_S = 20.0  # for the child to begin, on a busy machine, beside the time for the file
_READ_BYTES = 1 << 16


class ForeignError(Exception):
    """A file that cannot be read: `message` says why, `hint` what to do. `again`: another try may do better."""

    def __init__(self, message: str, hint: str = "", *, again: bool = False) -> None:
        super().__init__(message)
        self.message, self.hint, self.again = message, hint, again


class IsolatedParser:
    """The child, started at the first file. Use it in a `with`, from one thread."""

    def __init__(self, max_file_s: float, max_memory_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._memory, self._clock = max_file_s, int(max_memory_bytes), clock
        self._child: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def __enter__(self) -> IsolatedParser:
        """Nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the child."""
        self._end()

    def read(self, kind: str, data: bytes, max_pages: int) -> tuple[list[tuple[int, str]], str, list[str]]:
        """The pages of a file (number and text), its title, and what is to be said of it.

        Raises:
            ForeignError: nothing of it can be read.
        """
        pages: list[tuple[int, str]] = []
        try:
            for answer in self._ask(
                {"kind": kind, "bytes": len(data), "max_pages": max_pages, "seconds": self._seconds}, data
            ):
                if "error" in answer:
                    raise ForeignError(answer["error"], answer.get("hint", ""), again=answer.get("again", False))
                if "end" in answer:
                    return pages, answer["title"], answer["notes"]
                pages.append((answer["page"], answer["text"]))
        except TimeoutError:
            self._end()
            if pages:
                return pages, "", [f"only {len(pages)} of its pages could be read in {self._seconds:g} s"]
            raise ForeignError(
                f"nothing of it could be read in {self._seconds:g} s", "Make it smaller, or raise max_file_s."
            ) from None
        except (OSError, EOFError, ValueError):
            self._end()
            raise ForeignError("reading it made the parser crash", "Convert the file to another format.") from None
        raise AssertionError("an answer has an end")

    def _ask(self, head: dict[str, Any], data: bytes) -> Iterator[dict[str, Any]]:
        began = self._clock() + (_START_S if self._child is None else 0.0)
        child = self._started()
        to_child, from_child = cast("BinaryIO", child.stdin), cast("BinaryIO", child.stdout)
        to_child.write(json.dumps(head).encode() + b"\n" + data)
        to_child.flush()
        while True:
            answer: dict[str, Any] = json.loads(self._line(from_child.fileno(), began + self._seconds))
            yield answer
            if "page" not in answer:
                return

    def _line(self, fd: int, deadline: float) -> bytes:
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            left = deadline - self._clock()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise TimeoutError
            more = os.read(fd, _READ_BYTES)
            if not more:
                raise EOFError
            parts.append(more)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            paths = [path for path in sys.path if path]
            code = (
                f"import sys; sys.path[:] = {paths!r}; "
                f"from {__name__} import serve; serve(sys.stdin.buffer, sys.stdout.buffer, {self._memory})"
            )
            environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
            self._rest = b""
            self._child = subprocess.Popen(  # noqa: S603  # this very Python
                [sys.executable, "-X", "utf8", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the parent, which ends the child
            )
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        child.wait()


def serve(asked: BinaryIO, answered: BinaryIO, max_memory_bytes: int) -> None:
    """What the child does: answer until the parent is gone."""
    _bound_memory(max_memory_bytes)
    while line := asked.readline():
        head = json.loads(line)
        data = asked.read(head["bytes"])
        _bound_time(head["seconds"])
        try:
            for answer in _answers(head["kind"], data, head["max_pages"]):
                answered.write(json.dumps(answer).encode() + b"\n")
                answered.flush()
        except MemoryError:
            answered.write(b'{"error": "reading it takes too much memory", "hint": "Make it smaller."}\n')
            answered.flush()


def _answers(kind: str, data: bytes, max_pages: int) -> Iterator[dict[str, Any]]:
    try:
        yield from _pdf(data, max_pages) if kind == "pdf" else _html(data)
    except ForeignError as error:
        yield {"error": error.message, "hint": error.hint, "again": error.again}
    except ImportError as error:
        yield {
            "error": f"{error.name or 'a library'}, which reads {kind.upper()}, is not installed",
            "hint": "pip install 'taoloop[documents]'.",
            "again": True,
        }
    except (Exception, RecursionError) as error:  # a parser on a stranger's file: anything may come
        if isinstance(error, MemoryError):
            raise
        yield {"error": f"it is damaged ({type(error).__name__}: {str(error)[:200]})", "hint": "Save it anew."}


def _html(data: bytes) -> Iterator[dict[str, Any]]:
    from taoloop.tools.web.html import read_page  # noqa: PLC0415  # needs an extra

    page = read_page(data, charset="utf-8", url="", links=False, max_chars=MAX_CHARS)
    yield {"page": 0, "text": _clean(page["text"])}
    yield {"end": True, "title": _clean(page["title"]), "notes": []}


def _pdf(data: bytes, max_pages: int) -> Iterator[dict[str, Any]]:
    import io  # noqa: PLC0415
    import logging  # noqa: PLC0415  # pypdf says there what it repairs

    from pypdf import PdfReader  # noqa: PLC0415  # an extra, and heavy
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError  # noqa: PLC0415

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    if b"%PDF-" not in data[:1_024]:
        raise ForeignError("it is not a PDF", "Give it the suffix of what it is, or save it as PDF.")
    locked = ForeignError("it is encrypted", "Save it without a password.")
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        count = len(reader.pages)
    except (FileNotDecryptedError, DependencyError):
        raise locked from None
    notes, failed, chars = [], [], 0
    for number in range(1, min(count, max_pages) + 1):
        try:
            text = _clean(reader.pages[number - 1].extract_text())
        except (FileNotDecryptedError, DependencyError):
            raise locked from None
        except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            failed.append(number)
            continue
        chars += len(text)
        if chars > MAX_CHARS:
            notes.append(f"it has more than {MAX_CHARS:,} characters; what is behind page {number - 1} is left out")
            break
        yield {"page": number, "text": text}
    if count > max_pages:
        notes.append(f"it has {count:,} pages, of which {max_pages:,} are read")
    if failed:
        listed = ", ".join(map(str, failed[:10])) + (" …" if len(failed) > 10 else "")
        notes.append(f"{len(failed)} of its {count} pages cannot be read: {listed}")
    if not count:
        raise ForeignError("it has no pages", "Save it anew.")
    if not chars and not failed:
        raise ForeignError(
            f"there is no text on its {count} page{'s' if count > 1 else ''}; it was probably scanned",
            "Run text recognition (OCR) on it.",
        )
    yield {"end": True, "title": "", "notes": notes}


def _clean(text: str) -> str:
    """Text that can be stored: no NUL, no half characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _bound_time(seconds: float) -> None:
    """Processor time for one file: the parent ends a child that takes too long, unless it is gone itself."""
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _bound_memory(most: int) -> None:
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
