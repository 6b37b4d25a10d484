"""Agents as tools: a call is a run inside the run; budgets nest, nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from taoloop import (
    Agent,
    ApprovalAnswer,
    ApprovalRequest,
    Limits,
    MemoryJournal,
    Result,
    ScriptedModel,
    SqliteJournal,
    tool,
)
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ActionStarted, Observed, Paused, RunStarted
from taoloop.core.message import ModelReply, Usage
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, ToolDefinitionError, ToolError
from taoloop.runtime.after.replay import replay
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.child_run import BudgetShare, ParentRun

SPENT = {"input_tokens": 10, "output_tokens": 5}


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}], "usage": SPENT, "cost_usd": 0.25}


def says(text: str, cost_usd: float | None = 0.25) -> dict[str, Any]:
    return {"text": text, "usage": SPENT, "cost_usd": cost_usd}


@tool(tier="read")
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is blue"


@tool(tier="write")
def paint(thing: str) -> str:
    """Paint a thing."""
    return f"{thing} is painted"


def agent(*replies: Any, tools: Any = (), **options: Any) -> Agent:
    return Agent(model=ScriptedModel(replies, strict=False), tools=tools, **options)


def outer(inner: Agent, *replies: Any, **options: Any) -> Agent:
    options.setdefault("journal", MemoryJournal())
    said = replies or (call("scout", task="Look at the sky."), says("The sky is blue."))
    return agent(*said, tools=[inner.as_tool(name="scout", purpose="Find things out.")], **options)


def observed(result: Result) -> Observed:
    [fact] = [event.fact for event in result.trace.events if isinstance(event.fact, Observed)]
    return fact


def inner_trace(one: Agent, run_id: str | None) -> Trace:
    assert run_id is not None
    assert one.journal is not None
    return Trace(run_id, asyncio.run(one.journal.load(run_id)))  # type: ignore[union-attr]  # always a journal here


def test_the_answer_of_the_inner_run_is_an_observation_linked_both_ways() -> None:
    one = outer(agent(call("look", at="sky"), says("blue"), tools=[look]))
    result = one.run_sync("What colour is the sky?")
    fact = observed(result)
    assert (result.answer, fact.ok, fact.output) == ("The sky is blue.", True, "blue")
    trace = inner_trace(one, fact.child)
    assert trace.started is not None
    assert (trace.started.parent, trace.started.depth, trace.run_id) == (result.run_id, 1, f"{result.run_id}.1")
    assert (trace.task, trace.status) == ("Look at the sky.", "completed")
    assert all(decided.same for decided in replay(result.trace))
    assert all(decided.same for decided in replay(trace))


def test_the_inner_run_is_for_the_same_end_user() -> None:
    one = outer(agent(says("blue")))
    bound, journal = bind(one), one.journal
    started = RunStarted(task="q", agent=bound.spec_for("q"), nonce="n", labels={"user": "ann", "key": "shop"})
    asyncio.run(bound.start(journal, Trace("r"), started))  # type: ignore[arg-type]  # always a journal here
    inner = inner_trace(one, "r.1").started
    assert inner is not None
    assert inner.labels == {"user": "ann", "started_by": "gateway_key:shop"}


def test_what_the_inner_run_used_counts_for_the_outer_one() -> None:
    result = outer(agent(call("look", at="sky"), says("blue"), tools=[look])).run_sync("q")
    assert observed(result).usage == Usage(input_tokens=20, output_tokens=10)
    assert result.usage.total_tokens == 60
    assert result.cost_usd == 1.0


def test_an_unknown_price_inside_is_unknown_outside() -> None:
    assert outer(agent(says("blue", cost_usd=None))).run_sync("q").cost_usd is None


@pytest.mark.parametrize(
    ("own", "around", "expected"),
    [
        (Limits(), Limits(max_tokens=100), Limits(max_tokens=85)),
        (Limits(max_tokens=50), Limits(max_tokens=100), Limits(max_tokens=50)),
        (Limits(max_tokens=90), Limits(max_tokens=100), Limits(max_tokens=85)),
        (Limits(max_cost_usd=2.0), Limits(max_cost_usd=1.0), Limits(max_cost_usd=0.75)),
        (Limits(max_steps=2), Limits(max_steps=9, max_tool_calls=9), Limits(max_steps=2)),
    ],
)
def test_the_inner_limits_are_the_stricter_of_its_own_and_what_is_left(
    own: Limits, around: Limits, expected: Limits
) -> None:
    one = outer(agent(says("blue"), limits=own), limits=around)
    assert inner_trace(one, observed(one.run_sync("q")).child).limits == expected


AMOUNTS = st.none() | st.integers(1, 1_000)


@given(own=AMOUNTS, around=AMOUNTS, used=st.integers(0, 1_000), agents=st.integers(1, 5))
def test_agents_together_never_get_more_than_is_left(
    own: int | None, around: int | None, used: int, agents: int
) -> None:
    outside = Trace("r")
    outside.limits = Limits(max_tokens=around)
    lent = ParentRun(parent=outside, journal=MemoryJournal(), approver=None, share=BudgetShare(agents, used, 0.0))
    if around is not None and around - used < agents:
        with pytest.raises(ToolError, match="Nothing is left"):
            lent.limits(Limits(max_tokens=own))
        return
    given_out = lent.limits(Limits(max_tokens=own)).max_tokens
    assert own is None or (given_out is not None and given_out <= own)
    assert around is None or (given_out is not None and agents * given_out <= around - used)


def test_time_nests_too() -> None:
    one = outer(agent(says("blue")), limits=Limits(max_wall_s=60, max_working_s=50))
    limits = inner_trace(one, observed(one.run_sync("q")).child).limits
    assert limits.max_wall_s is not None
    assert limits.max_working_s is not None
    assert 50 < limits.max_wall_s <= 60
    assert 40 < limits.max_working_s <= 50


def test_work_that_was_done_before_a_wait_is_not_given_once_more() -> None:
    """The outer run counts it once the call has its outcome; until then the inner run's own count holds."""
    outside, inside = Trace("r"), Trace("r.1")
    outside.limits = Limits(max_working_s=10)
    outside.working_s, inside.working_s = 2, 5
    lent = ParentRun(parent=outside, journal=MemoryJournal(), approver=None, share=BudgetShare(1, 0, 0.0), child=inside)
    assert lent.limits(Limits()).max_working_s == 8


