"""The strategy of a graph workflow: each node is a call of the run, decided by the graph and not by a model.

So calls are judged, put before people, recorded before they run, and settled after a crash as in any other run. The
graph is that of the run's own description, whatever the agent has become since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.decision import GRAPH_MODEL, Act, Call, cited_ids
from taoloop.core.effects import Effect, Finish, Record, RequestCalls
from taoloop.core.events import Finished, new_model_replied
from taoloop.core.texts import TEXTS
from taoloop.core.trace import Trace
from taoloop.errors import IllegalEvent
from taoloop.strategies.denied_calls import answered_finish
from taoloop.strategies.graph.expressions import ExpressionError
from taoloop.strategies.graph.progress import SEPARATOR, Failure, GraphProgress, graph_progress
from taoloop.strategies.react import LoopStrategy
from taoloop.strategies.termination import exceeded_limit, exceeded_step_limit, limit_finish

_CALLS = LoopStrategy(name="graph", acts=True, reasons=False)


@dataclass(frozen=True, slots=True)
class GraphStrategy:
    """Run the nodes of a graph that are due, all of them at once, until none is left."""

    description: Mapping[str, Any] | None = None
    """The graph that runs of the agent begin with (`Workflow.to_plain`); a run has its own."""
    name: str = "graph"
    """The name that is stored with the run."""
    rules: tuple[str, ...] = ()
    """No prompt is written."""

    def next(self, agent: AgentSpec, trace: Trace) -> Effect:
        """The next effect."""
        if trace.phase == "acting":
            return _CALLS.next(agent, trace)
        if trace.phase == "decided":
            reply = trace.last_reply
            if reply is None or not isinstance(reply.decision, Act):
                raise IllegalEvent(f"Run {trace.run_id}: no decision to act on.")
            return RequestCalls(reply.decision, reply.step)
        if (reached := trace.limit_reached) is not None:
            return Finish(fact=limit_finish(trace, reached))
        progress = graph_progress(trace)
        if (failure := progress.failure) is not None:
            return Finish(fact=_failed(agent, failure))
        if progress.has_exited or not progress.due:
            return _completed(agent, trace, progress)
        if (reached := exceeded_limit(trace) or exceeded_step_limit(trace)) is not None:
            return Record(facts=(reached,))
        return _decide(agent, trace, progress)


def _decide(agent: AgentSpec, trace: Trace, progress: GraphProgress) -> Effect:
    names = progress.ready()
    calls: list[Call] = []
    for name in names:
        card = trace.card(progress.workflow.nodes[name].tool)
        try:
            calls.append(progress.call_of(name, card.required if card is not None else ()))
        except ExpressionError as error:
            return Finish(fact=_failed(agent, Failure(kind="node", node=name, reason=str(error))))
    text = SEPARATOR.join(names)
    return Record(
        facts=(
            new_model_replied(
                step=trace.step_count + 1,
                purpose="decide",
                text=text,
                decision=Act(calls=tuple(calls), reason=text),
                model=GRAPH_MODEL,
                cost_usd=0.0,
            ),
        )
    )


def _completed(agent: AgentSpec, trace: Trace, progress: GraphProgress) -> Effect:
    try:
        answer = progress.answer()
    except ExpressionError as error:
        return Finish(fact=_failed(agent, Failure(kind="node", node="answer", reason=str(error))))
    count = sum(progress.visits.values()) - len(progress.due)  # those that EXIT left undone
    reason = TEXTS.text(agent.language, "graph_done", count=count)
    # the answer is made from the state by rule, not by a model: its agent nodes have checked what they answered
    return Finish(fact=answered_finish(trace, answer, reason, cited_ids(answer), with_tools=False))


def _failed(agent: AgentSpec, failure: Failure) -> Finished:
    values: dict[str, Any] = {"node": failure.node, "reason": failure.reason, "count": failure.count}
    reason = TEXTS.text(agent.language, f"graph_{failure.kind}", **values)
    if failure.kind == "limit":
        return Finished(status="max_steps_exceeded", answer=None, reason=reason, limit="max_visits")
    return Finished(status="unreadable" if failure.kind == "task" else "too_many_errors", answer=None, reason=reason)


GRAPH = GraphStrategy()
"""Runs the graph in the description of the run."""
