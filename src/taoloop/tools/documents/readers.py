"""Reading a file as passages: text and Markdown here, HTML and PDF by parsers in a child process.

The same bytes always give the same passages with the same ids and positions, so an id leads back to the file.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, NamedTuple

from taoloop.tools.documents.chunking import Chunk, line_starts, split_text
from taoloop.tools.documents.settings import DocumentFolder
from taoloop.tools.isolated_parser import IsolatedParser, ParserTimeoutError, UnreadableFileError

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, because it begins with the same bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_CHARS = 20_000
_MIN_COMMON_SHARE = 0.8  # of the characters that are not ASCII
_MAX_BROKEN_SHARE = 0.05  # of them: UTF-8 text may have so many broken ones
_MAX_WESTERN_SHARE = 0.5  # of the characters: Western text has fewer that are not ASCII
_MIN_HIGH_BYTES = 20  # fewer prove nothing
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CHARSET = re.compile(rb"<meta[^>]{0,300}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "cp936": "gb18030", "iso-8859-1": "cp1252", "latin-1": "cp1252"}
_SUPERSETS |= {"hz": "gb18030", "iso8859-1": "cp1252", "ascii": "cp1252", "big5": "cp950"}

_BIG5_COMMON = re.compile(rb"[\xa4-\xc6][\x40-\xfe]|\xa1[\x40-\xbf]")
_GB_COMMON = re.compile(rb"[\xb0-\xd7][\xa1-\xfe]|[\xa1-\xa3][\xa1-\xfe]")

READER_VERSION = 2
"""Increases when the same file would give other passages: an index of another version is built again."""

MAX_CHARS = 20_000_000
"""How much of one file is read."""

DocumentKind = Literal["text", "markdown", "html", "pdf"]
_KINDS: dict[str, DocumentKind] = {
    **dict.fromkeys(("txt", "text", "log", "rst"), "text"),
    **dict.fromkeys(("md", "markdown"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    "pdf": "pdf",
}
SUFFIXES = tuple(f".{suffix}" for suffix in _KINDS)
_ID_CHARS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u
ID_LENGTH = 12
_SAVE_AS_TEXT = "Save it as UTF-8, or set `encoding`."
_INVISIBLE = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|head)\b.*?(?:</\1\s*>|\Z)|<[^<>]{0,5000}>|&#?\w{1,32};?",
    re.DOTALL | re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_PASSAGE_CHARS = 200  # of a passage
_PHRASE_WORDS = (6, 3, 1)  # lengths of the phrases that are searched, two of each
_WINDOW_CHARS = 200_000  # how far after the previous passage
_MAX_MISSES = 100  # passages in a row without a match: then the source defeats the search
_MIN_WORD_CHARS = 4  # for a phrase of one word


class DecodedText(NamedTuple):
    """A decoded text."""

    text: str
    """The text; broken characters are replaced."""
    encoding: str
    """The name of the codec that decoded it."""
    broken: int
    """How many characters were broken."""


def decode_text(data: bytes, declared_encoding: str = "") -> DecodedText:
    """The text of a file. `declared_encoding` is used if it is not Unicode; empty: it is detected.

    Raises:
        UnreadableFileError: it is not text.
    """
    for bom, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(bom):
            return _decode_by(data, encoding)
    try:
        return _require_text(DecodedText(data.decode(), "utf-8", 0))
    except UnicodeDecodeError:
        pass
    if declared_encoding:
        return _decode_by(data, declared_encoding)
    lenient = _decode_by(data, "utf-8", binary=True)
    non_ascii = sum(not char.isascii() for char in lenient.text)
    if lenient.broken <= non_ascii * _MAX_BROKEN_SHARE:
        return _require_text(lenient)
    return _decode_by(data, _detect_encoding(data))


def decode_html(data: bytes, fallback_encoding: str = "") -> DecodedText:
    """The source of a page: decoded by its byte order mark, else by its own declaration, else as `decode_text`.

    Raises:
        UnreadableFileError: it is not text.
    """
    if not any(data.startswith(bom) for bom, _ in _BYTE_ORDER_MARKS) and (match := _CHARSET.search(data[:4_096])):
        declared = match[1].decode("ascii").lower()
        try:
            codec_name = codecs.lookup(_SUPERSETS.get(declared, declared)).name
            data.decode(codec_name)
        except (LookupError, ValueError):
            return decode_text(data, fallback_encoding)
        if not codec_name.startswith("utf-16"):  # a declaration that is readable as ASCII is not in UTF-16
            return _decode_by(data, codec_name)
    return decode_text(data, fallback_encoding)


def _decode_by(data: bytes, encoding: str, *, binary: bool = False) -> DecodedText:
    try:
        text = data.decode(encoding, "replace")
    except (LookupError, ValueError) as error:  # a codec that does not decode to text, such as hex
        raise UnreadableFileError(f"it cannot be read as {encoding}: {error}", _SAVE_AS_TEXT) from error
    decoded = DecodedText(text, encoding, text.count("\ufffd"))
    return decoded if binary else _require_text(decoded)


def _require_text(decoded: DecodedText) -> DecodedText:
    if "\0" in decoded.text or len(_BINARY.findall(decoded.text[:_SAMPLE_CHARS])) > len(decoded.text) * 0.01:
        raise UnreadableFileError("it contains control characters, so it is not text", _SAVE_AS_TEXT)
    return decoded


def _detect_encoding(data: bytes) -> str:
    """GB18030 or Big5 if nearly all characters are common Chinese ones; else the usual Western encoding.

    Raises:
        UnreadableFileError: it is neither, such as Russian, Japanese, or Chinese with rare characters.
    """
    sample = data[: 4 * _SAMPLE_CHARS]
    high_bytes = sum(byte > 0x7F for byte in sample) or 1
    shares = {
        "gb18030": sum(len(pair) for pair in _double_bytes(sample, _GB_COMMON)) / high_bytes,
        "cp950": sum(1 + (pair[1] > 0x7F) for pair in _double_bytes(sample, _BIG5_COMMON)) / high_bytes,
    }
    best = max(shares, key=lambda name: (shares[name], name))
    if shares[best] >= _MIN_COMMON_SHARE and _decode_by(data, best, binary=True).broken <= len(data) // 1_000:
        return best
    if high_bytes >= _MIN_HIGH_BYTES and high_bytes > len(b"".join(sample.split())) * _MAX_WESTERN_SHARE:
        raise UnreadableFileError("its encoding cannot be detected", _SAVE_AS_TEXT)
    return "cp1252"


def _double_bytes(sample: bytes, pattern: re.Pattern[bytes]) -> list[bytes]:
    """The double bytes that encode common characters."""
    pairs, index = [], 0
    while index < len(sample):
        if sample[index] <= 0x7F:
            index += 1
            continue
        pair = sample[index : index + 2]
        if pattern.fullmatch(pair):
            pairs.append(pair)
        index += 2
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPassage:
    """A passage of a document, and where it is."""

    id: str
    """Identifies the passage by its text and file."""
    ordinal: int
    """Its position among the passages of the document, from 0."""
    start: int
    """Where it begins, in characters.

    They count in the decoded file for text and Markdown, in the extracted text of its page for PDF, and in the whole
    extracted text for HTML.
    """
    end: int
    """Where it ends, in the same characters."""
    line: int
    """The line of the file, from 1; 0 if there is none, or it is unknown."""
    page: int
    """The page of a PDF, from 1; otherwise 0."""
    heading: tuple[str, ...]
    """The headings above it, the outermost first."""
    text: str
    """Its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """The content of a file."""

    kind: DocumentKind
    """Its format."""
    encoding: str
    """The encoding of its text; empty for a PDF."""
    title: str
    """Its title; empty if it has none."""
    passages: tuple[ParsedPassage, ...]
    """Its passages in their order."""
    notes: tuple[str, ...] = ()
    """What of it could not be read."""


