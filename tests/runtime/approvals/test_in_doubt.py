"""Promise 1: what was started and has no outcome is found out, repeated by the rules, or put before a person."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from taoloop import (
    Agent,
    ApprovalAnswer,
    ApprovalRequest,
    Limits,
    MemoryJournal,
    ScriptedModel,
    SqliteJournal,
    Trace,
    tool,
)
from taoloop.core.events import (
    ActionRequested,
    ActionStarted,
    DoubtSettled,
    Event,
    Fact,
    InDoubt,
    ModelReplied,
    Observed,
    Resumed,
)
from taoloop.core.views.transcript import Result
from taoloop.dialects.conversation import Conversation
from taoloop.errors import AlreadyAnswered, ConfigError, ToolDefinitionError, ToolTimeout
from taoloop.journals.base import Journal, Lease
from taoloop.journals.memory import MemoryRunLocks
from taoloop.runtime.after.replay import replay
from taoloop.runtime.approvals.in_doubt import doubt_requests
from taoloop.runtime.approvals.inbox import settle_doubt
from taoloop.testing import FakeClock
from taoloop.tools.tool import ToolContext

DONE: dict[str, int] = {}
"""What happened in the world, by idempotency key."""


@pytest.fixture(autouse=True)
def _new_world() -> None:
    DONE.clear()


def did(call: ToolContext) -> None:
    DONE[call.idempotency_key] = DONE.get(call.idempotency_key, 0) + 1


@tool(tier="draft")
def send(amount: int, *, call: ToolContext) -> str:
    """Send."""
    did(call)
    return f"sent {amount}"


@tool(tier="draft", idempotent=True)
def put(amount: int, *, call: ToolContext) -> str:
    """Put."""
    did(call)
    return f"put {amount}, attempt {call.attempt}"


def probed(probe: Callable[..., Any], **options: Any) -> Any:
    @tool(tier="draft", name="transfer", probe=probe, **options)
    def transfer(amount: int, *, call: ToolContext) -> str:
        """Transfer."""
        did(call)
        return f"transferred {amount}"

    return transfer


def calls(*named: tuple[str, int]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": {"amount": amount}} for name, amount in named]}


def facts(result: Result, *kinds: type[Any]) -> list[Any]:
    return [event.fact for event in result.trace.events if isinstance(event.fact, kinds)]


async def crashed(agent: Agent, *started: str, run_id: str = "r") -> None:
    """Leave the run as a process does that died while these calls ran: their start is the last thing written."""
    result = await agent.run("do it", run_id="whole")
    assert isinstance(agent.journal, MemoryJournal)
    kept: list[Fact] = []
    for event in result.trace.events:
        kept.append(event.fact)
        if isinstance(event.fact, ActionRequested) and event.fact.call_id == started[-1]:
            break
    kept += [ActionStarted(call_id=one, idempotency_key=f"{run_id}:{one}") for one in started]
    lease = await agent.journal.create(run_id)
    at = time.time()
    await agent.journal.append(lease, [Event(seq, at, fact) for seq, fact in enumerate(kept)])
    DONE.clear()


def after_crash(*tools: Any, script: list[Any], started: tuple[str, ...] = ("call_1",), **options: Any) -> Result:
    """The result of the run that is resumed after its process died."""

    async def both() -> Result:
        agent = Agent(model=ScriptedModel(script), tools=tools, journal=MemoryJournal(), **options)
        await crashed(agent, *started)
        return await agent.resume("r")

    result = asyncio.run(both())
    assert all(one.same for one in replay(result.trace)), "a replay decides the same"
    return result


SCRIPT: list[Any] = [calls(("transfer", 5)), "done"]


def test_a_probe_that_finds_the_effect_gives_its_output() -> None:
    asked: list[Any] = []

    def find(amount: int, call: ToolContext) -> str:
        asked.append((amount, call.idempotency_key))
        return "transferred before"

    result = after_crash(probed(find), script=SCRIPT)
    assert (result.status, asked, DONE) == ("completed", [(5, "r:call_1")], {})
    assert [fact.output for fact in facts(result, Observed)] == ["transferred before"]
    assert [(fact.happened, fact.by) for fact in facts(result, DoubtSettled)] == [(True, "probe")]


def test_a_probe_may_say_no_more_than_yes() -> None:
    async def find() -> bool:
        return True

    result = after_crash(probed(find), script=SCRIPT)
    [observed] = facts(result, Observed)
    assert (observed.ok, DONE) == (True, {})
    assert "happened" in observed.output


def test_a_probe_that_finds_nothing_has_the_call_run_again_under_its_key() -> None:
    result = after_crash(probed(lambda: False), script=SCRIPT)
    assert DONE == {"r:call_1": 1}
    assert [fact.attempt for fact in facts(result, ActionStarted)] == [1, 2]
    assert [fact.output for fact in facts(result, Observed)] == ["transferred 5"]


@pytest.mark.parametrize(
    ("earlier", "reason"), [("alive", "was still alive"), ("elsewhere", "another machine"), ("unknown", "cannot be")]
)
def test_a_no_is_not_believed_while_the_earlier_process_may_still_act(earlier: str, reason: str) -> None:
    class Locks(MemoryRunLocks):
        """Locks as they are where the earlier process is another one."""

        async def was_elsewhere(self, _run_id: str) -> bool:
            return earlier == "elsewhere"

    async def play(*tools: Any) -> tuple[Result, list[str]]:
        journal = MemoryJournal()
        journal.run_locks = Locks(journal._runs, journal._lock)
        agent = Agent(model=ScriptedModel([calls((tools[0].name, 5)), "done"]), tools=tools, journal=journal)
        await crashed(agent, "call_1")
        if earlier == "alive":  # this process, which no other can end
            journal.run_locks.lock(Lease(run_id="r", fence=1))
        if earlier == "unknown":
            journal.run_locks = None  # type: ignore[assignment]  # as in a journal that cannot tell
        result = await agent.resume("r", take_over=True)
        return result, [request.doubt for request in doubt_requests(result.trace)]

    result, questions = asyncio.run(play(probed(lambda: False)))
    assert (result.status, DONE) == ("waiting", {})
    assert reason in questions[0]
    assert "had not happened yet" in questions[0]
    assert facts(result, Resumed)[0].earlier_holder == earlier
    assert all(step.same for step in replay(result.trace))
    assert asyncio.run(play(put))[0].status == "completed", "the service knows its key"


RELEASED = threading.Event()


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    """Lets a probe that hangs go at the end of its test."""
    RELEASED.clear()
    yield
    RELEASED.set()


def hang(amount: int) -> None:
    RELEASED.wait(60)


async def hang_too(amount: int) -> None:
    await asyncio.Event().wait()


def fail(amount: int) -> None:
    raise OSError("no route")


def leave(amount: int) -> None:
    raise SystemExit


def no_idea(amount: int) -> None:
    return None


@pytest.mark.parametrize("probe", [hang, hang_too, fail, leave, no_idea])
@pytest.mark.parametrize("policy", ["supervised", "headless"])
def test_a_probe_that_hangs_raises_or_cannot_tell_leaves_it_to_a_person(probe: Any, policy: Any) -> None:
    seen: list[ApprovalRequest] = []

    def person(request: ApprovalRequest) -> ApprovalAnswer:
        seen.append(request)
        return ApprovalAnswer(approved=True, settle="repeat", by="ann")

    result = after_crash(probed(probe, timeout_s=0.1), script=SCRIPT, approve=person, policy=policy)
    assert result.status == "completed"
    if policy == "headless":
        assert (seen, DONE) == ([], {})
        [observed] = facts(result, Observed)
        assert observed.error.code == "in_doubt"
    else:
        [request] = seen
        assert (request.tool, request.args) == ("transfer", {"amount": 5})
        assert "attempt 1" in request.doubt
        assert DONE == {"r:call_1": 1}
        assert [(fact.happened, fact.by) for fact in facts(result, DoubtSettled)] == [(None, "probe"), (False, "ann")]


@pytest.mark.parametrize(
    ("answer", "ok", "effects"),
    [
        (True, True, 0),
        (False, False, 0),
        (ApprovalAnswer(approved=True), True, 0),
        (ApprovalAnswer(approved=True, settle="leave"), False, 0),
        (ApprovalAnswer(approved=False, settle="happened"), True, 0),
        (ApprovalAnswer(approved=False, settle="repeat"), True, 1),
    ],
)
def test_a_plain_yes_never_repeats_a_call(answer: Any, ok: bool, effects: int) -> None:
    result = after_crash(send, script=[calls(("send", 1)), "done"], approve=lambda _request: answer)
    [observed] = facts(result, Observed)
    assert (result.status, observed.ok, sum(DONE.values())) == ("completed", ok, effects)
    assert ok or observed.error.code == "in_doubt"


def test_without_an_answer_the_run_waits_and_a_person_may_settle_it_later() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        agent = Agent(model=ScriptedModel([calls(("send", 1)), "done"]), tools=[send], journal=journal)
        await crashed(agent, "call_1")
        for _ in range(2):  # resumed twice: still the same question
            waiting = await agent.resume("r")
            assert (waiting.status, waiting.trace.paused and waiting.trace.paused.waiting_for) == (
                "waiting",
                ("call_1",),
            )
        assert [row.status for row in await journal.runs(status="waiting")] == ["waiting"]
        with pytest.raises(ConfigError, match="call_2 is not in doubt"):
            await settle_doubt(journal, "r", "call_2", "happened")
        with pytest.raises(ConfigError, match="does not settle"):
            await settle_doubt(journal, "r", "call_1", "yes")  # type: ignore[arg-type]  # what a caller may get wrong
        await settle_doubt(journal, "r", "call_1", "happened", by="ann", note="I saw it.")
        with pytest.raises(AlreadyAnswered, match="has its answer: it happened by ann") as raised:
            await settle_doubt(journal, "r", "call_1", "repeat")
        assert (raised.value.by, raised.value.how) == ("ann", "happened")
        done = await agent.resume("r")
        [observed] = facts(done, Observed)
        assert (done.status, observed.ok, DONE) == ("completed", True, {})
        assert "ann" in observed.output
        assert "I saw it." in observed.output
        assert all(one.same for one in replay(done.trace))

    asyncio.run(play())


def test_a_doubt_may_be_settled_before_anybody_resumed_the_run() -> None:
    async def play() -> Result:
        agent = Agent(model=ScriptedModel([calls(("send", 1)), "done"]), tools=[send], journal=MemoryJournal())
        await crashed(agent, "call_1")
        journal: Any = agent.journal
        with pytest.raises(ConfigError, match="may still be under way"):  # its process may be alive
            await settle_doubt(journal, "r", "call_1", "repeat")
        later = FakeClock(time.time() + send.card.timeout_s + 1)
        trace = await settle_doubt(journal, "r", "call_1", "repeat", by="probe", clock=later)
        assert trace.pending["call_1"].settled == DoubtSettled(call_id="call_1", happened=False, by="user")
        return await agent.resume("r")

    result = asyncio.run(play())
    assert (DONE, result.status) == ({"r:call_1": 1}, "completed")
    assert all(one.same for one in replay(result.trace))


def test_several_calls_in_doubt_at_once_each_go_their_own_way() -> None:
    script: list[Any] = [calls(("transfer", 1), ("put", 2), ("send", 3), ("transfer", 4)), "done"]
    found = probed(lambda amount: f"found {amount}" if amount == 1 else False)
    started = ("call_1", "call_2", "call_3", "call_4")
    tools = [one.with_card(parallel=True) for one in (found, put, send)]
    result = after_crash(*tools, script=script, started=started, approve=lambda _request: True)
    outputs = {fact.call_id: fact.output for fact in facts(result, Observed)}
    assert outputs["call_1"] == "found 1"
    assert outputs["call_2"] == "put 2, attempt 2"
    assert "user says so" in outputs["call_3"]
    assert outputs["call_4"] == "transferred 4"
    assert DONE == {"r:call_2": 1, "r:call_4": 1}


def test_in_doubt_again_after_the_repeat_is_looked_into_again_and_comes_to_an_end() -> None:
    probes: list[int] = []

    def never(amount: int) -> bool:
        probes.append(amount)
        return False

    @tool(tier="draft", probe=never)
    async def transfer(amount: int) -> str:
        """Give no sign."""
        raise ToolTimeout("no sign")

    result = Agent(model=ScriptedModel(SCRIPT), tools=[transfer]).run_sync("x")
    assert [fact.attempt for fact in facts(result, ActionStarted)] == [1, 2, 3, 4, 5]
    [observed] = facts(result, Observed)
    assert (len(probes), observed.error.code, result.status) == (5, "not_done", "completed")
    assert all(one.same for one in replay(result.trace))


def test_a_process_that_dies_in_each_attempt_comes_to_an_end_too() -> None:
    async def play() -> Result:
        agent = Agent(model=ScriptedModel([calls(("put", 1)), "done"]), tools=[put], journal=MemoryJournal())
        await crashed(agent, "call_1")
        journal = agent.journal
        assert isinstance(journal, MemoryJournal)
        lease = await journal.acquire("r")
        seq = len(await journal.load("r"))
        again = [ActionStarted(call_id="call_1", idempotency_key="r:call_1", attempt=n) for n in range(2, 6)]
        await journal.append(lease, [Event(seq + n, 0.0, fact) for n, fact in enumerate(again)])
        return await agent.resume("r")

    result = asyncio.run(play())
    [observed] = facts(result, Observed)
    assert (observed.error.code, DONE) == ("in_doubt", {})


def test_a_crash_between_the_doubt_and_its_settlement_changes_nothing() -> None:
    async def play(events: int) -> Result:
        agent = Agent(model=ScriptedModel(SCRIPT), tools=[probed(lambda: False)], journal=MemoryJournal())
        await crashed(agent, "call_1")
        journal = agent.journal
        assert isinstance(journal, MemoryJournal)
        whole = (await agent.resume("r")).trace.events
        DONE.clear()
        await journal.append(await journal.create("cut"), whole[:events])
        return await agent.resume("cut")

    length = len(after_crash(probed(lambda: False), script=SCRIPT).trace)
    for events in range(4, length):
        result = asyncio.run(play(events))
        assert result.status == "completed"
        assert [fact.output for fact in facts(result, Observed)] == ["transferred 5"]


def test_a_sync_tool_that_may_still_be_running_is_in_doubt_and_not_repeated_on_the_probes_word() -> None:
    go_on = threading.Event()
    seen: list[str] = []

    def not_yet(amount: int) -> bool:
        return bool(DONE)

    @tool(tier="draft", probe=not_yet, timeout_s=0.05)
    def transfer(amount: int, *, call: ToolContext) -> str:
        """Be slow."""
        go_on.wait(20)
        did(call)
        return "late"

    def person(request: ApprovalRequest) -> ApprovalAnswer:
        seen.append(request.doubt)
        go_on.set()
        return ApprovalAnswer(approved=True, settle="happened", by="ann")

    result = Agent(model=ScriptedModel(SCRIPT), tools=[transfer], approve=person).run_sync("x")
    assert [fact.reason for fact in facts(result, InDoubt)] == ["timeout"]
    assert "still running" in seen[0]
    [observed] = facts(result, Observed)
    assert observed.ok
    assert result.trace.working_s > 0.04
    assert all(one.same for one in replay(result.trace))


def test_an_idempotent_call_that_gives_no_result_in_time_is_repeated_once_and_never_called_failed() -> None:
    """S0-32: the second attempt has the key of the first."""
    attempts: list[tuple[int, str]] = []

    @tool(tier="draft", idempotent=True, timeout_s=0.05)
    async def put(amount: int, *, call: ToolContext) -> str:
        """Hang."""
        attempts.append((call.attempt, call.idempotency_key))
        await asyncio.Event().wait()
        return ""

    result = Agent(model=ScriptedModel([calls(("put", 1)), "done"]), tools=[put]).run_sync("x")
    assert [attempt for attempt, _ in attempts] == [1, 2]
    assert len({key for _, key in attempts}) == 1
    [observed] = facts(result, Observed)
    assert (observed.error.code, result.status) == ("in_doubt", "completed")
    prompt = result.trace.view("conversation/react", lambda: Conversation("react", [], tools=True, reasons=True))
    told = " ".join(message.content for message in prompt.messages[-2:])
    assert "in doubt" in told
    assert "fail" not in told


def test_the_end_of_the_runs_time_is_no_reason_to_wait_for_a_person() -> None:
    @tool(tier="draft")
    async def send(amount: int) -> str:
        """Hang."""
        await asyncio.Event().wait()
        return ""

    limits = Limits(max_wall_s=0.2)
    result = Agent(model=ScriptedModel([calls(("send", 1)), "so far"]), tools=[send], limits=limits).run_sync("x")
    assert (result.status, facts(result, Observed)[0].error.code) == ("budget_exceeded", "in_doubt")


def test_keys_are_of_the_recorded_call_and_not_of_its_arguments() -> None:
    """S0-32, S0-38."""
    script: list[Any] = [calls(("send", 1)), calls(("send", 1)), "done"]
    result = Agent(model=ScriptedModel(script), tools=[send]).run_sync("x")
    keys = [fact.idempotency_key for fact in facts(result, ActionStarted)]
    assert keys == [f"{result.run_id}:call_1", f"{result.run_id}:call_2"]
    assert list(DONE.values()) == [1, 1]


def test_the_doubt_is_told_in_the_runs_language() -> None:
    result = after_crash(
        send, script=[calls(("send", 1)), "好"], language="zh", approve=lambda request: "结果" not in request.doubt
    )
    assert "没有重复执行" in facts(result, Observed)[0].error.message


def test_what_a_probe_may_ask_for() -> None:
    def by_iban(iban: str) -> bool:
        return bool(iban)

    def by_all(**args: Any) -> bool:
        return bool(args)

    with pytest.raises(ToolDefinitionError, match="'iban'"):
        probed(by_iban)
    assert probed(by_all).card.probes
    assert send.card.probes is False


def test_the_run_stays_readable_for_whoever_has_no_model(tmp_path: Any) -> None:
    """The new facts survive SQLite."""

    async def play() -> Trace:
        async with SqliteJournal(tmp_path / "r.db") as journal:
            kept: Journal = journal
            agent = Agent(
                model=ScriptedModel([calls(("send", 1)), "done"]),
                tools=[send],
                journal=kept,
                approve=lambda _request: True,
                policy="supervised",
            )
            whole = (await agent.run("x", run_id="whole")).trace.events
            cut = next(n for n, event in enumerate(whole) if isinstance(event.fact, ActionStarted)) + 1
            await journal.append(await journal.create("r"), whole[:cut])
            await agent.resume("r")
            return Trace("r", await journal.load("r"))

    trace = asyncio.run(play())
    assert [event.kind for event in trace.events][-6:-2] == ["resumed", "in_doubt", "doubt_settled", "observed"]
    assert isinstance(trace.events[-2].fact, ModelReplied)


def test_a_doubt_inside_an_agent_has_the_outer_run_wait_and_goes_on_when_it_is_settled() -> None:
    stuck: list[bool] = []

    @tool(tier="draft")
    async def mail(amount: int) -> str:
        """Give no sign."""
        stuck.append(True)
        raise ToolTimeout("no sign")

    async def play() -> Result:
        journal = MemoryJournal()
        inner = Agent(model=ScriptedModel([calls(("mail", 1)), "mailed"]), tools=[mail])
        script: list[Any] = [{"tool_calls": [{"name": "poster", "args": {"task": "Mail it."}}]}, "done"]
        poster = inner.as_tool(name="poster", purpose="Mail.", tier="draft")
        agent = Agent(model=ScriptedModel(script), tools=[poster], journal=journal, approved_tiers=("draft",))
        waiting = await agent.run("Mail it.", run_id="r", on_event=None)
        assert (waiting.status, "mail (call_1)" in waiting.reason) == ("waiting", True)
        await settle_doubt(journal, "r.1", "call_1", "happened")
        return await agent.resume("r")

    result = asyncio.run(play())
    assert (result.status, len(stuck)) == ("completed", 1)
    assert facts(result, Observed)[-1].output == "mailed"


def test_a_tool_that_can_no_longer_be_repeated_does_not_go_on_with_an_older_run() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        agent = Agent(model=ScriptedModel([calls(("put", 1)), "done"]), tools=[put], journal=journal)
        await crashed(agent, "call_1")
        other = Agent(model=ScriptedModel(["done"]), tools=[put.with_card(idempotent=False)], journal=journal)
        with pytest.raises(ConfigError, match="cannot be any more"):
            await other.resume("r")

    asyncio.run(play())


@pytest.mark.parametrize("nothing", [0, "", [], {}])
def test_a_probe_that_gives_something_empty_has_not_said_that_it_happened(nothing: Any) -> None:
    result = after_crash(probed(lambda: nothing), script=SCRIPT)
    assert result.status == "waiting"
    assert [fact.happened for fact in facts(result, DoubtSettled)] == [None]


def test_what_an_approver_does_to_a_question_about_a_doubt_changes_nothing() -> None:
    def person(request: ApprovalRequest) -> ApprovalAnswer:
        if request.doubt:
            request.args["amount"] = 1_000_000  # type: ignore[index]
        return ApprovalAnswer(approved=True, settle="repeat")

    result = after_crash(send, script=[calls(("send", 1)), "done"], approve=person)
    assert [fact.output for fact in facts(result, Observed)] == ["sent 1"]


def test_an_async_call_that_was_told_to_stop_may_go_on_in_a_thread() -> None:
    world: list[str] = []
    probed = threading.Event()

    def has_ended() -> bool:
        ended = "end" in world
        probed.set()
        return ended

    @tool(tier="draft", timeout_s=0.1, probe=has_ended)
    async def transfer(amount: int) -> str:
        """Transfer."""

        def work() -> str:
            world.append("begin")
            probed.wait(60)
            world.append("end")
            return "done"

        return await asyncio.to_thread(work)

    result = Agent(model=ScriptedModel(SCRIPT, strict=False), tools=[transfer]).run_sync("x")
    assert result.status == "waiting"
    assert world == ["begin", "end"], "not begun once more while the first goes on"


@pytest.mark.parametrize("odd", [{"by": None}, {"note": 5}, {"note": None}, {"settle": "maybe"}])
def test_an_answer_that_could_not_be_read_again_is_none(odd: dict[str, Any]) -> None:
    result = after_crash(
        send, script=[calls(("send", 1)), "done"], approve=lambda _: ApprovalAnswer(approved=True, **odd)
    )
    assert (result.status, DONE) == ("waiting", {})
