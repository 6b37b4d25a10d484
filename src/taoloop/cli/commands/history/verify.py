"""`tao verify`: is a run still what was written, or did somebody edit it?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.database import database, find_run, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.cli.ui.terminal_text import one_line
from taoloop.core.stored_events import ChainError, ChainReport, check
from taoloop.core.views.trace_export import from_lines
from taoloop.errors import ConfigError, JournalCorrupt, JournalError, RunNotFound
from taoloop.journals.base import Journal
from taoloop.journals.sqlite.journal import SqliteJournal

_SHOWN = 20

_HELP = """Check that a run is as it was written: each event carries the hash of the one before.

Found are events that were edited, moved, added or taken away, outputs that were kept apart and changed, and a list of
runs that says something else. Exit code 0: all as it was written; 12: not.

The hashes need no key, so who can write to the database can also compute all of them anew. Note the head that is
printed somewhere else, and later give it with --head: then that shows too.

\b
  tao verify RUN_ID
  tao verify RUN_ID --head 9f2c…      against a head that was noted
  tao verify --file run.jsonl         what `tao export` wrote, without the database
"""


@click.command("verify", help=_HELP)
@click.argument("run_id", required=False)
@options.db_option
@click.option("--file", "file", type=click.Path(dir_okay=False), metavar="FILE", help="Check an export (JSON lines).")
@click.option("--head", metavar="HASH", help="The head that was noted earlier; its beginning is enough (8 signs).")
@options.json_option("The verdict as one JSON object.")
def command(run_id: str | None, db: str | None, file: str | None, head: str | None, as_json: bool) -> int:
    """Check, print the verdict, and say it with the exit code."""
    if (run_id is None) == (file is None):
        raise click.UsageError("Name a run, or a file with --file.")
    noted = _noted(head)
    if file is not None:
        report, links, location = _of_file(Path(file))
    else:
        path = database(db, load_environment())
        report, links = query_database(path, lambda journal: _of_run(journal, path, cast("str", run_id)))
        location = str(path)
    if noted:
        report = _against(report, noted, links)
    with capture_stdout() as stream:
        stream.write(f"{_json(report)}\n" if as_json else _text(report))
    if report.first is not None:
        print_stderr(f"{location}: run {report.run_id} is not as it was written: {report.first.text}.")
        return exits.TAMPERED
    return exits.OK


async def _of_run(journal: Journal, path: Path, run_prefix: str) -> tuple[ChainReport, list[str]]:
    run_id = await stored_id(journal, path, run_prefix)
    links = [row.link.hex() for row in await cast("SqliteJournal", journal).linked(run_id)]
    return await journal.verify(run_id), links


async def stored_id(journal: Journal, path: Path, run_prefix: str) -> str:
    """The id of the run that is meant, also of one that the list has lost because somebody edited it.

    Raises:
        RunNotFound, ConfigError: there is none, or several begin so.
    """
    try:
        return await find_run(journal, path, run_prefix.strip())
    except RunNotFound:
        await journal.verify(run_prefix)
        return run_prefix


def _of_file(path: Path) -> tuple[ChainReport, list[str], str]:
    try:
        with path.open(encoding="utf-8") as stream:
            run_id, rows = from_lines(stream)
    except JournalCorrupt as error:
        raise JournalCorrupt(f"{path}: {error.message}", hint=error.hint) from error
    except UnicodeDecodeError as error:
        raise JournalCorrupt(f"{path}: this is not UTF-8 text (byte {error.start}).") from error
    except OSError as error:
        raise JournalError(f"{path}: it cannot be read ({error.strerror or error}).") from error
    links = [row.link.hex() for row in rows]
    flaws = tuple(check(run_id, rows))
    return ChainReport(run_id=run_id, events=len(rows), head=links[-1], flaws=flaws), links, str(path)


def _noted(head: str | None) -> str:
    noted = (head or "").strip().lower().removesuffix("…")
    if head is not None and (len(noted) < 8 or set(noted) - set("0123456789abcdef")):
        raise ConfigError(f"--head {head!r}: this is no hash.", hint="It has 64 signs of 0-9 and a-f; 8 are enough.")
    return noted


def _against(report: ChainReport, noted: str, links: list[str]) -> ChainReport:
    """A run may have grown since its head was noted; then that link still stands in it."""
    if any(link.startswith(noted) for link in links):
        return report
    flaw = ChainError(None, "head", f"its chain does not contain the head {noted}: it was written anew, or cut")
    return replace(report, flaws=(*report.flaws, flaw))


def _json(report: ChainReport) -> str:
    record = {
        "run_id": report.run_id,
        "whole": report.whole,
        "events": report.events,
        "head": report.head,
        "sealed_later": report.sealed_later,
        "first_bad_seq": report.first.seq if report.first is not None else None,
        "flaws": [flaw._asdict() for flaw in report.flaws],
    }
    return json.dumps(record, ensure_ascii=False)


def _text(report: ChainReport) -> str:
    verdict = "as it was written" if report.whole else "NOT as it was written"
    lines = [f"run     {report.run_id}", f"verdict {verdict}", f"events  {report.events}", f"head    {report.head}"]
    lines += [f"found   {one_line(flaw.text)}" for flaw in report.flaws[:_SHOWN]]
    if (more := len(report.flaws) - _SHOWN) > 0:
        lines.append(f"        … and {more} more (--json lists all)")
    if report.sealed_later:
        lines.append(
            f"note    the first {report.sealed_later} events were written by an older taoloop and got their hashes "
            "when the database was brought up to date; what was done to them before that cannot be told"
        )
    return "\n".join(lines) + "\n"
