"""`tao replay`: a recorded run decides again, from its trace alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
import pydantic_core

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.database import database, load_run
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.event_view import EventWriter, RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, terminal_language
from taoloop.cli.ui.texts import ui_text
from taoloop.core.events import Event
from taoloop.core.stored_events import event_line, event_record
from taoloop.core.trace import Trace
from taoloop.errors import ReplayDiverged
from taoloop.runtime.after.replay import ReplayedEvent, replay

_HELP = """Let a run decide again, without model, tools, clock or network, and say whether it decides the same.

The model's replies, the observations and what people did are taken from the record; what the core makes of them is
made again. Exit code 1 if anything differs.

\b
  tao replay RUN_ID --step      Enter shows the next event
  tao replay RUN_ID --json      what is decided, one event per line, with "same": true or false
"""


@click.command("replay", help=_HELP)
@click.argument("run_id")
@options.db_option
@options.json_option("The decided events as JSON, one per line; the summary goes to standard error.")
@click.option("--step", is_flag=True, help="Wait for Enter before each event (on a terminal).")
def command(run_id: str, db: str | None, as_json: bool, step: bool) -> int:
    """Replay the run and compare."""
    trace = load_run(database(db, load_environment()), run_id)
    stepping = step and not as_json and sys.stdin.isatty()
    first_difference = ""
    total = 0
    with capture_stdout() as stream:
        pen = RowWriter(console_for(stream), terminal_language(trace.agent.language, stream))
        replayed = Trace(trace.run_id)
        writer = EventWriter(pen, replayed, whole=True)
        try:
            for decided in _each(trace, stepping):
                total += 1
                recorded = decided.recorded
                if not decided.same and not first_difference:
                    first_difference = f"event {recorded.seq}: {decided.decided.kind} differs from the record"
                if as_json:
                    event = Event(recorded.seq, recorded.at, decided.decided)
                    line = {**event_record(trace.run_id, event), "same": decided.same}
                    stream.write(pydantic_core.to_json(line).decode() + "\n")
                else:
                    _show(pen, writer, replayed, decided)
                stream.flush()
        except ReplayDiverged as error:
            first_difference = first_difference or str(error)
        if not first_difference and not as_json:
            pen.gap()
            pen.line(ui_text(pen.language, "replayed", n=total), "bold green")
    if first_difference:
        print_stderr(
            f"The replay diverges at {first_difference}" if first_difference.startswith("event") else first_difference
        )
        return exits.FOUND
    if as_json:
        print_stderr(ui_text(terminal_language(trace.agent.language, sys.stderr), "replayed", n=total))
    return exits.OK


def _each(trace: Trace, stepping: bool) -> Iterator[ReplayedEvent]:
    for decided in replay(trace):
        yield decided
        if stepping and decided.recorded.seq + 1 < len(trace.events):
            input()


def _show(pen: RowWriter, writer: EventWriter, replayed: Trace, decided: ReplayedEvent) -> None:
    recorded = decided.recorded
    mark = "=" if decided.same else "≠"
    pen.line(f"{recorded.seq:>3} {mark} {recorded.kind}", "dim" if decided.same else "bold red")
    replayed.append(recorded)
    writer.write(Event(recorded.seq, recorded.at, decided.decided))
    if not decided.same:
        pen.line(f"    recorded: {event_line(replayed.run_id, recorded)}", "red")
