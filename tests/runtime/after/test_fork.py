"""A fork is a run of its own: its beginning is copied, its permissions are not, and it replays like any other."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from taoloop import Agent, ApprovalAnswer, Limits, MemoryJournal, Result, ScriptedModel, Trace, tool
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.events import ApprovalGiven, Event, Fact, Finished, ModelReplied, Noted, Observed, Pinned, Resumed
from taoloop.core.message import Usage
from taoloop.errors import ConfigError, RunNotFound
from taoloop.models.base import Model
from taoloop.runtime.after.fork import EDITED, fork_for, make_fork, store_fork
from taoloop.runtime.after.fork_edits import Edits
from taoloop.runtime.after.replay import replay
from taoloop.strategies import LoopStrategy
from taoloop.testing import violations

CALLS: list[tuple[str, Any]] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CALLS.clear()


@tool(tier="read")
def count(n: int) -> int:
    """Count."""
    CALLS.append(("count", n))
    return n


@tool(tier="write")
def pay(amount: int) -> str:
    """Pay an amount."""
    CALLS.append(("pay", amount))
    return f"paid {amount}"


@tool(tier="read")
def tell(lines: int) -> str:
    """Tell much."""
    return "\n".join(f"line {n}" for n in range(lines))


def call(name: str, /, **args: Any) -> dict[str, Any]:
    return {"text": f"I use {name}.", "tool_calls": [{"name": name, "args": args}]}


def both(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args} for name, args in calls]}


THREE: list[Any] = [call("count", n=1), call("count", n=2), "done"]


def agent(script: list[Any] | Model, journal: MemoryJournal | None = None, **options: Any) -> Agent:
    model = ScriptedModel(script) if isinstance(script, list) else script
    return Agent(model=model, tools=[count, pay, tell], journal=journal or MemoryJournal(), **options)


def forked(original: Trace, at: int, **options: Any) -> Trace:
    edits = Edits.of(options.pop("edit", None))
    return make_fork(original, at, edits, run_id="f", now=original.events[-1].at + 9, **options).trace


def go_on(ran: Agent, run_id: str, at: int, script: list[Any], **options: Any) -> Result:
    """Fork a run of `ran`, and go on with another script, whose first replies stand for the copied ones."""
    other = replace(ran, model=ScriptedModel(script), **options.pop("agent", {}))

    async def work() -> Result:
        assert isinstance(ran.journal, MemoryJournal)
        trace = await store_fork(ran.journal, run_id, at=at, now=ran.clock.now(), **options)
        return await other.resume(trace.run_id)

    result = asyncio.run(work())
    sound(result.trace)
    return result


def sound(trace: Trace) -> None:
    assert all(one.same for one in replay(trace)), [one for one in replay(trace) if not one.same]
    if trace.finished is not None or trace.paused is not None:
        assert violations(trace) == []


def facts(trace: Trace) -> list[Fact]:
    return [event.fact for event in trace.events]


def test_a_fork_copies_what_came_before_and_decides_the_step_anew() -> None:
    ran = agent(THREE)
    first = ran.run_sync("x")
    CALLS.clear()
    result = go_on(ran, first.run_id, 2, [*THREE[:1], call("count", n=5), "other"])
    assert (result.status, result.answer) == ("completed", "other")
    assert CALLS == [("count", 5)]  # nothing of the copied steps ran again
    started = result.trace.started
    assert started is not None
    assert (started.forked_from, started.forked_at) == (first.run_id, 2)
    copied = next(e.seq for e in result.trace.events if isinstance(e.fact, Resumed))
    assert result.trace.events[1:copied] == first.trace.events[1:copied]
    assert facts(result.trace)[copied].reason == f"fork of run {first.run_id} at step 2"  # type: ignore[union-attr]
    assert result.run_id != first.run_id


def test_the_prompt_of_the_copied_steps_is_what_it_was() -> None:
    """So the provider's cache still serves it."""
    seen: list[list[str]] = []

    class Watched(ScriptedModel):
        async def complete(self, request: Any) -> Any:
            seen.append([message.content for message in request.messages])
            return await super().complete(request)

    journal = MemoryJournal()
    ran = agent(Watched(THREE), journal)
    first = ran.run_sync("x")
    trace = asyncio.run(store_fork(journal, first.run_id, at=3, now=1e10))
    ran.resume_sync(trace.run_id)
    assert seen[-1] == seen[2]


