"""What waits in a run of thousands of steps is read without the run, and is the same as with all of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.approvals.long_runs import STEPS, CountingJournal, lengthen, put_long_approval, put_long_blocked
from tests.runtime.approvals.waiting_runs import leave_dead, leave_failed_undo, leave_question, read_mail
from tests.scripting import call
from tests.serve.panel.run_samples import extend, put, steps

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, Trace, tool
from taoloop.core.events import Fact, ModelReplied, Paused, Resumed, RunStarted
from taoloop.core.policy import Policy, Profile
from taoloop.policy.review.argument_origins import argument_origins
from taoloop.runtime.after.recovery import stuck_excerpts
from taoloop.runtime.after.undo_plan import undo_id
from taoloop.runtime.approvals.call_search import MOST_READS
from taoloop.runtime.approvals.inbox import WaitingQuestions, pending_approvals
from taoloop.runtime.approvals.inbox_items import Inbox
from taoloop.runtime.approvals.run_excerpt import SHORT, is_whole, read_evidence, read_excerpt
from taoloop.runtime.approvals.user_questions import question_warnings
from taoloop.runtime.child_run import deaths_in_a_row
from taoloop.tools.builtin.ask_user import ask_user


@tool(tier="read", egress=False)
def find_customer(name: str) -> dict[str, Any]:
    """Look a customer up."""
    return {"name": name, "customer_id": "C-4711"}


@tool(tier="read", egress=False, roles={"customer_id": "target"})
def find_accounts(customer_id: str) -> dict[str, Any]:
    """Look accounts up."""
    return {"customer_id": customer_id, "accounts": [{"iban": "DE02120300000000202051"}]}


@tool(tier="read", egress=False)
def read_page(page: int) -> str:
    """Read a page."""
    return f"Page {page}"


@tool(tier="write", roles={"iban": "target", "note": "content", "amount": "value"})
def transfer(iban: str, amount: int, note: str) -> str:
    """Pay somebody."""
    return f"paid {amount}"


TOOLS = (find_customer, find_accounts, read_mail, transfer)


class WholeRuns:
    """A journal without queries: whoever asks it for a run gets all of it."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.load, self.runs, self.run_locks = journal.load, journal.runs, journal.run_locks


def test_open_questions_are_the_same_as_with_the_whole_run() -> None:
    async def main() -> None:
        journal = CountingJournal()
        await put_long_approval(journal)
        await put_long_blocked(journal)
        whole = (await Inbox(WholeRuns(journal)).load()).items  # type: ignore[arg-type]  # all that it asks for
        journal.forget()
        items = (await Inbox(journal).load()).items
        assert journal.events_read < 2 * SHORT + 100
        assert items == whole
        assert [(item.kind, len(item.calls)) for item in items] == [("approval", 1), ("approval", 1), ("blocked", 1)]
        journal.forget()
        assert len(await pending_approvals(journal)) == 2
        assert (await WaitingQuestions().count(journal)).total() == 2
        assert journal.events_read < 3 * SHORT

    asyncio.run(main())


def test_an_excerpt_has_the_calls_that_are_asked_for_and_says_that_it_is_one() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        await put_long_approval(journal)
        excerpt = await read_excerpt(journal, "asks", call_ids=("call_7",))
        assert not is_whole(excerpt)
        assert excerpt.calls["call_7"].observed is not None
        assert "call_8" not in excerpt.calls
        assert excerpt.events[-1].seq == len(await journal.load("asks")) - 1

    asyncio.run(main())


def test_a_call_from_before_the_last_decision_is_looked_for() -> None:
    """As an event about it, and as one that a pause names."""

    async def main() -> None:
        journal = CountingJournal()
        reply, requested, observed = steps(1)
        facts = [(await _facts("asks-user"))[0], reply, requested, *steps(STEPS, first=2), observed]
        lease = await put(journal, "early", [*facts, Paused(reason="", waiting_for=("call_1",))])
        await put(journal, "open", [*facts[:-1], Paused(reason="", waiting_for=("call_1",))])
        journal.forget()
        assert (await read_excerpt(journal, "early")).calls["call_1"].observed is not None
        excerpt = await read_excerpt(journal, "open")
        assert (excerpt.paused is not None, list(excerpt.pending)) == (True, ["call_1"])
        assert journal.events_read < 2 * SHORT + 100
        await extend(journal, lease, 3 * STEPS + 5, [ModelReplied(step=9, purpose="read", text="", decision=None)] * 50)
        assert not is_whole(await read_excerpt(journal, "early")), "the decision is before many side questions"

    asyncio.run(main())


@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_question_of_the_model_names_the_newest_outputs_that_it_had_read(is_trusted: bool) -> None:
    """Where the tool of all steps is trusted, the only untrusted output is at the beginning, and is looked for."""

    async def main() -> None:
        short, journal = MemoryJournal(), CountingJournal()
        policy = Policy(trusted_tools=("read_page",) if is_trusted else ())
        script = ScriptedModel([call("read_mail"), call("ask_user", question="Is it DE89370400440532013000?")])
        agent = Agent(model=script, tools=[read_mail, ask_user, read_page], journal=short, policy=policy)
        await agent.run("Pay the invoice.", run_id="asks-user")
        await lengthen(journal, short, "asks-user")
        journal.forget()
        (item,) = (await Inbox(journal).load()).items
        is_bounded = journal.events_read < 3 * SHORT
        (whole,) = (await Inbox(WholeRuns(journal)).load()).items  # type: ignore[arg-type]  # all that it asks for
        assert item.kind == "question"
        question, expected = item.calls[0].request.question, whole.calls[0].request.question
        assert question is not None
        assert expected is not None
        assert question_warnings(question, "en") == question_warnings(expected, "en")
        if is_trusted:
            assert question.read_before == expected.read_before == ("read_mail (call_1)",)
        else:
            assert question.read_before[:MOST_READS] == expected.read_before[:MOST_READS]
            assert is_bounded

    asyncio.run(main())


