"""A text is found in files of any size, and what is not text is never searched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from taoloop.tools.builtin.files import file_tools
from taoloop.tools.workspace.walk import BLOCK_BYTES, FileMatches, scan_file
from taoloop.tools.workspace.workspace import Workspace, WorkspaceLimits


def scanned(path: Path, text: str, *, at_most: int = 100, block_bytes: int = BLOCK_BYTES) -> FileMatches | None:
    fd = os.open(path, os.O_RDONLY)
    try:
        return scan_file(
            fd,
            path.name,
            text,
            at_most=at_most,
            most_bytes=1 << 30,
            in_time=lambda: True,
            block_bytes=block_bytes,
        )
    finally:
        os.close(fd)


@given(st.lists(st.text(alphabet="ab好\r", max_size=12), max_size=12), st.text(alphabet="ab好", min_size=1, max_size=3))
def test_blocks_of_any_size_find_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], text: str
) -> None:
    """Borders of blocks fall into characters, lines and matches."""
    path = tmp_path_factory.mktemp("scan") / "x"
    path.write_bytes("\n".join(lines).encode())
    expected = [number for number, line in enumerate(lines, start=1) if text in line]
    for size in (1, 2, 3, 7, 1000):
        result = scanned(path, text, block_bytes=size)
        assert result is not None
        assert ([found.line for found in result.matches], result.is_whole) == (expected, True)


def test_a_file_that_is_too_large_to_read_is_searched(tmp_path: Path) -> None:
    """What read_file refuses, it sends to search_files; that must then look there."""
    (tmp_path / "log.txt").write_text("line\n" * 300_000 + "needle here\n" + "line\n" * 10, encoding="utf-8")
    (tmp_path / "one-line.txt").write_text("y" * 2_500_000 + "needle" + "z" * 1_500_000, encoding="utf-8")
    found = file_tools(Workspace(tmp_path))["search_files"](text="needle")
    assert [(one["path"], one["line"]) for one in found["matches"]] == [("log.txt", 300_001), ("one-line.txt", 1)]
    assert (found["files_searched"], found["files_skipped"], found["complete"]) == (2, 0, True)
    assert all("needle" in one["text"] and len(one["text"]) <= 200 for one in found["matches"])


def test_a_search_that_saw_only_a_part_says_so(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("line\n" * 1000 + "needle\n", encoding="utf-8")
    result = Workspace(tmp_path, WorkspaceLimits(search_bytes=500)).search("needle")
    assert (result.matches, result.searched, result.complete) == ((), 1, False)


@pytest.mark.parametrize("data", [b"needle\0", b"needle \xff", b"needle \xe4\xbd"])
def test_what_is_not_text_is_not_searched(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    assert scanned(tmp_path / "x", "needle") is None


def test_the_first_lines_are_given_and_the_rest_is_told_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("needle\n" * 10, encoding="utf-8")
    result = scanned(tmp_path / "x", "needle", at_most=4)
    assert result is not None
    assert ([found.line for found in result.matches], result.is_whole) == ([1, 2, 3, 4], False)
