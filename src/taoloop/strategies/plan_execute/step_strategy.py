"""The strategy of the run of one step of a plan: the calls that it lists, without a model; whatever is open, by ReAct.

A call whose values are all known is made as the plan has it. Where a stated origin has one value, it is filled in from
the output itself, so no model copies it. Where it has several, the model decides, and what a person approved still
bounds what it may choose (`policy.plan_grants`). A step that lists no calls is a ReAct run from its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.cards.coercion import schema_types
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import PLAN_MODEL, Act, Call, PlannedCall, PlanStep, cited_ids, excerpt
from taoloop.core.effects import Effect, Finish, Record
from taoloop.core.events import Finished, ModelReplied, new_model_replied
from taoloop.core.text import printable_json
from taoloop.core.trace import Trace
from taoloop.core.value_origins import is_stated, stated_origin
from taoloop.core.views.steps import CallView
from taoloop.errors import IllegalEvent
from taoloop.policy.call_history import UNKNOWN, past_calls, same_value
from taoloop.policy.plan_grants import plan_grant, step_of
from taoloop.strategies.denied_calls import answered_finish
from taoloop.strategies.graph.expressions import ExpressionError, read_condition
from taoloop.strategies.plan_execute.checks import RESULT, name_in_conditions
from taoloop.strategies.plan_execute.texts import TEXTS
from taoloop.strategies.react import LoopStrategy
from taoloop.strategies.termination import exceeded_limit

FAILED = "FAILED:"
"""How the answer of a model begins that could not do its step, or did not find what the plan expects."""

_REACT = LoopStrategy(name="react", acts=True, reasons=True)


class _NoValueError(Exception):
    """No value is known at a stated origin; `args[0]` is the origin."""


class _SeveralValuesError(Exception):
    """Several values are known at a stated origin, so a model must choose."""


@dataclass(frozen=True, slots=True)
class PlanStepStrategy:
    """Carry out the step that the run was started for."""

    name: str = "plan_step"
    """The name that is stored with the run."""
    rules: tuple[str, ...] = ("react",)
    """The rules of the prompts, where a model decides."""

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        step = step_of(trace)
        if step is None:
            raise IllegalEvent(f"Run {trace.run_id} has the strategy {self.name!r} and no step of a plan.")
        if trace.phase == "answered":
            return _answered(agent, trace, step)
        if trace.phase != "thinking" or not step.calls or _is_open(trace) or trace.limit_reached is not None:
            return _REACT.next(agent, trace)
        if (reached := exceeded_limit(trace)) is not None:
            return Record(facts=(reached,))
        return _next_call(agent, trace, step)


def _is_open(trace: Trace) -> bool:
    """Whether the model decides in this run: it has, from the first call on that the plan leaves open."""
    return trace.last_reply is not None and trace.last_reply.model != PLAN_MODEL


def _next_call(agent: AgentSpec, trace: Trace, step: PlanStep) -> Effect:
    made = list(trace.calls.values())
    if (
        failed := next((call for call in made if call.observed is not None and not call.observed.ok), None)
    ) is not None:
        return Finish(fact=_failed(agent, trace, "step_failed", tool=failed.requested.tool, detail=_error_of(failed)))
    if len(made) == len(step.calls):
        return _done(agent, trace, step)
    planned = step.calls[len(made)]
    try:
        args = {name: _filled(trace, planned, value) for name, value in planned.args.items()}
        call = Call(tool=planned.tool, args=_as_taken(trace.card(planned.tool), planned, args))
    except _NoValueError as error:
        return Finish(fact=_failed(agent, trace, "step_no_value", tool=planned.tool, origin=error.args[0]))
    except _SeveralValuesError:
        return _REACT.next(agent, trace)
    return Record(facts=(executor_decision(trace, call, step.goal),))


def executor_decision(trace: Trace, call: Call, reason: str) -> ModelReplied:
    """The decision to make a call of a plan, which no model is asked about."""
    decision = Act(calls=(call,), reason=reason)
    number = trace.step_count + 1
    return new_model_replied(
        step=number, purpose="decide", text=reason, decision=decision, model=PLAN_MODEL, cost_usd=0.0
    )


def _filled(trace: Trace, planned: PlannedCall, value: Any) -> Any:
    """An argument with the values that its stated origins have.

    Raises:
        _NoValueError, _SeveralValuesError: one of them has not exactly one.
    """
    origin = stated_origin(value)
    if origin is not None:
        values: list[Any] = []
        for candidate in plan_grant(trace).origin_values(planned, origin):
            if not any(same_value(candidate, other) for other in values):
                values.append(candidate)
        if not values:
            raise _NoValueError(origin.origin.text)
        if len(values) > 1:
            raise _SeveralValuesError
        return values[0]
    if isinstance(value, Mapping):
        return {name: _filled(trace, planned, part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(trace, planned, part) for part in value]
    return value


def _as_taken(card: ToolCard | None, planned: PlannedCall, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with an id that was found as a number as a text where the tool takes texts alone."""
    if card is None:
        return args
    for name, value in args.items():
        is_number = isinstance(value, int) and not isinstance(value, bool) and is_stated(planned.args[name])
        if is_number and schema_types(card.parameters.get(name, {}), card.input_schema) == {"string"}:
            args[name] = str(value)
    return args


