"""What happens to a run once a person has answered: this process resumes it, or a command does."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from urllib.parse import quote

from aiohttp import web

from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.journals.base import KEY, locks_of
from taoloop.runtime.approvals.inbox import outermost_run_id
from taoloop.runtime.approvals.inbox_items import INBOX_KINDS, InboxItem, resume_command
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.fleet.submission import release_run
from taoloop.runtime.fleet.wakes import submission_of
from taoloop.runtime.journal_access import require_unlocked
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.stored_run import command_line, load_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """How a run goes on."""

    run_id: str
    """The run to resume: the outermost one around the run that asked."""

    status: str
    """Its status."""

    command: str
    """The command that resumes it; empty for a run that is over for good."""

    open_items: tuple[InboxItem, ...]
    """What still waits for a person, in the run and those inside it."""

    is_driven: bool
    """Whether a process is at work on it."""

    can_resume: bool
    """Whether the panel can resume it."""

    resumes_itself: bool
    """Whether it is resumed without anybody's doing, as the gateway and workers do."""

    has_workers: bool
    """Whether workers drive it, to whom it is handed again."""

    error: str
    """Why the panel could not continue it when it last tried."""

    asks_then: bool
    """Whether resuming it asks a person about what was denied: it was blocked because nobody could be asked."""


async def next_step(context: PanelContext, trace: Trace) -> NextStep:
    """What happens next to a run, or to the one around it."""
    outer_id = await outermost_run_id(context.journal, trace)
    outer = trace if outer_id == trace.run_id else await read_excerpt(context.journal, outer_id)
    listing = await context.panel.inbox.load(kinds=INBOX_KINDS, run_id=outer_id, now=context.panel.clock.now())
    locks = locks_of(context.journal)
    is_held = locks is not None and await locks.holder(outer_id) is not None
    command = "" if outer.is_over else command_line(context, *shlex.split(resume_command(outer)))
    labels = {} if outer.started is None else outer.started.labels
    is_undo = outer.started is not None and outer.started.undoes is not None
    has_workers = submission_of(outer) is not None
    by_gateway = context.panel.resumes_itself and KEY in labels
    return NextStep(
        run_id=outer_id,
        status=outer.status,
        command=command,
        open_items=listing.items,
        is_driven=is_held or context.panel.background.drives(outer_id),
        can_resume=(context.panel.agents is not None or has_workers) and not is_undo and bool(command),
        resumes_itself=outer.paused is not None and (has_workers or by_gateway),
        has_workers=has_workers,
        error=context.without_path(context.panel.background.error_of(outer_id)),
        asks_then=command != "" and "--profile" in resume_command(outer),
    )


async def resume(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/resume`: this process continues the run in the background, under a lease of its own.

    A run of workers is handed to them again, also one that is parked because it killed them.

    With `ask` a run that was blocked because nobody could be asked asks a person from here on. `item` is the item of
    the inbox (`RUN_ID:CALL_ID`) to come back to.
    """
    run_id, form = context.param("run_id"), await context.form()
    trace = await load_trace(context)
    hint = context.say("Use: {command}", command=command_line(context, *shlex.split(resume_command(trace))))
    if submission_of(trace) is not None and "ask" not in form:
        await release_run(context.journal, run_id, by=context.identity.name, clock=context.panel.clock)
        return _back(context, run_id, form)
    if context.panel.agents is None:
        raise ConfigError(context.say("This panel continues no runs."), hint=hint)
    if trace.started is None or trace.started.parent is not None or trace.started.undoes is not None:
        raise ConfigError(context.say("This run is not continued by itself."), hint=hint)
    agent = replace(context.panel.agents(trace.agent), journal=context.journal)
    try:
        bind(agent).require_resumable(trace)
        await require_unlocked(context.journal, run_id)
    except BaseException:
        await context.panel.release(agent)
        raise
    policy = replace(trace.agent.policy, profile="supervised") if "ask" in form else None
    release = partial(context.panel.release, agent)
    await context.panel.background.start(run_id, agent.resume(run_id, policy=policy), release)
    return _back(context, run_id, form)


def _back(context: PanelContext, run_id: str, form: Mapping[str, object]) -> web.StreamResponse:
    """To the page that the form was sent from."""
    if "item" not in form:
        return context.redirect(context.run_path(run_id))
    asked_by, _, call_id = str(form["item"]).rpartition(":")
    return context.redirect(item_path(context, asked_by, call_id))


def item_path(context: PanelContext, run_id: str, call_id: str) -> str:
    """The address of an item of the inbox."""
    return context.path(f"/inbox/{quote(run_id, safe='')}/{quote(call_id, safe='')}")


def item_url(context: PanelContext, item: InboxItem | ApprovalRequest) -> str:
    """The same of an item, or of a question."""
    return item_path(context, item.run_id, item.call_id)


ROUTES: Final = (Route("POST", "/runs/{run_id}/resume", resume, role="approver"),)