def test_agents_that_are_called_together_share_what_is_left() -> None:
    together = {"tool_calls": [{"name": "scout", "args": {"task": t}} for t in ("a", "b", "c")], "usage": SPENT}
    one = outer(agent(says("blue")), together, says("done"), limits=Limits(max_tokens=105))
    result = one.run_sync("q")
    children = [event.fact.child for event in result.trace.events if isinstance(event.fact, Observed)]
    assert [inner_trace(one, child).limits.max_tokens for child in children] == [30, 30, 30]
    assert result.usage.total_tokens == 15 * 5


def test_an_inner_run_that_ends_badly_is_an_observation_with_its_status() -> None:
    inner = agent(call("look", at="a"), says("only a is known"), tools=[look], max_steps=1)
    fact = observed(outer(inner).run_sync("q"))
    assert fact.error is not None
    assert fact.error.code == "child_max_steps_exceeded"
    assert "only a is known" in fact.error.message
    assert fact.child is not None
    assert fact.child in fact.error.message
    assert fact.usage is not None


def test_a_model_that_fails_inside_does_not_end_the_outer_run() -> None:
    result = outer(agent()).run_sync("q")
    assert result.status == "completed"
    error = observed(result).error
    assert error is not None
    assert error.code == "child_model_failed"


def test_an_inner_agent_with_an_output_type_gives_data() -> None:
    class Colour(BaseModel):
        name: str

    inner = agent(says('{"name": "blue"}'), output_type=Colour, dialect="native")
    fact = observed(outer(inner).run_sync("q"))
    assert (fact.form, fact.output) == ("json", '{"name":"blue"}')


