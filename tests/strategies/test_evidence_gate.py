"""Every way in which a run ends with an answer passes the evidence gate: strategies, dialects, limits, crashes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel
from tests.scripting import call

from taoloop import END, START, Agent, Graph, Limits, MemoryJournal, Node, Result, ScriptedModel, tool
from taoloop.core.decision import without_citations
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ReplyRejected
from taoloop.core.message import ModelReply
from taoloop.core.policy import EvidenceMode
from taoloop.core.trace import Trace
from taoloop.runtime.after.replay import replay

GOOD, BAD = "Tea costs 5.25 EUR [obs:call_1].", "Tea costs 99 EUR [obs:call_1]."
LOOK = call("price", item="tea")


@tool(tier="read")
def price(item: str) -> str:
    """Look up the price of an item."""
    return f"{item} costs 5.25 EUR"


@tool(tier="write")
def order(item: str) -> str:
    """Order an item."""
    return f"{item} was ordered"


def ask(*replies: Any, evidence: EvidenceMode = "require", **options: Any) -> Result:
    agent = Agent(model=ScriptedModel(list(replies)), tools=[price], evidence=evidence, **options)
    result = agent.run_sync("What does tea cost?")
    assert [step.same for step in replay(result.trace)] == [True] * len(result.trace)
    return result


def rejections(trace: Trace) -> list[str]:
    return [event.fact.code for event in trace if isinstance(event.fact, ReplyRejected)]


def written(dialect: str, thought: str, decision: str, **value: Any) -> Any:
    """A reply in a dialect."""
    if dialect == "native":
        return call("price", **value["args"]) if decision == "act" else value["text"]
    if decision == "act":
        action = {"action": "price", "action_input": value["args"]}
        if dialect == "text":
            return f"Thought: {thought}\nAction: price\nAction Input: {json.dumps(value['args'])}"
    else:
        action = {"action": "Final Answer", "action_input": value["text"]}
        if dialect == "text":
            return f"Thought: {thought}\nFinal Answer: {value['text']}"
    if dialect == "fenced":
        return f"Thought: {thought}\nAction:\n```json\n{json.dumps(action)}\n```"
    return json.dumps({"thought": thought, **action})


@pytest.mark.parametrize("strategy", ["react", "act_only"])
@pytest.mark.parametrize("dialect", ["native", "text", "fenced"])
def test_every_dialect_corrects_an_answer_in_its_own_step(dialect: str, strategy: str) -> None:
    replies = [
        written(dialect, "Look.", "act", args={"item": "tea"}),
        written(dialect, "Done.", "answer", text=BAD),
        written(dialect, "Corrected.", "answer", text=GOOD),
    ]
    result = ask(*replies, dialect=dialect, strategy=strategy)
    assert (result.status, result.answer, rejections(result.trace)) == ("completed", GOOD, ["unsupported"])
    assert (result.trace.step_count, result.trace.total_errors, result.trace.consecutive_errors) == (2, 0, 0)
    again = ask(replies[0], replies[1], replies[1], dialect=dialect, strategy=strategy)
    assert (again.status, rejections(again.trace)) == ("unsupported", ["unsupported"])


@pytest.mark.parametrize("dialect", ["json", "json_final"])
def test_the_json_dialects_too(dialect: str) -> None:
    def reply(**fields: Any) -> str:
        return json.dumps({"thought": "So.", **fields})

    acts = reply(action="price", action_input={"item": "tea"})
    answers = [
        reply(action="final", action_input=text) if dialect == "json" else reply(final=text) for text in (BAD, GOOD)
    ]
    result = ask(acts, *answers, dialect=dialect)
    assert (result.status, result.answer, rejections(result.trace)) == ("completed", GOOD, ["unsupported"])


class Watched(ScriptedModel):
    """Remembers what it was asked."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.messages = [message.content for message in request.messages]
        return await super().complete(request)


def test_the_model_reads_its_answer_and_what_is_wrong_with_it() -> None:
    model = Watched([LOOK, BAD, GOOD])
    Agent(model=model, tools=[price], evidence="require").run_sync("What does tea cost?")
    assert BAD in "\n".join(model.messages[:-1])
    assert "obs:call_1 does not contain 99" in model.messages[-1]
    assert "[obs:CALL_ID]" in model.messages[0]


