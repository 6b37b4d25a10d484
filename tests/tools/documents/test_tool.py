"""S3-42: the tools `search_documents` and `read_passage`: cards, results, and what is wrong with a folder."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, strategies as st
from pypdf import PdfReader
from tests.sizes import examples
from tests.tools.documents.conftest import folder_of

from taoloop import Agent, ScriptedModel
from taoloop.core.cards.card_lint import lint
from taoloop.core.events import Finished
from taoloop.errors import ConfigError, InvalidArguments, ToolError, ToolSourceError
from taoloop.testing.fakes import FakeEmbedder
from taoloop.tools.documents import DocumentFolder, document_tools
from taoloop.tools.documents.index import Index, find_passages
from taoloop.tools.documents.readers import read_document
from taoloop.tools.documents.tool import DocumentSearch, load_document_tools, locate
from taoloop.tools.isolated_parser import IsolatedParser, UnreadableFileError
from taoloop.tools.tool import Tool, ToolContext


def run(tool: Tool, **args: Any) -> Any:
    """As the executor does it: arguments judged, result judged and written."""
    output = tool.render(tool.invoke(tool.prepare(args).values, ToolContext()))
    return json.loads(output.text)


class _Nameless:
    """An embedding model without a name."""

    name = None

    def embed(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError(texts)


def tools_of(root: Path, **more: Any) -> tuple[Tool, ...]:
    return document_tools(folder_of(root, **more)).tools


def test_the_cards_are_complete_and_read_only(texts: Path) -> None:
    tools = tools_of(texts)
    assert [tool.name for tool in tools] == ["search_documents", "read_passage"]
    for tool in tools:
        assert lint(tool.card) == ()
        assert tool.card.tier == "read"
        assert tool.card.egress is False


def test_two_folders_have_tools_of_their_own(texts: Path) -> None:
    tools = tools_of(texts, name="handbook", about="the rules of the house.")
    assert [tool.name for tool in tools] == ["handbook_search_documents", "handbook_read_passage"]
    assert "documents about the rules of the house," in tools[0].card.purpose
    assert "handbook_read_passage" in tools[0].card.avoid_when


def test_a_search_gives_passages_that_can_be_cited(root: Path) -> None:  # S3-42
    search, _ = tools_of(root)
    (found,) = run(search, query="notice period", limit=1)
    assert found["cite"].startswith("[doc:")
    assert found["file"] == "handbook.md"
    assert found["heading"] == "Handbook > Leaving > Notice"
    assert "three months" in found["text"]
    assert found["line"] > 1
    (found,) = run(search, query="autumn", limit=1)
    assert (found["file"], found["page"]) == ("office/report.pdf", 2)
    assert "line" not in found
    assert run(search, query="zebra") == []


def test_a_passage_is_read_with_its_neighbours(root: Path) -> None:
    search, read = tools_of(root)
    (found,) = run(search, query="notice period", limit=1)
    around = run(read, id=found["cite"], around=1)
    assert [one["file"] for one in around] == ["handbook.md"] * 3
    assert around[1]["cite"] == found["cite"]
    assert [one["text"] for one in run(read, id=found["cite"], around=0)] == [found["text"]]
    with pytest.raises(ToolError) as error:
        run(read, id="doc:000000000000")
    assert error.value.code == "no_passage"


@pytest.mark.parametrize(
    "args", [{}, {"query": ""}, {"query": "a", "limit": 0}, {"query": "a", "limit": 21}, {"query": 1}]
)
def test_arguments_are_judged_first(texts: Path, args: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        tools_of(texts)[0].prepare(args)


def test_a_search_sees_new_files_after_a_while(texts: Path) -> None:
    now = [0.0]
    documents = DocumentSearch(folder_of(texts, refresh_s=30), clock=lambda: now[0])
    documents.refresh()
    (texts / "new.txt").write_text("zebra")
    assert documents.find("zebra", 1) == []
    now[0] = 31.0
    assert documents.find("zebra", 1)[0]["file"] == "new.txt"


def test_a_folder_that_goes_away_is_still_searched(texts: Path, tmp_path: Path) -> None:
    now = [0.0]
    documents = DocumentSearch(folder_of(texts, refresh_s=30), clock=lambda: now[0])
    documents.refresh()
    texts.rename(tmp_path / "elsewhere")
    now[0] = 31.0
    assert documents.find("notice period", 1)[0]["file"] == "handbook.md"


def test_bad_documents_are_problems_and_the_tools_are_there(root: Path) -> None:
    (root / "bad.pdf").write_bytes(b"no pdf")
    loaded = document_tools(folder_of(root))
    (problem,) = loaded.problems
    assert str(problem).startswith(f"{root}/bad.pdf: It is not a PDF.")
    assert run(loaded.tools[0], query="notice period")[0]["file"] == "handbook.md"


def test_a_folder_that_is_none_is_refused(tmp_path: Path, texts: Path) -> None:
    with pytest.raises(ToolSourceError, match="there is no such folder"):
        document_tools(folder_of(tmp_path / "nothing"))
    with pytest.raises(ToolSourceError, match="this is not a folder"):
        document_tools(folder_of(texts / "handbook.md"))
    with pytest.raises(ToolSourceError, match="this folder cannot be accessed: File name too long"):
        document_tools(DocumentFolder(path=tmp_path / ("x" * 300), index=tmp_path / "index.db"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_refused(texts: Path) -> None:
    texts.chmod(0)
    try:
        with pytest.raises(ToolSourceError):
            document_tools(folder_of(texts))
    finally:
        texts.chmod(0o700)


def test_an_index_that_cannot_be_used_is_refused_with_its_path(texts: Path, tmp_path: Path) -> None:
    (tmp_path / "index.db").write_text("something else " * 100)
    with pytest.raises(ToolSourceError, match=r"index\.db: the index cannot be used"):
        document_tools(folder_of(texts))
    with pytest.raises(ToolSourceError, match="the index cannot be used"):
        document_tools(DocumentFolder(path=texts, index=tmp_path))


def test_an_index_that_another_program_writes_is_searched_as_it_is(texts: Path, tmp_path: Path) -> None:
    document_tools(folder_of(texts))
    (texts / "new.txt").write_text("zebra")
    other = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        loaded = load_document_tools(DocumentSearch(folder_of(texts), busy_s=0.05))
        assert any("locked" in problem.message for problem in loaded.problems)
        assert run(loaded.tools[0], query="notice period")[0]["file"] == "handbook.md"
    finally:
        other.close()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("path", ""),
        ("path", "a\0b"),
        ("path", 3),
        ("path", "~no-such-user/documents"),
        ("index", ""),
        ("index", "a\0b"),
        ("index", "~no-such-user/index.db"),
        ("name", "my folder"),
        ("name", "x" * 40),
        ("include", "*.md"),
        ("exclude", [1]),
        ("include", 3),
        ("include", ["*" * 20]),
        ("encoding", "nonsense"),
        ("encoding", "hex"),
        ("embedder", "a-model"),
        ("embedder", _Nameless()),
        ("passage_chars", 10),
        ("max_files", 0),
        ("passage_chars", 100.5),
        ("max_file_bytes", 10**30),
        ("max_memory_bytes", float("inf")),
        ("max_file_s", float("inf")),
        ("max_file_s", float("nan")),
        ("max_pages", True),
        ("refresh_s", -1),
        ("refresh_s", "soon"),
    ],
)
def test_settings_that_cannot_be_used_name_their_field(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"DocumentFolder has {field} "):
        DocumentFolder(**{"path": "documents", field: value})


def test_the_index_lies_in_the_cache_folder_if_nobody_says_otherwise(tmp_path: Path) -> None:
    one, other = (DocumentFolder(path=tmp_path / name).index_file for name in ("a", "b"))
    assert one.parent == other.parent
    assert one != other
    assert one == DocumentFolder(path=tmp_path / "." / "a").index_file


def test_text_and_markdown_need_no_extra(texts: Path) -> None:
    code = """
