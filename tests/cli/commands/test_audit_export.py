"""`tao export`: JSON lines that say everything, and pages whose texts do nothing."""

import json
import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser

from tests.shell import Shell, call

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\u202e```\n# [x](javascript:1)"


def stored(tao: Shell, *options: str, task: str = "what is 6*7?") -> tuple[str, str]:
    model = tao.script(call("calculator", expression="6*7"), f"42 {HOSTILE}")
    ended = tao("run", task, "--model", model, "--json", *options)
    return ended.events[0]["run_id"], ended.out


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_json_lines_are_the_stored_events_with_their_hashes(tao: Shell) -> None:
    run_id, printed = stored(tao)
    lines = tao("export", run_id, code=0).events
    assert all(re.fullmatch("[0-9a-f]{64}", line.pop("hash")) for line in lines)
    assert lines == [json.loads(line) for line in printed.splitlines()]


def test_an_export_can_be_the_model_of_another_run(tao: Shell) -> None:
    run_id, _ = stored(tao)
    tao("export", run_id, "-o", "run.jsonl", code=0)
    assert "42" in tao("run", "again", "--model", "replay:run.jsonl", code=0).out


def test_the_page_is_whole_and_every_text_in_it_inert(tao: Shell) -> None:
    run_id, _ = stored(tao, task=f"what is 6*7? {HOSTILE}")
    tao("export", run_id, "-o", "run.html", code=0)
    page = (tao.folder / "run.html").read_text(encoding="utf-8")
    found = Tags(page)
    assert not found.tags & {"script", "img", "a", "iframe", "link", "form", "object", "svg"}
    assert not {name for name in found.attributes if name.startswith("on")} | (found.attributes & {"src", "href"})
    assert "default-src 'none'" in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page
    for text in (run_id, "calculator", "6*7", "result=42", "completed", "allowed", "As it was written"):
        assert text.replace("result=42", "42") in page
    assert (tao.folder / "run.html").stat().st_mode & 0o077 == 0


def test_the_page_speaks_the_language_of_the_run(tao: Shell) -> None:
    tao("run", "北京现在几点?")
    page = tao("export", "last", "--format", "html", code=0).out
    assert '<html lang="zh-CN">' in page
    assert "运行报告" in page
    assert "Run report" not in page


def test_a_text_for_people_cannot_leave_its_fence(tao: Shell) -> None:
    run_id, _ = stored(tao)
    text = tao("export", run_id, "--format", "md", code=0).out
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script>" in text
    assert "<script>" not in outside
    assert "javascript:1" not in outside


def test_an_edited_run_is_written_out_and_says_so(tao: Shell) -> None:
    run_id, _ = stored(tao)
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection:
        connection.execute("UPDATE event SET body = replace(body, '6*7', '6*8') WHERE seq = 2")
        connection.commit()
    ended = tao("export", run_id, "--format", "html", code=12)
    assert "NOT as it was written" in ended.out
    assert "event 2" in ended.one_line
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection:
        connection.execute("UPDATE event SET body = 'no json' WHERE seq = 2")
        connection.commit()
    lines = tao("export", run_id, code=12).events
    assert lines[2]["stored_body"] == "no json"
    assert len(lines) == 6
    assert "jsonl" in tao("export", run_id, "--format", "html", code=11).one_line


def test_a_file_that_cannot_be_written_is_told(tao: Shell) -> None:
    run_id, _ = stored(tao)
    assert "nowhere" in tao("export", run_id, "-o", "nowhere/run.jsonl", code=1).one_line
