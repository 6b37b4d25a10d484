"""`tao approvals`: the calls that are waiting for a person, over all runs of a database."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO, get_args

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import database, find_run_id, load_environment, load_run, query_database
from taoloop.cli.options import authentication_of, current_user
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.approval_prompt import confirm
from taoloop.cli.ui.event_view import (
    RESUME,
    RowWriter,
    console_for,
    resume_line,
    write_events,
    write_unknown_calls,
)
from taoloop.cli.ui.inbox_view import QUESTIONS, inbox_row, write_inbox
from taoloop.cli.ui.stdio import capture_stdout, one_line, print_stderr
from taoloop.core.cards.decimals import decimal_literals
from taoloop.core.cards.questions import is_question
from taoloop.core.events import ApprovalGiven, ApprovalRefused, ApprovalScope, Noted
from taoloop.core.human_input import MarkVerdict
from taoloop.core.text import escape_invisible
from taoloop.core.trace import Trace
from taoloop.core.views.steps import PROBE
from taoloop.errors import ConfigError, NotWaiting
from taoloop.journals.addresses import DatabaseAddress
from taoloop.journals.base import Journal
from taoloop.runtime.after.abandonment import abandon_run
from taoloop.runtime.after.evaluation import mark_run
from taoloop.runtime.approvals.in_doubt import describe_doubt, doubt_requests
from taoloop.runtime.approvals.inbox import (
    AnswerRecorded,
    PendingApproval,
    add_note,
    answer_approval,
    outermost_run_id,
    pending_approvals,
    raise_answered,
    require_waiting,
    settle_doubt,
)
from taoloop.runtime.approvals.inbox_items import BLOCKED_AT_ONCE, INBOX_KINDS, Inbox, InboxKind, InboxListing
from taoloop.runtime.approvals.request import (
    ApprovalAnswer,
    ApprovalRequest,
    Settling,
    approval_request,
    unanswered_calls,
)
from taoloop.runtime.approvals.run_excerpt import read_excerpt
from taoloop.runtime.approvals.user_questions import question_answer
from taoloop.translation import mark, translate_error

_NEGATIVE_NUMBER = re.compile(r"-[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?")


@click.command("approvals")
@click.argument("run_id", required=False, shell_complete=complete_run_ids)
@click.option(
    "--all",
    "with_all",
    is_flag=True,
    help="Also what is no call: undos that failed, blocked runs, and runs whose process died again and again.",
)
@options.db_option
@options.json_option("One JSON array with an object for each call; with --all for each thing that waits.")
def approvals_command(run_id: str | None, with_all: bool, db: str | None, as_json: bool) -> int:
    """List the calls that are waiting for a person, in all runs of the database or in RUN_ID and the runs inside it.

    Each argument is shown with its origin: YOURS (it is in the task), LOOKED UP (a trusted tool returned it),
    WRITTEN (by the model), LINKS (with links that no trusted text has), UNKNOWN (it appears nowhere in the run, or only
    as a bare number, or the task excludes it) or FOREIGN (only in the output of an untrusted tool; the text around it
    is shown). `high-risk` marks a call that is hard to undo and whose target nobody named. A call in doubt is answered
    with `tao settle`, a question of the model with `tao answer`; --json shows it with "doubt": true.

      tao approvals
      tao approvals --all
      tao approvals --json | jq '.[] | {run_id, call_id, tool, args}'
      tao approve RUN_ID CALL_ID
      tao deny RUN_ID CALL_ID --note "why not"
      tao resume RUN_ID
    """
    path = database(db, load_environment())
    listing = _load_listing(path, run_id, INBOX_KINDS if with_all else QUESTIONS)
    with capture_stdout() as stream:
        if as_json:
            rows = [inbox_row(item) for item in listing.items]
            stream.write(json.dumps(rows, ensure_ascii=False, indent=2, default=str) + "\n")
        elif listing.items:
            write_inbox(stream, listing.items, options.db_argument(db))
        elif with_all:
            print_stderr(translate("{path}: nothing is waiting for a person.", path=path))
        else:
            print_stderr(translate("{path}: no call is waiting for a person.", path=path))
    if listing.is_cut:
        text = mark("Only the newest {n} blocked runs are listed: tao runs --status blocked")
        print_stderr(translate(text, n=BLOCKED_AT_ONCE))
    return exits.OK


def _load_listing(path: DatabaseAddress, run_prefix: str | None, kinds: Collection[InboxKind]) -> InboxListing:
    """What waits, the items of one run together; says of each run that cannot be read, or is not as it was written."""
    run_id = None if run_prefix is None else find_run_id(path, run_prefix)

    async def load(journal: Journal) -> InboxListing:
        listing = await Inbox(journal).load(kinds=kinds, run_id=run_id)
        for broken_id, error in listing.unreadable:
            text = mark("The run {run_id} is waiting but cannot be read: {error}")
            print_stderr(translate(text, run_id=broken_id, error=one_line(translate_error(error.message))))
        for waiting_id in dict.fromkeys(item.run_id for item in listing.items):
            if (flaw := (await journal.verify(waiting_id)).first) is not None:
                text = mark(
                    "The run {run_id} is not as it was written: {flaw}."
                    " Do not trust what is shown of it; it accepts no answers."
                )
                print_stderr(translate(text, run_id=waiting_id, flaw=flaw.text))
        run_ids = list(dict.fromkeys(item.run_id for item in listing.items))
        items = sorted(listing.items, key=lambda item: run_ids.index(item.run_id))
        return replace(listing, items=tuple(items))

    return query_database(path, load)


@click.command("approve")
@click.argument("run_id", shell_complete=complete_run_ids)
@click.argument("call_id")
@options.db_option
@options.by_option
@click.option("--note", metavar="TEXT", default="", help="Why; the trace records it.")
@click.option(
    "--args", "edited", metavar="JSON", help="Arguments to use instead of the model's; they must fit the tool."
)
@click.option(
    "--always",
    is_flag=True,
    help="Also approve further calls of this tool with the same values and no larger numbers; says which.",
)
@click.option("--values", is_flag=True, help="Also trust the values of this call in this run, as if the task had them.")
@click.option("--digest", metavar="HEX", help="Approve only this exact call: its digest in `tao approvals --json`.")
@options.json_option("The new events as JSON, one per line.")
def approve_command(
    run_id: str,
    call_id: str,
    db: str | None,
    by: str | None,
    note: str,
    edited: str | None,
    always: bool,
    values: bool,
    digest: str | None,
    as_json: bool,
) -> int:
    """Approve the call CALL_ID of the run RUN_ID, once and exactly as it is; `tao resume` then continues the run.

    `tao approvals` lists what is waiting. The trace records who approved the call, when and why. A call that is
    already answered, not waiting, or whose time is over is rejected (exit code 2). What --always would cover is shown
    first, as in `tao approvals`; at a terminal you confirm it.

      tao approve 20261104-09 call_2
      tao approve RUN_ID CALL_ID --args '{"to": "ann@example.com", "amount": 5}'
      tao approve RUN_ID CALL_ID --always --note "small payments are fine"
    """
    if always and values:
        raise click.UsageError(_exclusive("--always", "--values"))
    args = None if edited is None else options.json_object(edited)
    if always and not _confirms_scope(run_id, call_id, args, db):
        print_stderr(translate("Nothing was approved."))
        return exits.OF_STATUS["waiting"]
    scope: ApprovalScope = "rule" if always else "values" if values else "call"
    digits = None if args is None else decimal_literals(args, (edited or "",))
    name = current_user(by)
    approval = ApprovalAnswer(
        approved=True,
        by=name,
        authenticated=authentication_of(name),
        note=note,
        args=args,
        scope=scope,
        digits=digits,
    )
    return _record(
        run_id, db, lambda journal, run: answer_approval(journal, run, call_id, approval, digest=digest), as_json
    )


def _confirms_scope(run_prefix: str, call_id: str, edited: Mapping[str, Any] | None, db: str | None) -> bool:
    """Say what `--always` allows beyond the call; a person at a terminal confirms it."""
    trace = load_run(database(db, load_environment()), run_prefix)
    call = trace.calls.get(call_id)
    language = view_language(trace.agent.language, sys.stderr)
    if call is None or not (scope := approval_request(trace, call, edited).always_text(language)):
        return True  # the answer is rejected, with the reason
    print_stderr(escape_invisible(scope))
    return not (sys.stdin.isatty() and sys.stderr.isatty()) or confirm(translate("Approve this?", language), language)


class _AnswerCommand(click.Command):
    """A command whose last words may be a negative number, which is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, with a negative number behind all options."""
        numbers = [text for text in args if _NEGATIVE_NUMBER.fullmatch(text)]
        if len(numbers) == 1 and "--" not in args:
            args = [*(text for text in args if text not in numbers), "--", *numbers]
        return super().parse_args(ctx, args)


@click.command("answer", cls=_AnswerCommand)
@click.argument("run_id", shell_complete=complete_run_ids)
@click.argument("words", nargs=-1, required=True, metavar="[CALL_ID] TEXT")
@options.db_option
@options.by_option
@options.json_option("The new events as JSON, one per line.")
def answer_command(run_id: str, words: tuple[str, ...], db: str | None, by: str | None, as_json: bool) -> int:
    """Answer a question that the model of the run RUN_ID asks (`ask_user`).

    CALL_ID may be left out where only one question waits. The model reads TEXT. If you started the run, TEXT counts as
    words of the task, otherwise as untrusted text; no call is approved by it. A choice is given by its number or its
    words, a date as 2026-05-12 or in words. `tao approvals` shows the question, `tao deny` declines it, and
    `tao resume` continues the run. Of two answers the first counts.

      tao answer 20261104-09 "Hamburg, not Berlin"
      tao answer RUN_ID CALL_ID 1
    """
    *call_ids, text = words
    if len(call_ids) > 1:
        raise click.UsageError(translate("Put TEXT in quotes: {command}.", command='tao answer RUN_ID CALL_ID "TEXT"'))
    name = current_user(by)

    async def answer(journal: Journal, full_id: str) -> AnswerRecorded:
        if call_ids:
            trace = await read_excerpt(journal, full_id, call_ids=call_ids)
            request = approval_request(trace, require_waiting(trace, call_ids[0]))
        else:
            waiting = await pending_approvals(journal, run_id=full_id)
            if not any(approval.request.question for approval in waiting):
                _require_unanswered(Trace(full_id, await journal.load(full_id)))
            request = _only_question(full_id, waiting, text)
        answer = question_answer(request, text, by=name, authenticated=authentication_of(name))
        return await answer_approval(journal, request.run_id, request.call_id, answer, digest=request.digest)

    return _record(run_id, db, answer, as_json)


def _require_unanswered(trace: Trace) -> None:
    """Say who answered the last question of a run, if there was one.

    Raises:
        AlreadyAnswered: somebody has answered it.
    """
    for call in reversed(trace.calls.values()):
        if call.approval is not None and is_question(trace.card(call.requested.tool)):
            require_waiting(trace, call.requested.call_id)


def _only_question(run_id: str, waiting: Sequence[PendingApproval], text: str) -> ApprovalRequest:
    """The question of a run, or of one inside it, that is meant where none is named.

    Raises:
        NotWaiting: there is none, or there are several.
        ConfigError: the text is the name of a question, so that the answer is missing.
    """
    questions = [approval.request for approval in waiting if approval.request.question is not None]
    if any(request.call_id == text for request in questions):
        raise ConfigError(
            translate("There is no answer after {call_id}.", call_id=text),
            hint=translate("Write it in quotes: {command}.", command=f'tao answer RUN_ID {text} "TEXT"'),
        )
    if len(questions) == 1:
        return questions[0]
    names = ", ".join(f"{request.run_id} {request.call_id}" for request in questions)
    if not questions:
        message = translate("The model of run {run_id} asks nothing.", run_id=run_id)
        raise NotWaiting(message, hint=translate("See what waits: {command}.", command="tao approvals"))
    message = translate("Run {run_id} asks several questions.", run_id=run_id)
    raise NotWaiting(message, hint=translate("Name the one that you answer: {names}.", names=names))


@click.command("deny")
@click.argument("run_id", shell_complete=complete_run_ids)
@click.argument("call_id")
@options.db_option
@options.by_option
@click.option("--note", metavar="TEXT", default="", help="Why not; the model reads it.")
@click.option(
    "--all", "batch", is_flag=True, help="Also deny the other calls of this question, asked by the same rule."
)
@options.json_option("The new events as JSON, one per line.")
def deny_command(
    run_id: str, call_id: str, db: str | None, by: str | None, note: str, batch: bool, as_json: bool
) -> int:
    """Deny the call CALL_ID of the run RUN_ID.

    The model reads that the call was denied, and the text of --note; `tao resume` continues the run.

      tao deny 20261104-09 call_2 --note "ask ann for the account first"
      tao deny RUN_ID CALL_ID --all --note "no payments today"
    """
    name = current_user(by)
    denial = ApprovalAnswer(approved=False, by=name, authenticated=authentication_of(name), note=note, batch=batch)
    return _record(run_id, db, lambda journal, run: answer_approval(journal, run, call_id, denial), as_json)


@click.command("abandon")
@click.argument("run_id", shell_complete=complete_run_ids)
@options.by_option
@click.option("--note", metavar="TEXT", default="", help="Why, for the record.")
@options.db_option
@options.json_option("The new events as JSON, one per line.")
def abandon_command(run_id: str, by: str | None, note: str, db: str | None, as_json: bool) -> int:
    """End the run RUN_ID for good, with the runs inside it: it can never be resumed.

    Nothing is undone (`tao undo` does that). Calls that were started and whose outcome is unknown stay listed as
    unknown (`tao show`). A run that a process is working on is left alone (exit code 14): stop that process first.

      tao abandon 20261104-09 --note "Paid by hand."
    """
    path, name = database(db, load_environment()), current_user(by)
    with capture_stdout() as stream:
        full_id = find_run_id(path, run_id)
        recorded = query_database(
            path,
            lambda journal: abandon_run(journal, full_id, by=name, authenticated=authentication_of(name), note=note),
            read_only=False,
        )
        if as_json:
            write_events(stream, full_id, recorded.events)
            return exits.OK
        pen = RowWriter(console_for(stream), view_language(recorded.trace.agent.language, stream))
        pen.line(pen.text("run {run_id} is abandoned and cannot be resumed", run_id=full_id))
        write_unknown_calls(pen, recorded.trace)
    return exits.OK


@click.command("mark")
@click.argument("run_id", shell_complete=complete_run_ids)
@click.argument("verdict", type=click.Choice(get_args(MarkVerdict)))
@options.by_option
@click.option("--note", metavar="TEXT", default="", help="Why, for the record.")
@options.db_option
@options.json_option("The new event as JSON.")
def mark_command(run_id: str, verdict: MarkVerdict, by: str | None, note: str, db: str | None, as_json: bool) -> int:
    """Mark the outcome of the run RUN_ID as right or wrong.

    The run must have ended, and no model reads the mark. `tao show` shows it, and judges of evaluations are calibrated
    against it. If you mark a run again, your later mark counts; marks of several people who disagree do not count.

      tao mark 20261104-09 right
      tao mark 20261104-09 wrong --note "The total is without tax."
    """
    path, name = database(db, load_environment()), current_user(by)
    with capture_stdout() as stream:
        full_id = find_run_id(path, run_id)
        recorded = query_database(
            path,
            lambda journal: mark_run(
                journal, full_id, verdict, by=name, authenticated=authentication_of(name), note=note
            ),
            read_only=False,
        )
        if as_json:
            write_events(stream, full_id, recorded.events)
            return exits.OK
        pen = RowWriter(console_for(stream), view_language(recorded.trace.agent.language, stream))
        text = mark("run {run_id} is marked right") if verdict == "right" else mark("run {run_id} is marked wrong")
        pen.line(pen.text(text, run_id=full_id))
    return exits.OK


@click.command("note")
@click.argument("run_id", shell_complete=complete_run_ids)
@click.argument("text")
@options.db_option
@options.by_option
@options.json_option("The new events as JSON, one per line.")
def note_command(run_id: str, text: str, db: str | None, by: str | None, as_json: bool) -> int:
    """Add a note to the run RUN_ID. The model reads TEXT in its next turn; `tao resume` continues the run.

    The run must be waiting, stopped, or at a limit. The note counts as part of the task: the model may use its
    values in calls. To change what the model decided, see `tao approve --args` (other arguments), `tao deny` (not
    this call) and `tao fork` (another decision or thought).

      tao note 20261104-09 "The office is in Hamburg, not in Berlin."
    """
    name = current_user(by)
    return _record(
        run_id,
        db,
        lambda journal, run: add_note(journal, run, text, by=name, authenticated=authentication_of(name)),
        as_json,
    )


def _record(
    run_prefix: str, db: str | None, add: Callable[[Journal, str], Awaitable[AnswerRecorded]], as_json: bool
) -> int:
    """Add something to a run; print what was written, and how to resume the outermost run around it."""
    path = database(db, load_environment())
    with capture_stdout() as stream:
        run_id = find_run_id(path, run_prefix)  # a run that does not exist must not create the database

        async def work(journal: Journal) -> tuple[AnswerRecorded, str]:
            try:
                recorded = await add(journal, run_id)
            except NotWaiting as error:
                if hint := _doubt_hint(await read_excerpt(journal, run_id)):
                    raise NotWaiting(error.message, hint=f"{error.hint} {hint}") from error
                raise
            return recorded, await outermost_run_id(journal, recorded.trace)

        recorded, outer = query_database(path, work, read_only=False)
        _print_recorded(stream, recorded, as_json=as_json)
        language = view_language(recorded.trace.agent.language, sys.stderr)
        if unanswered := unanswered_calls(recorded.trace):
            calls = ", ".join(f"{call.requested.tool} ({call.requested.call_id})" for call in unanswered)
            print_stderr(translate("these calls of the run are still waiting: {calls}", language, calls=calls))
        print_stderr(translate(RESUME, language, command=f"tao resume {outer}{options.db_argument(db)}"))
    return exits.OK


def _doubt_hint(trace: Trace) -> str:
    questions = doubt_requests(trace)
    if not questions:
        return ""
    return translate(
        "It is not known whether these took effect: {calls}. Record it with `{command}`.",
        calls=", ".join(question.call_id for question in questions),
        command=f"tao settle {questions[0].run_id} {questions[0].call_id}",
    )


def _print_recorded(stream: TextIO, recorded: AnswerRecorded, *, as_json: bool) -> None:
    trace, language = recorded.trace, view_language(recorded.trace.agent.language, stream)
    if as_json:
        write_events(stream, trace.run_id, recorded.events)
        return
    for event in recorded.events:
        match event.fact:
            case ApprovalGiven() | ApprovalRefused() as fact:
                text = mark("allowed: {tool} ({call_id}) of run {run_id}")
                if is_question(trace.card(trace.calls[fact.call_id].requested.tool)):
                    text = mark("answered: {tool} ({call_id}) of run {run_id}")
                if isinstance(fact, ApprovalRefused):
                    text = mark("refused: {tool} ({call_id}) of run {run_id}")
                tool = trace.calls[fact.call_id].requested.tool
                stream.write(translate(text, language, tool=tool, call_id=fact.call_id, run_id=trace.run_id) + "\n")
            case Noted():
                stream.write(translate("note added to run {run_id}", language, run_id=trace.run_id) + "\n")
    stream.flush()


def _exclusive(one: str, other: str) -> str:
    return translate("{one} and {other} exclude each other; use one of them.", one=one, other=other)


@click.command("settle")
@click.argument("run_id", shell_complete=complete_run_ids)
@click.argument("call_id")
@click.option("--happened", is_flag=True, help="It happened.")
@click.option("--repeat", is_flag=True, help="It did not happen: run it again.")
@click.option("--leave", is_flag=True, help="Leave the outcome unknown; the model reads that.")
@options.by_option
@click.option("--note", metavar="TEXT", default="", help="A note about it; the model reads it.")
@options.db_option
def settle_command(run_id: str, call_id: str, by: str | None, note: str, db: str | None, **choices: bool) -> int:
    """Resolve the call CALL_ID of the run RUN_ID, which was started but whose outcome is unknown.

    Find out whether it happened before you answer: if a call that happened is repeated, its effect happens twice.
    Without an answer the command shows what is known.

      tao settle RUN_ID call_3                    what is known
      tao settle RUN_ID call_3 --happened         it happened: the run continues from there
      tao settle RUN_ID call_3 --repeat           it did not happen: run it again
      tao settle RUN_ID call_3 --leave            nobody knows: the model reads that the outcome is unknown
    """
    outcomes: list[Settling] = [outcome for outcome in get_args(Settling) if choices[outcome]]
    if len(outcomes) > 1:
        raise click.UsageError(_exclusive(f"--{outcomes[0]}", f"--{outcomes[1]}"))
    path = database(db, load_environment())
    trace = load_run(path, run_id)
    call = trace.pending.get(call_id)
    run = {"run_id": trace.run_id, "call_id": call_id}
    if call is None or not call.attempts:
        in_doubt = [call_id for call_id, pending in trace.pending.items() if pending.attempts]
        hint = translate("Calls in doubt: {calls}.", calls=", ".join(in_doubt) or translate("none"))
        raise ConfigError(translate("Run {run_id}: {call_id} is not in doubt.", **run), hint=hint)
    if (earlier := call.settled) is not None and earlier.by != PROBE:
        raise_answered(trace, call_id, earlier, translate("Resume the run: {command}", command=resume_line(trace, db)))
    if not outcomes:
        ask = translate("Answer with --happened, --repeat or --leave.")
        print_stderr(f"{call.requested.tool} ({call_id}): {describe_doubt(trace, call)} {ask}")
        return exits.OF_STATUS["waiting"]
    name = current_user(by)
    settled = query_database(
        path,
        lambda journal: settle_doubt(
            journal, trace.run_id, call_id, outcomes[0], by=name, authenticated=authentication_of(name), note=note
        ),
        read_only=False,
    )
    print_stderr(translate("Recorded. Resume the run: {command}", command=resume_line(settled, db)))
    return exits.OK