def test_a_run_that_died_is_the_same_as_with_all_of_it() -> None:
    """Also an undo that stopped, and a run that was often resumed."""

    async def main() -> None:
        short, journal = MemoryJournal(), CountingJournal()
        await leave_dead(short)
        await leave_failed_undo(short)
        await lengthen(journal, short, "dead")
        await lengthen(journal, short, undo_id("orders", 1))
        await lengthen(journal, short, "orders")
        journal.forget()
        items = (await Inbox(journal).load()).items
        assert journal.events_read < 5 * SHORT
        assert [item.kind for item in items] == ["doubt", "undo", "dead"]
        journal.forget()
        assert [trace.run_id for trace in await stuck_excerpts(journal)] == ["dead"]
        assert len(await pending_approvals(journal, in_doubt=True)) == 1
        assert journal.events_read < 5 * SHORT
        assert items == (await Inbox(WholeRuns(journal)).load()).items  # type: ignore[arg-type]  # all that it asks for

    asyncio.run(main())


def test_a_run_inside_that_made_progress_is_read_from_its_last_decision_on() -> None:
    async def main() -> None:
        short, journal = MemoryJournal(), CountingJournal()
        await leave_dead(short)
        await lengthen(journal, short, "dead")
        start = (await _facts("asks-user"))[0]
        assert isinstance(start, RunStarted)
        await put(journal, "dead.1", [replace(start, parent="dead"), *steps(STEPS)], apart_s=1)
        journal.forget()
        assert await deaths_in_a_row(journal, await read_excerpt(journal, "dead")) == 0, "it is newer than the resumes"
        assert journal.events_read < 3 * SHORT
        whole = Trace("dead", await journal.load("dead"))
        assert await deaths_in_a_row(WholeRuns(journal), whole) == 0  # type: ignore[arg-type]  # all that it asks for

    asyncio.run(main())


def test_of_many_resumes_those_count_that_changed_something() -> None:
    async def main() -> None:
        journal = CountingJournal()
        facts = await _facts("asks-user")
        card = replace(ask_user.card, purpose="Ask the customer.")
        resumes = [Resumed(cards=(card,)), Resumed(limits=Limits(max_steps=7)), *[Resumed(reason="again")] * 300]
        await put(journal, "asks-user", [facts[0], *resumes, *steps(STEPS, first=9_000), *facts[1:]])
        excerpt = await read_excerpt(journal, "asks-user")
        assert len([event for event in excerpt.events if isinstance(event.fact, Resumed)]) == 3
        assert (excerpt.card("ask_user"), excerpt.limits.max_steps) == (card, 7)

    asyncio.run(main())


def test_the_evidence_of_a_call_is_the_same_as_with_the_whole_run() -> None:
    """What a mail said, what was looked up by what had been looked up, and what nobody was asked about."""

    async def main() -> None:
        short = MemoryJournal()
        replies = [call("find_customer", name="Ann"), call("find_accounts", customer_id="C-4711"), call("read_mail")]
        ibans: dict[Profile, str] = {"supervised": "DE02120300000000202051", "autonomous": "DE89370400440532013000"}
        for profile, iban in ibans.items():
            payment = call("transfer", iban=iban, amount=1700, note="as agreed")
            policy = Policy(profile=profile, trusted_tools=("find_*",))
            script = ScriptedModel([*replies, payment, "done"], strict=False)
            agent = Agent(model=script, tools=TOOLS, policy=policy, journal=short)
            await agent.run("Pay Ann what we agreed on.", run_id=profile)
            journal = CountingJournal()
            await lengthen(journal, short, profile, at=3)
            whole = Trace(profile, await journal.load(profile))
            excerpt = await read_evidence(journal, profile, "call_4")
            assert excerpt is not None
            assert len(excerpt) < 100
            origins = argument_origins(excerpt, "call_4")
            assert origins == argument_origins(whole, "call_4")
            assert origins[0].tool == ("find_accounts" if profile == "supervised" else "read_mail")
        assert await read_evidence(journal, "autonomous", "call_5") is None

    asyncio.run(main())


def test_a_short_run_is_read_whole_and_one_without_events_is_empty() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        facts = await _facts("asks-user")
        await put(journal, "asks-user", facts)
        assert len(await read_excerpt(journal, "asks-user")) == len(facts)
        await journal.create("empty")
        assert is_whole(await read_excerpt(journal, "empty"))

    asyncio.run(main())


async def _facts(run_id: str) -> list[Fact]:
    journal = MemoryJournal()
    await leave_question(journal, run_id=run_id)
    return [event.fact for event in await journal.load(run_id)]
