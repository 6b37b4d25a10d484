"""What a run does with the hooks of its agent: asks them in order, within their time, and records what they changed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple

import pydantic_core

from taoloop.core.cards.tool_search import unwrap_call_tool
from taoloop.core.decision import Answer, AnswerCheck, Call, Problem, excerpt
from taoloop.core.effects import CallModel, ModelRequest, RequestCalls
from taoloop.core.events import Fact, Fault, ModelReplied, Observed, ReplyRejected
from taoloop.core.human_input import HookActed, HookMoment
from taoloop.core.message import SIDE_PURPOSES, Message, ModelReply
from taoloop.core.texts import TEXTS as CORE_TEXTS
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.errors import AnswerRefused, HookRefused, TaoError
from taoloop.runtime.engine.clock import within
from taoloop.runtime.engine.hooks import HOOK_TIMEOUT_S, Hooks, OutputCheck, Refusal, ToolOutcome, overrides
from taoloop.runtime.engine.redaction import RealArguments
from taoloop.runtime.engine.stdout_capture import CapturedOutput
from taoloop.runtime.engine.tool_execution import Outcome, fault_of, is_own_cancellation, outcome_of
from taoloop.runtime.output_type import OutputValidator
from taoloop.runtime.texts import TEXTS
from taoloop.runtime.threads import POOL
from taoloop.strategies.termination import model_failed
from taoloop.tools.result_values import write_json
from taoloop.tools.tool import RunContext, Tool, ToolOutput
from taoloop.tools.toolbox import Toolbox

HOOK_REFUSED = "hook_refused"
"""The code of a reply, and of an output, that a hook did not let pass."""

_CHANGEABLE = frozenset({"messages", "temperature", "top_p", "max_output_tokens", "stop", "timeout_s", "settings"})


class _Failed(NamedTuple):
    """In place of the answer of a hook that gave none."""

    reason: str


class HookCalls:
    """The hooks and the validators of answers of one run."""

    def __init__(
        self,
        trace: Trace,
        hooks: Sequence[Hooks[Any]],
        checks: Sequence[OutputCheck],
        *,
        context: Callable[[str], RunContext],
        note: Callable[[Fact], None],
        clean: Callable[[str], str] | None,
        validator: OutputValidator | None,
    ) -> None:
        self._trace, self._context, self._note, self._clean = trace, context, note, clean
        self._checks, self._validator = checks, validator
        self._before_model = [hook for hook in hooks if overrides(hook, "before_model")]
        self._after_model = [hook for hook in hooks if overrides(hook, "after_model")]
        self._before_tool = [hook for hook in hooks if overrides(hook, "before_tool")]
        self._after_tool = [hook for hook in hooks if overrides(hook, "after_tool")]
        self._refused: dict[str, Fault] = {}
        self.sees_requests, self.sees_outcomes = bool(self._before_tool), bool(self._after_tool)

    # Model calls

    async def before_model(self, request: ModelRequest, step: int) -> ModelRequest:
        """The request as the hooks leave it.

        Raises:
            HookRefused: one refused it, or failed.
        """
        for hook in self._before_model:
            answer = await self._ask(hook.name, hook.timeout_s, hook.before_model, self._context(""), request)
            if isinstance(answer, ModelRequest) and (names := _changed(request, answer)) <= _CHANGEABLE:
                if names:
                    answer = self._cleaned(request, answer)
                    change = {name: _difference(request, answer, name) for name in sorted(names)}
                    self._record(hook.name, "before_model", "changed", step, change=change)
                request = answer
            elif answer is not None:
                if isinstance(answer, ModelRequest):
                    names = _changed(request, answer) - _CHANGEABLE
                    answer = _Failed(TEXTS.run_text("hook_fields", names=", ".join(sorted(names))))
                raise HookRefused(self._refusal(hook.name, "before_model", answer, step), by_model=True)
        return request

    def _cleaned(self, before: ModelRequest, after: ModelRequest) -> ModelRequest:
        """The request without secrets in what a hook added."""
        clean, known = self._clean, {id(message) for message in before.messages}
        if clean is None or after.messages is before.messages:
            return after
        messages = (
            message if id(message) in known else replace(message, content=clean(message.content))
            for message in after.messages
        )
        return replace(after, messages=tuple(messages))

    async def after_model(
        self, effect: CallModel, reply: ModelReply, facts: list[Fact], check: AnswerCheck | None
    ) -> list[Fact]:
        """The facts of a reply as the hooks, and then the validators of answers, leave them."""
        for hook in self._after_model:
            answer = await self._ask(hook.name, hook.timeout_s, hook.after_model, self._context(""), reply)
            if answer is not None:
                reason = self._refusal(hook.name, "after_model", answer, effect.step)
                return self._without_decision(effect, facts, reason, is_over=not isinstance(answer, Refusal))
        if self._checks and effect.request.purpose not in SIDE_PURPOSES:
            return await self._after_answer(effect, facts, check)
        return facts

    async def _after_answer(self, effect: CallModel, facts: list[Fact], check: AnswerCheck | None) -> list[Fact]:
        for validate in self._checks:
            replied = facts[0]
            if not isinstance(replied, ModelReplied) or not isinstance(answer := replied.decision, Answer):
                break
            name = getattr(validate, "__name__", None) or type(validate).__name__
            value = answer.text if self._validator is None else self._validator.value(answer.text)
            result = await self._ask(name, HOOK_TIMEOUT_S, validate, self._context(""), value)
            if result is None or result is value:
                continue
            changed = result if isinstance(result, _Failed | Refusal) else self._new_answer(answer, result, check)
            if not isinstance(changed, Answer):
                reason = self._refusal(name, "output", changed, effect.step)
                return self._without_decision(effect, facts, reason, is_over=not isinstance(changed, Refusal))
            if changed.text == answer.text:
                continue
            self._record(name, "output", "changed", effect.step, change=changed.text)
            facts = with_answer(facts, changed.text)
        return facts

    def _new_answer(self, answer: Answer, result: Any, check: AnswerCheck | None) -> Answer | _Failed:
        """The answer that a validator gave in place of the model's, if it fits the run's schema."""
        try:
            text = result if isinstance(result, str) and self._validator is None else write_json(result)
        except (pydantic_core.PydanticSerializationError, ValueError, RecursionError) as error:
            return _Failed(str(error))
        new = replace(answer, text=text)
        judged = new if check is None or self._validator is None else check(new)
        return _Failed(judged.message) if isinstance(judged, Problem) else judged

    def _without_decision(self, effect: CallModel, facts: list[Fact], reason: str, *, is_over: bool) -> list[Fact]:
        """A reply that was not let pass; `is_over`: a hook failed, so the run ends."""
        facts = refused_reply(facts, reason)
        if is_over or effect.request.purpose in SIDE_PURPOSES:
            facts.append(model_failed(self._trace, reason, HookRefused.code, by_model=True))
        return facts

    # Tool calls

    async def before_tools(self, effect: RequestCalls, real: RealArguments, toolbox: Toolbox | None) -> RequestCalls:
        """The calls as the hooks leave them. What they refuse is given by `refusal` when the calls are judged.

        The hooks see the calls that fit; what is wrong with any other is told to the model as without hooks. Without a
        toolbox they see all calls of known tools.
        """
        calls, trace = [], self._trace
        for number, requested in enumerate(effect.act.calls, trace.calls_requested + 1):
            call = unwrap_call_tool(requested, trace.agent.tools)
            seen = Call(tool=call.tool, args=real.of(call.args), ref=call.ref)
            is_known = effect.offered and trace.card(call.tool) is not None
            is_seen = is_known and (toolbox is None or _fits(toolbox, seen))
            calls.append(
                await self._before_tool_call(f"call_{number}", seen, call, effect.step) if is_seen else requested
            )
        return replace(effect, act=replace(effect.act, calls=tuple(calls)))

    async def _before_tool_call(self, call_id: str, seen: Call, stored: Call, step: int) -> Call:
        """One call as the hooks leave it; the stored one where they change nothing."""
        call = stored
        for hook in self._before_tool:
            shown = Call(tool=seen.tool, args=deepcopy(seen.args), ref=seen.ref)
            answer = await self._ask(hook.name, hook.timeout_s, hook.before_tool, self._context(call_id), shown)
            if answer is None:
                continue
            plain = _as_json(answer) if isinstance(answer, Mapping) else answer
            if not isinstance(plain, dict):
                reason = self._refusal(hook.name, "before_tool", plain, step, call_id)
                message = CORE_TEXTS.text(self._trace.agent.language, "denied", reasons=reason.rstrip(".。"))
                self._refused[call_id] = Fault(code="denied", message=message)
                return call
            if plain != seen.args:
                seen = call = Call(tool=seen.tool, args=plain, ref=seen.ref)
                self._record(hook.name, "before_tool", "changed", step, call_id, change=plain)
        return call

    def refusal(self, call_id: str) -> Fault | None:
        """Why a hook does not let a call be made, once; None where none objects."""
        return self._refused.pop(call_id, None) if self._refused else None

    async def after_tool(self, call: CallView, args: Any, tool: Tool, outcome: Outcome) -> Outcome:
        """The outcome of a call as the hooks leave it."""
        requested = call.requested
        for hook in self._after_tool:
            shown = Call(tool=requested.tool, args=deepcopy(args), ref=requested.ref)
            seen, call_id = _shown(outcome), requested.call_id
            answer = await self._ask(hook.name, hook.timeout_s, hook.after_tool, self._context(call_id), shown, seen)
            if answer is None:
                continue
            output = answer if isinstance(answer, _Failed | Refusal) else _as_output(answer)
            if not isinstance(output, ToolOutput):
                reason = self._refusal(hook.name, "after_tool", output, requested.step, call_id)
                return _withheld(outcome, reason)
            if output.text == (seen.output if seen.ok else ""):
                continue
            outcome = _with_output(outcome, tool, output, self._clean)
            self._record(hook.name, "after_tool", "changed", requested.step, call_id, change=_shown_change(outcome))
        return outcome

    # Any hook

    async def _ask(self, name: str, timeout_s: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a hook says; `_Failed` for one that raises, hangs or is cancelled by somebody else."""

        def late(limit_s: float | None) -> Exception:
            return HookRefused(TEXTS.run_text("hook_late", hook=name, s=limit_s))

        try:
            return await within(timeout_s, _called(function, arguments), late)
        except AnswerRefused as error:
            return Refusal(fault_of(error, self._clean).message)
        except (Exception, asyncio.CancelledError, SystemExit) as error:  # a hook must not end the process
            if is_own_cancellation(error):
                raise
            return _Failed(fault_of(error, self._clean).message)

    def _refusal(self, name: str, moment: HookMoment, answer: Any, step: int, call_id: str = "") -> str:
        """Record that a hook refused, failed or gave what is no answer; returns why, for model and people."""
        clean = self._clean or str
        if isinstance(answer, Refusal):
            self._record(name, moment, "refused", step, call_id, reason=clean(str(answer.reason)))
            return TEXTS.run_text("hook_refused", hook=name, reason=clean(str(answer.reason)))
        why = answer.reason if isinstance(answer, _Failed) else TEXTS.run_text("hook_type", kind=type(answer).__name__)
        self._record(name, moment, "failed", step, call_id, reason=why)
        return TEXTS.run_text("hook_failed", hook=name, reason=why)

    def _record(
        self,
        name: str,
        moment: HookMoment,
        outcome: Any,
        step: int,
        call_id: str = "",
        *,
        reason: str = "",
        change: Any = None,
    ) -> None:
        self._note(
            HookActed(
                hook=name, moment=moment, outcome=outcome, step=step, call_id=call_id, reason=reason, change=change
            )
        )


