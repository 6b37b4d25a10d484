"""The plan of a run, with what has become of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web

from taoloop.core.events import Event
from taoloop.core.trace import Trace
from taoloop.core.views.plans import (
    PlanProgress,
    StepProgress,
    StepStatus,
    call_text,
    is_planning,
    plan_progress,
    status_text,
    step_notes,
    step_title,
)
from taoloop.runtime.child_run import inner_run_id
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.run_reading import read_events

_LOOKS: Final[dict[StepStatus, str]] = {
    "running": "running",
    "waiting": "waiting",
    "done": "completed",
    "failed": "lost",
}
"""How the status of a step looks: as that of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One step of a plan as the page shows it."""

    title: str
    """Its number and goal, and what it comes after."""

    calls: tuple[str, ...]
    """The calls that it lists."""

    notes: tuple[str, ...]
    """What it expects, or that its calls are open."""

    status: str
    """How far it has come, in words."""

    look: str
    """How that looks."""

    run_id: str
    """The run that carries it out; empty before it began."""

    problem: str
    """Why it failed; empty if it did not."""


class PlanView:
    """The plans of a run, folded from the events that calls and people bring, without what the model said."""

    kinds: Final = (
        *("run_started", "resumed", "paused", "noted", "action_requested", "judged_again", "approval_given"),
        *("approval_refused", "action_started", "input_answered", "in_doubt", "doubt_settled", "observed"),
    )
    """What is read of the run."""

    def __init__(self) -> None:
        self._trace = Trace("")

    def fold(self, event: Event) -> None:
        """Process the next event of one of these kinds."""
        self._trace.add(event.fact, event.at)

    @property
    def progress(self) -> PlanProgress:
        """The plans, and how far they have come."""
        return plan_progress(self._trace)


async def plan_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/plan`: the steps of all its plans, each with its status; nothing for a run without a plan."""
    run_id, progress = context.param("run_id"), PlanProgress({})
    starts = await read_events(context.queries, run_id, 0, 1)
    if any(isinstance(event, Event) and is_planning(Trace(run_id, [event])) for event in starts):
        progress = (await context.panel.views.of(run_id, PlanView)).progress
    made_by = progress.made_by
    return context.fragment(
        "run_plan.html",
        run_id=run_id,
        steps=[_row(context.language, run_id, progress.steps[number]) for number in sorted(progress.steps)],
        approval=None if made_by is None else made_by.approval,
    )


def _row(language: str, run_id: str, progress: StepProgress) -> PlanRow:
    call, step = progress.call, progress.step
    observed = None if call is None else call.observed
    error = None if observed is None else observed.error
    return PlanRow(
        title=step_title(language, step),
        calls=tuple(call_text(language, planned) for planned in step.calls),
        notes=tuple(step_notes(language, step)),
        status=status_text(language, progress.status),
        look=_LOOKS.get(progress.status, "open"),
        run_id="" if call is None else inner_run_id(run_id, call.requested.call_id),
        problem="" if error is None else error.message,
    )


ROUTES: Final = (Route("GET", "/runs/{run_id}/plan", plan_part),)
