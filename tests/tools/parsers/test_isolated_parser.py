"""Parsers in a child process: what cannot be parsed says why, and costs nothing but its own parsing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.tools.documents.conftest import pdf

from taoloop.tools.parsers.isolated_parser import IsolatedParser, ParserTimeoutError, UnreadableFileError

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
