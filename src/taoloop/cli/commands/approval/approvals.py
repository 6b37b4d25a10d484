"""`tao approvals`: the calls that wait for a person, over all runs of a database."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.approval_answers import calls_in_doubt, resume_command_line
from taoloop.cli.database import database, load_run, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.approval_view import format_local_time, show_call
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, terminal_language
from taoloop.cli.ui.terminal_text import one_line
from taoloop.cli.ui.texts import ui_text
from taoloop.errors import TaoError
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.inbox import PendingApproval, pending_approvals

_HELP = """List the calls that wait for a person, in all runs of the database or in RUN_ID and the runs inside it.

Each argument stands with its origin: YOURS (it stands in the task), LOOKED UP (a trusted tool gave it), WRITTEN (by the
model), LINKS (with links that nobody named), UNKNOWN (it stands nowhere in the run) or FOREIGN (only in what a tool
gave back; the text around it is shown). `grave` marks what is hard to undo and aimed at what nobody named. A call in
doubt is answered with `tao settle`; --json has it with "doubt": true.

\b
  tao approvals
  tao approvals --json | jq '.[] | {run_id, call_id, tool, args}'
  tao approve RUN_ID CALL_ID
  tao deny RUN_ID CALL_ID --note "why not"
  tao resume RUN_ID
"""


@click.command("approvals", help=_HELP)
@click.argument("run_id", required=False)
@options.db_option
@options.json_option("One JSON array with an object for each call.")
def command(run_id: str | None, db: str | None, as_json: bool) -> int:
    """Print what waits."""
    path = database(db, load_environment())
    pending = _load_pending(path, run_id)
    with capture_stdout() as stream:
        if as_json:
            rows = [_row(approval) for approval in pending]
            stream.write(json.dumps(rows, ensure_ascii=False, indent=2, default=str) + "\n")
            return exits.OK
        _write(stream, path, pending, db)
    return exits.OK


def _load_pending(path: Path, run_prefix: str | None) -> list[PendingApproval]:
    run_id = None if run_prefix is None else load_run(path, run_prefix).run_id

    def unreadable(broken: str, error: TaoError) -> None:
        print_stderr(ui_text("en", "unreadable_run", run_id=broken, error=one_line(error.message)))

    async def ask(journal: Journal) -> list[PendingApproval]:
        pending = await pending_approvals(journal, run_id=run_id, on_error=unreadable)
        pending += await calls_in_doubt(journal, run_id)
        order = list(dict.fromkeys(approval.request.run_id for approval in pending))
        for each in order:
            if (flaw := (await journal.verify(each)).first) is not None:
                print_stderr(ui_text("en", "tampered", run_id=each, flaw=flaw.text))
        return sorted(pending, key=lambda approval: order.index(approval.request.run_id))

    return query_database(path, ask)


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


def _write(stream: TextIO, path: Path, pending: list[PendingApproval], db: str | None) -> None:
    pen = RowWriter(console_for(stream), terminal_language(_language(pending), stream))
    if not pending:
        print_stderr(ui_text(pen.language, "nothing_waits", path=path))
        return
    for number, approval in enumerate(pending):
        request = approval.request
        if number == 0 or pending[number - 1].request.run_id != request.run_id:
            if number:
                pen.line("")
            pen.line(ui_text(pen.language, "run", run_id=request.run_id), "bold")
            pen.line("   " + ui_text(pen.language, "for_task", task=one_line(approval.task)), "dim")
        show_call(pen, request)
        if request.doubt:
            pen.row("in_doubt", one_line(request.doubt))
            continue
        pen.row("ask_why", ui_text(pen.language, "semicolon").join(one_line(reason) for reason in request.reasons))
        times = (
            [ui_text(pen.language, "since", time=format_local_time(request.since))] if request.since is not None else []
        )
        if request.expires_at is not None:
            times.append(ui_text(pen.language, "ask_until", time=format_local_time(request.expires_at)))
        pen.line("   " + " · ".join(times), "dim")
        if request.grave:
            pen.line("   " + ui_text(pen.language, "grave"), "bold red")
    db_option = "" if db is None else f" --db {shlex.quote(db)}"
    pen.line("")
    if first := next((approval.request for approval in pending if not approval.request.doubt), None):
        pen.line(f"tao approve {first.run_id} {first.call_id}{db_option}", "dim")
        pen.line(f"tao deny {first.run_id} {first.call_id}{db_option} --note …", "dim")
    if first := next((approval.request for approval in pending if approval.request.doubt), None):
        pen.line(f"tao settle {first.run_id} {first.call_id}{db_option} --happened|--repeat|--leave", "dim")
    pen.line(resume_command_line(pending[0].outer, db), "dim")


def _language(pending: list[PendingApproval]) -> str:
    """Chinese where the first task that waits is."""
    return "zh" if pending and any("\u4e00" <= char <= "\u9fff" for char in pending[0].task) else "en"
