"""The tests that every journal must pass. Derive from `JournalContract` in a test file and say how one is made:

    class TestMyJournal(JournalContract):
        async def make_journal(self) -> Journal:
            return MyJournal(...)

Every `test_` method of the class is then an ordinary synchronous test, run by pytest or called by hand.
"""
# ruff: noqa: S101 - assertions are what a contract is made of

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from inspect import getmembers, iscoroutinefunction
from typing import Any, TypeVar

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.decision import Act, Answer, Call
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    Event,
    Fact,
    Finished,
    InDoubt,
    ModelReplied,
    Noted,
    Observed,
    Paused,
    Resumed,
    RunStarted,
)
from taoloop.core.stored_events import head_of
from taoloop.errors import FenceLost, IllegalEvent, JournalError, RunExists, RunNotFound, RunPruned, TaoError
from taoloop.journals.base import Artifact, Journal, Lease, RunRow
from taoloop.journals.retention import PruneReport, Retention

__all__ = ["STARTED", "JournalContract", "events", "note", "refused"]

E = TypeVar("E", bound=TaoError)

STARTED = RunStarted(task="How many posts?", agent=AgentSpec(name="counter"), nonce="n0")
"""The first event of the runs in these tests."""


DAY_S = 86_400


def note(number: int) -> Noted:
    """A small fact with a number of its own."""
    return Noted(by="contract", text=f"note {number}")


def events(*facts: Fact, start: int = 0, at: float = 1_000.0) -> list[Event]:
    """Facts as events with the seq `start` and following, one second apart."""
    return [Event(seq, at + seq, fact) for seq, fact in enumerate(facts, start=start)]


async def refused(error: type[E], call: Awaitable[object]) -> E:
    """The error of the type `error` that `call` raises; an AssertionError if it goes through."""
    try:
        await call
    except error as raised:
        return raised
    raise AssertionError(f"went through, where {error.__name__} was due")


async def start_run(journal: Journal, run_id: str = "r1", *more: Fact, artifacts: Sequence[Artifact] = ()) -> Lease:
    """The lease of a new run that has its first event, with `more` facts and artifacts."""
    lease = await journal.create(run_id)
    await journal.append(lease, events(STARTED, *more), artifacts)
    return lease


def _make_synchronous(body: Callable[[Any, Journal], Awaitable[None]]) -> Callable[[Any], None]:
    """A test of a coroutine: it gets a new journal, which is closed in the end."""

    def test(self: JournalContract) -> None:
        async def run() -> None:
            journal = await self.make_journal()
            try:
                await body(self, journal)
            finally:
                await journal.close()

        asyncio.run(run())

    test.__name__, test.__doc__ = body.__name__, body.__doc__  # not `wraps`: pytest would see the parameters
    return test