def hooked_calls(trace: Trace, effect: RequestCalls, acted: Sequence[HookActed]) -> RequestCalls:
    """The calls of a decision in a replay, with the arguments that the recorded hooks gave them."""
    changes = {hook.call_id: hook.change for hook in acted if hook.outcome == "changed"}
    calls = []
    for number, requested in enumerate(effect.act.calls, trace.calls_requested + 1):
        call_id = f"call_{number}"
        call = unwrap_call_tool(requested, trace.agent.tools) if call_id in changes else requested
        calls.append(replace(call, args=changes.get(call_id, call.args)))
    return replace(effect, act=replace(effect.act, calls=tuple(calls)))


def hooked_reply(facts: list[Fact], acted: Sequence[HookActed]) -> list[Fact]:
    """The facts of a reply in a replay, with what the recorded hooks made of them."""
    for hook in acted:
        if hook.moment == "output" and hook.outcome == "changed":
            facts = with_answer(facts, str(hook.change))
        elif hook.moment in ("after_model", "output"):
            facts = refused_reply(facts, hook.reason)
    return facts


def refused_reply(facts: list[Fact], reason: str) -> list[Fact]:
    """The facts of a reply that was not let pass: it has no decision. One of a side question stays as it is."""
    replied = facts[0]
    if not isinstance(replied, ModelReplied) or replied.purpose in SIDE_PURPOSES:
        return facts[:1]
    decision = replied.decision
    text = excerpt(decision.text) if isinstance(decision, Answer) else ""
    rejected = ReplyRejected(step=replied.step, code=HOOK_REFUSED, message=reason, excerpt=text)
    return [replace(replied, decision=None), rejected]


