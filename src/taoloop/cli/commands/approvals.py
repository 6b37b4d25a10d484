"""`tao approvals`: the calls that are waiting for a person, over all runs of a database."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import ALL_RUNS, database, load_run, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.approval_view import format_local_time, reasons_of, show_call
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, one_line, print_stderr
from taoloop.core.text import language_of
from taoloop.core.trace import Trace
from taoloop.errors import TaoError
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.in_doubt import describe_doubt
from taoloop.runtime.approvals.inbox import PendingApproval, outermost_run_id, pending_approvals
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.strategies.in_doubt import plan_unresolved_calls


@click.command("approvals")
@click.argument("run_id", required=False)
@options.db_option
@options.json_option("One JSON array with an object for each call.")
def approvals_command(run_id: str | None, db: str | None, as_json: bool) -> int:
    """List the calls that are waiting for a person, in all runs of the database or in RUN_ID and the runs inside it.

    Each argument is shown with its origin: YOURS (it is in the task), LOOKED UP (a trusted tool returned it),
    WRITTEN (by the model), LINKS (with links that no trusted text has), UNKNOWN (it appears nowhere in the run) or
    FOREIGN (only in the output of an untrusted tool; the text around it is shown). `high-risk` marks a call that is
    hard to undo and whose target nobody named. A call in doubt is answered with `tao settle`; --json shows it with
    "doubt": true.

      tao approvals
      tao approvals --json | jq '.[] | {run_id, call_id, tool, args}'
      tao approve RUN_ID CALL_ID
      tao deny RUN_ID CALL_ID --note "why not"
      tao resume RUN_ID
    """
    path = database(db, load_environment())
    pending = _load_pending(path, run_id)
    with capture_stdout() as stream:
        if as_json:
            rows = [_row(approval) for approval in pending]
            stream.write(json.dumps(rows, ensure_ascii=False, indent=2, default=str) + "\n")
        elif pending:
            _write(stream, pending, db)
        else:
            print_stderr(translate("{path}: no call is waiting for a person.", path=path))
    return exits.OK


def _load_pending(path: Path, run_prefix: str | None) -> list[PendingApproval]:
    run_id = None if run_prefix is None else load_run(path, run_prefix).run_id

    def report_unreadable(broken_id: str, error: TaoError) -> None:
        text = one_line(error.message)
        print_stderr(translate("The run {run_id} is waiting but cannot be read: {error}", run_id=broken_id, error=text))

    async def load(journal: Journal) -> list[PendingApproval]:
        pending = await pending_approvals(journal, run_id=run_id, on_error=report_unreadable)
        pending += await _calls_in_doubt(journal, run_id)
        order = list(dict.fromkeys(approval.request.run_id for approval in pending))
        for waiting_id in order:
            if (flaw := (await journal.verify(waiting_id)).first) is not None:
                message = translate(
                    "The run {run_id} is not as it was written: {flaw}."
                    " Do not trust what is shown of it; it accepts no answers.",
                    run_id=waiting_id,
                    flaw=flaw.text,
                )
                print_stderr(message)
        return sorted(pending, key=lambda approval: order.index(approval.request.run_id))

    return query_database(path, load)


async def _calls_in_doubt(journal: Journal, run_id: str | None = None) -> list[PendingApproval]:
    """Every call in doubt of the waiting runs, the oldest run first; with `run_id` those of it and the runs inside it.

    A run that cannot be read is left out: `pending_approvals` reports it.
    """
    pending = []
    for row in reversed(await journal.runs(limit=ALL_RUNS, status="waiting")):
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
    """The calls of a waiting run of which a person must say whether they happened."""
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


def _row(approval: PendingApproval) -> dict[str, Any]:
    request = approval.request
    return {
        "run_id": request.run_id,
        "call_id": request.call_id,
        "tool": request.tool,
        "args": request.args,
        "reasons": [request.doubt] if request.doubt else list(request.reasons),
        "doubt": bool(request.doubt),
        "tier": request.card.tier if request.card is not None else None,
        "rule": request.rule,
        "sources": [asdict(source) for source in request.sources],
        "grave": request.grave,
        "digest": request.digest,
        "policy": request.policy,
        "since": request.since,
        "expires_at": request.expires_at,
        "expired": request.expires_at is not None and time.time() >= request.expires_at,
        "task": approval.task,
        "resume": approval.outer,
    }


def _write(stream: TextIO, pending: list[PendingApproval], db: str | None) -> None:
    language = view_language(language_of(pending[0].task), stream)
    pen = RowWriter(console_for(stream), language)
    for number, approval in enumerate(pending):
        request = approval.request
        if number == 0 or pending[number - 1].request.run_id != request.run_id:
            if number:
                pen.line("")
            pen.line(pen.text("run {run_id}", run_id=request.run_id), "bold")
            pen.line("   " + pen.text("Task: {task}", task=one_line(approval.task)), "dim")
        show_call(pen, request)
        if request.doubt:
            pen.row("In doubt", one_line(request.doubt))
            continue
        pen.row("Why", pen.text("; ").join(one_line(reason) for reason in reasons_of(pen, request)))
        times = []
        if request.since is not None:
            times.append(pen.text("waiting since {time}", time=format_local_time(request.since)))
        if request.expires_at is not None:
            times.append(pen.text("Until {time}, then it is refused.", time=format_local_time(request.expires_at)))
        pen.line("   " + " · ".join(times), "dim")
        if request.grave:
            warning = pen.text("High-risk: hard to undo, and nobody named what it acts on. Look twice.")
            pen.line("   " + warning, "bold red")
    _write_commands(pen, pending, options.db_argument(db))


def _write_commands(pen: RowWriter, pending: list[PendingApproval], db_argument: str) -> None:
    """How to answer the first call of each kind, and to resume the run."""
    pen.line("")
    if first := next((approval.request for approval in pending if not approval.request.doubt), None):
        pen.line(f"tao approve {first.run_id} {first.call_id}{db_argument}", "dim")
        pen.line(f"tao deny {first.run_id} {first.call_id}{db_argument} --note …", "dim")
    if first := next((approval.request for approval in pending if approval.request.doubt), None):
        pen.line(f"tao settle {first.run_id} {first.call_id}{db_argument} --happened|--repeat|--leave", "dim")
    pen.line(f"tao resume {pending[0].outer}{db_argument}", "dim")
