"""Office files and books in the child process: their sections, what is hidden in them, and hostile ones."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime
from typing import Any

import docx
import pptx
import pytest
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls
from openpyxl import Workbook  # type: ignore[import-untyped,unused-ignore]  # it has no types
from tests.tools.documents.office import EPUB_PARTS, book, deck, epub, replaced, report, saved, zipped

from taoloop.tools.isolated_parser import IsolatedParser, ParserKind, UnreadableFileError
from taoloop.tools.office_files import MAX_UNPACKED_BYTES, group_rows, read_office

OPTIONS = {"block_chars": 200, "max_chars": 100_000, "max_pages": 10}


@pytest.fixture(scope="module")
def parser() -> Iterator[IsolatedParser]:
    with IsolatedParser(20, 1_000_000_000) as isolated:
        yield isolated


def read(kind: Any, data: bytes, **options: int) -> tuple[list[tuple[list[str], str]], dict[str, Any]]:
    """Headings and text of the sections, and what is said of the whole."""
    *sections, whole = read_office(kind, data, **{**OPTIONS, **options})
    return [(section["heading"], section["text"]) for section in sections], whole


def test_sections_of_a_word_file_have_the_headings_above_them() -> None:
    sections, whole = read("docx", report())
    assert sections[0] == (["Handbook"], "Handbook\n\nWelcome.")
    assert sections[1] == (["Handbook", "Leaving"], "Leaving\n\nThe notice period is three months.")
    assert sections[2] == (["Handbook", "出差"], "出差\n\n优先乘坐火车。\n\nCity | Rate\nBerlin | 120")
    assert whole == {"title": "Handbook", "notes": []}


def test_text_in_boxes_links_controls_and_insertions_is_read_and_hidden_text_is_not() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("visible ")
    paragraph.add_run("secret").font.hidden = True
    inserted = OxmlElement("w:ins")
    inserted.append(paragraph.add_run("inserted")._r)
    paragraph._p.append(inserted)
    control = parse_xml(
        f"<w:sdt {nsdecls('w')}><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    )
    document.element.body.insert(1, control)
    assert read("docx", saved(document))[0] == [([], "visible inserted\n\nin a control")]


def test_a_style_of_ones_own_is_a_heading_by_its_outline_or_its_base() -> None:
    document = docx.Document()
    styles = document.styles
    own = styles.add_style("章节", 1)
    own.element.get_or_add_pPr().append(parse_xml(f'<w:outlineLvl {nsdecls("w")} w:val="1"/>'))
    styles.add_style("Based", 1).base_style = styles["Heading 3"]
    for text, style in (("One", "章节"), ("Two", "Based"), ("body", "Normal")):
        document.add_paragraph(text, style=style)
    assert read("docx", saved(document))[0][-1] == (["One", "Two"], "Two\n\nbody")


def test_a_sheet_becomes_blocks_of_rows_under_its_column_names() -> None:
    sections, whole = read("xlsx", book(rows=12))
    headings = [heading for heading, _ in sections]
    assert headings[0] == ["sheet Prices 2026, rows 1–7"]
    assert headings[1] == ["sheet Prices 2026, rows 8–13"]
    assert sections[1][1].splitlines()[:2] == ["Part | Price | Since", "part 7 | 7.5 | 2026-01-02"]
    assert sections[2] == (["sheet 备注, row 3"], "只有一行")
    assert whole["notes"] == ["hidden sheets are not read: Secret"]
    assert "sesame" not in str(sections)


def test_a_value_is_written_as_a_person_reads_it() -> None:
    made = Workbook()
    made.active.append([1.10, 3.0, True, datetime(2026, 1, 2, 3, 4), date(2026, 1, 2), "a\nb", None, 123456789012345])
    assert read("xlsx", saved(made))[0][0][1] == (
        "1.1 | 3 | True | 2026-01-02T03:04:00 | 2026-01-02 | a b |  | 123456789012345"
    )


def test_rows_beyond_what_the_file_says_of_its_size_are_read() -> None:
    data = replaced(book(rows=3), "xl/worksheets/sheet1.xml", lambda part: part.replace(b'ref="A1:C4"', b'ref="A1"'))
    assert "part 3" in str(read("xlsx", data)[0])


def test_slides_have_their_number_title_table_and_notes() -> None:
    *sections, whole = read_office("pptx", deck(), **OPTIONS)
    assert [(section["page"], section["heading"]) for section in sections] == [
        (1, ["slide 1", "Sales"]),
        (3, ["slide 3", "Costs"]),
    ]
    assert sections[0]["text"] == "Sales\n\nrose in spring\n\nQ1 | Q2\n10 | 20\n\ngrouped\n\nsay it slowly"
    assert whole["notes"] == ["hidden slides are not read: 2"]
    assert read("pptx", deck(), max_pages=1)[1]["notes"] == ["it has 3 slides; only the first 1 are read"]


def test_chapters_of_a_book_come_in_their_reading_order() -> None:
    sections, whole = read("epub", epub())
    assert [heading for heading, _ in sections] == [["红楼梦", "第一回"], ["红楼梦", "Second"]]
    assert "甄士隐" in sections[0][1]
    assert "after an empty element" in sections[1][1]
    assert "hidden" not in sections[1][1]
    assert whole == {"title": "红楼梦", "notes": ["1 of its chapters are missing"]}


def test_reading_ends_at_the_limit_and_says_so() -> None:
    for kind, data in (("docx", report()), ("xlsx", book(rows=50)), ("pptx", deck()), ("epub", epub())):
        assert "characters; what follows is omitted" in str(read(kind, data, max_chars=30)[1]["notes"])


def test_rows_are_grouped_without_a_header_where_there_is_none() -> None:
    rows = [(1, ["1", "2"]), (2, ["", ""]), (4, ["3", "x" * 300]), (5, ["5", ""])]
    blocks = list(group_rows(rows, 100))
    assert [(block.place, block.text) for block in blocks] == [
        ("row 1", "1 | 2"),
        ("row 4", f"3 | {'x' * 300}"),
        ("row 5", "5"),
    ]


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)
ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">'
    b'<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
)


def bomb(name: str) -> bytes:
    """An archive of some kilobytes whose part is said to be larger than what is read."""
    data = zipped({name: b"x"})
    size = (MAX_UNPACKED_BYTES + 1).to_bytes(4, "little")
    start = data.index(b"PK\x01\x02")
    return data[: start + 24] + size + data[start + 28 :]


@pytest.mark.parametrize("kind", ["docx", "xlsx", "pptx", "epub"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (OLE + "EncryptedPackage".encode("utf-16-le"), "it is encrypted"),
        (OLE, "it has the format of Office 97 to 2003"),
        (b"PK\x03\x04 no archive", "it is not a .{kind} file"),
        (b"plain text", "it is not a .{kind} file"),
        (bomb("word/document.xml"), "bytes in 1 parts when it is unpacked; at most 536,870,912"),
        (zipped({"readme.txt": b"hello"}), "it is"),
        (zipped({}), "it is"),
    ],
)
def test_a_file_that_is_none_of_its_kind_says_what_it_is(
    parser: IsolatedParser, kind: ParserKind, data: bytes, message: str
) -> None:
    with pytest.raises(UnreadableFileError) as error:
        list(parser.parse(kind, data, **OPTIONS))
    assert message.format(kind=kind) in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    ("kind", "make", "part"),
    [
        ("docx", report, "word/document.xml"),
        ("xlsx", book, "xl/worksheets/sheet1.xml"),
        ("xlsx", book, "xl/workbook.xml"),
        ("pptx", deck, "ppt/slides/slide1.xml"),
        ("epub", epub, "content/book.opf"),
        ("epub", epub, "content/one two.xhtml"),
    ],
)
def test_entities_are_not_expanded(
    parser: IsolatedParser, kind: ParserKind, make: Callable[[], bytes], part: str
) -> None:
    def declare(source: bytes) -> bytes:
        start = source.index(b"<", source.index(b"?>") if source.startswith(b"<?xml") else 0)
        body = source[start:].replace(b"spring", b"&e;&b;").replace(b"Welcome.", b"&e;&b;").replace(b"Secret", b"&e;")
        return ENTITIES + body.replace(b"part 1<", b"&e;&b;<").replace("甄士隐".encode(), b"&e;&b;")

    replies: list[dict[str, Any]] = []
    with suppress(UnreadableFileError):  # refused, or damaged by it
        replies.extend(parser.parse(kind, replaced(make(), part, declare), **OPTIONS))
    assert "root:" not in str(replies)
    assert "lollol" not in str(replies)


def test_a_part_that_fills_the_memory_ends_the_child_alone() -> None:
    def fill(source: bytes) -> bytes:
        return source.replace(b"<w:body>", b"<w:body>" + b"<w:p/>" * 4_000_000)

    data = replaced(report(), "word/document.xml", fill)
    assert len(data) < 1_000_000
    with IsolatedParser(20, 400_000_000) as parser:
        with pytest.raises(UnreadableFileError):
            list(parser.parse("docx", data, **OPTIONS))
        assert list(parser.parse("docx", report(), **OPTIONS))


def test_a_sheet_that_claims_to_be_endless_ends_where_sheets_end() -> None:
    data = replaced(
        book(), "xl/worksheets/sheet1.xml", lambda part: part.replace(b'<row r="3"', b'<row r="99999999999"')
    )
    sections, _ = read("xlsx", data)
    assert sections[0] == (["sheet Prices 2026, rows 1–2"], "Part | Price | Since\npart 1 | 1.5 | 2026-01-02")
    assert sections[1][0] == ["sheet 备注, row 3"]


def test_a_protected_book_is_refused() -> None:
    listing = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData>'
        '<CipherReference URI="content/one%20two.xhtml"/></CipherData></EncryptedData></encryption>'
    )
    data = zipped({**EPUB_PARTS, "META-INF/encryption.xml": listing.encode()})
    with pytest.raises(UnreadableFileError, match="DRM"):
        read("epub", data)


def test_an_archive_with_a_password_is_refused() -> None:
    data = bytearray(report())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        assert archive.infolist()
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(UnreadableFileError, match="it is encrypted"):
        read("docx", bytes(data))


def test_an_empty_file_has_no_sections() -> None:
    assert read("docx", saved(docx.Document()))[0] == []
    assert read("xlsx", saved(Workbook()))[0] == []
    assert read("pptx", saved(pptx.Presentation()))[0] == []