def _done(agent: AgentSpec, trace: Trace, step: PlanStep) -> Effect:
    """The end of a step whose calls were all made as the plan has them."""
    if (problem := _unmet(agent, trace, step)) is not None:
        return Finish(fact=problem)
    reason = TEXTS.text(agent.language, "step_done", count=len(step.calls))
    return Finish(fact=Finished(status="completed", answer=_results(trace), reason=reason))


def _answered(agent: AgentSpec, trace: Trace, step: PlanStep) -> Effect:
    """The end of a step in which the model decided: what it reports as failed has failed."""
    answer = trace.answer.text if trace.answer is not None else ""
    if answer.lstrip().startswith(FAILED):
        detail = answer.lstrip().removeprefix(FAILED).strip()
        return Finish(fact=_failed(agent, trace, "step_reported", answer, detail=detail))
    problem = _unmade(agent, trace, answer) or _unmet(agent, trace, step, answer) if step.calls else None
    if problem is not None:
        return Finish(fact=problem)
    reason = TEXTS.text(agent.language, "step_answered", count=len(trace.calls))
    return Finish(fact=answered_finish(trace, answer, reason, cited_ids(answer)))


def _unmade(agent: AgentSpec, trace: Trace, answer: str) -> Finished | None:
    """The end of a step in which the model left out a listed call, or one failed for good; None if all were made."""
    grant, calls = plan_grant(trace), [call for call in trace.calls.values() if call.observed is not None]
    succeeded = {call.requested.digest for call in calls if call.observed is not None and call.observed.ok}
    left_out = grant.unmade[0].tool if grant.unmade else None
    for call in calls:
        is_denied = call.requested.verdict == "deny" and call.requested.tool == left_out
        if is_denied or (call.requested.call_id in grant.made and call.requested.digest not in succeeded):
            return _failed(agent, trace, "step_failed", answer, tool=call.requested.tool, detail=_error_of(call))
    return None if left_out is None else _failed(agent, trace, "step_unmade", answer, tool=left_out)


def _unmet(agent: AgentSpec, trace: Trace, step: PlanStep, answer: str | None = None) -> Finished | None:
    """The end of a step after which what the plan expects does not hold; None if it does."""
    if not step.expect.strip():
        return None
    condition, outputs = read_condition(step.expect), _outputs(trace, step)
    try:
        if condition.evaluate(outputs):
            return None
    except ExpressionError as error:
        return _failed(agent, trace, "step_no_condition", answer, expect=step.expect, problem=error)
    values = ", ".join(f"{name} = {excerpt(printable_json(outputs[name]))}" for name in sorted(condition.fields))
    return _failed(agent, trace, "step_unexpected", answer, expect=step.expect, values=values)


def _outputs(trace: Trace, step: PlanStep) -> dict[str, Any]:
    """What a condition reads: the last output of each tool of the listed calls, and that of the last one of them."""
    outputs, grant = dict[str, Any](), plan_grant(trace)
    for planned in step.calls:
        listed = (past for past in past_calls(trace).of(planned.tool) if grant.has_listed(planned.tool, past.args))
        documents = [past.document for past in listed if past.document is not UNKNOWN]
        if documents:
            outputs[name_in_conditions(planned.tool)] = outputs[RESULT] = documents[-1]
    return outputs


def _results(trace: Trace) -> str:
    """The outputs of the calls as the result of the step, each with its tool where there are several."""
    calls = [call for call in trace.calls.values() if call.observed is not None]
    if len(calls) == 1 and calls[0].observed is not None:
        return calls[0].observed.output
    return "\n".join(f"{call.requested.tool}: {call.observed.output}" for call in calls if call.observed is not None)


def _error_of(call: CallView) -> str:
    error = call.observed.error if call.observed is not None else None
    return "" if error is None else f"{error.code}: {error.message}"


def _failed(agent: AgentSpec, trace: Trace, name: str, answer: str | None = None, **values: object) -> Finished:
    """The end of a step that failed, with what it has found all the same."""
    reason = TEXTS.text(agent.language, name, **values)
    return Finished(status="too_many_errors", answer=answer or _results(trace) or None, reason=reason)


PLAN_STEP = PlanStepStrategy()
"""Carries out one step of a plan; no agent chooses it by name."""
