"""What waits for a person besides approvals: calls in doubt; and runs that were edited take no answer."""

import asyncio
import json
import sqlite3
from contextlib import closing

from tests.runtime.approvals.waiting_runs import leave_approval, leave_blocked, leave_dead, leave_failed_undo
from tests.shell import Shell, call

from taoloop import SqliteJournal

TOOLS = '''
import time
from taoloop import tool


@tool(tier="write", timeout_s=0.2)
def slow(n: int) -> str:
    """Take too long."""
    time.sleep(1)
    return "ok"


@tool(tier="write", egress=True)
def pay(to: str) -> str:
    """Pay somebody."""
    return f"paid {to}"
'''


def waiting(tao: Shell, *replies: object, task: str = "go", approve: bool = True) -> str:
    tao.write("mytools.py", TOOLS)
    tao.script(*replies, "Done.")
    tao.write("agent.yaml", 'model: scripted:script.yaml\ntools: ["mytools:slow", "mytools:pay"]\n')
    ended = tao("run", task, "--agent", "agent.yaml", "--json", *(["--approve", "write"] if approve else []), code=8)
    run_id: str = ended.events[0]["run_id"]
    return run_id


def edit(tao: Shell, statement: str) -> None:
    with closing(sqlite3.connect(tao.folder / "runs.db")) as connection, connection:
        connection.execute(statement)


def test_a_call_in_doubt_is_listed_and_settled_once(tao: Shell) -> None:
    run_id = waiting(tao, call("slow", n=5))
    shown = tao("approvals", code=0).out
    assert "gave no result in time" in shown
    assert f"tao settle {run_id} call_1" in shown
    assert "tao approve" not in shown
    [row] = json.loads(tao("approvals", run_id, "--json", code=0).out)
    assert (row["run_id"], row["call_id"], row["tool"], row["args"]) == (run_id, "call_1", "slow", {"n": 5})
    assert row["doubt"]
    assert "may have happened" in row["reasons"][0]
    assert f"tao settle {run_id} call_1" in tao("approve", run_id, "call_1", code=2).one_line
    assert "exclude each other" in tao("settle", run_id, "call_1", "--happened", "--repeat", code=2).one_line
    assert "resume the run" in tao("settle", run_id, "call_1", "--happened", "--by", "ann", code=0).one_line.lower()
    assert "has its answer: it happened by ann" in tao("settle", run_id, "call_1", "--repeat", code=2).one_line
    assert tao("approvals", "--json", code=0).out == "[]\n"
    assert "ann says so" in tao("resume", run_id, code=0).out


def test_an_edited_run_that_waits_is_shown_as_such(tao: Shell) -> None:
    run_id = waiting(tao, call("pay", to="ann"), task="settle the bill", approve=False)
    assert json.loads(tao("approvals", "--json", code=0).out)[0]["doubt"] is False
    edit(tao, "UPDATE event SET body = replace(body, 'ann', 'eve') WHERE kind = 'action_requested'")
    assert "is not as it was written" in tao("approvals", code=0).err
    tao("approve", run_id, "call_1", code=12)


def test_nothing_is_made_of_a_run_that_was_edited(tao: Shell) -> None:
    tao.script(call("write_file", path="a.txt", content="a"), "written")
    options = ("--workspace", "w", "--approve", "write", "--json")
    run_id = tao("run", "x", "--model", "scripted:script.yaml", *options, code=0).events[0]["run_id"]
    edit(tao, "UPDATE event SET body = replace(body, 'a.txt', 'b.txt') WHERE kind = 'action_requested'")
    for command in (("fork", run_id, "--at", "2", "--no-run"), ("undo", run_id, "--yes")):
        ended = tao(*command, code=12)
        assert "was changed after it was written" in ended.one_line
        assert ended.out == ""
    assert (tao.folder / "w" / "a.txt").exists()
    assert len(tao("runs", "--json", code=0).events) == 1


def test_with_all_every_kind_is_listed_with_its_command(tao: Shell) -> None:
    async def leave() -> None:
        async with SqliteJournal(tao.folder / "runs.db", synchronous="NORMAL") as journal:
            await leave_approval(journal, 5)
            await leave_blocked(journal)
            await leave_failed_undo(journal)
            await leave_dead(journal)

    asyncio.run(leave())
    rows = json.loads(tao("approvals", "--all", "--json", code=0).out)
    named = [(row["kind"], row["run_id"], row["command"]) for row in rows]
    assert named == [
        ("approval", "asks", "tao resume asks"),
        ("doubt", "dead", "tao resume dead"),
        ("dead", "dead", "tao resume dead"),
        ("undo", "orders.undo-1", "tao undo orders"),
        ("blocked", "blocked", "tao resume blocked --profile supervised"),
    ]
    assert rows[3]["undoes"]["call_id"] == "call_2"
    assert [call["tool"] for call in rows[4]["calls"]] == ["refund_payment"]
    assert [row["kind"] for row in json.loads(tao("approvals", "--json", code=0).out)] == ["approval", "doubt"]
    shown = tao("approvals", "--all", code=0).out
    assert "2 calls wait for a person." in shown
    assert "3 runs wait for a person's decision." in shown
    assert "the effect of order (call_2) of run orders is still there" in shown
    assert "its process died 6 times in a row at the same event" in shown
    assert "tao undo orders\n" in shown
    tao("abandon", "blocked", "--note", "seen", code=0)
    assert [row["kind"] for row in json.loads(tao("approvals", "blocked", "--all", "--json", code=0).out)] == []
    assert "nothing is waiting" in tao("approvals", "blocked", "--all", code=0).err