@pytest.mark.parametrize("strategy", ["reason_only", "standard", "cot_sc:n=3"])
def test_a_strategy_without_tools_has_nothing_to_cite_and_may_cite_nothing_that_is_not_there(strategy: str) -> None:
    samples = 3 if strategy.startswith("cot_sc") else 1
    assert ask(*["Tea costs 5 EUR."] * samples, strategy=strategy).status == "completed"
    sent_back = 0 if strategy.startswith("cot_sc") else 1
    made_up = ask(*["Tea costs 5 EUR [obs:call_1]."] * (samples + sent_back), strategy=strategy)
    assert (made_up.status, [gap.code for gap in made_up.evidence]) == ("unsupported", ["unknown"])


@pytest.mark.parametrize(
    ("strategy", "replies"),
    [
        ("react_then_cot_sc:n=3", [LOOK, *["5.25 EUR."] * 3]),
        ("cot_sc_then_react:n=3", ["5.25 EUR."] * 3),
    ],
)
def test_an_answer_of_samples_is_none_where_evidence_is_required(strategy: str, replies: Sequence[Any]) -> None:
    limits = Limits(max_steps=1) if strategy.startswith("react") else Limits()
    result = ask(*replies, strategy=strategy, limits=limits)
    assert (result.status, result.answer, rejections(result.trace)) == ("unsupported", "5.25 EUR.", [])
    assert "samples" in result.reason
    warned = ask(*replies, strategy=strategy, limits=limits, evidence="warn")
    assert (warned.status, [gap.code for gap in warned.evidence]) == ("completed", ["no_citation"])


@pytest.mark.parametrize("strategy", ["react_then_cot_sc:n=3", "cot_sc_then_react:n=3"])
def test_the_react_part_of_a_combination_passes_the_gate(strategy: str) -> None:
    samples = [] if strategy.startswith("react") else ["4 EUR.", "6 EUR.", "7 EUR."]
    result = ask(*samples, LOOK, BAD, GOOD, strategy=strategy)
    assert (result.status, result.answer, rejections(result.trace)) == ("completed", GOOD, ["unsupported"])


class Price(BaseModel):
    item: str
    price: float
    pieces: int = 0
    note: str = ""


def typed(**fields: Any) -> str:
    return json.dumps({"item": "tea", "price": 5.25, **fields})


@pytest.mark.parametrize("fields", [{}, {"note": "It is 5.25 EUR, or 10.50 for two."}, {"price": 10.5, "pieces": 2}])
def test_an_answer_by_a_schema_needs_no_citation(fields: dict[str, Any]) -> None:
    if "price" in fields or "10.50" in fields.get("note", ""):  # computed from a number that the answer has too
        fields = {**fields, "note": "2 × 5.25 EUR make 10.5 EUR"}
    assert ask(LOOK, typed(**fields), output_type=Price).evidence == ()


@pytest.mark.parametrize(
    ("replies", "value"),
    [
        ((LOOK, typed(price=7.5)), "7.5"),
        ((LOOK, typed(note="See INV-2041.")), "INV-2041"),
        ((LOOK, typed(note="Since May 3, 2021.")), "May 3, 2021"),
        ((typed(),), "5.25"),
    ],
)
def test_its_values_are_looked_for_in_all_observations(replies: tuple[Any, ...], value: str) -> None:
    result = ask(*replies, replies[-1], output_type=Price, dialect="native")
    assert (result.status, [gap.code for gap in result.evidence]) == ("unsupported", ["not_observed"])
    assert result.evidence[0].value == value
    rules = result.trace.agent.prompts.texts
    assert "evidence_output" in rules
    assert "evidence" not in rules


def test_a_held_back_typed_answer_is_corrected() -> None:
    result = ask(LOOK, typed(price=7.5), typed(), output_type=Price)
    assert (result.status, rejections(result.trace)) == ("completed", ["unsupported"])
    assert result.output == Price(item="tea", price=5.25)


class Shop(BaseModel):
    question: str = ""
    reply: str = ""


@pytest.mark.parametrize("handles", ["child", "node"])
def test_an_answer_of_an_inner_run_passes_its_own_gate(handles: str) -> None:
    good, bad = (
        Agent(model=ScriptedModel([LOOK, BAD, text]), tools=[price], evidence="require", name="clerk")
        for text in (GOOD, BAD)
    )
    for inner, expected in ((good, "Tea costs 5.25 EUR."), (bad, "unsupported")):
        if handles == "child":
            replies: list[Any] = [call("clerk", task="What does tea cost?"), "Tea costs 5.25 EUR [obs:call_1]."]
            outer = Agent(model=ScriptedModel(replies), tools=[inner.as_tool(purpose="Asks a clerk.")], evidence="warn")
            result = outer.run_sync("Ask.")
            assert bool(result.evidence) == (inner is bad)
        else:
            graph = Graph(
                state=Shop,
                nodes={"clerk": Node(inner, args={"task": "{question}"}, writes="reply")},
                edges={START: "clerk", "clerk": END},
                answer="{reply}",
            )
            result = graph.agent(evidence="require").run_sync('{"question": "What does tea cost?"}')
            assert result.status == ("completed" if inner is good else "too_many_errors")
        observed = next(iter(result.trace.calls.values())).observed
        assert observed is not None
        assert expected in f"{observed.output} {observed.error}"
        assert "obs:call_1" not in observed.output


