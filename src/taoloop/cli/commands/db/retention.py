"""`tao db prune`, `archive` and `restore`: keep the database of runs small, and take runs back."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import database, is_there, load_environment, query_database
from taoloop.cli.translation import translate
from taoloop.cli.ui.event_view import format_local_time
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, write_json_lines
from taoloop.journals.base import Journal
from taoloop.journals.raw_runs import ArchiveWriter, HasRawRuns, read_archive
from taoloop.journals.retention import PruneReport, Retention
from taoloop.runtime.engine.clock import SystemClock
from taoloop.translation import mark


@click.command("prune")
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
    _write_removed(report, as_json=as_json)
    text = mark("{path}: {n} run was removed.|{path}: {n} runs were removed.")
    if dry_run:
        text = mark("{path}: {n} run would be removed.|{path}: {n} runs would be removed.")
    print_stderr(translate(text, n=len(report.pruned), path=path))
    return _report_damaged(report)


@click.command("archive")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@options.db_option
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Archive runs whose last event is older.")
@click.option("--runs", type=click.IntRange(min=0), metavar="N", help="Leave only the newest N runs.")
@click.option("--dry-run", is_flag=True, help="Only list what would be archived.")
@options.json_option("One JSON object per archived run and line.")
def archive_command(
    folder: Path, db: str | None, days: int | None, runs: int | None, dry_run: bool, as_json: bool
) -> int:
    """Write finished runs to a compressed file in FOLDER, and remove them from the database.

    The file has one JSON object per run and line, gzipped, byte for byte as stored; beside it is a manifest with its
    SHA-256 and the head of each run. It is read once more before anything is removed. What is removed, and what stays,
    is as for `tao db prune`; `tao db restore` puts the runs back.

      tao db archive archives --days 90
      tao db archive archives --runs 10000 --db postgresql://tao@db/runs
    """
    if days is None and runs is None:
        raise click.UsageError(translate("Say what to keep: --days N, --runs N, or both."))
    path, keep = database(db, load_environment()), Retention(days=days, runs=runs)
    now = SystemClock().now()
    name = f"runs-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}.jsonl.gz"

    async def archive(journal: Journal) -> PruneReport:
        planned = await journal.prune(keep, now=now, is_dry_run=True)
        if dry_run or not planned.pruned:
            return planned
        await _write_archive(cast("HasRawRuns", journal), folder / name, planned)
        return await journal.prune(keep, now=now)

    report = query_database(path, archive, read_only=dry_run or not is_there(path))
    _write_removed(report, as_json=as_json)
    text = mark("{path}: {n} run was archived in {file}.|{path}: {n} runs were archived in {file}.")
    if dry_run:
        text = mark("{path}: {n} run would be archived.|{path}: {n} runs would be archived.")
    elif not report.pruned:
        text = mark("{path}: no run is due.")
    print_stderr(translate(text, n=len(report.pruned), path=path, file=folder / name))
    return _report_damaged(report)


@click.command("restore")
@click.argument("archives", nargs=-1, required=True, type=click.Path(dir_okay=False, exists=True, path_type=Path))
@options.db_option
@click.option("--run", "run_ids", multiple=True, metavar="RUN", help="Only this run; repeatable.")
def restore_command(archives: tuple[Path, ...], db: str | None, run_ids: tuple[str, ...]) -> int:
    """Put archived runs back into the database.

    Every archive is checked against its manifest, and every run against its hash chain, before anything is stored.
    Runs that are there already are left alone. What the runs cost is not counted again.

      tao db restore archives/runs-20260131T000000Z.jsonl.gz
    """
    path = database(db, load_environment())
    for archive in archives:
        for _run in read_archive(archive):  # all of it is whole before any of it is stored
            pass

    async def restore(journal: Journal) -> int:
        restored = 0
        for archive in archives:
            for run in read_archive(archive):
                if not run_ids or run.run_id in run_ids:
                    restored += len(await cast("HasRawRuns", journal).add_raw_runs([run]))
        return restored

    count = query_database(path, restore, read_only=False)
    text = mark("{path}: {n} run was restored.|{path}: {n} runs were restored.")
    print_stderr(translate(text, n=count, path=path))
    return exits.OK


async def _write_archive(journal: HasRawRuns, file: Path, planned: PruneReport) -> None:
    writer = ArchiveWriter(file)
    try:
        for run in planned.pruned:
            writer.add(await journal.raw_run(run.run_id))
    except BaseException:
        writer.abandon()
        raise
    writer.finish()


def _write_removed(report: PruneReport, *, as_json: bool) -> None:
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, map(asdict, report.pruned))
            return
        for run in report.pruned:
            stream.write(f"{run.run_id}  {format_local_time(run.ended_at)}  {run.status}  {run.rule}\n")


def _report_damaged(report: PruneReport) -> int:
    for run_id in report.damaged:
        text = mark("Run {run_id} was changed after it was written and stays: tao verify {run_id}")
        print_stderr(translate(text, run_id=run_id))
    return exits.TAMPERED if report.damaged else exits.OK
