"""Readers of office files and books (docx, xlsx, pptx, epub): their text by sections, each with its headings.

They run in the child process of `isolated_parser`, with its limits of time and memory, because such files come from
anywhere. What is hidden from a reader of the file (sheets, slides, text) is left out, as it is of a web page.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from itertools import islice
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from taoloop.tools.isolated_parser import UnreadableFileError, page_tree, read_text

OfficeKind = Literal["docx", "xlsx", "pptx", "epub"]
"""The formats, by their usual suffixes."""

MAX_UNPACKED_BYTES = 512 * 1024 * 1024
"""How large a file may be when it is unpacked, by what its own table of contents says."""

_MAX_ENTRIES = 20_000
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the container of Office 97 to 2003, and of encrypted files [MS-OFFCRYPTO]
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # says what `Choice` says again
_FOLDERS = {"docx": "word/", "xlsx": "xl/", "pptx": "ppt/"}  # in which an archive of each format has its parts
_NOTES = ("footnotes", "endnotes")
_MAX_ROWS = 1_048_576  # that a sheet can have; the number of a row in a broken file may be anything
_MAX_DEPTH = 20  # of tables in tables, and of groups in groups
_HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)
_EMPTY_ELEMENT = re.compile(r"<([A-Za-z][\w:-]*)((?:\s[^<>]*)?)/>")
_VOID = frozenset(  # elements of HTML that have no end
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_NUMBER = re.compile(r"[-+]?[\d.,]+%?")
_OPF = "{http://www.idpf.org/2007/opf}"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def read_office(
    kind: OfficeKind, data: bytes, *, block_chars: int, max_chars: int, max_pages: int
) -> Iterator[dict[str, Any]]:
    """Each section as `{"heading": […], "page": number, "text": …}`, then `{"title": …, "notes": […]}`.

    Args:
        kind: The format.
        data: The file.
        block_chars: About how many characters the rows of a section of a sheet have.
        max_chars: Where reading ends; the notes say so.
        max_pages: How many slides are read.

    Raises:
        UnreadableFileError: it is encrypted, of another format, or too large.
    """
    _check_archive(kind, data)
    document = _Document()
    sections = {
        "docx": lambda: _read_docx(data, document),
        "xlsx": lambda: _read_xlsx(data, document, block_chars),
        "pptx": lambda: _read_pptx(data, document, max_pages),
        "epub": lambda: _read_epub(data, document),
    }[kind]()
    chars = 0
    for section in sections:
        chars += len(section.text)
        if chars > max_chars:
            document.notes.append(f"it has more than {max_chars:,} characters; what follows is omitted")
            break
        if section.text.strip():
            heading = [" ".join(title.split())[:200] for title in section.heading if title.strip()]
            yield {"heading": heading, "page": section.page, "text": section.text}
    yield {"title": " ".join(document.title.split())[:200], "notes": document.notes}


class _Section(NamedTuple):
    """The text under some headings."""

    heading: tuple[str, ...]
    text: str
    page: int = 0


class _Document:
    """What is known of a whole file when its sections were read."""

    def __init__(self) -> None:
        self.title = ""
        self.notes: list[str] = []

    def note_hidden(self, what: str, names: Iterable[object]) -> None:
        if listed := ", ".join(map(str, names)):
            self.notes.append(f"hidden {what} are not read: {listed[:200]}")


def _check_archive(kind: str, data: bytes) -> None:
    """Refuse what is no archive of this format, before a library unpacks it.

    Raises:
        UnreadableFileError: it is encrypted, of another format, or too large.
    """
    if data.startswith(_OLE):
        if _ENCRYPTED in data:
            raise UnreadableFileError("it is encrypted", "Save it without a password.")
        raise UnreadableFileError("it has the format of Office 97 to 2003", f"Save it as .{kind}.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise UnreadableFileError(f"it is not a .{kind} file", "Correct its suffix, or save it again.") from None
    if any(entry.flag_bits & 0x1 for entry in entries):
        raise UnreadableFileError("it is encrypted", "Save it without a password.")
    size = sum(entry.file_size for entry in entries)
    if size > MAX_UNPACKED_BYTES or len(entries) > _MAX_ENTRIES:
        raise UnreadableFileError(
            f"it has {size:,} bytes in {len(entries):,} parts when it is unpacked; at most {MAX_UNPACKED_BYTES:,} in"
            f" {_MAX_ENTRIES:,} are read",
            "Split it.",
        )
    formats = {
        other for other, folder in _FOLDERS.items() if any(entry.filename.startswith(folder) for entry in entries)
    }
    if formats and kind not in formats:
        raise UnreadableFileError(f"it is not a .{kind} file", "Correct its suffix, or save it again.")


def _read_docx(data: bytes, document: _Document) -> Iterator[_Section]:
    import docx  # noqa: PLC0415  # an optional dependency, and only in the child process

    word: Any = docx.Document(io.BytesIO(data))
    document.title = word.core_properties.title or ""
    levels = _style_levels(word)
    stack: list[tuple[int, str]] = []  # level and title of the current headings
    lines: list[str] = []
    for text, level in _blocks(word.element.body, levels):
        if level is None:
            lines.append(text)
        elif text.strip():
            if lines:
                yield _Section(tuple(title for _, title in stack), "\n\n".join(lines))
            lines = []
            stack = [heading for heading in stack if heading[0] < level] + [(level, text)]
            lines.append(text)
            document.title = document.title or text
    if lines:
        yield _Section(tuple(title for _, title in stack), "\n\n".join(lines))
    for relation in word.part.rels.values():
        kind = relation.reltype.rpartition("/")[2]
        if kind in _NOTES and not relation.is_external:
            from docx.oxml import parse_xml  # noqa: PLC0415  # as above

            notes = "\n\n".join(text for text, _ in _blocks(parse_xml(relation.target_part.blob), levels))
            yield _Section((kind,), notes)


def _style_levels(word: Any) -> dict[str, int]:
    """The level of heading of each style that has one, by its id: 0 is the title of the document."""
    levels: dict[str, int] = {}
    for style in word.styles.element.style_lst:
        name = style.name_val or ""
        outline = style.find(f"{_WORD}pPr/{_WORD}outlineLvl")
        if match := _HEADING_STYLE.fullmatch(name):
            levels[style.styleId] = int(match[1])
        elif name.lower() == "title":
            levels[style.styleId] = 0
        elif outline is not None and (level := _level(outline)) is not None:
            levels[style.styleId] = level
    bases = {style.styleId: style.basedOn_val for style in word.styles.element.style_lst}
    for style_id, direct_base in bases.items():
        base, steps = direct_base, 0
        while style_id not in levels and base and steps < _MAX_DEPTH:
            if level := levels.get(base):  # a subtitle is based on the title, and is no title
                levels[style_id] = level
            base, steps = bases.get(base), steps + 1
    return levels


def _level(outline: Any) -> int | None:
    """The level of an outline, from 1; None: body text, which is level 9 of the file."""
    value = outline.get(f"{_WORD}val") or ""
    return int(value) + 1 if value.isdigit() and int(value) < 9 else None


def _blocks(parent: Any, levels: dict[str, int], depth: int = 0) -> Iterator[tuple[str, int | None]]:
    """Paragraphs and tables in their order, also inside of content controls, with the level of a heading."""
    for child in parent:
        if child.tag == f"{_WORD}p":
            if text := _paragraph_text(child):
                yield text, _paragraph_level(child, levels)
        elif child.tag == f"{_WORD}tbl":
            if text := "\n".join(_table_lines(child, levels, depth)):
                yield text, None
        elif isinstance(child.tag, str) and depth < _MAX_DEPTH and child.tag != f"{_WORD}sectPr":
            yield from _blocks(child, levels, depth + 1)


def _paragraph_level(paragraph: Any, levels: dict[str, int]) -> int | None:
    outline = paragraph.find(f"{_WORD}pPr/{_WORD}outlineLvl")
    if outline is not None:
        return _level(outline)
    style = paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
    return None if style is None else levels.get(style.get(f"{_WORD}val"))


def _paragraph_text(element: Any) -> str:
    """The text of a paragraph with its links, boxes and tracked insertions, without hidden and deleted text."""
    text: list[str] = []
    pending = [element]
    while pending:
        node = pending.pop()
        if node.tag == f"{_WORD}t":
            text.append(node.text or "")
        elif node.tag in (f"{_WORD}tab", f"{_WORD}br", f"{_WORD}cr"):
            text.append("\t" if node.tag.endswith("tab") else "\n")
        elif node.tag == f"{_WORD}noBreakHyphen":
            text.append("-")
        elif node.tag not in (_FALLBACK, f"{_WORD}pPr", f"{_WORD}rPr") and not _is_hidden_run(node):
            pending.extend(reversed(node))
    return "".join(text).strip()


def _is_hidden_run(node: Any) -> bool:
    hidden = node.find(f"{_WORD}rPr/{_WORD}vanish") if node.tag == f"{_WORD}r" else None
    return hidden is not None and hidden.get(f"{_WORD}val", "1") not in ("0", "false", "off")


def _table_lines(table: Any, levels: dict[str, int], depth: int) -> Iterator[str]:
    if depth >= _MAX_DEPTH:
        return
    for row in table.iter(f"{_WORD}tr"):
        if next(row.iterancestors(f"{_WORD}tbl")) is not table:
            continue  # of a table in a cell
        own = (cell for cell in row.iter(f"{_WORD}tc") if next(cell.iterancestors(f"{_WORD}tr")) is row)
        cells = (" ".join(text for text, _ in _blocks(cell, levels, depth + 1)) for cell in own)
        if line := join_cells(" ".join(cell.split()) for cell in cells):
            yield line


def _read_xlsx(data: bytes, document: _Document, block_chars: int) -> Iterator[_Section]:
    from openpyxl.chartsheet import Chartsheet  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415  # as above
    from openpyxl.reader.excel import ExcelReader  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415

    class TextReader(ExcelReader):  # type: ignore[misc,unused-ignore]  # untyped
        def read_chartsheet(self, sheet: Any, _relation: Any) -> None:
            """Only its name: it has no text, and openpyxl fails where it has no drawing."""
            chart = Chartsheet()
            chart._parent, chart.title = self.wb, sheet.name
            self.wb._add_sheet(chart)

    reader = TextReader(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    reader.read()
    book = reader.wb
    document.title = book.properties.title or ""
    document.note_hidden("sheets", (sheet.title for sheet in book.worksheets if sheet.sheet_state != "visible"))
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            continue
        sheet.reset_dimensions()  # what a file says of its size may be wrong, and rows would be lost
        values = islice(sheet.iter_rows(values_only=True), _MAX_ROWS)
        rows = ((number, map(_cell_text, row)) for number, row in enumerate(values, 1))
        for block in group_rows(rows, block_chars):
            yield _Section((f"sheet {sheet.title}, {block.place}",), block.text)


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return (value.date() if value.time() == time() else value).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    return f"{value:.15g}" if isinstance(value, float) else " ".join(str(value).split())


class RowBlock(NamedTuple):
    """Some rows of a table."""

    first: int
    """The number of its first row, from 1."""
    last: int
    """The number of its last row."""
    text: str
    """Its rows, a line each; the first line of the table stands above them again if it names the columns."""

    @property
    def place(self) -> str:
        """Which rows these are."""
        return f"row {self.first}" if self.first == self.last else f"rows {self.first}–{self.last}"


def group_rows(rows: Iterable[tuple[int, Iterable[str]]], chars: int) -> Iterator[RowBlock]:
    """The numbered rows of a table in blocks of about `chars` characters; rows without text are left out."""
    header: str | None = None
    lines: list[str] = []
    first = last = size = 0
    for number, values in rows:
        cells = list(values)
        if not (line := join_cells(cells)):
            continue
        if header is None:
            is_header = len(cells) > 1 and all(cells) and not any(_NUMBER.fullmatch(cell) for cell in cells)
            header = line if is_header and len(line) <= chars // 3 else ""
        if lines and size + len(line) > chars:
            yield RowBlock(first, last, "\n".join(lines))
            lines, size = ([header], len(header)) if header else ([], 0)
            first = number
        first = first or number
        lines.append(line)
        size, last = size + len(line) + 1, number
    if lines:
        yield RowBlock(first, last, "\n".join(lines))


def join_cells(cells: Iterable[str]) -> str:
    """The cells of a row on a line; empty if all of them are."""
    line = " | ".join(cells)
    return line.rstrip(" |") if line.strip(" |") else ""


def _read_pptx(data: bytes, document: _Document, max_pages: int) -> Iterator[_Section]:
    from pptx import Presentation  # noqa: PLC0415  # as above

    show: Any = Presentation(io.BytesIO(data))
    document.title = show.core_properties.title or ""
    count, hidden = len(show.slides), []
    for number, slide in enumerate(show.slides, 1):
        if number > max_pages:
            document.notes.append(f"it has {count:,} slides; only the first {max_pages:,} are read")
            break
        if slide.element.get("show") in ("0", "false"):
            hidden.append(number)
            continue
        title = slide.shapes.title.text_frame.text if slide.shapes.title is not None else ""
        lines = list(_shape_lines(slide.shapes))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            lines.append(slide.notes_slide.notes_text_frame.text)
        document.title = document.title or title
        text = "\n\n".join(line for line in lines if line.strip())
        yield _Section((f"slide {number}", title), text.replace("\v", "\n"), number)
    document.note_hidden("slides", hidden)


def _shape_lines(shapes: Iterable[Any], depth: int = 0) -> Iterator[str]:
    for shape in shapes:
        if shape.has_text_frame:
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            rows = (join_cells(" ".join(cell.text.split()) for cell in row.cells) for row in shape.table.rows)
            yield "\n".join(filter(None, rows))
        elif hasattr(shape, "shapes") and depth < _MAX_DEPTH:
            yield from _shape_lines(shape.shapes, depth + 1)


def _read_epub(data: bytes, document: _Document) -> Iterator[_Section]:
    """The chapters in their reading order (EPUB 3.3, sections 4.2.6.3.1 and 5.7)."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        try:
            root = _xml(archive, "META-INF/container.xml").find(".//{*}rootfile")
            package_path = "" if root is None else root.get("full-path", "")
            package = _xml(archive, package_path)
        except KeyError:
            raise UnreadableFileError("it is not an EPUB", "Correct its suffix, or save it again.") from None
        document.title = (package.findtext(f".//{_TITLE}") or "").strip()
        encrypted = _encrypted_parts(archive)
        folder, missing = posixpath.dirname(package_path), []
        items = {item.get("id"): item for item in package.iterfind(f".//{_OPF}item")}
        for reference in package.iterfind(f".//{_OPF}spine/{_OPF}itemref"):
            item = items.get(reference.get("idref"))
            if item is None or "html" not in item.get("media-type", ""):
                continue
            name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
            if name in encrypted:
                raise UnreadableFileError("it is encrypted (DRM)", "Get a copy without protection.")
            try:
                yield _chapter(archive.read(name), document.title)
            except KeyError:
                missing.append(name)
        if missing:
            document.notes.append(f"{len(missing)} of its chapters are missing")


