"""`tao db`: keep the database of runs small."""

from __future__ import annotations

from dataclasses import asdict

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import database, is_there, load_environment, query_database
from taoloop.cli.translation import translate
from taoloop.cli.ui.event_view import format_local_time
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, write_json_lines
from taoloop.journals.retention import Retention
from taoloop.runtime.engine.clock import SystemClock
from taoloop.translation import mark


@click.group("db", no_args_is_help=True)
def db_command() -> None:
    """Keep the database of runs small: remove old runs, and keep a record of each."""


@db_command.command("prune")
@options.db_option
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Remove runs whose last event is older.")
@click.option("--runs", type=click.IntRange(min=0), metavar="N", help="Keep only the newest N runs.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@options.json_option("One JSON object per removed run and line.")
def prune_command(db: str | None, days: int | None, runs: int | None, dry_run: bool, as_json: bool) -> int:
    """Remove finished runs, and keep a record of each in the hash chain of the log of runs.

    The record has the id, agent, status, times, number of events, head hash, and why and when the run was removed, so
    `tao verify --all` still tells removal by retention from tampering. Runs that wait, that are not finished, that have
    a call in doubt, or that have events of today (UTC) stay; a run goes together with the runs inside it. A run that
    was changed after it was written stays and is reported: exit code 12.

      tao db prune --days 90 --dry-run     list what would be removed
      tao db prune --days 90 --runs 10000
    """
    if days is None and runs is None:
        raise click.UsageError(translate("Say what to keep: --days N, --runs N, or both."))
    path, keep = database(db, load_environment()), Retention(days=days, runs=runs)
    now = SystemClock().now()
    report = query_database(
        path,
        lambda journal: journal.prune(keep, now=now, is_dry_run=dry_run),
        read_only=dry_run or not is_there(path),  # a missing file is reported, not created
    )
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, map(asdict, report.pruned))
        else:
            for run in report.pruned:
                stream.write(f"{run.run_id}  {format_local_time(run.ended_at)}  {run.status}  {run.rule}\n")
    text = mark("{path}: {n} run was removed.|{path}: {n} runs were removed.")
    if dry_run:
        text = mark("{path}: {n} run would be removed.|{path}: {n} runs would be removed.")
    print_stderr(translate(text, n=len(report.pruned), path=path))
    for run_id in report.damaged:
        text = mark("Run {run_id} was changed after it was written and stays: tao verify {run_id}")
        print_stderr(translate(text, run_id=run_id))
    return exits.TAMPERED if report.damaged else exits.OK
