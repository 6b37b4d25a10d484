"""What the offline model does where a run is planned first (`plan_execute`): its own plan as a plan of steps.

It plans the whole task anyway. Where each part of the task is one call with values of the task, every part is a step
with exactly that call; else the task is one step, whose run it then plans as it plans any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision
from taoloop.core.trace import Trace
from taoloop.core.views.plans import MAKE_PLAN, RUN_STEP, plan_progress
from taoloop.models.offline.answers import Speech
from taoloop.models.offline.arguments import EARLIER
from taoloop.models.offline.arithmetic import Node, Question
from taoloop.policy.plan_grants import step_of

Step = tuple[Node, str]
"""A part of the task, and its words."""


def task_of(trace: Trace, task: str) -> str:
    """What is to be done in a run: the goal of its step, where it carries out one of a plan; else the task."""
    step = step_of(trace)
    return task if step is None else step.goal


def worker_cards(cards: Sequence[ToolCard]) -> list[ToolCard]:
    """The tools that steps may call."""
    return [card for card in cards if card.name not in (MAKE_PLAN, RUN_STEP)]


def broken_by(trace: Trace) -> str:
    """Why the plan of a run cannot go on: the error of a step, or of the plan; empty if it can."""
    calls = reversed(trace.calls.values())
    observed = next((call.observed for call in calls if call.observed is not None), None)
    return "" if observed is None or observed.error is None else observed.error.message


def plan_decision(trace: Trace, task: str, steps: Sequence[Step], speech: Speech) -> Decision:
    """The plan of a task with these parts; once its steps are done, the answer from what they gave."""
    progress = plan_progress(trace)
    if progress.plan is None:
        planned = _plan_steps(task, steps)
        reason = speech.say("plan", n=str(len(planned)))
        return Act(calls=(Call(tool=MAKE_PLAN, args={"steps": planned}),), reason=reason)
    outcomes = (each.call.observed for each in progress.steps.values() if each.call is not None)
    text = "\n".join(observed.output for observed in outcomes if observed is not None)
    return Answer(text=text, reason=speech.say("done"))


def _plan_steps(task: str, steps: Sequence[Step]) -> list[dict[str, Any]]:
    calls = [_call_of(node) for node, _ in steps]
    if None in calls:
        return [{"number": 1, "goal": task}]
    return [
        {"number": number, "goal": text, "calls": [call]}
        for number, ((_, text), call) in enumerate(zip(steps, calls, strict=True), 1)
    ]


def _call_of(node: Node) -> dict[str, Any] | None:
    """The one call of a part of a task; None where it needs another result, or calculates with it."""
    if not isinstance(node, Question) or EARLIER in node.match.filling.args.values():
        return None
    return {"tool": node.match.profile.card.name, "args": dict(node.match.filling.args)}
