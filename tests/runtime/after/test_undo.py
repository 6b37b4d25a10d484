"""Undo: what a run did is taken back in reverse, under the promises of every run, and never twice."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, MemoryJournal, Result, ScriptedModel, SqliteJournal, Trace, tool
from taoloop.core.events import (
    ActionStarted,
    ApprovalGiven,
    Compensated,
    Event,
    Finished,
    Noted,
    Observed,
    RunStarted,
    Verdict,
)
from taoloop.core.policy import Policy, Rule
from taoloop.core.views.steps import UNDONE
from taoloop.dialects.conversation import Conversation
from taoloop.errors import ConfigError, FenceLost, RunHeld, RunNotFound, ToolError
from taoloop.runtime.after.fork import store_fork
from taoloop.runtime.after.replay import replay
from taoloop.runtime.after.undo import UndoResult, approved_by, plan_undo, undo
from taoloop.runtime.resume_facts import undone_calls
from taoloop.testing import violations
from taoloop.tools.builtin.catalog import builtin_tools, offered_tool
from taoloop.tools.tool import Tool, ToolContext

YES = approved_by("user")
WORLD: dict[str, Any] = {}
LOG: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    WORLD.clear()
    LOG.clear()


def _order() -> Tool:
    @tool(name="order", tier="write", compensation="cancel")
    def order(item: str) -> dict[str, Any]:
        """Order an item."""
        WORLD[item] = len(LOG)
        LOG.append(("order", item))
        return {"id": f"order-{item}", "item": item}

    return order.with_card(compensation_args={"order_id": "output.id", "because": "args.item"})


@tool(tier="write")
def cancel(order_id: str, because: str = "") -> str:
    """Cancel an order."""
    LOG.append(("cancel", order_id))
    if WORLD.get("refuse") == order_id:
        raise ToolError("It was shipped.", code="shipped")
    if WORLD.get("break") == order_id:
        raise RuntimeError("connection lost")
    del WORLD[order_id.removeprefix("order-")]
    return "cancelled"


@tool(name="send", tier="destructive")
def send(to: str) -> str:
    """Send a mail."""
    return "sent"


@tool(tier="read")
def look() -> str:
    """Look."""
    return "seen"


order = _order()


def call(name: str, /, **args: Any) -> dict[str, Any]:
    return {"text": f"I use {name}.", "tool_calls": [{"name": name, "args": args}]}


def both(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args} for name, args in calls]}


def agent(script: list[Any], **options: Any) -> Agent:
    given: dict[str, Any] = {
        "tools": [order, look, send],
        "journal": MemoryJournal(),
        "policy": "autonomous",
        "max_steps": 20,
    }
    return Agent(model=ScriptedModel([*script, "done"]), **(given | options))


async def _undo(ran: Agent, run_id: str, **options: Any) -> UndoResult:
    assert isinstance(ran.journal, MemoryJournal)
    options.setdefault("tools", [cancel])
    return await undo(ran, ran.journal, run_id, **options)


def undone(ran: Agent, run_id: str, **options: Any) -> UndoResult:
    options.setdefault("approver", YES)
    done = asyncio.run(_undo(ran, run_id, **options))
    for result in done.runs:
        sound(result.trace)
    sound(load(ran, run_id))
    return done


def load(ran: Agent, run_id: str) -> Trace:
    assert isinstance(ran.journal, MemoryJournal)
    return Trace(run_id, asyncio.run(ran.journal.load(run_id)))


def sound(trace: Trace) -> None:
    assert [one for one in replay(trace) if not one.same] == []
    if trace.finished is not None or trace.paused is not None:
        assert violations(trace) == []


def facts(trace: Trace, kind: type[Any]) -> list[Any]:
    return [event.fact for event in trace.events if isinstance(event.fact, kind)]


def standings(done: UndoResult) -> list[tuple[str, str]]:
    return [(item.name, item.status) for item in done.now.items]


def test_what_a_run_did_is_taken_back_in_reverse() -> None:
    ran = agent([call("order", item="a"), call("look"), call("order", item="b")])
    first = ran.run_sync("x")
    LOG.clear()
    done = undone(ran, first.run_id)
    assert LOG == [("cancel", "order-b"), ("cancel", "order-a")]
    assert done.complete
    assert [item.name for item in done.undone] == ["call_3", "call_1"]
    noted = facts(load(ran, first.run_id), Compensated)
    assert [(fact.call_id, fact.ok) for fact in noted] == [("call_3", True), ("call_1", True)]
    assert noted[0].by_call_id == f"{first.run_id}.undo-1:call_1"
    again = undone(ran, first.run_id)
    assert again.runs == ()
    assert [item.status for item in again.now.items] == ["undone", "undone"]


def test_the_undo_is_a_run_with_intents_and_an_approval_for_each_call() -> None:
    ran = agent([call("order", item="a")])
    first = ran.run_sync("x")
    [result] = undone(ran, first.run_id).runs
    trace = result.trace
    [approval], [intent] = facts(trace, ApprovalGiven), facts(trace, ActionStarted)
    assert (approval.by, approval.note) == ("user", "the plan as a whole")
    assert approval.digest == trace.calls["call_1"].requested.digest
    assert intent.idempotency_key == f"{first.run_id}.undo-1:call_1"
    started = facts(trace, RunStarted)[0]
    assert started.undoes.run_id == first.run_id
    assert result.status == "completed"
    assert trace.model_calls == 1  # the decision from the plan


def test_the_plan_changes_nothing() -> None:
    ran = agent([call("order", item="a")])
    first = ran.run_sync("x")
    before = load(ran, first.run_id).events
    LOG.clear()
    assert isinstance(ran.journal, MemoryJournal)
    plan = asyncio.run(plan_undo(ran, ran.journal, first.run_id, tools=[cancel]))
    assert [(item.tool, item.call.args if item.call else None) for item in plan.todo] == [
        ("order", {"order_id": "order-a", "because": "a"})
    ]
    assert load(ran, first.run_id).events == before
    assert LOG == []


def test_back_to_a_step() -> None:
    ran = agent([call("order", item="a"), call("order", item="b"), call("order", item="c")])
    first = ran.run_sync("x")
    done = undone(ran, first.run_id, to_step=1)
    assert [item.name for item in done.undone] == ["call_3", "call_2"]
    assert done.complete
    assert set(WORLD) == {"a"}
    assert [item.name for item in undone(ran, first.run_id).undone] == ["call_1"]
    for step in (-1, 5, True):
        with pytest.raises(ConfigError, match="cannot be undone to step"):
            undone(ran, first.run_id, to_step=step)


def test_what_cannot_be_undone_is_said_with_the_reason() -> None:
    ran = agent([call("send", to="x@y.z"), call("order", item="a")])
    first = ran.run_sync("x")
    done = undone(ran, first.run_id)
    assert not done.complete
    assert standings(done) == [("call_2", "undone"), ("call_1", "cannot")]
    assert done.left[0].why == "send names no call that undoes it"
    other = replace(ran, tools=[order, look, send.with_card(reversible=False)])
    second = other.run_sync("x")
    assert undone(other, second.run_id).left[0].why == "a call of send cannot be undone"


def test_a_compensation_that_fails_stops_the_undo_and_the_next_one_goes_on() -> None:
    ran = agent([call("order", item="a"), call("order", item="b"), call("order", item="c")])
    first = ran.run_sync("x")
    WORLD["refuse"] = "order-b"
    done = undone(ran, first.run_id)
    assert [item.name for item in done.undone] == ["call_3"]
    assert [(item.name, item.status) for item in done.left] == [("call_2", "undo"), ("call_1", "undo")]
    assert "It was shipped." in done.left[0].why
    [result] = done.runs
    assert result.status == "too_many_errors"
    assert "call_2" in result.reason
    noted = facts(load(ran, first.run_id), Compensated)
    assert [(fact.call_id, fact.ok) for fact in noted] == [("call_3", True), ("call_2", False)]
    WORLD["refuse"] = ""
    LOG.clear()
    assert undone(ran, first.run_id).complete
    assert LOG == [("cancel", "order-b"), ("cancel", "order-a")]


def test_a_call_can_be_left_alone() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")])
    first = ran.run_sync("x")
    WORLD["refuse"] = "order-b"
    done = undone(ran, first.run_id, skip=["call_2"])
    assert standings(done) == [("call_2", "skipped"), ("call_1", "undone")]
    assert not done.complete
    with pytest.raises(ConfigError, match="no call 'call_9'"):
        undone(ran, first.run_id, skip=["call_9"])


def test_a_compensation_that_breaks_may_have_happened_and_is_not_repeated_unasked() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")])
    first = ran.run_sync("x")
    WORLD["break"] = "order-b"
    done = undone(ran, first.run_id)
    assert standings(done) == [("call_2", "unknown"), ("call_1", "undo")]
    LOG.clear()
    done = undone(ran, first.run_id)
    assert LOG == [("cancel", "order-a")]
    assert not done.complete
    WORLD["break"] = ""
    assert undone(ran, first.run_id, again=["call_2"]).complete
    assert LOG[-1] == ("cancel", "order-b")


def test_without_an_answer_it_waits_and_nothing_happens() -> None:
    ran = agent([call("order", item="a")])
    first = ran.run_sync("x")
    LOG.clear()
    done = undone(ran, first.run_id, approver=None)
    assert done.waits
    assert LOG == []
    done = undone(ran, first.run_id)  # the one that waits is closed, and another one begins
    assert done.complete
    assert LOG == [("cancel", "order-a")]
    assert load(ran, f"{first.run_id}.undo-1").status == "stopped"


def test_a_refusal_stops_the_undo() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")])
    first = ran.run_sync("x")
    done = undone(ran, first.run_id, approver=lambda _: ApprovalAnswer(approved=False, note="not now"))
    assert done.undone == ()
    assert set(WORLD) == {"a", "b"}


def test_what_the_operator_denies_stays_denied() -> None:
    policy = Policy(profile="autonomous", rules=(Rule(verdict="deny", tool="cancel"), Rule(verdict="allow")))
    ran = agent([call("order", item="a")], policy=policy, tools=[order, cancel])
    first = ran.run_sync("x")
    done = undone(ran, first.run_id)
    assert set(WORLD) == {"a"}
    assert "denied" in done.left[0].why


def test_rules_in_python_may_deny_but_do_not_spare_the_question() -> None:
    asked: list[str] = []

    def approve(request: Any) -> bool:
        asked.append(request.tool)
        return True

    ran = agent([call("order", item="a")], rules=[lambda *_: Verdict(kind="allow")])
    first = ran.run_sync("x")
    assert undone(ran, first.run_id, approver=approve).complete
    assert asked == ["cancel"]
    ran = agent(
        [call("order", item="a")], rules=[lambda _t, a, _c: Verdict(kind="deny") if a.tool == "cancel" else None]
    )
    first = ran.run_sync("x")
    assert not undone(ran, first.run_id).complete


def test_arguments_that_a_person_put_in_place_count() -> None:
    ran = agent(
        [call("order", item="a")],
        policy="strict",
        approve=lambda _: ApprovalAnswer(approved=True, args={"item": "z"}),
    )
    first = ran.run_sync("x")
    assert set(WORLD) == {"z"}
    [item] = undone(ran, first.run_id).undone
    assert (item.args, item.call and item.call.args) == ({"item": "z"}, {"order_id": "order-z", "because": "z"})


def test_what_an_argument_needs_is_not_guessed() -> None:
    @tool(name="order", tier="write", compensation="cancel")
    def bare(item: str) -> str:
        """Order."""
        return "ok"

    ran = agent([call("order", item="a")], tools=[bare.with_card(compensation_args={"order_id": "output.id"})])
    first = ran.run_sync("x")
    [left] = undone(ran, first.run_id).left
    assert left.why == "cancel undoes it and needs order_id from output.id, which the record does not have"
    ran = agent([call("order", item="a")], tools=[bare.with_card(compensation_args={})])
    first = ran.run_sync("x")
    [left] = undone(ran, first.run_id).left
    assert left.why.startswith("the arguments do not fit cancel")
    [left] = undone(ran, first.run_id, tools=[]).left
    assert left.why == "the tool cancel, which undoes it, is missing"
    ran = agent([call("order", item="a")], tools=[bare.with_card(compensation_args={"order_id": "call_id"})])
    WORLD["call_1"] = 1
    first = ran.run_sync("x")
    assert undone(ran, first.run_id).complete


def test_a_long_output_is_read_from_where_it_is_kept() -> None:
    @tool(name="order", tier="write", compensation="cancel", max_preview_chars=50)
    def long(item: str) -> dict[str, Any]:
        """Order."""
        WORLD[item] = 1
        return {"note": "x" * 500, "id": f"order-{item}"}

    ran = agent([call("order", item="a")], tools=[long.with_card(compensation_args={"order_id": "output.id"})])
    first = ran.run_sync("x")
    assert first.trace.calls["call_1"].observed.artifact  # type: ignore[union-attr]
    assert undone(ran, first.run_id).complete


def test_failed_calls_need_nothing_and_broken_ones_are_looked_at_by_hand() -> None:
    @tool(name="order", tier="write", compensation="cancel")
    def failing(item: str) -> str:
        """Order."""
        if item == "known":
            raise ToolError("out of stock", code="stock")
        raise RuntimeError("connection lost")

    ran = agent([call("order", item="known"), call("order", item="other"), call("order", wrong=1)], tools=[failing])
    first = ran.run_sync("x")
    done = undone(ran, first.run_id)
    assert standings(done) == [("call_2", "unknown")]
    assert "connection lost" in done.left[0].why


def test_a_run_that_was_killed_during_a_call_is_looked_at_by_hand() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")])
    whole = ran.run_sync("x")
    cut = max(e.seq for e in whole.trace.events if isinstance(e.fact, ActionStarted)) + 1
    journal = MemoryJournal()
    asyncio.run(_put(journal, "k", whole.trace.events[:cut]))
    ran = replace(ran, journal=journal)
    done = undone(ran, "k")
    assert standings(done) == [("call_2", "unknown"), ("call_1", "undone")]
    assert load(ran, "k").status == "running"  # it can still be resumed


async def _put(journal: MemoryJournal, run_id: str, events: list[Event]) -> None:
    await journal.append(await journal.create(run_id), events)


@pytest.mark.parametrize("idempotent", [True, False])
def test_an_undo_killed_at_any_event_is_gone_on_with_and_compensates_nothing_twice(idempotent: bool) -> None:
    """Every prefix of the undo's trace is what a `kill -9` may leave, with and without its effect on the world."""
    mine = cancel.with_card(idempotent=idempotent)
    ran = agent([call("order", item="a"), call("order", item="b")])
    first = ran.run_sync("x")
    undo_id = f"{first.run_id}.undo-1"
    original = load(ran, first.run_id).events
    undone(ran, first.run_id, tools=[mine])
    recorded = load(ran, undo_id).events
    for cut in range(1, len(recorded) + 1):
        journal = MemoryJournal()
        asyncio.run(_put(journal, first.run_id, original))
        asyncio.run(_put(journal, undo_id, recorded[:cut]))
        left = Trace(undo_id, recorded[:cut])
        done_before = [n for n, c in left.calls.items() if c.observed is not None]
        doubtful = [n for n, c in left.pending.items() if c.attempts]
        WORLD.clear()
        WORLD.update({"a": 1, "b": 1})
        for call_id in done_before:
            del WORLD[{"call_1": "b", "call_2": "a"}[call_id]]
        LOG.clear()
        again = replace(ran, journal=journal)
        done = undone(again, first.run_id, tools=[mine])
        expected = [("cancel", "order-b"), ("cancel", "order-a")][len(done_before) :]
        if doubtful and not idempotent:
            assert LOG == [], cut  # what was in flight is not repeated, and what follows may rest on it
            assert "unknown" in [item.status for item in done.now.items]
            done = undone(again, first.run_id, tools=[mine])
            assert expected[1:] == LOG, cut
            assert not done.complete
        else:
            assert expected == LOG, cut
            assert done.complete, cut
        noted = [(f.call_id, f.ok) for f in facts(load(again, first.run_id), Compensated) if f.ok]
        assert len(noted) == len(set(noted))


