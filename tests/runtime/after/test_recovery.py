"""What a dead process left behind is found and taken up; what is alive is left alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, SqliteJournal, Trace, recover, tool
from taoloop.core.events import ActionStarted, Event, Resumed
from taoloop.errors import FenceLost, RunHeld, RunNotResumable
from taoloop.journals.base import Journal, locks_of
from taoloop.runtime import ApprovalAnswer, answer_approval
from taoloop.runtime.after.fork import store_fork
from taoloop.runtime.after.recovery import MARGIN_S, MAX_DEATHS, PERSON_S, Recovered, max_silence_s, orphans


@tool(tier="draft", idempotent=True, timeout_s=100)
async def put(n: int) -> str:
    """Put."""
    return f"put {n}"


@tool(tier="draft")
async def send(n: int) -> str:
    """Send."""
    return f"sent {n}"


def script(name: str) -> ScriptedModel:
    return ScriptedModel([{"tool_calls": [{"name": name, "args": {"n": 1}}]}, "done"])


def agent_of(journal: Journal, name: str) -> Agent:
    return Agent(model=script(name), tools=[put, send], journal=journal)


async def left_behind(journal: Journal, run_id: str, name: str, ago_s: float) -> None:
    """A run whose process died in the middle of its call, so many seconds ago."""
    whole = await agent_of(journal, name).run(f"do {run_id}", run_id=f"whole-{run_id}")
    events = whole.trace.events
    cut = next(number for number, event in enumerate(events) if isinstance(event.fact, ActionStarted)) + 1
    at = time.time() - ago_s
    lease = await journal.create(run_id)
    await journal.append(lease, [Event(event.seq, at, event.fact) for event in events[:cut]])


class Unknowing(SqliteJournal):
    """A journal that cannot tell who is at work on its runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, synchronous="NORMAL")
        self.run_locks = None


@pytest.mark.parametrize(
    ("knows", "expected"), [(True, ["old", "fresh", "just now", "doubtful"]), (False, ["old", "doubtful"])]
)
def test_every_lost_run_goes_on_and_the_others_are_left_alone(tmp_path: Path, knows: bool, expected: list[str]) -> None:
    async def play() -> tuple[list[str], list[Recovered], list[str], list[Any]]:
        make = partial(SqliteJournal, synchronous="NORMAL") if knows else Unknowing
        async with make(tmp_path / "r.db") as journal:
            await left_behind(journal, "old", "put", 3600)
            await left_behind(journal, "fresh", "put", 90)
            await left_behind(journal, "just now", "put", 1)
            await left_behind(journal, "doubtful", "send", 3600)
            found = [trace.run_id for trace in await orphans(journal)]
            told: list[Recovered] = []

            def agent_for(trace: Trace) -> Agent:
                return agent_of(journal, "send" if trace.run_id == "doubtful" else "put")

            done = await recover(journal, agent_for, on_recovered=told.append)
            assert told == done
            left = [trace.run_id for trace in await orphans(journal, silent_s=0)]
            return found, done, left, [row.status for row in await journal.runs(status="waiting")]

    found, done, left, waiting = asyncio.run(play())
    assert found == expected
    statuses = {one.run_id: one.result and one.result.status for one in done}
    assert statuses == {name: "waiting" if name == "doubtful" else "completed" for name in expected}
    assert left == [name for name in ("fresh", "just now") if name not in expected]
    assert waiting == ["waiting"]


def test_with_a_time_of_silence_only_those_that_were_silent_for_so_long(tmp_path: Path) -> None:
    async def play() -> list[str]:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            await left_behind(journal, "old", "put", 3600)
            await left_behind(journal, "fresh", "put", 90)
            return [trace.run_id for trace in await orphans(journal, silent_s=600)]

    assert asyncio.run(play()) == ["old"]


def test_one_that_ended_elsewhere_while_it_was_looked_for_is_none(tmp_path: Path) -> None:
    class Overtaken(SqliteJournal):
        """Somebody is faster than who reads its runs."""

        async def load(self, run_id: str) -> list[Event]:
            async with SqliteJournal(self.path, synchronous="NORMAL") as other:
                await agent_of(other, "put").resume(run_id)
            return list(await super().load(run_id))

    async def play() -> list[Trace]:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            await left_behind(journal, "old", "put", 3600)
        async with Overtaken(tmp_path / "r.db", synchronous="NORMAL") as journal:
            return await orphans(journal)

    assert asyncio.run(play()) == []


