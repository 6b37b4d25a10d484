"""`tao fork`: branching a stored run from the command line."""

import sqlite3
from contextlib import closing
from typing import Any

from tests.shell import Shell, call


def stored(tao: Shell, *script: Any) -> str:
    """A run that reads a number twice and answers: its id."""
    script = script or (call("calculator", expression="6*7"), call("calculator", expression="1+1"), "42 and 2")
    ended = tao("run", "what is 6*7, and 1+1?", "--model", tao.script(*script), "--json")
    return str(ended.events[0]["run_id"])


def test_a_fork_goes_on_with_the_model_from_the_step(tao: Shell) -> None:
    run_id = stored(tao)
    other = tao.script({}, call("calculator", expression="2+2"), "42 and 4", name="other.yaml")
    ended = tao("fork", run_id, "--at", "2", "--model", other, "--json", code=0)
    fork_id = ended.events[0]["run_id"]
    assert fork_id != run_id
    assert (ended.events[0]["forked_from"], ended.events[0]["forked_at"]) == (run_id, 2)
    assert [event["seq"] for event in ended.events] == list(range(len(ended.events)))
    assert ended.events[-1]["answer"] == "42 and 4"
    assert ended.one_line == f"tao: run {fork_id} is a fork of {run_id} at step 2"
    assert tao("show", fork_id, "--json", code=0).out == ended.out
    assert f"forked from run {run_id} at step 2" in tao("show", fork_id, code=0).out
    assert f"forked from run {run_id} at step 2" in tao("replay", fork_id, code=0).out
    assert "2 ≠ a:" in tao("diff", run_id, fork_id, code=1).out


def test_a_fork_is_only_made_with_no_run(tao: Shell) -> None:
    run_id = stored(tao)
    made = tao("fork", run_id[:-2], "--at", "3", "--edit", "instructions=Answer in one word.", "--no-run", code=0)
    assert made.out == ""
    first, edited, how = made.err.splitlines()
    fork_id = first.split()[2]
    assert edited == "tao: edited: instructions"
    assert how == f"tao: Resume: tao run --resume {fork_id}"
    assert next(line for line in tao("runs", code=0).out.splitlines() if fork_id in line).split()[3] == "forked"
    assert "no run has lost its process" in tao("recover", "--dry-run", code=0).one_line
    tao.script({}, {}, "forty-two")
    ended = tao("run", "--resume", fork_id, "--json", code=0)
    assert ended.events[-1]["answer"] == "forty-two"
    tao("replay", fork_id, code=0)


def test_an_edited_observation_and_decision_are_marked(tao: Shell) -> None:
    run_id = stored(tao)
    tao.script({}, "41 and more")
    ended = tao("fork", run_id, "--at", "1", "--edit", "observation=41", "--json", code=0)
    observed = [event for event in ended.events if event["kind"] == "observed"]
    assert [event["output"] for event in observed] == ["41"]
    marks = [event["reason"] for event in ended.events if event["kind"] == "resumed"]
    assert marks[0] == f"fork of run {run_id} at step 1; edited by a person: observation of call_1"
    edit = 'decision={"answer": "none"}'
    shown = tao("fork", run_id, "--at", "2", "--edit", edit, code=0)
    assert "Answer: none" in shown.out
    assert "edited: decision" in shown.err


def test_a_fork_asks_again_unless_it_is_allowed(tao: Shell) -> None:
    script = (call("write_file", path="a.txt", content="a"), "written")
    options = ("--workspace", "w", "--approve", "write", "--json")
    done = tao("run", "write a file", "--model", tao.script(*script), *options, code=0)
    run_id = done.events[0]["run_id"]
    assert "Decide: tao approvals " in tao("fork", run_id, "--at", "1", code=8).out
    (tao.folder / "w" / "a.txt").unlink()
    tao("fork", run_id, "--at", "1", "--approve", "write", code=0)
    assert (tao.folder / "w" / "a.txt").read_text() == "a"


def test_what_cannot_be_forked_is_told_in_one_line_and_nothing_is_made(tao: Shell) -> None:
    run_id = stored(tao)
    for options, why in (
        (("--at", "9"), "has 3 steps"),
        (("--at", "4"), "gave the answer"),
        (("--at", "1", "--edit", "colour=red"), "Write one of task=TEXT"),
        (("--at", "1", "--edit", "decision={"), "not JSON"),
        (("--at", "1", "--edit", "observation=call_7=x"), "no call 'call_7'"),
        (("--at", "0"), "not in the range"),
        ((), "Missing option"),
    ):
        assert why in tao("fork", run_id, *options, code=2).one_line
    assert "no run 'nothing'" in tao("fork", "nothing", "--at", "1", code=2).one_line
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection, connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)
    connection.close()


def test_a_fork_that_lacks_a_tool_is_refused_before_it_is_made(tao: Shell) -> None:
    tao.write(
        "tools_here.py",
        'from taoloop import tool\n\n@tool(tier="read")\ndef f() -> str:\n    """F."""\n    return "x"\n',
    )
    model = tao.script(call("f"), "x")
    run_id = tao("run", "do it", "--model", model, "--tools", "tools_here:f", "--json", code=0).events[0]["run_id"]
    (tao.folder / "tools_here.py").write_text("", encoding="utf-8")
    assert "no attribute 'f'" in tao("fork", run_id, "--at", "1", code=2).one_line
    (tao.folder / "tools_here.py").unlink()
    assert "there is no module 'tools_here'" in tao("fork", run_id, "--at", "1", code=2).one_line
    assert len(tao("runs", "--json").events) == 1


def test_the_language_of_the_run_is_spoken(tao: Shell) -> None:
    ended = tao("run", "现在几点?", "--model", tao.script("三点"), "--json", code=0)
    run_id = ended.events[0]["run_id"]
    assert f"是 {run_id} 在第 1 步的分叉" in tao("fork", run_id, "--at", "1", "--no-run", code=0).err