def test_depth_is_bounded() -> None:
    one = agent(says("deep"))
    for _ in range(5):
        one = outer(one, call("scout", task="deeper"), says("done"))
    result = one.run_sync("q")
    fact, run_id = observed(result), result.run_id
    while fact.child is not None and fact.error is None:
        run_id = fact.child
        trace = inner_trace(one, run_id)
        fact = next(event.fact for event in trace.events if isinstance(event.fact, Observed))
    assert fact.error is not None
    assert (fact.error.code, run_id) == ("too_deep", f"{result.run_id}.1.1.1")


def test_the_tier_is_what_the_agent_can_do_unasked() -> None:
    @tool
    def unknown() -> str:
        """Nobody says what it does."""
        return ""

    def tier(*tools: Any, **options: Any) -> Any:
        return agent(tools=tools, **options).as_tool(name="x", purpose="x").card.tier

    assert tier(look) == "read"
    assert tier(look, paint) == "draft"
    assert tier(look, paint, approved_tiers=("write",)) == "write"
    assert tier(look, unknown) == "draft", "it counts as destructive, so a person is asked inside"
    assert tier(look, unknown, approved_tiers=("destructive",)) == "destructive"
    assert agent(tools=[look]).as_tool(name="x", purpose="x", tier="destructive").card.tier == "destructive"


def test_a_call_sends_data_out_only_where_a_tool_inside_may_unasked() -> None:
    def egress(**options: Any) -> Any:
        return agent(tools=[look, paint], **options).as_tool(name="x", purpose="x").card.egress

    assert egress() is False, "a person is asked inside"
    assert egress(approved_tiers=("write",)) is True, "paint does not say that it sends nothing"


def test_a_name_that_no_model_can_call_is_refused() -> None:
    with pytest.raises(ToolDefinitionError):
        agent(name="Späher und Co").as_tool(purpose="x")
    with pytest.raises(ConfigError):
        agent().as_tool(name="x", purpose="x", tier="harmless")  # type: ignore[arg-type]


def test_the_answer_of_another_run_is_never_taken_for_that_of_a_call() -> None:
    """Whoever names runs may name one as a call's run would be."""
    journal = MemoryJournal()
    agent(says("a secret"), journal=journal).run_sync("Something else.", run_id="job.1")
    result = outer(agent(says("blue")), journal=journal).run_sync("q", run_id="job")
    fact = observed(result)
    assert (fact.ok, fact.child, fact.usage) == (False, None, None)
    assert fact.error is not None
    assert fact.error.code == "run_exists"
    assert "secret" not in str(result.trace.events)


# A person's answer


def painter(**options: Any) -> Agent:
    return agent(call("paint", thing="door"), says("painted"), tools=[paint], **options)


def test_the_outer_approver_is_asked_about_the_inner_call() -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> ApprovalAnswer:
        asked.append(request)
        return ApprovalAnswer(approved=True)

    result = outer(painter(), approve=approve).run_sync("q")
    assert [(one.tool, one.run_id) for one in asked] == [("paint", f"{result.run_id}.1")]
    assert observed(result).output == "painted"


def test_an_inner_run_that_waits_makes_the_outer_one_wait_and_goes_on_with_it() -> None:
    one = outer(painter())
    waiting = one.run_sync("q")
    assert waiting.status == "waiting"
    paused = waiting.trace.events[-1].fact
    assert isinstance(paused, Paused)
    assert paused.waiting_for == ("call_1",)
    assert f"scout (call_1): paint (call_1, write) in run {waiting.run_id}.1" in paused.reason
    assert one.resume_sync(waiting.run_id).status == "waiting"
    done = one.resume_sync(waiting.run_id, approved_tiers=("write",))
    assert (done.status, observed(done).output, observed(done).child) == ("completed", "painted", f"{done.run_id}.1")
    inner = inner_trace(one, f"{done.run_id}.1")
    assert sum(isinstance(event.fact, Observed) for event in inner.events) == 1
    assert done.usage.total_tokens == 60
    assert all(decided.same for decided in replay(done.trace))
    assert all(decided.same for decided in replay(inner))


