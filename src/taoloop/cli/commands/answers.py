"""The answers of a person to a waiting run: `tao approve`, `tao deny`, `tao note` and `tao settle`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TextIO, get_args

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.commands.approvals import doubt_questions
from taoloop.cli.database import database, load_run
from taoloop.cli.dotenv import load_environment
from taoloop.cli.options import current_user
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.event_view import RESUME, resume_line
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.core.cards.decimals import decimal_literals
from taoloop.core.events import ApprovalGiven, ApprovalRefused, ApprovalScope, Noted
from taoloop.core.stored_events import event_line
from taoloop.core.trace import Trace
from taoloop.core.views.steps import PROBE
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import ConfigError, NotWaiting
from taoloop.journals.base import Journal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.approvals.in_doubt import describe_doubt
from taoloop.runtime.approvals.inbox import AnswerRecorded, add_note, answer_approval, outermost_run_id, settle_doubt
from taoloop.runtime.approvals.request import ApprovalAnswer, Settling, unanswered_calls
from taoloop.translation import mark


@click.command("approve")
@click.argument("run_id")
@click.argument("call_id")
@options.db_option
@options.by_option
@click.option("--note", metavar="TEXT", default="", help="Why; the trace records it.")
@click.option(
    "--args", "edited", metavar="JSON", help="Arguments to use instead of the model's; they must fit the tool."
)
@click.option("--always", is_flag=True, help="Also approve this tool whenever the same rule would ask in this run.")
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
    already answered, not waiting, or whose time is over is rejected (exit code 2).

      tao approve 20261104-09 call_2
      tao approve RUN_ID CALL_ID --args '{"to": "ann@example.com", "amount": 5}'
      tao approve RUN_ID CALL_ID --always --note "small payments are fine"
    """
    if always and values:
        raise click.UsageError(_exclusive("--always", "--values"))
    scope: ApprovalScope = "rule" if always else "values" if values else "call"
    args = _args(edited)
    digits = None if args is None else decimal_literals(args, (edited or "",))
    approval = ApprovalAnswer(approved=True, by=current_user(by), note=note, args=args, scope=scope, digits=digits)
    return _record(
        run_id, db, lambda journal, run: answer_approval(journal, run, call_id, approval, digest=digest), as_json
    )


@click.command("deny")
@click.argument("run_id")
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
    denial = ApprovalAnswer(approved=False, by=current_user(by), note=note, batch=batch)
    return _record(run_id, db, lambda journal, run: answer_approval(journal, run, call_id, denial), as_json)


@click.command("note")
@click.argument("run_id")
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
    return _record(run_id, db, lambda journal, run: add_note(journal, run, text, by=current_user(by)), as_json)


def _record(
    run_prefix: str, db: str | None, add: Callable[[Journal, str], Awaitable[AnswerRecorded]], as_json: bool
) -> int:
    """Add something to a run; print what was written, and how to resume the outermost run around it."""
    path = database(db, load_environment())
    with capture_stdout() as stream:
        run_id = load_run(path, run_prefix).run_id  # a run that does not exist must not create the database

        async def work() -> tuple[AnswerRecorded, str]:
            async with SqliteJournal(path) as journal:
                try:
                    recorded = await add(journal, run_id)
                except NotWaiting as error:
                    if hint := _doubt_hint(Trace(run_id, await journal.load(run_id))):
                        raise NotWaiting(error.message, hint=f"{error.hint} {hint}") from error
                    raise
                return recorded, await outermost_run_id(journal, recorded.trace)

        recorded, outer = asyncio.run(work())
        _print_recorded(stream, recorded, as_json=as_json)
        language = view_language(recorded.trace.agent.language, sys.stderr)
        if unanswered := unanswered_calls(recorded.trace):
            calls = ", ".join(f"{call.requested.tool} ({call.requested.call_id})" for call in unanswered)
            print_stderr(translate("these calls of the run are still waiting: {calls}", language, calls=calls))
        print_stderr(translate(RESUME, language, command=f"tao resume {outer}{options.db_argument(db)}"))
    return exits.OK


