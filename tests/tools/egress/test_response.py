"""What the headers of a response say about its body."""

from __future__ import annotations

import pytest

from taoloop.tools.egress import EgressResponse


@pytest.mark.parametrize(
    ("content_type", "media_type", "charset"),
    [
        ('Text/HTML; Charset="GBK"; x=y', "text/html", "gbk"),
        ("text/plain;charset = utf-8", "text/plain", "utf-8"),
        ("application/json, text/html; charset=ascii", "application/json", "ascii"),
        ("", "", ""),
    ],
)
def test_a_content_type_has_a_media_type_and_a_charset(content_type: str, media_type: str, charset: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    response = EgressResponse(status=200, headers=headers, body=b"", url="https://example.com/")
    assert (response.media_type, response.charset) == (media_type, charset)


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("北京".encode("gbk"), "gbk", "北京"),
        ("\ufeffa".encode(), "", "a"),
        ("a".encode("utf-16"), "", "a"),
        ("ü".encode("latin-1"), "latin-1", "ü"),
        (b"\xff", "", "\ufffd"),
        (b"a", "nonsense", "a"),
        (b"6162", "hex", "6162"),
    ],
)
def test_a_body_is_read_in_its_charset(body: bytes, charset: str, text: str) -> None:
    headers = {"content-type": f"text/plain; charset={charset}"} if charset else {}
    assert EgressResponse(status=200, headers=headers, body=body, url="https://example.com/").text == text
