"""`tao show`: what happened in a run."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.database import database, load_run, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.event_view import (
    EventWriter,
    RowWriter,
    answer_command,
    console_for,
    resume_command,
    summary,
    write_approval,
    write_doubt_settled,
    write_end,
    write_links,
)
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, terminal_language
from taoloop.cli.ui.texts import ui_text
from taoloop.core.events import ModelReplied, ReplyRejected
from taoloop.core.stored_events import event_line
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.core.views.transcript import Entry, step_summaries, transcript

_HELP = """Show a run: its thoughts, actions, observations and end, and how to go on with it.

\b
  tao show 20261104-09          the transcript (the beginning of an id is enough)
  tao show RUN_ID --steps       the auditable record: what each step did and why
  tao show RUN_ID --raw         every output of the model as it came
  tao show RUN_ID --json        the stored events, as `tao run --json` printed them
"""

_STYLES = {"Thought": ("thought", "blue"), "Action": ("action", "cyan"), "Final": ("answer", "bold green")}


@click.command("show", help=_HELP)
@click.argument("run_id")
@options.db_option
@options.json_option("The stored events as JSON, one per line.")
@click.option("--raw", is_flag=True, help="Every output of the model as it came, with tokens and time.")
@click.option("--steps", is_flag=True, help="The auditable record: one line per step.")
@click.option("--events", is_flag=True, help="Every event as the live view shows it, with nothing cut.")
def command(run_id: str, db: str | None, as_json: bool, raw: bool, steps: bool, events: bool) -> int:
    """Print the run in one of the forms."""
    path = database(db, load_environment())
    trace = load_run(path, run_id)
    flaw = query_database(path, lambda journal: journal.verify(trace.run_id)).first
    if flaw is not None and flaw.what != "unchained":
        print_stderr(f"The run {trace.run_id} is not as it was written: {flaw.text} See `tao verify {trace.run_id}`.")
    with capture_stdout() as stream:
        if as_json and steps:
            rows = [row | _answer(row, trace) for row in step_summaries(trace)]
            stream.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            return exits.OK
        if as_json:
            for event in trace.events:
                stream.write(event_line(trace.run_id, event) + "\n")
            return exits.OK
        pen = RowWriter(console_for(stream), terminal_language(trace.agent.language, stream))
        if steps:
            _steps(trace, pen)
        elif raw:
            _raw(trace, pen)
        elif events:
            _events(trace, pen)
        else:
            _transcript(trace, pen)
        _end(trace, pen, db)
    return exits.OK


def _head(trace: Trace, pen: RowWriter) -> None:
    agent = trace.agent
    began = datetime.fromtimestamp(trace.events[0].at).astimezone()
    pen.line(
        f"{began:%Y-%m-%d %H:%M:%S} · {agent.name} · {agent.model} · {agent.strategy} · {agent.dialect}",
        "dim",
    )
    if trace.started is not None:
        write_links(pen, trace.started)
    pen.row("task", trace.task, style="bold", body="bold")
    pen.gap()


def _transcript(trace: Trace, pen: RowWriter) -> None:
    _head(trace, pen)
    for entry in transcript(trace):
        name, style = _look(entry, trace)
        text = f"{entry.tool} {entry.content}" if entry.tool else entry.content
        if entry.child is not None:
            text += "\n" + ui_text(pen.language, "inner", run_id=entry.child)
        pen.row(name, text, style=style, body="red" if name == "error" else "", mark=str(entry.number))
        if entry.kind == "Action" and entry.call_id is not None:
            _write_approval(trace, pen, trace.calls[entry.call_id])


def _write_approval(trace: Trace, pen: RowWriter, call: CallView) -> None:
    """What people said of a call: whether it may run, and whether it happened."""
    if call.approval is not None:
        write_approval(pen, trace, call.approval)
    if call.settled is not None:
        write_doubt_settled(pen, call.settled)


def _look(entry: Entry, trace: Trace) -> tuple[str, str]:
    if entry.kind == "Observation":
        return ("observation", "green") if entry.ok else ("error", "red")
    if entry.kind == "Final" and (trace.finished is None or trace.finished.answer is None):
        return "no_answer", "bold yellow"
    return _STYLES[entry.kind]


def _events(trace: Trace, pen: RowWriter) -> None:
    replayed = Trace(trace.run_id)
    writer = EventWriter(pen, replayed, whole=True)
    for event in trace.events:
        replayed.append(event)
        writer.write(event)


def _raw(trace: Trace, pen: RowWriter) -> None:
    _head(trace, pen)
    for event in trace.events:
        match event.fact:
            case ModelReplied() as fact:
                tokens = f"{fact.usage.input_tokens}+{fact.usage.output_tokens} tokens"
                pen.line(f"[{fact.step}] {fact.purpose} · {fact.model} · {tokens} · {fact.latency_s:.2f} s", "dim")
                pen.line(fact.text)
                for call in fact.tool_calls:
                    pen.line(f"→ {call.name} {call.arguments}", "cyan")
            case ReplyRejected() as fact:
                pen.row("rejected", f"{fact.code}: {fact.message}", style="yellow", body="yellow")
            case _:
                pass


def _steps(trace: Trace, pen: RowWriter) -> None:
    _head(trace, pen)
    for row in step_summaries(trace):
        args = "" if row["args"] is None else f" {json.dumps(row['args'], ensure_ascii=False, default=str)}"
        pen.row("thought", row["reason_summary"] or "–", style="blue", mark=str(row["step"]))
        pen.row("action", f"{row['action'] or '–'}{args}", style="cyan")
        if (approval := row.get("approval")) is not None:
            note = f": {approval['note']}" if approval["note"] else ""
            name, style = ("approved", "green") if approval["allowed"] else ("refused", "yellow")
            pen.row(name, f"{ui_text(pen.language, 'by', by=approval['by'])}{note}", style=style)
        if row["observation_summary"]:
            pen.row("observation", row["observation_summary"], style="green")
    if trace.finished is not None:
        write_end(pen, trace.finished)


def _answer(row: dict[str, Any], trace: Trace) -> dict[str, str | None]:
    """The answer, for the row of the step that gave it."""
    return {"answer": trace.answer.text} if row["action"] == "final" and trace.answer is not None else {}


def _end(trace: Trace, pen: RowWriter, db: str | None) -> None:
    if trace.paused is not None:
        pen.row("waiting", trace.paused.reason, style="bold yellow")
    pen.gap()
    pen.line(summary(trace, pen.language), "dim")
    if (command_line := answer_command(trace, db)) is not None:
        pen.line(ui_text(pen.language, "answer_first", command=command_line), "bold")
    if (command_line := resume_command(trace, db)) is not None:
        pen.line(ui_text(pen.language, "resume", command=command_line), "bold")
