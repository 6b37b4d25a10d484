"""What a person does to a run on its page: stop it, leave a note for the model, mark its outcome, drop its lesson."""

from __future__ import annotations

from typing import Final, cast, get_args

from aiohttp import web

from taoloop.core.human_input import MarkVerdict
from taoloop.errors import ConfigError, NotWaiting
from taoloop.journals.base import locks_of
from taoloop.runtime.after.evaluation import drop_lesson, mark_run
from taoloop.runtime.approvals.inbox import add_note
from taoloop.runtime.journal_access import end_holder, stop_run
from taoloop.serve.panel.context import PanelContext, Route


async def note(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/notes`: adds a note to a run that waits or was stopped."""
    run_id, form = context.param("run_id"), await context.form()
    recorded = await add_note(
        context.journal,
        run_id,
        str(form.get("text", "")),
        by=context.identity.name,
        authenticated=context.identity.authenticated,
        clock=context.panel.clock,
    )
    seq = next(event.seq for event in recorded.events if event.kind == "noted")
    return context.redirect(f"{context.run_path(run_id, seq=seq)}#e-{seq}")


async def set_mark(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/marks`: marks the outcome of a run that has ended as right or wrong."""
    run_id, form = context.param("run_id"), await context.form()
    verdict = str(form.get("verdict", ""))
    if verdict not in get_args(MarkVerdict):
        message = context.say("A run is marked right or wrong, not {text}.", text=repr(verdict[:40]))
        raise ConfigError(message, hint=context.say("Choose one of the two buttons."))
    await mark_run(
        context.journal,
        run_id,
        cast("MarkVerdict", verdict),
        by=context.identity.name,
        note=str(form.get("note", "")),
        authenticated=context.identity.authenticated,
        clock=context.panel.clock,
    )
    return context.redirect(context.run_path(run_id))


async def stop(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/stop`: stops a run that this process drives, for the panel or a client of the gateway.

    A run of another process is stopped there: its process may drive other runs, too. `POST …/end-process` ends it.
    """
    run_id = context.param("run_id")
    if not await stop_run(context.journal, run_id):
        locks = locks_of(context.journal)
        holder = None if locks is None else await locks.holder(run_id)
        if holder is None:
            message = context.say("No process is at work on this run.")
            raise NotWaiting(message, hint=context.say("There is nothing to stop; it can be resumed."))
        message = context.say("At work on this run: {holder}.", holder=str(holder))
        raise NotWaiting(message, hint=context.say("Stop it there, or let an admin end that process."))
    return context.redirect(context.run_path(run_id))


async def drop(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/drop-lesson`: no later run reads the lesson of the run any more."""
    run_id, identity = context.param("run_id"), context.identity
    signed = {"by": identity.name, "authenticated": identity.authenticated}
    await drop_lesson(context.journal, run_id, clock=context.panel.clock, **signed)
    return context.redirect(context.run_path(run_id))


async def end_process(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/end-process`: ends the process that is at work on the run, with all of its runs."""
    run_id = context.param("run_id")
    if not await end_holder(context.journal, run_id):
        message = context.say("No process is at work on this run.")
        raise NotWaiting(message, hint=context.say("There is nothing to stop; it can be resumed."))
    return context.redirect(context.run_path(run_id))


ROUTES: Final = (
    Route("POST", "/runs/{run_id}/notes", note, role="approver"),
    Route("POST", "/runs/{run_id}/marks", set_mark, role="approver"),
    Route("POST", "/runs/{run_id}/stop", stop, role="approver"),
    Route("POST", "/runs/{run_id}/drop-lesson", drop, role="approver"),
    Route("POST", "/runs/{run_id}/end-process", end_process, role="admin"),
)