def with_answer(facts: list[Fact], text: str) -> list[Fact]:
    """The facts of a reply whose answer a validator replaced."""
    replied = facts[0]
    if not isinstance(replied, ModelReplied) or not isinstance(replied.decision, Answer):
        return facts
    return [replace(replied, decision=replace(replied.decision, text=text)), *facts[1:]]


async def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await POOL.run(partial(function, *arguments))
    return await result if inspect.isawaitable(result) else result


def _fits(toolbox: Toolbox, call: Call) -> bool:
    try:
        toolbox.get(call.tool).prepare(call.args)
    except TaoError:
        return False
    return True


def _changed(before: ModelRequest, after: ModelRequest) -> frozenset[str]:
    """The names of the fields in which two requests differ."""
    if before is after:
        return frozenset()
    names = [field.name for field in fields(ModelRequest)]
    return frozenset(
        name
        for name in names
        if (old := getattr(before, name)) is not (new := getattr(after, name)) and (name == "trace" or old != new)
    )


def _difference(before: ModelRequest, after: ModelRequest, name: str) -> Any:
    """What a hook changed in a field of a request, as plain data; of messages what it added and how many it removed."""
    if name != "messages":
        value = getattr(after, name)
        return list(value) if isinstance(value, tuple) else value
    old, new = before.messages, after.messages
    added = [{"role": message.role, "content": message.content} for message in _without(new, old)]
    return {"added": added, "removed": len(_without(old, new))}


