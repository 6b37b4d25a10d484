"""S4-42, S3-42: from an answer's citation back to the file: its bytes, its line, its page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pypdf import PdfReader
from tests.sizes import examples
from tests.tools.documents.conftest import folder_of

from taoloop import Agent, ScriptedModel
from taoloop.core.events import Finished
from taoloop.errors import ToolError
from taoloop.tools.documents import document_tools
from taoloop.tools.documents.citations import locate
from taoloop.tools.documents.index import Index, find_passages
from taoloop.tools.documents.readers import read_document
from taoloop.tools.parsers.isolated_parser import IsolatedParser, UnreadableFileError


def cite(root: Path, query: str) -> str:
    tools = document_tools(folder_of(root)).tools
    found = tools[0](query, 1)
    return str(found[0]["cite"])


def test_a_citation_of_an_answer_leads_back_to_the_bytes_of_the_file(root: Path) -> None:  # S4-42 S3-42
    """Search, answer, recorded event, citation, file, bytes: the whole way."""
    tools = document_tools(folder_of(root)).tools
    name = cite(root, "合同通知期")
    model = ScriptedModel(
        [
            {"tool_calls": [{"name": "search_documents", "args": {"query": "合同通知期", "limit": 1}}]},
            f"通知期为三个月 {name}。",
        ]
    )
    trace = asyncio.run(Agent(model=model, tools=list(tools)).run("通知期多长？")).trace
    (finished,) = (event.fact for event in trace.events if isinstance(event.fact, Finished))
    assert finished.citations == (name.strip("[]"),)
    place = locate(folder_of(root), finished.citations[0])
    assert (place.file, place.line, place.page, place.encoding) == ("contract.txt", 1, 0, "gb18030")
    assert place.path.read_bytes().decode("gb18030")[place.start : place.end] == place.text
    assert "三个月".encode("gbk") in place.path.read_bytes().split(b"\n\n")[0]
    assert "三个月" in place.text


def test_a_citation_of_markdown_leads_to_its_line_and_heading(root: Path) -> None:
    place = locate(folder_of(root), cite(root, "trains before planes"))
    lines = (root / "handbook.md").read_text(encoding="utf-8").splitlines()
    assert lines[place.line - 1] == "## Travel"
    assert place.heading == ("Handbook", "Travel")
    assert str(place) == f"{root / 'handbook.md'}:{place.line}"


def test_a_citation_of_html_leads_to_the_line_of_the_source(root: Path) -> None:
    place = locate(folder_of(root), cite(root, "coffee kitchen"))
    assert place.heading == ("Office rules",)
    assert "Office rules" in (root / "office" / "rules.html").read_text().splitlines()[place.line - 1]


def test_a_citation_of_a_pdf_leads_to_its_page(root: Path) -> None:
    place = locate(folder_of(root), cite(root, "autumn costs"))
    assert (place.page, place.line) == (2, 0)
    assert str(place) == f"{root / 'office' / 'report.pdf'}, page 2"
    text = PdfReader(place.path).pages[place.page - 1].extract_text()
    assert text[place.start : place.end] == place.text == "Costs fell in autumn"


@pytest.mark.parametrize("form", ["[{0}]", "{0}", "{1}", " 【{0}】 ", "[doc: {1}]", "DOC:{1}"])
def test_a_citation_may_be_written_in_many_ways(texts: Path, form: str) -> None:
    name = cite(texts, "notice period").strip("[]")
    assert locate(folder_of(texts), form.format(name, name.removeprefix("doc:"))).file == "handbook.md"


@pytest.mark.parametrize(
    "name", ["", "doc:", "[doc:000000000000]", "nonsense", "'; DROP TABLE passage", "\0", "doc:" * 99]
)
def test_what_is_no_citation_is_refused(texts: Path, name: str) -> None:
    document_tools(folder_of(texts))
    with pytest.raises(ToolError) as error:
        locate(folder_of(texts), name)
    assert error.value.code == "no_passage"


def test_a_file_that_changed_or_went_is_told(texts: Path) -> None:
    name = cite(texts, "notice period")
    path = texts / "handbook.md"
    whole = path.read_text(encoding="utf-8")
    path.write_text("Something else.")
    with pytest.raises(ToolError, match=r"handbook\.md: the file has changed") as error:
        locate(folder_of(texts), name)
    assert error.value.code == "document_changed"
    path.write_text("# Another beginning\n\ntext\n\n" + whole, encoding="utf-8")
    assert locate(folder_of(texts), name).line > 1
    path.unlink()
    with pytest.raises(ToolError, match="the file is gone"):
        locate(folder_of(texts), name)
    path.symlink_to(texts / "contract.txt")
    with pytest.raises(ToolError) as refused:
        locate(folder_of(texts), name)
    assert refused.value.code == "document_unreadable"


def test_every_passage_of_the_index_stands_in_its_file(root: Path) -> None:
    settings = folder_of(root)
    document_tools(settings)
    with Index(settings).open() as database:
        everything = find_passages(database, "", ())
    assert len(everything) > 5
    for one in everything:
        place = locate(settings, one.id)
        assert (place.start, place.end, place.line, place.page) == (one.start, one.end, one.line, one.page)
        assert place.text == one.text


@given(
    text=st.text(max_size=1_500).map(lambda text: f"# A\n\n{text}"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030"]),
    name=st.sampled_from(["a.txt", "a.md"]),
)
@examples(200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_offset_gives_its_text_back(text: str, encoding: str, name: str, tmp_path: Path) -> None:
    data = text.encode(encoding, "replace")
    with IsolatedParser(1, 1_000_000) as foreign:
        try:
            document = read_document(name, data, folder_of(tmp_path, passage_chars=100), foreign)
        except UnreadableFileError:
            return
    decoded = data.decode(document.encoding, "replace")
    for one in document.passages:
        assert decoded[one.start : one.end] == one.text
        before = decoded[: one.start].replace("\r\n", "\n").replace("\r", "\n")
        assert one.line == 1 + before.count("\n")
    assert len({one.id for one in document.passages}) == len(document.passages)
