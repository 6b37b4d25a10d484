"""The agent in use: async, sync, streaming, resumed; every failure of the world is an observation or a stated end."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.scripting import call

from taoloop import (
    Agent,
    ApprovalAnswer,
    ApprovalRequest,
    Limits,
    MemoryJournal,
    ScriptedModel,
    ToolError,
    tool,
)
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ActionRequested, Finished, LimitReached, ModelReplied, Observed
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.core.text import RUN_LANGUAGE
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, RunNotFound, RunNotResumable, ScriptUnused, UnknownName

PATIENCE_S = 20


@tool(tier="read")
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool(tier="read")
def fail() -> str:
    """Fail in its own words."""
    raise ToolError("The shelf is empty.", code="empty_shelf", hint="Ask for another shelf.")


@tool(tier="read")
def crash() -> str:
    """Raise what nobody expects."""
    raise KeyError("boom")


@tool(tier="write")
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def run(replies: list[Any], *tools: Any, **options: Any) -> Result:
    return Agent(model=ScriptedModel(replies), tools=tools or (add,), **options).run_sync("do it")


def observations(result: Result) -> list[Observed]:
    return [event.fact for event in result.trace.events if isinstance(event.fact, Observed)]


def test_a_run_gives_answer_status_and_trace() -> None:
    """S2-5, S2-6."""
    result = run([call("add", a=2, b=3), "5"])
    assert (result.status, result.answer) == ("completed", "5")
    assert [entry.kind for entry in result.entries] == ["Action", "Observation", "Final"]


def test_exactly_one_finished_event_ends_every_run() -> None:
    """S0-22."""
    for replies in (["5"], [call("add", a=1, b=1)], ["", "", ""], [call("add", a=1, b=1)] * 9):
        result = run(replies)
        finished = [event for event in result.trace.events if isinstance(event.fact, Finished)]
        assert finished == [result.trace.events[-1]], result.status
        assert [entry.kind for entry in result.entries].count("Final") == 1


@pytest.mark.parametrize(
    ("replies", "tools", "code", "text"),
    [
        ([call("fail"), "x"], (fail,), "empty_shelf", "shelf is empty"),
        ([call("crash"), "x"], (crash,), "exception", "KeyError"),
        ([call("nothing"), "x"], (add,), "unknown_tool", "nothing"),
        ([call("add", a=1), "x"], (add,), "invalid_arguments", "'b' is missing"),
        ([call("add", a=1, b="many"), "x"], (add,), "invalid_arguments", "integer"),
        ([call("add", a=1, b=1, dry_run=True), "x"], (add,), "invalid_arguments", "dry_run"),
    ],
)
def test_every_failure_of_a_call_is_an_observation(replies: list[Any], tools: Any, code: str, text: str) -> None:
    """S2-45, S4-57 (traps: an exception of a tool or of the validation leaves the printed loop).

    S0-17, S2-10, S3-33, S3-35, S4-30.
    """
    result = run(replies, *tools)
    assert result.status == "completed"
    [observed] = observations(result)
    assert observed.error is not None
    assert (observed.ok, observed.error.code) == (False, code)
    assert text in observed.error.message


def test_a_tool_that_exits_the_program_does_not() -> None:
    @tool(tier="read")
    def leave() -> str:
        """Try to leave."""
        raise SystemExit(3)

    result = run([call("leave"), "still here"], leave)
    assert result.answer == "still here"


def test_an_async_tool_that_cancels_itself_fails_alone() -> None:
    @tool(tier="read")
    async def give_up() -> str:
        """Raise a cancellation of its own."""
        raise asyncio.CancelledError

    assert run([call("give_up"), "fine"], give_up).answer == "fine"


def test_a_sync_tool_that_hangs_is_left_behind_after_its_time() -> None:
    stuck = threading.Event()

    @tool(timeout_s=0.05, tier="draft")
    def hang() -> str:
        """Hang until the test is over."""
        stuck.wait(PATIENCE_S)
        return "late"

    result = run([call("hang"), "went on"], hang, policy="headless")
    stuck.set()
    [observed] = observations(result)
    assert observed.error is not None
    assert observed.error.code == "in_doubt"
    assert "may or may not have happened" in observed.error.message
    assert result.answer == "went on"


def test_an_async_tool_that_hangs_is_stopped_after_its_time() -> None:
    @tool(timeout_s=0.05, tier="read")
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return "late"

    [observed] = observations(run([call("hang"), "went on"], hang))
    assert observed.error is not None
    assert (observed.error.code, observed.error.retryable) == ("timeout", True)


def test_a_result_that_cannot_be_serialised_is_told_and_the_call_counts_as_made() -> None:
    @tool(tier="draft")
    def odd() -> Any:
        """Return what JSON does not know."""
        return object()

    [observed] = observations(run([call("odd"), "x"], odd))
    assert observed.error is not None
    assert observed.error.code == "invalid_output"
    assert "was carried out" in observed.error.hint


def test_a_result_against_the_declared_type_is_told() -> None:
    @tool(tier="draft")
    def wrong() -> int:
        """Promise a number, return a text."""
        return "many"  # type: ignore[return-value]  # the point of the test

    [observed] = observations(run([call("wrong"), "x"], wrong))
    assert observed.error is not None
    assert observed.error.code == "invalid_output"


def test_a_long_output_is_shown_cut_and_kept_whole() -> None:
    """S2-47, S2-28 (trap: raw observations of any length go into the next prompt)."""

    @tool(tier="read")
    def flood() -> list[int]:
        """Return five million characters."""
        return list(range(700_000))

    shown: list[ModelRequest] = []

    class Watching(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            shown.append(request)
            return await super().complete(request)

    script: list[Any] = [call("flood"), call("read_observation", artifact="obs_call_1", search="699999"), "x"]
    result = Agent(model=Watching(script), tools=[flood]).run_sync("count")
    first, second = observations(result)
    assert first.artifact == "obs_call_1"
    assert first.size_chars > 4_000_000
    assert len(first.output) <= 4_000
    assert "699999" in second.output
    assert sum(len(message.content) for message in shown[-1].messages) < 20_000
    assert "read_observation" in shown[1].messages[-1].content


def test_parallel_reads_of_one_decision_run_at_the_same_time() -> None:
    meeting: list[asyncio.Event] = [asyncio.Event(), asyncio.Event()]

    @tool(tier="read", timeout_s=PATIENCE_S)
    async def meet(who: int) -> str:
        """Wait for the other call."""
        meeting[who].set()
        await meeting[1 - who].wait()
        return f"{who} met"

    both = {"tool_calls": [{"name": "meet", "args": {"who": 0}}, {"name": "meet", "args": {"who": 1}}]}
    result = run([both, "x"], meet)
    assert [observed.ok for observed in observations(result)] == [True, True]


def test_three_errors_in_a_row_end_the_run_with_that_reason() -> None:
    """S0-46: the printed loop reports 'step limit' when it stopped because of tool errors."""
    result = run([call("fail"), call("crash"), call("nothing")], fail, crash)
    assert (result.status, result.answer) == ("too_many_errors", None)
    assert "3 errors in a row" in result.reason


def test_a_limit_ends_gracefully_with_an_answer_from_what_there_is() -> None:
    result = run([call("add", a=1, b=1), "so far: 2"], limits=Limits(max_steps=1))
    assert (result.status, result.answer) == ("max_steps_exceeded", "so far: 2")


@pytest.mark.parametrize("steps", [5, 10])
def test_the_limit_of_steps_is_the_one_that_was_asked_for(steps: int) -> None:
    """S3-30: 10 or 5 there; our default is the 6 of S2-8 and S4-11."""
    result = run([call("add", a=n, b=1) for n in range(steps)] + ["enough"], max_steps=steps)
    assert (result.status, result.trace.step_count) == ("max_steps_exceeded", steps)
    assert Limits().max_steps == 6


def test_a_run_may_be_resumed_with_a_larger_limit() -> None:
    agent = Agent(
        model=ScriptedModel([call("add", a=1, b=1), "so far", call("add", a=2, b=2), "4"]),
        tools=[add],
        limits=Limits(max_steps=1),
    )
    first = agent.run_sync("add")
    second = agent.resume_sync(first.run_id, max_steps=3)
    assert (first.status, second.status, second.answer) == ("max_steps_exceeded", "completed", "4")
    assert second.run_id == first.run_id
    assert len(second.trace.steps) == 3, "its work was kept: one step before, two after"
    with pytest.raises(RunNotResumable):
        agent.resume_sync(first.run_id)


def test_an_unknown_run_cannot_be_resumed() -> None:
    with pytest.raises(RunNotFound, match="nope"):
        Agent(model=ScriptedModel([])).resume_sync("nope")


def test_a_call_limit_is_exact_also_within_one_decision() -> None:
    three = {"tool_calls": [{"name": "add", "args": {"a": n, "b": 0}} for n in range(3)]}
    result = run([three, "enough"], limits=Limits(max_tool_calls=2))
    assert [observed.ok for observed in observations(result)] == [False, True, True]
    assert (result.status, result.answer) == ("budget_exceeded", "enough")


def test_the_same_action_with_the_same_result_ends_the_run_at_the_fifth() -> None:
    """S2-26."""
    result = run([call("add", a=1, b=1)] * 9, limits=Limits(max_steps=None))
    assert result.status == "repeated_action"
    assert len(observations(result)) == 5


def test_a_write_waits_for_a_person_and_goes_on_when_allowed() -> None:
    """S0-37, S4-55 (trap: write_file overwrites without approval)."""
    journal = MemoryJournal()
    script = ScriptedModel([call("pay", amount=5), "done"])
    waiting = Agent(model=script, tools=[pay], journal=journal).run_sync("pay the bill")
    assert waiting.status == "waiting"
    assert not observations(waiting)
    questions: list[ApprovalRequest] = []

    def allow(question: ApprovalRequest) -> bool:
        questions.append(question)
        return True

    done = Agent(model=script, tools=[pay], journal=journal, approve=allow).resume_sync(waiting.run_id)
    assert (done.status, observations(done)[0].output) == ("completed", "paid 5")
    assert (questions[0].tool, dict(questions[0].args)) == ("pay", {"amount": 5})


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        (ApprovalAnswer(approved=True, by="ann", args={"amount": 3}), "paid 3"),
        (ApprovalAnswer(approved=False, by="ann", note="too much"), ""),
    ],
)
def test_a_person_may_edit_or_refuse_a_call(answer: ApprovalAnswer, output: str) -> None:
    result = run([call("pay", amount=5), "done"], pay, approve=lambda _question: answer)
    assert observations(result)[0].output == output
    assert result.status == "completed"


def test_the_operator_may_allow_a_tier_ahead_of_time() -> None:
    result = run([call("pay", amount=5), "done"], pay, approved_tiers=("write",))
    assert observations(result)[0].output == "paid 5"
    [requested] = [event.fact for event in result.trace.events if isinstance(event.fact, ActionRequested)]
    assert "in advance" in requested.reasons[0]


def test_a_model_that_fails_is_a_stated_end() -> None:
    class Broken(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            raise RuntimeError(f"out of order at turn {request.turn}")

    result = Agent(model=Broken([])).run_sync("x")
    assert result.status == "model_failed"
    assert "out of order" in result.reason


def test_a_model_that_hangs_is_a_stated_end() -> None:
    class Silent(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            await asyncio.Event().wait()
            raise AssertionError(request)

    result = Agent(model=Silent([]), model_timeout_s=0.05).run_sync("x")
    assert result.status == "model_failed"
    assert "no reply within 0.05 s" in result.reason


def test_a_failing_last_turn_keeps_the_status_of_the_limit() -> None:
    result = run([call("add", a=1, b=1)], limits=Limits(max_steps=1))
    assert (result.status, result.answer) == ("max_steps_exceeded", None)
    assert "gave no answer" in result.reason


def test_surplus_and_unused_replies_are_errors() -> None:
    assert run([call("add", a=1, b=1)]).status == "model_failed"
    with pytest.raises(ScriptUnused, match="has 2"):
        run(["5", "never asked for"])


def test_a_limit_on_time_cuts_a_tool_and_ends_the_run() -> None:
    @tool(tier="read")
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return "late"

    result = run([call("hang"), "so far"], hang, limits=Limits(max_working_s=0.05))
    assert (result.status, result.answer) == ("budget_exceeded", "so far")
    [reached] = [event.fact for event in result.trace.events if isinstance(event.fact, LimitReached)]
    assert reached.limit == "max_working_s"


def test_run_sync_works_inside_a_running_loop() -> None:
    async def notebook() -> Result:
        return run([call("add", a=2, b=3), "5"])

    assert asyncio.run(notebook()).answer == "5"


def test_a_stream_gives_every_event_and_ends_with_finished() -> None:
    async def collect() -> list[str]:
        agent = Agent(model=ScriptedModel([call("add", a=2, b=3), "5"]), tools=[add])
        return [event.kind async for event in agent.stream("add")]

    kinds = asyncio.run(collect())
    assert kinds == [
        "run_started",
        "model_replied",
        "action_requested",
        "observed",
        "model_replied",
        "finished",
    ]


def test_leaving_a_stream_early_stops_the_run() -> None:
    journal = MemoryJournal()

    async def leave() -> str:
        agent = Agent(model=ScriptedModel([call("add", a=2, b=3), "5"]), tools=[add], journal=journal)
        stream = agent.stream("add", run_id="r1")
        async for _event in stream:
            break
        await stream.aclose()
        return (await journal.load("r1"))[-1].kind

    assert asyncio.run(leave()) == "finished"


def test_a_cancelled_run_is_stopped_and_can_be_resumed() -> None:
    journal = MemoryJournal()
    started = asyncio.Event()

    @tool(tier="read")
    async def slow(n: int) -> int:
        """Take its time at the first call only."""
        if not started.is_set():
            started.set()
            await asyncio.Event().wait()
        return n

    agent = Agent(model=ScriptedModel([call("slow", n=7), "7"]), tools=[slow], journal=journal)

    async def stop_and_resume() -> tuple[str, Result]:
        running = asyncio.create_task(agent.run("x", run_id="r1"))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        events = await journal.load("r1")
        assert isinstance(events[-1].fact, Finished)
        return events[-1].fact.status, await agent.resume("r1")

    status, resumed = asyncio.run(stop_and_resume())
    assert status == "stopped"
    assert (resumed.status, resumed.answer) == ("completed", "7")


def test_an_effect_that_was_cut_off_is_in_doubt_after_the_resume() -> None:
    journal = MemoryJournal()
    started = asyncio.Event()
    paid: list[int] = []

    @tool(tier="draft")
    async def transfer(amount: int) -> str:
        """Have an effect, then hang."""
        paid.append(amount)
        started.set()
        await asyncio.Event().wait()
        return "ok"

    script = ScriptedModel([call("transfer", amount=7), "unknown"])
    agent = Agent(model=script, tools=[transfer], journal=journal, policy="headless")

    async def stop_and_resume() -> Result:
        running = asyncio.create_task(agent.run("x", run_id="r1"))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await agent.resume("r1")

    [observed] = observations(asyncio.run(stop_and_resume()))
    assert observed.error is not None
    assert observed.error.code == "in_doubt"
    assert paid == [7], "it was not repeated"


def test_one_agent_serves_many_runs_at_once() -> None:
    agent = Agent(model=ScriptedModel([call("add", a=2, b=3), "5"]), tools=[add])

    async def many() -> list[Result]:
        return list(await asyncio.gather(*(agent.run(f"task {n}") for n in range(50))))

    results = asyncio.run(many())
    assert {result.answer for result in results} == {"5"}
    assert len({result.run_id for result in results}) == 50
    assert [result.trace.task for result in results] == [f"task {n}" for n in range(50)]


def test_names_that_do_not_exist_are_refused_before_anything_starts() -> None:
    journal = MemoryJournal()
    for wrong in ({"dialect": "yaml"}, {"strategy": "magic"}, {"tools": ["teleport"]}, {"model": "gpt"}):
        options: dict[str, Any] = {"model": ScriptedModel([]), "journal": journal, **wrong}
        with pytest.raises(UnknownName):
            Agent(**options).run_sync("x")
    assert asyncio.run(journal.runs()) == []


def test_an_empty_task_is_refused() -> None:
    for task in ("  ", "", None, 5):
        with pytest.raises(ConfigError, match="The task is"):
            Agent(model=ScriptedModel([])).run_sync(task)  # type: ignore[arg-type]  # what a caller may get wrong


def test_the_language_follows_the_task() -> None:
    seen: list[str] = []

    class Watching(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            seen.append(request.messages[0].content)
            return await super().complete(request)

    agent = Agent(model=Watching(["好"]), dialect="native")
    assert agent.run_sync("现在几点?").trace.agent.language == "zh"
    assert agent.run_sync("What time is it?").trace.agent.language == "en"
    assert seen[0] != seen[1]


def test_a_path_keeps_the_trace_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    agent = Agent(model=ScriptedModel([call("add", a=2, b=3), "5"]), tools=[add], journal=path)
    result = agent.run_sync("add", max_steps=3)
    again = Agent(model=ScriptedModel([]), tools=[add], journal=path)
    with pytest.raises(RunNotResumable):
        again.resume_sync(result.run_id)


def test_lone_surrogates_from_a_model_or_a_tool_do_not_break_the_trace(tmp_path: Path) -> None:
    @tool(tier="read")
    def odd(text: str) -> str:
        """Return half a character."""
        return text + "\ud800"

    script: list[Any] = [call("odd", text="a"), call("odd", text="\udfff"), "ends with \ud83d"]
    result = Agent(model=ScriptedModel(script), tools=[odd], journal=tmp_path / "r.db").run_sync("half \ud83d")
    assert result.status == "completed"
    assert observations(result)[0].output == "a\ufffd"


def test_verbose_prints_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    """S3-29, S3-32."""
    script = ['Thought: I add.\nAction: add\nAction Input: {"a": 2, "b": 3}', "Final Answer: 5"]
    result = Agent(model=ScriptedModel(script), tools=[add]).run_sync("add", max_steps=2, verbose=True)
    trajectory = 'Thought: I add.\nAction: add\nAction Input: {"a": 2, "b": 3}\nObservation: 5\nFinal Answer: 5'
    assert (result.answer, result.text) == ("5", trajectory)
    printed = capsys.readouterr().out
    assert "[step 1] Thought: I add." in printed
    assert 'Action: add\n  Action Input: {"a": 2, "b": 3}' in printed
    assert "[completed] 5" in printed


def test_what_the_model_said_is_in_the_trace_whole() -> None:
    """S0-25."""
    result = run(["Thought: t\nFinal Answer: 5"])
    [replied] = [event.fact for event in result.trace.events if isinstance(event.fact, ModelReplied)]
    assert replied.text == "Thought: t\nFinal Answer: 5"


def test_a_tool_that_has_changed_since_the_run_began_is_an_observation() -> None:
    journal = MemoryJournal()
    script = ScriptedModel([call("pay", amount=5), "done"])
    waiting = Agent(model=script, tools=[pay], journal=journal).run_sync("pay the bill")

    @tool(tier="write", name="pay")
    def pay_by_name(name: str) -> str:
        """Pay somebody."""
        return name

    agent = Agent(model=script, tools=[pay_by_name], journal=journal, approve=lambda _question: True)
    [observed] = observations(agent.resume_sync(waiting.run_id))
    assert observed.error is not None
    assert observed.error.code == "invalid_arguments"


def test_a_run_may_be_held_to_some_of_the_agents_tools() -> None:
    """S4-13: a whitelist bounds the tools that a run may call."""
    script = ScriptedModel([call("crash"), call("add", a=1, b=1), "2"])
    agent = Agent(model=script, tools=[add, crash])
    result = agent.run_sync("add", allow=["add"])
    refused, added = observations(result)
    assert refused.error is not None
    assert (refused.error.code, added.output) == ("unknown_tool", "2")
    with pytest.raises(UnknownName, match="teleport"):
        agent.run_sync("add", allow=["teleport"])


def test_a_tier_that_is_allowed_at_the_resume_covers_the_call_that_waits() -> None:
    agent = Agent(model=ScriptedModel([call("pay", amount=5), "done"]), tools=[pay])
    waiting = agent.run_sync("pay the bill")
    done = agent.resume_sync(waiting.run_id, approved_tiers=("write",))
    assert (done.status, observations(done)[0].output) == ("completed", "paid 5")


def test_a_budget_that_cannot_be_counted_is_not_spent() -> None:
    unpriced = ModelReply(text="", tool_calls=(ToolCallText(name="add", arguments='{"a": 1, "b": 1}'),))
    result = run([unpriced, unpriced], limits=Limits(max_cost_usd=1.0))
    assert (result.status, result.answer) == ("budget_exceeded", None)
    assert "price of the model is unknown" in result.reason


def test_a_workspace_that_cannot_be_used_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="/proc/nope"):
        Agent(model=ScriptedModel([]), tools=["read_file"], workspace="/proc/nope").run_sync("x")


@pytest.mark.parametrize(("task", "language"), [("What time is it?", "en"), ("现在几点？", "zh")])
def test_tools_know_the_language_of_their_run(task: str, language: str) -> None:
    spoken: list[str] = []

    @tool(tier="read")
    def in_a_thread() -> str:
        """Run in a thread of its own."""
        spoken.append(RUN_LANGUAGE.get())
        return "ok"

    @tool(tier="read")
    async def in_the_loop() -> str:
        """Run in the event loop."""
        spoken.append(RUN_LANGUAGE.get())
        return "ok"

    calls = [{"name": "in_a_thread", "args": {}}, {"name": "in_the_loop", "args": {}}]
    result = Agent(model=[{"tool_calls": calls}, "done"], tools=[in_a_thread, in_the_loop]).run_sync(task)
    assert result.status == "completed", result
    assert spoken == [language, language]
    assert RUN_LANGUAGE.get() == "en"
