from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pictures import png
from tests.scripting import call as scripted

from taoloop import Agent, Image, ScriptedModel
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.errors import ImageError, ToolError
from taoloop.models import Reply
from taoloop.runtime.after.replay import replay
from taoloop.runtime.approvals.request import approval_request
from taoloop.tools.builtin.files import file_tools
from taoloop.tools.tool import Tool, ToolContext
from taoloop.tools.workspace.workspace import Workspace, WorkspaceLimits


@pytest.fixture
def tools(workspace: Workspace) -> dict[str, Tool]:
    return file_tools(workspace)


def call(tool: Tool, key: str = "by-hand", **args: Any) -> Any:
    result = tool.invoke(tool.prepare(args).values, ToolContext(idempotency_key=key))
    tool.render(result)  # fits its output schema
    return result


def test_read_file_gives_ok_and_content(tools: dict[str, Tool]) -> None:
    """S4-32."""
    assert call(tools["read_file"], path="b.md") == {"ok": True, "content": "你好\n"}


def test_read_file_looks_at_an_image(tools: dict[str, Tool], root: Path) -> None:
    (root / "cat.txt").write_bytes(png(4, 4))
    read_file = tools["read_file"]
    result = call(read_file, path="cat.txt")
    assert result == {"ok": True, "content": Image(png(4, 4), alt="cat.txt")}
    output = read_file.render(result)
    assert output.text.startswith('{"ok":true,"content":"[image png 4×4, 73 B, img_')
    assert output.images == (result["content"],)
    assert read_file.card.output_schema is not None


def test_read_file_refuses_an_image_that_is_broken_or_too_large(root: Path) -> None:
    small = Workspace(root, limits=WorkspaceLimits(image_bytes=100)).open()
    (root / "large.png").write_bytes(png(400, 400))
    (root / "broken.png").write_bytes(png()[:16])
    with pytest.raises(ToolError, match="at most 100") as refused:
        small.read("large.png")
    assert refused.value.code == "too_large"
    with pytest.raises(ImageError, match="broken"):
        small.read("broken.png")


def test_write_file_makes_folders_and_says_what_it_did(tools: dict[str, Tool], root: Path) -> None:
    """S4-33, S4-34: a small game in one page."""
    result = call(tools["write_file"], path="games/snake/index.html", content="<!doctype html>蛇")
    assert result["ok"] is True
    assert "18 bytes" in result["message"]
    assert (root / "games/snake/index.html").read_text() == "<!doctype html>蛇"
    assert call(tools["read_file"], path="games/snake/index.html")["content"] == "<!doctype html>蛇"


def test_s4_55_an_overwrite_has_a_tier_and_a_way_back(tools: dict[str, Tool]) -> None:
    """S4-55: tier, kept content, rollback, and a rollback of the rollback."""
    assert tools["write_file"].card.tier == "write"
    assert tools["write_file"].card.compensation == "restore_file"
    written = call(tools["write_file"], "k1", path="b.md", content="new")
    assert "previous version (7 bytes) is kept as backup k1" in written["message"]
    restored = call(tools["restore_file"], "k2", path="b.md", backup=written["backup"])
    assert call(tools["read_file"], path="b.md")["content"] == "你好\n"
    call(tools["restore_file"], "k3", path="b.md", backup=restored["backup"])
    assert call(tools["read_file"], path="b.md")["content"] == "new"


def test_s4_55_the_rollback_of_a_new_file_takes_it_away(tools: dict[str, Tool], root: Path) -> None:
    """S4-55."""
    call(tools["write_file"], "k1", path="x/new.txt", content="new")
    for _attempt in range(2):
        assert "is gone" in call(tools["restore_file"], "k2", path="x/new.txt", backup="k1")["message"]
    assert not (root / "x/new.txt").exists()


def test_the_same_key_writes_once(tools: dict[str, Tool], root: Path) -> None:
    first = call(tools["write_file"], "k1", path="b.md", content="new")
    (root / "b.md").write_text("edited by a person since")
    assert call(tools["write_file"], "k1", path="b.md", content="new") == first
    assert (root / "b.md").read_text() == "edited by a person since"
    assert (root / ".taoloop/backup/k1/b.md").read_text() == "你好\n"


def test_the_same_key_finishes_what_a_crash_left(tools: dict[str, Tool], root: Path) -> None:
    """The crash came after the record and before the rename: the old file is still there."""
    call(tools["write_file"], "k1", path="b.md", content="new")
    (root / "b.md").write_text("你好\n")
    call(tools["write_file"], "k1", path="b.md", content="new")
    assert (root / "b.md").read_text() == "new"
    assert (root / ".taoloop/backup/k1/b.md").read_text() == "你好\n"


