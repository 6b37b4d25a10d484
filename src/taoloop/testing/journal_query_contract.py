"""The tests that a journal with `taoloop.journals.JournalQueries` must pass, beside those of `JournalContract`.

Derive from `JournalQueryContract` in place of `JournalContract`, in the same way.
"""
# ruff: noqa: S101 - assertions are what a contract is made of

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from random import Random
from typing import Any

from taoloop.core.events import (
    ActionRequested,
    ApprovalGiven,
    DoubtSettled,
    Event,
    Fact,
    Fault,
    Finished,
    ModelReplied,
    Noted,
    Observed,
    Paused,
    Resumed,
    RunStarted,
)
from taoloop.core.human_input import InputAnswered
from taoloop.core.message import Usage
from taoloop.errors import ConfigError, JournalError, RunNotFound, RunPruned
from taoloop.journals.base import Journal, Lease, RunRow
from taoloop.journals.queries import Growth, RunQuery, queries_of
from taoloop.journals.retention import Retention
from taoloop.journals.usage import UsageRow, day_of
from taoloop.testing.journal_contract import DAY_S, STARTED, JournalContract, events, note, refused, start_run

__all__ = ["JournalQueryContract"]

OVER = Finished(status="completed", answer="5", reason="answered")
REPLIED = ModelReplied(step=1, purpose="decide", text="t", decision=None, model="big", cost_usd=0.5)


def task(text: str, **fields: Any) -> RunStarted:
    """The first event of a run with this task."""
    return replace(STARTED, task=text, **fields)


async def keep(journal: Journal, run_id: str, *facts: Fact, at: float = 1_000.0) -> Lease:
    """The lease of a new run with these facts."""
    lease = await journal.create(run_id)
    await journal.append(lease, events(*facts, at=at))
    return lease


def requested(number: int) -> ActionRequested:
    """The request of a call."""
    call_id = f"call_{number}"
    return ActionRequested(step=number, call_id=call_id, tool="t", args={}, tier="read", verdict="allow", digest="d")


async def found(journal: Journal, text: str = "", **fields: Any) -> list[str]:
    """The ids of the runs that fit, newest first."""
    page = await queries_of(journal).find(RunQuery(text=text, **fields), limit=1_000)
    assert page.cursor is None
    return [row.run_id for row in page.rows]


async def pages(journal: Journal, query: RunQuery, limit: int) -> list[RunRow]:
    """All runs that fit, page by page."""
    rows: list[RunRow] = []
    cursor: str | None = None
    while True:
        page = await queries_of(journal).find(query, cursor=cursor, limit=limit)
        assert len(page.rows) == limit or page.cursor is None
        rows += page.rows
        if (cursor := page.cursor) is None:
            return rows


async def grown(journal: Journal, after: str) -> Growth:
    """What is new after a position."""
    async with aclosing(queries_of(journal).tail(after, interval_s=0.001)) as growths:
        return await asyncio.wait_for(anext(growths), 10)