def test_what_runs_inside_did_is_undone_too_in_the_right_order() -> None:
    journal = MemoryJournal()
    inner = agent([call("order", item="in1"), call("order", item="in2")], journal=None, name="helper")
    outer = agent(
        [call("order", item="out1"), call("helper", task="do"), call("order", item="out2")],
        tools=[order, inner.as_tool(purpose="Does things.")],
        journal=journal,
    )
    first = outer.run_sync("x")
    assert set(WORLD) == {"out1", "in1", "in2", "out2"}
    LOG.clear()
    done = undone(outer, first.run_id)
    assert [name for _, name in LOG] == ["order-out2", "order-in2", "order-in1", "order-out1"]
    assert done.complete
    assert [item.name for item in done.undone][1] == f"{first.run_id}.2:call_2"
    assert [f.call_id for f in facts(load(outer, f"{first.run_id}.2"), Compensated)] == ["call_2", "call_1"]
    assert done.before.todo[1].call.tool == "helper.cancel"  # type: ignore[union-attr]
    assert undone(outer, first.run_id).runs == ()


def test_an_inner_run_that_is_being_undone_comes_first() -> None:
    journal = MemoryJournal()
    inner = agent([call("order", item="in1")], journal=None, name="helper")
    outer = agent([call("helper", task="do")], tools=[inner.as_tool(purpose="Does things.")], journal=journal)
    first = outer.run_sync("x")
    inner_id = f"{first.run_id}.1"
    waiting = undone(replace(inner, journal=journal), inner_id, approver=None)
    assert waiting.waits
    with pytest.raises(ConfigError, match="Finish that first: tao undo"):
        undone(outer, first.run_id)
    assert undone(replace(inner, journal=journal), inner_id).complete
    done = undone(outer, first.run_id)
    assert done.complete
    assert done.runs == ()