def test_a_key_of_another_write_is_refused(tools: dict[str, Tool]) -> None:
    call(tools["write_file"], "k1", path="b.md", content="new")
    with pytest.raises(ToolError) as caught:
        call(tools["write_file"], "k1", path="b.md", content="other")
    assert caught.value.code == "key_reused"


@pytest.mark.parametrize("key", ["../../x", "run/1", "a.json", "键", "x" * 500, ""])
def test_a_key_never_leaves_the_backup_folder(tools: dict[str, Tool], root: Path, key: str) -> None:
    call(tools["write_file"], key, path="b.md", content="new")
    assert {one.name for one in root.iterdir()} == {".taoloop", "b.md", "notes"}
    assert [one.name for one in (root / ".taoloop").iterdir()] == ["backup"]


def test_calls_by_hand_share_no_key(tools: dict[str, Tool]) -> None:
    for content in ("one", "two", "one"):
        call(tools["write_file"], path="b.md", content=content)
        assert call(tools["read_file"], path="b.md")["content"] == content


def test_a_file_changed_since_is_not_restored(tools: dict[str, Tool], root: Path) -> None:
    call(tools["write_file"], "k1", path="b.md", content="new")
    (root / "b.md").write_text("edited")
    with pytest.raises(ToolError) as caught:
        call(tools["restore_file"], "k2", path="b.md", backup="k1")
    assert caught.value.code == "changed_since"
    for path, backup in (("notes/a.txt", "k1"), ("b.md", "k9"), ("b.md", "../k1")):
        with pytest.raises(ToolError) as missing:
            call(tools["restore_file"], path=path, backup=backup)
        assert missing.value.code == "no_backup"


def test_the_backup_folder_is_out_of_reach(tools: dict[str, Tool]) -> None:
    call(tools["write_file"], "k1", path="b.md", content="new")
    assert [one["path"] for one in call(tools["list_files"])["entries"]] == ["b.md", "notes"]
    assert call(tools["search_files"], text="你好")["matches"] == []
    for name, args in (
        ("list_files", {"path": ".taoloop"}),
        ("read_file", {"path": "./.taoloop/backup/k1/b.md"}),
    ):
        with pytest.raises(ToolError) as caught:
            call(tools[name], **args)
        assert caught.value.code == "path_refused"


def test_list_files_is_sorted_and_has_sizes(tools: dict[str, Tool]) -> None:
    assert call(tools["list_files"]) == {
        "ok": True,
        "entries": [{"path": "b.md", "kind": "file", "bytes": 7}, {"path": "notes", "kind": "folder"}],
        "left_out": 0,
        "complete": True,
    }
    deep = call(tools["list_files"], pattern="**/*.txt")["entries"]
    assert [one["path"] for one in deep] == ["notes/a.txt"]


def test_search_files_gives_lines(tools: dict[str, Tool], root: Path) -> None:
    (root / "binary").write_bytes(b"world\0")
    found = call(tools["search_files"], text="world")
    assert found["matches"] == [{"path": "notes/a.txt", "line": 2, "text": "world"}]
    assert (found["files_searched"], found["files_skipped"], found["complete"]) == (2, 1, True)
    assert call(tools["search_files"], text="world", path="notes/a.txt")["matches"] == found["matches"]
    assert call(tools["search_files"], text="world", pattern="*.md")["matches"] == []


def test_a_missing_argument_never_reaches_the_disk(tools: dict[str, Tool]) -> None:
    """S3-61, S4-30: the schema is enforced."""
    with pytest.raises(ToolError, match="'content' is missing"):
        call(tools["write_file"], path="x")