def test_a_fork_at_step_1_is_a_new_run_of_the_same_description() -> None:
    ran = agent(THREE)
    first = ran.run_sync("x")
    trace = forked(first.trace, 1)
    assert [event.kind for event in trace.events] == ["run_started", "resumed"]
    sound(trace)


def test_an_edited_decision_is_judged_and_run_like_any_other() -> None:
    ran = agent([call("count", n=1), call("pay", amount=1), "done"], approve=lambda _: True)
    first = ran.run_sync("x")
    CALLS.clear()
    edit = {"decision": {"tool": "pay", "args": {"amount": 7}, "thought": "Seven."}}
    waiting = go_on(ran, first.run_id, 2, [], edit=edit, agent={"approve": None})
    assert waiting.status == "waiting"  # the approval of the other call is not this one's
    assert CALLS == []
    requested = waiting.trace.calls["call_2"].requested
    assert (requested.args, requested.verdict) == ({"amount": 7}, "ask")
    assert requested.digest != first.trace.calls["call_2"].requested.digest
    reply = next(f for f in facts(waiting.trace) if isinstance(f, ModelReplied) and f.step == 2)
    assert reply.model == EDITED
    assert reply.decision == Act(calls=(Call(tool="pay", args={"amount": 7}),), reason="Seven.")
    assert any(isinstance(f, Resumed) and f.reason.endswith(f"{EDITED}: decision") for f in facts(waiting.trace))


def test_an_edited_decision_without_a_change_asks_again_too() -> None:
    ran = agent([call("pay", amount=1), "done"], approve=lambda _: True)
    first = ran.run_sync("x")
    edit = {"decision": {"tool": "pay", "args": {"amount": 1}}}
    assert go_on(ran, first.run_id, 1, [], edit=edit, agent={"approve": None}).status == "waiting"


def test_an_edited_answer_ends_the_fork() -> None:
    ran = agent(THREE)
    result = go_on(ran, ran.run_sync("x").run_id, 2, THREE[:2], edit={"decision": {"answer": "enough"}})
    assert (result.status, result.answer) == ("completed", "enough")


def test_several_calls_can_be_decided_at_once() -> None:
    ran = agent(THREE)
    calls = [{"tool": "count", "args": {"n": n}} for n in (8, 9)]
    result = go_on(ran, ran.run_sync("x").run_id, 2, [*THREE[:2], "done"], edit={"decision": {"calls": calls}})
    assert sorted(CALLS[-2:]) == [("count", 8), ("count", 9)]
    assert [c.requested.args["n"] for c in result.trace.calls.values()] == [1, 8, 9]


def test_an_edited_observation_stands_in_the_place_of_what_came_back() -> None:
    ran = agent(THREE)
    first = ran.run_sync("x")
    CALLS.clear()
    result = go_on(ran, first.run_id, 2, [*THREE[:2], "forty"], edit={"observation": "40"})
    observed = result.trace.calls["call_2"].observed
    assert observed is not None
    assert (observed.output, observed.ok, CALLS) == ("40", True, [])
    assert result.answer == "forty"
    mark = next(f for f in facts(result.trace) if isinstance(f, Resumed))
    assert mark.reason.endswith(f"{EDITED}: observation of call_2")


def test_an_observation_can_become_an_error() -> None:
    ran = agent(THREE)
    trace = forked(ran.run_sync("x").trace, 1, edit={"error": "not_found: there is none"})
    observed = trace.calls["call_1"].observed
    assert observed is not None
    assert observed.error is not None
    assert (observed.ok, observed.error.code, observed.error.message) == (False, "not_found", "there is none")
    sound(trace)


