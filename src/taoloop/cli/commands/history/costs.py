"""`tao costs`: what models cost, by API key, agent and day."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TextIO

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.database import database, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.cli.ui.terminal_text import one_line
from taoloop.journals.costs import CostRow, cost_rows, totals

_HELP = """Add up what models cost, by day, API key and agent.

Days are those of UTC. A run inside another one counts for the key of the outermost run, under its own agent's name.
Calls whose price nobody knows are not in the cost; how many they are stands beside it. Where standard output is no
terminal the header goes to standard error.

\b
  tao costs --since 2027-01-01
  tao costs --by key --by day
  tao costs --json | jq .cost_usd
"""

_COLUMNS = ("day", "key", "agent")
_NUMBERS = ("runs", "calls", "input", "cached", "output", "cost_usd", "unpriced")


@click.command("costs", help=_HELP)
@options.db_option
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="From this day on (2027-01-31, UTC).")
@click.option("--by", type=click.Choice(_COLUMNS), multiple=True, help="Add up by this alone; may be given twice.")
@options.json_option("One JSON object per row and line.")
def command(db: str | None, since: datetime | None, by: tuple[str, ...], as_json: bool) -> int:
    """Print the rows."""
    path = database(db, load_environment())
    start = None if since is None else since.replace(tzinfo=UTC).timestamp()
    chosen = tuple(name for name in _COLUMNS if not by or name in by)
    rows = totals(query_database(path, lambda journal: cost_rows(journal, start)), _grouping(chosen))
    with capture_stdout() as stream:
        if as_json:
            for row in rows:
                stream.write(json.dumps(_record(row, chosen), ensure_ascii=False) + "\n")
        elif rows:
            _lines(stream, rows, chosen)
    if not rows:
        print_stderr(f"{path}: no run{f' since {since:%Y-%m-%d}' if since else ' yet'}.")
    return exits.OK


def _grouping(chosen: tuple[str, ...]) -> Callable[[CostRow], tuple[str, str, str]]:
    def group_key(row: CostRow) -> tuple[str, str, str]:
        day, key, agent = (getattr(row, name) if name in chosen else "" for name in _COLUMNS)
        return day, key, agent

    return group_key


def _record(row: CostRow, chosen: tuple[str, ...]) -> dict[str, object]:
    return {name: value for name, value in asdict(row).items() if name not in _COLUMNS or name in chosen}


def _lines(stream: TextIO, rows: list[CostRow], chosen: tuple[str, ...]) -> None:
    """One line per row in columns; the header on standard error, so that programs need not skip it."""
    cells = [(*chosen, *_NUMBERS), *(_cells(row, chosen) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    header, *lines = [
        "  ".join(
            cell.ljust(width) if column < len(chosen) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]
    with suppress(OSError, ValueError):  # nobody reads standard error
        (stream if stream.isatty() else sys.stderr).write(f"{header}\n")
    stream.writelines(f"{line}\n" for line in lines)


def _cells(row: CostRow, chosen: tuple[str, ...]) -> tuple[str, ...]:
    names = [one_line(getattr(row, name)) or "-" for name in chosen]
    counted = (row.runs, row.model_calls, row.input_tokens, row.cached_tokens, row.output_tokens)
    return (*names, *map(str, counted), f"{row.cost_usd:.6f}", str(row.unpriced_calls))
