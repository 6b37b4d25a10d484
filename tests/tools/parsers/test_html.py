"""The reader of pages by itself: any bytes give a text, and bounds hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sizes import examples

from taoloop.tools.parsers.html import read_page, read_text

URL = "https://site.test/dir/page?x=1"
MARKUP = st.lists(
    st.sampled_from(
        [
            "<p>",
            "</p>",
            "<a href=x>",
            "<a>",
            "</a>",
            "<a href='//o.test/y'>",
            "<base href=/b/>",
            "<div hidden>",
            "</div>",
            "<table>",
            "<td>",
            "<ul>",
            "<li>",
            "<b style='display:none'>",
            "<svg>",
            "<template>",
            "<!--",
            "-->",
            "<select>",
            "<base href='http://['>",
            "<a href='http://['>",
            "<a href='javascript:x'>",
            "text",
            "&amp;",
            "\x00",
            "你好",
        ]
    ),
    max_size=30,
).map(lambda parts: "".join(parts).encode())


def text_of(html: str, *, links: bool = True, max_chars: int = 1_000) -> str:
    text: str = read_page(html.encode(), charset="", url=URL, links=links, max_chars=max_chars)["text"]
    return text


@given(
    MARKUP | st.binary(max_size=200), st.booleans(), st.sampled_from(["", "gbk", "utf-16", "zlib", "no such", "x" * 99])
)
@examples(200)
def test_any_bytes_give_a_text(body: bytes, links: bool, charset: str) -> None:
    page = read_page(body, charset=charset, url=URL, links=links, max_chars=50)
    assert len(page["text"]) <= 50
    assert "()" not in page["text"]
    assert isinstance(read_text(body, charset=charset, is_html=False), str)


@pytest.mark.parametrize(
    ("link", "whole"),
    [
        ("next", " (https://site.test/dir/next)"),
        ("/a b", " (https://site.test/a b)"),
        ("//other.test/x", " (https://other.test/x)"),
        ("mailto:me@site.test", " (mailto:me@site.test)"),
        ("", ""),
        ("#here", ""),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("http://[", ""),
        ("x" * 3_000, ""),
    ],
)
def test_a_link_is_a_whole_address_or_none(link: str, whole: str) -> None:
    assert text_of(f'<p>go <a href="{link}"><b>th</b>ere</a>!') == f"go there{whole}!"
    assert text_of(f'<p>go <a href="{link}">there</a>!', links=False) == "go there!"


def test_a_page_of_many_links_is_read() -> None:  # a list of the links by a selector took half a minute
    links = "".join(f"<p>to <a href='/p{number}'>{number}</a> <a>here</a>" for number in range(3_000))
    text = text_of(
        links + "<p hidden>no<b hidden>no</b><a href='/x'>no</a></p><a hidden href='/x'>no</a>", max_chars=10**6
    )
    assert text.count("https://site.test/p") == 3_000
    assert "no" not in text


def test_a_page_may_say_where_its_links_begin() -> None:
    html = '<base href="https://other.test/b/"><a href="x">y</a>'
    assert text_of(html) == "y (https://other.test/b/x)"


def test_a_long_text_is_cut() -> None:
    page = read_page(b"<p>" + b"x" * 100, charset="", url=URL, links=True, max_chars=10)
    assert (page["text"], page["is_cut"]) == ("x" * 10, True)