def kind_of(name: str) -> DocumentKind | None:
    """The format of a file by its suffix; None: it is not read."""
    stem, dot, suffix = name.rpartition(".")
    return _KINDS.get(suffix.lower()) if dot and stem else None


def read_document(path: str, data: bytes, settings: DocumentFolder, parser: IsolatedParser) -> ParsedDocument:
    """The passages of a file; `path` is its path in the folder and a part of every id.

    Raises:
        UnreadableFileError: it cannot be read, or is empty.
    """
    kind = kind_of(path)
    if kind is None:
        raise UnreadableFileError("files with this suffix are not read", f"Known: {', '.join(SUFFIXES)}.")
    if not data.strip():
        raise UnreadableFileError("it is empty", "Remove it, or fill it.")
    try:
        content = _READERS[kind](kind, data, settings, parser)
    except ParserTimeoutError as error:
        raise UnreadableFileError(error.message, "Make it smaller, or raise max_file_s.") from None
    if not (passages := _make_passages(path, content.parts)):
        raise UnreadableFileError("there is no text in it", "Remove it, or fill it.")
    notes = tuple(content.notes)
    return ParsedDocument(kind=kind, encoding=content.encoding, title=content.title, passages=passages, notes=notes)


_Part = tuple[int, str, list[Chunk], Iterable[int]]
"""A part of a file: the page, the text, its chunks, and their lines."""


class _Content(NamedTuple):
    """What a reader gives of a file."""

    parts: Iterable[_Part]
    notes: list[str]
    encoding: str = ""
    title: str = ""


