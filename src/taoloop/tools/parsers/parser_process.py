"""The child process in which parsers run: it limits itself, and parses files until its parent closes the pipe.

HTML, and text in any encoding, are read with resiliparse, PDF with pypdf. A page of 30 KB can make any conforming HTML
parser take 1 GB of memory, or minutes, with elements that are opened once and repeated in every paragraph.
"""

from __future__ import annotations

import io
import json
import logging
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO
from urllib.parse import urljoin

from taoloop.tools.parsers.isolated_parser import ParserKind, UnreadableFileError

_EXTRA = {"html": "web", "text": "web", "pdf": "documents"}

_MAX_LISTED = 10
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*\.?0+\s*(?:[;%!]|$)"
    r"|font-size\s*:\s*0*\.?0+\s*(?:[a-z%;!]|$)",
    re.IGNORECASE,
)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MAX_LINK_CHARS = 2_000
_ELEMENT_NODE = 1  # the type of a node that is an element


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
        else:
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
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415  # as above

    tree: Any = HTMLTree.parse(read_text(body, charset=charset, is_html=True))
    _prepare_tree(tree, url, links=links)
    text = extract_plain_text(tree, main_content=False, list_bullets=True, links=links)
    return {"title": (tree.title or "").strip()[:500], "text": text[:max_chars], "is_cut": len(text) > max_chars}


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
