from __future__ import annotations

import errno
import os
import resource
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from taoloop.errors import ConfigError, ToolError
from taoloop.tools.builtin.files import file_tools
from taoloop.tools.workspace.confined_dir import Opener, best_opener, open_stepwise
from taoloop.tools.workspace.workspace import BLOCK_BYTES, FileMatches, Workspace, WorkspaceLimits, scan_file


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        call()
    return caught.value.code


def test_linux_opens_through_openat2() -> None:
    assert sys.platform != "linux" or best_opener() is not open_stepwise


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "notes/../../secret.txt",
        "notes/..",
        "..",
        "./../secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        "~/x",
        "C:/x",
        "C:x",
        "..\\secret.txt",
        "notes\\a.txt",
        "a\0b",
        "",
        " ",
        "\ud800",
        "x" * 300,
        "a/" * 100 + "b",
        ".taoloop/backup/k.json",
        ".TaoLoop/x",
        ".tao\u200bloop/x",
        ".taoloop-0123",
    ],
)
def test_s4_54_a_path_that_could_leave_is_refused(workspace: Workspace, path: str) -> None:
    """S4-54: '..', absolute paths, other systems' paths, and the runtime's own folder."""
    assert refused(lambda: workspace.read_text(path)) == "path_refused"
    assert refused(lambda: workspace.write_text(path, "x")) == "path_refused"
    assert refused(lambda: workspace.entries(path)) == "path_refused"
    assert refused(lambda: workspace.search("x", path)) == "path_refused"


def test_s4_54_symbolic_links_lead_nowhere(workspace: Workspace, root: Path) -> None:
    """S4-54: to a file, to a folder, in a chain, dangling, and to the inside as well."""
    (root / "file").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent)
    (root / "chain").symlink_to("file")
    (root / "dangling").symlink_to(root.parent / "new.txt")
    (root / "inside").symlink_to("b.md")
    for path in ("file", "folder/secret.txt", "chain", "dangling", "inside"):
        assert refused(lambda path=path: workspace.read_text(path)) == "path_refused"  # type: ignore[misc]
        assert refused(lambda path=path: workspace.write_text(path, "x")) == "path_refused"  # type: ignore[misc]
    assert refused(lambda: workspace.entries("folder")) == "path_refused"
    assert (root.parent / "secret.txt").read_text() == "secret"
    assert not (root.parent / "new.txt").exists()
    assert workspace.search("secret").matches == ()
    assert {entry.kind for entry in workspace.entries()[0] if entry.path in ("file", "folder")} == {"link"}


def test_s4_54_magic_links_and_other_file_systems_are_refused(opener: Opener) -> None:
    """S4-54: /proc and /dev, even for a workspace that contains them."""
    everything = Workspace("/", opener=opener)
    for path in ("proc/self/status", "proc/self/root/etc/passwd", "dev/zero", f"proc/{os.getpid()}/status"):
        assert refused(lambda path=path: everything.read_text(path)) in ("path_refused", "not_a_file")  # type: ignore[misc]


def test_s4_54_hard_links_are_refused(workspace: Workspace, root: Path) -> None:
    """S4-54: a second name of an outside file."""
    os.link(root.parent / "secret.txt", root / "hard")
    assert refused(lambda: workspace.read_text("hard")) == "path_refused"
    assert refused(lambda: workspace.write_text("hard", "x")) == "path_refused"