def _read_text(kind: DocumentKind, data: bytes, settings: DocumentFolder, _parser: IsolatedParser) -> _Content:
    text, encoding, broken_chars = decode_text(data, settings.encoding)
    notes = [f"{broken_chars} of its characters are broken"] if broken_chars else []
    if len(text) > MAX_CHARS:
        text, notes = text[:MAX_CHARS], [*notes, f"only its first {MAX_CHARS:,} characters are read"]
    chunks = split_text(text, settings.passage_chars, markdown=kind == "markdown")
    starts = line_starts(text)
    lines = [bisect_right(starts, chunk.start) for chunk in chunks]
    title = next((chunk.heading[0] for chunk in chunks if chunk.heading), "")
    return _Content([(0, text, chunks, lines)], notes, encoding, title)


def _read_html(_kind: DocumentKind, data: bytes, settings: DocumentFolder, parser: IsolatedParser) -> _Content:
    source, encoding, broken_chars = decode_html(data, settings.encoding)
    html = source.encode("utf-8", "replace")
    (page,) = parser.parse("html", html, charset="utf-8", url="", links=False, max_chars=MAX_CHARS)
    text = _storable(page["text"])
    title = " ".join(_storable(page["title"]).split())[:200]
    heading = (title,) if title else ()
    chunks = [Chunk(chunk.start, chunk.end, heading) for chunk in split_text(text, settings.passage_chars)]
    lines = source_lines(source, (text[chunk.start : chunk.end] for chunk in chunks))
    notes = [f"{broken_chars} of its characters are broken"] if broken_chars else []
    return _Content([(0, text, chunks, lines)], notes, encoding, title)


def _read_pdf(_kind: DocumentKind, data: bytes, settings: DocumentFolder, parser: IsolatedParser) -> _Content:
    pages: list[tuple[int, str]] = []
    notes: list[str] = []
    try:
        for reply in parser.parse("pdf", data, max_pages=settings.max_pages, max_chars=MAX_CHARS):
            if "page" in reply:
                pages.append((reply["page"], _storable(reply["text"])))
            else:
                notes += reply["notes"]
    except ParserTimeoutError:
        if not pages:
            raise
        notes = [f"only {len(pages)} of its pages could be read in {settings.max_file_s:g} s"]
    return _Content([(page, text, split_text(text, settings.passage_chars), repeat(0)) for page, text in pages], notes)


def _storable(text: str) -> str:
    """Text that SQLite can store: without NUL and half characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


_READERS = {"text": _read_text, "markdown": _read_text, "html": _read_html, "pdf": _read_pdf}


def _make_passages(path: str, parts: Iterable[_Part]) -> tuple[ParsedPassage, ...]:
    passages: list[ParsedPassage] = []
    counts = Counter[str]()
    for page, text, chunks, lines in parts:
        for chunk, line in zip(chunks, lines, strict=False):
            body = text[chunk.start : chunk.end]
            counts[body] += 1
            passages.append(
                ParsedPassage(
                    id=_passage_id(path, body, counts[body]),
                    ordinal=len(passages),
                    start=chunk.start,
                    end=chunk.end,
                    line=line,
                    page=page,
                    heading=chunk.heading,
                    text=body,
                )
            )
    return tuple(passages)


def _passage_id(path: str, body: str, count: int) -> str:
    """The id depends on path and text only; `count` distinguishes repetitions."""
    digest = hashlib.sha256("\0".join((path, body, str(count))).encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:8])
    return "".join(_ID_CHARS[number >> shift & 31] for shift in range(0, 5 * ID_LENGTH, 5))


def source_lines(source: str, passages: Iterable[str]) -> list[int]:
    """For each passage the line (from 1) of its first words in the source; 0 if they are not found.

    The passages are in the order of the source. Tags and entities count as spaces.
    """
    visible = _INVISIBLE.sub(lambda offset: " " * len(offset[0]), source)
    starts = line_starts(source)
    lines, search_start, misses = [], 0, 0
    for passage in passages:
        words = _WORD.findall(passage[:_PASSAGE_CHARS]) if misses < _MAX_MISSES else []
        offset = _find_passage(visible, words, search_start)
        misses = 0 if offset >= 0 else misses + 1
        if offset >= 0:
            search_start = offset
        lines.append(bisect_right(starts, offset) if offset >= 0 else 0)
    return lines


def _find_passage(visible: str, words: list[str], search_start: int) -> int:
    for size in _PHRASE_WORDS:
        for first in (0, size):
            phrase_words = words[first : first + size]
            if len(phrase_words) < size or (size == 1 and len(phrase_words[0]) < _MIN_WORD_CHARS):
                continue
            pattern = re.compile(r"[\W_]+".join(map(re.escape, phrase_words)))  # a literal first, so that it is fast
            if (match := pattern.search(visible, search_start, search_start + _WINDOW_CHARS)) is not None:
                return match.start()
    return -1
