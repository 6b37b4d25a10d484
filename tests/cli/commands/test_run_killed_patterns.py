"""`kill -9` in every pattern: a real process dies at each point; resumed, nothing is done twice.

The same boundaries are tried in process, append by append, where the patterns have their tests.
"""

from __future__ import annotations

import json
import signal

import pytest
from tests.shell import WAIT_S, Shell

TEAM = '''
import os, signal
from pathlib import Path

from taoloop import END, START, Agent, Graph, Limits, Node, tool
from taoloop.models.function import FunctionModel
from taoloop.runtime import Handoff

points = iter(range(1, 1_000))


def point(name):
    """Note that the process has come here, and die here if it shall."""
    with open("points", "a") as file:
        print(name, file=file)
    if str(next(points)) == os.environ.get("KILL_AT"):
        os.kill(os.getpid(), signal.SIGKILL)


def was_paid(order):
    """Ask the ledger, which is what the world remembers."""
    return "paid" if Path("ledger").exists() and order in Path("ledger").read_text().split() else False


@tool(tier="read")
def find(customer: str) -> dict:
    """Find the orders of a customer."""
    point("find")
    return {"orders": [{"id": "S-1"}]}


@tool(tier="read")
def find_one(customer: str) -> dict:
    """Find the order of a customer."""
    point("find")
    return {"order": "S-1"}


@tool(tier="write", egress=False, probe=was_paid)
def pay(order: str) -> str:
    """Pay for an order."""
    point("pay")
    with open("ledger", "a") as file:
        print(order, file=file)
    point("paid")
    return "paid"


def call(name, **args):
    return {"tool_calls": [{"name": name, "args": args}]}


def goes_by_trace(*replies):
    """A model that can be asked in any process: it gives the reply after those that are stored."""

    def reply(_task, trace):
        point("asked")
        return replies[trace.model_calls]

    return FunctionModel(reply, dialect="native")


options = {"tools": [find, pay], "approve": lambda question: True}
order = {"from": "tool:find.orders[].id", "step": 1}
steps = [
    {"number": 1, "goal": "Find it", "calls": [{"tool": "find", "args": {"customer": "ann"}}]},
    {"number": 2, "goal": "Pay it", "calls": [{"tool": "pay", "args": {"order": order}}]},
]
plan = Agent(model=goes_by_trace(call("make_plan", steps=steps), "Paid."), strategy="plan_execute", **options)
found, paid = call("find", customer="ann"), call("pay", order="S-1")
finding = '- It says S-2, but "S-1" [obs:call_1]'
reflect = Agent(model=goes_by_trace(found, "It is S-2.", finding, paid, "Paid.", "NONE"), strategy="reflect", **options)
clerk = Agent(name="clerk", description="Pays.", model=goes_by_trace(found, paid, "Paid."), **options)
over = call("hand_over_to_clerk", reason="It is about money.")
handoff = Agent(name="desk", model=goes_by_trace(over), handoffs=[Handoff(agent=clerk)], approve=lambda question: True)
samples = ("Paid.", "Not paid.", "Unknown.")
vote = Agent(model=goes_by_trace(*samples, found, paid, "Paid."), strategy="cot_sc_then_react:n=3", **options)
backoff = Agent(
    model=goes_by_trace(found, paid, "Paid.", "Not paid.", "paid"),
    strategy="react_then_cot_sc:n=3",
    limits=Limits(max_steps=2),
    **options,
)
judge = Agent(name="judge", model=goes_by_trace("pay"))
graph = Graph(
    state={
        "type": "object",
        "properties": {name: {"type": "string", "default": ""} for name in ("customer", "order", "verdict", "receipt")},
    },
    nodes={
        "find": Node(find_one, writes={"order": "order"}),
        "judge": Node(judge, args={"task": "Pay {order}?"}, writes="verdict"),
        "pay": Node(pay, writes="receipt"),
    },
    edges={START: "find", "find": "judge", "judge": {"verdict == 'pay'": "pay", "else": END}, "pay": END},
    answer="Paid.",
).agent(approve=lambda question: True)
'''
POINTS = {
    "plan": ["asked", "find", "pay", "paid", "asked"],
    "reflect": ["asked", "find", "asked", "asked", "asked", "pay", "paid", "asked", "asked"],
    "handoff": ["asked", "asked", "find", "asked", "pay", "paid", "asked"],
    "vote": ["asked", "asked", "asked", "asked", "find", "asked", "pay", "paid", "asked"],
    "backoff": ["asked", "find", "asked", "pay", "paid", "asked", "asked", "asked"],
    "graph": ["find", "asked", "pay", "paid"],
}
"""Where a process comes to that is left alone."""

EVERY_POINT = [(pattern, at) for pattern, points in POINTS.items() for at in range(1, len(points) + 1)]


def die_and_resume(tao: Shell, pattern: str, at: int) -> list[str]:
    """Kill a run when it comes to a point, and resume it to its end; the points that the two processes came to."""
    tao.write("team.py", TEAM)
    task = '{"customer": "ann"}' if pattern == "graph" else "Pay the order of ann."
    process = tao.start("run", task, "--agent", f"team:{pattern}", "--json", KILL_AT=str(at))
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == -signal.SIGKILL
    run_id = json.loads(out.splitlines()[0])["run_id"]
    resumed = tao("resume", run_id, "--agent", f"team:{pattern}", "--json", code=0)
    assert (resumed.events[-1]["kind"], resumed.events[-1]["answer"]) == ("finished", "Paid.")
    assert (tao.folder / "ledger").read_text().split() == ["S-1"]
    assert tao("replay", run_id, code=0).out.endswith("all the same as recorded\n")
    return (tao.folder / "points").read_text().split()


@pytest.mark.parametrize("pattern", POINTS)
def test_a_run_killed_after_its_effect_goes_on_and_does_nothing_twice(tao: Shell, pattern: str) -> None:
    """S0-38: what was done and stored before is neither done nor paid for again."""
    points = POINTS[pattern]
    assert die_and_resume(tao, pattern, points.index("paid") + 1) == points


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("pattern", "at"), [(name, at + 1) for name, points in POINTS.items() for at in range(len(points))]
)
def test_a_run_killed_at_any_point_comes_to_its_end(tao: Shell, pattern: str, at: int) -> None:
    points = POINTS[pattern]
    repeated = [] if points[at - 1] == "paid" else [points[at - 1]]  # the one in progress is begun again
    assert die_and_resume(tao, pattern, at) == [*points[:at], *repeated, *points[at:]]
