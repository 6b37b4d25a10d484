"""`tao show` and `tao replay`: what happened in a run, and whether it decides the same again."""

from __future__ import annotations

import json
import os
import sys
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from difflib import unified_diff
from operator import methodcaller
from pathlib import Path
from typing import Any

import click
import pydantic_core

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import database, load_environment, load_run, query_database
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.event_view import (
    EventWriter,
    RowWriter,
    answer_for_people,
    console_for,
    format_local_time,
    next_commands,
    summary,
    write_approval,
    write_doubt_settled,
    write_end,
    write_events,
    write_input_answered,
    write_links,
    write_rejection,
    write_sources,
    write_undone,
    write_unknown_calls,
)
from taoloop.cli.ui.stdio import OutputError, capture_stdout, one_line, print_stderr, write_json_lines
from taoloop.core.decision import UNSUPPORTED
from taoloop.core.events import Compensated, Event, ModelReplied, ReplyRejected
from taoloop.core.input_answered import InputAnswered
from taoloop.core.stored_events import event_line, event_record
from taoloop.core.texts import task_with_images
from taoloop.core.trace import Trace, images_of
from taoloop.core.views.run_diff import Comparison, Difference, compare
from taoloop.core.views.steps import CallView
from taoloop.core.views.transcript import Entry, step_summaries, transcript
from taoloop.errors import ReplayDiverged
from taoloop.runtime.after.replay import ReplayedEvent, replay
from taoloop.translation import mark, translate_error

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
@click.option(
    "--save-images", metavar="DIR", type=click.Path(file_okay=False), help="Write the images of the run into a folder."
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
      tao show RUN_ID --save-images DIR      also write its images into DIR, each under its name
    """
    path = database(db, load_environment())
    trace = load_run(path, run_id)
    flaw = query_database(path, lambda journal: journal.verify(trace.run_id)).first
    if flaw is not None and flaw.what != "unchained":
        text = mark("The run {run_id} is not as it was written: {flaw}. See `tao verify {run_id}`.")
        print_stderr(translate(text, run_id=trace.run_id, flaw=flaw.text))
    if save_images is not None:
        for saved in save_images_of(path, trace, Path(save_images)):
            print_stderr(translate("Image written: {path}", path=saved))
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
            _undone(trace, pen)
        _end(trace, pen, db)
    return exits.OK


def save_images_of(path: Path, trace: Trace, folder: Path) -> Iterator[Path]:
    """Write the images of a run into a folder, readable by their owner only; gives the files as they are written.

    Raises:
        OutputError: a file cannot be written, or an image is missing in the journal.
    """
    images = {image.ref: image for event in trace.events for image in images_of(event.fact)}
    for ref, image in images.items():
        file = folder / f"{ref}.{image.extension}"
        artifact = query_database(path, methodcaller("artifact", trace.run_id, ref))
        if artifact is None:
            raise OutputError(translate("The journal has no image {name}.", name=ref))
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


def _undone(trace: Trace, pen: RowWriter) -> None:
    for event in trace.events:
        if isinstance(event.fact, Compensated) and event.fact.ok:
            write_undone(pen, trace, event.fact)


def _head(trace: Trace, pen: RowWriter) -> None:
    agent = trace.agent
    began = format_local_time(trace.events[0].at)
    pen.line(f"{began} · {agent.name} · {agent.model} · {agent.strategy} · {agent.dialect}", "dim")
    if trace.started is not None:
        write_links(pen, trace.started)
    task = trace.task if trace.started is None else task_with_images(trace.started)
    pen.row("Task", task, style="bold", body="bold")
    pen.gap()


def _transcript(trace: Trace, pen: RowWriter) -> None:
    _head(trace, pen)
    for entry in transcript(trace):
        label, style = _look(entry, trace)
        content = answer_for_people(entry.content, trace) if entry.kind == "Final" else entry.content
        text = f"{entry.tool} {content}" if entry.tool else content
        if entry.child is not None:
            text += "\n" + pen.text("by run {run_id}: tao show {run_id}", run_id=entry.child)
        pen.row(label, text, style=style, body="red" if label == "Error" else "", mark=str(entry.number))
        if entry.kind == "Action" and entry.call_id is not None:
            _write_approval(trace, pen, trace.calls[entry.call_id])
    if trace.finished is not None and trace.finished.status == "blocked":
        pen.row("Blocked", translate_error(trace.finished.reason, pen.language), style="bold yellow")
    if trace.finished is not None and trace.agent.evidence != "off":
        if trace.finished.status == UNSUPPORTED:
            pen.row("Unsupported", translate_error(trace.finished.reason, pen.language), style="bold yellow")
        write_sources(pen, trace.finished, trace)


def _write_approval(trace: Trace, pen: RowWriter, call: CallView) -> None:
    """What people said of a call: whether it may run, what it asked while it ran, and whether it happened."""
    if call.approval is not None:
        write_approval(pen, trace, call.approval)
    for fact in call.answers:
        write_input_answered(pen, fact)
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
    pen.gap()
    pen.line(summary(trace, pen), "dim")
    for text, command in next_commands(trace, db):
        pen.line(pen.text(text, command=command), "bold")


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


_PARTS = mark(
    {
        "history": "conversation before the task",
        "tool": "card of the tool {name}",
        "prompt": "prompt text {name}",
        "answer of a person to": "answer of a person to {name}",
        "arguments of": "arguments of {name}",
        "call": "call {name}",
        "verdict on": "verdict on {name}",
        "observation of": "observation of {name}",
        "output_schema": "schema of the answer",
        "approved_tiers": "tiers approved in advance",
        "closing_turn": "closing turn",
        "repair_turns": "turns to repair an unreadable reply",
        "temperature": "temperature",
        "top_p": "nucleus sampling (top_p)",
        "max_output_tokens": "longest reply in tokens",
        "context_tokens": "context window in tokens",
        "model_timeout_s": "time for one reply in seconds",
        "early_reads": "early reads",
        "keep_thinking": "storing the model's thinking",
        "takes_cut_answers": "acceptance of cut answers",
        "evidence": "evidence for answers",
    }
)
"""What may differ, by the first words of `Difference.what`, which `--json` shows."""

_NAMED_BY_CODE = (
    *mark(("task", "unreadable replies", "thought", "answer", "decision", "step", "end")),
    *mark(("instructions", "language", "dialect", "strategy", "model", "limits", "policy")),
)
"""What may differ and is called in words as it is there."""

_DECISIONS = mark(("answer", "unreadable"))
"""The first words of a decision that is no call."""

_ROW_CHARS, _LONG_CHARS, _CONTEXT_LINES = 100, 72, 2


@click.command("diff")
@click.argument("a", metavar="RUN_A")
@click.argument("b", metavar="RUN_B")
@options.db_option
@options.json_option("The comparison as one JSON object.")
@click.option("--decisions", is_flag=True, help="Compare only what was decided, and how the runs ended.")
@click.option("--thoughts", is_flag=True, help="Also compare the thoughts.")
@click.option("--all", "every", is_flag=True, help="Show every difference with both sides, not only the first.")
def diff_command(a: str, b: str, db: str | None, as_json: bool, decisions: bool, thoughts: bool, every: bool) -> int:
    """Compare two runs step by step, and show where they first differ and in what.

    The comparison covers the prompt (task, instructions, tools), decisions, verdicts, observations and the end. It
    ignores what must differ (ids, times, latency, cost), and thoughts unless --thoughts is given. A different model
    or different limits are reported but do not count as a difference. Exit code 1 if the runs differ, 0 if they are
    the same.

      tao diff RUN_A RUN_B
      tao diff RUN_A RUN_B --decisions      only what was decided and how the runs ended
      tao diff RUN_A RUN_B --json | jq .first
    """
    path = database(db, load_environment())
    left, right = load_run(path, a), load_run(path, b)
    comparison = compare(left, right, decisions_only=decisions, thoughts=thoughts)
    with capture_stdout() as stream:
        if as_json:
            runs = {"a": left.run_id, "b": right.run_id, "same": comparison.same}
            first = None if comparison.first is None else asdict(comparison.first)
            record = {**runs, "first": first, **asdict(comparison)}
            stream.write(pydantic_core.to_json(record, fallback=str).decode() + "\n")
        else:
            pen = RowWriter(console_for(stream), view_language(left.agent.language, stream))
            _show(pen, left, right, comparison, every)
    return exits.OK if comparison.same else exits.FOUND


def _show(pen: RowWriter, a: Trace, b: Trace, comparison: Comparison, every: bool) -> None:
    for name, trace in (("a", a), ("b", b)):
        parts = (name, trace.run_id, trace.status, trace.agent.model, trace.task)
        pen.line(_short(" · ".join(parts)), "dim")
    for fork, original, text in (
        (b, a, mark("b is a fork of a at step {step}")),
        (a, b, mark("a is a fork of b at step {step}")),
    ):
        if fork.started is not None and fork.started.forked_from == original.run_id:
            pen.line(pen.text(text, step=fork.started.forked_at), "dim")
    for setting in comparison.settings:
        values = {"a": _short(_plain(pen, setting.a)), "b": _short(_plain(pen, setting.b))}
        values["field"] = _part(pen, setting.what)
        pen.line(pen.text("not compared: {field} is {a} in a, {b} in b", **values), "dim")
    pen.gap()
    _rows(pen, comparison)
    pen.gap()
    if comparison.first is None:
        pen.line(pen.text("the same in all {n} steps", n=len(comparison.steps)), "bold green")
        return
    pen.line(_headline(pen, comparison.first), "bold yellow")
    _sides(pen, comparison.first)
    for difference in comparison.differences[1:] if every else ():
        step = "" if not difference.step else f"{difference.step} "
        pen.line(step + _part(pen, difference.what), "yellow")
        _sides(pen, difference)


def _rows(pen: RowWriter, comparison: Comparison) -> None:
    """Every step: one line where both decided the same, else one for each run."""
    for pair in comparison.steps:
        if pair.a == pair.b:
            mark, style = ("=", "dim") if pair.same else ("≠", "bold red")
            pen.line(_short(f"{pair.number:>3} {mark} {_decision(pen, pair.a)}"), style)
            continue
        for name, line, style in (("a", pair.a, "red"), ("b", pair.b, "green")):
            number = f"{pair.number:>3} ≠" if name == "a" else "     "
            pen.line(_short(f"{number} {name}: {_decision(pen, line)}"), style)


def _decision(pen: RowWriter, line: str | None) -> str:
    """A decision in one line; only the words that are no tool are translated."""
    word, space, rest = (line or "–").partition(" ")
    return (pen.text(word) if word in _DECISIONS else word) + space + rest


def _headline(pen: RowWriter, first: Difference) -> str:
    if first.step is None:
        return pen.text("They first differ in how they end")
    if first.part == "step":
        run = "a" if first.b is None else "b"
        return pen.text("They first differ in step {step}: only {run} has it", step=first.step, run=run)
    if first.step:
        return pen.text("They first differ in step {step}: {part}", step=first.step, part=_part(pen, first.what))
    return pen.text("They first differ before step 1: {part}", part=_part(pen, first.what))


def _part(pen: RowWriter, what: str) -> str:
    """What differs, in words."""
    if what in _NAMED_BY_CODE:
        return pen.text(what)
    code = next((code for code in _PARTS if f"{what} ".startswith(f"{code} ")), None)
    return what if code is None else pen.text(_PARTS[code], name=what.removeprefix(code).strip()).strip()


def _sides(pen: RowWriter, difference: Difference) -> None:
    """Both sides: short ones in a line each, long ones as a unified diff."""
    left, right = _plain(pen, difference.a), _plain(pen, difference.b)
    if left == right:
        pen.line("  " + pen.text("the complete output, beyond what is shown"), "dim")
    if max(len(left), len(right)) <= _LONG_CHARS and "\n" not in left + right:
        pen.line(f"  - a: {left}", "red")
        pen.line(f"  + b: {right}", "green")
        return
    sides = _lines(difference.a, left), _lines(difference.b, right)
    for line in unified_diff(*sides, "a", "b", lineterm="", n=_CONTEXT_LINES):
        style = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")
        pen.line(f"  {line}", style)


def _plain(pen: RowWriter, value: Any) -> str:
    if value is None:
        return pen.text("(nothing)")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_data)


def _lines(value: Any, plain: str) -> list[str]:
    """A value in the lines that a unified diff compares."""
    if value is None or isinstance(value, str):
        return plain.splitlines() or [""]
    return json.dumps(value, ensure_ascii=False, default=_data, indent=2).splitlines()


def _data(value: Any) -> Any:
    """What JSON does not know: a dataclass as its fields, anything else as a text."""
    if not is_dataclass(value) or isinstance(value, type):
        return str(value)
    return {name: item for name, item in asdict(value).items() if item is not None}


def _short(text: str) -> str:
    line = one_line(text) if not text.startswith(" ") else text[: len(text) - len(text.lstrip())] + one_line(text)
    return line if len(line) <= _ROW_CHARS else line[: _ROW_CHARS - 1] + "…"
