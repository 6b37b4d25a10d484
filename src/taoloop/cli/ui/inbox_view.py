"""What waits for a person, as `tao approvals` shows it: as rows of text, and as objects for `--json`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, TextIO

from taoloop.cli.translation import view_language
from taoloop.cli.ui.approval_prompt import HIGH_RISK, SCREEN_ROWS, reasons_of, show_always, show_call, show_summary
from taoloop.cli.ui.event_view import RowWriter, console_for, format_local_time
from taoloop.cli.ui.input_prompt import show_warnings
from taoloop.cli.ui.stdio import one_line
from taoloop.core.text import language_of
from taoloop.runtime.approvals.inbox_items import WHOLE_RUN, InboxCall, InboxItem, InboxKind
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.runtime.approvals.user_questions import question_warnings
from taoloop.translation import mark, translate_error

QUESTIONS: Final[tuple[InboxKind, ...]] = ("approval", "question", "doubt")
"""The kinds that are about one call."""

_LABELS = mark({"undo": "Undo failed", "blocked": "Blocked", "dead": "Given up"})


def inbox_row(item: InboxItem) -> dict[str, Any]:
    """An item as an object of `tao approvals --json`. An approval and a call in doubt have the fields of their call."""
    head = {"kind": item.kind, "run_id": item.run_id, "call_id": item.call_id}
    tail = {"task": item.task, "resume": item.outer, "command": item.command}
    language = language_of(item.task)
    if item.kind in QUESTIONS:
        return head | _call_row(item.calls[0], language) | tail
    return (
        head
        | {"status": item.status, "since": item.since, "reason": item.reason, "answer": item.answer}
        | {"deaths": item.deaths, "undoes": None if item.undoes is None else asdict(item.undoes)}
        | {"calls": [_call_row(call, language) for call in item.calls]}
        | tail
    )


def _call_row(call: InboxCall, language: str) -> dict[str, Any]:
    request = call.request
    return {
        "call_id": request.call_id,
        "tool": request.tool,
        "args": request.args,
        "reasons": [request.doubt] if request.doubt else list(request.reasons),
        "doubt": bool(request.doubt),
        "probe": call.probe,
        "tier": request.card.tier if request.card is not None else None,
        "undo": request.undo_text(language),
        "rule": request.rule,
        "always": request.always_text(language),
        "sources": [asdict(source) for source in request.sources],
        "question": None if request.question is None else request.question.message,
        "form": None if request.question is None else request.question.fields,
        "warnings": [] if request.question is None else list(question_warnings(request.question, language)),
        "grave": request.grave,
        "high_risk": request.high_risk,
        "digest": request.digest,
        "policy": request.policy,
        "since": request.since,
        "expires_at": request.expires_at,
        "expired": request.expires_at is not None and time.time() >= request.expires_at,
        "for_operator": request.for_operator or bool(request.doubt),
    }


def write_inbox(stream: TextIO, items: Sequence[InboxItem], db_argument: str) -> None:
    """What waits, run by run, and the commands that answer the first of each kind."""
    language = view_language(language_of(items[0].task), stream)
    pen = RowWriter(console_for(stream), language)
    for number, item in enumerate(items):
        if number == 0 or items[number - 1].run_id != item.run_id:
            if number:
                pen.line("")
            pen.line(pen.text("run {run_id}", run_id=item.run_id), "bold")
            pen.line("   " + pen.text("Task: {task}", task=one_line(item.task)), "dim")
        if item.kind in QUESTIONS:
            _write_question(pen, item.calls[0].request)
        else:
            _write_run(pen, item)
    _write_commands(pen, items, db_argument)


def _write_question(pen: RowWriter, request: ApprovalRequest) -> None:
    rows = show_call(pen, request)
    if request.doubt:
        pen.row("In doubt", one_line(request.doubt))
        return
    if request.question is not None:
        show_warnings(pen, request.question)
    pen.row("Why", pen.text("; ").join(one_line(reason) for reason in reasons_of(pen, request)))
    times = []
    if request.since is not None:
        times.append(pen.text("waiting since {time}", time=format_local_time(request.since)))
    if request.expires_at is not None:
        times.append(pen.text("Until {time}, then it is refused.", time=format_local_time(request.expires_at)))
    pen.line("   " + " · ".join(times), "dim")
    if request.high_risk:
        pen.line("   " + pen.text(HIGH_RISK), "bold red")
    show_always(pen, request)
    if rows > SCREEN_ROWS:
        show_summary(pen, [request])


def _write_run(pen: RowWriter, item: InboxItem) -> None:
    """A run that got no further, with the calls that it is about."""
    for call in item.calls:
        show_call(pen, call.request)
        if item.kind == "blocked":
            pen.row("Why", pen.text("; ").join(one_line(reason) for reason in reasons_of(pen, call.request)))
    reason = one_line(translate_error(item.reason, pen.language))
    if item.undoes is not None:
        effect = {"tool": item.undoes.tool, "call_id": item.undoes.call_id, "run_id": item.undoes.run_id}
        reason = f"{pen.text('the effect of {tool} ({call_id}) of run {run_id} is still there', **effect)}. {reason}"
    elif item.kind == "dead":
        reason = pen.text("its process died {n} times in a row at the same event", n=item.deaths + 1)
    pen.row(_LABELS[item.kind], reason.strip(), style="bold yellow")
    if item.since is not None:
        pen.line("   " + pen.text("waiting since {time}", time=format_local_time(item.since)), "dim")


def _write_commands(pen: RowWriter, items: Sequence[InboxItem], db_argument: str) -> None:
    """How many wait, how to answer the first call of each kind, and to resume the runs."""
    pen.line("")
    questions = [item.calls[0].request for item in items if item.kind in QUESTIONS]
    decisions = [item for item in items if item.kind not in QUESTIONS]
    if questions:
        pen.line(pen.text("{n} call waits for a person.|{n} calls wait for a person.", n=len(questions)), "bold")
    if decisions:
        text = mark("{n} run waits for a person's decision.|{n} runs wait for a person's decision.")
        pen.line(pen.text(text, n=len(decisions)), "bold")
    if own := sum(request.for_operator or bool(request.doubt) for request in questions):
        pen.line(pen.text(mark("{n} of them only the operator may answer, not the user."), n=own))
    if first := next((request for request in questions if request.question is not None), None):
        pen.line(f"tao answer {first.run_id} {first.call_id}{db_argument} …", "dim")
        pen.line(f"tao deny {first.run_id} {first.call_id}{db_argument} --note …", "dim")
    if first := next((request for request in questions if not request.doubt and request.question is None), None):
        pen.line(f"tao approve {first.run_id} {first.call_id}{db_argument}", "dim")
        pen.line(f"tao deny {first.run_id} {first.call_id}{db_argument} --note …", "dim")
    if first := next((request for request in questions if request.doubt), None):
        pen.line(f"tao settle {first.run_id} {first.call_id}{db_argument} --happened|--repeat|--leave", "dim")
    shown = [item for item in items if item.kind in QUESTIONS][:1] + [
        next(item for item in decisions if item.kind == kind) for kind in dict.fromkeys(item.kind for item in decisions)
    ]
    for item in shown:
        pen.line(f"{item.command}{db_argument}", "dim")
    if first_run := next((item for item in decisions if item.call_id == WHOLE_RUN), None):
        pen.line(f"tao abandon {first_run.run_id}{db_argument} --note …", "dim")
