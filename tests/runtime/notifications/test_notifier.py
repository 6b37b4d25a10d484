"""Each thing that waits for a person is told once, at least once across restarts, and no hook stops a run."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.approvals.waiting_runs import (
    leave_approval,
    leave_blocked,
    leave_dead,
    leave_failed_undo,
    leave_question,
)
from tests.runtime.paying import drop, pay, paying
from tests.scripting import calls

from taoloop import Agent, ApprovalAnswer, MemoryJournal, ScriptedModel, SqliteJournal, tool
from taoloop.core.events import Event
from taoloop.errors import JournalError
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.inbox import add_note, answer_approval
from taoloop.runtime.approvals.inbox_items import Inbox
from taoloop.runtime.notifications.hooks import DeliveryResult, NotificationSettings
from taoloop.runtime.notifications.notice import Notice, inbox_link, notice_id, notice_of
from taoloop.runtime.notifications.notifier import RETRY_AFTER_S, NotificationTask, Notifier
from taoloop.runtime.notifications.outbox import Outbox, outbox_beside
from taoloop.testing import FakeClock, HttpDouble

YES = ApprovalAnswer(approved=True, by="ann")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Kept:
    """A hook that keeps what it gets; `answers` are what comes of the attempts, then success."""

    name, key, timeout_s = "kept", "kept", 15.0

    def __init__(self, *answers: DeliveryResult, got: Callable[[], None] = lambda: None) -> None:
        self.notices: list[Notice] = []
        self._answers, self._got = list(answers), got

    async def send(self, notice: Notice, now: float) -> DeliveryResult:  # noqa: ARG002  # as of a hook
        self.notices.append(notice)
        self._got()
        return self._answers.pop(0) if self._answers else DeliveryResult()

    @property
    def call_ids(self) -> list[str]:
        return [notice.call_id for notice in self.notices]


@pytest.fixture(params=["sqlite", "memory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """A new journal each time."""
    files = (tmp_path / f"runs{number}.db" for number in count())

    @asynccontextmanager
    async def journal() -> AsyncIterator[Journal]:
        if request.param == "memory":
            yield MemoryJournal()
            return
        async with SqliteJournal(next(files), synchronous="NORMAL") as kept:
            yield kept

    return journal


def asking(journal: Journal, *replies: Any, **options: Any) -> Agent:
    script = ScriptedModel([*replies, "done"], strict=False)
    return Agent(model=script, tools=[pay, drop], journal=journal, name="payer", **options)


async def delivered(notifier: Notifier) -> int:
    total = 0
    while tried := await notifier.deliver():
        total += tried
    return total


async def grown(journal: Any, notifier: Notifier, position: str) -> None:
    """Note what the journal got since a position, as the notifier does while it runs."""
    async for growth in journal.tail(position):
        await notifier.note(growth.runs)
        return


def test_what_waits_is_told_once_however_often_its_run_grows(opened: Callable[[], Any]) -> None:
    async def run() -> None:
        async with opened() as journal:
            hook, outbox = Kept(), Outbox()
            notifier = Notifier(journal, hook, outbox, link_to=inbox_link("https://tao.example/panel/"))
            position = await notifier.scan()
            assert await delivered(notifier) == 0
            both = calls(("pay", {"to": "ann", "amount": 5}), ("drop", {"table": "t"}))
            result = await asking(journal, both).run("settle the bill")
            await grown(journal, notifier, position)
            assert await delivered(notifier) == 2
            [first] = [notice for notice in hook.notices if notice.call_id == "call_1"]
            assert (first.run_id, first.tools, first.tier, first.kind) == (result.run_id, ("pay",), "write", "approval")
            assert (first.task, first.agent) == ("settle the bill", "payer")
            assert first.reasons
            assert first.url == f"https://tao.example/panel/inbox/{result.run_id}/call_1"
            position = await journal.position()
            await add_note(journal, result.run_id, "look at the date")
            await grown(journal, notifier, position)
            assert await delivered(notifier) == 0, "it grew, and asks nothing new"
            await notifier.scan()
            assert await delivered(notifier) == 0, "as at a start"
            position = await journal.position()
            await answer_approval(journal, result.run_id, "call_1", YES)
            await grown(journal, notifier, position)
            assert await delivered(notifier) == 0

    asyncio.run(run())


def test_it_follows_the_journal_while_it_runs(opened: Callable[[], Any]) -> None:
    async def run() -> None:
        async with opened() as journal:
            got = asyncio.Event()
            hook = Kept(got=got.set)
            notifying = asyncio.create_task(Notifier(journal, hook, Outbox()).run(poll_s=0.001))
            result = await asking(journal, paying(5)).run("go")
            async with asyncio.timeout(30):
                await got.wait()
            assert [notice.run_id for notice in hook.notices] == [result.run_id]
            notifying.cancel()
            await asyncio.gather(notifying, return_exceptions=True)

    asyncio.run(run())


def test_a_notice_has_no_arguments_and_no_control_characters() -> None:
    @tool(tier="write")
    def tell(whom: str, text: str) -> str:
        """Tell somebody something."""
        return f"{whom}: {text}"

    async def run() -> None:
        journal = MemoryJournal()
        script = ScriptedModel([calls(("tell", {"whom": "eve@evil.example", "text": "the password is sesame"}))])
        agent = Agent(model=script, tools=[tell], journal=journal)
        result = await agent.run("first line\nsecond\u202e line " + "x" * 500)
        assert result.status == "waiting"
        [item] = (await Inbox(journal).load()).items
        notice = notice_of(item)
        body = notice.body().decode()
        assert "evil" not in body
        assert "sesame" not in body
        task = json.loads(body)["data"]["task"]
        assert task.startswith("first line second line xxx")
        assert len(task) == 200

    asyncio.run(run())


def test_a_failed_notice_is_tried_again_later_and_given_up_at_last(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        journal, clock = MemoryJournal(), FakeClock()
        result = await asking(journal, paying(5)).run("go")
        hook = Kept(*[DeliveryResult(problem="status 500")] * (len(RETRY_AFTER_S) + 1))
        notifier = Notifier(journal, hook, Outbox(), clock=clock)
        await notifier.scan()
        for pause_s in RETRY_AFTER_S:
            assert await delivered(notifier) == 1
            clock.advance(pause_s - 1)
            assert await delivered(notifier) == 0, "not before its time"
            clock.advance(1)
        assert await delivered(notifier) == 1
        clock.advance(10**6)
        await notifier.scan()
        assert await delivered(notifier) == 0, "given up, and not begun anew"
        assert len(set(hook.notices)) == 1, "each attempt is the same message, with the same id"
        assert result.status == "waiting"

    with caplog.at_level(logging.WARNING, "taoloop"):
        asyncio.run(run())
    assert "status 500. Trying again in 5 s" in caplog.messages[0]
    assert "It is not sent any more" in caplog.messages[-1]


def test_a_receiver_that_is_gone_gets_it_no_more_and_one_that_is_busy_later() -> None:
    async def run() -> None:
        journal, clock = MemoryJournal(), FakeClock()
        await asking(journal, paying(5)).run("go")
        busy, gone = (
            Kept(DeliveryResult(problem="status 429", retry_after_s=90)),
            Kept(DeliveryResult(problem="x", is_final=True)),
        )
        for hook, left in ((busy, 1), (gone, 0)):
            notifier = Notifier(journal, hook, Outbox(), clock=clock)
            await notifier.scan()
            assert await delivered(notifier) == 1
            clock.advance(89)
            assert await delivered(notifier) == 0
            clock.advance(2)
            assert await delivered(notifier) == left

    asyncio.run(run())


def test_what_was_answered_before_its_next_attempt_is_not_sent() -> None:
    async def run() -> None:
        journal, clock = MemoryJournal(), FakeClock()
        result = await asking(journal, paying(5)).run("go")
        hook = Kept(DeliveryResult(problem="status 500"))
        notifier = Notifier(journal, hook, Outbox(), clock=clock)
        await notifier.scan()
        await delivered(notifier)
        await answer_approval(journal, result.run_id, "call_1", YES)
        clock.advance(10)
        assert await delivered(notifier) == 1
        assert len(hook.notices) == 1

    asyncio.run(run())


def test_a_restart_sends_what_was_not_delivered_and_nothing_twice(tmp_path: Path) -> None:
    async def run() -> None:
        path, clock = tmp_path / "runs.db", FakeClock()
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            await asking(journal, calls(("pay", {"to": "a", "amount": 1}), ("drop", {"table": "t"}))).run("go")
            first = Outbox(outbox_beside(path))
            hook = Kept()
            notifier = Notifier(journal, hook, first, clock=clock)
            await notifier.scan()
            [claimed, _] = first.claim(hook.key, now=clock.now(), until=clock.now() + 45, limit=2)
            first.settle(hook.key, claimed.id, due=None)  # one is delivered; then the process dies during the other
            first.close()
            again = Kept()
            second = Outbox(outbox_beside(path))
            notifier = Notifier(journal, again, second, clock=clock)
            await notifier.scan()
            assert await delivered(notifier) == 0, "another process may still be at it"
            clock.advance(46)
            assert await delivered(notifier) == 1
            assert [notice.id for notice in again.notices] != [claimed.id]
            second.close()

    asyncio.run(run())


def test_two_processes_with_one_outbox_send_each_notice_once(tmp_path: Path) -> None:
    async def run() -> None:
        path = tmp_path / "runs.db"
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            await asking(journal, paying(1, 2, 3)).run("go")
            hook = Kept()
            outboxes = [Outbox(outbox_beside(path)) for _ in range(2)]
            notifiers = [Notifier(journal, hook, outbox) for outbox in outboxes]
            for notifier in notifiers:
                await notifier.scan()
            await asyncio.gather(*map(delivered, notifiers))
            assert sorted(hook.call_ids) == ["call_1", "call_2", "call_3"]
            for outbox in outboxes:
                outbox.close()
        assert outbox_beside(path).stat().st_mode & 0o077 == 0

    asyncio.run(run())


def test_each_kind_of_waiting_is_told_without_what_tools_and_models_said(opened: Callable[[], Any]) -> None:
    async def run() -> None:
        async with opened() as journal:
            hook = Kept()
            notifier = Notifier(journal, hook, Outbox())
            await notifier.scan()
            position = await journal.position()
            await leave_approval(journal)
            await leave_question(journal, choices=["R-17", "R-71"])
            await leave_blocked(journal)
            await leave_failed_undo(journal)
            await grown(journal, notifier, position)
            await delivered(notifier)
            assert sorted(notice.kind for notice in hook.notices) == ["approval", "blocked", "question", "undo"]
            await leave_dead(journal)  # which no event says
            for _ in range(2):
                await notifier.refresh()
                await delivered(notifier)
            messages = [json.loads(notice.body()) for notice in hook.notices]
            assert sorted((message["type"], message["data"]["call_id"]) for message in messages) == [
                ("approval.requested", "call_1"),
                ("call.in_doubt", "call_1"),
                ("question.asked", "call_1"),
                ("run.blocked", "run"),
                ("run.given_up", "run"),
                ("undo.failed", "call_1"),
            ]
            assert {notice.tools for notice in hook.notices} == {
                ("pay",),
                ("ask_user",),
                ("refund_payment",),
                ("cancel",),
            }
            for text in ("shipped", "It is refunded", "DE89", "Which invoice", "R-17"):
                assert text not in str(messages)

    asyncio.run(run())


def test_runs_that_were_blocked_before_are_no_news(opened: Callable[[], Any]) -> None:
    async def run() -> None:
        async with opened() as journal:
            await leave_blocked(journal, "before")
            await leave_approval(journal)
            hook = Kept()
            notifier = Notifier(journal, hook, Outbox())
            await notifier.scan()
            await delivered(notifier)
            assert [notice.kind for notice in hook.notices] == ["approval"], "it waits, whenever that began"
            await leave_blocked(journal, "after")
            await notifier.refresh()
            await delivered(notifier)
            assert [notice.run_id for notice in hook.notices[1:]] == ["after"]

    asyncio.run(run())


def test_what_is_asked_anew_is_told_anew() -> None:
    async def run() -> None:
        journal = MemoryJournal()
        run_id = await leave_blocked(journal)
        [item] = (await Inbox(journal).load()).items
        later = replace(item, since=(item.since or 0.0) + 1)
        assert notice_id(item) == notice_id(replace(item, task="another wording")) != notice_id(later)
        assert notice_of(item).run_id == run_id

    asyncio.run(run())


def test_a_run_that_cannot_be_read_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Damaged(MemoryJournal):
        async def read(self, run_id: str, *, limit: int = 500, **part: Any) -> list[Event]:
            if run_id == "r1" and limit > 1:
                raise JournalError("r1 is damaged.")
            return await super().read(run_id, limit=limit, **part)

    async def run() -> None:
        journal = Damaged()
        await leave_approval(journal, run_id="r1")
        result = await asking(journal, paying(5)).run("go")
        hook = Kept()
        notifier = Notifier(journal, hook, Outbox())
        await notifier.scan()
        await delivered(notifier)
        assert [notice.run_id for notice in hook.notices] == [result.run_id]

    with caplog.at_level(logging.WARNING, "taoloop"):
        asyncio.run(run())
    assert "r1 is damaged" in caplog.text


def test_a_run_that_cannot_be_read_for_a_moment_is_told_later() -> None:
    class Flaky(MemoryJournal):
        is_away = False

        async def read(self, run_id: str, *, limit: int = 500, **part: Any) -> list[Event]:
            if self.is_away and limit > 1:
                raise JournalError("The disk is away.")
            return await super().read(run_id, limit=limit, **part)

    async def run() -> None:
        journal, clock, hook = Flaky(), FakeClock(time.time()), Kept()
        await leave_approval(journal)
        notifier = Notifier(journal, hook, Outbox(), clock=clock)
        await notifier.scan()
        journal.is_away = True
        assert await delivered(notifier) == 1
        assert hook.notices == []
        journal.is_away = False
        clock.advance(61)
        assert await delivered(notifier) == 1
        assert hook.call_ids == ["call_1"]

    asyncio.run(run())


def test_a_journal_that_fails_for_a_moment_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(MemoryJournal):
        failures = 2

        async def position(self) -> str:
            if self.failures:
                self.failures -= 1
                raise JournalError("The disk is away.")
            return await super().position()

    async def run() -> None:
        journal, got = Failing(), asyncio.Event()
        await asking(journal, paying(5)).run("go")
        notifying = asyncio.create_task(Notifier(journal, Kept(got=got.set), Outbox()).run(again_s=0.001))
        async with asyncio.timeout(30):
            await got.wait()
        notifying.cancel()
        await asyncio.gather(notifying, return_exceptions=True)

    with caplog.at_level(logging.WARNING, "taoloop"):
        asyncio.run(run())
    assert [message for message in caplog.messages if "The disk is away" in message] == caplog.messages[:1], "said once"


def test_a_server_uses_changed_settings_and_says_what_hinders_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        journal = MemoryJournal()
        await asking(journal, paying(5)).run("go")
        received = asyncio.Event()
        loop = asyncio.get_running_loop()

        def take(connection: Any) -> None:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            loop.call_soon_threadsafe(received.set)

        with HttpDouble([take]) as double:
            settings: list[NotificationSettings | None] = [None]
            task = NotificationTask(journal, lambda: settings[-1])
            repeating = asyncio.create_task(task.repeat(0.001))
            settings.append(NotificationSettings(url=double.url, secret=SECRET))
            async with asyncio.timeout(30):
                await received.wait()
            repeating.cancel()
            await asyncio.gather(repeating, return_exceptions=True)
            assert len(double.bodies) == 1

    asyncio.run(run())
