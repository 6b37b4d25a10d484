"""Undo: the plan with every call that will be made, and its execution once a person has agreed to exactly that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from aiohttp import web

from taoloop.core.events import Undo
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import observation_text
from taoloop.errors import ConfigError, TaoError
from taoloop.runtime.after.undo import approved_by, plan_undo, require_not_undone, undo
from taoloop.runtime.after.undo_plan import UndoPlan, UndoStatus, effects_after, is_open, undos_of
from taoloop.runtime.agent import Agent
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.stored_run import command_line, load_trace
from taoloop.strategies.planned_calls import call_of, plan_of
from taoloop.translation import error_texts, mark, translate_error

_GROUPS: Final[dict[UndoStatus, str]] = {
    "undo": mark("Will be undone, in this order"),
    "cannot": mark("Cannot be undone"),
    "unknown": mark("May or may not have happened: check by hand"),
    "skipped": mark("Left alone"),
    "elsewhere": mark("Not done by this run"),
    "undone": mark("Undone before"),
}
"""What the page says of the calls, by what becomes of them."""

UndoState = Literal["waits", "runs", "done", "failed"]

_STATES: Final[dict[UndoState, str]] = {
    "waits": mark("waits"),
    "runs": mark("runs"),
    "done": mark("undone"),
    "failed": mark("failed"),
}
"""What the page says of a call of a run that undoes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoSelection:
    """Which part of a run a person wants to undo."""

    to_step: int = 0
    """The last step that stays; 0 undoes all."""
    skip: tuple[str, ...] = ()
    """Calls to be left alone."""
    again: tuple[str, ...] = ()
    """Calls whose compensation is to be tried once more."""

    @classmethod
    def of(cls, fields: Any) -> UndoSelection:
        """The selection in an address or a form.

        Raises:
            ConfigError: the step is no number.
        """
        step = fields.get("to", "0") or "0"
        if not (step.isascii() and step.isdecimal() and len(step) < 10):
            raise ConfigError(f"{step[:40]!r} is not the number of a step.", hint="Steps are counted from 1.")
        return cls(to_step=int(step), skip=tuple(fields.getall("skip", ())), again=tuple(fields.getall("again", ())))

    @property
    def options(self) -> dict[str, Any]:
        """The same for `plan_undo` and `undo`."""
        return {"to_step": self.to_step, "skip": self.skip, "again": self.again}

    @property
    def words(self) -> list[str]:
        """The same for `tao undo`."""
        words = ["--to", str(self.to_step)] if self.to_step else []
        for name in ("skip", "again"):
            for call in getattr(self, name):
                words += [f"--{name}", call]
        return words


async def undo_page(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/undo`: the plan; what was done already, while it is carried out."""
    selection = UndoSelection.of(context.request.query)
    return await _page(context, await load_trace(context), selection)


async def carry_out(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/undo`: carries out the plan that the person saw, and no other one."""
    trace, form = await load_trace(context), await context.form()
    selection = UndoSelection.of(form)
    taken = context.say("Somebody else is undoing this run at the moment; nothing was done twice.")
    if context.panel.background.drives(_key(trace.run_id)):
        return await _page(context, trace, selection, problem=taken, status=409)
    agent = _agent(context, trace)
    if agent is None:
        return await _page(context, trace, selection, status=409)
    try:
        plan = await plan_undo(agent, context.journal, trace.run_id, **selection.options)
        problem = _objection(context, plan, form)
        if not problem:
            await require_not_undone(context.journal, trace.run_id)
    except BaseException:
        await context.panel.release(agent)
        raise
    if problem:
        await context.panel.release(agent)
        return await _page(context, trace, selection, problem=problem, status=409)
    approver = approved_by(context.identity.name, authenticated=context.identity.authenticated)
    undoing = undo(agent, context.journal, trace.run_id, approver=approver, agreed=plan, **selection.options)
    if not await context.panel.background.start(_key(trace.run_id), undoing, partial(context.panel.release, agent)):
        return await _page(context, trace, selection, problem=taken, status=409)
    return context.redirect(_address(context, trace.run_id, selection))


def _objection(context: PanelContext, plan: UndoPlan, form: Any) -> str:
    """Why a plan is not carried out; empty: it is."""
    if str(form.get("digest", "")) != plan.digest:
        return context.say("The run has changed since you saw this plan; nothing was undone. Look at it again.")
    if form.get("agreed") != "1":
        return context.say("Say that you have read the plan; nothing was undone.")
    return "" if plan.todo else context.say("There is nothing to undo.")


ROUTES: Final = (
    Route("GET", "/runs/{run_id}/undo", undo_page, role="approver"),
    Route("POST", "/runs/{run_id}/undo", carry_out, role="admin"),
)


def _key(run_id: str) -> str:
    """The name under which an undo is driven: not that of the run, which may be driven, too."""
    return f"{run_id}.undo"


def _agent(context: PanelContext, trace: Trace) -> Agent | None:
    return None if context.panel.agents is None else context.panel.agents(trace.agent)


def _address(context: PanelContext, run_id: str, selection: UndoSelection) -> str:
    return context.run_path(run_id, "/undo", to=selection.to_step or None, skip=selection.skip, again=selection.again)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """A call of a run that undoes, and what came of it so far."""

    entry: Undo
    """What it undoes, and by which call."""
    state: UndoState
    """What came of it so far."""
    why: str
    """The error of a call that failed."""


def _progress(undoing: Trace) -> list[CallOutcome]:
    """The calls of a run that undoes, in their order. Their tools are not needed for that."""
    calls = []
    for number, entry in enumerate(plan_of(undoing)):
        call = undoing.calls.get(call_of(number))
        observed = None if call is None else call.observed
        state: UndoState = "runs" if call is not None and call.attempts else "waits"
        if observed is not None:
            state = "done" if observed.ok else "failed"
        why = observation_text(observed) if observed is not None and not observed.ok else ""
        calls.append(CallOutcome(entry=entry, state=state, why=why))
    return calls


async def _page(
    context: PanelContext, trace: Trace, selection: UndoSelection, *, problem: str = "", status: int = 200
) -> web.StreamResponse:
    plan: UndoPlan | None = None
    cause: tuple[str, str] | None = None
    is_running = context.panel.background.drives(_key(trace.run_id))
    try:
        if not is_running and (agent := _agent(context, trace)) is not None:
            try:
                plan = await plan_undo(agent, context.journal, trace.run_id, **selection.options)
            finally:
                await context.panel.release(agent)
    except TaoError as error:  # the agent is not to be had here, or the selection is none
        cause = error_texts(error, context.language)
        status = 409 if status == 200 else status
    undos = await undos_of(context.journal, trace.run_id)
    values = {
        "trace": trace,
        "selection": selection,
        "plan": plan,
        "groups": [(name, title, items) for name, title in _GROUPS.items() if plan and (items := plan.of(name))],
        "effects": [] if plan is not None or is_running else effects_after(trace, 0),
        "progress": _progress(undos[-1]) if is_running and undos and is_open(undos[-1]) else [],
        "problem": problem,
        "cause": cause,
        "is_running": is_running,
        "states": _STATES,
        "is_interrupted": not is_running and any(map(is_open, undos)),
        "undos": [undo.run_id for undo in undos],
        "failure": "" if is_running else translate_error(context.panel.background.error_of(_key(trace.run_id))),
        "command": command_line(context, "tao", "undo", trace.run_id, *selection.words),
        "address": _address(context, trace.run_id, selection),
    }
    if context.is_fragment:
        return context.fragment("undo_plan.html", status=status, **values)
    return context.page("undo.html", status=status, **values)
