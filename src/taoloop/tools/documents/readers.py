"""One file as passages: text and Markdown by themselves, HTML and PDF by libraries in a process of their own.

The same bytes give the same passages, ids and places every time, so that an id leads back to the file.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from taoloop.tools.documents.chunking import Piece, line_starts, split
from taoloop.tools.documents.decode import NotTextError, decode, decode_html
from taoloop.tools.documents.html import source_lines
from taoloop.tools.documents.isolated_parser import MAX_CHARS, ForeignError, IsolatedParser
from taoloop.tools.documents.settings import DocumentFolder

READER = 2
"""Counts up when the same file would give other passages: an index of another number is made anew."""

Kind = Literal["text", "markdown", "html", "pdf"]

_KINDS: dict[str, Kind] = {
    "txt": "text",
    "text": "text",
    "log": "text",
    "rst": "text",
    "md": "markdown",
    "markdown": "markdown",
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "pdf": "pdf",
}
SUFFIXES = tuple(f".{suffix}" for suffix in _KINDS)
_ID_CHARS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u
ID_LENGTH = 12
_SAVE_AS_TEXT = "Save it as UTF-8, or name its encoding in `encoding`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a document and its place.

    `start` and `end` count characters: of the decoded file for text and Markdown, of the extracted text of its page for
    PDF, of the whole extracted text for HTML. `line` (from 1) is the line of the file, 0 where it has none or it is not
    known; `page` (from 1) the page of a PDF, else 0. `heading`: the headings above it, the outermost first.
    """

    id: str
    ordinal: int
    start: int
    end: int
    line: int
    page: int
    heading: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file holds. `encoding` is empty for a PDF; `notes` say what of it could not be read."""

    kind: Kind
    encoding: str
    title: str
    passages: tuple[Passage, ...]
    notes: tuple[str, ...] = ()


def kind_of(name: str) -> Kind | None:
    """What a file is by its suffix, None for what is not read."""
    stem, dot, suffix = name.rpartition(".")
    return _KINDS.get(suffix.lower()) if dot and stem else None


def read_document(path: str, data: bytes, settings: DocumentFolder, foreign: IsolatedParser) -> Document:
    """The passages of a file; `path` is its place in the folder and a part of every id.

    Raises:
        ForeignError: it cannot be read, or nothing is in it.
    """
    kind = kind_of(path)
    if kind is None:
        raise ForeignError("files with this suffix are not read", f"Known: {', '.join(SUFFIXES)}.")
    if not data.strip():
        raise ForeignError("it is empty", "Remove it, or fill it.")
    try:
        document = _READERS[kind](path, kind, data, settings, foreign)
    except NotTextError as error:
        raise ForeignError(str(error), _SAVE_AS_TEXT) from None
    if not document.passages:
        raise ForeignError("there is no text in it", "Remove it, or fill it.")
    return document


def _read_text(path: str, kind: Kind, data: bytes, settings: DocumentFolder, _foreign: IsolatedParser) -> Document:
    text, encoding, broken = decode(data, settings.encoding)
    notes = [f"{broken} of its characters are broken"] if broken else []
    if len(text) > MAX_CHARS:
        text, notes = text[:MAX_CHARS], [*notes, f"only its first {MAX_CHARS:,} characters are read"]
    pieces = split(text, settings.passage_chars, markdown=kind == "markdown")
    starts = line_starts(text)
    lines = [bisect_right(starts, piece.start) for piece in pieces]
    title = next((piece.heading[0] for piece in pieces if piece.heading), "")
    passages = _Ids(path).passages(text, pieces, lines, 0)
    return Document(kind=kind, encoding=encoding, title=title, passages=tuple(passages), notes=tuple(notes))


def _read_html(path: str, kind: Kind, data: bytes, settings: DocumentFolder, foreign: IsolatedParser) -> Document:
    source, encoding, broken = decode_html(data, settings.encoding)
    pages, title, notes = foreign.read(kind, source.encode("utf-8", "replace"), 1)
    text = pages[0][1] if pages else ""
    title = " ".join(title.split())[:200]
    pieces = [Piece(one.start, one.end, (title,) if title else ()) for one in split(text, settings.passage_chars)]
    lines = source_lines(source, (text[piece.start : piece.end] for piece in pieces))
    if broken:
        notes = [*notes, f"{broken} of its characters are broken"]
    passages = _Ids(path).passages(text, pieces, lines, 0)
    return Document(kind=kind, encoding=encoding, title=title, passages=tuple(passages), notes=tuple(notes))


def _read_pdf(path: str, kind: Kind, data: bytes, settings: DocumentFolder, foreign: IsolatedParser) -> Document:
    pages, title, notes = foreign.read(kind, data, settings.max_pages)
    ids, passages = _Ids(path), []
    for number, text in pages:
        pieces = split(text, settings.passage_chars)
        passages += ids.passages(text, pieces, [0] * len(pieces), number)
    return Document(kind=kind, encoding="", title=title, passages=tuple(passages), notes=tuple(notes))


_READERS = {"text": _read_text, "markdown": _read_text, "html": _read_html, "pdf": _read_pdf}


class _Ids:
    """The ids of one file: of the same text in the same file the same id, wherever it stands; repeated ones counted."""

    def __init__(self, path: str) -> None:
        self._path, self._ordinal = path, 0
        self._seen: dict[str, int] = {}

    def passages(self, text: str, pieces: list[Piece], lines: list[int], page: int) -> list[Passage]:
        found = []
        for piece, line in zip(pieces, lines, strict=True):
            body = text[piece.start : piece.end]
            found.append(
                Passage(
                    id=self._id(body),
                    ordinal=self._ordinal,
                    start=piece.start,
                    end=piece.end,
                    line=line,
                    page=page,
                    heading=piece.heading,
                    text=body,
                )
            )
            self._ordinal += 1
        return found

    def _id(self, body: str) -> str:
        times = self._seen[body] = self._seen.get(body, 0) + 1
        parts = (self._path, body, str(times))
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest[:8])
        return "".join(_ID_CHARS[number >> shift & 31] for shift in range(0, 5 * ID_LENGTH, 5))