def test_of_parallel_calls_each_observation_can_be_edited() -> None:
    ran = agent([both(("count", {"n": 1}), ("count", {"n": 2})), "done"])
    first = ran.run_sync("x").trace
    trace = forked(first, 1, edit={"observation": {"call_2": "two"}})
    outputs = [c.observed.output for c in trace.calls.values() if c.observed]
    assert outputs == ["1", "two"]
    sound(trace)
    with pytest.raises(ConfigError, match="has 2 calls"):
        forked(first, 1, edit={"observation": "two"})
    with pytest.raises(ConfigError, match="no call 'call_9'"):
        forked(first, 1, edit={"observation": {"call_9": "two"}})


def test_an_edited_thought_keeps_the_call_and_what_came_of_it() -> None:
    ran = agent([call("pay", amount=1), "done"], approve=lambda _: True)
    first = ran.run_sync("x")
    CALLS.clear()
    result = go_on(ran, first.run_id, 1, [{}, "ok"], edit={"thought": "It is owed."}, agent={"approve": None})
    assert (result.status, CALLS) == ("completed", [])
    assert result.trace.steps[0].decision == Act(calls=(Call(tool="pay", args={"amount": 1}),), reason="It is owed.")


def test_thought_and_observation_of_one_step_can_both_be_edited() -> None:
    trace = forked(agent(THREE).run_sync("x").trace, 2, edit={"thought": "Why not.", "observation": "3"})
    assert trace.steps[1].decision is not None
    assert trace.steps[1].decision.reason == "Why not."
    sound(trace)


@pytest.mark.parametrize("dialect", ["native", "json", "text", "fenced"])
def test_every_dialect_can_say_an_edited_decision(dialect: str) -> None:
    replies = {
        "native": call("count", n=1),
        "json": json.dumps({"thought": "t", "action": "count", "action_input": {"n": 1}}),
        "text": 'Thought: t\nAction: count\nAction Input: {"n": 1}',
        "fenced": 't\n```json\n{"action": "count", "action_input": {"n": 1}}\n```',
    }
    ran = agent([replies[dialect]], dialect=dialect, max_steps=1, closing_turn=False)
    first = ran.run_sync("x")
    assert CALLS == [("count", 1)]
    result = go_on(ran, first.run_id, 1, [], edit={"decision": {"tool": "count", "args": {"n": 3}, "thought": "因为"}})
    assert CALLS[-1] == ("count", 3)
    assert result.trace.steps[0].decision is not None
    assert result.trace.steps[0].decision.reason == "因为"
    sound(forked(first.trace, 1, edit={"thought": "Anders."}))
    if dialect != "native":
        with pytest.raises(ConfigError, match="one call per reply"):
            forked(first.trace, 1, edit={"decision": {"calls": [{"tool": "count"}, {"tool": "count"}]}})


def test_the_prompt_can_be_edited() -> None:
    ran = agent(THREE)
    first = ran.run_sync("x")
    trace = forked(first.trace, 1, edit={"task": "y", "instructions": "Be brief."})
    assert (trace.task, trace.agent.instructions) == ("y", "Be brief.")
    later = forked(first.trace, 3, edit={"instructions": "Be brief."})
    assert [event.kind for event in later.events].count("model_replied") == 2
    sound(later)


def test_what_the_task_called_for_does_not_stand_for_another_task() -> None:
    first = agent(THREE).run_sync("x").trace
    pinned = Pinned(tools=("pay",), calls=(Call(tool="pay", args={"amount": 1}),), by="Kim")
    events = [first.events[0], Event(1, first.events[0].at, pinned)]
    events += [event._replace(seq=event.seq + 1) for event in first.events[1:]]
    trace = Trace("r", events)
    kept = [fact for fact in facts(forked(trace, 1)) if isinstance(fact, Pinned)]
    assert kept == [Pinned(tools=("pay",), by="Kim")]  # no call of it may run a second time unasked
    assert not any(isinstance(fact, Pinned) for fact in facts(forked(trace, 1, edit={"task": "y"})))
    by_model = Trace("r", [events[0], Event(1, 0.0, replace(pinned, by="model")), *events[2:]])
    with pytest.raises(ConfigError, match="new start"):
        forked(by_model, 2, edit={"task": "y"})


