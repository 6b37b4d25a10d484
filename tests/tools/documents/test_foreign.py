"""PDF and HTML: read in a process of its own; what cannot be read says why, and costs nobody else."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from pypdf import PdfReader, PdfWriter
from tests.tools.documents.conftest import pdf

from taoloop.tools.documents.isolated_parser import ForeignError, IsolatedParser


@pytest.fixture(scope="module")
def foreign() -> Iterator[IsolatedParser]:
    with IsolatedParser(20, 2_000_000_000) as reader:
        yield reader


def encrypted(password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("secret"))))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_pdf_is_read_page_by_page(foreign: IsolatedParser) -> None:
    pages, _, notes = foreign.read("pdf", pdf("One", "", "Three"), 10)
    assert [(number, text.strip()) for number, text in pages] == [(1, "One"), (2, ""), (3, "Three")]
    assert notes == []


def test_pages_beyond_the_bound_are_left_out_and_said(foreign: IsolatedParser) -> None:
    pages, _, notes = foreign.read("pdf", pdf("One", "Two", "Three"), 2)
    assert len(pages) == 2
    assert notes == ["it has 3 pages, of which 2 are read"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no pdf at all", "it is not a PDF"),
        (b"\x89PNG\r\n", "it is not a PDF"),
        (encrypted("secret"), "it is encrypted"),
        (pdf("", ""), "there is no text on its 2 pages; it was probably scanned"),
        (pdf(), "it has no pages"),
        (b"%PDF-1.4\ngarbage", "it is damaged"),
        (pdf("Hello")[:200], "it"),
    ],
    ids=["text", "image", "encrypted", "scanned", "no pages", "garbage", "cut"],
)
def test_a_pdf_that_cannot_be_read_says_why(foreign: IsolatedParser, data: bytes, why: str) -> None:
    with pytest.raises(ForeignError) as error:
        foreign.read("pdf", data, 10)
    assert error.value.message.startswith(why)
    assert error.value.hint
    assert foreign.read("pdf", pdf("Hello"), 10)[0][0][1].strip() == "Hello"


def test_a_pdf_with_an_empty_password_is_read(foreign: IsolatedParser) -> None:
    assert foreign.read("pdf", encrypted(""), 10)[0][0][1].strip() == "secret"


def test_html_gives_its_title_and_its_visible_text(foreign: IsolatedParser) -> None:
    page = "<title>标题</title><script>no()</script><p>Hello <b>你好</b></p><p style='display:none'>hidden</p>"
    pages, title, _ = foreign.read("html", page.encode(), 1)
    assert title == "标题"
    assert "Hello 你好" in pages[0][1]
    assert "no()" not in pages[0][1]
    assert "hidden" not in pages[0][1]


def test_a_file_that_takes_too_long_is_left_and_the_next_one_read() -> None:
    """The clock jumps: no time passes for the child, and it is ended in the middle of its work."""
    now = [0.0]

    def clock() -> float:
        now[0] += jump
        return now[0]

    jump = 0.0
    with IsolatedParser(20, 2_000_000_000, clock) as reader:
        jump = 1_000.0
        with pytest.raises(ForeignError, match="nothing of it could be read in 20 s"):
            reader.read("pdf", pdf("Hello"), 10)
        jump = 0.0
        assert len(reader.read("pdf", pdf("Hello"), 10)[0]) == 1


def test_a_parser_that_needs_too_much_memory_costs_only_its_file() -> None:
    with IsolatedParser(20, 30_000_000) as reader, pytest.raises(ForeignError):
        reader.read("pdf", pdf(*["Hello"] * 3), 10)


def test_a_child_that_dies_is_replaced() -> None:
    with IsolatedParser(20, 2_000_000_000) as reader:
        reader.read("pdf", pdf("One"), 10)
        child = vars(reader)["_child"]
        child.kill()
        child.wait()
        with pytest.raises(ForeignError, match="crash"):
            reader.read("pdf", pdf("Two"), 10)
        assert len(reader.read("pdf", pdf("Three"), 10)[0]) == 1
