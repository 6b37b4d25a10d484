"""What a person says to a run that waits: shared by the commands that write it down."""

from __future__ import annotations

import asyncio
import getpass
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TextIO

from taoloop.cli.database import load_run
from taoloop.cli.ui.stdio import print_stderr, terminal_language
from taoloop.cli.ui.texts import ui_text
from taoloop.core.events import ApprovalGiven, ApprovalRefused
from taoloop.core.stored_events import event_line
from taoloop.core.trace import Trace
from taoloop.errors import NotWaiting, TaoError
from taoloop.journals.base import Journal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.approvals.in_doubt import describe_doubt
from taoloop.runtime.approvals.inbox import AnswerRecorded, PendingApproval, outermost_run_id
from taoloop.runtime.approvals.questions import unanswered_calls
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.strategies.in_doubt import plan_unresolved_calls

_ALL = 10_000_000


async def calls_in_doubt(journal: Journal, run_id: str | None = None) -> list[PendingApproval]:
    """Every call in doubt of the runs that wait, the oldest run first; those of `run_id` and inside it alone.

    A run that cannot be read is left out: `waiting_calls` tells of it.
    """
    pending = []
    for row in reversed(await journal.runs(limit=_ALL, status="waiting")):
        if run_id is not None and row.run_id != run_id and not row.run_id.startswith(f"{run_id}."):
            continue
        try:
            trace = Trace(row.run_id, await journal.load(row.run_id))
            questions = doubt_questions(trace)
            outer = await outermost_run_id(journal, trace) if questions else ""
        except TaoError:
            continue
        pending += [PendingApproval(request=question, task=trace.task, outer=outer) for question in questions]
    return pending


def doubt_questions(trace: Trace) -> list[ApprovalRequest]:
    """The calls of a run that waits of which a person must say whether they happened."""
    if trace.paused is None:
        return []
    return [
        ApprovalRequest(
            run_id=trace.run_id,
            call_id=call.requested.call_id,
            tool=call.requested.tool,
            args=call.args,
            reasons=(),
            card=trace.card(call.requested.tool),
            digest=call.requested.digest,
            policy=call.requested.policy,
            since=call.started_at,
            doubt=describe_doubt(trace, call),
        )
        for call in plan_unresolved_calls(trace, tuple(trace.pending.values())).ask
    ]


def current_user(by: str | None) -> str:
    """Who speaks: the name that was given, else that of the user of the system."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name
        return "user"


def record_answer(
    path: Path, run_prefix: str, add: Callable[[Journal, str], Awaitable[AnswerRecorded]]
) -> tuple[AnswerRecorded, str]:
    """Add something to the run that `given` names; gives it with the run to resume: the outermost around it."""
    run_id = load_run(path, run_prefix).run_id  # which also keeps a database from being made by looking for a run

    async def work() -> tuple[AnswerRecorded, str]:
        async with SqliteJournal(path) as journal:
            try:
                done = await add(journal, run_id)
            except NotWaiting as error:
                if open_questions := doubt_questions(Trace(run_id, await journal.load(run_id))):
                    raise NotWaiting(error.message, hint=f"{error.hint} {_in_doubt(open_questions)}") from error
                raise
            return done, await outermost_run_id(journal, done.trace)

    return asyncio.run(work())


def _in_doubt(open_questions: list[ApprovalRequest]) -> str:
    calls = ", ".join(question.call_id for question in open_questions)
    first = open_questions[0]
    settle = f"tao settle {first.run_id} {first.call_id}"
    return f"It is not known whether these took effect: {calls}. Record it with `{settle}`."


def print_answer(stream: TextIO, done: AnswerRecorded, outer: str, db: str | None, *, as_json: bool) -> None:
    """What was written, and what is to be done next."""
    trace = done.trace
    language = terminal_language(trace.agent.language, stream)
    if as_json:
        stream.writelines(event_line(trace.run_id, event) + "\n" for event in done.events)
    else:
        for event in done.events:
            match event.fact:
                case ApprovalGiven(call_id=call_id) | ApprovalRefused(call_id=call_id) as fact:
                    name = "allowed_now" if isinstance(fact, ApprovalGiven) else "refused_now"
                    tool = trace.calls[call_id].requested.tool
                    stream.write(ui_text(language, name, tool=tool, call_id=call_id, run_id=trace.run_id) + "\n")
                case _:
                    pass
    stream.flush()
    spoken_in = terminal_language(trace.agent.language, sys.stderr)
    if unanswered := unanswered_calls(trace):
        calls = ", ".join(f"{call.requested.tool} ({call.requested.call_id})" for call in unanswered)
        print_stderr(ui_text(spoken_in, "also_waiting", calls=calls))
    print_stderr(ui_text(spoken_in, "go_on", command=resume_command_line(outer, db)))


def resume_command_line(run_id: str, db: str | None) -> str:
    """The command that goes on with a run."""
    return f"tao resume {run_id}" + (f" --db {shlex.quote(db)}" if db is not None else "")