def test_one_that_cannot_be_taken_up_is_told_and_the_next_one_goes_on(tmp_path: Path) -> None:
    async def play() -> list[Recovered]:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            await left_behind(journal, "one", "put", 3600)
            await left_behind(journal, "two", "put", 3600)

            def agent_for(trace: Trace) -> Agent:
                tools = [send] if trace.run_id == "one" else [put, send]
                return Agent(model=script("put"), tools=tools, journal=journal)

            return await recover(journal, agent_for)

    one, two = asyncio.run(play())
    assert one.error is not None
    assert two.result is not None
    assert two.result.status == "completed"


def test_how_long_a_process_may_be_silent_follows_from_what_is_under_way(tmp_path: Path) -> None:
    async def play() -> list[float]:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            await left_behind(journal, "put", "put", 10)
            await left_behind(journal, "send", "send", 10)
            putting = Trace("put", await journal.load("put"))
            sending = Trace("send", await journal.load("send"))
            return [max_silence_s(putting), max_silence_s(sending), max_silence_s(Trace("t", putting.events[:1]))]

    limits = asyncio.run(play())
    assert limits == [MARGIN_S + 100, MARGIN_S + 30, MARGIN_S + 120]
    assert max(limits) < PERSON_S


def holding_agent(journal: Any, entered: asyncio.Event, go: asyncio.Event, **options: Any) -> Agent:
    @tool(tier="read", name="put")
    async def wait(n: int) -> str:
        """Wait until the test says so."""
        entered.set()
        await go.wait()
        return f"put {n}"

    return Agent(model=script("put"), tools=[wait], journal=journal, **options)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_that_is_under_way_is_neither_resumed_nor_recovered(tmp_path: Path, kind: str) -> None:
    async def play() -> None:
        entered, go = asyncio.Event(), asyncio.Event()
        journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "r.db")
        agent = holding_agent(journal, entered, go)
        running = asyncio.create_task(agent.run("t", run_id="r"))
        await entered.wait()
        with pytest.raises(RunHeld, match="this process is working on it") as refused:
            await agent.resume("r")
        assert "take_over" in refused.value.hint
        assert await recover(journal, [agent]) == []
        go.set()
        assert (await running).status == "completed"
        with pytest.raises(RunNotResumable):
            await agent.resume("r", take_over=True)
        await journal.close()

    asyncio.run(play())


def test_taking_over_ends_the_work_of_the_other(tmp_path: Path) -> None:
    async def play() -> None:
        entered, go, again = asyncio.Event(), asyncio.Event(), asyncio.Event()
        async with SqliteJournal(tmp_path / "r.db") as journal:
            running = asyncio.create_task(holding_agent(journal, entered, go).run("t", run_id="r"))
            await entered.wait()
            second = asyncio.create_task(holding_agent(journal, again, go).resume("r", take_over=True))
            await again.wait()
            assert await orphans(journal) == []
            go.set()
            assert (await second).status == "completed"
            with pytest.raises(FenceLost):
                await running

    asyncio.run(play())


def test_agents_go_on_with_the_runs_of_their_name_and_source(tmp_path: Path) -> None:
    async def play() -> tuple[list[str], list[str]]:
        path = tmp_path / "r.db"
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            await left_behind(journal, "one", "put", 1)
        one = Agent(model=script("put"), tools=[put, send], journal=path)
        assert await replace(one, name="another").recover() == []
        assert await replace(one, source="agent.yaml").recover() == []
        assert await recover(path, lambda _: None) == []
        async with SqliteJournal(path) as journal:
            left = [trace.run_id for trace in await orphans(journal)]
        return left, [done.run_id for done in await recover(path, [replace(one, name="another"), one])]

    assert asyncio.run(play()) == (["one"], ["one"])


def test_an_agent_can_do_it_before_its_first_run_and_only_then(tmp_path: Path) -> None:
    async def play() -> list[tuple[str, str]]:
        path = tmp_path / "r.db"
        agent = replace(agent_of(SqliteJournal(path), "put"), journal=path, recover_on_start=True)
        async with SqliteJournal(path, synchronous="NORMAL") as journal:
            await left_behind(journal, "one", "put", 1)
            await agent.run("new", run_id="new")
            await left_behind(journal, "two", "put", 1)
            await agent.run("newer", run_id="newer")
            rows = await journal.runs()
        return [(row.run_id, row.status) for row in rows if not row.run_id.startswith("whole")][::-1]

    assert asyncio.run(play()) == [
        ("one", "completed"),
        ("new", "completed"),
        ("two", "running"),
        ("newer", "completed"),
    ]


