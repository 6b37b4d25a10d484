"""Parsers of untrusted files (HTML, PDF, office files, text in unknown encodings) in a child process with limits.

HTML, and text in any encoding, are read with resiliparse, PDF with pypdf, office files by `office_files`. Such files
come from anywhere, and these libraries are large: a page of 30 KB can make any conforming HTML parser take 1 GB of
memory, or minutes, with elements that are opened once and repeated in every paragraph. A file that makes the parser
hang, crash or fill the memory only costs the child, which is killed; the next file gets a new one.

Protocol: the parent writes one line of JSON and the bytes of the file; the child (`parser_process`) replies with lines
of JSON, of which the last one has the key `end` or `error`. Little else of taoloop is imported there, so that it starts
quickly.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, Literal, cast
from urllib.parse import urljoin

ParserKind = Literal["html", "pdf", "results", "text", "encoding", "docx", "xlsx", "pptx", "epub"]
"""The parsers: `read_page`, `read_pdf`, `read_search_results`, `read_text`, `detect_encoding`; `read_office` for all
others."""

_ENVIRONMENT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")  # some Pythons need them to start
_START_S = 20.0  # for the start of the child on a busy machine
_MAX_REPLY_BYTES = 128 * 1024 * 1024


class UnreadableFileError(Exception):
    """A file that cannot be read: `message` says why, `hint` what to do.

    `is_transient`: another attempt may succeed, even if the file does not change.
    """

    def __init__(self, message: str, hint: str = "", *, is_transient: bool = False) -> None:
        super().__init__(message)
        self.message, self.hint, self.is_transient = message, hint, is_transient


class ParserTimeoutError(UnreadableFileError):
    """The time limit was reached before the file was parsed."""


class IsolatedParser:
    """A child process that parses one file after the other; it starts with the first one.

    Use it in a `with` statement, from one thread.

    Args:
        max_file_s: Time limit for one file in seconds.
        max_memory_bytes: Memory limit of the child.
        start_s: Additional time for the first file, in which the child starts.
        clock: Seconds that only increase; for tests.
    """

    def __init__(
        self,
        max_file_s: float,
        max_memory_bytes: int,
        *,
        start_s: float = _START_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_file_s, self._max_memory_bytes = max_file_s, int(max_memory_bytes)
        self._start_s, self._clock = start_s, clock
        self._child: subprocess.Popen[bytes] | None = None
        self._exchange: threading.Thread | None = None

    def __enter__(self) -> IsolatedParser:
        """The child is not started yet."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End the child."""
        self._end()

    def parse(self, kind: ParserKind, data: bytes, **options: Any) -> Iterator[dict[str, Any]]:
        """Parse a file with the options of its parser, and yield what the parser yields.

        Raises:
            ParserTimeoutError: the time limit was reached; the child was ended.
            UnreadableFileError: the file cannot be parsed.
        """
        deadline = self._clock() + self._max_file_s + (self._start_s if self._child is None else 0.0)
        head = {"kind": kind, "bytes": len(data), "seconds": self._max_file_s, "options": options}
        replies: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        is_finished = False
        try:
            child = self._start()
            self._exchange = threading.Thread(target=_exchange, args=(child, head, data, replies), daemon=True)
            self._exchange.start()
            while not is_finished:
                reply = self._next_reply(replies, deadline)
                is_finished = "end" in reply or "error" in reply
                if "error" in reply:
                    raise UnreadableFileError(reply["error"], reply["hint"], is_transient=reply["is_transient"])
                if not is_finished:
                    yield reply
        finally:
            if not is_finished:  # the child is in the middle of a file, or dead
                self._end()

    def _next_reply(self, replies: SimpleQueue[dict[str, Any] | None], deadline: float) -> dict[str, Any]:
        remaining_s = deadline - self._clock()
        try:
            if remaining_s <= 0:
                raise Empty
            reply = replies.get(timeout=remaining_s)
        except Empty:
            message = f"parsing it takes more than {self._max_file_s:g} s"
            raise ParserTimeoutError(message, "Make it smaller, or raise the time limit.") from None
        if reply is None:
            raise UnreadableFileError("parsing it made the parser crash", "Convert the file to another format.")
        return reply

    def _start(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            paths = [path for path in sys.path if path]
            code = (
                f"import sys; sys.path[:] = {paths!r}; from taoloop.tools.parser_process import serve; "
                f"serve(sys.stdin.buffer, sys.stdout.buffer, {self._max_memory_bytes})"
            )
            try:
                self._child = subprocess.Popen(  # noqa: S603  # this very Python, and nothing of the file
                    [sys.executable, "-s", "-P", "-X", "utf8", "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                    start_new_session=True,  # Ctrl-C is for the parent, which ends the child
                )
            except OSError as error:
                reason = error.strerror or str(error)
                raise UnreadableFileError(f"its parser did not start: {reason}", is_transient=True) from None
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        if self._exchange is not None:
            self._exchange.join()
        with suppress(OSError), child:
            pass  # closes its pipes and waits for its end


def _exchange(
    child: subprocess.Popen[bytes], head: dict[str, Any], data: bytes, replies: SimpleQueue[dict[str, Any] | None]
) -> None:
    """Send a request to the child and queue its replies; None: the child broke off."""
    to_child, from_child = cast("BinaryIO", child.stdin), cast("BinaryIO", child.stdout)
    with suppress(OSError, ValueError):
        to_child.write(json.dumps(head).encode() + b"\n" + data)
        to_child.flush()
        while (line := from_child.readline(_MAX_REPLY_BYTES)).endswith(b"\n"):
            reply: dict[str, Any] = json.loads(line)
            replies.put(reply)
            if "end" in reply or "error" in reply:
                return
    replies.put(None)


_MAX_LISTED = 10
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*\.?0+\s*(?:[;%!]|$)"
    r"|font-size\s*:\s*0*\.?0+\s*(?:[a-z%;!]|$)",
    re.IGNORECASE,
)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MAX_LINK_CHARS = 2_000
_ELEMENT_NODE = 1  # the type of a node that is an element


def read_pdf(data: bytes, *, max_pages: int, max_chars: int) -> Iterator[dict[str, Any]]:
    """Each page as `{"page": number, "text": …}`, then `{"notes": …}` about what could not be read.

    Raises:
        UnreadableFileError: it is not a PDF, is encrypted, or contains no text.
    """
    from pypdf import PdfReader  # noqa: PLC0415  # an optional dependency, and heavy
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError  # noqa: PLC0415  # as above

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs what it repairs
    if b"%PDF-" not in data[:1_024]:
        raise UnreadableFileError("it is not a PDF", "Correct its suffix, or save it as PDF.")
    encrypted = UnreadableFileError("it is encrypted", "Save it without a password.")
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        count = len(reader.pages)
    except (FileNotDecryptedError, DependencyError):
        raise encrypted from None
    notes, failed, chars = [], [], 0
    for number in range(1, min(count, max_pages) + 1):
        try:
            text = reader.pages[number - 1].extract_text()
        except (FileNotDecryptedError, DependencyError):
            raise encrypted from None
        except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            failed.append(number)
            continue
        chars += len(text)
        if chars > max_chars:
            notes.append(f"it has more than {max_chars:,} characters; the pages after page {number - 1} are omitted")
            break
        yield {"page": number, "text": text}
    if not count:
        raise UnreadableFileError("it has no pages", "Save it again.")
    if not chars and not failed:
        raise UnreadableFileError(
            f"there is no text on its {count} page{'s' if count > 1 else ''}; it was probably scanned",
            "Run text recognition (OCR) on it.",
        )
    if count > max_pages:
        notes.append(f"it has {count:,} pages; only the first {max_pages:,} are read")
    if failed:
        listed = ", ".join(map(str, failed[:_MAX_LISTED])) + (" …" if len(failed) > _MAX_LISTED else "")
        notes.append(f"{len(failed)} of its {count} pages cannot be read: {listed}")
    yield {"notes": notes}


def read_page(body: bytes, *, charset: str, url: str, links: bool, max_chars: int) -> dict[str, Any]:
    """`title` and `text` of a page without its hidden elements, and whether the text `is_cut`.

    `links`: absolute URLs follow the text of links; `url` is the base of relative ones.
    """
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415  # only in the child process

    tree = page_tree(read_text(body, charset=charset, is_html=True), url, links=links)
    text = extract_plain_text(tree, main_content=False, list_bullets=True, links=links)
    return {"title": (tree.title or "").strip()[:500], "text": text[:max_chars], "is_cut": len(text) > max_chars}


def page_tree(source: str, url: str = "", *, links: bool = False) -> Any:
    """The tree of a page, a `resiliparse.parse.html.HTMLTree`, without its hidden elements."""
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415  # as above

    tree = HTMLTree.parse(source)
    _prepare_tree(tree, url, links=links)
    return tree


def read_search_results(body: bytes, *, charset: str) -> Iterator[dict[str, str]]:
    """`title`, `url` and `snippet` of each result on the page that DuckDuckGo has for browsers without scripts.

    The address is as the page has it; the blocks of advertisements are left out.
    """
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415  # only in the child process

    tree: Any = HTMLTree.parse(read_text(body, charset=charset, is_html=True))
    result: dict[str, str] | None = None
    is_advertisement = False
    for node in tree.document:  # in the order of the page
        classes = node.getattr("class").split() if node.type == _ELEMENT_NODE and node.hasattr("class") else ()
        if "result" in classes:
            is_advertisement = "result--ad" in classes
        elif "result__a" in classes and not is_advertisement and node.hasattr("href"):
            if result is not None:
                yield result
            result = {"title": " ".join(node.text.split()), "url": node.getattr("href"), "snippet": ""}
        elif "result__snippet" in classes and result is not None and not is_advertisement:
            result["snippet"] = " ".join(node.text.split())
    if result is not None:
        yield result


def _prepare_tree(tree: Any, url: str, *, links: bool) -> None:
    """Remove hidden elements, and make links absolute; links that do not leave the page become plain elements.

    It walks over all nodes once: iterating over the matches of a selector takes the library quadratic time.
    """
    hidden_elements, link_elements = [], []
    for node in tree.document:
        if node.type != _ELEMENT_NODE:
            continue
        if _is_hidden(node):
            hidden_elements.append(node)
        elif links and node.tag == "a":
            link_elements.append(node)
    base_element = tree.document.query_selector("base[href]")
    base = (_absolute_url(url, base_element.getattr("href")) if base_element is not None else None) or url
    for node in link_elements:
        href = node.getattr("href") if node.hasattr("href") else ""
        absolute = _absolute_url(base, href)
        if href and absolute is not None and absolute.partition("#")[0] != url.partition("#")[0]:
            node.setattr("href", absolute)
        else:
            _replace_by_span(tree, node)
    for node in reversed(hidden_elements):  # inner elements first: removed ones must not be touched again
        node.decompose()


def _is_hidden(node: Any) -> bool:
    """Whether an element hides its content. A hidden `html` or `body` counts as visible: a script shows it later."""
    if node.tag in ("html", "body"):
        return False
    style = node.getattr("style") if node.hasattr("style") else ""
    return node.hasattr("hidden") or bool(style and _HIDING_STYLE.search(_CSS_COMMENT.sub("", style)))


def _replace_by_span(tree: Any, node: Any) -> None:
    """Replace a link by a plain element with the same children: a link without URL would be shown as `()`."""
    span = tree.create_element("span")
    while (child := node.first_child) is not None:
        span.append_child(child)
    node.parent.replace_child(span, node)


def _absolute_url(base: str, href: str) -> str | None:
    try:
        absolute = urljoin(base, (href or "").strip()) if len(href or "") <= _MAX_LINK_CHARS else ""
    except ValueError:
        return None
    is_usable = len(absolute) <= _MAX_LINK_CHARS and absolute.startswith(("http://", "https://", "mailto:"))
    return absolute if is_usable else None


def read_text(body: bytes, *, charset: str, is_html: bool) -> str:
    """The text of a body: by its byte order mark, the charset of its headers, its own declaration, or its bytes."""
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5  # noqa: PLC0415  # as above

    for bom, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace")
    declared = map_encoding_to_html5(charset, fallback_utf8=False) if charset else None
    if declared is None and not is_html:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass  # detected below
    encoding = declared or detect_encoding(body, from_html_meta=is_html) or "utf-8"
    if not declared and is_html and encoding.startswith("utf-16") and b"\0" not in body[:1_000]:
        encoding = "utf-8"  # a page that declares UTF-16 in ASCII is not UTF-16
    try:
        return body.decode(encoding, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def detect_encoding(sample: bytes) -> str:
    """The name that uchardet gives to the encoding of a text, as Python's codecs call it; empty: it has none."""
    from resiliparse.parse.encoding import detect_encoding as detect  # noqa: PLC0415  # as above

    return detect(sample, max_len=0, html5_compatible=False) or ""