def test_calls_that_a_fork_copied_are_left_to_the_original() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")])
    first = ran.run_sync("x")

    async def forked() -> Result:
        assert isinstance(ran.journal, MemoryJournal)
        trace = await store_fork(ran.journal, first.run_id, at=2, now=ran.clock.now())
        return await replace(ran, model=ScriptedModel([{}, call("order", item="f"), "done"])).resume(trace.run_id)

    fork = asyncio.run(forked())
    done = undone(ran, fork.run_id)
    assert standings(done) == [("call_2", "undone"), ("call_1", "elsewhere")]
    assert done.complete
    assert set(WORLD) == {"a", "b"}
    assert undone(ran, first.run_id).complete


def test_an_undo_is_not_undone() -> None:
    ran = agent([call("order", item="a")])
    first = ran.run_sync("x")
    undone(ran, first.run_id)
    with pytest.raises(ConfigError, match="an undo is not undone"):
        undone(ran, f"{first.run_id}.undo-1")
    with pytest.raises(RunNotFound):
        undone(ran, "nowhere")


def test_a_plan_that_nobody_has_seen_is_not_carried_out() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")])
    first = ran.run_sync("x")
    assert isinstance(ran.journal, MemoryJournal)
    agreed = asyncio.run(plan_undo(ran, ran.journal, first.run_id, to_step=1, tools=[cancel]))
    LOG.clear()
    with pytest.raises(ConfigError, match="Look at the plan again"):
        undone(ran, first.run_id, agreed=agreed)
    assert LOG == []


