"""`tao undo`: the plan, the question, the exit codes, and a process that is killed in the middle."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from contextlib import closing
from typing import Any

import pytest
from tests.shell import Shell, call, until, until_true

TOOLS = '''
import os, time
from pathlib import Path
from taoloop import tool

LOG = Path(__file__).with_name("log.txt")

def note(text):
    with LOG.open("a") as file:
        file.write(text + "\\n")

@tool(tier="write")
def order(item: str) -> dict:
    """Order an item."""
    note(f"order {item}")
    return {"id": f"id-{item}"}

order = order.with_card(compensation="cancel", compensation_args={"number": "output.id"})

@tool(tier="write")
def cancel(number: str) -> str:
    """Cancel an order."""
    note(f"cancel {number}")
    if LOG.with_name("hang").exists():
        time.sleep(60)
    return "ok"

again = cancel.with_card(idempotent=True)
'''


def write(path: str, content: str) -> dict[str, Any]:
    return call("write_file", path=path, content=content)


def files(tao: Shell, *script: Any) -> str:
    spec = tao.script(*script, "done")
    ended = tao("run", "x", "--model", spec, "--workspace", "ws", "--approve", "write", "--json", code=0)
    return str(ended.events[0]["run_id"])


def orders(tao: Shell) -> str:
    tao.write("shop.py", TOOLS)
    spec = tao.script(call("order", item="a"), call("order", item="b"), "done")
    ended = tao("run", "x", "--model", spec, "--tools", "shop:order", "--approve", "write", "--json", code=0)
    return str(ended.events[0]["run_id"])


def log(tao: Shell) -> list[str]:
    return (tao.folder / "log.txt").read_text().splitlines()


def test_where_nobody_can_be_asked_the_plan_is_all_there_is(tao: Shell) -> None:
    run_id = files(tao, write("a.txt", "a"))
    ended = tao("undo", run_id, code=8)
    assert "1. step 1 call_1 write_file" in ended.out
    assert 'by restore_file\n      │ {"path": "a.txt", "backup": "key-' in ended.out
    assert ended.one_line == f"tao: Nothing was undone. To undo it: tao undo {run_id} --yes"
    assert (tao.folder / "ws" / "a.txt").exists()
    assert len(json.loads("[" + ",".join(tao("runs", "--json").out.splitlines()) + "]")) == 1


def test_yes_undoes_and_the_original_says_so(tao: Shell) -> None:
    (tao.folder / "ws").mkdir()
    (tao.folder / "ws" / "a.txt").write_text("before")
    run_id = files(tao, write("a.txt", "one"), write("b.txt", "b"), write("a.txt", "two"))
    ended = tao("undo", run_id, "--to", "1", "--yes", code=0)
    assert "undone: call_3 write_file\nundone: call_2 write_file\n" in ended.out
    assert (tao.folder / "ws" / "a.txt").read_text() == "one"
    assert "back to the end of step 1" in ended.out
    assert "Undone before: call_3, call_2" in tao("undo", run_id, "--yes", code=0).out
    assert (tao.folder / "ws" / "a.txt").read_text() == "before"
    assert sorted(path.name for path in (tao.folder / "ws").glob("*.txt")) == ["a.txt"]
    events = tao("show", run_id, "--json", code=0).events
    assert [event["call_id"] for event in events if event["kind"] == "compensated"] == ["call_3", "call_2", "call_1"]
    for option in ((), ("--steps",), ("--events",)):
        shown = tao("show", run_id, *option, code=0).out
        for call_id in ("call_3", "call_2", "call_1"):
            assert shown.count(f"Undone: write_file ({call_id}), by {run_id}.undo-") == 1, option
    for one in (run_id, f"{run_id}.undo-1", f"{run_id}.undo-2"):
        tao("replay", one, code=0)
        tao("verify", one, code=0)
    assert tao("undo", run_id, "--yes", code=0).err == ""


def test_what_is_not_undone_has_an_exit_code_of_its_own(tao: Shell) -> None:
    run_id = files(tao, write("a.txt", "a"), write("b.txt", "b"))
    (tao.folder / "ws" / "b.txt").write_text("mine")
    ended = tao("undo", run_id, "--yes", code=13)
    assert "not undone: call_2 write_file: changed_since:" in ended.out
    assert "0 calls were undone now." in ended.out
    assert ended.one_line == f"tao: Resume: tao undo {run_id}"
    assert (tao.folder / "ws" / "a.txt").exists()
    tao("undo", run_id, "--skip", "call_2", "--yes", code=13)
    assert not (tao.folder / "ws" / "a.txt").exists()
    assert (tao.folder / "ws" / "b.txt").read_text() == "mine"


def test_json_is_the_plan_the_events_and_the_result(tao: Shell) -> None:
    run_id = files(tao, write("a.txt", "a"))
    [plan] = tao("undo", run_id, "--json", code=8).events
    assert (plan["kind"], plan["items"][0]["standing"]) == ("undo_plan", "undo")
    events = tao("undo", run_id, "--json", "--yes", code=0).events
    assert [event["kind"] for event in events] == [
        "undo_plan",
        "run_started",
        "model_replied",
        "action_requested",
        "approval_given",
        "action_started",
        "observed",
        "finished",
        "undo_result",
    ]
    assert events[-1] == {
        "kind": "undo_result",
        "run_id": run_id,
        "complete": True,
        "undone": ["call_1"],
        "left": [],
    }


def test_tools_of_ones_own_undo(tao: Shell) -> None:
    run_id = orders(tao)
    ended = tao("undo", run_id, "--yes", code=13)
    assert "the tool cancel, which undoes it, is missing" in ended.out
    tao("undo", run_id, "--tools", "shop:order,shop:cancel", "--yes", code=0)
    assert log(tao)[2:] == ["cancel id-b", "cancel id-a"]


@pytest.mark.parametrize("name", ["cancel", "again"])
def test_an_undo_that_is_killed_is_gone_on_with(tao: Shell, name: str) -> None:
    run_id = orders(tao)
    tools = ("--tools", f"shop:order,shop:{name}")
    (tao.folder / "hang").touch()
    process = tao.start("undo", run_id, *tools, "--yes", "--json")
    until(process, "action_started")
    until_true(process, "the call that undoes", lambda: log(tao)[2:] == ["cancel id-b"])
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    (tao.folder / "hang").unlink()
    if name == "again":  # idempotent: the same call under the same key
        tao("undo", run_id, *tools, "--yes", code=0)
        assert log(tao)[2:] == ["cancel id-b", "cancel id-b", "cancel id-a"]
        keys = attempts(tao, f"{run_id}.undo-1")
        assert keys == [(f"{run_id}.undo-1:call_1", 1), (f"{run_id}.undo-1:call_1", 2)]
        return
    ended = tao("undo", run_id, *tools, "--yes", code=13)
    assert "may or may not have happened: check by hand" in ended.out
    assert log(tao)[2:] == ["cancel id-b"]
    tao("undo", run_id, *tools, "--yes", code=13)
    assert log(tao)[2:] == ["cancel id-b", "cancel id-a"]
    tao("undo", run_id, *tools, "--yes", code=13)
    assert log(tao)[2:] == ["cancel id-b", "cancel id-a"]
    for number in (1, 2):
        tao("replay", f"{run_id}.undo-{number}", code=0)


def attempts(tao: Shell, run_id: str) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(tao.folder / "runs.db")) as database, database:
        rows = database.execute(
            "SELECT body FROM event WHERE run_id = ? AND kind = 'action_started' ORDER BY seq", (run_id,)
        ).fetchall()
    return [(body["idempotency_key"], body["attempt"]) for body in (json.loads(row[0]) for row in rows)]


def test_wrong_wishes_are_told(tao: Shell) -> None:
    run_id = files(tao, write("a.txt", "a"))
    assert "cannot be undone to step 9" in tao("undo", run_id, "--to", "9", code=2).one_line
    assert "no call 'call_7'" in tao("undo", run_id, "--skip", "call_7", code=2).one_line
    assert "there is no run" in tao("undo", "nothing", code=2).one_line
    assert "module:attribute" in tao("undo", run_id, "--tools", "calculator", code=2).one_line
    tao("undo", run_id, "--yes", code=0)
    assert "an undo is not undone" in tao("undo", f"{run_id}.undo-1", code=2).one_line


def test_a_chinese_run_is_told_in_chinese(tao: Shell) -> None:
    spec = tao.script(write("a.txt", "一"), "好")
    ended = tao("run", "写文件", "--model", spec, "--workspace", "ws", "--approve", "write", "--json", code=0)
    shown = tao("undo", ended.events[0]["run_id"], "--yes", code=0).out
    assert "将按以下顺序撤销：" in shown
    assert "已撤销：call_1 write_file" in shown
    assert "已按计划全部撤销。" in shown


def test_a_run_that_is_under_way_is_not_undone_unless_it_is_taken_over(tao: Shell) -> None:
    tao.write("shop.py", TOOLS)
    (tao.folder / "hang").touch()
    spec = tao.script(call("order", item="a"), call("cancel", number="zz"), "done")
    running = tao.start(
        "run", "x", "--model", spec, "--tools", "shop:order,shop:cancel", "--approve", "write", "--json"
    )
    try:
        run_id = until(running, "observed")[0]["run_id"]
        refused = tao("undo", run_id, "--yes", "--tools", "shop:cancel", code=14)
        assert f"the process {running.pid} is working on it" in refused.err
        assert "--kill-holder" in refused.err
        assert "cancel id-a" not in log(tao)
        if sys.platform == "linux":  # no other system identifies the process
            tao("undo", run_id, "--yes", "--tools", "shop:cancel", "--take-over", code=14)
        (tao.folder / "hang").unlink()
        taking = "--kill-holder" if sys.platform == "linux" else "--take-over"
        tao("undo", run_id, "--yes", "--tools", "shop:cancel", taking, code=13)  # a call may have happened
        assert log(tao).count("cancel id-a") == 1
    finally:
        running.kill()
        running.communicate(timeout=30)


def test_nothing_to_undo(tao: Shell) -> None:
    ended = tao("run", "1+1", "--model", tao.script(call("calculator", expression="1+1"), "2"), "--json", code=0)
    assert "There is nothing to undo." in tao("undo", ended.events[0]["run_id"], code=0).out
