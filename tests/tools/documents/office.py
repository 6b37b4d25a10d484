"""Small office files and a book, made by the libraries that read them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import docx
import pptx
from openpyxl import Workbook  # type: ignore[import-untyped,unused-ignore]  # it has no types
from pptx.util import Inches


def saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def zipped(parts: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def replaced(data: bytes, part: str, change: Callable[[bytes], bytes]) -> bytes:
    """The archive with another content of one part."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    changed = change(parts[part])
    assert changed != parts[part]
    return zipped({**parts, part: changed})


def report() -> bytes:
    document = docx.Document()
    document.add_heading("Handbook", 0)
    document.add_paragraph("Welcome.")
    document.add_heading("Leaving", 1)
    document.add_paragraph("The notice period is three months.")
    document.add_heading("出差", 1)
    document.add_paragraph("优先乘坐火车。")
    table = document.add_table(rows=2, cols=2)
    for row, texts in zip(table.rows, (("City", "Rate"), ("Berlin", "120")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    return saved(document)


def book(rows: int = 5) -> bytes:
    made = Workbook()
    prices = made.active
    prices.title = "Prices 2026"
    prices.append(["Part", "Price", "Since"])
    for number in range(1, rows + 1):
        prices.append([f"part {number}", number + 0.5, date(2026, 1, 2)])
    made.create_sheet("备注")["A3"] = "只有一行"
    secret = made.create_sheet("Secret")
    secret["A1"], secret.sheet_state = "sesame", "hidden"
    return saved(made)


def deck() -> bytes:
    show = pptx.Presentation()
    first = show.slides.add_slide(show.slide_layouts[1])
    first.shapes.title.text, first.placeholders[1].text = "Sales", "rose in spring"  # type: ignore[union-attr,attr-defined,unused-ignore]  # it has both
    place = (Inches(1), Inches(1), Inches(4), Inches(1))
    table = first.shapes.add_table(2, 2, *place).table
    for row, texts in enumerate((("Q1", "Q2"), ("10", "20"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    first.shapes.add_group_shape().shapes.add_textbox(*place).text_frame.text = "grouped"
    first.notes_slide.notes_text_frame.text = "say it slowly"  # type: ignore[union-attr,unused-ignore]  # it has one
    for title in ("Secret", "Costs"):
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = title  # type: ignore[union-attr,unused-ignore]  # it has one
    show.slides[1].element.set("show", "0")
    return saved(show)


EPUB_PARTS = {
    "mimetype": b"application/epub+zip",
    "META-INF/container.xml": b'<?xml version="1.0"?>'
    b'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    b'<rootfile full-path="content/book.opf"/></rootfiles></container>',
    "content/book.opf": """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
        <metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>红楼梦</dc:title></metadata>
        <manifest><item id="b" href="two.xhtml" media-type="application/xhtml+xml"/>
        <item id="a" href="one%20two.xhtml" media-type="application/xhtml+xml"/>
        <item id="c" href="../../etc/passwd" media-type="application/xhtml+xml"/>
        <item id="p" href="p.png" media-type="image/png"/></manifest>
        <spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/><itemref idref="p"/></spine>
        </package>""".encode(),
    "content/one two.xhtml": "<html><head><title>红楼梦</title></head><h1>第一回</h1><p>甄士隐</p></html>".encode(),
    "content/two.xhtml": b"<html><head><title/></head><body><h2>Second</h2><p>after an empty element</p>"
    b"<p style='display:none'>hidden</p></body></html>",
}


def epub() -> bytes:
    return zipped(EPUB_PARTS)
