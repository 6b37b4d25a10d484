"""Snapshots: what a program did to a workspace is taken back file by file, or nothing is touched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from taoloop.errors import ToolError
from taoloop.tools.workspace.snapshots import SnapshotChanges, SnapshotLimits, Snapshots


def contents(root: Path) -> dict[str, object]:
    """What is in a workspace: the content and permission bits of files, the targets of links, folders."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith(".taoloop"):
            continue
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


def make(root: Path) -> None:
    (root / "docs").mkdir()
    (root / "docs" / "a.txt").write_text("a")
    (root / "b.txt").write_text("b")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("b.txt")


def change(root: Path) -> None:
    """Something of every kind."""
    (root / "b.txt").write_text("B")
    (root / "docs" / "a.txt").unlink()
    (root / "docs").rmdir()
    (root / "docs").write_text("a file where a folder was")
    (root / "run.sh").chmod(0o644)
    (root / "link").unlink()
    (root / "link").symlink_to("/etc/passwd")
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "c.bin").write_bytes(b"\0\xff")


def changed(root: Path, snapshots: Snapshots, key: str = "k1") -> SnapshotChanges:
    before = snapshots.take()
    change(root)
    return snapshots.record(before, key)


def test_everything_is_as_before_and_can_be_done_again(tmp_path: Path) -> None:
    make(tmp_path)
    before, snapshots = contents(tmp_path), Snapshots(tmp_path)
    changes = changed(tmp_path, snapshots)
    after = contents(tmp_path)
    assert changes.backup == "k1"
    assert changes.paths == ["b.txt", "docs", "docs/a.txt", "link", "new", "new/deep", "new/deep/c.bin", "run.sh"]
    restored = snapshots.restore("k1", "k2")
    assert contents(tmp_path) == before
    assert restored.paths == changes.paths
    snapshots.restore(restored.backup, "k3")
    assert contents(tmp_path) == after


def test_another_process_can_restore_it_and_twice_is_once(tmp_path: Path) -> None:
    make(tmp_path)
    before = contents(tmp_path)
    changed(tmp_path, Snapshots(tmp_path))
    for _ in range(2):
        Snapshots(tmp_path).restore("k1", "k2")
        assert contents(tmp_path) == before


def test_a_restore_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    make(tmp_path)
    before = contents(tmp_path)
    changed(tmp_path, Snapshots(tmp_path))
    (tmp_path / "b.txt").write_text("b")  # as the restore leaves it
    (tmp_path / "new" / "deep" / "c.bin").unlink()
    Snapshots(tmp_path).restore("k1")
    assert contents(tmp_path) == before


def test_files_that_changed_since_are_named_and_nothing_is_touched(tmp_path: Path) -> None:
    make(tmp_path)
    snapshots = Snapshots(tmp_path)
    changed(tmp_path, snapshots)
    (tmp_path / "b.txt").write_text("by hand")
    now = contents(tmp_path)
    with pytest.raises(ToolError, match=r"b\.txt") as caught:
        snapshots.restore("k1")
    assert caught.value.code == "changed_since"
    assert contents(tmp_path) == now


def test_the_last_call_is_undone_first(tmp_path: Path) -> None:
    make(tmp_path)
    before, snapshots = contents(tmp_path), Snapshots(tmp_path)
    for key in ("k1", "k2"):
        state = snapshots.take()
        (tmp_path / "b.txt").write_text(key)
        snapshots.record(state, key)
    with pytest.raises(ToolError) as caught:
        snapshots.restore("k1")
    assert caught.value.code == "changed_since"
    snapshots.restore("k2")
    snapshots.restore("k1")
    assert contents(tmp_path) == before