class JournalQueryContract(JournalContract):
    """The tests of a journal with queries: derive a test class, and override `make_journal`."""

    async def test_a_part_of_a_run_is_read(self, journal: Journal) -> None:
        queries, stored = queries_of(journal), events(STARTED, *(note(number) for number in range(1, 10)))
        await keep(journal, "r1", *(event.fact for event in stored))
        parts: Sequence[tuple[dict[str, Any], list[Event]]] = (
            ({}, stored),
            ({"limit": 3}, stored[:3]),
            ({"after": 3, "limit": 3}, stored[4:7]),
            ({"after": 8}, stored[9:]),
            ({"after": 9}, []),
            ({"after": 100}, []),
            ({"limit": 0}, []),
            ({"limit": 0, "last": True}, []),
            ({"limit": 3, "last": True}, stored[7:]),
            ({"before": 7, "limit": 3, "last": True}, stored[4:7]),
            ({"before": 2, "limit": 3, "last": True}, stored[:2]),
            ({"before": 0, "last": True}, []),
            ({"after": 2, "before": 5}, stored[3:5]),
            ({"after": 2, "before": 100, "limit": 2, "last": True}, stored[8:]),
        )
        for bounds, expected in parts:
            assert await queries.read("r1", **bounds) == expected, bounds
        (await queries.read("r1")).clear()
        assert len(await queries.read("r1")) == 10

    async def test_events_of_some_kinds_and_calls_are_read(self, journal: Journal) -> None:
        queries = queries_of(journal)
        calls = [(requested(n), Observed(call_id=f"call_{n}", ok=True, output="call_2")) for n in range(1, 4)]
        stored = events(STARTED, *(fact for pair in calls for fact in pair), note(1), OVER)
        await keep(journal, "r1", *(event.fact for event in stored))
        parts: Sequence[tuple[dict[str, Any], list[int]]] = (
            ({"kinds": ("observed",)}, [2, 4, 6]),
            ({"kinds": ("observed", "noted"), "last": True, "limit": 2}, [6, 7]),
            ({"kinds": ("observed",), "limit": 2}, [2, 4]),
            ({"kinds": ("observed",), "before": 6, "last": True, "limit": 1}, [4]),
            ({"kinds": ("run_started",), "after": 0}, []),
            ({"kinds": ()}, []),
            ({"kinds": ("dreamt",)}, []),
            ({"call_ids": ("call_2",)}, [3, 4]),
            ({"call_ids": ("call_1", "call_3", "call_9"), "kinds": ("observed",)}, [2, 6]),
            ({"call_ids": ("call_3", "call_1"), "last": True, "limit": 3}, [2, 5, 6]),
            ({"call_ids": ()}, []),
        )
        for selection, expected in parts:
            assert await queries.read("r1", **selection) == [stored[seq] for seq in expected], selection
        await refused(RunNotFound, queries.read("nobody", kinds=("observed",)))

    async def test_of_a_run_that_is_not_there_nothing_is_read(self, journal: Journal) -> None:
        queries = queries_of(journal)
        await journal.create("empty")
        assert await queries.read("empty") == []
        assert "nobody" in (await refused(RunNotFound, queries.read("nobody"))).message
        await keep(journal, "old", STARTED, OVER)
        await journal.prune(Retention(days=1), now=100.0 * DAY_S)
        await refused(RunPruned, queries.read("old"))

    async def test_pages_are_the_whole_list_while_runs_are_added(self, journal: Journal) -> None:
        queries, random, total = queries_of(journal), Random(7), 0  # noqa: S311  # reproducible
        for _ in range(40):
            await start_run(journal, f"r{(total := total + 1)}")
        for limit in (1, 2, 7, 40, 41):
            expected = [f"r{number}" for number in range(total, 0, -1)]
            cursor: str | None = None
            listed: list[str] = []
            while True:
                page = await queries.find(RunQuery(), cursor=cursor, limit=limit)
                listed += [row.run_id for row in page.rows]
                assert len(listed) <= len(expected)
                if (cursor := page.cursor) is None:
                    break
                for _ in range(random.randrange(3)):
                    lease = await start_run(journal, f"r{(total := total + 1)}")
                    await journal.append(lease, events(note(1), start=1))
            assert listed == expected
        assert await journal.runs(limit=1_000) == await pages(journal, RunQuery(), 9)
        assert (await queries.find(RunQuery(), limit=0)).rows == ()

    async def test_a_row_says_what_a_list_is_filtered_by(self, journal: Journal) -> None:
        inner = task("t", parent="r1", depth=1, labels={"key": "billing"})
        await keep(journal, "r1.1", inner)
        (row,) = (await queries_of(journal).find(RunQuery())).rows
        assert (row.run_id, row.parent, row.key, row.model) == ("r1.1", "r1", "billing", "offline")

    async def test_a_list_is_of_what_fits(self, journal: Journal) -> None:
        other = replace(STARTED.agent, name="other", model="big")
        await keep(journal, "a1", task("t", labels={"key": "k"}), OVER, at=1_000)
        await keep(journal, "a2", task("t", agent=other), Paused(reason="p"), at=2_000)
        await keep(journal, "a2.1", task("t", parent="a2", depth=1), at=2_500)
        await keep(journal, "b1", task("T", agent=other), replace(OVER, status="stopped"), at=3_000)
        await journal.create("b2")
        fitting: Sequence[tuple[dict[str, Any], list[str]]] = (
            ({}, ["b1", "a2.1", "a2", "a1"]),
            ({"statuses": ("completed", "stopped")}, ["b1", "a1"]),
            ({"statuses": ("waiting",)}, ["a2"]),
            ({"agent": "other"}, ["b1", "a2"]),
            ({"agent": ""}, []),
            ({"model": "big", "statuses": ("waiting",)}, ["a2"]),
            ({"key": "k"}, ["a1"]),
            ({"key": ""}, ["b1", "a2.1", "a2"]),
            ({"since": 2_000}, ["b1", "a2.1", "a2"]),
            ({"until": 2_000}, ["a1"]),
            ({"since": 2_000, "until": 3_000}, ["a2.1", "a2"]),
            ({"task": "t"}, ["a2.1", "a2", "a1"]),
            ({"task": "T"}, ["b1"]),
            ({"prefix": "a2."}, ["a2.1"]),
            ({"prefix": "a"}, ["a2.1", "a2", "a1"]),
            ({"prefix": "A"}, []),
            ({"prefix": "%"}, []),
            ({"only_outermost": True}, ["b1", "a2", "a1"]),
        )
        for fields, expected in fitting:
            assert await found(journal, **fields) == expected, fields
            assert [row.run_id for row in await pages(journal, RunQuery(**fields), 1)] == expected, fields
            count = sum((await queries_of(journal).count(RunQuery(**{**fields, "statuses": ()}))).values())
            assert "statuses" in fields or count == len(expected), fields

    async def test_runs_are_counted_by_status(self, journal: Journal) -> None:
        queries = queries_of(journal)
        assert await queries.count(RunQuery()) == {}
        await journal.create("empty")
        await keep(journal, "r1", STARTED)
        await keep(journal, "r2", task("other"), OVER)
        lease = await keep(journal, "r3", task("other"), OVER)
        assert await queries.count(RunQuery()) == {"running": 1, "completed": 2}
        assert await queries.count(RunQuery(statuses=("running",))) == {"running": 1, "completed": 2}
        assert await queries.count(RunQuery(text="other")) == {"completed": 2}
        await journal.append(lease, events(Resumed(), start=2))
        assert await queries.count(RunQuery()) == {"running": 2, "completed": 1}
        assert await queries.count(RunQuery(until=0)) == {}
        await keep(journal, "r3.1", task("inner", parent="r3"), OVER)
        assert await queries.count(RunQuery()) == {"running": 2, "completed": 2}
        assert await queries.count(RunQuery(only_outermost=True)) == {"running": 2, "completed": 1}

    async def test_runs_are_found_by_task_answer_calls_and_errors(self, journal: Journal) -> None:
        asked = ActionRequested(
            step=1,
            call_id="c1",
            tool="send_invoice",
            args={"to": ["ann@example.com"], "amount": 4711, "memo": {"urgent": True}},
            tier="write",
            verdict="allow",
            digest="d",
        )
        failed = Observed(
            call_id="c1", ok=False, output="", error=Fault(code="timeout", message="The Zürich host slept")
        )
        await keep(journal, "r1", task("Pay the suppliers"), asked, failed, replace(OVER, answer="Nothing was paid."))
        await keep(journal, "r2", task("统计花拉小区的帖子"), replace(OVER, answer="一共有一千零二十四篇。"))
        await keep(
            journal, "r3", task("Pay Ann"), replace(OVER, status="model_failed", answer=None, error="model_auth")
        )
        both = ["r3", "r1"]
        for text, expected in {
            "pay": both,
            "PAY": both,
            "paid": ["r1"],
            "pay ann": both,
            "supplier": ["r1"],
            "send_invoice": ["r1"],
            "invoice 4711": ["r1"],
            "ann@example.com": ["r1"],
            "zurich": ["r1"],
            "timeout": ["r1"],
            "model_auth": ["r3"],
            "花拉": ["r2"],
            "小区的帖子": ["r2"],
            "拉": ["r2"],
            "一千零二十四": ["r2"],
            "拉花": [],
            "花拉 pay": [],
            '"': [],
            "pay OR nothing* NEAR": [],
            " ": ["r3", "r2", "r1"],
        }.items():
            assert await found(journal, text) == expected, text
        assert await found(journal, "pay", statuses=("completed",)) == ["r1"]

    async def test_a_run_is_found_by_what_it_has_become(self, journal: Journal) -> None:
        lease = await keep(journal, "r1", task("first words"))
        assert await found(journal, "first") == ["r1"]  # while it is at work
        await journal.append(lease, events(replace(OVER, answer="second"), start=1))
        assert await found(journal, "second") == ["r1"]
        await journal.append(lease, events(Resumed(), start=2))
        assert await found(journal, "first second") == ["r1"]
        await journal.append(lease, events(replace(OVER, answer="third"), start=3))
        assert await found(journal, "third") == ["r1"]
        assert await found(journal, "first") == ["r1"]

    async def test_pages_of_a_search_are_all_that_is_found(self, journal: Journal) -> None:
        for number in range(30):
            await keep(journal, f"r{number}", task(f"thing {'odd' if number % 2 else 'even'}"), OVER)
        expected = [f"r{number}" for number in range(29, 0, -2)]
        for limit in (1, 4, 15, 100):
            rows = await pages(journal, RunQuery(text="odd thing"), limit)
            assert [row.run_id for row in rows] == expected

    async def test_a_removed_run_is_not_found(self, journal: Journal) -> None:
        await keep(journal, "old", task("secret plans"), OVER)
        await keep(journal, "new", task("plans"), OVER, at=99.0 * DAY_S)
        assert await found(journal, "plans") == ["new", "old"]
        await journal.prune(Retention(days=30), now=100.0 * DAY_S)
        assert await found(journal, "plans") == ["new"]
        assert await found(journal) == ["new"]
        assert await queries_of(journal).count(RunQuery(text="secret")) == {}
        await keep(journal, "later", task("more plans"), OVER, at=99.0 * DAY_S)
        assert await found(journal, "plans") == ["later", "new"]

    async def test_what_is_no_cursor_or_position_is_refused(self, journal: Journal) -> None:
        queries = queries_of(journal)
        for text in ("", "x", "-1", "1e9", "9" * 40, "१"):
            await refused(ConfigError, queries.find(RunQuery(), cursor=text))
            await refused(ConfigError, anext(queries.tail(text)))

    async def test_what_is_new_is_told_from_a_position_on(self, journal: Journal) -> None:
        queries = queries_of(journal)
        start = await queries.position()
        first = await keep(journal, "r1", STARTED, note(1))
        second = await keep(journal, "r2", STARTED)
        growth = await grown(journal, start)
        assert growth.runs == {"r1": 1, "r2": 0}
        assert growth.position == await queries.position()
        await journal.append(first, events(note(2), note(3), start=2))
        later = await grown(journal, growth.position)
        assert later.runs == {"r1": 3}
        await journal.append(second, events(note(1), start=1))
        assert (await grown(journal, growth.position)).runs == {"r1": 3, "r2": 1}  # as often as it is asked

    async def test_what_is_added_meanwhile_is_told_in_order(self, journal: Journal) -> None:
        seen: dict[str, int] = {}

        async def watch() -> None:
            async for growth in queries_of(journal).tail(start, interval_s=0.001):
                for run_id, seq in growth.runs.items():
                    assert seq > seen.get(run_id, -1)
                    seen[run_id] = seq

        start = await queries_of(journal).position()
        watching = asyncio.create_task(watch())
        leases = [await start_run(journal, f"r{number}") for number in range(3)]
        for seq in range(1, 6):
            await asyncio.gather(*(journal.append(lease, events(note(seq), start=seq)) for lease in leases))
            await asyncio.sleep(0.001)
        async with asyncio.timeout(10):
            while seen != {"r0": 5, "r1": 5, "r2": 5}:
                assert not watching.done()
                await asyncio.sleep(0.001)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert watching.cancelled()

    async def test_a_position_outlives_the_removal_of_the_newest_runs(self, journal: Journal) -> None:
        queries = queries_of(journal)
        await keep(journal, "r1", STARTED, OVER, at=99.0 * DAY_S)
        middle = await queries.position()
        await keep(journal, "r2", STARTED, *(note(number) for number in range(20)), OVER)
        late = await queries.position()
        await journal.prune(Retention(days=30), now=100.0 * DAY_S)
        await keep(journal, "r3", STARTED, note(1), at=99.0 * DAY_S)
        for position in (middle, late):
            assert (await grown(journal, position)).runs == {"r3": 1}
        assert (await queries.usage())[-1].runs == 2

    async def test_usage_is_summed_by_day_key_agent_and_model(self, journal: Journal) -> None:
        used = replace(REPLIED, usage=Usage(input_tokens=100, output_tokens=10, cached_tokens=40))
        unpriced = replace(used, model="", cost_usd=None, purpose="repair")
        failed = Observed(call_id="c2", ok=False, output="", error=Fault(code="x", message="m"))
        people: list[Fact] = [
            ApprovalGiven(call_id="c1", digest="d", by="ann"),
            DoubtSettled(call_id="c1", happened=True, by="ann"),
            DoubtSettled(call_id="c1", happened=True, by="probe"),
            Noted(by="guard", text="repeated"),
            InputAnswered(call_id="c1", asker="server", message="Which?", action="cancel"),
            note(1),
        ]
        first = task("t", labels={"key": "k"})
        ok = Observed(call_id="c1", ok=True, output="3")
        await keep(journal, "r1", first, used, used, unpriced, ok, failed, *people, OVER, at=0.5 * DAY_S)
        await keep(journal, "r1.1", task("t", parent="r1"), replace(OVER, status="stopped"), at=1.5 * DAY_S)
        day, next_day = day_of(0.5 * DAY_S), day_of(1.5 * DAY_S)
        big = UsageRow(day=day, key="k", agent="counter", model="big", steps=2, model_calls=2, cost_usd=1.0)
        own = UsageRow(day=day, key="k", agent="counter", model="offline", runs=1, ended=1, completed=1)
        expected = [
            replace(big, input_tokens=200, output_tokens=20, cached_tokens=80),
            replace(
                own,
                model_calls=1,
                unpriced_calls=1,
                input_tokens=100,
                output_tokens=10,
                cached_tokens=40,
                tool_calls=2,
                failed_calls=1,
                interventions=3,
            ),
            UsageRow(day=next_day, key="k", agent="counter", model="offline", runs=1, ended=1),
        ]
        for _ in range(2):
            assert await queries_of(journal).usage() == expected
        assert await queries_of(journal).usage(next_day) == expected[2:]

    async def test_usage_grows_by_what_is_new_and_keeps_what_is_removed(self, journal: Journal) -> None:
        queries = queries_of(journal)
        lease = await keep(journal, "r1", STARTED, REPLIED)
        assert [row.cost_usd for row in await queries.usage()] == [0.5, 0]
        await journal.append(lease, events(REPLIED, OVER, start=2))
        await keep(journal, "r2", STARTED, REPLIED, OVER)  # nobody has asked since
        report = await journal.prune(Retention(days=1), now=100.0 * DAY_S)
        assert len(report.pruned) == 2
        big, own = await queries.usage()
        assert (big.cost_usd, big.model_calls, own.runs, own.completed) == (1.5, 3, 2, 2)
        await keep(journal, "r3", STARTED, REPLIED, OVER)
        big, own = await queries.usage()
        assert (big.cost_usd, own.runs) == (2.0, 3)

    async def test_what_a_fork_copied_is_not_used_again(self, journal: Journal) -> None:
        resumed = Resumed(reason="fork of run r1 at step 2")
        forked = task("t", forked_from="r1", forked_at=2)
        await keep(journal, "r1", STARTED, REPLIED, OVER)
        lease = await journal.create("r2")
        copied = events(forked, REPLIED)
        await journal.append(lease, [*copied, *events(resumed, REPLIED, start=2, at=1.5 * DAY_S)])
        rows = await queries_of(journal).usage()
        assert [(row.day, row.model, row.runs, row.cost_usd) for row in rows] == [
            (day_of(0), "big", 0, 0.5),
            (day_of(0), "offline", 1, 0),
            (day_of(1.5 * DAY_S), "big", 0, 0.5),
            (day_of(1.5 * DAY_S), "offline", 1, 0),
        ]

    async def test_a_closed_journal_answers_nothing(self, journal: Journal) -> None:
        queries = queries_of(journal)
        await journal.close()
        for call in (
            queries.read("r1"),
            queries.find(RunQuery()),
            queries.count(RunQuery()),
            queries.usage(),
            queries.position(),
        ):
            await refused(JournalError, call)
