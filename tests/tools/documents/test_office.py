"""Office files, books and tables in a folder: found, cited by sheet, slide, chapter or row, and told if left out."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped,unused-ignore]
import pytest
from tests.tools.documents.conftest import folder_of
from tests.tools.documents.office import book, deck, epub, report, zipped

from taoloop.tools.documents import DocumentFolder, document_tools
from taoloop.tools.documents.tool import locate

PRICES = 'part;price\nbolt;1,5\n"nut\nwith two lines";2\n' + "".join(f"screw {n};{n}\n" for n in range(200))


@pytest.fixture
def office(tmp_path: Path) -> Path:
    folder = tmp_path / "office"
    folder.mkdir()
    (folder / "report.docx").write_bytes(report())
    (folder / "prices.xlsx").write_bytes(book())
    (folder / "sales.pptx").write_bytes(deck())
    (folder / "dream.epub").write_bytes(epub())
    (folder / "parts.csv").write_text(PRICES, encoding="utf-8")
    (folder / "page.mdx").write_text("import A from 'a'\n\n# Button\n\n<A kind='zebra' />\n", encoding="utf-8")
    return folder


def messages(root: Path, **more: Any) -> list[str]:
    problems = document_tools(folder_of(root, **more)).problems
    return [f"{Path(problem.source).name}: {problem.message} {problem.hint}" for problem in problems]


PLACES = [
    ("notice period", "report.docx", "Handbook > Leaving", "report.docx"),
    ("part 4", "prices.xlsx", "sheet Prices 2026, rows 1–6", "prices.xlsx, sheet Prices 2026, rows 1–6"),
    ("spring", "sales.pptx", "slide 1 > Sales", "sales.pptx, slide 1"),
    ("甄士隐", "dream.epub", "红楼梦 > 第一回", "dream.epub"),
    ("screw 199", "parts.csv", "rows 199–203", "parts.csv:200"),
    ("zebra", "page.mdx", "Button", "page.mdx:3"),
]
"""A query, the file and heading of what it finds, and how its place is written."""


def test_a_passage_says_where_it_stands(office: Path) -> None:
    search: Any = document_tools(folder_of(office)).tools[0]
    for query, file, heading, place in PLACES:
        passage = search(query, 1)[0]
        assert (passage["file"], passage["heading"]) == (file, heading)
        located = locate(folder_of(office), passage["cite"])
        assert str(located) == str(office / place)
        assert located.text == passage["text"]


def test_a_slide_has_its_number_and_a_block_of_rows_the_names_of_the_columns(office: Path) -> None:
    search = document_tools(folder_of(office)).tools[0]
    slide: Any = search("costs", 1)[0]
    assert slide["page"] == 3
    rows: Any = search("screw 150", 1)[0]
    assert rows["text"].startswith("part | price\n")


def test_what_is_hidden_or_missing_is_told(office: Path) -> None:
    assert messages(office) == [
        "dream.epub: 1 of its chapters are missing. ",
        "prices.xlsx: Hidden sheets are not read: Secret. ",
        "sales.pptx: Hidden slides are not read: 2. ",
    ]


def test_types_that_are_not_read_are_told_with_what_to_do(office: Path) -> None:
    for name in ("old.doc", "older.DOC", "photo.png", "LICENSE", ".hidden"):
        (office / name).write_bytes(b"x")
    (line,) = (line for line in messages(office) if "skipped" in line)
    assert line == (
        "office: 4 files are skipped because their type is not read: .doc (2 such as old.doc), no suffix (LICENSE),"
        " .png (photo.png). Save .doc as .docx. Read are .txt, .text, .log, .rst, .md, .markdown, .mdx, .html, .htm,"
        " .xhtml, .pdf, .csv, .tsv, .docx, .xlsx, .xlsm, .pptx, .epub; `exclude` stops this message."
    )
    assert not any("skipped" in line for line in messages(office, exclude=("*.doc", "*.DOC", "*.png", "LICENSE")))


def test_an_index_in_its_own_folder_is_no_file_that_is_skipped(office: Path) -> None:
    folder = DocumentFolder(path=office, index=office / "index.db")
    for _ in range(2):
        assert not any("skipped" in problem.message for problem in document_tools(folder).problems)


def test_broken_and_empty_files_are_named_and_the_others_found(office: Path) -> None:
    (office / "a.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"))
    (office / "b.xlsx").write_bytes(zipped({"a": b"b"}))
    (office / "c.pptx").write_bytes(b"")
    (office / "d.csv").write_bytes(b'"' + b"x" * 200_000)
    first, second, third, fourth, *_ = messages(office)
    assert first == "a.docx: It is encrypted. Save it without a password."
    assert second.startswith("b.xlsx: It is damaged (")
    assert third == "c.pptx: It is empty. Remove it, or fill it."
    assert fourth.startswith("d.csv: It is not CSV: field larger than field limit")
    assert document_tools(folder_of(office)).tools[0]("notice period", 1)


def test_a_workbook_with_an_empty_chart_sheet_is_read(tmp_path: Path) -> None:
    data = io.BytesIO()
    workbook = openpyxl.Workbook()
    workbook.active.append(["part", "price"])
    workbook.create_chartsheet("Chart", 0)
    workbook.create_sheet("Stock").append(["zebra"])
    workbook.save(data)
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.xlsx").write_bytes(data.getvalue())
    assert messages(folder) == []
    (passage,) = document_tools(folder_of(folder)).tools[0]("zebra", 1)
    assert passage["heading"] == "sheet Stock, row 1"


def test_a_file_of_another_format_has_the_wrong_suffix(office: Path) -> None:
    (office / "a.docx").write_bytes(book())
    assert messages(office)[0] == "a.docx: It is not a .docx file. Correct its suffix, or save it again."


KOREAN = "근로 계약을 해지하려면 세 달 전에 서면으로 알려야 합니다. 위약금은 계약 금액의 십분의 일입니다. "
JAPANESE = "契約を解除するには、三か月前に書面で通知しなければなりません。違約金は契約金額の一割です。"
RUSSIAN = "Для расторжения договора необходимо уведомить другую сторону за три месяца в письменной форме. "
POLISH = "Aby rozwiązać umowę, należy powiadomić drugą stronę trzy miesiące wcześniej, także gdy jest późno. "


@pytest.mark.parametrize(
    ("text", "encoding", "query"),
    [
        (KOREAN, "euc-kr", "위약금은"),
        (KOREAN, "utf-16-be", "위약금은"),
        (JAPANESE, "shift_jis", "違約金"),
        (JAPANESE, "euc-jp", "違約金"),
        (JAPANESE, "iso2022_jp_ext", "違約金"),
        (RUSSIAN, "cp1251", "договора"),
        (RUSSIAN, "koi8-r", "договора"),
        (POLISH, "cp1250", "umowę"),
        (POLISH, "utf-16-le", "umowę"),
        ("紅樓夢是中國古典小說，違約金為合約金額的百分之十。", "big5", "違約金"),
        ("红楼梦是中国古典小说，违约金为合同金额的百分之十。", "gb18030", "违约金"),
        ("Le café élève à Noël: ça va très bien. Größe über Öl. ", "cp1252", "größe"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", pytest.param("a.csv", marks=pytest.mark.nightly)])
def test_a_text_is_found_whatever_its_encoding(tmp_path: Path, text: str, encoding: str, query: str, name: str) -> None:
    root = tmp_path / "texts"
    root.mkdir()
    (root / name).write_bytes((text * 4).encode(encoding))
    loaded = document_tools(folder_of(root))
    assert loaded.problems == ()
    found: Any = loaded.tools[0](query, 1)[0]
    assert query in found["text"].lower()


def test_an_uncertain_encoding_is_told(tmp_path: Path) -> None:
    root = tmp_path / "texts"
    root.mkdir()
    (root / "a.txt").write_bytes("We are in Łódź now, in the centre.".encode("cp1250"))
    (line,) = messages(root)
    assert "Its encoding is uncertain; it was read as cp1252, and `encoding` may name another one." in line
    assert messages(root, encoding="cp1250") == []
