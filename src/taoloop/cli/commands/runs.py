"""`tao runs` and `tao costs`: the runs of a database, and what their models cost."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import ALL_RUNS, database, load_environment, query_database, query_overview
from taoloop.cli.translation import translate
from taoloop.cli.ui.event_view import STATUS_STYLES, console_for, format_local_time
from taoloop.cli.ui.stdio import capture_stdout, one_line, print_stderr, write_json_lines
from taoloop.core.events import Compensated
from taoloop.journals.addresses import DatabaseAddress
from taoloop.journals.base import Journal, RunLocks, RunRow, locks_of
from taoloop.journals.costs import GROUPS, totals, unpriced_models, usage_rows
from taoloop.journals.queries import RunQuery, queries_of, runs_inside
from taoloop.journals.usage import UsageRow
from taoloop.journals.usage_report import usage_csv
from taoloop.runtime.after.recovery import stuck_excerpts
from taoloop.runtime.approvals.inbox import WaitingQuestions
from taoloop.runtime.fleet.wakes import is_submitted
from taoloop.translation import mark

_HEADER = mark(("run", "started", "status", "events", "task"))
_UNDONE = ", undone"
_MOST_CHARS = 200  # of a task in a pipe; --json has it whole
_ONE_BY_ONE = 200
_LEAST_CELLS = 10  # for the task; where there is less room a run takes two lines


@click.command("runs")
@options.db_option
@click.option("--status", type=click.Choice([*exits.OF_STATUS, "running"]), help="Only runs of this status.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="List at most this many runs.")
@click.option("--agent", metavar="NAME", help="Only runs of this agent.")
@click.option("--search", metavar="TEXT", help="Only runs with all these words in task, answer, calls or errors.")
@options.json_option("One JSON object per run and line.")
def runs_command(
    db: str | None, status: str | None, limit: int, agent: str | None, search: str | None, as_json: bool
) -> int:
    """List the runs in the database, newest first.

    `lost` is a run whose process died in the middle of it: `tao recover` resumes it. `stuck` is one that it does
    not resume, because it died there again and again, or because its outer run continued: `tao approvals` lists
    its calls in doubt, `tao resume` runs it. `forked` is a fork that has not been run yet: `tao resume` runs it.
    `queued` is one that a worker is to run (`tao worker`). For --status and --json all are `running`. `undone` appears
    beside the status of a run whose effects `tao undo` took back, perhaps after its answer. If standard output is not a
    terminal, the header goes to standard error.

    --search finds a run by its task at once, and by everything else when it waits or is over. The first search of a
    large database takes a while: it makes an index in a file beside it (`runs.db-search`), which may be removed.

      tao runs --status waiting
      tao runs --search "invoice 4711"
      tao runs --limit 5 --json
    """
    path = database(db, load_environment())
    query = RunQuery(text=search or "", statuses=(status,) if status else (), agent=agent)
    rows, states = query_database(path, lambda journal: _load_rows(journal, limit, query))
    questions = query_database(path, lambda journal: WaitingQuestions().count(journal))
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, (_record(row, states) for row in rows))
            return exits.OK
        console = console_for(stream)
        if rows and console.is_terminal:
            _table(console, rows, states)
        elif rows:
            _write_lines(stream, rows, states)
    if not rows:
        print_stderr(_nothing(path, query))
    if count := questions.total():
        text = mark("{n} question waits for a person: {command}|{n} questions wait for a person: {command}")
        print_stderr(translate(text, n=count, command=f"tao approvals{options.db_argument(db)}"))
    if "lost" in states.values():
        command = f"tao recover{options.db_argument(db)}"
        print_stderr(translate("lost: the process died. Resume all of them: {command}", command=command))
    if "stuck" in states.values():
        command = f"tao approvals{options.db_argument(db)}"
        text = mark("stuck: no recovery resumes it. See its calls in doubt ({command}), then: tao resume RUN_ID")
        print_stderr(translate(text, command=command))
    return exits.OK


def _nothing(path: DatabaseAddress, query: RunQuery) -> str:
    """Why the list is empty."""
    if query.text or query.agent is not None:
        return translate("{path}: no run fits.", path=path)
    if query.statuses:
        return translate("{path}: no run has the status {status}.", path=path, status=query.statuses[0])
    return translate("{path}: no run yet.", path=path)


async def _load_rows(journal: Journal, limit: int, query: RunQuery) -> tuple[list[RunRow], dict[str, str]]:
    """The rows, and the state of those that are undone, or `running` without a process: lost, stuck or forked."""
    rows = list((await queries_of(journal).find(query, limit=limit)).rows)
    undos = {run_id.rpartition(".undo-")[0] for run_id in await _inner_ids(journal, rows) if ".undo-" in run_id}
    states = {
        row.run_id: f"{row.status}{_UNDONE}" for row in rows if undos and await _is_undone(journal, row.run_id, undos)
    }
    holds = locks_of(journal)
    if holds is None:
        return rows, states
    stuck = {trace.run_id for trace in await stuck_excerpts(journal)}
    for row in rows:
        if row.status == "running" and await holds.holder(row.run_id) is None:
            states[row.run_id] = "stuck" if row.run_id in stuck else await _idle_state(journal, holds, row.run_id)
    return rows, states


async def _idle_state(journal: Journal, holds: RunLocks, run_id: str) -> str:
    """What a `running` run without a process is: forked, queued for workers, or lost."""
    if await holds.is_new_fork(run_id):
        return "forked"
    return "queued" if await is_submitted(journal, run_id) else "lost"


def _record(row: RunRow, states: Mapping[str, str]) -> dict[str, object]:
    """The row as data, with `undone` where effects of the run were undone."""
    return asdict(row) | ({"undone": True} if states.get(row.run_id, "").endswith(_UNDONE) else {})


async def _inner_ids(journal: Journal, rows: Sequence[RunRow]) -> list[str]:
    """The runs inside some runs, perhaps with others: to ask for many one by one would take longer than to read all."""
    if len(rows) > _ONE_BY_ONE:
        return [row.run_id for row in await journal.runs(limit=ALL_RUNS)]
    return [inner.run_id for row in rows for inner in await runs_inside(journal, row.run_id)]


async def _is_undone(journal: Journal, run_id: str, undos: Collection[str]) -> bool:
    """Whether effects of a run, or of one inside it, were undone; `undos` are the runs that something undid."""
    if not any(f"{undone}.".startswith(f"{run_id}.") for undone in undos):
        return False
    after = -1
    while events := await queries_of(journal).read(run_id, after=after, kinds=(Compensated.kind,)):
        if any(isinstance(event.fact, Compensated) and event.fact.ok for event in events):
            return True
        after = events[-1].seq
    return False


def _state(row: RunRow, states: Mapping[str, str]) -> str:
    return states.get(row.run_id, row.status)


def _task(row: RunRow) -> str:
    """The task on one line; of a run inside another one its first line, for a model or a plan wrote the rest."""
    return one_line(row.task if row.parent is None else row.task.strip().partition("\n")[0])


def _write_lines(stream: TextIO, rows: list[RunRow], states: Mapping[str, str]) -> None:
    """One line per run, and nothing else, on `stream`."""
    lines = []
    for row in rows:
        task = _task(row)
        if len(task) > _MOST_CHARS:
            task = f"{task[: _MOST_CHARS - 1]}…"
        events = translate("{n} event|{n} events", n=row.events)
        lines.append((row.run_id, format_local_time(row.started_at), _state(row, states), events, task))
    _write_columns(stream, _HEADER, lines)


def _write_columns(
    stream: TextIO, header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()
) -> None:
    """Rows in columns, those called `right` aligned so.

    The header goes to standard error where `stream` is no terminal, so that programs need not skip it.
    """
    cells = [[translate(name) for name in header], *rows]
    widths = [max(cell_len(line[column]) for line in cells) for column in range(len(header))]
    first, *lines = [
        "  ".join(
            " " * (width - cell_len(cell)) + cell if name in right else cell + " " * (width - cell_len(cell))
            for name, cell, width in zip(header, line, widths, strict=True)
        ).rstrip()
        for line in cells
    ]
    with suppress(OSError, ValueError):  # nobody reads standard error
        (stream if stream.isatty() else sys.stderr).write(f"{first}\n")
    stream.writelines(f"{line}\n" for line in lines)


def _table(console: Console, rows: list[RunRow], states: Mapping[str, str]) -> None:
    ids = max(len(row.run_id) for row in rows)
    header = [translate(name) for name in _HEADER]
    used_columns = ids + max(len(_state(row, states)) for row in rows) + len("2026-01-01 00:00:00") + 8
    used_columns += max(cell_len(header[3]), 6)
    if console.width < used_columns + _LEAST_CELLS:  # an id must stay whole: it is what other commands take
        for row in rows:
            status = Text(_state(row, states), STATUS_STYLES.get(row.status, "yellow"))
            console.print(Text(row.run_id), overflow="fold")
            console.print(Padding(Text("  ").join((status, Text(_task(row)))), (0, 0, 0, 2)), overflow="fold")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, name in enumerate(header):
        table.add_column(name, no_wrap=True, justify="right" if number == 3 else "left")
    for row in rows:
        task = Text(_task(row))
        task.truncate(console.width - used_columns, overflow="ellipsis")
        status = Text(_state(row, states), STATUS_STYLES.get(row.status, "yellow"))
        table.add_row(row.run_id, format_local_time(row.started_at), status, str(row.events), task)
    console.print(table)


_COLUMNS = mark(("day", "key", "agent", "model"))
_NUMBERS = mark(("runs", "calls", "input", "cached", "output", "cost_usd", "unpriced"))
_HEALTH = mark(("runs", "ended", "success", "steps/run", "tool calls", "failed", "interventions"))
_UNKNOWN = "-"
_MOST_NAMED = 5


@click.command("costs")
@options.db_option
@click.option(
    "--since", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="Start with this day (UTC), such as 2027-01-31."
)
@click.option("--by", type=click.Choice(_COLUMNS), multiple=True, help="Add up by this only; repeatable.")
@click.option("--health", is_flag=True, help="Show how the runs went instead of what they cost.")
@click.option("--csv", "as_csv", is_flag=True, help="All figures as CSV with a header, for a spreadsheet.")
@options.json_option("One JSON object per row and line.")
def costs_command(
    db: str | None, since: datetime | None, by: tuple[str, ...], health: bool, as_csv: bool, as_json: bool
) -> int:
    """Add up model costs by day, API key and agent, or by model.

    Days are UTC. What was removed by retention is included. A run inside another one counts for the key of the
    outermost run, but for its own agent. Calls of unknown price are not part of the cost; the last column counts them,
    and a cost of which nothing is known is `-` (null in JSON, empty in CSV). `success` is the part of the ends that was
    `completed`, `failed` that of the tool calls whose outcome was an error. If standard output is not a terminal, the
    header goes to standard error.

      tao costs --since 2027-01-01
      tao costs --by model --by day
      tao costs --health --by agent
      tao costs --json | jq .cost_usd
    """
    if as_csv and as_json:
        text = mark("{one} and {other} exclude each other; use one of them.")
        raise click.UsageError(translate(text, one="--csv", other="--json"))
    path = database(db, load_environment())
    start = None if since is None else since.replace(tzinfo=UTC).timestamp()
    chosen = tuple(name for name in _COLUMNS if name in (by or GROUPS))
    usage = query_overview(path, lambda journal: usage_rows(journal, start))
    rows = totals(usage, chosen)
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, (_cost_record(row, chosen) for row in rows))
        elif as_csv:
            stream.write(usage_csv(rows, chosen))
        elif rows:
            numbers, cells = (_HEALTH, _health_cells) if health else (_NUMBERS, _cost_cells)
            lines = [(*_names(row, chosen), *cells(row)) for row in rows]
            _write_columns(stream, (*chosen, *numbers), lines, right=numbers)
    if not rows:
        none_since = translate("{path}: no run since {day:%Y-%m-%d}.", path=path, day=since) if since else ""
        print_stderr(none_since or translate("{path}: no run yet.", path=path))
    elif unpriced := unpriced_models(usage):
        named = ", ".join(f"{one_line(model) or _UNKNOWN} ({n})" for model, n in list(unpriced.items())[:_MOST_NAMED])
        more = ", …" if len(unpriced) > _MOST_NAMED else ""
        print_stderr(translate("Calls without a known price, which are in no cost: {models}", models=named + more))
    return exits.OK


def _cost_record(row: UsageRow, chosen: tuple[str, ...]) -> dict[str, object]:
    values = asdict(row) | {"cost_usd": row.known_cost_usd}
    return {name: value for name, value in values.items() if name not in _COLUMNS or name in chosen}


def _names(row: UsageRow, chosen: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one_line(getattr(row, name)) or _UNKNOWN for name in chosen)


def _cost_cells(row: UsageRow) -> tuple[str, ...]:
    counted = (row.runs, row.model_calls, row.input_tokens, row.cached_tokens, row.output_tokens)
    cost = _UNKNOWN if row.known_cost_usd is None else f"{row.known_cost_usd:.6f}"
    return (*map(str, counted), cost, str(row.unpriced_calls))


def _health_cells(row: UsageRow) -> tuple[str, ...]:
    success, failed = (_UNKNOWN if rate is None else f"{rate:.0%}" for rate in (row.success_rate, row.failure_rate))
    steps = _UNKNOWN if row.steps_per_run is None else f"{row.steps_per_run:.1f}"
    return (str(row.runs), str(row.ended), success, steps, str(row.tool_calls), failed, str(row.interventions))
