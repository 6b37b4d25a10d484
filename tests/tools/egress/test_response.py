"""What the headers of a response say about its body."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import httpx2
import pytest
from hypothesis import given, strategies as st
from tests.sizes import examples

from taoloop.errors import EgressFailed
from taoloop.tools.egress import EgressResponse
from taoloop.tools.egress.response import decompress


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


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, body: bytes, size: int) -> None:
        self._pieces = [body[start : start + size] for start in range(0, len(body), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def unpack(coding: str, body: bytes, size: int = 1_000) -> list[bytes]:
    response = httpx2.Response(200, headers={"Content-Encoding": coding}, stream=Pieces(body, size))

    async def read() -> list[bytes]:
        return [piece async for piece in decompress(response, "x.test:80")]

    return asyncio.run(read())


def raw_deflate(body: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(body) + made.flush()


@given(st.binary(max_size=300), st.integers(1, 50), st.sampled_from(["gzip", "x-gzip", "deflate", "raw", "two", ""]))
@examples(150)
def test_what_was_packed_comes_back_whole_in_whatever_pieces(body: bytes, size: int, how: str) -> None:
    packed = {
        "gzip": ("GZIP", gzip.compress(body)),
        "x-gzip": ("x-gzip", gzip.compress(body)),
        "deflate": ("deflate", zlib.compress(body)),
        "raw": ("deflate", raw_deflate(body)),
        "two": ("deflate, gzip", gzip.compress(zlib.compress(body))),
        "": ("identity", body),
    }
    assert b"".join(unpack(*packed[how], size)) == body


@given(
    st.binary(min_size=1, max_size=300), st.integers(1, 50), st.integers(1, 20), st.sampled_from(["gzip", "deflate"])
)
@examples(150)
def test_a_part_is_never_given_for_the_whole(body: bytes, size: int, missing: int, coding: str) -> None:
    packed = gzip.compress(body) if coding == "gzip" else zlib.compress(body)
    cut = packed[: max(1, len(packed) - missing)]
    with pytest.raises(EgressFailed, match="is broken") as caught:
        unpack(coding, cut, size)
    assert (caught.value.code, caught.value.retryable) == ("http_broken", True)


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_members_follow_one_another_and_what_is_none_is_left_out(size: int) -> None:
    two = gzip.compress(b"hello ") + gzip.compress(b"world")
    for after in (b"", bytes(100), b"junk junk", b"\x1f"):
        assert b"".join(unpack("gzip", two + after, size)) == b"hello world"
    assert b"".join(unpack("deflate", zlib.compress(b"hello") + b"junk", size)) == b"hello"


def test_a_bomb_comes_in_bounded_pieces_and_whole() -> None:
    pieces = unpack("gzip, gzip", gzip.compress(gzip.compress(bytes(10_000_000))))
    assert max(map(len, pieces)) <= 1 << 20
    assert sum(map(len, pieces)) == 10_000_000


@pytest.mark.parametrize("body", [b"no gzip at all", b"\x1f\x8b\x08junk-junk-junk", b"\x1f"])
def test_what_is_not_what_it_says_is_broken(body: bytes) -> None:
    with pytest.raises(EgressFailed, match="is broken"):
        unpack("gzip", body)


def test_nothing_is_nothing() -> None:
    assert unpack("gzip", b"") == []