def test_an_undone_run_can_be_resumed() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")], max_steps=1, closing_turn=False)
    first = ran.run_sync("x")
    assert first.status == "max_steps_exceeded"
    undone(ran, first.run_id)
    result = asyncio.run(ran.resume(first.run_id, max_steps=9))
    assert result.status == "completed"
    sound(result.trace)
    done = undone(ran, first.run_id)
    assert [item.name for item in done.undone] == ["call_2"]


def test_each_outcome_is_noted_while_the_undo_goes_on() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")])
    first = ran.run_sync("x")
    seen: list[int] = []

    async def approve(_: Any) -> bool:
        for _turn in range(5):
            await asyncio.sleep(0)
        assert isinstance(ran.journal, MemoryJournal)
        events = await ran.journal.load(first.run_id)
        seen.append(sum(isinstance(event.fact, Compensated) for event in events))
        return True

    undone(ran, first.run_id, approver=approve)
    assert seen == [0, 1]


def test_a_run_that_is_taken_away_meanwhile_is_not_undone_further() -> None:
    ran = agent([call("order", item="a"), call("order", item="b")])
    first = ran.run_sync("x")
    LOG.clear()

    async def approve(_: Any) -> bool:
        assert isinstance(ran.journal, MemoryJournal)
        lease = await ran.journal.acquire(first.run_id)
        size = len(await ran.journal.load(first.run_id))
        await ran.journal.append(
            lease, [Event(size, 0.0, Compensated(call_id="call_1", by_call_id="x:call_1", ok=False))]
        )
        return True

    done = undone(ran, first.run_id, approver=approve)
    assert done.waits
    assert LOG == []