def test_an_agent_with_an_approver_of_its_own_asks_one_question_at_a_time_too() -> None:
    asking: list[str] = []

    async def approve(request: ApprovalRequest) -> bool:
        assert not asking
        asking.append(request.run_id)
        await asyncio.sleep(0)
        asking.clear()
        return True

    one = painter(approve=approve)
    two = [one.as_tool(name=name, purpose="x").with_card(parallel=True) for name in ("left", "right")]
    both = {"tool_calls": [{"name": one.name, "args": {"task": "do"}} for one in two]}
    result = agent(both, says("done"), tools=two).run_sync("q")
    assert result.status == "completed"
    assert all(event.fact.ok for event in result.trace.events if isinstance(event.fact, Observed))


def test_what_is_allowed_ahead_outside_is_allowed_inside() -> None:
    assert outer(painter(), approved_tiers=("write",)).run_sync("q").status == "completed"


def test_a_waiting_inner_run_that_was_answered_by_itself_gives_its_answer() -> None:
    inner = painter()
    one = outer(inner)
    waiting = one.run_sync("q")
    alone = Agent(model=inner.model, tools=[paint], journal=one.journal)
    assert alone.resume_sync(f"{waiting.run_id}.1", approved_tiers=("write",)).status == "completed"
    done = one.resume_sync(waiting.run_id)
    assert (done.status, observed(done).output) == ("completed", "painted")


def test_agents_beside_each_other_ask_one_question_at_a_time() -> None:
    asking: list[str] = []

    async def approve(request: ApprovalRequest) -> bool:
        assert not asking
        asking.append(request.run_id)
        await asyncio.sleep(0)
        asking.clear()
        return True

    two = [painter().as_tool(name=name, purpose="x").with_card(parallel=True) for name in ("left", "right")]
    both = {"tool_calls": [{"name": one.name, "args": {"task": "do"}} for one in two]}
    assert agent(both, says("done"), tools=two, approve=approve).run_sync("q").answer == "done"


def test_one_that_waits_does_not_hold_up_those_beside_it() -> None:
    tools = [painter().as_tool(name="painter", purpose="x"), agent(says("blue")).as_tool(name="scout", purpose="x")]
    tools = [one.with_card(parallel=True) for one in tools]
    both = {"tool_calls": [{"name": name, "args": {"task": "do"}} for name in ("painter", "scout")]}
    one = agent(both, says("done"), tools=tools, journal=MemoryJournal())
    waiting = one.run_sync("q")
    assert (waiting.status, observed(waiting).output) == ("waiting", "blue")
    done = one.resume_sync(waiting.run_id, approved_tiers=("write",))
    assert done.status == "completed"
    assert [event.fact.call_id for event in done.trace.events if isinstance(event.fact, ActionStarted)].count(
        "call_2"
    ) <= 1
    assert all(decided.same for decided in replay(done.trace))


# A stop and a crash


class Slow:
    """A model that never answers."""

    spec = "slow"
    dialect = "native"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def complete(self, request: ModelRequest) -> ModelReply:  # noqa: ARG002  # whatever it is asked
        self.asked.set()
        await asyncio.sleep(3600)
        return ModelReply(text="too late")

    def check_used(self, replies: int) -> None:
        pass

    async def close(self) -> None:
        pass


def test_a_stop_of_the_outer_run_stops_the_inner_one_and_both_go_on_together() -> None:
    journal = MemoryJournal()

    async def stopped() -> str:
        model = Slow()
        running = asyncio.create_task(outer(Agent(model=model), journal=journal).run("q", run_id="r"))
        await model.asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return "r"

    run_id = asyncio.run(stopped())
    one = outer(agent(says("blue")), journal=journal)
    assert inner_trace(one, f"{run_id}.1").status == "stopped"
    done = one.resume_sync(run_id)
    assert (done.status, observed(done).output) == ("completed", "blue")
    assert all(decided.same for decided in replay(inner_trace(one, f"{run_id}.1")))


