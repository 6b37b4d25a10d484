"""`tao show` and `tao replay`: what happened in a run, and whether it decides the same again."""

from __future__ import annotations

import json
import os
import sys
from base64 import b64decode
from collections.abc import Iterator
from operator import methodcaller
from pathlib import Path

import click
import pydantic_core

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import database, load_environment, load_run, query_database
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.event_view import (
    EventWriter,
    RowWriter,
    answer_for_people,
    console_for,
    format_local_time,
    handoff_text,
    next_commands,
    summary,
    todo_text,
    write_approval,
    write_doubt_settled,
    write_dropped_lesson,
    write_end,
    write_events,
    write_input_answered,
    write_links,
    write_marked,
    write_open_todos,
    write_rejection,
    write_review,
    write_sources,
    write_undone,
    write_unknown_calls,
)
from taoloop.cli.ui.stdio import OutputError, capture_stdout, print_stderr, write_json_lines
from taoloop.core.attachments.files import is_remote
from taoloop.core.decision import UNSUPPORTED
from taoloop.core.events import Compensated, Event, ModelReplied, Noted, ReplyRejected
from taoloop.core.human_input import InputAnswered
from taoloop.core.stored_events import event_line, event_record
from taoloop.core.texts import task_with_attachments
from taoloop.core.trace import Trace, attachments_of
from taoloop.core.views.loaded_contents import loaded_contents
from taoloop.core.views.marks import run_marks
from taoloop.core.views.plans import MAKE_PLAN, plan_lines, plan_progress, read_plan
from taoloop.core.views.steps import DROPPED_LESSON, CallView
from taoloop.core.views.transcript import GATE, Entry, step_summaries, transcript
from taoloop.errors import ReplayDiverged
from taoloop.journals.addresses import DatabaseAddress
from taoloop.runtime.after.replay import ReplayedEvent, replay
from taoloop.translation import mark, translate_error

_STYLES = {
    "Thought": (mark("Thought"), "blue"),
    "Action": (mark("Action"), "cyan"),
    "Sample": (mark("Sample"), "magenta"),
    "Vote": (mark("Vote"), "bold"),
    "Draft": (mark("Draft"), "magenta"),
    "Critique": (mark("Critique"), "magenta"),
    "Lesson": (mark("Lesson"), "magenta"),
    "Final": (mark("Answer"), "bold green"),
}
_REPLAYED = mark("replayed {n} event: the same as recorded|replayed {n} events: all the same as recorded")


@click.command("show")
@click.argument("run_id", shell_complete=complete_run_ids)
@options.db_option
@options.json_option("The stored events as JSON, one per line.")
@click.option("--raw", is_flag=True, help="Show the raw output of the model, with tokens and latency.")
@click.option("--steps", is_flag=True, help="Show the auditable record: what each step did and why.")
@click.option("--events", is_flag=True, help="Show every event as the live view does, without cutting anything.")
@click.option(
    "--save-images",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write the images and files of the run into a folder.",
)
def show_command(
    run_id: str, db: str | None, as_json: bool, raw: bool, steps: bool, events: bool, save_images: str | None
) -> int:
    """Show a run: its thoughts, actions, observations and end, and the command that resumes it.

    Without an option it prints the transcript.

      tao show 20261104-09          the beginning of an id is enough
      tao show RUN_ID --steps       the auditable record: what each step did and why
      tao show RUN_ID --raw         the raw output of the model
      tao show RUN_ID --json        the stored events, as `tao run --json` printed them
      tao show RUN_ID --save-images DIR      also write its images and files into DIR, each under its name
    """
    path = database(db, load_environment())
    trace = load_run(path, run_id)
    flaw = query_database(path, lambda journal: journal.verify(trace.run_id)).first
    if flaw is not None and flaw.what != "unchained":
        text = mark("The run {run_id} is not as it was written: {flaw}. See `tao verify {run_id}`.")
        print_stderr(translate(text, run_id=trace.run_id, flaw=flaw.text))
    if save_images is not None:
        for saved in save_images_of(path, trace, Path(save_images)):
            print_stderr(translate("File written: {path}", path=saved))
    with capture_stdout() as stream:
        if as_json and steps:
            rows = step_summaries(trace)
            if trace.answer is not None:
                rows = [row | ({"answer": trace.answer.text} if row["action"] == "final" else {}) for row in rows]
            write_json_lines(stream, rows)
            return exits.OK
        if as_json:
            write_events(stream, trace.run_id, trace.events)
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
        if not events:
            _write_aftermath(trace, pen)
            write_open_todos(pen, trace)
        _end(trace, pen, db)
    return exits.OK


def save_images_of(path: DatabaseAddress, trace: Trace, folder: Path) -> Iterator[Path]:
    """Write the images and files of a run into a folder, readable by their owner only; gives their paths.

    Raises:
        OutputError: a file cannot be written, or one is missing in the journal.
    """
    infos = {info.ref: info for event in trace.events for info in attachments_of(event.fact) if not is_remote(info)}
    for ref, info in infos.items():
        file = folder / f"{ref}.{info.extension}"
        artifact = query_database(path, methodcaller("artifact", trace.run_id, ref))
        if artifact is None:
            raise OutputError(translate("The journal has no file {name}.", name=ref))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            make_private_file(file, b64decode(artifact.body))
        except OSError as error:
            reason = error.strerror or error
            text = translate("{path}: it cannot be written ({reason}).", path=file, reason=reason)
            raise OutputError(text) from error
        yield file