# Files


def test_a_compensation_may_ask_for_its_context() -> None:
    keys: list[str] = []

    @tool(name="cancel", tier="write")
    def keyed(order_id: str, *, context: ToolContext) -> str:
        """Cancel."""
        keys.append(context.idempotency_key)
        return "ok"

    plain = order.with_card(compensation_args={"order_id": "output.id"})
    ran = agent([call("order", item="a")], tools=[plain])
    first = ran.run_sync("x")
    assert undone(ran, first.run_id, tools=[keyed]).complete
    assert keys == [f"{first.run_id}.undo-1:call_1"]


def test_calls_of_one_step_are_undone_in_the_reverse_of_their_outcomes() -> None:
    ran = agent([both(("order", {"item": "a"}), ("order", {"item": "b"}))])
    first = ran.run_sync("x")
    LOG.clear()
    assert undone(ran, first.run_id).complete
    assert LOG == [("cancel", "order-b"), ("cancel", "order-a")]


def test_the_texts_are_in_the_language_of_the_run() -> None:
    ran = agent([call("send", to="x"), call("order", item="a")])
    first = ran.run_sync("请发邮件")
    done = undone(ran, first.run_id)
    assert done.left[0].why == "send 没有指定用来撤销的调用"
    assert done.runs[0].answer == "计划已全部执行，撤销了 1 次调用。"
    assert isinstance(done.runs[0].trace.events[-1].fact, Finished)
    assert facts(done.runs[0].trace, Observed)[0].ok


