"""Parsers in a child process: what cannot be parsed says why, and costs nothing but its own parsing.

The second half tests what runs in the child, its protocol and its limits, in this process.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pypdf import PdfReader, PdfWriter
from tests.sizes import examples
from tests.tools.documents.conftest import pdf
from tests.tools.documents.office import zipped

from taoloop.tools.isolated_parser import (
    IsolatedParser,
    ParserTimeoutError,
    UnreadableFileError,
    read_page,
    read_pdf,
    read_text,
)
from taoloop.tools.parser_process import limit_memory, limit_time, serve

HTML: dict[str, Any] = {"charset": "utf-8", "url": "", "links": False, "max_chars": 1_000}
PDF = {"max_pages": 10, "max_chars": 1_000}


@pytest.fixture(scope="module")
def parser() -> Iterator[IsolatedParser]:
    with IsolatedParser(20, 2_000_000_000) as isolated:
        yield isolated


def pdf_pages(parser: IsolatedParser, data: bytes) -> list[str]:
    *pages, _ = parser.parse("pdf", data, **PDF)
    return [page["text"].strip() for page in pages]


def test_one_child_parses_one_file_after_the_other(parser: IsolatedParser) -> None:
    page = "<title>标题</title><script>no()</script><p>Hello <b>你好</b></p><p style='display:none'>hidden</p>"
    (html,) = parser.parse("html", page.encode(), **HTML)
    assert (html["title"], html["text"]) == ("标题", "Hello 你好")
    assert pdf_pages(parser, pdf("One", "Two")) == ["One", "Two"]
    (text,) = parser.parse("text", "你好，世界".encode("gb18030"), charset="gb18030", is_html=False)
    assert text == {"text": "你好，世界"}


@pytest.mark.parametrize("data", [b"no pdf", b"%PDF-1.4\ngarbage", pdf("Hello")[:200], pdf()])
def test_a_file_that_cannot_be_parsed_says_why_and_the_next_one_is_parsed(parser: IsolatedParser, data: bytes) -> None:
    with pytest.raises(UnreadableFileError) as error:
        pdf_pages(parser, data)
    assert error.value.message.startswith("it ")
    assert error.value.hint
    assert pdf_pages(parser, pdf("Hello")) == ["Hello"]


def test_a_wrong_option_is_reported_like_a_damaged_file(parser: IsolatedParser) -> None:
    with pytest.raises(UnreadableFileError, match="it is damaged"):
        list(parser.parse("html", b"<p>x", **{**HTML, "max_chars": "no number"}))


def test_a_consumer_may_stop_in_the_middle_of_a_file(parser: IsolatedParser) -> None:
    for page in parser.parse("pdf", pdf("One", "Two"), **PDF):
        assert page["text"].strip() == "One"
        break
    assert pdf_pages(parser, pdf("Three")) == ["Three"]


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_parsed() -> None:
    """The clock jumps: no time passes for the child, and it is ended in the middle of its work."""
    now = [0.0]

    def clock() -> float:
        now[0] += jump
        return now[0]

    jump = 0.0
    with IsolatedParser(20, 2_000_000_000, clock=clock) as parser:
        jump = 1_000.0
        with pytest.raises(ParserTimeoutError, match="takes more than 20 s"):
            pdf_pages(parser, pdf("Hello"))
        jump = 0.0
        assert pdf_pages(parser, pdf("Hello")) == ["Hello"]


def test_a_parser_that_needs_too_much_memory_costs_only_its_file() -> None:
    with IsolatedParser(20, 30_000_000) as parser, pytest.raises(UnreadableFileError):
        pdf_pages(parser, pdf(*["Hello"] * 3))


def test_a_child_that_dies_is_replaced() -> None:
    with IsolatedParser(20, 2_000_000_000) as parser:
        pdf_pages(parser, pdf("One"))
        child = vars(parser)["_child"]
        child.kill()
        child.wait()
        with pytest.raises(UnreadableFileError, match="crash"):
            pdf_pages(parser, pdf("Two"))
        assert pdf_pages(parser, pdf("Three")) == ["Three"]


def test_a_child_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with IsolatedParser(20, 2_000_000_000) as parser, pytest.raises(UnreadableFileError, match="did not start"):
        list(parser.parse("html", b"<p>x", **HTML))


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """Records the limits instead of setting them; the hard limit of memory is 1 GB."""
    recorded: dict[int, tuple[int, int]] = {}
    hard = {resource.RLIMIT_AS: 1 << 30}
    monkeypatch.setattr("resource.getrlimit", lambda kind: (-1, hard.get(kind, resource.RLIM_INFINITY)))
    monkeypatch.setattr("resource.setrlimit", recorded.__setitem__)
    return recorded


def replies(*requests: tuple[dict[str, Any], bytes]) -> list[dict[str, Any]]:
    sent = b"".join(
        json.dumps({"bytes": len(data), "seconds": 9, **head}).encode() + b"\n" + data for head, data in requests
    )
    written = io.BytesIO()
    serve(io.BytesIO(sent), written, 1 << 34)
    return [json.loads(line) for line in written.getvalue().splitlines()]


@pytest.mark.usefixtures("limits")
def test_each_request_ends_with_an_end_or_an_error() -> None:
    options = {"max_pages": 1, "max_chars": 10}
    assert replies(
        ({"kind": "pdf", "options": options}, pdf("Hi")), ({"kind": "pdf", "options": options}, b"no pdf")
    ) == [
        {"page": 1, "text": "Hi"},
        {"notes": []},
        {"end": True},
        {"error": "it is not a PDF", "hint": "Correct its suffix, or save it as PDF.", "is_transient": False},
    ]


@pytest.mark.usefixtures("limits")
def test_a_missing_library_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pypdf", None)
    (error,) = replies(({"kind": "pdf", "options": {"max_pages": 1, "max_chars": 10}}, b"%PDF-"))
    assert error["hint"] == "pip install 'taoloop[documents]'."
    assert error["is_transient"]


@pytest.mark.usefixtures("limits")
def test_running_out_of_memory_is_an_error_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("taoloop.tools.parser_process.read_pdf", exhaust)
    (error,) = replies(({"kind": "pdf", "options": {}}, b"x"))
    assert error["error"] == "parsing it takes too much memory"


def test_memory_is_limited_at_most_to_what_is_allowed_already(limits: dict[int, tuple[int, int]]) -> None:
    limit_memory(1 << 20)
    assert limits == {resource.RLIMIT_AS: (1 << 20, 1 << 20), resource.RLIMIT_CORE: (0, 0)}
    limit_memory(1 << 40)
    assert limits[resource.RLIMIT_AS] == (1 << 30, 1 << 30)


def test_processor_time_is_limited_for_each_file(limits: dict[int, tuple[int, int]]) -> None:
    limit_time(10)
    soft, hard = limits[resource.RLIMIT_CPU]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    assert 11 <= soft <= usage.ru_utime + usage.ru_stime + 12
    assert hard == resource.RLIM_INFINITY, "so that the next file gets time, too"


@pytest.mark.parametrize("error", [ValueError("current limit exceeds maximum limit"), OSError(22, "Invalid argument")])
def test_a_system_that_refuses_a_limit_is_tolerated(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_kind: int, _limits: tuple[int, int]) -> None:
        raise error

    monkeypatch.setattr("resource.setrlimit", refuse)
    limit_memory(1 << 30)
    limit_time(10)


def test_a_system_without_limits_is_tolerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resource", None)
    limit_memory(1 << 30)
    limit_time(10)


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


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize(
    ("kind", "module", "error", "hint"),
    [
        ("docx", "docx", "python-docx, which reads DOCX, is not installed", "pip install 'taoloop[office]'."),
        ("xlsx", "openpyxl", "openpyxl, which reads XLSX, is not installed", "pip install 'taoloop[office]'."),
        ("pptx", "pptx", "python-pptx, which reads PPTX, is not installed", "pip install 'taoloop[office]'."),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, kind: str, module: str, error: str, hint: str
) -> None:
    for name in [name for name in sys.modules if name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    options = {"block_chars": 100, "max_chars": 100, "max_pages": 1}
    (reply,) = replies(({"kind": kind, "options": options}, zipped({"a": b"b"})))
    assert reply == {"error": error, "hint": hint, "is_transient": True}
