"""Cases in which users, models, tools and people do what they should not; each has a stated, recorded end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from tests.scripting import calls

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, Limits, MemoryJournal, ScriptedModel, ToolError, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, Observed
from taoloop.core.message import ModelReply, Usage
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError
from taoloop.runtime.after.replay import replay


@tool(tier="read")
def look(n: int = 0) -> int:
    """Look at a number."""
    return n


@tool(tier="write")
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def run(replies: list[Any], *tools: Any, **options: Any) -> Result:
    result = Agent(model=ScriptedModel(replies, strict=False), tools=tools, **options).run_sync("do it")
    assert all(one.same for one in replay(result.trace)), "a replay decides the same"
    return result


def observations(result: Result) -> list[Observed]:
    return [event.fact for event in result.trace if isinstance(event.fact, Observed)]


@pytest.mark.parametrize("strategy", ["standard", "reason_only"])
@pytest.mark.parametrize("dialect", ["native", "text"])
def test_a_strategy_without_tools_runs_none(strategy: str, dialect: str) -> None:
    """S4-4, S4-5: whatever the model tries."""
    reply: Any = calls(("look", {"n": 1})) if dialect == "native" else "Action: look\nAction Input: {}"
    done = "done" if dialect == "native" else "Final Answer: done"
    result = run([reply, done], look, strategy=strategy, dialect=dialect)
    [observed] = observations(result)
    assert observed.error is not None
    assert (observed.error.code, result.trace.tool_calls) == ("unknown_tool", 0)
    assert "no tools" in observed.error.hint


def test_several_answers_to_one_question_replay() -> None:
    answers = iter([True, False, None])
    both = calls(("pay", {"amount": 1}), ("pay", {"amount": 2}), ("pay", {"amount": 3}))
    result = run([both, "done"], pay, approve=lambda _question: next(answers))
    assert result.status == "waiting"
    assert list(result.trace.pending) == ["call_3"]


def test_a_model_cut_off_by_the_runs_time_limit_is_no_model_failure() -> None:
    class Slow(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            if request.purpose == "decide":
                await asyncio.Event().wait()
            return ModelReply(text="what I have")

    result = Agent(model=Slow([]), limits=Limits(max_wall_s=0.05)).run_sync("x")
    assert (result.status, result.trace.finished and result.trace.finished.limit) == ("budget_exceeded", "max_wall_s")
    assert result.answer == "what I have"
    assert all(one.same for one in replay(result.trace))


class NoInitError(ToolError):
    """A subclass that never calls its parent."""

    def __init__(self) -> None:
        pass


def raises(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(
    "error",
    [
        ToolError("no hint", hint=None),  # type: ignore[arg-type]  # what a tool's author may get wrong
        ToolError(ValueError("x")),  # type: ignore[arg-type]  # likewise
        ToolError("odd code", code=404),  # type: ignore[arg-type]  # likewise
        NoInitError(),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration(5),
        RecursionError(),
    ],
)
def test_whatever_a_tool_raises_is_an_observation(error: BaseException) -> None:
    act = raises(error)

    @tool(tier="read")
    def explode() -> None:
        """Raise it."""
        act()

    result = run([calls(("explode", {})), "went on"], explode)
    assert (result.status, observations(result)[0].ok) == ("completed", False)


def fails(_question: ApprovalRequest) -> bool:
    raise ValueError("no terminal")


@pytest.mark.parametrize("approve", [fails, lambda _question: "yes", lambda _question: 1])
def test_an_approver_that_gives_no_answer_leaves_the_run_waiting(approve: Any) -> None:
    result = run([calls(("pay", {"amount": 1})), "done"], pay, approve=approve)
    assert result.status == "waiting"


def test_an_approver_that_gives_odd_arguments_leaves_the_run_waiting() -> None:
    odd = ApprovalAnswer(approved=True, args=[1])  # type: ignore[arg-type]  # what an approver may get wrong
    result = run([calls(("pay", {"amount": 1})), "done"], pay, approve=lambda _question: odd)
    assert result.status == "waiting"
    assert not observations(result)


def test_an_approver_cannot_change_the_call_behind_the_runs_back() -> None:
    def meddle(question: ApprovalRequest) -> bool:
        question.args["amount"] = 1_000_000  # type: ignore[index]  # a read-only view by type, a dict in fact
        return True

    result = run([calls(("pay", {"amount": 1})), "done"], pay, approve=meddle)
    assert observations(result)[0].output == "paid 1"


@pytest.mark.parametrize(
    "reply",
    [
        "a text",
        ModelReply(text=None),  # type: ignore[arg-type]  # what a model's author may get wrong
        ModelReply(text="x", cost_usd=Decimal("0.1")),  # type: ignore[arg-type]  # likewise
        ModelReply(text="x", cost_usd=float("nan")),
        ModelReply(text="x", usage=None),  # type: ignore[arg-type]  # likewise
        ModelReply(text="x", usage=Usage(input_tokens=1.5)),  # type: ignore[arg-type]  # likewise
        ModelReply(text="x", model=None),  # type: ignore[arg-type]  # likewise
        asyncio.CancelledError(),
        SystemExit(3),
    ],
)
def test_a_model_that_hands_over_nonsense_is_a_stated_end(reply: Any) -> None:
    class Odd(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            if isinstance(reply, BaseException):
                raise reply
            assert request.turn == 0
            answer: ModelReply = reply
            return answer

    result = Agent(model=Odd([])).run_sync("x")
    assert (result.status, result.answer) == ("model_failed", None)


def test_a_listener_that_fails_does_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def listener(event: Event) -> None:
        raise ValueError(event.kind)

    result = Agent(model=["done"]).run_sync("x", on_event=listener)
    assert result.status == "completed"
    assert "a listener of run" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"max_steps": 2.5},
        {"max_steps": float("inf")},
        {"max_steps": True},
        {"approved_tiers": ("writ",)},
        {"approved_tiers": "write"},
        {"name": None},
        {"repair_turns": 1.5},
        {"repair_turns": -1},
        {"limits": {"max_steps": 3}},
        {"instructions": None},
        {"model_timeout_s": "5"},
        {"model_timeout_s": -1},
        {"closing_turn": "no"},
        {"temperature": float("nan")},
        {"tools": "calculator"},
        {"tools": None},
        {"model": 3},
    ],
    ids=str,
)
def test_options_that_no_run_could_be_held_to_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Agent(**{"model": ["done"], **options}).run_sync("x")


def test_a_list_of_replies_is_a_scripted_model() -> None:
    assert Agent(model=[calls(("look", {"n": 3})), "3"], tools=[look]).run_sync("x").answer == "3"


def test_a_tool_that_has_become_stricter_is_not_run_in_an_old_run() -> None:
    journal = MemoryJournal()
    script = ScriptedModel([calls(("look", {})), "so far", calls(("look", {"n": 1})), "done"])
    first = Agent(model=script, tools=[look], journal=journal, max_steps=1).run_sync("x")
    stricter = look.with_card(tier="destructive")
    with pytest.raises(ConfigError, match="stricter"):
        Agent(model=script, tools=[stricter], journal=journal).resume_sync(first.run_id, max_steps=5)


def test_a_repeated_action_is_seen_beside_another_that_is_new() -> None:
    numbers = count()

    @tool(tier="read")
    def poll() -> int:
        """Return something new."""
        return next(numbers)

    result = run([calls(("look", {"n": 1}), ("poll", {}))] * 9, look, poll, limits=Limits(max_steps=None))
    assert result.status == "repeated_action"
    assert len(observations(result)) == 10


def test_polling_with_a_long_answer_that_changes_at_its_end_goes_on() -> None:
    numbers = count()

    @tool(tier="read")
    def log() -> str:
        """Return a long log."""
        return "x" * 6000 + str(next(numbers))

    result = run([calls(("log", {}))] * 7 + ["done"], log, limits=Limits(max_steps=None))
    assert (result.status, len(observations(result))) == ("completed", 7)


def test_a_run_that_used_all_its_calls_may_still_answer() -> None:
    result = run([calls(("look", {"n": 1})), "1"], look, limits=Limits(max_tool_calls=1))
    assert (result.status, result.answer) == ("completed", "1")


def test_calls_of_one_decision_run_in_its_order() -> None:
    """A read that follows a write sees what was written."""
    state = {"n": 0}

    @tool(tier="draft")
    def put(n: int) -> str:
        """Change the state."""
        state["n"] = n
        return "ok"

    @tool(tier="read")
    def get(when: str) -> int:
        """Read the state."""
        return state["n"]

    replies = [calls(("get", {"when": "before"}), ("put", {"n": 5}), ("get", {"when": "after"})), "done"]
    result = run(replies, put, get)
    assert [observed.output for observed in observations(result)] == ["0", "ok", "5"]


def test_failures_of_one_decision_count_once_in_a_row() -> None:
    """The model sees them together, and may do better."""
    bad = calls(("nobody", {}), ("nobody", {"a": 1}), ("nobody", {"a": 2}))
    result = run([bad, "done"], look)
    assert (result.status, result.trace.total_errors) == ("completed", 3)
    again = run([bad, bad, bad, "done"], look)
    assert again.status == "too_many_errors"


def test_a_call_refused_by_the_limit_replays_with_its_corrected_arguments() -> None:
    two = calls(("look", {"n": "1"}), ("look", {"n": "2"}))
    result = run([two, "done"], look, limits=Limits(max_tool_calls=1))
    assert [observed.ok for observed in observations(result)] == [False, True]
