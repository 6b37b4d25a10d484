"""Hooks before and after model calls and tool calls, and validators of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from taoloop import Agent, AnswerRefused, Hooks, MemoryJournal, Refusal, RunContext, ToolOutcome, tool
from taoloop.core.decision import Call
from taoloop.core.effects import ModelRequest
from taoloop.core.events import ActionRequested, Finished, ModelReplied, Observed, ReplyRejected
from taoloop.core.human_input import HookActed
from taoloop.core.message import Message, ModelReply
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError
from taoloop.models.function import FunctionModel
from taoloop.runtime.after.replay import replay

PAID: list[int] = []


@tool(tier="read")
def price(item: str, count: int = 1) -> str:
    """The price of some items."""
    return f"{item}: {count * 3} EUR"


@tool(tier="write")
def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"


CALL = {"tool_calls": [{"name": "price", "args": {"item": "tea"}}]}


def agent(*hooks: Hooks[Any], replies: list[Any] | None = None, **settings: Any) -> Agent:
    return Agent(
        model=replies or [CALL, "It is 3 EUR."], tools=[price, pay], hooks=hooks, journal=MemoryJournal(), **settings
    )


def facts(result: Result, kind: type[Any]) -> list[Any]:
    """The facts of a kind; the run replays exactly."""
    assert all(event.same for event in replay(result.trace))
    return [event.fact for event in result.trace if isinstance(event.fact, kind)]


class Ten(Hooks):
    """Asks for ten of everything."""

    async def before_tool(self, _ctx: RunContext, call: Call) -> Mapping[str, Any] | None:
        return {**call.args, "count": 10}


def test_arguments_that_a_hook_changed_are_those_of_the_call_and_are_recorded() -> None:
    result = agent(Ten()).run_sync("price of tea")
    [acted] = facts(result, HookActed)
    assert (acted.hook, acted.moment, acted.outcome, acted.call_id) == ("Ten", "before_tool", "changed", "call_1")
    assert acted.change == {"item": "tea", "count": 10}
    [requested] = facts(result, ActionRequested)
    assert requested.args == {"item": "tea", "count": 10}
    [observed] = facts(result, Observed)
    assert observed.output == "tea: 30 EUR"


class Broken(Hooks):
    """Makes arguments that do not fit."""

    def before_tool(self, _ctx: RunContext, _call: Call) -> Mapping[str, Any] | None:
        return {"item": 5, "what": None}


def test_arguments_that_a_hook_changed_are_validated_again() -> None:
    result = agent(Broken()).run_sync("price of tea")
    [observed] = facts(result, Observed)
    assert observed.error.code == "invalid_arguments"


class Pay(Hooks):
    """Pays more than the task says."""

    def before_tool(self, _ctx: RunContext, _call: Call) -> Mapping[str, Any] | None:
        return {"amount": 900}


def test_the_policy_judges_what_the_hook_made_of_a_call() -> None:
    PAID.clear()
    seen: list[dict[str, Any]] = []

    def approve(request: Any) -> bool:
        seen.append(dict(request.args))
        return False

    calls = [{"tool_calls": [{"name": "pay", "args": {"amount": 9}}]}, "Done."]
    result = agent(Pay(), replies=calls, approve=approve).run_sync("pay 9 EUR")
    assert seen == [{"amount": 900}]
    assert PAID == []
    assert facts(result, ActionRequested)[0].verdict == "ask"


class NoPayments(Hooks):
    """Refuses to pay."""

    def before_tool(self, _ctx: RunContext, call: Call) -> Refusal | None:
        return Refusal("not on a Friday") if call.tool == "pay" else None


def test_a_refused_call_is_recorded_as_denied_with_the_reason() -> None:
    PAID.clear()
    calls = [{"tool_calls": [{"name": "pay", "args": {"amount": 9}}]}, "It was refused."]
    result = agent(NoPayments(), replies=calls, policy="autonomous").run_sync("pay 9 EUR")
    [requested] = facts(result, ActionRequested)
    [observed] = facts(result, Observed)
    [acted] = facts(result, HookActed)
    assert (requested.verdict, observed.error.code, acted.outcome) == ("deny", "denied", "refused")
    assert "not on a Friday" in observed.error.message
    assert acted.reason == "not on a Friday"
    assert PAID == []


class Hangs(Hooks):
    """Never answers."""

    timeout_s = 0.01

    async def before_tool(self, _ctx: RunContext, _call: Call) -> None:
        await asyncio.Event().wait()


class Raises(Hooks):
    """Has a bug."""

    def before_tool(self, _ctx: RunContext, _call: Call) -> None:
        raise KeyError("tenant")

    def after_tool(self, _ctx: RunContext, _call: Call, _outcome: ToolOutcome) -> object:
        raise KeyError("tenant")


class GivesNonsense(Hooks):
    """Gives what is no answer."""

    def before_tool(self, _ctx: RunContext, _call: Call) -> Any:
        return 5


@pytest.mark.parametrize(
    ("hook", "reason"), [(Hangs(), "within 0.01 s"), (Raises(), "KeyError"), (GivesNonsense(), "'int'")]
)
def test_a_hook_that_raises_hangs_or_gives_nonsense_refuses_the_call(hook: Hooks[Any], reason: str) -> None:
    result = agent(hook).run_sync("price of tea")
    [acted] = facts(result, HookActed)
    assert acted.outcome == "failed"
    assert reason in acted.reason
    assert facts(result, Observed)[0].error.code == "denied"
    assert result.status == "completed"


class Mask(Hooks):
    """Masks prices."""

    def after_tool(self, ctx: RunContext, _call: Call, outcome: ToolOutcome) -> object:
        assert ctx.call_id == "call_1"
        return outcome.output.replace("3", "*")


class MaskMore(Hooks):
    """Comes after `Mask`."""

    async def after_tool(self, _ctx: RunContext, _call: Call, outcome: ToolOutcome) -> object:
        return {"seen": outcome.output}


def test_hooks_replace_an_output_in_their_order() -> None:
    result = agent(Mask(), MaskMore()).run_sync("price of tea")
    assert facts(result, Observed)[0].output == '{"seen":"tea: * EUR"}'
    assert [(acted.hook, acted.moment) for acted in facts(result, HookActed)] == [
        ("Mask", "after_tool"),
        ("MaskMore", "after_tool"),
    ]


class Withholds(Hooks):
    """Lets no output pass."""

    def after_tool(self, _ctx: RunContext, _call: Call, _outcome: ToolOutcome) -> object:
        return Refusal("confidential")


class FailsAfter(Hooks):
    """Has a bug after a call."""

    def after_tool(self, _ctx: RunContext, _call: Call, _outcome: ToolOutcome) -> object:
        raise ValueError("no")


@pytest.mark.parametrize("hook", [Withholds(), FailsAfter()])
def test_an_output_that_a_hook_does_not_let_pass_is_nowhere_in_the_trace(hook: Hooks[Any]) -> None:
    result = agent(hook).run_sync("price of tea")
    [observed] = facts(result, Observed)
    assert observed.error.code == "hook_refused"
    assert "carried out" in observed.error.hint
    assert "tea: 3 EUR" not in result.text


def test_a_failed_call_stays_failed_with_the_text_of_the_hook() -> None:
    @tool(tier="read")
    def fail() -> str:
        """Fail."""
        raise ValueError("at 10.0.0.3")

    class Hide(Hooks):
        def after_tool(self, _ctx: RunContext, _call: Call, outcome: ToolOutcome) -> object:
            assert not outcome.ok
            return "It failed."

    replies: list[Any] = [{"tool_calls": [{"name": "fail", "args": {}}]}, "Sorry."]
    result = Agent(model=replies, tools=[fail], hooks=[Hide()]).run_sync("try")
    [observed] = facts(result, Observed)
    assert (observed.ok, observed.error.message) == (False, "It failed.")


def test_a_request_that_a_hook_changed_reaches_the_model_and_the_trace_says_so() -> None:
    requests: list[ModelRequest] = []

    class Model:
        spec, dialect = "own", "native"

        async def complete(self, request: ModelRequest) -> ModelReply:
            requests.append(request)
            return ModelReply(text="Hello.", cost_usd=0.0)

        def check_used(self, replies: int) -> None:
            """Nothing to check."""

        async def close(self) -> None:
            """Nothing to close."""

    class Remind(Hooks[str]):
        async def before_model(self, ctx: RunContext[str], request: ModelRequest) -> ModelRequest:
            more = Message(role="user", content=f"You talk to {ctx.deps}, key sk-secret-value.")
            return replace(request, messages=(*request.messages, more), temperature=0.5)

    result = Agent(model=Model(), hooks=[Remind()], secrets=["sk-secret-value"]).run_sync("hi", deps="Ann")
    [acted] = facts(result, HookActed)
    assert requests[0].temperature == 0.5
    assert requests[0].messages[-1].content.startswith("You talk to Ann")
    assert "sk-secret-value" not in requests[0].messages[-1].content + str(acted.change)
    assert acted.change["temperature"] == 0.5
    assert [message["role"] for message in acted.change["messages"]["added"]] == ["user"]


class NoCalls(Hooks):
    """Lets the model not be asked."""

    def before_model(self, _ctx: RunContext, _request: ModelRequest) -> Refusal:
        return Refusal("the budget of this customer is used up")


class OtherTask(Hooks):
    """Changes what no hook may change."""

    def before_model(self, _ctx: RunContext, request: ModelRequest) -> ModelRequest:
        return replace(request, dialect="json")


@pytest.mark.parametrize(("hook", "reason"), [(NoCalls(), "budget of this customer"), (OtherTask(), "dialect")])
def test_a_refused_model_call_ends_the_run_with_the_reason_and_it_can_be_resumed(hook: Hooks[Any], reason: str) -> None:
    journal = MemoryJournal()
    result = Agent(model=["Hello."], hooks=[hook], journal=journal).run_sync("hi")
    [finished] = facts(result, Finished)
    assert (finished.status, finished.error) == ("model_failed", "hook_refused")
    assert reason in finished.reason
    again = Agent(model=["Hello."], journal=journal).resume_sync(result.trace.run_id)
    assert again.answer == "Hello."


class NoSwearing(Hooks):
    """Refuses replies."""

    async def after_model(self, _ctx: RunContext, reply: ModelReply) -> Refusal | None:
        return Refusal("be polite") if "damn" in reply.text else None


def test_a_refused_reply_goes_back_to_the_model_with_the_reason() -> None:
    result = agent(NoSwearing(), replies=["damn", "Good day."]).run_sync("hi")
    assert result.answer == "Good day."
    [rejected] = facts(result, ReplyRejected)
    assert rejected.code == "hook_refused"
    assert "be polite" in rejected.message
    assert [reply.purpose for reply in facts(result, ModelReplied)] == ["decide", "repair"]


class FailsAfterModel(Hooks):
    """Has a bug after a reply."""

    def after_model(self, _ctx: RunContext, _reply: ModelReply) -> None:
        raise RuntimeError("no")


def test_a_hook_that_fails_after_a_reply_ends_the_run_and_nothing_of_the_reply_is_done_on_resume() -> None:
    journal = MemoryJournal()
    stopped = Agent(model=[CALL], tools=[price], hooks=[FailsAfterModel()], journal=journal).run_sync("price")
    assert (stopped.status, facts(stopped, Finished)[0].error) == ("model_failed", "hook_refused")
    resumed = Agent(model=FunctionModel(lambda _task, _trace: "Hello."), tools=[price], journal=journal).resume_sync(
        stopped.trace.run_id
    )
    assert facts(resumed, ActionRequested) == []


def test_hooks_are_not_asked_again_about_what_is_recorded() -> None:
    asked: list[str] = []

    class Counts(Hooks):
        def before_tool(self, _ctx: RunContext, call: Call) -> None:
            asked.append(call.tool)

    journal = MemoryJournal()
    calls: list[Any] = [{"tool_calls": [{"name": "pay", "args": {"amount": 7}}]}, "Done."]
    waiting = Agent(model=calls, tools=[pay], hooks=[Counts()], journal=journal).run_sync("Do it.")
    assert waiting.status == "waiting"
    again = Agent(model=calls, tools=[pay], hooks=[Counts()], journal=journal, approve=lambda _request: True)
    assert again.resume_sync(waiting.trace.run_id).status == "completed"
    assert asked == ["pay"]


def long_enough(_ctx: RunContext, output: str) -> str:
    """Refuse short answers."""
    if len(output) < 10:
        raise AnswerRefused("Write at least 10 characters.")
    return output


async def upper(_ctx: RunContext, output: str) -> str:
    """Replace the answer."""
    return output.upper()


def test_an_answer_that_a_validator_refuses_goes_back_and_one_that_it_changes_counts() -> None:
    result = agent(replies=["short", "A long answer."], output_validators=[long_enough, upper]).run_sync("hi")
    assert result.answer == "A LONG ANSWER."
    assert "at least 10" in facts(result, ReplyRejected)[0].message
    assert [(acted.hook, acted.outcome, acted.change) for acted in facts(result, HookActed)] == [
        ("long_enough", "refused", None),
        ("upper", "changed", "A LONG ANSWER."),
    ]


def test_a_validator_gets_the_value_of_a_typed_answer() -> None:
    def even(_ctx: RunContext, output: int) -> int:
        if output % 2:
            raise AnswerRefused("It must be even.")
        return output + 2

    result = agent(replies=["3", "4"], output_type=int, output_validators=[even]).run_sync("hi")
    assert result.output == 6
    assert facts(result, ReplyRejected)[0].message.endswith("It must be even.")


def test_a_model_that_never_satisfies_a_validator_ends_the_run() -> None:
    result = agent(replies=["no"] * 20, output_validators=[long_enough]).run_sync("hi")
    assert result.status == "unreadable"
    assert "at least 10" in facts(result, Finished)[0].reason


def test_what_is_no_hook_is_refused_before_a_run_begins() -> None:
    with pytest.raises(ConfigError, match="The hook 5 is none"):
        agent(5).run_sync("hi")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ConfigError, match="is no function"):
        agent(output_validators=["x"]).run_sync("hi")


@pytest.mark.parametrize("options", [{"hooks": Hooks()}, {"output_validators": len}, {"hooks": "Log"}])
def test_a_hook_or_a_validator_that_is_in_no_list_is_refused_in_words(options: Any) -> None:
    with pytest.raises(ConfigError, match=r"of an agent are .* Give a list"):
        Agent(model=["4"], **options).run_sync("2 + 2?")