def test_steps_that_follow_from_the_old_prompt_cannot_stand_under_another() -> None:
    """A prompt that was shortened was so because of its length."""
    script = [{**call("tell", lines=400), "usage": {"input_tokens": 0}}, call("tell", lines=400), call("count", n=1)]
    first = agent([*script, "done"], context_tokens=2000, max_steps=9).run_sync("x").trace
    assert "compacted" in [event.kind for event in first.events]
    at = next(
        e.fact.step for e in first.events[::-1] if isinstance(e.fact, ModelReplied) and e.fact.purpose == "decide"
    )
    sound(forked(first, at))
    with pytest.raises(ConfigError, match="a prompt that the edit changes"):
        forked(first, at, edit={"instructions": "Be brief. " * 60})


def test_a_fork_asks_again_for_what_was_allowed_ahead() -> None:
    ran = agent([call("pay", amount=1), call("pay", amount=2), "done"])
    waiting = ran.run_sync("x")
    first = ran.resume_sync(waiting.run_id, approved_tiers=("write",))
    assert first.status == "completed"
    script = [{}, call("pay", amount=3), "done"]
    assert go_on(ran, first.run_id, 2, script).status == "waiting"
    assert go_on(ran, first.run_id, 2, script, approved_tiers=("write",)).status == "completed"


def test_an_approval_that_reached_further_does_not_reach_into_the_fork() -> None:
    ran = agent([call("pay", amount=1), call("count", n=2), "done"], approve=lambda _: True)
    first = ran.run_sync("x").trace
    events = [
        e._replace(fact=replace(e.fact, scope="rule")) if isinstance(e.fact, ApprovalGiven) else e for e in first.events
    ]
    given = [fact.scope for fact in facts(forked(Trace("r", events), 2)) if isinstance(fact, ApprovalGiven)]
    assert given == ["call"]


def test_rejected_replies_belong_to_the_step_that_is_decided_anew() -> None:
    ran = agent([call("count", n=1), "", call("count", n=2), "done"])
    first = ran.run_sync("x").trace
    assert first.steps[1].rejected
    assert [event.kind for event in forked(first, 2).events][-2:] == ["observed", "resumed"]
    kept = forked(first, 2, edit={"thought": "So."})
    assert len(kept.steps[1].rejected) == 1
    sound(kept)
    sound(forked(first, 2, edit={"decision": {"answer": "x"}}))


def test_a_step_without_a_decision_has_no_thought() -> None:
    first = agent(["", "", ""], limits=Limits(max_consecutive_errors=9, max_steps=1)).run_sync("x").trace
    with pytest.raises(ConfigError, match="could not be read"):
        forked(first, 1, edit={"thought": "x"})
    with pytest.raises(ConfigError, match="could not be read"):
        forked(first, 2)
    sound(forked(first, 1, edit={"decision": {"answer": "x"}}))


def test_a_limited_run_can_be_forked_before_in_and_after_its_end() -> None:
    ran = agent([call("count", n=1), call("count", n=2), "so far"], max_steps=2)
    first = ran.run_sync("x")
    assert first.status == "max_steps_exceeded"
    result = go_on(ran, first.run_id, 3, [{}, {}, "more"], limits=Limits(max_steps=3))
    assert (result.status, result.answer, result.trace.step_count) == ("completed", "more", 3)
    assert go_on(ran, first.run_id, 2, [{}, "early"]).answer == "early"
    again = go_on(ran, first.run_id, 3, [{}, {}, "still so far"])
    assert again.status == "max_steps_exceeded"
    with pytest.raises(ConfigError, match="max_steps is reached"):
        forked(first.trace, 3, edit={"decision": {"tool": "count", "args": {"n": 3}}})


