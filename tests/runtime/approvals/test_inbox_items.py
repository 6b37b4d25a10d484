"""Everything that waits for a person is in one list, and nothing else is read for it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import pytest
from tests.runtime.approvals.waiting_runs import (
    asking,
    cancel,
    leave_approval,
    leave_blocked,
    leave_dead,
    leave_failed_undo,
    leave_question,
)
from tests.runtime.paying import pay
from tests.scripting import call, calls

from taoloop import Agent, ApprovalAnswer, MemoryJournal, ScriptedModel, SqliteJournal, Trace, tool
from taoloop.core.events import ActionStarted, DoubtSettled, Event, Finished, Noted
from taoloop.core.policy import Policy
from taoloop.errors import AlreadyAnswered, ConfigError
from taoloop.journals.base import Journal
from taoloop.runtime import Settling, abandon_run, answer_approval, settle_doubt
from taoloop.runtime.after.recovery import MAX_DEATHS
from taoloop.runtime.after.replay import replay
from taoloop.runtime.after.undo import approved_by, undo
from taoloop.runtime.approvals.batch_answers import answer_batch
from taoloop.runtime.approvals.inbox import add_note
from taoloop.runtime.approvals.inbox_items import INBOX_KINDS, WHOLE_RUN, Inbox, InboxItem, find_item
from taoloop.runtime.notifications.notice import notice_id
from taoloop.tools.tool import Tool

T = TypeVar("T")
YES = ApprovalAnswer(approved=True, by="ann", authenticated="panel_token")
NO = ApprovalAnswer(approved=False, by="ben", note="too much")


@pytest.fixture(params=["memory", "sqlite"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Callable[[Any], Awaitable[T]]], T]:
    """Runs a scene with a journal of each kind."""

    async def scene(work: Callable[[Any], Awaitable[T]]) -> T:
        if request.param == "memory":
            return await work(MemoryJournal())
        async with SqliteJournal(tmp_path / "runs.db", synchronous="NORMAL") as journal:
            return await work(journal)

    return lambda work: asyncio.run(scene(work))


async def load(journal: Journal, **options: Any) -> list[InboxItem]:
    listing = await Inbox(journal).load(**options)
    assert listing.unreadable == ()
    return list(listing.items)


async def trace_of(journal: Journal, run_id: str) -> Trace:
    return Trace(run_id, await journal.load(run_id))


def test_every_kind_is_listed_with_what_a_person_needs(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_approval(journal, 5, 6, task="pay ann")
        await leave_question(journal)
        await leave_blocked(journal)
        await leave_failed_undo(journal)
        await leave_dead(journal)
        items = await load(journal)
        names = [(item.kind, item.run_id, item.call_id) for item in items]
        assert names == [
            ("approval", "asks", "call_1"),
            ("approval", "asks", "call_2"),
            ("question", "asks-user", "call_1"),
            ("doubt", "dead", "call_1"),
            ("undo", "orders.undo-1", "call_1"),
            ("blocked", "blocked", WHOLE_RUN),
            ("dead", "dead", WHOLE_RUN),
        ]
        assert {item.kind for item in items} == set(INBOX_KINDS)
        assert [item.command for item in items] == [
            "tao resume asks",
            "tao resume asks",
            "tao resume asks-user",
            "tao resume dead",
            "tao undo orders",
            "tao resume blocked --profile supervised",
            "tao resume dead",
        ]
        for item in items:
            assert item.since is not None
            assert abs(item.since - time.time()) < 60
            assert await find_item(journal, item.run_id, item.call_id) == item
        assert await find_item(journal, "asks", "call_9") is None

    play(scene)


def test_an_approval_shows_the_exact_call_and_what_asks(play: Any) -> None:
    async def scene(journal: Any) -> None:
        policy = Policy(approval_timeout_s=60.0)
        agent = asking(journal, calls(("pay", {"to": "ann", "amount": 5}), ("drop", {"table": "t"})))
        await Agent(name="payer", model=agent.model, tools=agent.tools, journal=journal, policy=policy).run("go")
        payment, dropping = await load(journal)
        assert payment.call is not None
        request = payment.call.request
        assert (payment.agent, payment.task, payment.status) == ("payer", "go", "waiting")
        assert (request.tool, request.args, len(request.digest)) == ("pay", {"to": "ann", "amount": 5}, 64)
        assert request.card == pay.card
        assert request.rule
        assert [source.badge for source in request.sources] == ["UNKNOWN", "UNKNOWN"]
        assert request.undo_text("en") == "cannot be undone"
        assert payment.expires_at == pytest.approx((payment.since or 0) + 60)
        assert payment.seconds_left((payment.since or 0) + 20) == pytest.approx(40)
        assert payment.seconds_left((payment.since or 0) + 90) == 0
        assert dropping.tools == ("drop",)
        assert payment.alike == dropping.alike == ()

    play(scene)


def test_calls_of_one_question_name_each_other(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_approval(journal, 5, 6, 7)
        assert [item.alike for item in await load(journal)] == [
            ("call_2", "call_3"),
            ("call_1", "call_3"),
            ("call_1", "call_2"),
        ]

    play(scene)


def probed(report: Any) -> Tool:
    """A payment whose probe reports, or raises, this."""

    def probe(to: str) -> Any:
        if isinstance(report, Exception):
            raise report
        return report

    @tool(name="pay", tier="write", probe=probe)
    def paid(to: str, amount: int) -> str:
        """Pay."""
        return f"paid {amount} to {to}"

    return paid


async def leave_doubt(journal: Journal, tool: Tool) -> None:
    """A run whose process died in a payment, and that was resumed since."""
    script = ScriptedModel([call("pay", to="ann", amount=5), "done"], strict=False)
    whole = Agent(model=script, tools=[tool], journal=MemoryJournal(), policy="autonomous")
    result = await whole.run("go", run_id="r")
    start = next(e.seq for e in result.trace.events if isinstance(e.fact, ActionStarted))
    await journal.append(await journal.create("r"), result.trace.events[: start + 1])
    policy = Policy(profile="supervised")
    await Agent(model=script, tools=[tool], journal=journal, policy=policy).resume("r", policy=policy)


@pytest.mark.parametrize(
    ("paying_tool", "probe", "note"),
    [(pay, "no_probe", ""), (probed(None), "unclear", "could not tell"), (probed(OSError("down")), "unclear", "down")],
)
def test_a_call_in_doubt_says_what_the_probe_said(play: Any, paying_tool: Tool, probe: str, note: str) -> None:
    async def scene(journal: Any) -> None:
        await leave_doubt(journal, paying_tool)
        [item] = await load(journal)
        assert (item.kind, item.key) == ("doubt", ("r", "call_1"))
        assert item.call is not None
        assert (item.call.probe, item.call.attempts) == (probe, 1)
        assert item.call.started_at is not None
        assert note in item.call.note
        assert "may have happened" in item.call.request.doubt
        await settle_doubt(journal, "r", "call_1", "happened", by="ann", authenticated="panel_token")
        assert await load(journal) == []
        settled = [event.fact for event in await journal.load("r") if isinstance(event.fact, DoubtSettled)][-1]
        assert (settled.by, settled.authenticated) == ("ann", "panel_token")

    play(scene)


def test_a_failed_undo_waits_until_it_succeeds_or_is_closed(play: Any) -> None:
    async def scene(journal: Any) -> None:
        agent, result = await leave_failed_undo(journal)
        assert not result.complete
        [item] = await load(journal)
        assert item.undoes is not None
        assert item.call is not None
        assert (item.undoes.run_id, item.undoes.call_id, item.undoes.tool) == ("orders", "call_2", "order")
        assert (item.undoes.remaining, item.call.request.tool) == (1, "cancel")
        assert "b was shipped." in item.call.note
        assert "b was shipped." in item.reason
        again = await undo(agent, journal, "orders", tools=[cancel], approver=approved_by("ann"))
        assert not again.complete
        assert [item.run_id for item in await load(journal)] == ["orders.undo-2"], "only the last one"

        @tool(name="cancel", tier="write")
        def works(item: str) -> str:
            """Cancel an order."""
            return f"cancelled {item}"

        done = await undo(agent, journal, "orders", tools=[works], approver=approved_by("ann"))
        assert done.complete
        assert await load(journal) == []

    play(scene)


def test_a_person_may_close_a_failed_undo_a_blocked_run_and_one_that_was_given_up(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_failed_undo(journal)
        await leave_blocked(journal)
        await leave_dead(journal)
        for run_id in ("orders.undo-1", "blocked", "dead"):
            await abandon_run(journal, run_id, by="ann", note="by hand", authenticated="panel_token")
            ended = (await trace_of(journal, run_id)).finished
            assert isinstance(ended, Finished)
            assert (ended.abandoned_by, ended.authenticated) == ("ann", "panel_token")
        assert await load(journal) == []

    play(scene)


def test_an_undo_whose_process_died_waits_too(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_failed_undo(MemoryJournal())
        other = MemoryJournal()
        await leave_failed_undo(other)
        events = await other.load("orders.undo-1")
        start = next(event.seq for event in events if isinstance(event.fact, ActionStarted))
        await journal.append(await journal.create("orders"), await other.load("orders"))
        await journal.append(await journal.create("orders.undo-1"), events[: start + 1])
        [item] = await load(journal, now=time.time() + 10_000)
        assert (item.kind, item.status, item.call_id) == ("undo", "running", "call_1")

    play(scene)


def test_a_blocked_run_names_the_denied_calls_and_takes_a_note(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_blocked(journal)
        [item] = await load(journal)
        assert item.tools == ("refund_payment",)
        assert item.calls[0].request.args == {"order": "A1"}
        assert item.calls[0].request.reasons
        assert item.answer == "It is refunded."
        assert "refund_payment" in item.reason
        told = notice_id(item)
        for text in ("Order A1 is not ours.", "A2 is."):
            noted = await add_note(journal, "blocked", text, by="ann", authenticated="panel_token")
            assert noted.trace.status == "blocked", "it goes on with the note once it is resumed"
            assert await load(journal) == [item], "until then it can be closed, and nobody is told once more"
            assert notice_id((await load(journal))[0]) == told
        notes = [event.fact for event in await journal.load("blocked") if isinstance(event.fact, Noted)]
        assert [(fact.by, fact.authenticated) for fact in notes] == [("ann", "panel_token")] * 2
        assert all(step.same for step in replay(noted.trace))

    play(scene)


def test_a_run_that_died_less_often_is_left_to_recovery(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_dead(journal, deaths=MAX_DEATHS - 1)
        assert await load(journal, now=time.time() + 10_000) == []
        await leave_dead(journal, run_id="dead2")
        doubt, dead = await load(journal, now=time.time() + 10_000)
        assert (doubt.kind, dead.kind, dead.deaths) == ("doubt", "dead", MAX_DEATHS)
        assert dead.calls[0].request.args == {"to": "ann", "amount": 5}

    play(scene)


class CountingJournal(MemoryJournal):
    """Counts how often each run is read from its end, whole or in part."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: Counter[str] = Counter()

    async def load(self, run_id: str) -> list[Event]:
        """All events of a run."""
        self.loads[run_id] += 1
        return await super().load(run_id)

    async def read(self, run_id: str, *, last: bool = False, **part: Any) -> list[Event]:
        """A part of a run."""
        if last:
            self.loads[run_id] += 1
        return await super().read(run_id, last=last, **part)


