"""Answers from outside, to a run that waits and has no process."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.paying import drop, pay, paying
from tests.scripting import call, calls

from taoloop import Agent, ApprovalAnswer, MemoryJournal, Result, ScriptedModel, SqliteJournal, tool
from taoloop.core.events import ActionRequested, ApprovalGiven, ApprovalRefused, Event, Noted, Observed, Resumed
from taoloop.core.policy import Policy, Rule
from taoloop.core.trace import Trace
from taoloop.errors import ApprovalStale, ConfigError, InvalidArguments, NotWaiting, RunNotFound, RunNotResumable
from taoloop.journals.base import Journal, Lease
from taoloop.runtime.after.replay import replay
from taoloop.runtime.approvals.inbox import add_note, answer_approval, pending_approvals
from taoloop.testing import FakeClock

YES = ApprovalAnswer(approved=True, by="ann", note="it is owed")
ASKING = Policy(rules=(Rule(verdict="ask", tool="pay"),))
NO = ApprovalAnswer(approved=False, by="ann", note="ask first")


class Waiter:
    """An agent whose run waits, and what a person can do about it."""

    def __init__(self, *replies: Any, journal: Journal | None = None, task: str = "go", **options: Any) -> None:
        self.journal = journal or MemoryJournal()
        script = ScriptedModel([*replies, "done"], strict=False)
        self.agent = Agent(model=script, tools=[pay, drop], journal=self.journal, **options)
        self.run_id = self.agent.run_sync(task).run_id
        assert self.trace.status == "waiting"

    @property
    def trace(self) -> Trace:
        return Trace(self.run_id, asyncio.run(self.journal.load(self.run_id)))

    def answer(self, call_id: str, given: ApprovalAnswer, **options: Any) -> Trace:
        return asyncio.run(answer_approval(self.journal, self.run_id, call_id, given, **options)).trace

    def resume(self) -> Result:
        result = self.agent.resume_sync(self.run_id)
        assert all(one.same for one in replay(result.trace)), "a replay decides the same"
        return result


def outputs(trace: Trace) -> list[str]:
    return [event.fact.output for event in trace if isinstance(event.fact, Observed) and event.fact.ok]


def given(trace: Trace) -> list[str]:
    return [event.fact.call_id for event in trace if isinstance(event.fact, ApprovalGiven)]


def test_an_answer_is_kept_and_counts_at_the_resume() -> None:
    one = Waiter(paying(5))
    trace = one.answer("call_1", YES)
    assert trace.status == "waiting", "until a process takes it up"
    done = one.resume()
    assert (done.status, outputs(done.trace)) == ("completed", ["paid 5 to ann"])
    [fact] = [event.fact for event in done.trace if isinstance(event.fact, ApprovalGiven)]
    assert (fact.by, fact.note, fact.digest) == ("ann", "it is owed", trace.calls["call_1"].requested.digest)


def test_a_refusal_reaches_the_model_with_its_reason() -> None:
    one = Waiter(paying(5))
    one.answer("call_1", NO)
    [observed] = [event.fact for event in one.resume().trace if isinstance(event.fact, Observed)]
    assert observed.error is not None
    assert "ask first" in observed.error.message


def test_with_several_questions_the_run_waits_until_all_have_answers_or_it_is_resumed() -> None:
    one = Waiter(calls(("pay", {"to": "a", "amount": 1}), ("drop", {"table": "t"})))
    one.answer("call_2", YES)
    assert one.trace.status == "waiting"
    still = one.resume()
    assert (still.status, outputs(still.trace)) == ("waiting", ["dropped t"])
    one.answer("call_1", YES)
    assert one.resume().status == "completed"


def test_edited_arguments_must_fit_the_schema_in_the_trace() -> None:
    one = Waiter(paying(5))
    before = one.trace.events
    for bad in ({"to": "ann"}, {"to": "ann", "amount": "all"}, {"to": "ann", "amount": 5, "more": 1}):
        with pytest.raises(InvalidArguments, match="do not fit"):
            one.answer("call_1", ApprovalAnswer(approved=True, args=bad))
    with pytest.raises(InvalidArguments, match="JSON object"):
        one.answer("call_1", ApprovalAnswer(approved=True, args=[1]))  # type: ignore[arg-type]  # on purpose
    assert one.trace.events == before
    one.answer("call_1", ApprovalAnswer(approved=True, args={"to": "bob", "amount": "7"}))
    assert outputs(one.resume().trace) == ["paid 7 to bob"]


def test_edited_arguments_are_held_to_the_rules_of_the_operator() -> None:
    deny = Rule(verdict="deny", tool="pay", args={"amount": {"min": 1000}}, name="too much")
    one = Waiter(paying(5), policy=Policy(rules=(deny,)))
    with pytest.raises(InvalidArguments, match="too much"):
        one.answer("call_1", ApprovalAnswer(approved=True, args={"to": "ann", "amount": 5000}))


def test_what_waits_for_no_answer_takes_none() -> None:
    one = Waiter(paying(5, 6))
    before = len(one.trace)
    with pytest.raises(NotWaiting, match="no call 'call_9'") as raised:
        one.answer("call_9", YES)
    assert raised.value.hint == "These wait: call_1, call_2."
    one.answer("call_1", YES)
    with pytest.raises(NotWaiting, match="allowed by ann"):
        one.answer("call_1", NO)
    with pytest.raises(RunNotFound):
        asyncio.run(answer_approval(one.journal, "nothing", "call_1", YES))
    assert len(one.trace) == before + 1
    one.answer("call_2", NO)
    one.resume()
    with pytest.raises(NotWaiting, match="refused by ann"):
        one.answer("call_2", YES)


def test_a_run_at_work_is_left_alone() -> None:
    """Its lease must not be taken from it."""
    journal = MemoryJournal()
    seen: list[Exception] = []

    async def ask(request: Any) -> bool:
        try:
            await answer_approval(journal, request.run_id, request.call_id, YES)
        except NotWaiting as error:
            seen.append(error)
        return True

    script = ScriptedModel([paying(5), "done"])
    result = Agent(model=script, tools=[pay], journal=journal, approve=ask).run_sync("go")
    assert (result.status, len(seen), outputs(result.trace)) == ("completed", 1, ["paid 5 to ann"])
    assert "a process is at work" in str(seen[0])


def test_an_approval_of_another_call_is_refused() -> None:
    one = Waiter(paying(5))
    digest = one.trace.calls["call_1"].requested.digest
    for wrong in ("0" * 64, "", digest[:7]):
        with pytest.raises(ApprovalStale, match="not the one that was shown"):
            one.answer("call_1", YES, digest=wrong)
    one.answer("call_1", YES, digest=digest[:12].upper())


def test_an_approval_under_another_policy_is_refused() -> None:
    one = Waiter(paying(5))
    events = asyncio.run(one.journal.load(one.run_id))
    journal = MemoryJournal()

    async def copy() -> None:
        lease = await journal.create("r")
        changed = []
        for event in events:
            fact = event.fact
            if isinstance(fact, ActionRequested):
                import dataclasses  # noqa: PLC0415  # one use

                fact = dataclasses.replace(fact, policy="another")
            changed.append(event._replace(fact=fact))
        await journal.append(lease, changed)

    asyncio.run(copy())
    with pytest.raises(ApprovalStale, match="policy"):
        asyncio.run(answer_approval(journal, "r", "call_1", YES))
    asyncio.run(answer_approval(journal, "r", "call_1", NO))


def test_after_its_time_a_call_can_be_refused_and_not_allowed() -> None:
    clock = FakeClock()
    one = Waiter(paying(5, 6), policy=Policy(approval_timeout_s=60), clock=clock)
    clock.advance(60)
    with pytest.raises(ApprovalStale, match="time to answer"):
        one.answer("call_1", YES, clock=clock)
    one.answer("call_1", NO, clock=clock)
    done = one.resume()
    refused = [event.fact.by for event in done.trace if isinstance(event.fact, ApprovalRefused)]
    assert (done.status, refused) == ("blocked", ["ann", "timeout"])


def test_a_clock_that_jumps_back_allows_an_answer_and_gives_none() -> None:
    clock = FakeClock()
    one = Waiter(paying(5), policy=Policy(approval_timeout_s=60), clock=clock)
    clock.advance(-1e6)
    assert one.resume().status == "waiting"
    one.answer("call_1", YES, clock=clock)
    assert one.resume().status == "completed"


def test_always_reaches_what_waits_under_the_same_rule() -> None:
    one = Waiter(paying(7, 6), paying(5), task="Pay ann 5, 6 and 7.", policy=ASKING)
    trace = one.answer("call_1", ApprovalAnswer(approved=True, by="ann", scope="rule"))
    assert given(trace) == ["call_1", "call_2"]
    assert len(outputs(one.resume().trace)) == 3


def test_always_reaches_no_larger_amount_that_waits() -> None:
    one = Waiter(paying(5, 99), task="Pay ann 5 and 99.", policy=ASKING)
    trace = one.answer("call_1", ApprovalAnswer(approved=True, by="ann", scope="rule"))
    assert given(trace) == ["call_1"]


def test_a_grave_call_has_no_always_but_its_values_can_be_trusted() -> None:
    one = Waiter(calls(("drop", {"table": "old"}), ("drop", {"table": "older"})))
    with pytest.raises(ConfigError, match="no 'always'"):
        one.answer("call_1", ApprovalAnswer(approved=True, scope="rule"))
    trace = one.answer("call_1", ApprovalAnswer(approved=True, scope="values", batch=True))
    assert given(trace) == ["call_1"], "no other grave call comes with it"


def test_a_yes_to_all_is_for_targets_of_the_same_provenance() -> None:
    both = calls(*(("pay", {"to": to, "amount": 5}) for to in ("ann", "eve")))
    one = Waiter(both, task="Pay ann 5.", policy=ASKING)
    assert given(one.answer("call_1", replace(YES, batch=True))) == ["call_1"]


def test_a_refusal_can_be_for_all_calls_of_the_question() -> None:
    one = Waiter(paying(5, 6))
    one.answer("call_2", ApprovalAnswer(approved=False, by="ann", batch=True))
    assert one.resume().status == "completed"


@pytest.mark.parametrize("by", ["", "  ", "guard", "timeout", "probe"])
def test_nobody_answers_under_a_name_of_the_runtime(by: str) -> None:
    one = Waiter(paying(5))
    with pytest.raises(ConfigError, match="cannot be by"):
        one.answer("call_1", ApprovalAnswer(approved=True, by=by))


def test_of_two_answers_at_once_the_first_counts(tmp_path: Path) -> None:
    async def both(path: Path, run_id: str) -> list[Any]:
        async with SqliteJournal(path) as one, SqliteJournal(path) as two:
            answers = [answer_approval(journal, run_id, "call_1", said) for journal in (one, two) for said in (YES, NO)]
            return await asyncio.gather(*answers, return_exceptions=True)

    path = tmp_path / "runs.db"
    agent = Agent(model=ScriptedModel([paying(5), "done"]), tools=[pay], journal=path)
    run_id = agent.run_sync("go").run_id
    ended = asyncio.run(both(path, run_id))
    failed = [one for one in ended if isinstance(one, Exception)]
    assert len(failed) == 3
    assert all(isinstance(one, NotWaiting) and "has its answer" in str(one) for one in failed)
    assert agent.resume_sync(run_id).status == "completed"


def test_answers_to_several_calls_at_once_all_count(tmp_path: Path) -> None:
    async def each(path: Path, run_id: str) -> None:
        async with SqliteJournal(path) as one, SqliteJournal(path) as two:
            await asyncio.gather(
                *(
                    answer_approval(journal, run_id, call_id, YES)
                    for journal, call_id in ((one, "call_1"), (two, "call_2"))
                )
            )

    path = tmp_path / "runs.db"
    agent = Agent(model=ScriptedModel([paying(5, 6), "done"]), tools=[pay], journal=path)
    run_id = agent.run_sync("go").run_id
    asyncio.run(each(path, run_id))
    assert len(outputs(agent.resume_sync(run_id).trace)) == 2


# Runs inside


def test_a_call_of_a_run_inside_is_listed_answered_and_goes_on_with_the_outer_run() -> None:
    journal = MemoryJournal()
    inner = Agent(name="clerk", model=ScriptedModel([paying(5), "paid it"], strict=False), tools=[pay])
    script = ScriptedModel([calls(("clerk", {"task": "pay ann"})), "all done"], strict=False)
    agent = Agent(model=script, tools=[inner.as_tool(purpose="Pays.")], journal=journal)
    waiting = agent.run_sync("go", user="ann")
    [one] = asyncio.run(pending_approvals(journal))
    assert one.user == "ann"
    assert (one.request.run_id, one.request.call_id, one.outer) == (f"{waiting.run_id}.1", "call_1", waiting.run_id)
    asyncio.run(answer_approval(journal, one.request.run_id, "call_1", YES))
    done = agent.resume_sync(waiting.run_id)
    assert (done.status, outputs(done.trace)) == ("completed", ["paid it"])
    assert asyncio.run(pending_approvals(journal)) == []


def test_a_question_beside_a_run_inside_that_waits_can_be_answered() -> None:
    journal = MemoryJournal()
    inner = Agent(name="clerk", model=ScriptedModel([paying(5), "paid it"], strict=False), tools=[pay])
    both = calls(("clerk", {"task": "pay ann"}), ("drop", {"table": "t"}))
    script = ScriptedModel([both, "all done"], strict=False)
    agent = Agent(model=script, tools=[inner.as_tool(purpose="Pays."), drop], journal=journal)
    waiting = agent.run_sync("go")
    found = {(one.request.run_id, one.request.call_id) for one in asyncio.run(pending_approvals(journal))}
    assert found == {(f"{waiting.run_id}.1", "call_1"), (waiting.run_id, "call_2")}
    for run_id, call_id in found:
        asyncio.run(answer_approval(journal, run_id, call_id, YES))
    done = agent.resume_sync(waiting.run_id)
    assert done.status == "completed"
    assert all(step.same for step in replay(done.trace))


def test_a_list_of_one_run_has_those_inside_it_and_no_other() -> None:
    one, two = Waiter(paying(5)), None
    two = Waiter(paying(6), journal=one.journal)
    found = asyncio.run(pending_approvals(one.journal, run_id=two.run_id))
    assert [one.request.run_id for one in found] == [two.run_id]


# Notes


def test_a_note_is_read_by_the_model_and_its_values_count_as_said() -> None:
    one = Waiter(paying(5))
    asyncio.run(add_note(one.journal, one.run_id, "  It is bob@example.com. ", by="ann"))
    one.answer("call_1", NO)
    done = one.resume()
    [said] = [event.fact for event in done.trace if isinstance(event.fact, Noted)]
    assert (said.by, said.text, done.status) == ("ann", "It is bob@example.com.", "completed")


def test_answers_around_a_note_replay() -> None:
    one = Waiter(calls(("pay", {"to": "a", "amount": 1}), ("drop", {"table": "t"})))
    one.answer("call_1", YES)
    asyncio.run(add_note(one.journal, one.run_id, "and then stop"))
    one.answer("call_2", NO)
    assert one.resume().status == "completed"


def test_a_run_that_reached_a_limit_takes_a_note_and_can_still_be_resumed() -> None:
    journal = MemoryJournal()
    agent = Agent(model=ScriptedModel([paying(5), "so far", "done"]), tools=[pay], journal=journal, max_steps=1,
                  approve=lambda _: True)  # fmt: skip
    ended = agent.run_sync("go")
    assert ended.status == "max_steps_exceeded"
    done = asyncio.run(add_note(journal, ended.run_id, "Say done."))
    assert (done.trace.status, done.trace.finished and done.trace.finished.limit) == ("stopped", "max_steps")
    again = agent.resume_sync(ended.run_id, max_steps=3)
    assert (again.status, again.answer) == ("completed", "done")
    assert all(step.same for step in replay(again.trace))


def test_a_completed_run_takes_no_note() -> None:
    one = Waiter(paying(5))
    one.answer("call_1", YES)
    one.resume()
    with pytest.raises(RunNotResumable):
        asyncio.run(add_note(one.journal, one.run_id, "hello"))
    with pytest.raises(ConfigError, match="empty"):
        asyncio.run(add_note(one.journal, one.run_id, "  "))


def test_a_call_that_was_allowed_is_not_made_by_a_tool_that_is_another_one_since() -> None:
    made: list[Any] = []

    @tool(tier="write", name="pay")
    def pay_now(to: str, amount: int, *, urgent: bool = True) -> str:
        """Pay."""
        made.append((to, amount, urgent))
        return "paid"

    one = Waiter(paying(5))
    one.answer("call_1", YES)
    other = Agent(model=ScriptedModel(["done"], strict=False), tools=[pay_now, drop], journal=one.journal)
    trace = other.resume_sync(one.run_id).trace
    assert made == []
    assert (trace.status, trace.calls["call_1"].needs_person) == ("waiting", True)


@pytest.mark.parametrize("stored", [{}, {"Whom.": "收款人。"}], ids=["english", "chinese"])
def test_a_run_in_chinese_is_resumed_with_its_card_in_either_language(
    stored: dict[str, str],
) -> None:
    made: list[str] = []

    def transfer(to: str) -> str:
        """Transfer everything.

        Args:
            to: Whom.
        """
        made.append(to)
        return "transferred"

    def agent_with(chinese: dict[str, str]) -> Agent:
        script = ScriptedModel([call("transfer", to="张三"), "完成"], strict=False)
        return Agent(model=script, tools=[tool(tier="write", chinese=chinese)(transfer)], journal=journal)

    journal = MemoryJournal()
    run_id = agent_with(stored).run_sync("请处理一下。").run_id
    asyncio.run(answer_approval(journal, run_id, "call_1", YES))
    assert agent_with({"Whom.": "收款人。"}).resume_sync(run_id).status == "completed"
    assert made == ["张三"]


def test_an_answer_that_comes_too_late_does_not_take_the_run_from_who_is_at_work() -> None:
    class GoesOn(MemoryJournal):
        """Another process takes the run up between the look at it and the answer."""

        taken = False

        async def acquire(self, run_id: str, *, at: int | None = None) -> Lease:
            if at is not None and not self.taken:
                self.taken = True
                self.lease = await super().acquire(run_id)
                seq = len(await self.load(run_id))
                await self.append(self.lease, [Event(seq, 0.0, Resumed())])
            return await super().acquire(run_id, at=at)

    journal = GoesOn()
    one = Waiter(paying(5), journal=journal)
    with pytest.raises(NotWaiting, match="at work"):
        one.answer("call_1", YES)
    asyncio.run(journal.append(journal.lease, []))  # its lease still holds


def test_whole_numbers_in_a_policy_make_no_other_policy_of_it_in_the_journal(tmp_path: Path) -> None:
    rule = Rule(verdict="ask", tool="pay", total_over={"amount": 3}, args={"amount": {"min": 1}})
    policy = Policy(rules=(rule,), approval_timeout_s=600)
    journal = SqliteJournal(tmp_path / "r.db")
    one = Waiter(paying(5), journal=journal, policy=policy)
    one.answer("call_1", YES)
    assert one.resume().status == "completed"
    asyncio.run(journal.close())
