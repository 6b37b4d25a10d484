"""`tao run --profile` and `--policy`: what the operator says holds, and mistakes are told with their place."""

from __future__ import annotations

import json

import pytest
from tests.shell import Shell, call

TOOLS = '''
from taoloop import tool

@tool(tier="write")
def book(place: str) -> str:
    """Book a table at a place."""
    with open("booked.txt", "a") as file:
        file.write(place)
    return "booked"
'''


def begin(tao: Shell, *options: str, code: int, policy: str = "") -> str:
    tao.write("mytools.py", TOOLS)
    if policy:
        tao.write("policy.yaml", policy)
    tao.write("agent.yaml", f"model: {tao.script(call('book', place='X1'), 'done')}\ntools: [mytools:book]\n")
    ended = tao("run", "look around", "--agent", "agent.yaml", "--json", *options, code=code)
    return ended.out + ended.err


def booked(tao: Shell) -> bool:
    return (tao.folder / "booked.txt").exists()


@pytest.mark.parametrize(("profile", "code"), [("headless", 15), ("read-only", 0), ("locked", 0)])
def test_a_profile_in_which_nobody_is_asked_denies_and_the_run_goes_on(profile: str, code: int, tao: Shell) -> None:
    said = begin(tao, "--profile", profile, code=code)
    assert '"denied"' in said
    assert profile in said, "the model and the reader are told why"
    assert not booked(tao)


def test_a_blocked_run_names_what_was_denied(tao: Shell) -> None:
    end = begin(tao, "--profile", "headless", code=15)
    finished = json.loads(next(line for line in end.splitlines() if '"kind":"finished"' in line))
    assert (finished["status"], finished["answer"], finished["denied"]) == ("blocked", "done", ["call_1"])
    assert "book (call_1)" in finished["reason"]
    [row] = tao("runs", "--status", "blocked", "--json").events
    assert row["run_id"] == finished["run_id"]
    assert "book (call_1)" in tao("show", row["run_id"], code=0).out


def test_the_profile_autonomous_asks_nobody(tao: Shell) -> None:
    begin(tao, "--profile", "autonomous", code=0)
    assert booked(tao)


def test_a_rule_of_the_file_decides_and_its_reason_is_told(tao: Shell) -> None:
    rule = "rules:\n  - {verdict: deny, tool: book, args: {place: 'x*'}, reason: no such tables}\n"
    said = begin(tao, "--policy", "policy.yaml", "--profile", "autonomous", code=0, policy=rule)
    assert "no such tables" in said
    assert not booked(tao)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("profile: stict\n", "policy.yaml:1: profile"),
        ("rules:\n  - verdict: deny\n    tols: book\n", "policy.yaml:3: rules[0].tols"),
        ("rules:\n  - verdict: deny\n  - {verdict: allow, tool: book}\n", "policy.yaml:3: rules[1]"),
        ("rules:\n  - {verdict: deny, tool: bok}\n", "the agent has no such tool"),
    ],
)
def test_a_file_with_a_mistake_ends_in_one_line(policy: str, says: str, tao: Shell) -> None:
    assert says in begin(tao, "--policy", "policy.yaml", code=2, policy=policy)
    assert not booked(tao)


def test_a_file_that_is_not_there_and_an_unknown_profile(tao: Shell) -> None:
    assert "there is no such file" in begin(tao, "--policy", "none.yaml", code=2)
    assert "supervised" in begin(tao, "--profile", "loose", code=2)
