"""Workers in one process: what they drive, wait for, park, leave and let go of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from taoloop import (
    Agent,
    ApprovalAnswer,
    Policy,
    SqliteJournal,
    Trace,
    Worker,
    answer_approval,
    attach,
    cancel_run,
    open_engine,
    orphans,
    release_run,
    stuck_runs,
    tool,
)
from taoloop.errors import ConfigError, RunNotResumable
from taoloop.journals import ActionStarted, Event, Finished, InDoubt, Journal, ModelReplied, Resumed
from taoloop.models import FunctionModel

DEADLINE_S = 5.0


@tool(tier="write", purpose="Pay.")
def pay(amount: int) -> str:
    return f"paid {amount}"


def pay_then_answer(_task: str, trace: Trace) -> str:
    return "Thought: t\nFinal Answer: done" if trace.calls else 'Thought: t\nAction: pay: {"amount": 1}'


def payer(journal: SqliteJournal | None = None, **settings: Any) -> Agent:
    defaults: dict[str, Any] = {"name": "payer", "model": FunctionModel(pay_then_answer), "tools": [pay]}
    return Agent(**(defaults | {"journal": journal, "policy": "autonomous", "language": "en"} | settings))


@asynccontextmanager
async def working(journal: SqliteJournal, *agents: Agent, grace_s: float = 5.0) -> AsyncIterator[Worker]:
    async with open_engine("local", journal) as engine:
        worker = Worker(journal, agents, engine, grace_s=grace_s)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await running


def in_journal(body: Callable[[SqliteJournal], Awaitable[None]]) -> Callable[[Path], None]:
    """A test of a coroutine that gets a new journal, and ends within the deadline."""

    @wraps(body)
    def test(tmp_path: Path) -> None:
        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S), SqliteJournal(tmp_path / "runs.db", synchronous="NORMAL") as opened:
                await body(opened)

        asyncio.run(main())

    del test.__wrapped__  # pytest would look for its parameter
    return test


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():  # noqa: ASYNC110  # it is another process's state, or may be
        await asyncio.sleep(0.01)


async def trace_of(journal: Journal, run_id: str) -> Trace:
    return Trace(run_id, await journal.load(run_id))


def kinds(trace: Trace) -> list[str]:
    return [event.fact.kind for event in trace.events]


@in_journal
async def test_a_submitted_run_is_stored_at_once_and_driven_by_a_worker(journal: SqliteJournal) -> None:
    run_id = await payer(journal).submit("Pay.", queue="default", priority=1, tenant="acme")
    trace = await trace_of(journal, run_id)
    assert kinds(trace) == ["run_started"]
    assert trace.started is not None
    assert trace.started.submission is not None
    assert (trace.started.submission.priority, trace.started.submission.tenant) == (1, "acme")
    assert await orphans(journal) == []  # no process died
    async with working(journal, payer()) as worker:
        result = await (await attach(journal, run_id)).result()
        assert (result.status, result.answer) == ("completed", "done")
        await until(lambda: _has(worker, ended=1))
    assert worker.health.turns == 1


async def _has(worker: Worker, **counts: int) -> bool:
    return all(getattr(worker.health, name) == count for name, count in counts.items())


@in_journal
async def test_an_answer_wakes_a_waiting_run_and_a_second_wake_changes_nothing(journal: SqliteJournal) -> None:
    run_id = await payer(journal, policy="supervised").submit("Pay.")
    async with working(journal, payer(policy="supervised")) as worker, open_engine(None, journal) as engine:
        handle = await attach(journal, run_id)
        assert (await handle.result()).status == "waiting"
        count = len(await journal.load(run_id))
        await engine.wake(run_id)
        await engine.wake(run_id)
        await until(lambda: _has(worker, under_way=0))
        assert len(await journal.load(run_id)) == count
        await answer_approval(journal, run_id, "call_1", ApprovalAnswer(approved=True, by="ann"))
        assert (await handle.result()).status == "completed"


@in_journal
async def test_an_overdue_question_is_refused_without_anybody(journal: SqliteJournal) -> None:
    policy = Policy(profile="supervised", approval_timeout_s=0.2)
    run_id = await payer(journal, policy=policy).submit("Pay.")
    async with working(journal, payer(policy=policy)):
        await until(lambda: _is_over(journal, run_id))
    assert "approval_refused" in kinds(await trace_of(journal, run_id))


async def _is_over(journal: Journal, run_id: str) -> bool:
    return (await trace_of(journal, run_id)).finished is not None


@in_journal
async def test_a_delayed_run_starts_at_its_time(journal: SqliteJournal) -> None:
    not_before = time.time() + 0.3
    run_id = await payer(journal).submit("Pay.", not_before=not_before)
    async with working(journal, payer()), open_engine(None, journal) as engine:
        await engine.wake(run_id)  # does not make it earlier
        await until(lambda: _is_over(journal, run_id))
    resumed = next(event for event in await journal.load(run_id) if isinstance(event.fact, Resumed))
    assert resumed.at >= not_before


@in_journal
async def test_a_run_of_an_unknown_agent_is_left_untouched_for_a_worker_that_has_it(journal: SqliteJournal) -> None:
    run_id = await payer(journal).submit("Pay.")
    async with working(journal, payer(name="other")) as stranger, open_engine("local", journal) as engine:
        assert (await stranger.advance(run_id)).status == "running"
        assert kinds(await trace_of(journal, run_id)) == ["run_started"]
        worker = Worker(journal, [payer()], engine)
        assert (await worker.advance(run_id)).status == "completed"


class Slow:
    """A model that answers once it may, and says when it is asked."""

    def __init__(self) -> None:
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def reply(self, _task: str, trace: Trace) -> str:
        self.asked.set()
        await self.may_answer.wait()
        return pay_then_answer(_task, trace)


@in_journal
async def test_a_worker_that_ends_lets_the_model_call_end_and_starts_nothing_more(journal: SqliteJournal) -> None:
    slow = Slow()
    run_id = await payer(journal).submit("Pay.")
    async with working(journal, payer(model=FunctionModel(slow.reply))) as worker:
        await slow.asked.wait()
        worker.stop()
        slow.may_answer.set()
    trace = await trace_of(journal, run_id)
    assert kinds(trace)[-2:] == ["model_replied", "action_requested"]  # the reply is kept, the call not begun
    async with working(journal, payer()):
        await until(lambda: _is_over(journal, run_id))
    facts = [event.fact for event in await journal.load(run_id)]
    assert sum(isinstance(fact, ModelReplied) for fact in facts) == 2
    assert sum(isinstance(fact, ActionStarted) for fact in facts) == 1


@in_journal
async def test_after_the_grace_a_model_call_is_abandoned_without_an_event(journal: SqliteJournal) -> None:
    slow = Slow()
    run_id = await payer(journal).submit("Pay.")
    async with working(journal, payer(model=FunctionModel(slow.reply)), grace_s=0.05) as worker:
        await slow.asked.wait()
        worker.stop()
    assert kinds(await trace_of(journal, run_id)) == ["run_started", "resumed"]
    async with working(journal, payer()):
        await until(lambda: _is_over(journal, run_id))


@in_journal
async def test_a_tool_under_way_is_awaited_up_to_the_grace_and_then_in_doubt(journal: SqliteJournal) -> None:
    begun, may_end, asked = asyncio.Event(), asyncio.Event(), {"policy": "supervised", "approved_tiers": ("write",)}

    @tool(tier="write", purpose="Pay.", name="pay")
    async def slow_pay(amount: int) -> str:
        begun.set()
        await may_end.wait()
        return f"paid {amount}"

    first = await payer(journal, **asked).submit("Pay.")
    async with working(journal, payer(tools=[slow_pay])) as worker:
        await begun.wait()
        worker.stop()
        may_end.set()
    assert kinds(await trace_of(journal, first))[-1] == "observed"
    begun.clear()
    may_end.clear()
    second = await payer(journal, **asked).submit("Pay.")
    async with working(journal, payer(tools=[slow_pay]), grace_s=0.05) as worker:
        await begun.wait()
        worker.stop()
    assert kinds(await trace_of(journal, second))[-1] == "action_started"
    async with working(journal, payer()):
        await until(lambda: _is_over(journal, first))
        assert (await (await attach(journal, second)).result()).status == "waiting"  # a person is asked
    assert any(isinstance(event.fact, InDoubt) for event in await journal.load(second))


@in_journal
async def test_a_cancel_is_in_the_journal_and_the_worker_writes_nothing_after_it(journal: SqliteJournal) -> None:
    slow = Slow()
    run_id = await payer(journal).submit("Pay.")
    async with working(journal, payer(model=FunctionModel(slow.reply))) as worker:
        await slow.asked.wait()
        recorded = await cancel_run(journal, run_id, by="ann", note="not now")
        await until(lambda: _has(worker, under_way=0))
    trace = await trace_of(journal, run_id)
    assert isinstance(trace.events[-1].fact, Finished)
    assert trace.status == "stopped"
    assert "ann" in trace.events[-1].fact.reason
    assert trace.events[-1] == recorded.events[0]
    with pytest.raises(RunNotResumable, match="stopped"):
        await cancel_run(journal, run_id)
    await release_run(journal, run_id, by="ann")
    async with working(journal, payer()):
        await until(lambda: _is_over(journal, run_id))
    assert (await trace_of(journal, run_id)).status == "completed"


async def _kill_worker(journal: SqliteJournal, run_id: str, times: int) -> None:
    """Have the run taken over as often, as after deaths of its workers."""
    for _ in range(times):
        trace = await trace_of(journal, run_id)
        lease = await journal.acquire(run_id)
        await journal.append(lease, [Event(len(trace), time.time(), Resumed())])


@in_journal
async def test_a_run_that_kills_its_workers_is_parked_until_a_person_releases_it(journal: SqliteJournal) -> None:
    run_id = await payer(journal).submit("Pay.")
    await _kill_worker(journal, run_id, 5)
    async with working(journal, payer()) as worker:
        advanced = await worker.advance(run_id)
        assert (advanced.status, advanced.wake_at) == ("waiting", None)
        assert [stuck.run_id for stuck in await stuck_runs(journal)] == [run_id]
        assert worker.health.turns == 0
        await release_run(journal, run_id, by="ann")
        await until(lambda: _is_over(journal, run_id))
    assert "released by ann" in [
        fact.reason for fact in _facts(await trace_of(journal, run_id)) if hasattr(fact, "reason")
    ]


def _facts(trace: Trace) -> list[Any]:
    return [event.fact for event in trace.events]


@in_journal
async def test_only_submitted_runs_are_released_and_cancelled(journal: SqliteJournal) -> None:
    result = await payer(journal, policy="supervised").run("Pay.")
    for change in (release_run, cancel_run):
        with pytest.raises(ConfigError, match="not submitted"):
            await change(journal, result.run_id)


@in_journal
async def test_the_run_of_an_agent_in_a_run_is_left_and_continued_with_it(journal: SqliteJournal) -> None:
    slow = Slow()

    def boss(_task: str, trace: Trace) -> str:
        return "Thought: t\nFinal Answer: done" if trace.calls else 'Thought: t\nAction: helper: {"task": "Pay."}'

    def outer(model: Any) -> Agent:
        helper = payer(name="helper", model=FunctionModel(model)).as_tool(purpose="Helps.", tier="write")
        return payer(journal, model=FunctionModel(boss), tools=[helper])

    run_id = await outer(pay_then_answer).submit("Have it paid.")
    async with working(journal, outer(slow.reply)) as worker:
        await slow.asked.wait()
        worker.stop()
        slow.may_answer.set()
    inner = await trace_of(journal, f"{run_id}.1")
    assert kinds(inner)[-2:] == ["model_replied", "action_requested"]
    async with working(journal, outer(pay_then_answer)):
        await until(lambda: _is_over(journal, run_id))
    facts = _facts(await trace_of(journal, f"{run_id}.1"))
    assert sum(isinstance(fact, ActionStarted) for fact in facts) == 1
    assert isinstance(facts[-1], Finished)