def test_pipes_and_sockets_are_refused_and_never_wait(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for path in ("pipe", "socket", "notes"):
            assert refused(lambda path=path: workspace.read_text(path)) == "not_a_file"  # type: ignore[misc]
            assert refused(lambda path=path: workspace.write_text(path, "x")) == "not_a_file"  # type: ignore[misc]
        assert workspace.search("x").matches == ()


def test_s4_54_a_file_swapped_for_a_link_after_the_listing_is_refused(workspace: Workspace, root: Path) -> None:
    """S4-54: the open itself is safe, not a check before it."""
    listed = [entry.path for entry in workspace.entries(pattern="**/*")[0]]
    (root / "b.md").unlink()
    (root / "b.md").symlink_to(root.parent / "secret.txt")
    (root / "notes").rename(root / "old")
    (root / "notes").symlink_to(root.parent)
    assert "b.md" in listed
    assert refused(lambda: workspace.read_text("b.md")) == "path_refused"
    assert refused(lambda: workspace.write_text("notes/secret.txt", "x")) == "path_refused"
    assert (root.parent / "secret.txt").read_text() == "secret"


def test_s4_54_a_race_of_links_never_shows_the_outside(workspace: Workspace, root: Path) -> None:
    """S4-54: another thread swaps a folder and a link to the outside all the time."""
    (root / "link").symlink_to(root.parent)
    (root / "notes" / "secret.txt").write_text("harmless")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (root / "notes").rename(root / "aside")
            (root / "link").rename(root / "notes")
            (root / "notes").rename(root / "link")
            (root / "aside").rename(root / "notes")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    try:
        for _ in range(400):
            try:
                seen.add(workspace.read_text("notes/secret.txt"))
            except ToolError as error:
                seen.add(error.code)
    finally:
        done.set()
        swapping.join()
    assert seen <= {"harmless", "path_refused", "not_found"}


def test_the_workspace_stays_the_same_when_its_name_is_taken_by_another(workspace: Workspace, root: Path) -> None:
    workspace.entries()
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent)
    assert workspace.read_text("b.md") == "你好\n"


def test_a_huge_file_is_refused_unread(workspace: Workspace, root: Path) -> None:
    with (root / "huge.txt").open("wb") as huge:
        huge.truncate(50_000_000)
    assert refused(lambda: workspace.read_text("huge.txt")) == "too_large"
    assert refused(lambda: workspace.write_text("big.txt", "x" * 1_000_001)) == "too_large"
    assert workspace.search("x").skipped == 1


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b", "ä".encode("latin-1")])
def test_what_is_not_utf_8_text_is_refused(workspace: Workspace, root: Path, data: bytes) -> None:
    (root / "x").write_bytes(data)
    assert refused(lambda: workspace.read_text("x")) == "not_text"


@pytest.mark.parametrize("name", ["游戏/首页.html", "🎮.txt", "a b.txt", "./notes//c.txt", "~x"])
def test_unusual_names_work(workspace: Workspace, name: str) -> None:
    workspace.write_text(name, "内容\r\n")
    assert workspace.read_text(name) == "内容\r\n"


def test_names_with_control_characters_are_read_but_not_made(workspace: Workspace, root: Path) -> None:
    (root / "a\nb").write_text("x")
    assert workspace.read_text("a\nb") == "x"
    assert refused(lambda: workspace.write_text("c\nd", "x")) == "path_refused"
    assert refused(lambda: workspace.write_text("c\u202etxt.exe", "x")) == "path_refused"


def test_a_name_that_is_not_utf_8_is_listed_in_a_readable_form(workspace: Workspace, root: Path) -> None:
    (root / os.fsdecode(b"\xff.txt")).write_text("x")
    assert "\\xff.txt" in [entry.path for entry in workspace.entries()[0]]


def test_a_written_file_is_not_executable_and_keeps_its_mode(workspace: Workspace, root: Path) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)
    workspace.write_text("run.sh", "new")
    workspace.write_text("new.sh", "new")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o640
    assert stat.S_IMODE((root / "new.sh").stat().st_mode) & 0o111 == 0


def test_a_missing_file_is_told_with_near_names(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"Near names: notes/a\.txt") as caught:
        workspace.read_text("notes/b.txt")
    assert caught.value.code == "not_found"
    assert refused(lambda: workspace.read_text("b.md/x")) == "not_found"


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may write everywhere, so a test of permissions must not be root."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


