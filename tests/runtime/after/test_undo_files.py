"""Files that a run wrote are as they were once it is undone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.after.test_undo import _fresh, agent, call, undone  # noqa: F401  # a fixture

from taoloop import Agent, MemoryJournal, ScriptedModel


def files(folder: Path, *script: Any, **options: Any) -> Agent:
    return agent(list(script), tools=["write_file"], workspace=folder, **options)


def write(path: str, content: str) -> dict[str, Any]:
    return call("write_file", path=path, content=content)


def test_written_files_are_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    ran = files(tmp_path, write("old.txt", "one"), write("new/n.txt", "n"), write("old.txt", "two"))
    first = ran.run_sync("x")
    assert (tmp_path / "old.txt").read_text() == "two"
    assert undone(ran, first.run_id, to_step=1).complete
    assert (tmp_path / "old.txt").read_text() == "one"
    assert not (tmp_path / "new" / "n.txt").exists()
    assert undone(ran, first.run_id).complete
    assert (tmp_path / "old.txt").read_text() == "old"
    assert "restore_file" not in first.trace.agent.tools[0].name


def test_a_file_that_somebody_changed_since_is_not_overwritten(tmp_path: Path) -> None:
    ran = files(tmp_path, write("a.txt", "a"), write("b.txt", "b"))
    first = ran.run_sync("x")
    (tmp_path / "b.txt").write_text("mine")
    done = undone(ran, first.run_id)
    assert (tmp_path / "b.txt").read_text() == "mine"
    assert "was changed after the write" in done.left[0].why
    assert undone(ran, first.run_id, skip=["call_2"]).undone[0].name == "call_1"
    assert not (tmp_path / "a.txt").exists()


def test_inner_agents_restore_in_their_own_workspace(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "a.txt").write_text("inner")
    (tmp_path / "out" / "a.txt").write_text("outer")
    inner = files(tmp_path / "in", write("a.txt", "x"), journal=None, name="helper")
    outer = Agent(
        model=ScriptedModel([write("a.txt", "y"), call("helper", task="do"), "done"]),
        tools=["write_file", inner.as_tool(purpose="Writes.")],
        workspace=tmp_path / "out",
        journal=MemoryJournal(),
        policy="autonomous",
    )
    first = outer.run_sync("x")
    assert undone(outer, first.run_id).complete
    assert (tmp_path / "in" / "a.txt").read_text() == "inner"
    assert (tmp_path / "out" / "a.txt").read_text() == "outer"


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_what_programs_did_to_the_files_is_taken_back(tmp_path: Path) -> None:
    """Calls of one Python session, and a shell script between them."""
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    ran = agent(
        [
            call("run_python", code="rows = open('data.csv').read().split()", session="main"),
            call("run_python", code="open('data.csv', 'w').write(rows[0])", session="main"),
            call("run_command", command="mkdir out && mv data.csv out/"),
            call("run_python", code="print(len(rows))", session="main"),
        ],
        tools=["run_python", "run_command"],
        workspace=tmp_path,
    )
    first = ran.run_sync("x")
    assert (tmp_path / "out" / "data.csv").read_text() == "a,b"
    observed = first.trace.steps[1].calls[0].observed
    assert observed is not None
    assert '"changed":["data.csv"]' in observed.output.replace(" ", "")
    assert undone(ran, first.run_id, to_step=2).complete
    assert (tmp_path / "data.csv").read_text() == "a,b"
    assert undone(ran, first.run_id).complete
    assert (tmp_path / "data.csv").read_text() == "a,b\n1,2\n"
    assert not (tmp_path / "out").exists()