def test_several_go_on_side_by_side_where_that_is_wished(tmp_path: Path) -> None:
    async def play(at_once: int) -> int:
        most = now = 0

        @tool(tier="draft", idempotent=True, name="put")
        async def count(n: int) -> str:
            """Put."""
            nonlocal most, now
            now += 1
            most = max(most, now)
            for _ in range(50):
                await asyncio.sleep(0)
            now -= 1
            return f"put {n}"

        journal = MemoryJournal()
        for number in range(4):
            await left_behind(journal, str(number), "put", 1)
        agent = Agent(model=script("put"), tools=[count, send])
        done = await recover(journal, [agent], at_once=at_once)
        assert [one.run_id for one in done] == ["0", "1", "2", "3"]
        return most

    assert asyncio.run(play(1)) == 1
    assert asyncio.run(play(3)) == 3


def test_a_run_that_dies_at_the_same_place_again_and_again_is_left_to_a_person(tmp_path: Path) -> None:
    async def play(times: int) -> Recovered:
        async with SqliteJournal(tmp_path / f"{times}.db", synchronous="NORMAL") as journal:
            await left_behind(journal, "r", "put", 1)
            lease = await journal.acquire("r")
            length = len(await journal.load("r"))
            resumed = [Event(length + n, time.time(), Resumed(limits=Limits())) for n in range(times)]
            await journal.append(lease, resumed)
            [one] = await recover(journal, [agent_of(journal, "put")])
            return one

    assert asyncio.run(play(MAX_DEATHS - 1)).result is not None
    given_up = asyncio.run(play(MAX_DEATHS))
    assert isinstance(given_up.error, RunNotResumable)
    assert "tao resume r" in given_up.error.hint


def test_who_is_told_and_fails_ends_it_and_leaves_the_rest(tmp_path: Path) -> None:
    async def play() -> list[str]:
        async with SqliteJournal(tmp_path / "r.db", synchronous="NORMAL") as journal:
            for run_id in ("one", "two"):
                await left_behind(journal, run_id, "put", 1)

            def fail(_: Recovered) -> None:
                raise BrokenPipeError

            with pytest.raises(BrokenPipeError):
                await recover(journal, [agent_of(journal, "put")], on_recovered=fail)
            return [row.run_id for row in await journal.runs(status="running")]

    assert asyncio.run(play()) == ["two"]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "silence"])
def test_a_fork_that_nobody_has_gone_on_with_was_left_behind_by_no_process(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "r.db"

    async def play() -> None:
        kinds: dict[str, Callable[[], MemoryJournal | SqliteJournal]]
        kinds = {"memory": MemoryJournal, "sqlite": partial(SqliteJournal, path), "silence": partial(Unknowing, path)}
        journal = kinds[kind]()
        agent = Agent(model=script("put"), tools=[put], journal=journal)
        first = await agent.run("t", run_id="r")
        fork = await store_fork(journal, first.run_id, at=2, now=agent.clock.now(), new_id="f")
        again = await store_fork(journal, fork.run_id, at=2, now=agent.clock.now(), new_id="g")
        if (run_locks := locks_of(journal)) is not None:
            assert await run_locks.is_new_fork("f")
            assert not await run_locks.is_new_fork("r")
        later = time.time() + 10_000_000
        assert await orphans(journal, now=later) == []
        lease = await journal.acquire(again.run_id)
        assert await orphans(journal, now=later) == [], "taken, and left as it was"
        await journal.append(lease, [Event(len(again), 0.0, Resumed())])  # here its process died
        assert [trace.run_id for trace in await orphans(journal, now=later)] == ["g"]
        await journal.close()

    asyncio.run(play())


def test_a_waiting_run_is_resumed_once_somebody_has_answered() -> None:
    """The answer was recorded, and whoever gave it died before the run was resumed."""

    @tool(tier="destructive")
    async def pay(n: int) -> str:
        """Pay."""
        return f"paid {n}"

    async def run() -> None:
        journal = MemoryJournal()
        agent = Agent(model=script("pay"), tools=[pay], journal=journal)
        assert (await agent.run("pay 1", run_id="asks")).status == "waiting"
        assert await recover(journal, [agent]) == []
        await answer_approval(journal, "asks", "call_1", ApprovalAnswer(approved=True))
        [recovered] = await recover(journal, [agent])
        assert recovered.result is not None
        assert (recovered.result.status, recovered.result.answer) == ("completed", "done")
        assert await recover(journal, [agent]) == []

    asyncio.run(run())