def test_a_run_that_was_resumed_can_be_forked_on_both_sides() -> None:
    ran = agent([call("count", n=1), "so far", call("count", n=2), "done"], limits=Limits(max_steps=1))
    first = ran.resume_sync(ran.run_sync("x").run_id, max_steps=5)
    assert first.status == "completed"
    for at in (1, 2, 3):
        sound(forked(first.trace, at))
    assert go_on(ran, first.run_id, 2, [{}, {}, "two"]).answer == "two"
    sound(forked(first.trace, 1, edit={"observation": "7"}))


def test_a_run_that_waits_can_be_forked_at_its_open_step_only() -> None:
    ran = agent([both(("count", {"n": 1}), ("pay", {"amount": 1})), "done"])
    first = ran.run_sync("x")
    assert first.status == "waiting"
    assert go_on(ran, first.run_id, 1, ["no"]).answer == "no"
    for at, edit in ((1, {"observation": {"call_1": "x"}}), (1, {"thought": "x"}), (2, None)):
        with pytest.raises(ConfigError, match="call_2 has no outcome"):
            forked(first.trace, at, edit=edit)


def test_what_was_refused_gave_nothing_that_could_be_edited() -> None:
    def refuse(_: object) -> ApprovalAnswer:
        return ApprovalAnswer(approved=False, note="no")

    script = [both(("pay", {"amount": 1}), ("nothing", {}), ("count", {})), "done"]
    first = agent(script, approve=refuse).run_sync("x").trace
    for call_id in ("call_1", "call_2", "call_3"):
        with pytest.raises(ConfigError, match="never ran"):
            forked(first, 1, edit={"observation": {call_id: "x"}})


def test_a_failed_model_and_a_stop_leave_a_run_that_can_be_forked_after_its_last_step() -> None:
    ran = agent(THREE[:1])
    first = ran.run_sync("x")
    assert first.status == "model_failed"
    assert go_on(ran, first.run_id, 2, [{}, "saved"]).answer == "saved"


def test_after_an_answer_there_is_nothing_to_fork() -> None:
    first = agent(THREE).run_sync("x").trace
    with pytest.raises(ConfigError, match="gave the answer"):
        forked(first, 4)
    for at in (0, 5, -1):
        with pytest.raises(ConfigError, match="has 3 steps"):
            forked(first, at)
    with pytest.raises(RunNotFound, match="never began"):
        make_fork(Trace("r"), 1, run_id="f", now=0.0)


def test_artifacts_come_along_and_long_edits_become_one() -> None:
    journal = MemoryJournal()
    page = call("read_observation", id="obs_call_1", offset=0)
    ran = agent([call("tell", lines=2000), call("count", n=1), "done"], journal)
    first = ran.run_sync("x")

    async def whole(run_id: str) -> str:
        artifact = await journal.artifact(run_id, "obs_call_1")
        assert artifact is not None
        return artifact.body

    plain = go_on(ran, first.run_id, 2, [{}, page, "done"])
    assert asyncio.run(whole(plain.run_id)) == asyncio.run(whole(first.run_id))
    edited = go_on(ran, first.run_id, 1, [{}, "done"], edit={"observation": "word " * 3000})
    assert asyncio.run(whole(edited.run_id)) == "word " * 3000
    observed = edited.trace.calls["call_1"].observed
    assert observed is not None
    assert observed.artifact == "obs_call_1"
    assert len(observed.output) <= 4000
    again = go_on(ran, edited.run_id, 2, [{}, "done"])
    assert asyncio.run(whole(again.run_id)) == "word " * 3000


def test_a_strategy_that_is_not_registered_can_be_given() -> None:
    own = LoopStrategy(name="own", acts=True, reasons=True)
    ran = agent(THREE, strategy=own, prompts=None)
    spec = ran.spec_for("x")
    texts = {**spec.prompts.texts, "rules_own": "Think."}
    first = agent(THREE).run_sync("x").trace
    assert first.started is not None
    named = replace(first.agent, strategy="own", prompts=replace(spec.prompts, texts=texts))
    events = [Event(0, 0.0, replace(first.started, agent=named)), *first.events[1:]]
    edit = {"decision": {"answer": "x"}}
    assert forked(Trace("r", events), 2, edit=edit, strategy=own).answer == Answer(text="x")
    with pytest.raises(ConfigError, match="no strategy called 'own'"):
        forked(Trace("r", events), 2, edit=edit)