def test_runs_that_do_not_wait_are_not_read_and_the_others_only_when_they_have_grown() -> None:
    async def scene() -> None:
        journal = CountingJournal()
        script = ScriptedModel([*["done"] * 30], strict=False)
        for number in range(30):
            await Agent(model=script, journal=journal).run("x", run_id=f"done{number}")
        await leave_approval(journal, 5)
        await leave_approval(journal, 5, 6, run_id="asks2")
        await leave_dead(journal)
        await leave_failed_undo(journal)
        journal.loads.clear()
        inbox = Inbox(journal)
        before = await inbox.load()
        assert not [run_id for run_id in journal.loads if run_id.startswith("done")]
        journal.loads.clear()
        assert await inbox.load() == before
        assert not journal.loads
        await answer_approval(journal, "asks2", "call_1", YES)
        journal.loads.clear()
        after = await inbox.load()
        assert journal.loads == {"asks2": 1}
        assert len(after.items) == len(before.items) - 1

    asyncio.run(scene())


class PlainJournal:
    """A journal with the first Protocol only."""

    def __init__(self, inner: MemoryJournal) -> None:
        for name in ["create", "acquire", "append", "load", "artifact", "verify", "runs", "prune", "close"]:
            setattr(self, name, getattr(inner, name))


def test_a_journal_without_queries_and_locks_has_an_inbox_too() -> None:
    async def scene() -> None:
        inner = MemoryJournal()
        await leave_approval(inner, 5)
        await leave_blocked(inner)
        await leave_dead(inner)
        journal: Any = PlainJournal(inner)
        assert [item.kind for item in await load(journal)] == ["approval", "blocked"], "it may still be at work"
        later = await load(journal, now=time.time() + 10_000)
        assert [item.kind for item in later] == ["approval", "doubt", "blocked", "dead"]
        assert [item.kind for item in await load(journal, run_id="asks")] == ["approval"]

    asyncio.run(scene())