class JournalContract:
    """The tests that every journal has to pass: derive a test class, and override `make_journal`."""

    def __init_subclass__(cls) -> None:
        """Make a test for pytest of each coroutine `test_…`."""
        super().__init_subclass__()
        for name, body in getmembers(cls, iscoroutinefunction):
            if name.startswith("test_"):
                setattr(cls, name, _make_synchronous(body))

    async def make_journal(self) -> Journal:
        """A new, empty journal."""
        raise NotImplementedError

    async def test_a_new_run_is_empty(self, journal: Journal) -> None:
        lease = await journal.create("r1")
        assert lease.run_id == "r1"
        assert await journal.load("r1") == []

    async def test_a_run_without_events_is_not_in_the_list(self, journal: Journal) -> None:
        await journal.create("r0")
        await start_run(journal)
        await journal.create("r2")
        await journal.acquire("r2")
        assert [row.run_id for row in await journal.runs(limit=1)] == ["r1"]
        assert [row.run_id for row in await journal.runs(status="running")] == ["r1"]

    async def test_a_run_without_events_is_begun_anew(self, journal: Journal) -> None:
        first = await journal.create("r1")
        await journal.append(first, [], [Artifact(ref="a", body="of the first")])
        await start_run(journal, "r0")
        lease = await journal.acquire("r1")
        second = await journal.create("r1")
        assert first.fence < lease.fence < second.fence
        assert await journal.artifact("r1", "a") is None
        for lost in (first, lease):
            await refused(FenceLost, journal.append(lost, events(STARTED)))
        await journal.append(second, events(STARTED), [Artifact(ref="a", body="of the second")])
        assert await journal.artifact("r1", "a") == Artifact(ref="a", body="of the second")
        assert [row.run_id for row in await journal.runs()] == ["r1", "r0"]  # begun last
        await refused(RunExists, journal.create("r1"))

    async def test_an_id_is_given_once(self, journal: Journal) -> None:
        lease = await start_run(journal)
        error = await refused(RunExists, journal.create("r1"))
        assert "r1" in error.message
        await journal.append(lease, events(note(1), start=1))  # the first owner lost nothing by it
        assert len(await journal.load("r1")) == 2

    async def test_a_run_that_has_gone_on_is_left_to_its_worker(self, journal: Journal) -> None:
        lease = await start_run(journal)
        for last_seq in (0, 2):
            await refused(FenceLost, journal.acquire("r1", at=last_seq))
        await journal.append(lease, events(note(1), start=1))  # it lost nothing by it
        assert (await journal.acquire("r1", at=2)).fence > lease.fence
        await refused(FenceLost, journal.append(lease, events(note(2), start=2)))

    async def test_an_unknown_run_is_named_in_the_error(self, journal: Journal) -> None:
        await start_run(journal)
        assert "nobody" in (await refused(RunNotFound, journal.load("nobody"))).message
        assert "nobody" in (await refused(RunNotFound, journal.acquire("nobody"))).message
        ghost = Lease(run_id="nobody", fence=1)
        await refused(RunNotFound, journal.append(ghost, events(STARTED)))
        assert await journal.artifact("nobody", "a1") is None
        assert [row.run_id for row in await journal.runs()] == ["r1"]

    async def test_every_field_of_an_event_comes_back(self, journal: Journal) -> None:
        stored = events(
            STARTED,
            ModelReplied(
                step=1,
                purpose="decide",
                text="t",
                decision=Act(calls=(Call(tool="look", args={"n": [1, 2.5, None, True, {"k": "v"}]}),), reason="why"),
                cost_usd=0.001,
            ),
            ActionRequested(
                step=1,
                call_id="c1",
                tool="look",
                args={"a": 1},
                tier=None,
                verdict="allow",
                digest="d",
                reasons=("x", "y"),
            ),
            Observed(call_id="c1", ok=True, output="3"),
            ModelReplied(step=2, purpose="decide", text="5", decision=Answer(text="5", citations=("c1",))),
            ModelReplied(step=3, purpose="repair", text="?", decision=None),
            Resumed(limits=Limits(max_steps=9), approved_tiers=("write",)),
            at=1_234_567_890.123456,
        )
        await journal.append(await journal.create("r1"), stored)
        assert await journal.load("r1") == stored

    async def test_any_text_comes_back(self, journal: Journal) -> None:
        text = '花拉有几篇帖子？\n"quoted" \\ \t \x00 \x1f \u2028 \U0001f9ea é e\u0301 \'; DROP TABLE run; --'
        started = RunStarted(task=text, agent=AgentSpec(name="统计员"), nonce="n0")
        lease = await journal.create("运行-1")
        await journal.append(lease, events(started), [Artifact(ref="附件", body=text)])
        assert await journal.load("运行-1") == events(started)
        assert await journal.artifact("运行-1", "附件") == Artifact(ref="附件", body=text)
        (row,) = await journal.runs()
        assert (row.run_id, row.task, row.agent) == ("运行-1", text, "统计员")

    async def test_order_holds_over_many_appends(self, journal: Journal) -> None:
        lease = await journal.create("r1")
        stored = events(STARTED, *(note(number) for number in range(1, 120)))
        for start in range(0, 120, 7):  # past 9 and 99: the order is of numbers, not of text
            await journal.append(lease, stored[start : start + 7])
        assert await journal.load("r1") == stored

    async def test_what_was_loaded_is_the_callers_own(self, journal: Journal) -> None:
        appended = events(STARTED)
        await journal.append(await journal.create("r1"), appended)
        appended.clear()
        (await journal.load("r1")).clear()
        assert await journal.load("r1") == events(STARTED)

    async def test_runs_do_not_mix(self, journal: Journal) -> None:
        first, second = await journal.create("r1"), await journal.create("r2")
        await journal.append(first, events(STARTED, note(1)), [Artifact(ref="a", body="of r1")])
        await journal.append(second, events(STARTED))
        assert [len(await journal.load(run_id)) for run_id in ("r1", "r2")] == [2, 1]
        assert await journal.artifact("r2", "a") is None

    async def test_taking_a_run_raises_its_fence_and_keeps_its_events(self, journal: Journal) -> None:
        first = await start_run(journal)
        second = await journal.acquire("r1")
        third = await journal.acquire("r1")
        assert first.fence < second.fence < third.fence
        await journal.append(third, events(note(1), start=1))
        assert await journal.load("r1") == events(STARTED, note(1))

    async def test_a_zombie_writes_nothing(self, journal: Journal) -> None:
        zombie = await start_run(journal)
        owner = await journal.acquire("r1")
        error = await refused(
            FenceLost, journal.append(zombie, events(Paused(reason="zombie"), start=1), [Artifact(ref="a", body="b")])
        )
        assert "r1" in error.message
        assert await journal.load("r1") == events(STARTED)
        assert await journal.artifact("r1", "a") is None
        assert (await journal.runs())[0].status == "running"
        await journal.append(owner, events(note(1), start=1))
        await refused(FenceLost, journal.append(zombie, events(note(2), start=2)))

    async def test_a_zombie_with_nothing_to_write_is_told_too(self, journal: Journal) -> None:
        zombie = await journal.create("r1")
        await journal.acquire("r1")
        await refused(FenceLost, journal.append(zombie, []))

    async def test_a_lease_from_the_future_is_no_lease(self, journal: Journal) -> None:
        lease = await journal.create("r1")
        forged = Lease(run_id="r1", fence=lease.fence + 1)
        await refused(FenceLost, journal.append(forged, events(STARTED)))

    async def test_a_gap_a_repetition_and_disorder_are_refused_whole(self, journal: Journal) -> None:
        lease = await journal.create("r1")
        await refused(IllegalEvent, journal.append(lease, events(STARTED, start=1)))
        await journal.append(lease, events(STARTED, note(1)))
        late, repeated = events(note(3), start=3), events(note(1), start=1)
        torn = [*events(note(2), start=2), *events(note(4), start=4)]
        turned = events(note(2), note(3), start=2)[::-1]
        twice = events(note(2), start=2) * 2
        for wrong in (late, repeated, torn, turned, twice):
            await refused(IllegalEvent, journal.append(lease, wrong, [Artifact(ref="a", body="b")]))
        assert await journal.load("r1") == events(STARTED, note(1))
        assert await journal.artifact("r1", "a") is None
        await journal.append(lease, events(note(2), start=2))  # the run can still go on
        assert len(await journal.load("r1")) == 3

    async def test_an_artifact_is_kept_once_and_never_replaced(self, journal: Journal) -> None:
        first, other = Artifact(ref="a", body="first", form="json"), Artifact(ref="b", body="")
        lease = await start_run(journal, artifacts=[first, other])
        clash = [Artifact(ref="c", body="new"), Artifact(ref="a", body="second")]
        await refused(IllegalEvent, journal.append(lease, events(Paused(reason="p"), start=1), clash))
        assert await journal.artifact("r1", "a") == first
        assert await journal.artifact("r1", "b") == other
        assert await journal.artifact("r1", "c") is None
        assert await journal.load("r1") == events(STARTED)
        assert (await journal.runs())[0].status == "running"

    async def test_an_image_or_a_file_may_be_stored_again_and_stays_as_it_is(self, journal: Journal) -> None:
        image = Artifact(ref="img_1", body="iVBORw0KGgo=", form="image/png")
        file = Artifact(ref="file_1", body="JVBERi0=", form="application/pdf")
        lease = await start_run(journal, artifacts=[image, image, file])
        await journal.append(lease, events(Paused(reason="p"), start=1), [image, file, Artifact(ref="a", body="new")])
        assert await journal.artifact("r1", "img_1") == image
        assert await journal.artifact("r1", "file_1") == file
        assert await journal.artifact("r1", "a") == Artifact(ref="a", body="new")
        assert len(await journal.load("r1")) == 2

    async def test_a_large_artifact_comes_back_whole(self, journal: Journal) -> None:
        large = Artifact(ref="big", body="汉字 and ASCII 1234\n" * 250_000)  # over 5 MB
        await start_run(journal, artifacts=[large])
        assert await journal.artifact("r1", "big") == large

    async def test_the_list_starts_with_the_newest_and_ends_at_the_limit(self, journal: Journal) -> None:
        for number in range(12):
            await start_run(journal, f"r{number}")
        await journal.append(await journal.acquire("r3"), events(note(1), start=1))  # does not make it newer
        newest = [f"r{number}" for number in range(11, -1, -1)]
        assert [row.run_id for row in await journal.runs()] == newest
        assert [row.run_id for row in await journal.runs(limit=3)] == newest[:3]
        assert await journal.runs(limit=0) == []

    async def test_the_list_says_what_the_events_say(self, journal: Journal) -> None:
        await start_run(journal, "r1", note(1))
        expected = RunRow(
            run_id="r1",
            task="How many posts?",
            agent="counter",
            status="running",
            started_at=1_000.0,
            updated_at=1_001.0,
            events=2,
        )
        (row,) = await journal.runs()
        assert replace(row, parent=None, key="", model="") == expected  # these may be left out

    async def test_the_status_follows_the_events(self, journal: Journal) -> None:
        lease = await journal.create("r1")
        finished = Finished(status="budget_exceeded", answer=None, reason="tokens", limit="max_tokens")
        course: list[tuple[Fact, str]] = [
            (STARTED, "running"),
            (Paused(reason="approval"), "waiting"),
            (note(2), "waiting"),
            (Resumed(), "running"),
            (finished, "budget_exceeded"),
            (note(5), "budget_exceeded"),
            (Resumed(), "running"),
            (Finished(status="completed", answer="5", reason="answered"), "completed"),
        ]
        for seq, (fact, status) in enumerate(course):
            await journal.append(lease, events(fact, start=seq))
            assert [row.status for row in await journal.runs()] == [status]
        await journal.append(lease, events(Resumed(), Paused(reason="p"), start=len(course)))
        assert [row.status for row in await journal.runs()] == ["waiting"]  # the last word counts

    async def test_the_list_can_be_of_one_status(self, journal: Journal) -> None:
        for number in range(6):
            done = Finished(status="completed", answer=None, reason="r")
            last: Fact = done if number % 2 else Paused(reason="p")
            await journal.append(await journal.create(f"r{number}"), events(STARTED, last))
        assert [row.run_id for row in await journal.runs(status="completed")] == ["r5", "r3", "r1"]
        assert [row.run_id for row in await journal.runs(status="waiting", limit=2)] == ["r4", "r2"]
        assert await journal.runs(status="stopped") == []

    async def test_a_run_that_nobody_edited_is_whole_and_its_head_is_that_of_its_events(self, journal: Journal) -> None:
        lease = await journal.create("r1")
        assert (await journal.verify("r1")).head == head_of("r1", [])
        artifact = Artifact(ref="obs_c1", body="the whole")
        digest = sha256(artifact.body.encode()).hexdigest()
        observed = Observed(call_id="c1", ok=True, output="the…", artifact=artifact.ref, output_digest=digest)
        course: list[Fact] = [STARTED, note(1), observed, Paused(reason="p"), Resumed(), note(5)]
        for seq, fact in enumerate(course):
            await journal.append(lease, events(fact, start=seq), [artifact] if fact is observed else [])
            report = await journal.verify("r1")
            assert report.whole, report.flaws
            assert (report.events, report.head) == (seq + 1, head_of("r1", events(*course[: seq + 1])))
        await journal.append(await journal.acquire("r1"), events(note(6), note(7), start=6))
        assert (await journal.verify("r1")).head == head_of("r1", events(*course, note(6), note(7)))
        assert "nobody" in (await refused(RunNotFound, journal.verify("nobody"))).message

    async def test_the_chain_of_a_run_is_its_own(self, journal: Journal) -> None:
        leases = [await journal.create(f"r{number}") for number in range(3)]
        await asyncio.gather(*(journal.append(lease, events(STARTED, note(1))) for lease in leases))
        reports = [await journal.verify(lease.run_id) for lease in leases]
        assert all(report.whole for report in reports)
        assert len({report.head for report in reports}) == len(reports)

    async def test_retention_removes_finished_runs_and_keeps_their_records(self, journal: Journal) -> None:
        finished = Finished(status="completed", answer="5", reason="answered")
        inner = replace(STARTED, parent="old", depth=1)
        started, pending = ActionStarted(call_id="c1", idempotency_key="k"), InDoubt(call_id="c1", reason="no_outcome")
        await start_run(journal, "old", finished)
        await journal.append(await journal.create("old.1"), events(inner, note(1), finished))
        await start_run(journal, "doubtful", started, pending, finished)
        await start_run(journal, "waiting", Paused(reason="approval"))
        await start_run(journal, "running")
        await journal.append(await journal.create("new"), events(STARTED, finished, at=80 * DAY_S))
        head, now = (await journal.verify("old.1")).head, 100.0 * DAY_S

        planned = await journal.prune(Retention(days=90), now=now, is_dry_run=True)
        assert len(await journal.runs()) == 6
        report = await journal.prune(Retention(days=90), now=now)
        assert report == planned
        assert {run.run_id for run in report.pruned} == {"old", "old.1"}
        (record,) = (run for run in report.pruned if run.run_id == "old.1")
        assert (record.agent, record.status, record.events, record.head) == ("counter", "completed", 3, head)
        assert (record.started_at, record.ended_at, record.pruned_at, record.rule) == (1_000, 1_002, now, "days=90")

        assert {row.run_id for row in await journal.runs()} == {"doubtful", "waiting", "running", "new"}
        for method in (journal.load, journal.verify, journal.acquire):
            assert head in (await refused(RunPruned, method("old.1"))).message
        await refused(RunExists, start_run(journal, "old"))  # or its effects would be repeated under its id
        assert await journal.prune(Retention(days=90), now=now) == PruneReport()

    async def test_retention_keeps_a_number_of_runs_and_those_of_today(self, journal: Journal) -> None:
        finished = Finished(status="completed", answer="5", reason="answered")
        for number in range(4):
            began = events(STARTED, finished, at=number * DAY_S)
            await journal.append(await journal.create(f"r{number}"), began)
        report = await journal.prune(Retention(runs=2), now=9.0 * DAY_S)
        assert [(run.run_id, run.rule) for run in report.pruned] == [("r0", "runs=2"), ("r1", "runs=2")]
        report = await journal.prune(Retention(runs=0), now=3.5 * DAY_S)
        assert [run.run_id for run in report.pruned] == ["r2"]

    async def test_a_run_that_is_continued_is_not_removed(self, journal: Journal) -> None:
        finished = Finished(status="completed", answer="5", reason="answered")
        lease = await start_run(journal, "r1", finished)
        await journal.append(lease, events(Resumed(), start=2))
        assert await journal.prune(Retention(days=1), now=100.0 * DAY_S) == PruneReport()
        await journal.append(lease, events(finished, start=3))
        (record,) = (await journal.prune(Retention(days=1), now=100.0 * DAY_S)).pruned
        assert record.events == 4
        await refused(RunNotFound, journal.append(lease, events(note(1), start=4)))

    async def test_64_runs_at_once_lose_nothing(self, journal: Journal) -> None:
        async def run(number: int) -> None:
            lease = await start_run(journal, f"r{number}")
            for seq in range(1, 12, 2):
                await journal.append(lease, events(note(number), note(number), start=seq))

        await asyncio.gather(*(run(number) for number in range(64)))
        for number in range(64):
            assert await journal.load(f"r{number}") == events(STARTED, *[note(number)] * 12)
        assert len(await journal.runs(limit=100)) == 64

    async def test_a_refused_append_does_not_harm_its_neighbours(self, journal: Journal) -> None:
        leases = [await journal.create(f"r{number}") for number in range(8)]
        await journal.acquire("r3")
        outcomes = await asyncio.gather(
            *(journal.append(lease, events(STARTED, start=number == 5)) for number, lease in enumerate(leases)),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes if outcome is not None] == [FenceLost, IllegalEvent]
        counts = [len(await journal.load(f"r{number}")) for number in range(8)]
        assert counts == [1, 1, 1, 0, 1, 0, 1, 1]

    async def test_of_two_who_append_the_same_event_one_wins(self, journal: Journal) -> None:
        lease = await start_run(journal)
        both = (journal.append(lease, events(note(number), start=1)) for number in (1, 2))
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["IllegalEvent", "NoneType"]
        assert len(await journal.load("r1")) == 2

    async def test_of_many_who_create_one_id_one_begins_it(self, journal: Journal) -> None:
        async def begin(number: int) -> None:
            await journal.append(await journal.create("r1"), events(STARTED, note(number)))

        outcomes = await asyncio.gather(*(begin(number) for number in range(5)), return_exceptions=True)
        (winner,) = (number for number, outcome in enumerate(outcomes) if outcome is None)
        assert all(isinstance(outcome, RunExists | FenceLost) for outcome in outcomes if outcome is not None)
        assert await journal.load("r1") == events(STARTED, note(winner))

    async def test_of_many_who_create_one_id_at_once_one_lease_is_good(self, journal: Journal) -> None:
        leases = await asyncio.gather(*(journal.create("r1") for _ in range(5)))
        outcomes = await asyncio.gather(
            *(journal.append(lease, events(STARTED)) for lease in leases), return_exceptions=True
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["FenceLost"] * 4 + ["NoneType"]

    async def test_closing_twice_is_harmless_and_final(self, journal: Journal) -> None:
        lease = await journal.create("r1")
        await journal.close()
        await journal.close()
        await refused(JournalError, journal.append(lease, events(STARTED)))
        await refused(JournalError, journal.load("r1"))
