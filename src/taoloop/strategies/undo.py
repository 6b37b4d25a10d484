"""The strategy of a run that undoes another one: its plan, one call after another, until one of them fails.

No model decides here. Each step is recorded as a decision that follows from the plan in `run_started`, and its call is
treated like any other: judged, put before a person, recorded before it runs, settled after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import Act
from taoloop.core.effects import Effect, Finish, Record
from taoloop.core.events import Event, Finished, ModelReplied, Observed, Resumed, RunStarted, Undo, Undoing
from taoloop.core.trace import Trace
from taoloop.errors import IllegalEvent
from taoloop.strategies.react import LoopStrategy
from taoloop.strategies.texts import TEXTS

PLAN = "plan"
"""The model in the description of such a run, and of the replies that have its decisions."""

_CALLS = LoopStrategy(name="undo", acts=True, reasons=False)


class Outcomes:
    """The outcome of the plan so far: the observation of each of its calls by number, from 0. A view."""

    def __init__(self) -> None:
        self.plan: Undoing | None = None
        self.observed: dict[int, Observed] = {}
        self.resumed = False

    def fold(self, event: Event) -> None:
        """Process the next event."""
        match event.fact:
            case RunStarted(undoes=plan):
                self.plan = plan
            case Observed() as fact:
                self.observed[number_of(fact.call_id)] = fact
            case Resumed():
                self.resumed = True
            case _:
                pass

    @property
    def failed(self) -> tuple[Undo, Observed] | None:
        """The entry that could not be carried out."""
        plan = self.plan.plan if self.plan is not None else ()
        return next(((plan[n], observed) for n, observed in self.observed.items() if not observed.ok), None)


def outcomes(trace: Trace) -> Outcomes:
    """The outcome of the plan so far."""
    return trace.view("undo", Outcomes)


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
        outcome = outcomes(trace)
        if outcome.plan is None:
            raise IllegalEvent(f"Run {trace.run_id} has the strategy 'undo' and no plan.")
        language = agent.language
        if outcome.failed is not None:
            undo, observed = outcome.failed
            why = observed.error.message if observed.error is not None else ""
            reason = TEXTS.text(language, "undo_failed", call_id=undo.call_id, run_id=undo.run_id, why=why)
            return Finish(fact=Finished(status="too_many_errors", answer=None, reason=reason))
        number, plan = trace.step_count, outcome.plan.plan
        if number == len(plan):
            done = TEXTS.text(language, "undo_done", count=number)
            return Finish(fact=Finished(status="completed", answer=done, reason=done))
        if outcome.resumed:
            return Finish(fact=Finished(status="stopped", answer=None, reason=TEXTS.text(language, "undo_resumed")))
        undo = plan[number]
        reason = TEXTS.text(language, "undo", call_id=undo.call_id, run_id=undo.run_id)
        decision = Act(calls=(undo.call,), reason=reason)
        reply = ModelReplied(
            step=number + 1, purpose="decide", text=reason, decision=decision, model=PLAN, cost_usd=0.0
        )
        return Record(facts=(reply,))


UNDO = UndoStrategy()
"""Calls the compensations of another run's calls; no model is asked."""