def _doubt_hint(trace: Trace) -> str:
    questions = doubt_questions(trace)
    if not questions:
        return ""
    return translate(
        "It is not known whether these took effect: {calls}. Record it with `{command}`.",
        calls=", ".join(question.call_id for question in questions),
        command=f"tao settle {questions[0].run_id} {questions[0].call_id}",
    )


def _print_recorded(stream: TextIO, recorded: AnswerRecorded, *, as_json: bool) -> None:
    trace, language = recorded.trace, view_language(recorded.trace.agent.language, stream)
    for event in recorded.events:
        if as_json:
            stream.write(event_line(trace.run_id, event) + "\n")
            continue
        match event.fact:
            case ApprovalGiven() | ApprovalRefused() as fact:
                text = mark("allowed: {tool} ({call_id}) of run {run_id}")
                if isinstance(fact, ApprovalRefused):
                    text = mark("refused: {tool} ({call_id}) of run {run_id}")
                tool = trace.calls[fact.call_id].requested.tool
                stream.write(translate(text, language, tool=tool, call_id=fact.call_id, run_id=trace.run_id) + "\n")
            case Noted():
                stream.write(translate("note added to run {run_id}", language, run_id=trace.run_id) + "\n")
            case _:
                pass
    stream.flush()


def _args(text: str | None) -> Mapping[str, Any] | None:
    if text is None:
        return None
    try:
        parsed = loads(text)
    except NotJsonError as error:
        hint = translate("Write --args {example}.", example="""'{"name": "value"}'""")
        raise ConfigError(translate("--args is not JSON: {error}.", error=error), hint=hint) from error
    if not isinstance(parsed, dict):
        hint = translate("Give a JSON object: all arguments of the call.")
        raise ConfigError(translate("--args is {value!r}.", value=text[:80]), hint=hint)
    return parsed


def _exclusive(one: str, other: str) -> str:
    return translate("{one} and {other} exclude each other; use one of them.", one=one, other=other)


@click.command("settle")
@click.argument("run_id")
@click.argument("call_id")
@click.option("--happened", is_flag=True, help="It happened.")
@click.option("--repeat", is_flag=True, help="It did not happen: run it again.")
@click.option("--leave", is_flag=True, help="Leave it open; the model is told.")
@options.by_option
@click.option("--note", metavar="TEXT", default="", help="What the model is told about it.")
@options.db_option
def settle_command(run_id: str, call_id: str, by: str | None, note: str, db: str | None, **choices: bool) -> int:
    """Resolve the call CALL_ID of the run RUN_ID, which was started but whose outcome is unknown.

    Find out whether it happened before you answer: if a call that happened is repeated, its effect happens twice.
    Without an answer the command shows what is known.

      tao settle RUN_ID call_3                    what is known
      tao settle RUN_ID call_3 --happened         it happened: the run continues from there
      tao settle RUN_ID call_3 --repeat           it did not happen: run it again
      tao settle RUN_ID call_3 --leave            nobody knows: the model is told so
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
        text = translate("Run {run_id}: {call_id} was already answered by {by}.", **run, by=earlier.by)
        raise ConfigError(text, hint=translate("Resume the run: {command}", command=resume_line(trace, db)))
    if not outcomes:
        ask = translate("Answer with --happened, --repeat or --leave.")
        print_stderr(f"{call.requested.tool} ({call_id}): {describe_doubt(trace, call)} {ask}")
        return exits.OF_STATUS["waiting"]
    settled = asyncio.run(_settle(path, trace, call_id, outcomes[0], current_user(by), note))
    print_stderr(translate("Recorded. Resume the run: {command}", command=resume_line(settled, db)))
    return exits.OK


async def _settle(path: Path, trace: Trace, call_id: str, outcome: Settling, by: str, note: str) -> Trace:
    async with SqliteJournal(path) as journal:
        return await settle_doubt(journal, trace.run_id, call_id, outcome, by=by, note=note)