def make_private_file(file: Path, data: bytes) -> None:
    """Write a file that only its owner can read, in place of one that is there."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(data)


def _write_aftermath(trace: Trace, pen: RowWriter) -> None:
    """What came after the end: a dropped lesson, effects that were undone, marks of people."""
    for event in trace.events:
        if isinstance(event.fact, Noted) and event.fact.about == DROPPED_LESSON:
            write_dropped_lesson(pen, event.fact)
        if isinstance(event.fact, Compensated) and event.fact.ok:
            write_undone(pen, trace, event.fact)
    for fact in run_marks(trace).by_person.values():
        write_marked(pen, fact)


def _head(trace: Trace, pen: RowWriter) -> None:
    agent = trace.agent
    began = format_local_time(trace.events[0].at)
    pen.line(f"{began} · {agent.name} · {agent.model} · {agent.strategy} · {agent.dialect}", "dim")
    if trace.started is not None:
        write_links(pen, trace.started)
    task = trace.task if trace.started is None else task_with_attachments(trace.started)
    pen.row("Task", task, style="bold", body="bold")
    pen.gap()


def _transcript(trace: Trace, pen: RowWriter) -> None:
    _head(trace, pen)
    progress = plan_progress(trace)
    for entry in transcript(trace):
        label, style = _look(entry, trace)
        content = answer_for_people(entry.content, trace) if entry.kind == "Final" else entry.content
        text = f"{entry.tool} {content}" if entry.tool and label != "Sent back" else content
        if entry.kind == "Action" and entry.tool is not None and (todos := todo_text(entry.tool, entry.args)):
            text = entry.tool + todos
        if entry.kind == "Action" and entry.tool == MAKE_PLAN and (plan := read_plan(entry.args)) is not None:
            lines = plan_lines(pen.language, plan, progress.by_plan.get(entry.call_id or ""))
            text = "\n".join((entry.tool, *lines))
        if entry.child is not None:
            text += "\n" + pen.text("by run {run_id}: tao show {run_id}", run_id=entry.child)
        if entry.kind == "Observation" and (handoff := handoff_text(pen, trace, entry.call_id)):
            label, text = mark("Handed over"), handoff
        pen.row(label, text, style=style, body="red" if label == "Error" else "", mark=str(entry.number))
        if entry.kind == "Action" and entry.call_id is not None:
            _write_approval(trace, pen, trace.calls[entry.call_id])
    if trace.finished is not None and trace.finished.status == "blocked":
        pen.row("Blocked", translate_error(trace.finished.reason, pen.language), style="bold yellow")
    if trace.finished is not None and trace.agent.evidence != "off":
        if trace.finished.status == UNSUPPORTED:
            pen.row("Unsupported", translate_error(trace.finished.reason, pen.language), style="bold yellow")
        write_sources(pen, trace.finished, trace)
    if trace.finished is not None:
        write_review(pen, trace, trace.finished)


def _write_approval(trace: Trace, pen: RowWriter, call: CallView) -> None:
    """What people said of a call: whether it may run, what it asked while it ran, and whether it happened."""
    if call.approval is not None:
        write_approval(pen, trace, call.approval)
    for fact in call.answers:
        write_input_answered(pen, fact)
    if call.settled is not None:
        write_doubt_settled(pen, call.settled)


def _look(entry: Entry, trace: Trace) -> tuple[str, str]:
    if entry.kind == "Observation" and entry.tool == GATE and entry.call_id is None:
        return mark("Sent back"), "yellow"
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
                write_rejection(pen, fact)


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
        for question in row.get("questions", ()):
            write_input_answered(pen, InputAnswered(call_id="", **question))
        if row["observation_summary"]:
            pen.row("Observed", row["observation_summary"], style="green")
    if trace.finished is not None:
        write_end(pen, trace.finished, trace)


def _end(trace: Trace, pen: RowWriter, db: str | None) -> None:
    if trace.paused is not None:
        pen.row("Waiting", trace.paused.reason, style="bold yellow")
    write_unknown_calls(pen, trace)
    for loaded in loaded_contents(trace).contents:
        state = (
            mark("{name} · {digest} · approved") if loaded.content.trusted else mark("{name} · {digest} · not approved")
        )
        pen.row("Loaded", pen.text(state, name=loaded.content.name, digest=loaded.content.digest), style="dim")
    pen.gap()
    pen.line(summary(trace, pen), "dim")
    for text, command in next_commands(trace, db):
        pen.line(pen.text(text, command=command), "bold")


@click.command("replay")
@click.argument("run_id", shell_complete=complete_run_ids)
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
            first_difference = first_difference or translate_error(str(error))
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
