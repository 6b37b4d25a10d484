"""Reflection: draft, critique, revision; its stop rules, its durability, and that only what is cited counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.scripting import Asked
from tests.sizes import examples
from tests.strategies.speaking import Speaking, page, save

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, tool
from taoloop.core.decision import Act, Answer, Call, Decision
from taoloop.core.effects import CallModel, ModelRequest
from taoloop.core.events import ApprovalGiven, ModelReplied, Noted, Observed
from taoloop.core.message import Delta, ModelReply, Usage, message_tokens
from taoloop.core.policy import Policy
from taoloop.core.trace import Trace
from taoloop.core.views.event_entries import event_entries
from taoloop.core.views.steps import CRITIQUE, REVISION
from taoloop.core.views.transcript import Result
from taoloop.dialects import get_dialect
from taoloop.errors import ConfigError, ModelContextOverflow
from taoloop.policy.provenance import sources_of
from taoloop.runtime.after.fork import make_fork
from taoloop.runtime.after.fork_edits import Edits
from taoloop.runtime.after.replay import replay
from taoloop.strategies import Reflect, get_strategy, is_revised

TASK = "How many rooms has the hut? Answer in at most 50 words."


def says(answer: str) -> str:
    return f"Thought: I think so.\nFinal Answer: {answer}"


def looks(page: str) -> str:
    return f"Thought: I check.\nAction: read: {page}"


WRONG = '- It says 4, but "hut has 3 rooms" [obs:call_1]'


@tool(tier="read")
def read(page: str) -> str:
    """Read a page."""
    return f"{page} has 3 rooms"


def agent(*replies: Any, strategy: Any = "reflect", tools: Sequence[Any] = (read,), **settings: Any) -> Agent:
    return Agent(model=Asked(replies), tools=tools, strategy=strategy, dialect="text", **settings)


def run(*replies: Any, task: str = TASK, **settings: Any) -> Result:
    result = agent(*replies, **settings).run_sync(task)
    assert all(event.same for event in replay(result.trace))
    return result


def purposes(result: Result) -> list[str]:
    return [event.fact.purpose for event in result.trace if isinstance(event.fact, ModelReplied)]


def notes(result: Result, about: str) -> list[str]:
    return [
        event.fact.text
        for event in result.trace
        if isinstance(event.fact, Noted) and event.fact.about.startswith(about)
    ]


def asked(used: Agent) -> list[ModelRequest]:
    assert isinstance(used.model, Asked)
    return used.model.requests


# Draft, critique, revision


def test_a_finding_that_cites_an_observation_leads_to_a_revision() -> None:
    """S4-37."""
    used = agent(looks("hut"), says("It has 4 rooms."), WRONG, says("It has 3 rooms."), "NONE")
    result = used.run_sync(TASK)
    assert (result.status, result.answer) == ("completed", "It has 3 rooms.")
    assert purposes(result) == ["decide", "decide", "critique", "decide", "critique"]
    assert result.reason == "The critique found nothing more to correct; revisions: 1."
    assert result.trace.step_count == 3
    revision = asked(used)[3].messages[-1].content
    assert WRONG[2:] in revision
    assert "<untrusted-data" in revision
    assert asked(used)[3].tools
    assert all(event.same for event in replay(result.trace))


def test_the_critic_sees_task_demands_observations_and_draft_but_no_reasoning() -> None:
    """S4-50."""
    used = agent(looks("hut"), says("It has 3 rooms."), "NONE", instructions="Answer in English.")
    used.run_sync(TASK)
    critique = asked(used)[2]
    shown = "\n".join(message.content for message in critique.messages)
    assert critique.purpose == "critique"
    assert not critique.tools
    assert TASK in shown
    assert "Answer in English." in shown
    assert "[obs:call_1] Observation of read (call call_1): ok" in shown
    assert "hut has 3 rooms" in shown
    assert "It has 3 rooms." in shown
    assert "I think so" not in shown
    assert "I check" not in shown
    nonce = used.model.requests[0].trace.started.nonce  # type: ignore[union-attr]
    assert shown.count(f"<untrusted-data {nonce}>") == 2


def test_a_revision_may_look_again_within_the_limits() -> None:
    result = run(looks("hut"), says("4"), WRONG, looks("hut again"), says("3"), "NONE", max_steps=6)
    assert (result.answer, result.trace.tool_calls) == ("3", 2)


def test_words_of_the_task_may_be_cited_for_its_demands() -> None:
    found = "- It has more than 50 words [task: at most 50 words]"
    result = run(says("word " * 60), found, says("short"), "NONE", tools=[])
    assert (result.answer, purposes(result)[2]) == ("short", "decide")


# What a critique may cite


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        ("- It is wrong.", "cites nothing"),
        ("- It has 5 rooms [obs:call_7]", "cites obs:call_7, which is no observation of this run"),
        ('- "hut has 5 rooms" [obs:call_1]', "quotes 'hut has 5 rooms', which stands neither"),
        ("- Too long [task: at most ten words]", "quotes 'at most ten words'"),
        ("- Too long [task]", "cites nothing"),
        ("- Too long [task: a]", "quotes 'a'"),
        ("- Too long [task: ow ma]", "quotes 'ow ma'"),
        ("1. It is wrong.\n2. So is that.", "'So is that.' cites nothing"),
    ],
)
def test_a_critique_that_cites_nothing_is_refused_once_and_then_counts_as_none(finding: str, why: str) -> None:
    """S2-34: the reflection hallucinates too."""
    used = agent(looks("hut"), says("4"), finding, finding)
    result = used.run_sync(TASK)
    assert (result.status, result.answer) == ("completed", "4")
    assert purposes(result) == ["decide", "decide", "critique", "critique"]
    first, second = notes(result, CRITIQUE)
    assert first.startswith("This critique is refused, because nothing of it cites an observation of this run")
    assert "as [obs:call_1] or [task: exact words], or reply NONE." in first
    assert why in first
    assert asked(used)[3].messages[-1].content == first
    assert second.startswith("This critique counts as none")
    assert result.reason == "The draft stands without a critique: what its critic said cited nothing, twice."
    assert all(event.same for event in replay(result.trace))


def test_after_a_refusal_a_cited_finding_counts() -> None:
    result = run(looks("hut"), says("4"), "- It is wrong.", WRONG, says("3"), "NONE")
    assert (result.answer, result.reason[:12]) == ("3", "The critique")


def test_uncited_findings_are_dropped_and_reported_and_the_model_does_not_see_them() -> None:
    used = agent(looks("hut"), says("4"), f"{WRONG}\n- I would write it otherwise.", says("3"), "NONE")
    result = used.run_sync(TASK)
    (judgement, _), (revision,) = notes(result, CRITIQUE), notes(result, REVISION)
    assert "Dropped: 1\n- 'I would write it otherwise.' cites nothing." in judgement
    assert "otherwise" not in revision
    assert not any("otherwise" in message.content for message in asked(used)[3].messages)


@pytest.mark.parametrize(
    "quote",
    ['"hut has 3 rooms."', "“hut … 3 rooms”", "「has 3 rooms」", '"It has 4 rooms,"', '"50 words"', '"HUT has  3"'],
)
def test_a_quotation_may_differ_in_signs_and_leave_words_out(quote: str) -> None:
    result = run(looks("hut"), says("It has 4 rooms."), f"- {quote} is not met [obs:call_1]", says("3"), "NONE")
    assert result.answer == "3"


NOTHING = ["NONE", "None.", "**NONE**", "- NONE", "<think>hm [obs:call_9]</think>NONE", "无"]
IN_OTHER_WORDS = ["Final Answer: NONE", "No problems found.", "最终答案：无", "没有发现问题。"]


@pytest.mark.parametrize(
    "reply", ["NONE", "None.", "**NONE**", "- NONE", "<think>hm [obs:call_9]</think>NONE", "无", *IN_OTHER_WORDS]
)
def test_a_critique_that_finds_nothing_ends_the_run(reply: str) -> None:
    result = run(looks("hut"), says("3"), reply)
    assert (result.answer, result.reason) == ("3", "The critique of the draft found nothing to correct.")


def test_an_empty_critique_is_refused_as_one_that_cites_nothing() -> None:
    assert run(looks("hut"), says("3"), "", "NONE").reason == "The critique of the draft found nothing to correct."
    assert "twice" in run(looks("hut"), says("3"), "", "<think>for ever").reason


def test_findings_beyond_the_most_that_count_are_reported() -> None:
    many = "\n".join(f"- Point {number} [obs:call_1]" for number in range(25))
    result = run(looks("hut"), says("4"), many, says("3"), "NONE")
    judgement = notes(result, CRITIQUE)[0]
    assert judgement.startswith("Findings that count: 10\n")
    assert judgement.endswith("- Point 9 [obs:call_1]\nLeft out, because at most 10 findings count: 15")


# Stop rules


def test_when_the_rounds_are_used_the_open_findings_are_in_the_reason() -> None:
    """S4-52."""
    result = run(looks("hut"), says("4"), WRONG, says("5"), WRONG, says("6"), WRONG)
    assert (result.status, result.answer) == ("completed", "6")
    assert result.reason == f"The limit of revisions (2) was reached; findings that are still open (1): {WRONG[2:]}"
    assert purposes(result).count("critique") == 3


def test_a_revision_that_changes_nothing_ends_it() -> None:
    result = run(looks("hut"), says("4 rooms"), WRONG, says("4 rooms."))
    assert (result.answer, purposes(result).count("critique")) == ("4 rooms.", 1)
    assert result.reason.startswith("The revision did not change the draft; findings that are still open (1): It says")


def test_a_draft_that_was_there_before_ends_it() -> None:
    result = run(looks("hut"), says("4"), WRONG, says("5"), WRONG, says("4"), strategy="reflect:rounds=9")
    assert (result.answer, purposes(result).count("critique")) == ("4", 2)
    assert result.reason.startswith("The revision went back to an earlier draft; findings that are still open (1)")


def test_without_a_step_left_there_is_no_revision_and_the_draft_is_the_answer() -> None:
    result = run(looks("hut"), says("4"), WRONG, max_steps=2)
    assert (result.status, result.answer) == ("completed", "4")
    assert result.reason.startswith("The limit max_steps ended the reflection. Findings that are still open (1): It")


def test_a_spent_budget_ends_it_before_the_critique() -> None:
    """S4-52."""
    used = ModelReply(text=says("4"), usage=Usage(input_tokens=90, output_tokens=10))
    result = run(used, limits=Limits(max_tokens=100))
    assert (result.status, result.answer) == ("completed", "4")
    assert result.reason == "The limit max_tokens ended the reflection. The draft was not reviewed."


def test_a_budget_that_is_spent_by_the_revision_leaves_it_unreviewed() -> None:
    used = ModelReply(text=says("3"), usage=Usage(input_tokens=90, output_tokens=10))
    result = run(looks("hut"), says("4"), WRONG, used, limits=Limits(max_tokens=100))
    assert (result.status, result.answer) == ("completed", "3")
    assert result.reason == (
        "The limit max_tokens ended the reflection. The draft was not reviewed. "
        f"Findings about the draft before (1): {WRONG[2:]}"
    )


def test_a_limit_within_a_revision_gets_its_closing_turn() -> None:
    result = run(looks("hut"), says("4"), WRONG, looks("1"), says("3"), max_steps=3)
    assert (result.status, result.answer) == ("max_steps_exceeded", "3")


def test_without_a_closing_turn_the_draft_before_a_cut_revision_is_the_answer() -> None:
    result = run(looks("hut"), says("4"), WRONG, looks("1"), max_steps=3, closing_turn=False)
    assert (result.status, result.answer) == ("max_steps_exceeded", "4")
    assert "The answer is the draft before the revision that was under way; its open findings (1): It" in result.reason


def test_a_resumed_run_goes_on_with_its_revision() -> None:
    used = agent(
        *(looks("hut"), says("4"), WRONG, looks("1"), says("3"), "NONE"),
        max_steps=3,
        closing_turn=False,
        journal=MemoryJournal(),
    )
    cut = used.run_sync(TASK)
    result = used.resume_sync(cut.run_id, max_steps=6)
    assert (result.status, result.answer) == ("completed", "3")
    assert all(event.same for event in replay(result.trace))


def test_a_critique_that_fails_leaves_the_draft() -> None:
    """S4-51."""

    class Small(Asked):
        async def complete(self, request: ModelRequest) -> ModelReply:
            if request.purpose == "critique":
                raise ModelContextOverflow("it is too long.")
            return await super().complete(request)

    result = Agent(model=Small([says("4")]), strategy="reflect", dialect="text").run_sync(TASK)
    assert (result.status, result.answer) == ("completed", "4")
    assert result.reason == "The draft stands without a critique, which failed: it is too long."
    assert all(event.same for event in replay(result.trace))


# Durable, replayable, streamed, approved

RUNS: dict[str, list[str]] = {
    "revised": [looks("hut"), says("4"), f"{WRONG}\n- uncited", looks("more"), says("3"), "NONE"],
    "refused": [says("4"), "- uncited", "- uncited again"],
    "rounds": [looks("hut"), says("4"), WRONG, "unreadable", says("5"), WRONG, says("6"), WRONG],
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_dies_at_any_boundary_resumes_and_pays_nothing_twice(name: str) -> None:
    replies = RUNS[name]
    whole = run(*replies)

    async def resumed(cut: int) -> tuple[Result, int]:
        journal = MemoryJournal()
        await journal.append(await journal.create("r"), whole.trace.events[:cut])
        again = agent(*replies, journal=journal)
        result = await again.resume("r")
        return result, len(asked(again))

    for cut in range(1, len(whole.trace)):
        if Trace("r", whole.trace.events[:cut]).phase == "replied":
            continue  # a reply and its rejection are written together
        result, count = asyncio.run(resumed(cut))
        paid = sum(isinstance(event.fact, ModelReplied) for event in whole.trace.events[:cut])
        assert (result.status, result.answer, result.reason) == (whole.status, whole.answer, whole.reason), cut
        assert count == len(replies) - paid, cut
        assert notes(result, CRITIQUE) == notes(whole, CRITIQUE), cut
        assert all(event.same for event in replay(result.trace)), cut


_REPLIES = [looks("1"), looks("2"), says("a"), says("b"), says("c"), "NONE", WRONG, "- uncited", "", "- x [obs:call_3]"]


@examples(40)
@given(st.lists(st.sampled_from(_REPLIES), min_size=20), st.integers(1, 5), st.integers(1, 3))
def test_the_same_trace_always_gives_the_same_effect(replies: list[str], max_steps: int, rounds: int) -> None:
    used = Agent(
        model=ScriptedModel(replies, strict=False),
        tools=[read],
        strategy=Reflect(rounds=rounds),
        dialect="text",
        max_steps=max_steps,
    )
    trace = used.run_sync("What is it?").trace
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


def test_a_critique_is_not_streamed() -> None:
    deltas: list[Delta] = []
    replies = RUNS["revised"]
    asyncio.run(agent(*replies).run(TASK, on_delta=deltas.append))
    streamed = "".join(delta.text for delta in deltas if delta.kind == "text")
    assert streamed == "".join(reply for reply in replies if "uncited" not in reply and reply != "NONE")


def test_a_gateway_sends_no_draft() -> None:
    assert is_revised("reflect:rounds=1")
    assert not is_revised("react")


def test_a_run_with_effects_that_dies_at_any_boundary_makes_each_of_them_once() -> None:
    done: list[int] = []

    @tool(tier="draft")
    def note(rooms: int) -> str:
        """Note a number."""
        done.append(rooms)
        return f"noted {rooms}"

    act = "Thought: I note it.\nAction: note: {rooms}"
    finding = '- It notes 4 "noted 4" [obs:call_1], and the task says 3 [task: Note 3]'
    replies = [act.format(rooms=4), says("4"), finding, act.format(rooms=3), says("3"), "NONE"]
    whole = run(*replies, tools=[note], task="Note 3 rooms.")
    assert (whole.answer, done) == ("3", [4, 3])

    async def resumed(cut: int) -> Result:
        journal = MemoryJournal()
        await journal.append(await journal.create("r"), whole.trace.events[:cut])
        return await agent(*replies, tools=[note], journal=journal).resume("r")

    for cut in range(1, len(whole.trace)):
        before = [event.fact.output for event in whole.trace.events[:cut] if isinstance(event.fact, Observed)]
        in_doubt = any(
            call.attempts and call.observed is None for call in Trace("r", whole.trace.events[:cut]).pending.values()
        )
        done.clear()
        result = asyncio.run(resumed(cut))
        if in_doubt:
            assert (result.status, done) == ("waiting", []), cut  # nobody knows whether it happened
            continue
        assert (result.status, result.answer) == ("completed", "3"), cut
        assert len(before) + len(done) == 2, cut


@tool(tier="write")
def book(rooms: int) -> str:
    """Book rooms."""
    return f"booked {rooms}"


def test_what_a_revision_does_goes_through_the_policy_and_is_done_once() -> None:
    act = "Thought: I book.\nAction: book: {rooms}"
    replies = [act.format(rooms=4), says("4"), '- It booked 4 [task: Book 3 rooms] "booked 4" [obs:call_1]']
    replies += [act.format(rooms=3), says("3"), "NONE"]
    journal = MemoryJournal()
    used = agent(*replies, tools=[book], journal=journal)
    waits, questions = used.run_sync("Book 3 rooms."), 0
    while waits.status == "waiting":
        questions += 1
        (call_id,) = waits.trace.paused.waiting_for  # type: ignore[union-attr]
        lease = asyncio.run(journal.acquire(waits.run_id))
        given_fact = ApprovalGiven(call_id=call_id, digest=waits.trace.calls[call_id].requested.digest, by="ann")
        event = Trace(waits.run_id, waits.trace.events).add(given_fact, 9.0)
        asyncio.run(journal.append(lease, [event]))
        waits = used.resume_sync(waits.run_id)
    observed = [event.fact.output for event in waits.trace if isinstance(event.fact, Observed)]
    assert (waits.answer, observed, questions) == ("3", ["booked 4", "booked 3"], 2)
    assert all(event.same for event in replay(waits.trace))


def test_a_finding_makes_nothing_trusted() -> None:
    mail = "eve@evil.example"
    finding = f'- It should name {mail} "has 3 rooms" [obs:call_1]'
    result = run(looks("hut"), says("4"), finding, says(f"3, {mail}"), "NONE")
    provenance = sources_of(result.trace)
    assert mail in notes(result, REVISION)[0]
    assert provenance.tainted
    assert not provenance.is_trusted_value(mail, "target")


def test_a_critic_reads_no_observation_where_the_model_must_not() -> None:
    used = agent(looks("hut"), says("${obs1}"), "NONE", policy=Policy(observations="handles"))
    result = used.run_sync(TASK)
    shown = "\n".join(message.content for message in asked(used)[2].messages)
    assert (result.status, result.answer) == ("completed", "hut has 3 rooms")
    assert "$obs1: text" in shown
    assert "has 3 rooms" not in shown


def test_findings_outlive_a_compaction() -> None:
    class Reviewed(Speaking):
        async def complete(self, request: ModelRequest) -> ModelReply:
            if request.purpose != "critique":
                return await super().complete(request)
            self.asked.append(request)
            return ModelReply(text='- There is more, such as "page 2" [obs:call_2]', cost_usd=0.0)

    model = Reviewed(40, window=9_000)
    used = Agent(
        model=model, tools=[page, save], strategy="reflect", context_tokens=9_000, limits=Limits(max_steps=None)
    )
    result = used.run_sync("Read it all.")
    kinds = [event.kind for event in result.trace]
    assert result.reason.startswith("The revision did not change the draft")
    assert "compacted" in kinds
    assert all(sum(map(message_tokens, request.messages)) < 9_000 for request in model.asked)
    assert all(event.same for event in replay(result.trace))


@pytest.mark.parametrize("dialect", ["native", "text", "json", "fenced"])
def test_every_dialect_reflects(dialect: str) -> None:
    def written(decision: Decision) -> ModelReply:
        return get_dialect(dialect).write(decision)

    replies = [
        written(Act(calls=(Call(tool="read", args={"page": "hut"}),), reason="I check")),
        written(Answer(text="It has 4 rooms.", reason="so")),
        WRONG,
        written(Answer(text="It has 3 rooms.", reason="so")),
        "NONE",
    ]
    used = Agent(model=Asked(replies), tools=[read], strategy="reflect", dialect=dialect)
    result = used.run_sync(TASK)
    assert (result.status, result.answer) == ("completed", "It has 3 rooms.")
    assert "It has 4 rooms." in str(asked(used)[3].messages)  # the model sees the draft that it revises
    assert all(event.same for event in replay(result.trace))


def test_a_fork_decides_the_draft_otherwise() -> None:
    whole = run(*RUNS["revised"])
    branch = make_fork(whole.trace, 2, Edits(decision=Answer(text="3", reason="so")), run_id="f", now=9.0)
    effect = get_strategy("reflect").next(branch.trace.agent, branch.trace)
    assert isinstance(effect, CallModel)
    assert effect.request.purpose == "critique"
    assert "3" in effect.request.messages[-1].content


def test_with_evidence_required_an_answer_without_it_is_no_draft() -> None:
    bare, cited = says("It has 3 rooms."), says("It has 3 rooms [obs:call_1].")
    used = agent(looks("hut"), bare, cited, WRONG, cited, evidence="require")
    result = used.run_sync(TASK)
    assert (result.status, result.answer) == ("completed", "It has 3 rooms [obs:call_1].")
    assert purposes(result) == ["decide", "decide", "repair", "critique", "decide"]
    assert result.reason.startswith("The revision did not change the draft")
    assert all(event.same for event in replay(result.trace))


def test_each_draft_without_its_evidence_is_sent_back_once() -> None:
    bare, cited = says("It has 3 rooms."), says("It has 3 rooms [obs:call_1].")
    result = agent(looks("hut"), bare, cited, WRONG, bare, cited, evidence="require").run_sync(TASK)
    assert (result.status, result.answer) == ("completed", "It has 3 rooms [obs:call_1].")
    assert purposes(result) == ["decide", "decide", "repair", "critique", "decide", "repair"]
    assert all(event.same for event in replay(result.trace))
    twice = agent(looks("hut"), cited, WRONG, bare, bare, "NONE", evidence="require").run_sync(TASK)
    assert twice.status == "unsupported"


def test_an_answer_of_an_agent_that_took_over_is_not_reviewed() -> None:
    """The task is no longer the first agent's: its model is asked nothing more."""
    over = {"tool_calls": [{"name": "hand_over_to_guide", "args": {"reason": "It knows the huts."}}]}
    for replies, status, reason in (
        (["It has 4 rooms."], "completed", "The agent 'guide' took over."),
        ([], "model_failed", "The agent 'guide' took over."),
    ):
        guide = Agent(name="guide", description="Huts.", model=ScriptedModel(replies))
        desk = Agent(name="desk", model=ScriptedModel([over]), handoffs=[guide], strategy="reflect")
        result = desk.run_sync(TASK)
        assert (result.status, result.trace.model_calls) == (status, 1)
        assert result.reason.startswith(reason)
        assert all(event.same for event in replay(result.trace))


