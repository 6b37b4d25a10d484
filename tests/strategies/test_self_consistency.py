"""CoT-SC and its two combinations with ReAct: pure, durable, replayable, limited, and by the paper's rules."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.scripting import Asked
from tests.sizes import examples

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, tool
from taoloop.core.decision import Answer, Voted
from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.events import ModelReplied, Noted
from taoloop.core.message import Delta, ModelReply, Usage
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result, event_text, step_summaries
from taoloop.errors import ConfigError, ModelContextOverflow
from taoloop.runtime.after.fork import make_fork
from taoloop.runtime.after.fork_edits import Edits
from taoloop.runtime.after.replay import replay
from taoloop.strategies import ReactThenSelfConsistency, SelfConsistency, SelfConsistencyThenReact, get_strategy


def says(answer: str) -> str:
    return f"Thought: I think it is {answer}.\nFinal Answer: {answer}"


def looks(page: str) -> str:
    return f"Thought: I check.\nAction: read: {page}"


@tool(tier="read")
def read(page: str) -> str:
    """Read a page."""
    return f"{page} says nothing"


def agent(strategy: Any, *replies: Any, **settings: Any) -> Agent:
    return Agent(model=Asked(replies), tools=[read], strategy=strategy, dialect="text", **settings)


def run(strategy: Any, *replies: Any, **settings: Any) -> Result:
    result = agent(strategy, *replies, **settings).run_sync("What is it?")
    assert all(event.same for event in replay(result.trace))
    return result


def vote_in(result: Result) -> Voted:
    (vote,) = [event.fact for event in result.trace if isinstance(event.fact, Voted)]
    return vote


def purposes(result: Result) -> list[str]:
    return [event.fact.purpose for event in result.trace if isinstance(event.fact, ModelReplied)]


# The vote


def test_the_most_frequent_answer_wins_whatever_its_notation() -> None:
    result = run("cot_sc", says("Lyon"), says("Paris"), says("paris."), says("The Paris"), says("Nice"))
    assert (result.status, result.answer) == ("completed", "Paris")
    assert result.reason == "The most frequent answer: 3 of 5 samples gave it."
    vote = vote_in(result)
    assert [(item.answer, item.count) for item in vote.votes] == [("Paris", 3), ("Lyon", 1), ("Nice", 1)]
    assert vote.votes[0].samples == (2, 3, 4)
    assert (vote.samples, vote.accepted) == (5, True)


def test_among_equally_frequent_answers_the_first_wins() -> None:
    result = run("cot_sc:n=4", says("Nice"), says("Lyon"), says("lyon"), says("nice"))
    assert (result.answer, [item.answer for item in vote_in(result).votes]) == ("Nice", ["Nice", "Lyon"])


def test_samples_are_independent_and_have_their_own_temperature() -> None:
    sampled = agent("cot_sc:n=3,temperature=0.5", says("a b"), "nothing readable", says("a b"), temperature=0.0)
    sampled.run_sync("What is it?")
    requests = sampled.model.requests  # type: ignore[union-attr]
    assert [request.temperature for request in requests] == [0.5] * 3
    assert [request.purpose for request in requests] == ["sample"] * 3
    assert len({request.messages for request in requests}) == 1
    assert not any(request.tools for request in requests)
    assert "step by step" in requests[0].messages[0].content


def test_each_sample_is_a_step_that_people_see_with_the_count() -> None:
    result = run("cot_sc:n=2", says("A1"), says("B1"))
    assert result.trace.step_count == 2
    assert [(entry.kind, entry.content) for entry in result.entries] == [
        ("Thought", "I think it is A1."),
        ("Sample", "A1"),
        ("Thought", "I think it is B1."),
        ("Sample", "B1"),
        ("Vote", "1/2: A1; 1/2: B1"),
        ("Final", "A1"),
    ]
    assert [row["action"] for row in step_summaries(result.trace)] == ["sample", "sample"]
    lines = "".join(event_text(event) for event in result.trace)
    assert "[step 2] Thought: I think it is B1.\n  Sample: B1\n[vote] 1/2: A1; 1/2: B1\n[completed] A1" in lines


def test_a_sample_that_is_unreadable_or_wants_to_act_has_no_vote() -> None:
    result = run("cot_sc:n=4", "no label here", looks("x"), says("yes"), says("no"))
    assert (result.status, result.answer) == ("completed", "yes")
    assert [item.samples for item in vote_in(result).votes] == [(3,), (4,)]
    assert vote_in(result).samples == 4
    assert result.trace.tool_calls == 0


def test_samples_of_which_none_is_readable_end_the_run_as_unreadable() -> None:
    result = run("cot_sc:n=2", "no label", "none here", limits=Limits(max_consecutive_errors=None))
    assert (result.status, result.answer) == ("unreadable", None)
    assert result.reason.startswith("None of the 2 samples was readable. Last: ")
    assert not vote_in(result).accepted


def test_three_unreadable_samples_in_a_row_end_it_with_the_answer_so_far() -> None:
    result = run("cot_sc", says("so far"), "none", "none", "none")
    assert (result.status, result.answer, result.trace.model_calls) == ("unreadable", "so far", 4)


def test_a_readable_sample_starts_the_count_of_errors_again() -> None:
    assert run("cot_sc", "no", "no", says("yes"), "no", "no").status == "completed"


# Limits


def test_a_budget_ends_the_sampling_with_the_most_frequent_answer_so_far() -> None:
    replies = [ModelReply(text=says(answer), usage=Usage(input_tokens=50, output_tokens=50)) for answer in "xyyxx"]
    sampled = agent("cot_sc", *replies, limits=Limits(max_tokens=300), journal=MemoryJournal())
    result = sampled.run_sync("What is it?")
    assert (result.status, result.answer, result.trace.model_calls) == ("budget_exceeded", "y", 3)
    assert (vote_in(result).samples, result.trace.finished.limit) == (3, "max_tokens")  # type: ignore[union-attr]
    assert all(event.same for event in replay(result.trace))
    more = sampled.resume_sync(result.run_id, limits=Limits(max_tokens=900))
    assert (more.status, more.answer, more.trace.model_calls) == ("completed", "x", 5)
    assert all(event.same for event in replay(more.trace))


def test_steps_limit_no_samples() -> None:
    assert run("cot_sc:n=3", says("a"), says("a"), says("a"), max_steps=1).status == "completed"


def test_a_prompt_that_is_too_long_ends_the_run() -> None:
    class Small(Asked):
        async def complete(self, request: ModelRequest) -> ModelReply:
            raise ModelContextOverflow(f"{request.purpose}: it is too long.")

    result = Agent(model=Small([]), strategy="cot_sc", dialect="text").run_sync("?")
    assert (result.status, result.trace.finished.error) == ("model_failed", ModelContextOverflow.code)  # type: ignore[union-attr]


# ReAct → CoT-SC


def test_without_an_answer_within_the_step_limit_react_backs_off_to_samples() -> None:
    mixed = agent("react_then_cot_sc:n=3", looks("1"), looks("2"), says("b"), says("c"), says("B"), max_steps=2)
    result = mixed.run_sync("What is it?")
    assert (result.status, result.answer) == ("completed", "b")
    assert purposes(result) == ["decide", "decide", "sample", "sample", "sample"]
    assert result.reason == (
        "ReAct gave no answer within its 2 steps. The most frequent answer: 2 of 3 samples gave it."
    )
    requests = mixed.model.requests  # type: ignore[union-attr]
    assert "says nothing" in str(requests[1].messages)
    assert "says nothing" not in str(requests[2].messages)  # a sample sees no observation
    assert requests[1].temperature is None
    assert all(event.same for event in replay(result.trace))


def test_an_answer_of_react_ends_the_run_without_samples() -> None:
    result = run("react_then_cot_sc", looks("1"), says("b"), max_steps=2)
    assert (result.answer, purposes(result)) == ("b", ["decide", "decide"])


def test_going_round_in_circles_counts_as_the_step_limit() -> None:
    same = [looks("1")] * 5
    result = run("react_then_cot_sc:n=2", *same, says("b"), says("b"), max_steps=30)
    assert (result.status, result.answer, purposes(result)[-2:]) == ("completed", "b", ["sample"] * 2)


def test_a_budget_ends_react_as_ever() -> None:
    used = ModelReply(text=looks("1"), usage=Usage(input_tokens=90, output_tokens=10))
    result = run("react_then_cot_sc:n=2", used, says("rest"), limits=Limits(max_tokens=100))
    assert (result.status, result.answer, purposes(result)) == ("budget_exceeded", "rest", ["decide", "close"])


# CoT-SC → ReAct


@pytest.mark.parametrize(
    ("answers", "is_enough"),
    [("aabcd", False), ("aaabc", True), ("aabc", True), ("abcd", False), ("ab", True), ("abc", False)],
)
def test_fewer_than_half_of_the_votes_are_no_majority(answers: str, is_enough: bool) -> None:
    samples = [says(answer * 3) for answer in answers]
    then = [] if is_enough else [looks("1"), says("looked up")]
    result = run(f"cot_sc_then_react:n={len(answers)}", *samples, *then)
    assert result.answer == ("aaa" if is_enough else "looked up")
    assert vote_in(result).accepted == is_enough
    assert purposes(result)[len(answers) :] == ([] if is_enough else ["decide", "decide"])


def test_unreadable_samples_count_against_the_majority() -> None:
    result = run("cot_sc_then_react:n=5", says("b"), "no", says("b"), "no", "no", says("found"))
    assert result.answer == "found"


def test_react_begins_with_the_task_alone_and_has_all_its_steps() -> None:
    mixed = agent("cot_sc_then_react:n=2", "no", "none", looks("1"), looks("2"), says("c"), max_steps=3)
    result = mixed.run_sync("What is it?")
    requests = mixed.model.requests  # type: ignore[union-attr]
    assert (result.status, result.answer) == ("completed", "c")
    assert len(requests[2].messages) == 2
    assert requests[2].tools
    assert requests[2].temperature is None


# The same for all three

RUNS = {
    "cot_sc:n=3": ([says("a"), "unreadable", says("A")], {}),
    "react_then_cot_sc:n=3": ([looks("1"), looks("2"), says("b"), says("c"), says("B")], {"max_steps": 2}),
    "cot_sc_then_react:n=3": ([says("a"), says("b"), says("c"), looks("1"), "unreadable", says("d")], {}),
}


@pytest.mark.parametrize("strategy", RUNS)
def test_a_run_that_dies_at_any_boundary_resumes_and_samples_nothing_twice(strategy: str) -> None:
    replies, settings = RUNS[strategy]
    whole = run(strategy, *replies, **settings)

    async def resumed(cut: int) -> tuple[Result, int]:
        journal = MemoryJournal()
        await journal.append(await journal.create("r"), whole.trace.events[:cut])
        again = agent(strategy, *replies, journal=journal, **settings)
        result = await again.resume("r")
        return result, len(again.model.requests)  # type: ignore[union-attr]

    for cut in range(1, len(whole.trace)):
        if Trace("r", whole.trace.events[:cut]).phase == "replied":
            continue  # a reply and its rejection are written together
        result, asked = asyncio.run(resumed(cut))
        paid = sum(isinstance(event.fact, ModelReplied) for event in whole.trace.events[:cut])
        assert (result.status, result.answer) == (whole.status, whole.answer), cut
        assert asked == len(replies) - paid, cut
        assert vote_in(result).votes == vote_in(whole).votes
        assert all(event.same for event in replay(result.trace)), cut


@examples(30)
@given(
    st.sampled_from(["cot_sc:n=3", "react_then_cot_sc:n=3", "cot_sc_then_react:n=3"]),
    st.lists(st.sampled_from([says("a"), says("b"), says("c"), looks("1"), looks("2"), "", "nothing"]), min_size=14),
    st.integers(1, 4),
)
def test_the_same_trace_always_gives_the_same_effect(strategy: str, replies: list[str], max_steps: int) -> None:
    sampled = Agent(
        model=ScriptedModel(replies, strict=False), tools=[read], strategy=strategy, dialect="text", max_steps=max_steps
    )
    trace = sampled.run_sync("What is it?").trace
    assert all(event.same for event in replay(trace))
    follows, grown = get_strategy(trace.agent.strategy), Trace("r")
    for event in trace.events[:-1]:
        grown.append(event)
        if grown.phase == "replied":
            continue  # its rejection follows
        effects = [follows.next(grown.agent, grown), follows.next(grown.agent, Trace("r", grown.events))]
        shown = [
            (effect.request.purpose, effect.request.messages, effect.step) if isinstance(effect, CallModel) else effect
            for effect in effects
        ]
        if not grown.pending:  # a call is an object of its trace
            assert shown[0] == shown[1]


@pytest.mark.parametrize("strategy", RUNS)
def test_samples_are_not_streamed_and_the_answer_is_whole(strategy: str) -> None:
    replies, settings = RUNS[strategy]
    deltas: list[Delta] = []
    result = asyncio.run(agent(strategy, *replies, **settings).run("?", on_delta=deltas.append))
    streamed = "".join(delta.text for delta in deltas if delta.kind == "text")
    decided = [event.fact.text for event in result.trace if isinstance(event.fact, ModelReplied)]
    decided = [text for text, purpose in zip(decided, purposes(result), strict=True) if purpose != "sample"]
    assert streamed == "".join(decided)


def test_a_remark_of_a_person_reaches_the_samples_that_follow() -> None:
    whole = run("cot_sc:n=2", says("a"), says("b"))
    trace = Trace("r", whole.trace.events[:2])
    trace.add(Noted(by="ann", text="It is in the north."), 5.0)
    effect = get_strategy("cot_sc:n=2").next(trace.agent, trace)
    assert isinstance(effect, CallModel)
    assert "It is in the north." in effect.request.messages[-1].content


def test_a_fork_decides_one_sample_otherwise() -> None:
    whole = run("cot_sc:n=3", says("a"), says("b"), says("b"))
    branch = make_fork(whole.trace, 2, Edits(decision=Answer(text="a", reason="no")), run_id="f", now=9.0)
    assert branch.trace.samples == 2
    assert branch.trace.step_count == 2


# Names and settings


def test_a_trace_stores_every_setting() -> None:
    assert run("cot-sc:n=2", says("a"), says("a")).trace.agent.strategy == "cot_sc:n=2,temperature=0.7"
    assert get_strategy("cot_sc") == SelfConsistency()
    assert get_strategy("COT-SC : temperature = 1, n=9") == SelfConsistency(n=9, temperature=1)
    assert get_strategy(ReactThenSelfConsistency(n=4).name) == ReactThenSelfConsistency(n=4)
    assert get_strategy(SelfConsistencyThenReact(temperature=1).name).name == "cot_sc_then_react:n=5,temperature=1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cot_sc:n=1", "cot_sc: n is 1. It must be a whole number from 2 to 100."),
        ("cot_sc:n=many", "cot_sc: n is 'many'. It must be a whole number."),
        ("react_then_cot_sc:temperature=0", "temperature is 0.0. It must be a number above 0 and at most 2."),
        ("cot_sc_then_react:temperature=nan", "temperature is nan."),
        ("cot_sc:samples=5", "The strategy cot_sc has no setting 'samples=5', or has it twice."),
        ("cot_sc:n=5,n=6", "no setting 'n=6', or has it twice. Write cot_sc:KEY=VALUE,KEY=VALUE with each"),
        ("cot_sc:5", "no setting '5'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        agent(name).run_sync("?")
    assert message in str(refused.value)
