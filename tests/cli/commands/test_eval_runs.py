"""`tao eval` over stored runs: suites made of them, and something else tried on them."""

from __future__ import annotations

import json

from tests.shell import Shell

AGENT = """\
model: scripted:script.yaml
tools: [calculator, "payments:pay"]
dialect: text
policy: autonomous
"""
TOOLS = '''\
from pathlib import Path

from taoloop import tool


@tool(tier="write")
def pay(who: str) -> str:
    """Pay somebody."""
    with Path("ledger.txt").open("a") as file:
        file.write(f"{who}\\n")
    return f"paid {who}"
'''
PAYS = 'Thought: a\nAction: pay\nAction Input: {"who": "ann"}'


def stored_runs(tao: Shell) -> list[str]:
    """Two runs, one of which paid."""
    tao.write("agent.yaml", AGENT)
    tao.write("payments.py", TOOLS)
    run_ids = []
    for task, replies in (("Pay ann.", [PAYS, "Final Answer: Done"]), ("Add up.", ["Final Answer: 5"])):
        tao.script(*replies)
        run_ids.append(tao("run", task, "--agent", "agent.yaml", "--json").events[0]["run_id"])
    assert (tao.folder / "ledger.txt").read_text() == "ann\n"
    return run_ids


def test_a_suite_is_made_of_stored_runs_and_runs_without_calling_their_tools(tao: Shell) -> None:
    paid, added = stored_runs(tao)
    tao("mark", added, "wrong", "--note", "It is 6.")
    made = tao("eval", "--from-runs", "--status", "completed", "--last", "10", "--out", "suite.yaml")
    assert "suite.yaml: 1 case; the tools answer from suite.recorded.json" in made.out
    assert "1 run was marked wrong: its case is a comment" in made.err
    results = tao("eval", "suite.yaml", "--model", "oracle", "--db", "evals.db", "--out", "results.json")
    assert results.code == 0
    [trial] = json.loads((tao.folder / "results.json").read_text())["trials"]
    assert (trial["case_id"], trial["passed"]) == (paid, True)
    assert (tao.folder / "ledger.txt").read_text() == "ann\n"
    assert "suite.yaml is there already." in tao("eval", "--from-runs", "--out", "suite.yaml", code=2).err
    assert "no run fits" in tao("eval", "--from-runs", "--search", "nothing", "--out", "x.yaml", code=2).err


def test_a_model_is_tried_on_stored_runs_up_to_the_first_difference(tao: Shell) -> None:
    paid, added = stored_runs(tao)
    tao("mark", paid, "right")
    tao.write("other.yaml", json.dumps([PAYS.replace("ann", "bob"), "Final Answer: 5"]))
    tried = tao("eval", "--counterfactual", "--model", "scripted:other.yaml", "--out", "d.json", code=1)
    assert "runs the same to their end: 0 · diverging: 2 · failed: 0 · left out: 0" in tried.out
    assert "1 run: calls with other arguments: pay(who) (1 marked right)" in tried.out
    assert '+ now: {"who": "bob"}' in tried.out
    assert "1 run: calls pay instead of answering" in tried.out
    record = json.loads((tao.folder / "d.json").read_text())
    assert record["change"] == {"model": "scripted:other.yaml"}
    assert [trial["run_id"] for trial in record["trials"]] == [added, paid]
    assert (tao.folder / "ledger.txt").read_text() == "ann\n"


def test_an_agent_and_a_policy_are_tried_on_stored_runs(tao: Shell) -> None:
    stored_runs(tao)
    tao.script(PAYS, "Final Answer: Done")
    agent = tao("eval", "--counterfactual", "--agent", "agent.yaml", "--search", "ann")
    assert "the same: 100.0% (95% interval: 20.7% to 100.0%)" in agent.out
    policy = tao("eval", "--counterfactual", "--policy", "read-only", code=1)
    assert "the policy decides differently: pay: allow → deny" in policy.out
    assert (tao.folder / "ledger.txt").read_text() == "ann\n"


def test_options_that_do_not_fit_are_refused(tao: Shell) -> None:
    for arguments, message in (
        (["--counterfactual"], "There is nothing to try"),
        (["--counterfactual", "--from-runs"], "either --from-runs or --counterfactual"),
        (["--from-runs"], "Name the suite to write"),
        (["smoke", "--from-runs"], "Name no SUITE"),
        (["smoke", "--marked", "right"], "--marked chooses stored runs"),
        (["--counterfactual", "--model", "offline", "--trials", "2"], "--trials is for suites"),
        (["--counterfactual", "--model", "offline,offline"], "Give --model once"),
        (["--counterfactual", "--policy", "nobody"], "nobody"),
    ):
        assert message in tao("eval", *arguments, code=2).err
