"""`tao show` and `tao replay`: what happened in a run, and whether it decides the same again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click
import pydantic_core

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import database, load_run, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.event_view import (
    EventWriter,
    RowWriter,
    approvals_line,
    console_for,
    resume_line,
    summary,
    write_approval,
    write_doubt_settled,
    write_end,
    write_links,
)
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.core.events import Event, ModelReplied, ReplyRejected
from taoloop.core.stored_events import event_line, event_record
from taoloop.core.trace import Trace
from taoloop.core.views.steps import CallView
from taoloop.core.views.transcript import Entry, step_summaries, transcript
from taoloop.errors import ReplayDiverged
from taoloop.runtime.after.replay import ReplayedEvent, replay
from taoloop.translation import mark

_STYLES = {
    "Thought": (mark("Thought"), "blue"),
    "Action": (mark("Action"), "cyan"),
    "Final": (mark("Answer"), "bold green"),
}
_REPLAYED = mark("replayed {n} event: the same as recorded|replayed {n} events: all the same as recorded")


@click.command("show")
@click.argument("run_id")
@options.db_option
@options.json_option("The stored events as JSON, one per line.")
@click.option("--raw", is_flag=True, help="Show the raw output of the model, with tokens and latency.")
@click.option("--steps", is_flag=True, help="Show the auditable record: what each step did and why.")
@click.option("--events", is_flag=True, help="Show every event as the live view does, without cutting anything.")
def show_command(run_id: str, db: str | None, as_json: bool, raw: bool, steps: bool, events: bool) -> int:
    """Show a run: its thoughts, actions, observations and end, and the command that resumes it.

    Without an option it prints the transcript.

      tao show 20261104-09          the beginning of an id is enough
      tao show RUN_ID --steps       the auditable record: what each step did and why
      tao show RUN_ID --raw         the raw output of the model
      tao show RUN_ID --json        the stored events, as `tao run --json` printed them
    """
    path = database(db, load_environment())
    trace = load_run(path, run_id)
    flaw = query_database(path, lambda journal: journal.verify(trace.run_id)).first
    if flaw is not None and flaw.what != "unchained":
        text = mark("The run {run_id} is not as it was written: {flaw}. See `tao verify {run_id}`.")
        print_stderr(translate(text, run_id=trace.run_id, flaw=flaw.text))
    with capture_stdout() as stream:
        if as_json and steps:
            rows = [row | _answer(row, trace) for row in step_summaries(trace)]
            stream.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            return exits.OK
        if as_json:
            for event in trace.events:
                stream.write(event_line(trace.run_id, event) + "\n")
            return exits.OK
        pen = RowWriter(console_for(stream), view_language(trace.agent.language, stream))
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
    pen.row("Task", trace.task, style="bold", body="bold")
    pen.gap()


def _transcript(trace: Trace, pen: RowWriter) -> None:
    _head(trace, pen)
    for entry in transcript(trace):
        label, style = _look(entry, trace)
        text = f"{entry.tool} {entry.content}" if entry.tool else entry.content
        if entry.child is not None:
            text += "\n" + pen.text("by run {run_id}: tao show {run_id}", run_id=entry.child)
        pen.row(label, text, style=style, body="red" if label == "Error" else "", mark=str(entry.number))
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
        return (mark("Observed"), "green") if entry.ok else (mark("Error"), "red")
    if entry.kind == "Final" and (trace.finished is None or trace.finished.answer is None):
        return mark("No answer"), "bold yellow"
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
                pen.row("Unreadable", f"{fact.code}: {fact.message}", style="yellow", body="yellow")
            case _:
                pass


def _steps(trace: Trace, pen: RowWriter) -> None:
    _head(trace, pen)
    for row in step_summaries(trace):
        args = "" if row["args"] is None else f" {json.dumps(row['args'], ensure_ascii=False, default=str)}"
        pen.row("Thought", row["reason_summary"] or "–", style="blue", mark=str(row["step"]))
        pen.row("Action", f"{row['action'] or '–'}{args}", style="cyan")
        if (approval := row.get("approval")) is not None:
            note = pen.text(": ") + approval["note"] if approval["note"] else ""
            label, style = (mark("Allowed"), "green") if approval["allowed"] else (mark("Refused"), "yellow")
            pen.row(label, pen.text("by {by}", by=approval["by"]) + note, style=style)
        if row["observation_summary"]:
            pen.row("Observed", row["observation_summary"], style="green")
    if trace.finished is not None:
        write_end(pen, trace.finished)


def _answer(row: dict[str, Any], trace: Trace) -> dict[str, str | None]:
    """The answer, for the row of the step that gave it."""
    return {"answer": trace.answer.text} if row["action"] == "final" and trace.answer is not None else {}


def _end(trace: Trace, pen: RowWriter, db: str | None) -> None:
    if trace.paused is not None:
        pen.row("Waiting", trace.paused.reason, style="bold yellow")
    pen.gap()
    pen.line(summary(trace, pen), "dim")
    if (command_line := approvals_line(trace, db)) is not None:
        pen.line(pen.text("Decide: {command}", command=command_line), "bold")
    if (command_line := resume_line(trace, db)) is not None:
        pen.line(pen.text("Resume: {command}", command=command_line), "bold")


@click.command("replay")
@click.argument("run_id")
@options.db_option
@options.json_option("The decided events as JSON, one per line; the summary goes to standard error.")
@click.option("--step", is_flag=True, help="Wait for Enter before each event (at a terminal).")
def replay_command(run_id: str, db: str | None, as_json: bool, step: bool) -> int:
    """Repeat the decisions of a run without model, tools, clock or network, and check that they are the same.

    The replies of the model, the observations and what people did come from the record; what the core makes of them
    is computed again. Exit code 1 if anything differs.

      tao replay RUN_ID --step      Enter shows the next event
      tao replay RUN_ID --json      the decisions, one event per line, with "same": true or false
    """
    trace = load_run(database(db, load_environment()), run_id)
    stepping = step and not as_json and sys.stdin.isatty()
    first_difference = ""
    total = 0
    with capture_stdout() as stream:
        pen = RowWriter(console_for(stream), view_language(trace.agent.language, stream))
        replayed = Trace(trace.run_id)
        writer = EventWriter(pen, replayed, whole=True)
        try:
            for decided in _replayed_events(trace, stepping):
                total += 1
                recorded = decided.recorded
                if not decided.same and not first_difference:
                    text = mark("The replay diverges at event {seq}: {kind} differs from the record")
                    first_difference = translate(text, seq=recorded.seq, kind=decided.decided.kind)
                if as_json:
                    event = Event(recorded.seq, recorded.at, decided.decided)
                    line = {**event_record(trace.run_id, event), "same": decided.same}
                    stream.write(pydantic_core.to_json(line).decode() + "\n")
                else:
                    _show_replayed(pen, writer, replayed, decided)
                stream.flush()
        except ReplayDiverged as error:
            first_difference = first_difference or str(error)
        if not first_difference and not as_json:
            pen.gap()
            pen.line(pen.text(_REPLAYED, n=total), "bold green")
    if first_difference:
        print_stderr(first_difference)
        return exits.FOUND
    if as_json:
        print_stderr(translate(_REPLAYED, view_language(trace.agent.language, sys.stderr), n=total))
    return exits.OK


def _replayed_events(trace: Trace, stepping: bool) -> Iterator[ReplayedEvent]:
    for decided in replay(trace):
        yield decided
        if stepping and decided.recorded.seq + 1 < len(trace.events):
            input()


def _show_replayed(pen: RowWriter, writer: EventWriter, replayed: Trace, decided: ReplayedEvent) -> None:
    recorded = decided.recorded
    comparison = "=" if decided.same else "≠"
    pen.line(f"{recorded.seq:>3} {comparison} {recorded.kind}", "dim" if decided.same else "bold red")
    replayed.append(recorded)
    writer.write(Event(recorded.seq, recorded.at, decided.decided))
    if not decided.same:
        pen.line("    " + pen.text("recorded: {event}", event=event_line(replayed.run_id, recorded)), "red")
