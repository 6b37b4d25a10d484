"""`tao export`: a run as a file, for an archive or for people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.commands.history.verify import stored_id
from taoloop.cli.database import database, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.report.model import report_of
from taoloop.cli.ui.stdio import OutputError, capture_stdout, print_stderr
from taoloop.core.events import Event
from taoloop.core.stored_events import ChainedEvent, ChainReport, decode_fact
from taoloop.core.trace import Trace
from taoloop.core.views.trace_export import to_line
from taoloop.errors import IllegalEvent, JournalCorrupt
from taoloop.journals.base import Journal
from taoloop.journals.sqlite.journal import SqliteJournal

_HELP = """Write a run to a file or to standard output.

JSON lines hold every event whole with its hash: `tao verify --file` checks them without the database. The page and the
text are for reading, in the language of the run: task, steps, verdicts, approvals, observations, cost and hashes.
Exit code 12 if the run is not as it was written; it is written out all the same, and says so.

\b
  tao export RUN_ID -o run.jsonl
  tao export RUN_ID --format html -o run.html
"""


@click.command("export", help=_HELP)
@click.argument("run_id")
@options.db_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "html", "md"]),
    help="Default: by the ending of the file, else jsonl.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Default: standard output.")
def command(run_id: str, db: str | None, form: str | None, output: str | None) -> int:
    """Write it in the form that was asked for."""
    path = database(db, load_environment())
    report, rows = query_database(path, lambda journal: _stored(journal, path, run_id))
    text = _rendered(path, form or _form_of(output), report, rows)
    if output is not None:
        _write(Path(output), text)
    else:
        with capture_stdout() as stream:
            stream.write(text)
    if report.first is not None:
        print_stderr(f"{path}: run {report.run_id} is not as it was written: {report.first.text}.")
        return exits.TAMPERED
    return exits.OK


async def _stored(journal: Journal, path: Path, run_prefix: str) -> tuple[ChainReport, list[ChainedEvent]]:
    run_id = await stored_id(journal, path, run_prefix)
    return await journal.verify(run_id), await cast("SqliteJournal", journal).linked(run_id)


def _form_of(output: str | None) -> str:
    ending = Path(output or "").suffix.lower()
    return {".html": "html", ".htm": "html", ".md": "md"}.get(ending, "jsonl")


def _rendered(path: Path, form: str, report: ChainReport, rows: list[ChainedEvent]) -> str:
    if form == "jsonl":
        return "".join(f"{to_line(report.run_id, row)}\n" for row in rows)
    try:
        trace = Trace(report.run_id, (Event(row.seq, row.at, decode_fact(row.kind, row.body)) for row in rows))
        run_report = report_of(trace, report, [row.link.hex() for row in rows])
    except (JournalCorrupt, IllegalEvent, IndexError) as error:
        why = report.first.text if report.first is not None else " ".join(str(error).split())
        raise JournalCorrupt(
            f"{path}: run {report.run_id} cannot be read as a run: {why}.",
            hint="`--format jsonl` writes what is there.",
        ) from error
    if form == "html":
        from taoloop.cli.report.html import page  # noqa: PLC0415  # one of them is needed

        return page(run_report)
    from taoloop.cli.report.markdown import markdown  # noqa: PLC0415  # likewise

    return markdown(run_report)


def _write(path: Path, text: str) -> None:
    """Write the file whole or not at all, readable by its owner only: a trace is private."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as stream:
            stream.write(text)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OutputError(f"{path}: it cannot be written ({error.strerror or error}).") from error
