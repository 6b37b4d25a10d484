"""The strategy of a run that is one call, decided by a host that taoloop's tools are served to.

No model is asked. The decision is in the task, as JSON, and the call is treated like any other: judged, put before a
person, recorded before it runs, settled after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act, Call
from taoloop.core.effects import Effect, Finish, Record
from taoloop.core.events import Finished, ModelReplied
from taoloop.core.trace import Trace
from taoloop.errors import IllegalEvent
from taoloop.strategies.react import LoopStrategy
from taoloop.strategies.texts import TEXTS

CALLER = "caller"
"""The `model` of the reply that has the decision of such a run."""

_CALLS = LoopStrategy(name="given", acts=True, reasons=False)


def task_of(tool: str, args: Mapping[str, Any]) -> str:
    """The task of a run that is this call."""
    return json.dumps({"tool": tool, "args": dict(args)}, ensure_ascii=False, default=str)


def decision_of(tool: str, args: Mapping[str, Any]) -> ModelReplied:
    """The only decision of such a run."""
    call = Call(tool=tool, args=dict(args))
    return ModelReplied(
        step=1, purpose="decide", text="", decision=Act(calls=(call,), reason=""), model=CALLER, cost_usd=0.0
    )


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
            done = TEXTS.text(agent.language, "call_done")
            return Finish(fact=Finished(status="completed", answer=observed.output, reason=done))
        code, message = ("", "") if observed.error is None else (observed.error.code, observed.error.message)
        reason = TEXTS.text(agent.language, "call_failed", code=code, message=message)
        return Finish(fact=Finished(status="too_many_errors", answer=None, reason=reason))


def _decision_in(trace: Trace) -> ModelReplied:
    """The decision in the task, for a replay: without the secrets that were removed from it."""
    try:
        call = json.loads(trace.task)
        return decision_of(call["tool"], call["args"])
    except (ValueError, TypeError, KeyError) as error:
        raise IllegalEvent(f"Run {trace.run_id} has the strategy 'given', and its task is not a call.") from error


SINGLE_CALL = SingleCallStrategy()
"""Makes the one call that a run was started for; no model is asked."""
