"""Delivers a notice of everything that waits for a person, once it waits, to a hook.

The problem: a run waits without a process, perhaps for days, and whoever may answer has no terminal open. Hooks fail,
and processes end at any moment.

The idea: what waits is a state of the journal, so it is read from there and not kept. The `Inbox` lists it at the
start, and whenever `JournalQueries.tail` shows that a run came to wait or to its end; an `Outbox` knows the ids of
what was delivered, and of what is due.

The invariant: what waits long enough is delivered at least once to each hook that works, and its id is always the same;
what was answered meanwhile is not sent any more. Nothing that a hook does stops or changes a run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import closing

from taoloop.core.events import Finished, Paused
from taoloop.errors import RunNotFound, TaoError
from taoloop.journals.base import Journal
from taoloop.journals.queries import JournalQueries, queries_of
from taoloop.runtime.approvals.inbox_items import Inbox, InboxListing
from taoloop.runtime.engine.clock import Clock, SystemClock
from taoloop.runtime.notifications.hooks import Hook, NotificationSettings, hooks_of
from taoloop.runtime.notifications.notice import LinkTo, notice_id, notice_of
from taoloop.runtime.notifications.outbox import DueNotice, Outbox, open_outbox

_LOG = logging.getLogger("taoloop")

RETRY_AFTER_S = (5.0, 60.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0)
"""The pauses before a failed notice is tried again, in seconds; after the last one it is given up. Together 19 hours,
as the Standard Webhooks specification recommends. A receiver may ask for more, up to a day."""

POLL_S = 0.5
"""How often new events are looked for by default."""

AGAIN_S = 5.0
"""After how many seconds a journal that failed is tried again by default."""

REFRESH_S = 60.0
"""How often all that waits is looked for: that the process of a run died is no event."""

_MOST_WAIT_S = 86_400.0
_AT_ONCE = 4
_MARGIN_S = 30.0


class Notifier:
    """Delivers the notices of one journal to one hook.

    Args:
        journal: What waits is in its runs; it can be queried (`JournalQueries`).
        hook: Where notices go.
        outbox: Keeps what was delivered.
        link_to: The address where a person answers.
        clock: Tells when something is due.

    Raises:
        JournalError: the journal cannot be queried.
    """

    def __init__(
        self,
        journal: Journal,
        hook: Hook,
        outbox: Outbox,
        *,
        link_to: LinkTo | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._journal, self._queries, self._hook, self._outbox = journal, queries_of(journal), hook, outbox
        self._inbox = Inbox(journal)
        self._link_to, self._clock = link_to, clock or SystemClock()
        self._wake = asyncio.Event()
        self._last_problem = ""

    async def run(self, *, poll_s: float = POLL_S, again_s: float = AGAIN_S) -> None:
        """Deliver until cancelled. A journal that fails is tried again; that and failing hooks are logged."""
        while True:
            try:
                position = await self.scan()
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._follow(position, poll_s))
                    group.create_task(self._repeat_refresh())
                    group.create_task(self._repeat_delivery())
            except* Exception as group_error:  # noqa: BLE001  # whatever it is: it must not end the other work of a server
                self._report(f"what waits for a person could not be read: {group_error.exceptions[0]!r}")
            await asyncio.sleep(again_s)

    async def scan(self) -> str:
        """Note all that waits now, and give the position of the journal from which on new events are not in it."""
        position = await self._queries.position()
        await self.refresh()
        return position

    async def refresh(self) -> None:
        """Note all that waits now; runs that have not grown are not read again."""
        listing = await self._inbox.load(now=self._clock.now())
        self._note(listing, is_all=not (listing.is_cut or listing.unreadable))

    async def note(self, runs: Mapping[str, int]) -> None:
        """Take up what has grown: runs by the seq of their last event. Only those that may wait now are read."""
        for run_id, seq in runs.items():
            last = await _last_fact(self._queries, run_id, seq)
            if isinstance(last, Paused) or (isinstance(last, Finished) and _leaves_something(run_id, last)):
                self._note(await self._inbox.load(run_id=run_id, now=self._clock.now()), is_all=False)

    def _note(self, listing: InboxListing, *, is_all: bool) -> None:
        for run_id, error in listing.unreadable:
            self._report(f"run {run_id} cannot be read, so nobody is told what it waits for: {error}")
        self._outbox.note(self._hook.key, listing.items, now=self._clock.now(), is_all=is_all)
        self._wake.set()

    async def deliver(self) -> int:
        """Try each notice that is due once; gives how many there were."""
        key, now = self._hook.key, self._clock.now()
        until = now + self._hook.timeout_s + _MARGIN_S
        if due := self._outbox.claim(key, now=now, until=until, limit=_AT_ONCE):
            await asyncio.gather(*map(self._attempt, due))
        return len(due)

    async def _attempt(self, due: DueNotice) -> None:
        now = self._clock.now()
        listing = await Inbox(self._journal).load(run_id=due.run_id, now=now)
        item = listing.find(due.run_id, due.call_id)
        if item is None and listing.unreadable:
            self._outbox.settle(self._hook.key, due.id, due=now + REFRESH_S)  # nobody knows whether it still waits
            return
        if item is None or notice_id(item) != due.id or item.seconds_left(now) == 0:
            self._outbox.settle(self._hook.key, due.id, due=None)  # it was answered meanwhile, or nobody can any more
            return
        notice = notice_of(item, self._link_to)
        attempt = await self._hook.send(notice, now)
        next_due = None
        if attempt.problem:
            is_last = attempt.is_final or due.attempts > len(RETRY_AFTER_S)
            if not is_last:
                wait_s = max(RETRY_AFTER_S[due.attempts - 1], min(attempt.retry_after_s, _MOST_WAIT_S))
                next_due = self._clock.now() + wait_s
            end = "It is not sent any more." if is_last else f"Trying again in {wait_s:g} s."
            text = "%s did not take the notice of run %s, %s (attempt %d): %s. %s"
            _LOG.warning(text, self._hook.name, notice.run_id, notice.call_id, due.attempts, attempt.problem, end)
        self._outbox.settle(self._hook.key, due.id, due=next_due)

    async def _follow(self, position: str, poll_s: float) -> None:
        async for growth in self._queries.tail(position, interval_s=poll_s):
            await self.note(growth.runs)

    async def _repeat_refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            await self.refresh()

    async def _repeat_delivery(self) -> None:
        """Deliver what is due, then wait until something is, or was noted."""
        while True:
            self._wake.clear()
            while await self.deliver():
                pass
            due = self._outbox.next_due(self._hook.key)
            wait_s = REFRESH_S if due is None else min(max(0.0, due - self._clock.now()), REFRESH_S)
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _report(self, problem: str) -> None:
        if problem != self._last_problem:  # once as long as it lasts
            _LOG.warning("notifications: %s", problem)
        self._last_problem = problem


def _leaves_something(run_id: str, ended: Finished) -> bool:
    """Whether a run that ended so may wait for a person: blocked, or an undo that stopped."""
    return ended.status == "blocked" or (".undo-" in run_id and ended.status != "completed")


async def _last_fact(queries: JournalQueries, run_id: str, seq: int) -> object:
    """The last fact of a run; None: it is gone."""
    try:
        events = await queries.read(run_id, after=seq - 1, limit=1, last=True)
    except RunNotFound:
        return None
    return events[-1].fact if events else None


class NotificationTask:
    """Runs the notifiers of a journal by the settings that hold at the time, as a server does.

    Args:
        journal: The journal.
        settings: The settings; None: nobody is told.
        link_to: The address where a person answers.
    """

    def __init__(
        self,
        journal: Journal,
        settings: Callable[[], NotificationSettings | None],
        *,
        link_to: LinkTo | None = None,
    ) -> None:
        self._journal, self._settings, self._link_to = journal, settings, link_to

    async def repeat(self, interval_s: float = 1.0) -> None:
        """Run until cancelled. Changed settings are used after at most `interval_s` seconds."""
        while True:
            settings = self._settings()
            notifying = asyncio.create_task(self._notify(settings))
            try:
                while self._settings() == settings:  # noqa: ASYNC110  # the settings are a value, and no event
                    await asyncio.sleep(interval_s)
            finally:
                notifying.cancel()
                await asyncio.gather(notifying, return_exceptions=True)

    async def _notify(self, settings: NotificationSettings | None) -> None:
        if settings is None:
            return
        try:
            hooks = hooks_of(settings)
            with closing(open_outbox(self._journal)) as outbox:
                notifiers = [Notifier(self._journal, hook, outbox, link_to=self._link_to) for hook in hooks]
                await asyncio.gather(*(notifier.run() for notifier in notifiers))
        except TaoError as error:
            _LOG.warning("notifications: nobody is told what waits for a person: %s", error)