def _without(messages: Sequence[Message], others: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message not in others]


def _as_json(value: Any) -> Any:
    try:
        return pydantic_core.from_json(pydantic_core.to_json(dict(value)))
    except (pydantic_core.PydanticSerializationError, ValueError, RecursionError) as error:
        return _Failed(str(error))


def _as_output(value: Any) -> ToolOutput | _Failed:
    if isinstance(value, str):
        return ToolOutput(value, "text")
    try:
        return ToolOutput(write_json(value), "json")
    except (pydantic_core.PydanticSerializationError, ValueError, RecursionError) as error:
        return _Failed(str(error))


def _shown(outcome: Outcome) -> ToolOutcome:
    """The outcome with its whole output, which the observation may have only the beginning of."""
    observed = outcome.observed
    whole = next((artifact.body for artifact in outcome.artifacts if artifact.ref == observed.artifact), None)
    return ToolOutcome(ok=observed.ok, output=observed.output if whole is None else whole, error=observed.error)


def _shown_change(outcome: Outcome) -> str:
    """What the observation shows now."""
    observed = outcome.observed
    return observed.error.message if observed.error is not None else observed.output


def _with_output(outcome: Outcome, tool: Tool, output: ToolOutput, clean: Callable[[str], str] | None) -> Outcome:
    """The outcome with another output in place of the tool's, or of the message of a call that failed."""
    before = outcome.observed
    new = outcome_of(tool, before.call_id, output, before.latency_s, CapturedOutput(), clean)
    if before.error is not None:
        return replace(outcome, observed=replace(before, error=replace(before.error, message=new.observed.output)))
    observed = replace(
        new.observed, printed=before.printed, child=before.child, usage=before.usage, cost_usd=before.cost_usd
    )
    return replace(outcome, observed=observed, artifacts=new.artifacts, images=(), files=())


def _withheld(outcome: Outcome, reason: str) -> Outcome:
    """The outcome of a call whose output a hook does not let pass. The call was carried out."""
    fault = Fault(code=HOOK_REFUSED, message=reason, hint=TEXTS.run_text("hook_carried_out"))
    before = outcome.observed
    observed = Observed(
        call_id=before.call_id,
        ok=False,
        output="",
        error=fault,
        latency_s=before.latency_s,
        child=before.child,
        usage=before.usage,
        cost_usd=before.cost_usd,
    )
    return replace(outcome, observed=observed, artifacts=(), images=(), files=())