def test_only_some_kinds_or_one_run_may_be_asked_for(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_approval(journal, 5)
        await leave_approval(journal, 5, run_id="asks2")
        await leave_blocked(journal)
        assert [item.run_id for item in await load(journal, kinds=("approval",))] == ["asks", "asks2"]
        assert [item.run_id for item in await load(journal, run_id="asks")] == ["asks"]
        assert [item.kind for item in await load(journal, run_id="blocked")] == ["blocked"]

    play(scene)


def test_the_second_person_is_told_who_answered_when_and_how(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_approval(journal, 5, 6, 7)
        edited = ApprovalAnswer(approved=True, by="cho", args={"to": "bob", "amount": 1})
        for call_id, answer, how in (
            ("call_1", YES, "allowed"),
            ("call_2", NO, "refused"),
            ("call_3", edited, "edited"),
        ):
            await answer_approval(journal, "asks", call_id, answer)
            with pytest.raises(AlreadyAnswered) as raised:
                await answer_approval(journal, "asks", call_id, ApprovalAnswer(approved=False, by="dan"))
            error = raised.value
            assert (error.by, error.how) == (answer.by, how)
            assert abs(error.at - time.time()) < 60
            assert f"by {answer.by}, {time.strftime('%Y-%m-%d', time.gmtime(error.at))}" in error.message

    play(scene)


def test_of_two_answers_at_the_same_time_one_counts_and_the_other_person_is_told(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_approval(journal, 5)
        await leave_dead(journal)
        both = [answer_approval(journal, "asks", "call_1", answer) for answer in (YES, NO)]
        answered = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(result).__name__ for result in answered) == ["AlreadyAnswered", "AnswerRecorded"]
        doubts = [settle_doubt(journal, "dead", "call_1", how, by=how) for how in get_args(Settling)[::2]]
        settled = await asyncio.gather(*doubts, return_exceptions=True)
        assert sorted(type(result).__name__ for result in settled) == ["AlreadyAnswered", "Trace"]

    play(scene)


def test_a_batch_is_for_calls_of_one_question_also_of_several_runs(play: Any) -> None:
    async def scene(journal: Any) -> None:
        await leave_approval(journal, 5, 6)
        await leave_approval(journal, 7, run_id="asks2")
        await leave_approval(journal, 8, run_id="asks3", task="pay ann")
        items = await load(journal)
        yours = items[-1]
        assert yours.run_id == "asks3"
        with pytest.raises(ConfigError, match="not one question: asks3 call_1"):
            await answer_batch(journal, items, YES)
        assert len(await load(journal)) == 4, "nothing was answered"
        await answer_approval(journal, "asks", "call_2", NO)
        outcomes = await answer_batch(journal, items[:3], YES)
        assert [outcome.error is None for outcome in outcomes] == [True, False, True]
        assert isinstance(outcomes[1].error, AlreadyAnswered)
        assert [item.run_id for item in await load(journal)] == ["asks3"]
        with pytest.raises(ConfigError, match="only a yes or a no"):
            await answer_batch(journal, [yours], ApprovalAnswer(approved=True, scope="rule"))
        with pytest.raises(ConfigError, match="Only approvals"):
            await answer_batch(journal, [], YES)

    play(scene)


def test_high_risk_calls_and_other_kinds_are_in_no_batch(play: Any) -> None:
    async def scene(journal: Any) -> None:
        drops = calls(("drop", {"table": "t"}), ("drop", {"table": "u"}))
        await asking(journal, drops).run("go", run_id="drops")
        await leave_blocked(journal)
        *dropping, blocked = await load(journal)
        for answer in (YES, NO):
            with pytest.raises(ConfigError, match="not one question"):
                await answer_batch(journal, dropping, answer)
        with pytest.raises(ConfigError, match="Only approvals"):
            await answer_batch(journal, [blocked], YES)

    play(scene)