def test_a_folder_without_permission_is_told(workspace: Workspace, root: Path) -> None:
    workspace.entries()
    root.chmod(0o555)
    (root / "notes").chmod(0o555)
    with as_nobody():
        code = refused(lambda: workspace.write_text("notes/new.txt", "x"))
    root.chmod(0o755)
    assert code == "permission_denied"


def test_a_file_marked_read_only_is_not_replaced(workspace: Workspace, root: Path) -> None:
    (root / "b.md").chmod(0o444)
    assert refused(lambda: workspace.write_text("b.md", "x")) == "permission_denied"


def test_a_failing_disk_leaves_the_old_file_and_nothing_else(workspace: Workspace, root: Path) -> None:
    """A real limit of the system on the size of files: the write stops in the middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        code = refused(lambda: workspace.write_text("b.md", "x" * 200_000, "k1"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == "disk_full"
    assert (root / "b.md").read_text() == "你好\n"
    assert {one.name for one in root.iterdir()} == {".taoloop", "b.md", "notes"}
    workspace.write_text("b.md", "again", "k1x")
    assert workspace.read_text("b.md") == "again"


def test_an_error_of_the_disk_is_an_error_of_the_tool(root: Path) -> None:
    def broken(_root: int, _parts: tuple[str, ...], _flags: int, _mode: int) -> int:
        raise OSError(errno.EIO, "Input/output error")

    assert refused(lambda: Workspace(root, opener=broken).read_text("notes/a.txt")) == "io_error"


def test_a_workspace_that_does_not_exist_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened"):
        Workspace(tmp_path / "none").read_text("a")
    Workspace(tmp_path / "made", create=True).write_text("a", "x")
    assert (tmp_path / "made" / "a").read_text() == "x"


def test_descriptors_are_given_back(workspace: Workspace) -> None:
    workspace.write_text("x/y/z.txt", "1")
    before = len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0
    for _ in range(20):
        workspace.read_text("x/y/z.txt")
        workspace.search("1")
        refused(lambda: workspace.read_text("x/y"))
        refused(lambda: workspace.read_text("x/y/z.txt/a"))
    assert not before or len(list(Path("/proc/self/fd").iterdir())) <= before


def test_listing_and_search_are_bounded(root: Path) -> None:
    for number in range(30):
        (root / f"{number:02}.txt").write_text("needle\n" * 3)
    small = Workspace(root, WorkspaceLimits(entries=10, matches=5))
    entries, left_out, complete = small.entries(pattern="*.txt")
    assert (len(entries), left_out, complete) == (10, 20, True)
    result = small.search("needle")
    assert (len(result.matches), result.complete) == (5, False)
    assert not Workspace(root, WorkspaceLimits(scanned=5)).entries()[2]
    assert not Workspace(root, WorkspaceLimits(search_bytes=30)).search("nothing").complete
    ticks = iter(range(100))
    assert not Workspace(root, clock=lambda: float(next(ticks))).search("nothing").complete


@pytest.mark.parametrize("pattern", ["", "*" * 11, "a" * 201])
def test_a_pattern_that_would_take_long_is_refused(workspace: Workspace, pattern: str) -> None:
    assert refused(lambda: workspace.entries(".", pattern)) == "bad_pattern"


@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal", "a/b.SQLITE3"])
def test_databases_are_never_opened_as_files(workspace: Workspace, root: Path, name: str) -> None:
    """Closing one would drop the locks that the journal of this process holds on it."""
    with pytest.raises(ToolError, match="database"):
        workspace.read_text(name)
    (root / "runs.db").write_text("needle", encoding="utf-8")
    assert not workspace.search("needle").matches


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
        assert ([found["line"] for found in result.matches], result.is_whole) == (expected, True)


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
    assert ([found["line"] for found in result.matches], result.is_whole) == ([1, 2, 3, 4], False)