def test_a_change_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    times = (tmp_path / "a.txt").stat()
    snapshots = Snapshots(tmp_path)
    before = snapshots.take()
    (tmp_path / "a.txt").write_text("two")
    os.utime(tmp_path / "a.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert snapshots.record(before, "k1").paths == ["a.txt"]
    snapshots.restore("k1")
    assert (tmp_path / "a.txt").read_text() == "one"


def test_a_file_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    os.utime(path, (0, 0))
    snapshots = Snapshots(tmp_path)
    first = snapshots.take()
    index = tmp_path / ".taoloop" / "snapshots" / "index.json"
    entries = json.loads(index.read_text())
    entries["a.txt"][4] += 10**9  # as if it had been looked at well after its last change
    entries["a.txt"][5] = "known"
    index.write_text(json.dumps(entries))
    assert first["a.txt"].content != "known"
    assert snapshots.take()["a.txt"].content == "known"


def test_what_is_too_large_or_a_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(b"x" * 100)
    (tmp_path / "shop.db").write_bytes(b"y")
    (tmp_path / "small.txt").write_text("z")
    snapshots = Snapshots(tmp_path, SnapshotLimits(file_bytes=10))
    before = snapshots.take()
    for name in ("large.bin", "shop.db", "small.txt"):
        (tmp_path / name).write_bytes(b"changed, and longer" * 10)
    (tmp_path / "new.db").write_text("made")
    changes = snapshots.record(before, "k1")
    assert changes.unkept == ["large.bin", "shop.db"]
    with pytest.raises(ToolError, match=r"large\.bin, shop\.db") as caught:
        snapshots.restore("k1")
    assert caught.value.code == "not_kept"


def test_a_new_file_that_is_too_large_is_taken_away(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, SnapshotLimits(file_bytes=10))
    before = snapshots.take()
    (tmp_path / "large.bin").write_bytes(b"x" * 100)
    assert snapshots.record(before, "k1").unkept == []
    snapshots.restore("k1")
    assert contents(tmp_path) == {}


def test_too_many_files_and_unknown_and_damaged_backups_are_told(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ToolError, match="more than 3 files") as caught:
        Snapshots(tmp_path, SnapshotLimits(entries=3)).take()
    assert caught.value.code == "snapshot_failed"
    snapshots = Snapshots(tmp_path)
    with pytest.raises(ToolError) as caught:
        snapshots.restore("none")
    assert caught.value.code == "no_backup"
    changed(tmp_path, snapshots)
    for path in (tmp_path / ".taoloop" / "snapshots" / "objects").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(ToolError, match="damaged") as caught:
        snapshots.restore("k1")
    assert caught.value.code == "restore_failed"
    (tmp_path / ".taoloop" / "snapshots" / "index.json").write_text("{")
    assert Snapshots(tmp_path).take()
    (tmp_path / ".taoloop" / "snapshots" / "k1.json").write_text("{")
    with pytest.raises(ToolError) as caught:
        snapshots.restore("k1")
    assert caught.value.code == "io_error"


def test_a_file_that_somebody_put_into_a_new_folder_stays(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    before = snapshots.take()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a.txt").write_text("a")
    snapshots.record(before, "k1")
    (tmp_path / "new" / "mine.txt").write_text("mine")
    snapshots.restore("k1")
    assert contents(tmp_path) == {"new": "folder", "new/mine.txt": (b"mine", 0o644)}


NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/f"])
STEPS = st.lists(st.tuples(NAMES, st.sampled_from([b"", b"1", b"22", None])), max_size=8)


@settings(max_examples=40, deadline=None)
@given(calls=st.lists(STEPS, min_size=1, max_size=4))
def test_any_calls_are_undone_one_by_one(
    calls: list[list[tuple[str, bytes | None]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("w")
    snapshots, states = Snapshots(root), [contents(root)]
    for number, steps in enumerate(calls):
        before = snapshots.take()
        for name, data in steps:
            path = root / name
            if data is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        snapshots.record(before, f"k{number}")
        states.append(contents(root))
    for number in reversed(range(len(calls))):
        snapshots.restore(f"k{number}")
        assert contents(root) == states[number]


def modes(root: Path) -> dict[str, int]:
    folders = (path for path in root.rglob("*") if path.is_dir() and ".taoloop" not in path.parts)
    return {str(path.relative_to(root)): path.stat().st_mode & 0o777 for path in folders}


def test_permission_bits_of_folders_return(tmp_path: Path) -> None:
    for name, mode in (("shut", 0o700), ("gone", 0o750), ("gone/inner", 0o755)):
        (tmp_path / name).mkdir(mode=mode)
    (tmp_path / "shut" / "a.txt").write_text("a")
    (tmp_path / "gone").chmod(0o550)
    snapshots = Snapshots(tmp_path)
    before, kept = snapshots.take(), modes(tmp_path)
    (tmp_path / "shut" / "a.txt").write_text("A")
    (tmp_path / "shut").chmod(0o500)
    (tmp_path / "gone").chmod(0o755)
    (tmp_path / "gone" / "inner").rmdir()
    (tmp_path / "gone").rmdir()
    assert snapshots.record(before, "k1").paths == ["gone", "gone/inner", "shut", "shut/a.txt"]
    snapshots.restore("k1")
    assert modes(tmp_path) == kept
    assert (tmp_path / "shut" / "a.txt").read_text() == "a"


def test_a_record_without_the_bits_of_folders_is_restored(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    before = snapshots.take()
    (tmp_path / "new").mkdir()
    snapshots.record(before, "k1")
    record = tmp_path / ".taoloop" / "snapshots" / "k1.json"
    changes = json.loads(record.read_text())
    changes["changes"]["new"][1][2] = 0
    record.write_text(json.dumps(changes))
    snapshots.restore("k1")
    assert not (tmp_path / "new").exists()


def test_a_name_that_is_not_utf8_is_readable_and_restored(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    before = snapshots.take()
    path = os.fsencode(tmp_path) + b"/\xff.txt"
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123  # a path of bytes
        file.write("new")
    assert snapshots.record(before, "k1").paths == ["\\xff.txt"]
    snapshots.restore("k1")
    assert not os.path.exists(path)  # noqa: PTH110


def test_folders_that_are_too_deep_to_be_looked_at_are_an_error(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    before = snapshots.take()
    (tmp_path / "/".join("d" * 33)).mkdir(parents=True)
    with pytest.raises(ToolError, match="32 levels") as caught:
        snapshots.record(before, "k1")
    assert caught.value.code == "snapshot_failed"
