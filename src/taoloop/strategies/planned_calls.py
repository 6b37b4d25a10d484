"""The strategies of runs whose calls are decided in advance: one call that a host asked for, and the plan of an undo.

No model is asked. Each call is recorded as a decision, and is treated like any other from there on: judged, put before
a person, recorded before it runs, settled after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Call
from taoloop.core.effects import Effect, Finish, Record
from taoloop.core.events import Finished, ModelReplied, Resumed, Status, Undo
from taoloop.core.texts import TEXTS
from taoloop.core.trace import Trace
from taoloop.errors import IllegalEvent
from taoloop.strategies.react import LoopStrategy

CALLER = "caller"
"""The `model` of the reply that has the decision of a single call."""

PLAN = "plan"
"""The model in the description of an undo, and of the replies that have its decisions."""

_CALLS = LoopStrategy(name="planned", acts=True, reasons=False)


def task_of(tool: str, args: Mapping[str, Any]) -> str:
    """The task of a run that is this call."""
    return json.dumps({"tool": tool, "args": dict(args)}, ensure_ascii=False, default=str)


def decision_of(tool: str, args: Mapping[str, Any]) -> ModelReplied:
    """The only decision of such a run."""
    return _decided(1, Call(tool=tool, args=dict(args)), "", CALLER)


@dataclass(frozen=True, slots=True)
class SingleCallStrategy:
    """Make the call that the task contains, and finish with its outcome."""

    name: str = "given"
    """The name that is stored with the run."""

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        if trace.phase in ("decided", "acting"):
            return _CALLS.next(agent, trace)
        observed = next((call.observed for call in trace.calls.values() if call.observed is not None), None)
        if observed is None:
            return Record(facts=(_decision_in(trace),))
        if observed.ok:
            return _finish("completed", observed.output, TEXTS.text(agent.language, "call_done"))
        code, message = ("", "") if observed.error is None else (observed.error.code, observed.error.message)
        reason = TEXTS.text(agent.language, "call_failed", code=code, message=message)
        return _finish("too_many_errors", None, reason)


def _decision_in(trace: Trace) -> ModelReplied:
    """The decision in the task, for a replay: without the secrets that were removed from it."""
    try:
        call = json.loads(trace.task)
        return decision_of(call["tool"], call["args"])
    except (ValueError, TypeError, KeyError) as error:
        raise IllegalEvent(f"Run {trace.run_id} has the strategy 'given', and its task is not a call.") from error


def plan_of(trace: Trace) -> tuple[Undo, ...]:
    """The plan of a run that undoes another one; empty for any other run."""
    undoing = trace.started.undoes if trace.started is not None else None
    return () if undoing is None else undoing.plan


def call_of(number: int) -> str:
    """The id of the call that carries out the plan's entry `number`, from 0: there is one in each step."""
    return f"call_{number + 1}"


def number_of(call_id: str) -> int:
    """The number of the plan's entry that a call carries out."""
    return int(call_id.removeprefix("call_")) - 1


@dataclass(frozen=True, slots=True)
class UndoStrategy:
    """Carry out a plan in its order; stop at the first call that fails, because later ones may depend on it.

    A run that was resumed settles what was in progress and ends; the rest is planned again.
    """

    name: str = "undo"
    """The name that is stored with the run."""

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        if trace.phase in ("decided", "acting"):
            return _CALLS.next(agent, trace)
        if trace.started is None or trace.started.undoes is None:
            raise IllegalEvent(f"Run {trace.run_id} has the strategy 'undo' and no plan.")
        language, plan, number = agent.language, plan_of(trace), trace.step_count
        for call_id, call in trace.calls.items():
            if call.observed is not None and not call.observed.ok:
                undo, error = plan[number_of(call_id)], call.observed.error
                why = error.message if error is not None else ""
                reason = TEXTS.text(language, "undo_failed", call_id=undo.call_id, run_id=undo.run_id, why=why)
                return _finish("too_many_errors", None, reason)
        if number == len(plan):
            done = TEXTS.text(language, "undo_done", count=number)
            return _finish("completed", done, done)
        if any(isinstance(event.fact, Resumed) for event in trace.events):
            return _finish("stopped", None, TEXTS.text(language, "undo_resumed"))
        undo = plan[number]
        reason = TEXTS.text(language, "undo", call_id=undo.call_id, run_id=undo.run_id)
        return Record(facts=(_decided(number + 1, undo.call, reason, PLAN),))


def _decided(step: int, call: Call, reason: str, model: str) -> ModelReplied:
    decision = Act(calls=(call,), reason=reason)
    return ModelReplied(step=step, purpose="decide", text=reason, decision=decision, model=model, cost_usd=0.0)


def _finish(status: Status, answer: str | None, reason: str) -> Finish:
    return Finish(fact=Finished(status=status, answer=answer, reason=reason))


SINGLE_CALL = SingleCallStrategy()
"""Makes the one call that a run was started for; no model is asked."""

UNDO = UndoStrategy()
"""Calls the compensations of another run's calls; no model is asked."""
