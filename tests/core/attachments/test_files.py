"""Files: their bytes, names and types, and what a trace says of them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.pictures import PDF

from taoloop import File
from taoloop.core.attachments.files import MAX_FILE_BYTES, FileInfo
from taoloop.errors import FileError


def test_a_file_says_what_it_is() -> None:
    file = File(PDF, name="in/offer.pdf")
    assert (file.name, file.media_type, file.text) == ("offer.pdf", "application/pdf", None)
    assert file.info.ref.startswith("file_")
    assert repr(file) == f"<File offer.pdf, application/pdf, {len(PDF)} bytes>"
    assert File.from_base64(file.base64, name="offer.pdf") == File.stored(file.base64, file.info) == file
    assert File.from_data_uri(f"data:application/pdf;base64,{file.base64}", name="offer.pdf") == file
    assert (File(b"a").text, File("\ufeffé".encode(), name="a.md").text) == ("a", "é")
    assert File(PDF).info.file_name == f"{File(PDF).info.ref}.pdf"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\a\\b.txt", "b.txt"),
        ("a\nb\u202e.txt", "a_b_.txt"),
        (".hidden", "hidden"),
        ("a] x: [b.txt", "a_ x_ _b.txt"),
        (f"{'x' * 300}.txt", f"{'x' * 116}.txt"),
        ("", ""),
    ],
)
def test_a_name_has_no_folder_and_nothing_that_could_mislead(name: str, kept: str) -> None:
    assert File(b"text", name=name).name == kept


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: File(b"", name="a.txt"), r"The file a\.txt is empty"),
        (lambda: File(bytes(MAX_FILE_BYTES + 1), name="a.bin"), "has 20,000,001 bytes, and at most 20,000,000"),
        (lambda: File("text"), "str is no file"),  # type: ignore[arg-type]
        (lambda: File(PDF, name="a.png"), "is named as image/png, and its bytes are application/pdf"),
        (lambda: File.from_base64("no base64!"), "not valid base64"),
        (lambda: File.from_base64("A" * (MAX_FILE_BYTES * 2)), "at most 20,000,000"),
        (lambda: File.from_data_uri("https://a.example/a.pdf"), "no data URI"),
        (lambda: File.from_data_uri("data:application/pdf,plain"), "no data URI"),
        (lambda: File.from_data_uri(f"data:{'x' * 300};base64,YQ=="), "no data URI"),
        (lambda: File.from_data_uri(None), "no data URI"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_file_is_refused(make: Any, why: str) -> None:
    with pytest.raises(FileError, match=why) as caught:
        make()
    assert caught.value.hint


def test_a_text_counts_by_its_length_and_a_pdf_by_a_guess() -> None:
    assert File(b"word " * 100).info.tokens == 126
    assert 0 < File(PDF * 100).info.tokens < len(PDF * 100) // 4
    assert File(b"\0").info.tokens == 0


def test_what_a_trace_says_can_be_read_again() -> None:
    adapter = TypeAdapter(FileInfo)
    info = File(PDF, name="a.pdf").info
    assert adapter.validate_json(adapter.dump_json(info)) == info
