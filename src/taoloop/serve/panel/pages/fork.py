"""A fork of a run: the form with everything that may be edited at a step, and the new run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from aiohttp import web

from taoloop.core.text import escape_invisible
from taoloop.core.trace import Trace
from taoloop.core.views.difference_text import decision_text
from taoloop.core.views.run_diff import step_text
from taoloop.errors import ConfigError, TaoError
from taoloop.runtime.after.fork import fork_for, store_fork
from taoloop.runtime.after.fork_draft import ForkDraft, form_text
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.stored_run import command_line, load_trace
from taoloop.translation import error_texts

_WHOLE_CHARS = 100_000  # of an output that is shown whole; of a longer one the form has the preview
_NEAR = 3  # steps before and after the one to be decided again
_CUT = 200


async def fork_form(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/fork?step=N`: what may be edited there; by default the last step."""
    trace = await load_trace(context)
    draft = await _draft(context, trace, context.query("step") or str(max(1, len(trace.steps))))
    return _form(context, trace, draft, draft)


async def fork(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/fork`: makes the fork, or gives the form back with all that was written."""
    trace, form = await load_trace(context), await context.form()
    draft = await _draft(context, trace, str(form.get("step", "")))
    edited, max_steps = _edited(draft, form), str(form.get("max_steps", "")).strip()
    runs_on = form.get("action") == "run" and context.panel.agents is not None
    try:
        forked = await _make(context, trace, draft, edited, max_steps, runs_on=runs_on)
    except TaoError as error:
        return _form(context, trace, draft, edited, max_steps=max_steps, problem=error, status=422)
    if runs_on:
        return context.redirect(context.run_path(forked))
    return context.redirect(context.run_path(trace.run_id, "/fork", step=draft.at, fork=forked))


ROUTES: Final = (
    Route("GET", "/runs/{run_id}/fork", fork_form, role="approver"),
    Route("POST", "/runs/{run_id}/fork", fork, role="approver"),
)


async def _make(
    context: PanelContext, trace: Trace, draft: ForkDraft, edited: ForkDraft, max_steps: str, *, runs_on: bool
) -> str:
    """Store the fork, and drive it if it `runs_on`; returns its id.

    Raises:
        TaoError: it cannot be made like that, or nobody here can run it on. Nothing was stored.
    """
    options: dict[str, Any] = {"at": draft.at, "edit": draft.edits(edited), "by": context.identity.name}
    options["max_steps"] = _max_steps(max_steps, trace)
    if not runs_on or context.panel.agents is None:
        now = context.panel.clock.now()
        return (await store_fork(context.journal, trace.run_id, now=now, **options)).run_id
    agent = context.panel.agents(trace.agent)
    try:
        forked = await fork_for(agent, context.journal, trace.run_id, **options)
    except BaseException:
        await context.panel.release(agent)
        raise
    release = partial(context.panel.release, agent)
    await context.panel.background.start(forked.run_id, agent.resume(forked.run_id), release)
    return forked.run_id


def _max_steps(text: str, trace: Trace) -> int | None:
    """The number of steps that the fork may take; None: as many as the run.

    Raises:
        ConfigError: it is no number.
    """
    if not text or text == str(trace.limits.max_steps):
        return None
    if not (text.isascii() and text.isdecimal() and int(text[:9]) > 0 and len(text) < 10):
        raise ConfigError(f"{text[:40]!r} is no number of steps.", hint="Give a whole number above 0.")
    return int(text)


async def _draft(context: PanelContext, trace: Trace, step: str) -> ForkDraft:
    """What may be edited at a step.

    Raises:
        ConfigError: the run has no such step.
    """
    if not (step.isascii() and step.isdecimal() and len(step) < 10):
        raise ConfigError(f"{step[:40]!r} is not the number of a step.", hint="Steps are counted from 1.")
    outputs = {}
    if 1 <= int(step) <= len(trace.steps):
        for call in trace.steps[int(step) - 1].calls:
            observed = call.observed
            if observed is not None and observed.artifact is not None and observed.size_chars <= _WHOLE_CHARS:
                artifact = await context.journal.artifact(trace.run_id, observed.artifact)
                if artifact is not None:
                    outputs[call.requested.call_id] = artifact.body
    return ForkDraft.of(trace, int(step), outputs)


def _edited(draft: ForkDraft, form: Any) -> ForkDraft:
    """What came back; a field that the form does not have stays as it was."""

    def text(name: str, before: str) -> str:
        return form_text(str(form.get(name, before)))

    return replace(
        draft,
        task=text("task", draft.task),
        instructions=text("instructions", draft.instructions),
        thought=text("thought", draft.thought),
        decision=text("decision", draft.decision),
        outcomes=tuple(
            replace(
                outcome,
                text=text(f"outcome-{outcome.call_id}", outcome.text),
                failed=form.get(f"kind-{outcome.call_id}", "error" if outcome.failed else "output") == "error",
            )
            for outcome in draft.outcomes
        ),
    )


def _form(
    context: PanelContext,
    trace: Trace,
    draft: ForkDraft,
    edited: ForkDraft,
    *,
    max_steps: str = "",
    problem: TaoError | None = None,
    status: int = 200,
) -> web.StreamResponse:
    at, steps = draft.at, trace.steps
    near = range(max(1, at - _NEAR), min(len(steps), at + _NEAR) + 1)
    forked = context.query("fork") if context.request.method == "GET" else ""
    texts = (edited.task, edited.instructions, edited.thought, *(outcome.text for outcome in edited.outcomes))
    return context.page(
        "fork.html",
        status=status,
        trace=trace,
        draft=draft,
        edited=edited,
        near=[(number, decision_text(step_text(steps[number - 1]), context.language)[:_CUT]) for number in near],
        last=len(steps),
        max_steps=max_steps or trace.limits.max_steps or "",
        problem=None if problem is None else error_texts(problem, context.language),
        forked=forked,
        resume=command_line(context, "tao", "resume", forked) if forked else "",
        can_run=context.panel.agents is not None,
        has_invisible=any(escape_invisible(text) != text for text in texts),
    )
