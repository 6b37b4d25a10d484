"""What waits in a run of thousands of steps is read without the run, and is the same as with all of it."""

from __future__ import annotations

import asyncio

from tests.runtime.approvals.long_runs import STEPS, CountingJournal, put_long_approval, put_long_blocked
from tests.runtime.approvals.waiting_runs import leave_question
from tests.serve.panel.run_samples import extend, put, steps

from taoloop import MemoryJournal
from taoloop.core.events import Fact, Paused
from taoloop.runtime.approvals.inbox import WaitingQuestions, pending_approvals
from taoloop.runtime.approvals.inbox_items import Inbox
from taoloop.runtime.approvals.run_excerpt import SHORT, is_whole, read_excerpt


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
        journal.events_read = 0
        items = (await Inbox(journal).load()).items
        assert journal.events_read < 2 * SHORT + 100
        assert items == whole
        assert [(item.kind, len(item.calls)) for item in items] == [("approval", 1), ("approval", 1), ("blocked", 1)]
        journal.events_read = 0
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


def test_a_run_that_does_not_fit_is_read_whole() -> None:
    """A call that was requested before the last decision; and a question, for which all reads before it matter."""

    async def main() -> None:
        journal = MemoryJournal()
        facts = [*(await _facts("asks-user"))]
        await put(journal, "asks-user", [facts[0], *steps(STEPS, first=9_000), *facts[1:]])
        assert is_whole(await read_excerpt(journal, "asks-user"))
        *early, observed = steps(1)
        lease = await put(journal, "early", [facts[0], *early, *steps(STEPS, first=2), observed])
        assert is_whole(await read_excerpt(journal, "early"))
        await extend(journal, lease, 3 * STEPS + 4, [Paused(reason="", waiting_for=())])
        assert (await read_excerpt(journal, "early")).paused is not None

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
