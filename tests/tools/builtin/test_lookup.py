from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taoloop.errors import ConfigError, ToolError
from taoloop.tools.builtin.lookup import lookup_tool, workspace_lookup_tool
from taoloop.tools.workspace.workspace import Workspace

TABLE: dict[str, Any] = {
    "huala": {"post_count": 8, "posts": [{"title": "一"}, {"title": "二"}]},
    "a.b": 1,
    "a": {"b": 2},
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("huala.post_count", 8),
        ("huala.posts.1.title", "二"),
        ("huala.posts[1].title", "二"),
        ("a.b", 1),
        ("a", {"b": 2}),
        (" huala.post_count ", 8),
    ],
)
def test_dots_walk_and_an_exact_key_wins(key: str, value: object) -> None:
    """S0-5: the demo's lookup."""
    assert lookup_tool(TABLE)(key) == value


def test_a_missing_key_is_named_and_near_ones_are_offered() -> None:
    """S0-10."""
    with pytest.raises(ToolError, match=r"no key 'huala\.post_cout'") as caught:
        lookup_tool(TABLE)("huala.post_cout")
    assert caught.value.code == "missing_key"
    assert "huala.post_count" in caught.value.hint


def test_near_keys_are_at_most_five() -> None:
    with pytest.raises(ToolError) as caught:
        lookup_tool({f"key{n}": n for n in range(50)})("key")
    assert caught.value.hint.count(",") == 4


@pytest.mark.parametrize("key", ["", ".", "...", "huala.posts.9", "huala.post_count.x", "x" * 100_000, "." * 100_000])
def test_a_strange_key_is_only_missing(key: str) -> None:
    with pytest.raises(ToolError) as caught:
        lookup_tool(TABLE)(key)
    assert caught.value.code == "missing_key"
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    ("name", "text"), [("t.json", '{"a": {"b": 2}}'), ("t.yaml", "a:\n  b: 2\n"), ("t.yml", "a: {b: 2}")]
)
def test_a_file_is_a_table(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert lookup_tool(tmp_path / name)("a.b") == 2
    assert workspace_lookup_tool(Workspace(tmp_path))("a.b", name) == 2


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("t.json", '{\n "a": }', "t.json:2: "),
        ("t.yaml", "a: 1\nb: [\n", "t.yaml:3: "),
        ("t.yaml", "a: &x 1\nb: *x\n", "t.yaml:2: YAML aliases"),
        ("t.yaml", "[" * 5_000, "t.yaml:1: It is nested too deeply"),
        ("t.json", "[" * 100_000, "nested too deeply"),
        ("t.yaml", "!!python/object/apply:os.system ['true']", "t.yaml:1: "),
        ("t.json", "3", "no keys"),
        ("t.yaml", "", "no keys"),
    ],
)
def test_a_malformed_file_is_told_with_path_and_line(tmp_path: Path, name: str, text: str, where: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        lookup_tool(tmp_path / name)
    assert where in str(caught.value)
    with pytest.raises(ToolError) as inside:
        workspace_lookup_tool(Workspace(tmp_path))("a", name)
    assert inside.value.code == "bad_table"


def test_an_unreadable_file_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.json: the table cannot be read"):
        lookup_tool(tmp_path / "missing.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        lookup_tool(tmp_path / "bytes.json")


def test_a_table_of_the_workspace_cannot_lie_outside(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "out.json").write_text('{"a": 1}')
    with pytest.raises(ToolError) as caught:
        workspace_lookup_tool(Workspace(tmp_path / "inside"))("a", "../out.json")
    assert caught.value.code == "path_refused"
