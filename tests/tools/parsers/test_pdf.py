"""PDF files: page by page, and why one cannot be read."""

from __future__ import annotations

import io
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter
from tests.tools.documents.conftest import pdf

from taoloop.tools.parsers.isolated_parser import UnreadableFileError
from taoloop.tools.parsers.pdf import read_pdf


def encrypted(password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("secret"))))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def read(data: bytes, *, max_pages: int = 10, max_chars: int = 1_000) -> tuple[list[tuple[int, str]], list[str]]:
    """The pages with their numbers, and the notes."""
    *pages, last = read_pdf(data, max_pages=max_pages, max_chars=max_chars)
    notes: list[str] = last["notes"]
    return [(page["page"], page["text"].strip()) for page in pages], notes


def test_a_pdf_is_read_page_by_page() -> None:
    assert read(pdf("One", "", "Three")) == ([(1, "One"), (2, ""), (3, "Three")], [])


def test_pages_beyond_the_limit_are_skipped_with_a_note() -> None:
    pages, notes = read(pdf("One", "Two", "Three"), max_pages=2)
    assert len(pages) == 2
    assert notes == ["it has 3 pages; only the first 2 are read"]


def test_characters_beyond_the_limit_are_skipped_with_a_note() -> None:
    pages, notes = read(pdf("One", "Two", "Three"), max_chars=8)
    assert [text for _, text in pages] == ["One", "Two"]
    assert notes == ["it has more than 8 characters; the pages after page 2 are omitted"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no pdf at all", "it is not a PDF"),
        (b"\x89PNG\r\n", "it is not a PDF"),
        (encrypted("secret"), "it is encrypted"),
        (pdf("", ""), "there is no text on its 2 pages; it was probably scanned"),
        (pdf(), "it has no pages"),
    ],
    ids=["text", "image", "encrypted", "scanned", "no pages"],
)
def test_a_pdf_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFileError) as error:
        read(data)
    assert error.value.message.startswith(reason)
    assert error.value.hint


@pytest.mark.parametrize("data", [b"%PDF-1.4\ngarbage", pdf("Hello")[:200]], ids=["garbage", "cut"])
def test_a_damaged_pdf_raises_some_error(data: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  # whatever pypdf raises; the child process reports it
        read(data)


def test_a_pdf_with_an_empty_password_is_read() -> None:
    pages: Any = read(encrypted(""))[0]
    assert pages == [(1, "secret")]