def test_a_fork_of_a_fork_says_where_it_comes_from() -> None:
    ran = agent(THREE)
    first = ran.run_sync("x")
    second = go_on(ran, first.run_id, 2, THREE, edit={"observation": "5"})
    third = go_on(ran, second.run_id, 3, THREE)
    started = third.trace.started
    assert started is not None
    assert (started.forked_from, started.forked_at) == (second.run_id, 3)
    assert third.trace.calls["call_2"].observed == second.trace.calls["call_2"].observed


def test_a_conversation_goes_on_in_the_fork() -> None:
    journal = MemoryJournal()
    ran = agent(["Tea."], journal)
    first = ran.run_sync("What?")
    second = ran.run_sync("And now?", after=first.run_id)
    result = go_on(ran, second.run_id, 1, ["Coffee."])
    started = result.trace.started
    assert started is not None
    assert started.after == first.run_id
    assert [message.content for message in started.history] == ["What?", "Tea."]
    third = replace(ran, model=ScriptedModel(["x"])).run_sync("So?", after=result.run_id)
    assert third.trace.started is not None
    assert [message.content for message in third.trace.started.history][-1] == "Coffee."


def test_runs_inside_are_copied_as_what_they_gave_and_can_be_forked_by_themselves() -> None:
    journal = MemoryJournal()
    helper = agent([call("count", n=4), "four"], name="helper").as_tool(purpose="Help.")
    script: list[Any] = [call("helper", task="count"), "done"]
    outer = Agent(model=ScriptedModel(script), tools=[helper], journal=journal)
    first = outer.run_sync("x")
    assert first.status == "completed"
    result = go_on(outer, first.run_id, 2, [{}, "other"])
    observed = result.trace.calls["call_1"].observed
    assert observed is not None
    assert observed.child == f"{first.run_id}.1"
    anew = go_on(outer, first.run_id, 1, script)
    assert anew.trace.calls["call_1"].observed is not None
    assert anew.trace.calls["call_1"].observed.child == f"{anew.run_id}.1"
    inner = go_on(agent([], journal), f"{first.run_id}.1", 2, [{}, "vier"])
    assert inner.trace.started is not None
    assert (inner.answer, inner.trace.started.parent, inner.trace.started.depth) == ("vier", None, 0)


def test_structured_answers_are_held_to_the_schema() -> None:
    ran = agent(["5"], output_type=int)
    first = ran.run_sync("x")
    assert go_on(ran, first.run_id, 1, ["5"], edit={"decision": {"answer": 7}}).output == 7
    with pytest.raises(ConfigError, match="is not one JSON value"):
        forked(first.trace, 1, edit={"decision": {"answer": "seven"}})


def test_usage_of_the_copied_steps_counts_and_an_edited_decision_costs_nothing() -> None:
    script = [{**call("count", n=n), "usage": {"input_tokens": 10, "output_tokens": 1}} for n in (1, 2)]
    first = agent([*script, "done"]).run_sync("x").trace
    assert forked(first, 2).usage == Usage(input_tokens=10, output_tokens=1)
    edited = forked(first, 2, edit={"decision": {"tool": "count", "args": {"n": 3}}})
    assert (edited.usage, edited.unpriced_calls) == (Usage(input_tokens=10, output_tokens=1), 0)
    assert forked(first, 2, edit={"thought": "So."}).usage.input_tokens == 20


def test_the_time_between_run_and_fork_is_nobodys() -> None:
    first = agent(THREE).run_sync("x").trace
    trace = make_fork(first, 3, run_id="f", now=first.events[-1].at + 1e6).trace
    assert trace.wall_s < 1e3