# How it is shown


def test_people_see_draft_critique_and_revision() -> None:
    result = run(looks("hut"), says("4"), WRONG, says("3"), "NONE")
    kinds = [(entry.kind, entry.content) for entry in result.entries if entry.kind in ("Draft", "Critique", "Final")]
    assert kinds == [
        ("Draft", "4"),
        ("Critique", f"Findings that count: 1\n{WRONG}"),
        ("Draft", "3"),
        ("Critique", "Nothing to correct."),
        ("Final", "3"),
    ]
    titles = {entry.title for entry in event_entries(result.trace.events, "en")}
    assert {
        "Step 2 · critique of the draft",
        "Critique of the draft, as it counts",
        "Findings sent back; the draft is revised",
    } <= titles


def test_texts_are_chinese_in_a_chinese_run() -> None:
    result = run(looks("hut"), says("4"), "- 不对", "- 不对", task="小屋有几个房间？")
    assert result.reason == "草稿未经评审：评审意见两次都没有给出依据。"
    assert notes(result, CRITIQUE)[0].startswith("这份评审不予采纳")


# Settings


def test_a_trace_stores_every_setting() -> None:
    assert run(says("3"), "NONE", strategy="reflect:rounds=1").trace.agent.strategy == "reflect:rounds=1,lessons=0"
    assert get_strategy("reflect") == Reflect()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reflect:rounds=0", "reflect: rounds is 0. It must be a whole number from 1 to 10."),
        ("reflect:lessons=11", "reflect: lessons is 11. It must be a whole number from 0 to 10."),
        ("reflect:turns=2", "The strategy reflect has no setting 'turns=2'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        agent(strategy=name).run_sync("?")
    assert message in str(refused.value)