def _chapter(page: bytes, book: str) -> _Section:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415  # as above

    source = read_text(page, charset="", is_html=True)
    html = _EMPTY_ELEMENT.sub(  # in XHTML `<title/>` is complete; to HTML all that follows would be the title
        lambda match: match[0] if match[1].lower() in _VOID else f"<{match[1]}{match[2]}></{match[1]}>", source
    )
    tree = page_tree(html)
    heading: Any = tree.document.query_selector("h1, h2, h3")
    title = (heading.text if heading is not None else tree.title) or ""
    headings = (book, title) if title.strip() != book else (book,)
    return _Section(headings, extract_plain_text(tree, main_content=False, list_bullets=True, links=False))


def _encrypted_parts(archive: zipfile.ZipFile) -> set[str]:
    try:
        listing = _xml(archive, "META-INF/encryption.xml")
    except KeyError:
        return set()
    return {unquote(reference.get("URI", "")) for reference in listing.iterfind(".//{*}CipherReference")}


def _xml(archive: zipfile.ZipFile, name: str) -> ET.Element:
    """A part of an archive. No entity is expanded: a file that declares one is refused.

    Raises:
        KeyError: there is no such part.
        UnreadableFileError: it declares entities.
    """
    source = archive.read(name)
    if b"<!ENTITY" in source.replace(b"\0", b""):
        raise UnreadableFileError("it declares XML entities, which are not read", "Save it again.")
    return ET.fromstring(source)  # noqa: S314  # nothing is declared in it that could be expanded
