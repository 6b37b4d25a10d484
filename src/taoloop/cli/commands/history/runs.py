"""`tao runs`: the list of runs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import TextIO

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.database import database, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.event_view import STATUS_STYLES, console_for
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.cli.ui.terminal_text import one_line
from taoloop.journals.base import Journal, RunRow, locks_of

_MOST_CHARS = 200  # of a task in a pipe; --json has it whole
_LEAST_CELLS = 10  # for the task; where there is less room a run takes two lines

_HELP = """List the runs in the database, the newest first.

`lost` is a run whose process died while it was under way: `tao recover` goes on with it. `forked` is a fork that nobody
has gone on with yet: `tao resume` does. For --status and --json both are `running`. Where standard output is no
terminal the header goes to standard error.

\b
  tao runs --status waiting
  tao runs --limit 5 --json
"""


@click.command("runs", help=_HELP)
@options.db_option
@click.option("--status", type=click.Choice([*exits.OF_STATUS, "running"]), help="Only runs of this status.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@options.json_option("One JSON object per run and line.")
def command(db: str | None, status: str | None, limit: int, as_json: bool) -> int:
    """Print the rows."""
    path = database(db, load_environment())
    rows, states = query_database(path, lambda journal: _load_rows(journal, limit, status))
    with capture_stdout() as stream:
        if as_json:
            for row in rows:
                stream.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
            return exits.OK
        console = console_for(stream)
        if rows and console.is_terminal:
            _table(console, rows, states)
        elif rows:
            _lines(stream, rows, states)
    if not rows:
        print_stderr(f"{path}: no run{f' has the status {status}' if status else ' yet'}.")
    if "lost" in states.values():
        where = "" if db is None else f" --db {shlex.quote(db)}"
        print_stderr(f"lost: the process died. Go on with all of them: tao recover{where}")
    return exits.OK


async def _load_rows(journal: Journal, limit: int, status: str | None) -> tuple[list[RunRow], dict[str, str]]:
    """The rows, and what to say of those that are `running` with nobody at work on them."""
    rows = await journal.runs(limit=limit, status=status)
    holds = locks_of(journal)
    if holds is None:
        return rows, {}
    states = {}
    for row in rows:
        if row.status == "running" and await holds.holder(row.run_id) is None:
            states[row.run_id] = "forked" if await holds.is_new_fork(row.run_id) else "lost"
    return rows, states


def _state(row: RunRow, states: Mapping[str, str]) -> str:
    return states.get(row.run_id, row.status)


def _lines(stream: TextIO, rows: list[RunRow], states: Mapping[str, str]) -> None:
    """One line per run, and nothing else, on `stream`; the header beside it, on standard error."""
    cells = [("run", "started", "status", "events", "task")]
    for row in rows:
        events = f"{row.events} event{'' if row.events == 1 else 's'}"
        task = one_line(row.task)
        if len(task) > _MOST_CHARS:
            task = f"{task[: _MOST_CHARS - 1]}…"
        cells.append((row.run_id, _time(row.started_at), _state(row, states), events, task))
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    header, *lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=True)), line[-1]])
        for line in cells
    ]
    with suppress(OSError, ValueError):
        print(header, file=sys.stderr, flush=True)  # noqa: T201  # this is where the CLI prints
    stream.writelines(f"{line}\n" for line in lines)


def _table(console: Console, rows: list[RunRow], states: Mapping[str, str]) -> None:
    ids = max(len(row.run_id) for row in rows)
    used_columns = ids + max(len(_state(row, states)) for row in rows) + len("2026-01-01 00:00:00  events") + 8
    if console.width < used_columns + _LEAST_CELLS:  # an id must stay whole: it is what other commands take
        for row in rows:
            status = Text(_state(row, states), STATUS_STYLES.get(row.status, "yellow"))
            console.print(Text(row.run_id), overflow="fold")
            console.print(Padding(Text("  ").join((status, Text(one_line(row.task)))), (0, 0, 0, 2)), overflow="fold")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("run", "started", "status"):
        table.add_column(name, no_wrap=True)
    table.add_column("events", justify="right")
    table.add_column("task", no_wrap=True)
    for row in rows:
        task = Text(one_line(row.task))
        task.truncate(console.width - used_columns, overflow="ellipsis")
        status = Text(_state(row, states), STATUS_STYLES.get(row.status, "yellow"))
        table.add_row(row.run_id, _time(row.started_at), status, str(row.events), task)
    console.print(table)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
