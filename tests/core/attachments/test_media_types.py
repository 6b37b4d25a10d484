"""What a file is, by its bytes, and whether its name says the same."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.pictures import PDF, gif, jpeg, png, webp

from taoloop.core.attachments.media_types import is_text, media_type_of
from taoloop.errors import FileError

_OFFICE = "application/vnd.openxmlformats-officedocument."
SAMPLES = {
    "image/png": png(),
    "image/jpeg": jpeg(2, 2),
    "image/gif": gif(2, 2),
    "image/webp": webp(b"VP8L", 2, 2),
    "application/pdf": PDF,
    "application/zip": b"PK\x03\x04rest",
    "text/plain": "Grüße, 你好\n".encode(),
    "application/octet-stream": b"\x7fELF\x02\x01\x01\0",
}


@pytest.mark.parametrize(("media_type", "data"), SAMPLES.items())
def test_a_type_is_read_from_the_bytes_without_a_name(media_type: str, data: bytes) -> None:
    assert media_type_of(data) == media_type_of(data, "README") == media_type_of(data, "a.unknown") == media_type


@pytest.mark.parametrize(
    ("data", "name", "media_type"),
    [
        (SAMPLES["text/plain"], "a.CSV", "text/csv"),
        (SAMPLES["text/plain"], "a.md", "text/markdown"),
        (b'{"a": 1}', "a.json", "application/json"),
        (b"\xef\xbb\xbfa", "a.txt", "text/plain"),
        (SAMPLES["application/zip"], "a.docx", f"{_OFFICE}wordprocessingml.document"),
        (SAMPLES["image/jpeg"], "a.png", "image/jpeg"),
        (b"<svg/>", "a.svg", "text/plain"),
    ],
)
def test_a_name_only_says_more_of_the_same_kind(data: bytes, name: str, media_type: str) -> None:
    assert media_type_of(data, name) == media_type


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (PDF, "a.png"),
        (png(), "a.pdf"),
        (png(), "a.txt"),
        (b"MZ\x90\0", "a.pdf"),
        (b"MZ\x90\0", "a.txt"),
        (b"hello", "a.docx"),
        (b"\xff\xfeh\0i\0", "a.txt"),
    ],
)
def test_a_name_of_another_kind_is_refused(data: bytes, name: str) -> None:
    with pytest.raises(FileError, match=f"The file {name} is named as"):
        media_type_of(data, name)


@given(data=st.binary(max_size=64), start=st.sampled_from([b"", *(sample[:12] for sample in SAMPLES.values())]))
def test_any_bytes_have_one_type_that_does_not_depend_on_an_unknown_name(data: bytes, start: bytes) -> None:
    found = media_type_of(start + data)
    assert found in SAMPLES
    assert media_type_of(start + data, "a.unknown") == found
    if is_text(found):
        assert "\0" not in (start + data).decode("utf-8-sig")


@given(data=st.binary(max_size=64), extension=st.sampled_from(["png", "pdf", "txt", "csv", "zip", "docx", "bin"]))
def test_a_known_name_agrees_with_the_bytes_or_is_refused(data: bytes, extension: str) -> None:
    plain = media_type_of(data)
    try:
        named = media_type_of(data, f"a.{extension}")
    except FileError:
        return
    assert is_text(named) == is_text(plain)
    assert named.startswith("image/") == plain.startswith("image/")