def test_the_built_in_tool_that_undoes_is_offered_to_no_model() -> None:
    built_in = builtin_tools(None)
    with pytest.raises(ConfigError, match="not offered to a model"):
        offered_tool("restore_file", built_in)
    for name in ("write_file", "restore_file"):
        card = built_in[name].card
        assert (card.compensation, card.can_be_undone) == ("restore_file", True)
        assert card.compensation_args == {"path": "args.path", "backup": "output.backup"}


def test_a_run_that_is_under_way_is_not_undone_unless_it_is_taken_over() -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    @tool(tier="read")
    async def wait() -> str:
        """Wait until the test says so."""
        entered.set()
        await go.wait()
        return "waited"

    async def play() -> None:
        ran = agent([call("order", item="a"), call("wait")], tools=[order, look, send, cancel, wait])
        running = asyncio.create_task(ran.run("x", run_id="r"))
        await entered.wait()
        with pytest.raises(RunHeld, match="this process is working on it"):
            await ran.undo("r", agreed_by="li")
        assert list(WORLD) == ["a"]
        assert (await ran.undo("r", agreed_by="li", take_over=True)).undone
        assert list(WORLD) == []
        go.set()
        with pytest.raises(FenceLost):
            await running

    asyncio.run(play())


def test_a_run_that_is_being_undone_is_resumed_by_nobody_meanwhile() -> None:
    ran = agent([call("order", item="a"), call("look")], max_steps=1)
    first = ran.run_sync("x")
    refused: list[str] = []

    async def asked(_request: Any) -> bool:
        with pytest.raises(RunHeld) as error:
            await ran.resume(first.run_id)
        refused.append(error.value.code)
        with pytest.raises(RunHeld) as error:
            await ran.undo(first.run_id, agreed_by="ann", tools=[cancel])
        refused.append(error.value.code)
        return True

    done = asyncio.run(ran.undo(first.run_id, approver=asked, tools=[cancel]))
    assert done.complete
    assert refused == ["run_held", "run_held"]
    assert ran.resume_sync(first.run_id).status  # and afterwards it may be gone on with


def notes(trace: Trace) -> list[str]:
    return [fact.text for fact in facts(trace, Noted) if fact.about == UNDONE]


def resumed_after_undo(ran: Agent, run_id: str, script: list[Any], **options: Any) -> Result:
    """The run resumed after its undo; what the model reads is checked."""
    undone(ran, run_id)
    model = ScriptedModel([*["read before"] * load(ran, run_id).model_calls, *script])
    result = asyncio.run(replace(ran, model=model).resume(run_id, **options))
    sound(result.trace)
    return result


def test_a_resumed_run_learns_of_its_undo_before_its_model_goes_on() -> None:
    ran = agent([call("order", item="a"), call("look")], max_steps=2, closing_turn=False)
    first = ran.run_sync("x")
    result = resumed_after_undo(ran, first.run_id, ["done"], max_steps=5)
    assert result.status == "completed"
    [note] = notes(result.trace)
    assert "order (call_1)" in note
    told = Conversation("react", result.trace.events, tools=True, reasons=True)
    for event in result.trace.events:
        told.fold(event)
    assert [note in message.content for message in told.messages[-2:]] == [True, False]
    assert notes(load(ran, first.run_id)) == [note], "told once"
    assert [view.requested.call_id for view in undone_calls(result.trace)] == ["call_1"]


