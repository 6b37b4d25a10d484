"""`tao verify` and `tao export`: is a run still what was written, and the run as a file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import click
from rich.cells import cell_len

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import database, find_run, load_environment, query_database
from taoloop.cli.translation import stable_texts, translate
from taoloop.cli.ui.stdio import OutputError, capture_stdout, one_line, print_stderr, write_json_lines
from taoloop.core.stored_events import ChainError, ChainReport, LogReport, check
from taoloop.core.views.trace_export import from_lines
from taoloop.errors import ConfigError, JournalCorrupt, JournalError, RunNotFound
from taoloop.journals.addresses import DatabaseAddress
from taoloop.journals.base import Journal
from taoloop.runtime.after.report import FORMATS, ChainedRun, export, stored_run
from taoloop.translation import mark

_SHOWN = 20


@click.command("verify")
@click.argument("run_id", required=False, shell_complete=complete_run_ids)
@options.db_option
@click.option("--file", "file", type=click.Path(dir_okay=False), metavar="FILE", help="Check an export (JSON lines).")
@click.option("--head", metavar="HASH", help="A head that was noted earlier; its first 8 characters are enough.")
@click.option("--all", "every", is_flag=True, help="Check every run of the database, and that no run was removed.")
@options.json_option("The verdict as one JSON object.")
def verify_command(
    run_id: str | None, db: str | None, file: str | None, head: str | None, every: bool, as_json: bool
) -> int:
    """Check that a run was not changed after it was written: each event carries the hash of the one before.

    The check finds events that were edited, moved, added or removed, stored outputs that were changed, and a list
    of runs that does not match. Exit code 0: the run is as it was written; 12: it is not.

    The hashes need no key: whoever can write to the database can compute all of them again. To detect that too,
    keep the printed head somewhere else and pass it later with --head.

      tao verify RUN_ID
      tao verify RUN_ID --head 9f2c…      against a head that was noted
      tao verify --file run.jsonl         an export of `tao export`, without the database
      tao verify --all                    every run, and the log of the runs that began
    """
    if (run_id is not None) + (file is not None) + every != 1:
        raise click.UsageError(translate("Name a run, a file with --file, or --all."))
    noted_head = _noted(head)
    if every:
        return _verify_all(database(db, load_environment()), noted_head, as_json)
    with stable_texts(as_json):
        if file is not None:
            location: DatabaseAddress = Path(file)
            report, links = _of_file(Path(file))
        else:
            path = database(db, load_environment())
            report, rows = query_database(path, lambda journal: _stored(journal, path, run_id or ""))
            location, links = path, [row.link.hex() for row in rows]
        if noted_head:
            report = _against(report, noted_head, links)
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, [_record(report)])
        else:
            stream.write(_text(report))
    return _exit_code(location, report)


def _exit_code(location: DatabaseAddress, report: ChainReport) -> int:
    """12 for a run that is not as it was written, which is reported."""
    if report.first is None:
        return exits.OK
    text = mark("{path}: run {run_id} is not as it was written: {flaw}.")
    print_stderr(translate(text, path=location, run_id=report.run_id, flaw=report.first.text))
    return exits.TAMPERED


class _DatabaseReport(NamedTuple):
    """The verdict on a whole database: its log of runs, and the runs that are not as they were written."""

    log: LogReport
    bad: list[ChainReport]


def _verify_all(path: DatabaseAddress, noted_head: str, as_json: bool) -> int:
    with stable_texts(as_json):
        log, bad = query_database(path, _stored_runs)
        if noted_head and not any(link.startswith(noted_head) for link in log.links):
            log = replace(log, flaws=(*log.flaws, _head_flaw(noted_head)))
        report = _DatabaseReport(log, bad)
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, [_database_record(report)])
        else:
            stream.write(_database_text(report))
    if not log.flaws and not bad:
        return exits.OK
    if log.flaws:
        text = mark("{path}: the database is not as it was written: {flaw}.")
        print_stderr(translate(text, path=path, flaw=log.flaws[0].text))
    for run in bad[:_SHOWN]:
        _exit_code(path, run)
    return exits.TAMPERED


class _HasRunLog(Protocol):
    async def verify_log(self) -> LogReport: ...


async def _stored_runs(journal: Journal) -> _DatabaseReport:
    """One run in memory at a time."""
    log = await cast("_HasRunLog", journal).verify_log()
    bad: list[ChainReport] = []
    for run_id in log.run_ids:
        try:
            report = await journal.verify(run_id)
        except RunNotFound as error:  # removed just now, or its id is no text any more
            flaw = ChainError(None, "run_missing", error.message)
            report = ChainReport(run_id=run_id, events=0, head="", flaws=(flaw,))
        if not report.whole:
            bad.append(report)
    return _DatabaseReport(log, bad)


def _database_record(report: _DatabaseReport) -> dict[str, Any]:
    log = report.log
    return {
        "whole": not log.flaws and not report.bad,
        "runs": len(log.run_ids),
        "logged": len(log.links),
        "pruned": log.pruned,
        "head": log.head,
        "sealed_later": log.sealed_later,
        "flaws": [flaw._asdict() for flaw in log.flaws],
        "bad_runs": [_record(run) for run in report.bad],
    }


def _database_text(report: _DatabaseReport) -> str:
    log = report.log
    is_whole = not log.flaws and not report.bad
    flaws = [flaw.text for flaw in log.flaws]
    flaws += [f"{run.run_id}: {flaw.text}" for run in report.bad for flaw in run.flaws]
    rows = [
        (translate("runs"), str(len(log.run_ids))),
        (translate("verdict"), translate("as it was written") if is_whole else translate("NOT as it was written")),
        (translate("head"), log.head),
        *_flaw_rows(flaws),
    ]
    if log.pruned:
        rows.insert(1, (translate("pruned"), str(log.pruned)))
    if log.sealed_later:
        text = mark("{n} runs were logged when the database was upgraded; runs removed before that cannot be detected")
        rows.append((translate("note"), translate(text, n=log.sealed_later)))
    return _table(rows)


def _of_file(path: Path) -> tuple[ChainReport, list[str]]:
    try:
        with path.open(encoding="utf-8") as stream:
            run_id, rows = from_lines(stream)
    except JournalCorrupt as error:
        raise JournalCorrupt(f"{path}: {error.message}", hint=error.hint) from error
    except UnicodeDecodeError as error:
        text = translate("{path}: this is not UTF-8 text (byte {byte}).", path=path, byte=error.start)
        raise JournalCorrupt(text) from error
    except OSError as error:
        reason = error.strerror or error
        raise JournalError(translate("{path}: it cannot be read ({reason}).", path=path, reason=reason)) from error
    links = [row.link.hex() for row in rows]
    flaws = tuple(check(run_id, rows))
    return ChainReport(run_id=run_id, events=len(rows), head=links[-1], flaws=flaws), links


def _noted(head: str | None) -> str:
    noted_head = (head or "").strip().lower().removesuffix("…")
    if head is not None and (len(noted_head) < 8 or set(noted_head) - set("0123456789abcdef")):
        hint = translate("A hash has 64 characters of 0-9 and a-f; 8 are enough.")
        raise ConfigError(translate("--head {head!r}: this is not a hash.", head=head), hint=hint)
    return noted_head


def _against(report: ChainReport, noted_head: str, links: list[str]) -> ChainReport:
    """A run may have grown since its head was noted; then the chain still contains it."""
    if any(link.startswith(noted_head) for link in links):
        return report
    return replace(report, flaws=(*report.flaws, _head_flaw(noted_head)))


def _head_flaw(noted_head: str) -> ChainError:
    text = translate("its chain does not contain the head {head}: it was written anew, or cut", head=noted_head)
    return ChainError(None, "head", text)


def _record(report: ChainReport) -> dict[str, Any]:
    return {
        "run_id": report.run_id,
        "whole": report.whole,
        "events": report.events,
        "head": report.head,
        "sealed_later": report.sealed_later,
        "first_bad_seq": report.first.seq if report.first is not None else None,
        "flaws": [flaw._asdict() for flaw in report.flaws],
    }


def _text(report: ChainReport) -> str:
    rows = [
        (translate("run"), report.run_id),
        (translate("verdict"), translate("as it was written") if report.whole else translate("NOT as it was written")),
        (translate("events"), str(report.events)),
        (translate("head"), report.head),
        *_flaw_rows([flaw.text for flaw in report.flaws]),
    ]
    if report.sealed_later:
        note = translate(
            "the first {n} events were written by an older taoloop and got their hashes when the database was upgraded;"
            " earlier changes to them cannot be detected",
            n=report.sealed_later,
        )
        rows.append((translate("note"), note))
    return _table(rows)


def _flaw_rows(flaws: list[str]) -> list[tuple[str, str]]:
    rows = [(translate("found"), one_line(text)) for text in flaws[:_SHOWN]]
    if (more := len(flaws) - _SHOWN) > 0:
        rows.append(("", translate("… and {n} more (--json lists all)", n=more)))
    return rows


def _table(rows: list[tuple[str, str]]) -> str:
    width = max(cell_len(name) for name, _ in rows)
    return "".join(f"{name}{' ' * (width - cell_len(name))} {text}\n" for name, text in rows)


@click.command("export")
@click.argument("run_id", shell_complete=complete_run_ids)
@options.db_option
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    help="The format; default: by the file extension, else jsonl.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The file to write; default: standard output.",
)
def export_command(run_id: str, db: str | None, form: str | None, output: str | None) -> int:
    """Write a run to a file or to standard output.

    JSON lines contain every event with its hash: `tao verify --file` checks them without the database. The page and
    the text are for reading, in the language of the run: task, steps, verdicts, approvals, observations, cost and
    hashes. Exit code 12 if the run is not as it was written; it is exported anyway, and says so.

      tao export RUN_ID -o run.jsonl
      tao export RUN_ID --format html -o run.html
    """
    path = database(db, load_environment())
    run = query_database(path, lambda journal: _stored(journal, path, run_id))
    text = _rendered(path, form or _form_of(output), run)
    if output is not None:
        _write_file(Path(output), text)
    else:
        with capture_stdout() as stream:
            stream.write(text)
    return _exit_code(path, run.chain)


async def _stored(journal: Journal, path: DatabaseAddress, run_prefix: str) -> ChainedRun:
    """The run that is meant, also one that the list has lost because somebody edited it."""
    try:
        run_id = await find_run(journal, path, run_prefix.strip())
    except RunNotFound:
        run_id = run_prefix
    return await stored_run(journal, run_id)


def _form_of(output: str | None) -> str:
    ending = Path(output or "").suffix.lower()
    return {".html": "html", ".htm": "html", ".md": "md"}.get(ending, "jsonl")


def _rendered(path: DatabaseAddress, form: str, run: ChainedRun) -> str:
    try:
        return export(run, form)
    except JournalCorrupt as error:
        raise JournalCorrupt(f"{path}: {error.message}", hint=error.hint) from error


def _write_file(path: Path, text: str) -> None:
    """Write the file whole or not at all, readable by its owner only: a trace is private."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = error.strerror or error
        raise OutputError(translate("{path}: it cannot be written ({reason}).", path=path, reason=reason)) from error
