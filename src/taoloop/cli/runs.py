"""`tao runs`: the list of runs."""

from __future__ import annotations

import json
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import TextIO

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from taoloop.cli import exits, options
from taoloop.cli.environment import environment
from taoloop.cli.rendering import STATUS_STYLES, console_for
from taoloop.cli.store import database, look
from taoloop.cli.streams import owning_stdout, say
from taoloop.cli.text import one_line
from taoloop.journals.base import RunRow

_SILENT_S = 5 * 60

_HELP = """List the runs in the database, the newest first.

`running?` is a run without an event for more than five minutes. Its process may be busy, or may have died:
`tao run --resume RUN_ID` goes on with it. Where standard output is no terminal the header goes to standard error.

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
    path = database(db, environment())
    rows = look(path, lambda journal: journal.runs(limit=limit, status=status))
    with owning_stdout() as stream:
        if as_json:
            for row in rows:
                stream.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
            return exits.OK
        now = time.time()
        console = console_for(stream)
        if rows and console.is_terminal:
            _table(console, rows, now)
        elif rows:
            _lines(stream, rows, now)
    if not rows:
        say(f"{path}: no run{f' has the status {status}' if status else ' yet'}.")
    if silent := [row.run_id for row in rows if _state(row, now) != row.status]:
        where = "" if db is None else f" --db {shlex.quote(db)}"
        say(
            f"running?: no event for more than {_SILENT_S // 60} minutes. "
            f"If no process is at work on it any more: tao run --resume {silent[0]}{where}"
        )
    return exits.OK


def _state(row: RunRow, now: float) -> str:
    """The status, with a question mark where nothing was heard of a running run for long."""
    return "running?" if row.status == "running" and now - row.updated_at > _SILENT_S else row.status


def _lines(stream: TextIO, rows: list[RunRow], now: float) -> None:
    """One line per run, and nothing else, on `stream`; the header beside it, on standard error."""
    cells = [("run", "started", "status", "events", "task")]
    for row in rows:
        events = f"{row.events} event{'' if row.events == 1 else 's'}"
        cells.append((row.run_id, _time(row.started_at), _state(row, now), events, one_line(row.task)))
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    header, *lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=True)), line[-1]])
        for line in cells
    ]
    with suppress(OSError, ValueError):
        print(header, file=sys.stderr, flush=True)  # noqa: T201  # this is where the CLI prints
    stream.writelines(f"{line}\n" for line in lines)


def _table(console: Console, rows: list[RunRow], now: float) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("run", "started", "status"):
        table.add_column(name, no_wrap=True)
    table.add_column("events", justify="right")
    table.add_column("task", no_wrap=True)
    taken = max(len(row.run_id) + len(_state(row, now)) for row in rows) + len("2026-01-01 00:00:00  events") + 8
    for row in rows:
        task = Text(one_line(row.task))
        task.truncate(max(10, console.width - taken), overflow="ellipsis")
        status = Text(_state(row, now), STATUS_STYLES.get(row.status, "yellow"))
        table.add_row(row.run_id, _time(row.started_at), status, str(row.events), task)
    console.print(table)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