import sys
for name in ("pypdf", "resiliparse", "httpx2"):
    sys.modules[name] = None
from pathlib import Path
from taoloop.tools.documents import DocumentFolder, document_tools
root = Path(sys.argv[1])
loaded = document_tools(DocumentFolder(path=root, index=root.parent / "index.db"))
assert loaded.problems == ()
print(loaded.tools[0]("notice period")[0]["file"])
"""
    done = subprocess.run([sys.executable, "-c", code, str(texts)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("handbook.md\n", "")


def test_a_deleted_index_is_made_anew_by_the_next_search(texts: Path, tmp_path: Path) -> None:
    documents = DocumentSearch(folder_of(texts, refresh_s=0))
    documents.refresh()
    assert documents.find("notice period", 1)
    for path in tmp_path.glob("index.db*"):
        path.unlink()
    (texts / "handbook.md").write_text("The notice period is gone. Zebra.")
    assert documents.find("zebra", 1)[0]["file"] == "handbook.md"


def test_what_is_excluded_is_not_shown_though_another_has_read_it(texts: Path) -> None:
    document_tools(folder_of(texts))
    everything = DocumentSearch(folder_of(texts))
    fewer = DocumentSearch(folder_of(texts, exclude=("handbook.md",)))
    (found,) = everything.find("notice period", 1)
    assert fewer.find("notice period", 5) == []
    with pytest.raises(ToolError) as error:
        fewer.read(found["cite"], 1)
    assert error.value.code == "no_passage"


def test_other_patterns_and_models_have_indexes_of_their_own(texts: Path) -> None:
    given: list[dict[str, Any]] = [
        {},
        {"include": ("*.md",)},
        {"exclude": ("*.md",)},
        {"embedder": FakeEmbedder(name="a")},
        {"embedder": FakeEmbedder(name="b")},
    ]
    assert len({DocumentFolder(path=texts, **one).index_file for one in given}) == len(given)


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
