"""Reading a file as passages: text, Markdown and CSV here, all else by parsers in a child process.

The same bytes always give the same passages with the same ids and positions, so an id leads back to the file.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Literal, NamedTuple, cast

from taoloop.tools.documents.chunking import Chunk, line_starts, split_text
from taoloop.tools.documents.settings import DocumentFolder
from taoloop.tools.isolated_parser import IsolatedParser, ParserTimeoutError, UnreadableFileError
from taoloop.tools.office_files import OfficeKind, group_rows

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, because it begins with the same bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ESCAPES = {  # ISO 2022: text of seven bits that would pass for UTF-8 (RFC 1468, RFC 1557)
    b"\x1b$B": "iso2022_jp_ext",
    b"\x1b$@": "iso2022_jp_ext",
    b"\x1b$)C": "iso2022_kr",
}
_SAMPLE_CHARS = 20_000
_SAMPLE_BYTES = 80_000
_MIN_UTF16_CHARS = 16  # fewer zero bytes prove nothing
_MAX_STRAY_ZEROS = 20  # how many times more zero bytes one side must have: U+4E00 and its like have theirs on the other
_MIN_COMMON_SHARE = 0.8  # of the characters that are not ASCII
_MAX_BROKEN_SHARE = 0.05  # of them: UTF-8 text may have so many broken ones
_MAX_WESTERN_SHARE = 0.5  # of the characters: Western text has fewer that are not ASCII
_MIN_HIGH_BYTES = 20  # fewer prove nothing
_MIN_EUROPEAN_BYTES = 6  # below, Western is as likely
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CHARSET = re.compile(rb"<meta[^>]{0,300}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "cp936": "gb18030", "iso-8859-1": "cp1252", "latin-1": "cp1252"}
_SUPERSETS |= {"hz": "gb18030", "iso8859-1": "cp1252", "ascii": "cp1252", "big5": "cp950"}

_SUPERSETS |= {"euc_kr": "cp949", "euc-kr": "cp949", "uhc": "cp949", "shift_jis": "cp932", "sjis": "cp932"}
_SUPERSETS |= {"iso8859-9": "cp1254", "koi8-r": "koi8-u"}
_ASIAN = frozenset({"gb18030", "cp950", "cp949", "cp932", "euc_jp"})
_EUROPEAN = frozenset(
    {"cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "koi8-u", "tis-620"}
    | {"iso8859-2", "iso8859-5", "iso8859-7", "iso8859-8", "iso8859-15"}
)
_FIRST_LETTER, _KANA, _LAST_HANGUL = 0xA4, (0xA4, 0xA5), 0xC8  # lead bytes; Hangul ends where half of Hanzi follow
_MIN_LETTERS = 8  # so many of them are hardly ever in the first half by chance

_BIG5_COMMON = re.compile(rb"[\xa4-\xc6][\x40-\xfe]|\xa1[\x40-\xbf]")
_GB_COMMON = re.compile(rb"[\xb0-\xd7][\xa1-\xfe]|[\xa1-\xa5][\xa1-\xfe]")

READER_VERSION = 6
"""Increases when the same file would give other passages or terms: an index of another version is built again."""

MAX_CHARS = 20_000_000
"""How much of one file is read."""

DocumentKind = Literal["text", "markdown", "html", "pdf", "csv", "docx", "xlsx", "pptx", "epub"]
_KINDS: dict[str, DocumentKind] = {
    **dict.fromkeys(("txt", "text", "log", "rst"), "text"),
    **dict.fromkeys(("md", "markdown", "mdx"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    "pdf": "pdf",
    **dict.fromkeys(("csv", "tsv"), "csv"),
    "docx": "docx",
    **dict.fromkeys(("xlsx", "xlsm"), "xlsx"),
    "pptx": "pptx",
    "epub": "epub",
}
SUFFIXES = tuple(f".{suffix}" for suffix in _KINDS)
_ID_CHARS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u
ID_LENGTH = 12
_SAVE_AS_TEXT = "Save it as UTF-8, or set `encoding`."
_DELIMITERS = ",;\t|"
_DELIMITER_LINES = 20  # in which they are counted
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


Detector = Callable[[bytes], str]
"""Names the encoding of a text by its bytes; empty: unknown."""


class DecodedText(NamedTuple):
    """A decoded text."""

    text: str
    """The text; broken characters are replaced."""
    encoding: str
    """The name of the codec that decoded it."""
    broken: int
    """How many characters were broken."""
    is_certain: bool = True
    """Whether its encoding is known, and not only the likeliest."""

    @property
    def notes(self) -> list[str]:
        """What a reader should know of its decoding."""
        notes = [f"{self.broken} of its characters are broken"] if self.broken else []
        if not self.is_certain:
            notes.append(
                f"its encoding is uncertain; it was read as {self.encoding}, and `encoding` may name another one"
            )
        return notes


def decode_text(data: bytes, declared_encoding: str = "", detect: Detector = lambda _sample: "") -> DecodedText:
    """The text of a file. `declared_encoding` is used if it is not Unicode; empty: it is detected.

    Args:
        data: The bytes of the file.
        declared_encoding: The name of its encoding.
        detect: Names the encoding of a text; without it, only Chinese and Western encodings are recognized.

    Raises:
        UnreadableFileError: it is not text, or its encoding is uncertain.
    """
    for bom, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(bom):
            return _decode_by(data, encoding)
    if b"\0" in data[:_SAMPLE_BYTES] and (utf16 := _as_utf16(data)) is not None:
        return utf16
    if (escaped := _as_iso2022(data)) is not None:
        return escaped
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
    encoding, is_certain = _choose_encoding(data, detect)
    return _decode_by(data, encoding)._replace(is_certain=is_certain)


def decode_html(data: bytes, fallback_encoding: str = "", detect: Detector = lambda _sample: "") -> DecodedText:
    """The source of a page: decoded by its byte order mark, else by its own declaration, else as `decode_text`.

    Raises:
        UnreadableFileError: it is not text, or its encoding is uncertain.
    """
    if not any(data.startswith(bom) for bom, _ in _BYTE_ORDER_MARKS) and (match := _CHARSET.search(data[:4_096])):
        declared = match[1].decode("ascii").lower()
        try:
            codec_name = codecs.lookup(_SUPERSETS.get(declared, declared)).name
            data.decode(codec_name)
        except (LookupError, ValueError):
            return decode_text(data, fallback_encoding, detect)
        if not codec_name.startswith("utf-16"):  # a declaration that is readable as ASCII is not in UTF-16
            return _decode_by(data, codec_name)
    return decode_text(data, fallback_encoding, detect)


def _as_utf16(data: bytes) -> DecodedText | None:
    """A text in UTF-16 without a byte order mark: spaces and line ends have their zero bytes on one side only."""
    sample = data[:_SAMPLE_BYTES]
    zeros = sample[0::2].count(0), sample[1::2].count(0)
    if len(data) % 2 or len(data) < 2 * _MIN_UTF16_CHARS or max(zeros) <= _MAX_STRAY_ZEROS * min(zeros):
        return None
    encoding = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    try:
        decoded = _require_text(DecodedText(data.decode(encoding), encoding, 0))
    except (UnicodeDecodeError, UnreadableFileError):
        return None
    start = decoded.text[:_SAMPLE_CHARS]
    odd = sum(unicodedata.category(char) in ("Cn", "Co", "Cc") and not char.isspace() for char in start)
    return decoded if odd <= len(start) // 100 else None


def _as_iso2022(data: bytes) -> DecodedText | None:
    """A text in ISO-2022-JP or ISO-2022-KR, which switches between character sets by escape sequences."""
    for escape, encoding in _ESCAPES.items():
        if escape in data[:_SAMPLE_BYTES]:
            try:
                return _require_text(DecodedText(data.decode(encoding), encoding, 0))
            except UnicodeDecodeError:
                continue
    return None


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


def _choose_encoding(data: bytes, detect: Detector) -> tuple[str, bool]:
    """The encoding that is detected if it is one in use; else GB18030 or Big5 if nearly all characters are common.

    Also whether it is certain; where nothing is, it is the usual Western one.

    The detector is right from some 25 characters on; of shorter Chinese texts it knows less than the common characters.

    Raises:
        UnreadableFileError: it is uncertain, such as a short text in Japanese.
    """
    sample = data[:_SAMPLE_BYTES]
    detected = detect(sample)
    detected = _SUPERSETS.get(detected, detected)
    if detected in _ASIAN and _fits_encoding(data, detected):
        return detected, True
    if (chinese := _chinese_encoding(data, sample)) is not None:
        return chinese, True
    high_bytes = sum(byte > 0x7F for byte in sample)
    if detected in _EUROPEAN and high_bytes >= _MIN_EUROPEAN_BYTES and _fits_encoding(data, detected):
        return detected, True
    if high_bytes >= _MIN_HIGH_BYTES and high_bytes > len(b"".join(sample.split())) * _MAX_WESTERN_SHARE:
        raise UnreadableFileError("its encoding cannot be detected", _SAVE_AS_TEXT)
    return "cp1252", detected == "cp1252"


def _fits_encoding(data: bytes, encoding: str) -> bool:
    return _decode_by(data, encoding, binary=True).broken <= len(data) // 1_000


def _chinese_encoding(data: bytes, sample: bytes) -> str | None:
    """GB18030 or Big5 if nearly all characters are common Chinese ones; None: they are not, or may be Korean.

    Raises:
        UnreadableFileError: they may as well be Korean or Japanese.
    """
    high_bytes = sum(byte > 0x7F for byte in sample) or 1
    pairs = {"gb18030": _double_bytes(sample, _GB_COMMON), "cp950": _double_bytes(sample, _BIG5_COMMON)}
    shares = {
        "gb18030": sum(len(pair) for pair in pairs["gb18030"]) / high_bytes,
        "cp950": sum(1 + (pair[1] > 0x7F) for pair in pairs["cp950"]) / high_bytes,
    }
    best = max(shares, key=lambda name: (shares[name], name))
    if shares[best] < _MIN_COMMON_SHARE or not _fits_encoding(data, best):
        return None
    letters = [pair[0] for pair in pairs["gb18030"] if pair[0] >= _FIRST_LETTER]
    kana = sum(lead in _KANA for lead in letters)
    if best == "gb18030" and len(letters) >= _MIN_LETTERS and (kana * 5 > len(letters) or max(letters) <= _LAST_HANGUL):
        raise UnreadableFileError("its encoding may be Chinese, Korean or Japanese", _SAVE_AS_TEXT)
    return best


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

    They count in the decoded file for text and Markdown, in the whole extracted text for HTML, and in the extracted
    text of its page (PDF), slide, section, chapter or block of rows for all others.
    """
    end: int
    """Where it ends, in the same characters."""
    line: int
    """The line of the file, from 1; 0 if there is none, or it is unknown."""
    page: int
    """The page of a PDF or the slide of a presentation, from 1; otherwise 0."""
    heading: tuple[str, ...]
    """The headings above it, the outermost first; that of a table says which rows these are."""
    text: str
    """Its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """The content of a file."""

    kind: DocumentKind
    """Its format."""
    encoding: str
    """The encoding of its text; empty for a PDF, an office file or a book."""
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


def suffix_of(name: str) -> str:
    """The suffix of a file in lower case with its dot, or `no suffix`."""
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()[:20]}" if dot and stem else "no suffix"


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


def _read_text(kind: DocumentKind, data: bytes, settings: DocumentFolder, parser: IsolatedParser) -> _Content:
    text, encoding, notes = _text_of(data, settings, parser)
    chunks = split_text(text, settings.passage_chars, markdown=kind == "markdown")
    starts = line_starts(text)
    lines = [bisect_right(starts, chunk.start) for chunk in chunks]
    title = next((chunk.heading[0] for chunk in chunks if chunk.heading), "")
    return _Content([(0, text, chunks, lines)], notes, encoding, title)


def _text_of(data: bytes, settings: DocumentFolder, parser: IsolatedParser) -> tuple[str, str, list[str]]:
    """The text of a file as far as it is read, its encoding, and notes."""
    decoded = decode_text(data, settings.encoding, partial(_detect_encoding, parser))
    text, notes = decoded.text, decoded.notes
    if len(text) > MAX_CHARS:
        text, notes = text[:MAX_CHARS], [*notes, f"only its first {MAX_CHARS:,} characters are read"]
    return text, decoded.encoding, notes


def _detect_encoding(parser: IsolatedParser, sample: bytes) -> str:
    """The encoding that the library names; empty where it is not installed: then fewer are recognized."""
    try:
        (reply,) = parser.parse("encoding", sample)
    except UnreadableFileError:
        return ""
    return str(reply["encoding"])


def _read_csv(_kind: DocumentKind, data: bytes, settings: DocumentFolder, parser: IsolatedParser) -> _Content:
    """Blocks of rows; each has the row that names the columns above it."""
    text, encoding, notes = _text_of(data, settings, parser)
    start = text[:_SAMPLE_CHARS].split("\n", _DELIMITER_LINES)[:_DELIMITER_LINES]
    delimiter = max(_DELIMITERS, key=lambda sign: sum(line.count(sign) for line in start))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    lines = [1]  # the line on which each row begins; a row may have several

    def rows() -> Iterator[tuple[int, Iterable[str]]]:
        for row in reader:
            yield len(lines), (" ".join(cell.split()) for cell in row)
            lines.append(reader.line_num + 1)

    try:
        blocks = list(group_rows(rows(), settings.passage_chars))
    except csv.Error as error:
        raise UnreadableFileError(f"it is not CSV: {error}", "Save it again, or rename it to .txt.") from None
    parts = []
    for block in blocks:
        chunks = _under_heading((block.place,), block.text, settings)
        parts.append((0, block.text, chunks, repeat(lines[block.first - 1])))
    return _Content(parts, notes, encoding)


def _read_office(kind: DocumentKind, data: bytes, settings: DocumentFolder, parser: IsolatedParser) -> _Content:
    """Sections as the parser in the child process gives them."""
    parts: list[_Part] = []
    title, notes = "", []
    options = {"block_chars": settings.passage_chars, "max_chars": MAX_CHARS, "max_pages": settings.max_pages}
    try:
        for reply in parser.parse(cast("OfficeKind", kind), data, **options):
            if "notes" in reply:
                title, notes = _storable(reply["title"]), list(map(_storable, reply["notes"]))
                continue
            text, heading = _storable(reply["text"]), tuple(map(_storable, reply["heading"]))
            parts.append((reply["page"], text, _under_heading(heading, text, settings), repeat(0)))
    except ParserTimeoutError:
        if not parts:
            raise
        notes = [f"only {len(parts)} of its sections could be read in {settings.max_file_s:g} s"]
    return _Content(parts, notes, title=title)


def _under_heading(heading: tuple[str, ...], text: str, settings: DocumentFolder) -> list[Chunk]:
    """The passages of a text that has the same headings everywhere."""
    return [Chunk(chunk.start, chunk.end, heading) for chunk in split_text(text, settings.passage_chars)]


def _read_html(_kind: DocumentKind, data: bytes, settings: DocumentFolder, parser: IsolatedParser) -> _Content:
    decoded = decode_html(data, settings.encoding, partial(_detect_encoding, parser))
    source = decoded.text
    html = source.encode("utf-8", "replace")
    (page,) = parser.parse("html", html, charset="utf-8", url="", links=False, max_chars=MAX_CHARS)
    text = _storable(page["text"])
    title = " ".join(_storable(page["title"]).split())[:200]
    chunks = _under_heading((title,) if title else (), text, settings)
    lines = source_lines(source, (text[chunk.start : chunk.end] for chunk in chunks))
    return _Content([(0, text, chunks, lines)], decoded.notes, decoded.encoding, title)


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


_READERS = {
    **dict.fromkeys(("text", "markdown"), _read_text),
    "html": _read_html,
    "pdf": _read_pdf,
    "csv": _read_csv,
    **dict.fromkeys(("docx", "xlsx", "pptx", "epub"), _read_office),
}


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
