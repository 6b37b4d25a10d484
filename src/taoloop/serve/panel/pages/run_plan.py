"""The plan of a run, with what has become of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web

from taoloop.core.trace import Trace
from taoloop.core.views.plans import (
    StepProgress,
    StepStatus,
    call_text,
    plan_progress,
    status_text,
    step_notes,
    step_title,
)
from taoloop.runtime.child_run import inner_run_id
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.stored_run import load_trace

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


async def plan_part(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/plan`: the steps of all its plans, each with its status; nothing for a run without a plan."""
    trace = await load_trace(context)
    progress = plan_progress(trace)
    made_by = progress.made_by
    return context.fragment(
        "run_plan.html",
        run_id=trace.run_id,
        steps=[_row(context.language, trace, progress.steps[number]) for number in sorted(progress.steps)],
        approval=None if made_by is None else made_by.approval,
    )


def _row(language: str, trace: Trace, progress: StepProgress) -> PlanRow:
    call, step = progress.call, progress.step
    observed = None if call is None else call.observed
    error = None if observed is None else observed.error
    return PlanRow(
        title=step_title(language, step),
        calls=tuple(call_text(language, planned) for planned in step.calls),
        notes=tuple(step_notes(language, step)),
        status=status_text(language, progress.status),
        look=_LOOKS.get(progress.status, "open"),
        run_id="" if call is None else inner_run_id(trace.run_id, call.requested.call_id),
        problem="" if error is None else error.message,
    )


ROUTES: Final = (Route("GET", "/runs/{run_id}/plan", plan_part),)