def test_remarks_of_people_stay_where_an_observation_is_edited() -> None:
    first = agent(THREE).run_sync("x").trace
    at = next(e.seq for e in first.events if isinstance(e.fact, Observed)) + 1
    noted = [Event(at, 0.0, Noted(by="Kim", text="Hurry."))]
    later = [event._replace(seq=event.seq + 1) for event in first.events[at:]]
    trace = forked(Trace("r", [*first.events[:at], *noted, *later]), 1, edit={"observation": "9"})
    assert [event.kind for event in trace.events][-2:] == ["noted", "resumed"]


def test_a_refused_fork_leaves_nothing_behind() -> None:
    journal = MemoryJournal()
    first = agent(THREE, journal).run_sync("x")

    def refuse(_: Trace) -> None:
        raise ConfigError("no")

    with pytest.raises(ConfigError):
        asyncio.run(store_fork(journal, first.run_id, at=1, now=0.0, check=refuse))
    assert len(asyncio.run(journal.runs())) == 1


def test_a_run_that_is_under_way_can_be_forked() -> None:
    events = agent(THREE).run_sync("x").trace.events
    assert isinstance(events[-1].fact, Finished)
    sound(forked(Trace("r", events[:-1]), 3))
    sound(forked(Trace("r", events[:6]), 2))


def test_edits_are_read_from_texts() -> None:
    edits = Edits.parse(
        ["task=a=b", 'decision={"answer": "x", "thought": "t"}', "observation=call_2=a=b", "error=gone: it is"]
    )
    assert (edits.task, edits.decision) == ("a=b", Answer(text="x", reason="t"))
    assert edits.outcomes["call_2"].text == "a=b"
    assert (edits.outcomes[""].code, edits.outcomes[""].text) == ("gone", "it is")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("task", "has none of the forms"),
        ("colour=red", "has none of the forms"),
        ("task=", "is empty"),
        ("decision=no", "not JSON"),
        ("decision=[]", "is not a decision"),
        ('decision={"tool": "x", "answer": "y"}', "is not a decision"),
        ('decision={"tool": 1}', "is not a call"),
        ('decision={"calls": []}', "has no calls"),
        ('decision={"answer": "x", "thought": 1}', "thought"),
    ],
)
def test_an_edit_that_is_none_says_why(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Edits.parse([text])


def test_edits_that_contradict_each_other_are_refused() -> None:
    first = agent(THREE).run_sync("x").trace
    with pytest.raises(ConfigError, match="second of its kind"):
        Edits.parse(["task=a", "task=b"])
    with pytest.raises(ConfigError, match="an observation and an error"):
        Edits.parse(["observation=a", "error=b"])
    with pytest.raises(ConfigError, match="edited twice"):
        forked(first, 1, edit={"observation": "a", "error": {"call_1": "b"}})
    with pytest.raises(ConfigError, match="not known before its calls have run"):
        forked(first, 1, edit={"observation": "a", "decision": {"answer": "x"}})
    with pytest.raises(ConfigError, match="no edit called"):
        Edits.of({"colour": "red"})
    with pytest.raises(ConfigError, match="Give a text"):
        Edits.of({"task": 1})


def test_a_fork_for_an_agent_names_who_made_it_and_is_refused_where_the_agent_could_not_resume_it() -> None:
    async def fork() -> tuple[Trace, str]:
        journal = MemoryJournal()
        agent = Agent(model=ScriptedModel(THREE), tools=[count], journal=journal, approved_tiers=("draft",))
        ran = await agent.run("Count.")
        other = replace(agent, tools=())
        with pytest.raises(ConfigError) as caught:
            await fork_for(other, journal, ran.run_id, at=2)
        count_before = len(await journal.runs())
        assert count_before == 1
        trace = await fork_for(agent, journal, ran.run_id, at=2, edit={"observation": "9"}, by="Ada")
        return trace, str(caught.value)

    trace, refusal = asyncio.run(fork())
    assert "count" in refusal
    resumed = trace.events[-1].fact
    assert isinstance(resumed, Resumed)
    assert resumed.reason.endswith(f"at step 2; {EDITED}: observation of call_2; by Ada")
    assert resumed.approved_tiers == ("draft",)
