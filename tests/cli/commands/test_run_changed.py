"""`tao resume --check` and `tao abandon`: a run whose code has changed, and one that nobody wants to go on."""

from __future__ import annotations

import json
import sqlite3

import pytest
from tests.shell import Shell, call

TOOLS = '''
from taoloop import tool

@tool(tier="write")
def pay(who: str{more}) -> str:
    """Pay somebody."""
    with open("paid.txt", "a") as file:
        file.write(who)
    return "paid"

@tool(tier="{tier}")
def drop(table: str) -> str:
    """Drop a table."""
    return "dropped"
'''


def change(
    tao: Shell, *, more: str = ", amount: int = 3", tier: str = "write", tools: str = "pay, mytools:drop"
) -> None:
    tao.write("mytools.py", TOOLS.format(more=more, tier=tier))
    script = tao.script(call("pay", who="ann"), "done")
    tao.write("agent.yaml", f"model: {script}\ntools: [mytools:{tools}]\n")


def waiting(tao: Shell) -> str:
    change(tao, more="")
    return str(tao("run", "settle the bill", "--agent", "agent.yaml", "--json", code=8).events[0]["run_id"])


def test_what_has_changed_is_shown_before_the_run_is_resumed(tao: Shell) -> None:
    run_id = waiting(tao)
    same = tao("resume", run_id, "--check", code=0)
    assert "nothing has changed" in same.out
    tao("approve", run_id, "call_1", code=0)
    change(tao)
    before = tao("show", run_id, "--json", code=0).out
    shown = tao("resume", run_id, "--check", code=1).out
    assert "pay: input_schema.amount: – →" in shown
    assert "pay (call_1)" in shown
    [record] = tao("resume", run_id, "--check", "--json", code=1).events
    assert (record["resumable"], record["judged_again"], record["removed"]) == (True, ["call_1"], [])
    assert [field["path"] for field in record["changed"]["pay"]] == ["input_schema.amount"]
    assert tao("show", run_id, "--json", code=0).out == before, "nothing was run or written"
    ended = tao("resume", run_id, code=8)
    assert "Changed" in ended.out
    assert "Judged again" in ended.out
    assert "continues with changed tools: pay (input_schema.amount)" in ended.err
    assert not (tao.folder / "paid.txt").exists()
    assert "judged_again" in tao("show", run_id, "--json", code=0).out


def test_a_run_that_cannot_be_resumed_says_why(tao: Shell) -> None:
    run_id = waiting(tao)
    change(tao, tools="pay")
    assert "Removed: drop" in tao("resume", run_id, "--check", code=2).out
    change(tao, more="", tier="destructive")
    refused = tao("resume", run_id, "--check", code=2).out
    assert "drop: tier: " in refused
    assert "had the tier 'write'" in refused


def test_a_blocked_run_is_resumed_with_the_command_that_it_advises(tao: Shell) -> None:
    change(tao, more="")
    script = tao.script(call("pay", who="ann"), "not paid", call("pay", who="ann"), "paid")
    options = ("--agent", "agent.yaml", "--model", script, "--profile", "headless")
    ended = tao("run", "settle the bill", *options, code=15)
    advised = ended.out.splitlines()[-1].removeprefix("Resume: tao ").split()
    assert advised[-2:] == ["--profile", "supervised"]
    run_id = advised[2]
    assert "pay (call_1)" in tao(*advised, code=8).out
    tao("approve", run_id, "call_2", code=0)
    assert tao("resume", run_id, code=0).out.count("paid") == 2
    assert (tao.folder / "paid.txt").read_text() == "ann"


def test_denied_calls_are_judged_by_the_rules_of_a_file_after_a_resume(tao: Shell) -> None:
    change(tao, more="")
    script = tao.script(call("pay", who="ann"), "not paid", call("pay", who="ann"), "paid")
    options = ("--agent", "agent.yaml", "--model", script, "--profile", "headless")
    run_id = tao("run", "settle the bill", *options, "--json", code=15).events[0]["run_id"]
    tao.write("policy.yaml", "profile: headless\nrules:\n  - {tool: pay, verdict: allow}\n")
    [record] = tao("resume", run_id, "--check", "--policy", "policy.yaml", "--json", code=1).events
    assert record["new_policy"] == "headless"
    ended = tao("resume", run_id, "--policy", "policy.yaml", "--json", code=0)
    assert [event["new_policy"]["rules"][0]["tool"] for event in ended.events if event["kind"] == "resumed"] == ["pay"]
    assert "new policy from here on (profile headless)" in tao("replay", run_id, code=0).out


@pytest.mark.parametrize(
    "options", [("--profile", "strict"), ("--policy", "p.yaml"), ("--policy", "p.yaml", "--profile", "strict")]
)
def test_a_run_is_compared_with_the_options_that_it_began_with(options: tuple[str, ...], tao: Shell) -> None:
    change(tao, more="")
    tao.write("p.yaml", "rules:\n  - {tool: drop, verdict: deny}\n")
    begun = tao("run", "settle the bill", "--agent", "agent.yaml", *options, "--json", code=8)
    run_id = begun.events[0]["run_id"]
    assert "nothing has changed" in tao("resume", run_id, "--check", code=0).out
    assert "continues with" not in tao("resume", run_id, code=8).err
    tao.write("p.yaml", "rules:\n  - {tool: drop, verdict: ask}\n")
    has_file = "--policy" in options
    assert ("the agent's policy is another one" in tao("resume", run_id, "--check").out) is has_file
    (tao.folder / "p.yaml").unlink()
    checked = tao("resume", run_id, "--check", code=0)
    assert ("cannot be used now" in checked.err) is has_file


def test_calls_that_wait_or_are_in_doubt_and_edited_events_are_listed(tao: Shell) -> None:
    run_id = waiting(tao)
    assert "Waiting: pay (call_1)" in tao("resume", run_id, "--check", code=0).out
    with sqlite3.connect(tao.folder / "runs.db") as database:
        database.execute("UPDATE event SET body = replace(body, 'settle', 'forget') WHERE seq = 0")
    [record] = tao("resume", run_id, "--check", "--json", code=1).events
    assert record["waiting"] == ["call_1"]
    assert "event 0 (run_started) is not what was written" in record["damaged"][0]
    assert "Damaged: event 0" in tao("resume", run_id, "--check", code=1).out


def test_an_explanation_has_the_verdict_of_the_policy_that_replaced_the_first(tao: Shell) -> None:
    run_id = waiting(tao)
    tao("resume", run_id, "--profile", "headless", code=15)
    text = tao("policy", "explain", run_id, "call_1", code=0).out
    assert "Verdict: ask" in text
    assert "Judged again: deny: 'pay' is a write tool" in text
    [row] = tao("policy", "explain", run_id, "call_1", "--json", code=0).events
    assert (row["verdict"], row["judged_again"]["verdict"]) == ("ask", "deny")
    assert row["judged_again"]["reasons"][0].startswith("'pay' is a write tool")


def test_an_abandoned_run_is_over_for_good(tao: Shell) -> None:
    run_id = waiting(tao)
    told = tao("abandon", run_id, "--by", "ann", "--note", "Paid by hand.", code=0).out
    assert told == f"run {run_id} is abandoned and cannot be resumed\n"
    assert "was abandoned by ann" in tao("resume", run_id, code=2).err
    assert "was abandoned by ann" in tao("abandon", run_id, code=2).one_line
    shown = tao("show", run_id, code=0).out
    assert "Paid by hand." in shown
    assert "Resume" not in shown
    assert json.loads(tao("approvals", "--json", code=0).out) == []