def test_the_citations_of_an_inner_run_are_not_those_of_the_outer_one() -> None:
    text = "Tea costs 5 EUR [obs:call_1, doc:0123456789ab]. It is green [obs:call_2]."
    assert without_citations(text) == "Tea costs 5 EUR [doc:0123456789ab]. It is green."


@pytest.mark.parametrize("evidence", ["warn", "require"])
def test_a_limit_leaves_no_turn_and_its_answer_is_checked(evidence: EvidenceMode) -> None:
    result = ask(LOOK, BAD, evidence=evidence, limits=Limits(max_steps=1))
    assert (result.status, result.answer) == ("max_steps_exceeded", BAD)
    assert [gap.code for gap in result.evidence] == ["not_contained"]


def test_an_answer_in_the_last_step_is_corrected_in_that_step() -> None:
    result = ask(LOOK, BAD, GOOD, limits=Limits(max_steps=2))
    assert (result.status, result.answer) == ("completed", GOOD)
    calls = ask(LOOK, BAD, call("price", item="milk"), GOOD, limits=Limits(max_steps=2))
    assert (calls.status, calls.answer) == ("max_steps_exceeded", GOOD)


def test_it_is_held_back_once_however_much_is_done_in_between() -> None:
    result = ask(BAD, LOOK, "unreadable", "Tea costs 4 EUR [obs:call_1].", dialect="native")
    assert result.trace.held_back is not None
    assert rejections(result.trace) == ["unsupported"]
    assert result.status == "unsupported"


async def every_prefix_ends_as(journal: MemoryJournal, whole: Result, replies: Sequence[Any], **options: Any) -> None:
    """A run that was killed after any event is resumed, and sends the answer back as often as if it was not."""
    events = whole.trace.events
    for length in range(1, len(events)):
        run_id = f"cut-{length}"
        lease = await journal.create(run_id)
        await journal.append(lease, events[:length])
        agent = Agent(model=ScriptedModel(replies), tools=[price, order], journal=journal, **options)
        result = await agent.resume(run_id)
        assert (result.status, result.answer) == (whole.status, whole.answer), length
        assert rejections(result.trace) == rejections(whole.trace), length


@pytest.mark.parametrize("last", [GOOD, BAD])
def test_it_is_held_back_once_over_a_crash_at_any_event(last: str) -> None:
    async def scenario() -> None:
        journal = MemoryJournal()
        replies: list[Any] = [LOOK, BAD, LOOK, last]
        options: dict[str, Any] = {"evidence": "require"}
        agent = Agent(model=ScriptedModel(replies), tools=[price, order], journal=journal, **options)
        whole = await agent.run("What does tea cost?")
        assert whole.status == ("completed" if last == GOOD else "unsupported")
        await every_prefix_ends_as(journal, whole, replies, **options)

    asyncio.run(scenario())


def test_a_question_in_between_does_not_grant_another_time() -> None:
    replies: list[Any] = [LOOK, BAD, call("order", item="tea"), BAD]
    agent = Agent(model=ScriptedModel(replies), tools=[price, order], evidence="require", journal=MemoryJournal())

    async def scenario() -> Result:
        waiting = await agent.run("What does tea cost? Order it.")
        assert waiting.status == "waiting"
        return await agent.resume(waiting.run_id, approved_tiers=("write",))

    result = asyncio.run(scenario())
    assert (result.status, rejections(result.trace)) == ("unsupported", ["unsupported"])


def test_a_resumed_unsupported_run_may_be_corrected_again() -> None:
    agent = Agent(
        model=ScriptedModel([LOOK, BAD, BAD, BAD, GOOD]), tools=[price], evidence="require", journal=MemoryJournal()
    )

    async def scenario() -> tuple[Result, Result]:
        first = await agent.run("What does tea cost?")
        return first, await agent.resume(first.run_id)

    first, second = asyncio.run(scenario())
    assert (first.status, second.status, second.answer) == ("unsupported", "completed", GOOD)
    assert rejections(second.trace) == ["unsupported", "unsupported"]
    assert [step.same for step in replay(second.trace)] == [True] * len(second.trace)