def test_what_was_decided_before_the_undo_and_not_done_is_decided_again() -> None:
    ran = agent([call("order", item="a"), call("send", to="ann")], policy="supervised", approve=lambda _: None)
    ran = replace(ran, approved_tiers=("write",))
    first = ran.run_sync("order a, then send a mail to ann")
    assert first.status == "waiting"
    result = resumed_after_undo(ran, first.run_id, ["nothing was sent"])
    assert result.answer == "nothing was sent"
    [dropped] = [fact for fact in facts(result.trace, Observed) if not fact.ok]
    assert (dropped.call_id, dropped.error.code) == ("call_2", UNDONE)


def test_an_answer_from_before_the_undo_is_not_the_end() -> None:
    ran = agent([call("order", item="a")])
    whole = ran.run_sync("x")

    async def cut() -> None:
        assert isinstance(ran.journal, MemoryJournal)
        await ran.journal.append(await ran.journal.create("r"), whole.trace.events[:-1])

    asyncio.run(cut())
    result = resumed_after_undo(ran, "r", ["a is not ordered any more"])
    assert result.answer == "a is not ordered any more"


def test_the_runs_around_an_undone_one_learn_of_it_too() -> None:
    journal = MemoryJournal()
    inner = agent([call("order", item="in1")], journal=None, name="helper")
    outer = agent(
        [call("helper", task="do"), call("look")],
        tools=[inner.as_tool(purpose="Does things."), look],
        journal=journal,
        max_steps=2,
        closing_turn=False,
    )
    first = outer.run_sync("x")
    assert undone(replace(inner, journal=journal), f"{first.run_id}.1").complete
    model = ScriptedModel(["done"])
    result = asyncio.run(replace(outer, model=model).resume(first.run_id, max_steps=5))
    [note] = notes(result.trace)
    assert "helper (call_1)" in note
    sound(result.trace)


@pytest.mark.parametrize("is_stored", [False, True])
def test_of_two_undos_at_once_one_undoes_and_the_other_gives_way(tmp_path: Path, *, is_stored: bool) -> None:
    async def play() -> list[Any]:
        async with AsyncExitStack() as opened:
            stored = SqliteJournal(tmp_path / "r.db")
            journal = await opened.enter_async_context(stored) if is_stored else MemoryJournal()
            ran = agent([call("order", item="a")], journal=journal)
            first = await ran.run("x")
            is_asked, is_over = asyncio.Event(), asyncio.Event()

            async def approve_late(request: Any) -> Any:
                is_asked.set()
                await is_over.wait()
                return YES(request)

            def begin(approver: Any) -> Any:
                return undo(ran, journal, first.run_id, tools=[cancel], approver=approver)

            slow = asyncio.create_task(begin(approve_late))
            await is_asked.wait()
            other = await asyncio.gather(begin(YES), return_exceptions=True)
            is_over.set()
            return [await slow, *other]

    one, other = asyncio.run(play())
    assert one.complete
    assert LOG == [("order", "a"), ("cancel", "order-a")]
    assert isinstance(other, RunHeld)
    assert "undo" in other.message


def test_the_digest_of_a_plan_is_that_of_its_calls() -> None:
    async def digests() -> list[str]:
        ran = agent([both(("order", {"item": "tea"}), ("order", {"item": "milk"}))])
        result, journal = await ran.run("Order."), ran.journal
        assert isinstance(journal, MemoryJournal)
        first = await plan_undo(ran, journal, result.run_id, tools=[cancel])
        again = await plan_undo(ran, journal, result.run_id, tools=[cancel])
        less = await plan_undo(ran, journal, result.run_id, tools=[cancel], skip=["call_1"])
        await undo(ran, journal, result.run_id, tools=[cancel], approver=YES)
        after = await plan_undo(ran, journal, result.run_id, tools=[cancel])
        return [plan.digest for plan in (first, again, less, after)]

    first, again, less, after = asyncio.run(digests())
    assert first == again
    assert len({first, less, after}) == 3
