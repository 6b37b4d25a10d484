"""One call that somebody else decided on, as a run: judged, recorded, gone on with, and decided again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop import ApprovalAnswer, MemoryJournal, tool
from taoloop.core.cards.tool_card import TIERS, Tier, ToolCard
from taoloop.core.events import ActionRequested, ActionStarted, Observed
from taoloop.core.policy import Policy, Profile, Rule
from taoloop.core.views.transcript import Result
from taoloop.errors import IllegalEvent, RunExists
from taoloop.runtime.after.replay import replay
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.tool_call_run import ToolCallRuns, policy_for
from taoloop.strategies import get_strategy
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.toolbox import Toolbox

DONE: list[str] = []


@tool(tier="read", egress=False)
def look(name: str) -> str:
    """Look something up."""
    return f"{name} is here"


@tool(tier="write", egress=False)
def put(text: str) -> str:
    """Put a text somewhere."""
    DONE.append(text)
    return "put"


@tool(tier="destructive")
def wipe() -> str:
    """Wipe everything."""
    DONE.append("wiped")
    return "wiped"


@tool(tier="read", egress=("url",))
def fetch(url: str) -> str:
    """Fetch a page."""
    return f"the page {url}"


BOX = Toolbox([look, put, wipe, fetch])


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def calls(policy: Policy | None = None, *tiers: Tier, **more: Any) -> ToolCallRuns:
    cards = BOX.cards
    return ToolCallRuns(journal=MemoryJournal(), policy=policy or Policy(), approved_tiers=tiers, cards=cards, **more)


def make(given_calls: ToolCallRuns, name: str, run_id: str = "run", /, **args: Any) -> Result:
    return asyncio.run(given_calls.start(BOX.get(name), args, run_id=run_id))


def test_a_call_is_a_run_with_its_outcome_as_the_answer() -> None:
    result = make(calls(), "look", name="Ada")
    assert (result.status, result.answer) == ("completed", "Ada is here")
    assert result.trace.task == '{"tool": "look", "args": {"name": "Ada"}}'


def test_what_changes_something_is_written_down_before_it_happens() -> None:
    result = make(calls(None, *TIERS), "put", text="x")
    kinds = [event.kind for event in result.trace.events]
    assert kinds.index("action_started") < kinds.index("observed")
    assert DONE == ["x"]


@pytest.mark.parametrize("name", ["put", "wipe", "fetch"])
def test_what_changes_something_or_sends_data_out_waits_for_a_person(name: str) -> None:
    args = {"put": {"text": "x"}, "fetch": {"url": "https://example.com"}}.get(name, {})
    result = make(calls(), name, **args)
    assert result.status == "waiting"
    assert not DONE


@pytest.mark.parametrize(
    ("profile", "tiers", "name", "status"),
    [
        ("supervised", TIERS, "wipe", "completed"),
        ("strict", TIERS[:3], "wipe", "waiting"),
        ("supervised", TIERS[:3], "put", "completed"),
        ("headless", (), "put", "too_many_errors"),
        ("headless", TIERS, "wipe", "completed"),
        ("autonomous", (), "put", "completed"),
        ("autonomous", (), "wipe", "too_many_errors"),
        ("read-only", TIERS, "put", "too_many_errors"),
        ("locked", TIERS, "look", "too_many_errors"),
    ],
)
def test_profile_and_allowed_tiers_decide(profile: Profile, tiers: tuple[Tier, ...], name: str, status: str) -> None:
    args = {"put": {"text": "x"}, "look": {"name": "Ada"}}.get(name, {})
    assert make(calls(Policy(profile=profile), *tiers), name, **args).status == status


def test_a_rule_of_the_operator_is_the_last_word() -> None:
    denied = Policy(rules=(Rule(verdict="deny", tool="*"),))
    assert policy_for(denied, BOX.get("wipe").card, TIERS).rules == denied.rules
    assert make(calls(denied, *TIERS), "wipe").status == "too_many_errors"
    allowed = Policy(rules=(Rule(verdict="allow", tool="wipe"),))
    assert make(calls(allowed), "wipe").status == "completed"


def test_values_of_a_call_never_count_as_a_persons_words() -> None:
    allowed = Policy(rules=(Rule(verdict="deny", tool="put", tainted=True),))
    assert make(calls(allowed, *TIERS), "put", text="put x").status == "too_many_errors"


def test_a_budget_counts_over_all_calls() -> None:
    policy = Policy(rules=(Rule(verdict="deny", tool="put", calls_over=2),))
    served = calls(policy, *TIERS)
    statuses = [make(served, "put", f"run{number}", text="x").status for number in range(3)]
    assert statuses == ["completed", "completed", "too_many_errors"]
    assert make(served, "look", "other", name="Ada").status == "completed"


def test_a_call_that_was_not_made_gives_its_budget_back() -> None:
    policy = Policy(rules=(Rule(verdict="deny", tool="put", calls_over=1),))
    served = calls(policy)

    async def run() -> list[str]:
        tools = BOX.get("put")
        first = await served.start(tools, {"text": "a"}, run_id="a", approver=lambda _: False)
        second = await served.start(tools, {"text": "b"}, run_id="b", approver=lambda _: True)
        third = await served.start(tools, {"text": "c"}, run_id="c", approver=lambda _: True)
        return [first.status, second.status, third.status]

    assert asyncio.run(run()) == ["too_many_errors", "completed", "too_many_errors"]
    assert DONE == ["b"]


def test_a_call_that_waits_is_made_once_it_is_allowed() -> None:
    served = calls()

    async def run() -> Result:
        await served.start(BOX.get("wipe"), {}, run_id="run")
        return await served.resume(BOX.get("wipe"), "run", approver=lambda _: ApprovalAnswer(approved=True, by="Ada"))

    assert asyncio.run(run()).answer == "wiped"
    assert DONE == ["wiped"]


def test_a_secret_reaches_the_tool_and_not_the_journal() -> None:
    secret = "hunter2-hunter2-hunter2"
    served = calls(None, *TIERS, redactor=redactor_for({"DOOR_PASSWORD": secret}, ()))
    result = make(served, "put", text=secret)
    assert [secret] == DONE
    assert secret not in repr(result.trace.events)
    assert all(decided.same for decided in replay(result.trace))


def test_two_calls_cannot_have_one_run() -> None:
    served = calls()
    make(served, "look", name="Ada")
    with pytest.raises(RunExists):
        make(served, "look", name="Eve")


def test_the_strategy_refuses_a_task_that_is_no_call() -> None:
    result = make(calls(), "look", name="Ada")
    trace = type(result.trace)("other")
    started = result.trace.events[0]
    object.__setattr__(started.fact, "task", "look at Ada")
    trace.append(started)
    with pytest.raises(IllegalEvent, match="its task is not a call"):
        get_strategy("given").next(trace.agent, trace)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), JSON, max_size=4))
def test_arguments_reach_the_judge_exactly_as_they_came_and_replay_decides_the_same(args: dict[str, Any]) -> None:
    schema = {"type": "object", "additionalProperties": True}
    card = ToolCard(name="take", purpose="Take anything.", tier="read", egress=False, input_schema=schema)
    taking = tool_from_card(card, lambda **found: str(len(found)))
    result = asyncio.run(ToolCallRuns(journal=MemoryJournal()).start(taking, args, run_id="run"))
    requested = next(event.fact for event in result.trace.events if isinstance(event.fact, ActionRequested))
    assert requested.args == args
    assert all(decided.same for decided in replay(result.trace))


def test_an_outcome_that_nobody_knows_stays_in_doubt() -> None:
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    card = ToolCard(name="hang", purpose="Hang.", tier="write", egress=False, timeout_s=0.01)
    served = calls(None, *TIERS)
    result = asyncio.run(served.start(tool_from_card(card, hang), {}, run_id="run"))
    assert result.status == "waiting"
    assert [event.kind for event in result.trace.events][-2:] == ["in_doubt", "paused"]
    assert any(isinstance(event.fact, ActionStarted) for event in result.trace.events)
    assert not any(isinstance(event.fact, Observed) for event in result.trace.events)
