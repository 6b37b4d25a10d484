"""`tao runs`: the list of runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime

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

_HELP = """List the runs in the database, the newest first.

`running` with no process behind it is a run whose process died: `tao run --resume RUN_ID` goes on with it.

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
        console = console_for(stream)
        if console.is_terminal:
            _table(console, rows)
        else:
            for row in rows:
                stream.write(
                    f"{row.run_id}  {_time(row.started_at)}  {row.status}  {row.events}  {one_line(row.task)}\n"
                )
    if not rows:
        say(f"{path}: no run{f' has the status {status}' if status else ' yet'}.")
    return exits.OK


def _table(console: Console, rows: list[RunRow]) -> None:
    if not rows:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("run", "started", "status"):
        table.add_column(name, no_wrap=True)
    table.add_column("events", justify="right")
    table.add_column("task", no_wrap=True)
    taken = max(len(row.run_id) + len(row.status) for row in rows) + len("2026-01-01 00:00:00  events") + 8
    for row in rows:
        task = Text(one_line(row.task))
        task.truncate(max(10, console.width - taken), overflow="ellipsis")
        status = Text(row.status, STATUS_STYLES.get(row.status, "yellow"))
        table.add_row(row.run_id, _time(row.started_at), status, str(row.events), task)
    console.print(table)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