def test_a_write_says_beforehand_what_it_would_overwrite(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x" * 3_000, encoding="utf-8")
    write = file_tools(Workspace(tmp_path))["write_file"]
    presence = {path: write.would_replace({"path": path, "content": ""}) for path in ("notes.txt", "new.txt", "../x")}
    assert presence == {"notes.txt": "notes.txt, 3.0 KB", "new.txt": "", "../x": ""}

    def fail(path: str) -> str:
        raise OSError(path)

    assert replace(write, replaces=fail).would_replace({"path": "a"}) == "?", "something may exist"


@pytest.mark.parametrize(
    ("path", "task", "status"),
    [
        ("notes.txt", "Write the mean to notes.txt", "waiting"),
        ("new.txt", "Write the mean to new.txt", "completed"),
        ("notes.txt", "Overwrite notes.txt with the mean", "completed"),
    ],
)
def test_a_run_is_asked_before_it_overwrites_what_the_task_does_not_change(
    tmp_path: Path, path: str, task: str, status: str
) -> None:
    (tmp_path / "notes.txt").write_text("x" * 3_000, encoding="utf-8")
    model = ScriptedModel([scripted("write_file", path=path, content="4"), "Done."])
    result = Agent(model=model, tools=[*file_tools(Workspace(tmp_path)).values()]).run_sync(task)
    assert result.status == status
    [written] = result.trace.calls.values()
    assert decode_fact("action_requested", encode_fact(written.requested)) == written.requested
    assert all(step.same for step in replay(result.trace))
    if status == "waiting":
        question = approval_request(result.trace, written)
        assert question.undo_text("en") == "overwrites notes.txt, 3.0 KB; can be undone with restore_file"
        assert question.undo_text("zh").startswith("会覆盖 notes.txt, 3.0 KB；")
        assert b"replaces" not in encode_fact(replace(written.requested, replaces="")), "as before"


PAGE = "<h1>Snake</h1>\n<p>Eat the apple.</p>\n<p>Eat the apple.</p>\n"


@pytest.fixture
def page(root: Path) -> Path:
    path = root / "page.html"
    path.write_text(PAGE)
    return path


def test_edit_file_replaces_the_one_match_and_shows_the_difference(tools: dict[str, Tool], page: Path) -> None:
    result = call(tools["edit_file"], "k1", path="page.html", old="<h1>Snake</h1>", new="<h1>Snake II</h1>")
    assert page.read_text() == PAGE.replace("Snake", "Snake II")
    assert "-<h1>Snake</h1>\n+<h1>Snake II</h1>" in result["diff"]
    assert "Changed page.html" in result["message"]


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        ("<h2>Snake</h2>", "x", "no_match", "Read the file"),
        ("", "x", "no_match", "Read the file"),
        ("Eat the apple.", "x", "several_matches", "lines 2, 3"),
        ("Snake", "Snake", "same_text", "as it should become"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(
    tools: dict[str, Tool], page: Path, old: str, new: str, code: str, text: str
) -> None:
    with pytest.raises(ToolError) as refused:
        call(tools["edit_file"], path="page.html", old=old, new=new)
    assert refused.value.code == code
    assert text in f"{refused.value.message} {refused.value.hint}"
    assert page.read_text() == PAGE


def test_matches_that_overlap_are_several(tools: dict[str, Tool], root: Path) -> None:
    (root / "a.txt").write_text("aaa")
    with pytest.raises(ToolError) as refused:
        call(tools["edit_file"], path="a.txt", old="aa", new="b")
    assert refused.value.code == "several_matches"


def test_an_edit_of_a_missing_file_names_the_near_ones(tools: dict[str, Tool], page: Path) -> None:
    with pytest.raises(ToolError) as refused:
        call(tools["edit_file"], path="pagee.html", old="a", new="b")
    assert (refused.value.code, page.name in (refused.value.hint or "")) == ("not_found", True)


def test_the_same_edit_with_the_same_key_is_done_once(tools: dict[str, Tool], root: Path) -> None:
    """What a crash leaves open may be called again."""
    (root / "a.txt").write_text("x")
    for _attempt in range(2):
        call(tools["edit_file"], "k1", path="a.txt", old="x", new="xy")
        assert (root / "a.txt").read_text() == "xy"


def test_an_edit_has_a_way_back(tools: dict[str, Tool], page: Path) -> None:
    edited = call(tools["edit_file"], "k1", path="page.html", old="Snake", new="Worm")
    assert tools["edit_file"].card.compensation == "restore_file"
    call(tools["restore_file"], "k2", path="page.html", backup=edited["backup"])
    assert page.read_text() == PAGE


@pytest.mark.parametrize(
    ("task", "status"),
    [("Edit page.html: replace Snake by Worm.", "completed"), ("Look at page.html.", "waiting")],
)
def test_an_edit_needs_a_task_that_asks_for_a_change(page: Path, task: str, status: str) -> None:
    script: list[Reply] = [scripted("edit_file", path="page.html", old="Snake", new="Worm"), "Done."]
    agent = Agent(model=ScriptedModel(script), tools=["edit_file"], workspace=page.parent)
    assert agent.run_sync(task).status == status