def test_a_time_limit_stops_the_inner_run_and_keeps_its_link() -> None:
    inner = Agent(model=Slow())
    one = agent(
        call("scout", task="x"),
        says("too slow"),
        tools=[inner.as_tool(name="scout", purpose="x", timeout_s=0.05)],
        journal=MemoryJournal(),
    )
    result = one.run_sync("q")
    fact = observed(result)
    assert fact.error is not None
    assert (fact.error.code, fact.child) == ("timeout", f"{result.run_id}.1")
    assert inner_trace(one, fact.child).status == "stopped"


CRASH = textwrap.dedent(
    """
    import os, signal, sys
    from taoloop import Agent, ScriptedModel, tool

    @tool(tier="write")
    def paint(thing: str) -> str:
        "Paint a thing."
        with open("painted", "a") as file:
            file.write(thing)
        if sys.argv[1] == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        return "painted"

    @tool(tier="read")
    def look() -> str:
        "Look."
        return "it is painted: " + open("painted").read()

    def call(name, **args):
        return {"tool_calls": [{"name": name, "args": args}]}

    inner = Agent(
        model=ScriptedModel([call("paint", thing="door"), call("look"), "painted once"]),
        tools=[paint, look], approved_tiers=("write",), approve=lambda question: False,
    )
    outer = Agent(
        model=ScriptedModel([call("painter", task="Paint the door."), "done"]),
        tools=[inner.as_tool(name="painter", purpose="Paint.", tier="draft")],
        journal="runs.db", approve=lambda question: True,
    )
    if sys.argv[1] == "crash":
        outer.run_sync("q", run_id="r")
    else:
        result = outer.resume_sync("r")
        print(result.status, result.trace.calls["call_1"].observed.output)
    """
)


def test_after_kill_9_inside_the_inner_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """The call inside is in doubt and not repeated; the call of the agent is the same run, taken up again."""
    (tmp_path / "crash.py").write_text(CRASH, encoding="utf-8")
    run = [sys.executable, "crash.py"]
    assert subprocess.run([*run, "crash"], cwd=tmp_path, check=False).returncode == -signal.SIGKILL
    done = subprocess.run([*run, "resume"], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert done.stdout == "completed painted once\n", done.stderr
    assert (tmp_path / "painted").read_text() == "door"

    async def inner() -> Trace:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            return Trace("r.1", await journal.load("r.1"))

    codes = [
        event.fact.error.code
        for event in asyncio.run(inner()).events
        if isinstance(event.fact, Observed) and event.fact.error
    ]
    assert codes == ["in_doubt"]


def test_called_by_hand_the_agent_runs_by_itself() -> None:
    one = agent(says("blue"), journal=MemoryJournal()).as_tool(name="scout", purpose="x")
    assert one.prepare({"task": "look"}).args == {"task": "look"}


def test_a_run_inside_does_not_go_on_with_a_tool_that_does_more_than_it_did() -> None:
    made: list[str] = []

    def both(tier: Any, *replies: Any, journal: MemoryJournal) -> Agent:
        @tool(tier=tier)
        def peek(at: str) -> str:
            """Peek."""
            made.append(at)
            return "seen"

        first = [call("paint", thing="wall")] if not replies else [call("peek", at="x"), "ok"]
        inner = agent(*first, tools=[peek, paint]).as_tool(purpose="Look.", name="inner", tier="draft")
        script = ScriptedModel(list(replies) or [call("inner", task="go")], strict=False)
        return Agent(model=script, tools=[inner], journal=journal)

    journal = MemoryJournal()
    waiting = both("read", journal=journal).run_sync("q")
    assert waiting.status == "waiting"
    result = both("destructive", "done", journal=journal).resume_sync(waiting.run_id)
    assert result.status != "waiting"
    assert "had the tier 'read'" in str(observed(result).error)
    assert made == []
