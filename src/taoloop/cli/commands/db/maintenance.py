"""`tao db stats`, `migrate` and `move`: what is in a database, its form, and another place for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.database import database, is_there, load_environment, query_database
from taoloop.cli.translation import translate
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, write_json_lines
from taoloop.errors import ConfigError, JournalError
from taoloop.journals.addresses import DatabaseAddress, database_address
from taoloop.journals.base import Journal
from taoloop.journals.postgres.address import PostgresAddress
from taoloop.journals.queries import RunQuery, queries_of
from taoloop.translation import mark


@click.command("stats")
@options.db_option
@options.json_option("One JSON object.")
def stats_command(db: str | None, as_json: bool) -> int:
    """Show how many runs there are, by status, and how much space the database takes.

    In PostgreSQL the space of each table, with its indexes; else of the SQLite file and of those beside it.

      tao db stats
      tao db stats --db postgresql://tao@db/runs --json
    """
    path = database(db, load_environment())

    async def look(journal: Journal) -> dict[str, int]:
        return await queries_of(journal).count(RunQuery())

    counts = query_database(path, look)
    sizes = asyncio.run(_server_sizes(path)) if isinstance(path, PostgresAddress) else _file_sizes(path)
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, [{"database": str(path), "runs": counts, "bytes": sizes}])
        else:
            for status, count in sorted(counts.items()):
                stream.write(f"{status:20} {count:12,}\n")
            for name, size in sizes.items():
                stream.write(f"{name:20} {size / 2**20:12,.1f} MiB\n")
    return exits.OK


@click.command("migrate")
@options.db_option
def migrate_command(db: str | None) -> int:
    """Make the tables of the journal, or bring those of an older version up to date.

    In PostgreSQL this needs the right to create in the database, once; afterwards a role that may only read and write
    rows is enough. It also makes the partitions of the next twelve months. An SQLite file is brought up to date by
    whatever writes to it, and by this command.

      tao db migrate --db postgresql://owner@db/runs
    """
    path = database(db, load_environment())
    if isinstance(path, PostgresAddress):
        from taoloop.journals.postgres.migration import migrate  # noqa: PLC0415  # loads the driver

        reached = asyncio.run(migrate(path))
    else:
        from taoloop.journals.sqlite.schema import MIGRATIONS  # noqa: PLC0415  # only here

        _require_file(path)
        query_database(path, lambda journal: journal.runs(limit=1), read_only=False)
        reached = len(MIGRATIONS)
    print_stderr(translate("{path}: the journal has the current form {version}.", path=path, version=reached))
    return exits.OK


@click.command("move")
@click.option("--from", "source", required=True, metavar="PATH", help="The SQLite file.")
@click.option("--to", "target", required=True, metavar="URL", help="The PostgreSQL database: postgresql://….")
def move_command(source: str, target: str) -> int:
    """Copy an SQLite database into PostgreSQL, and check it: events, head and artifacts of every run, and the log.

    Nothing may work in the file meanwhile; it is only read, and stays. If it is interrupted, the same command goes on
    where it was.

      tao db move --from runs.db --to postgresql://tao@db/runs
    """
    path, address = database(source, {}), database_address(target)
    if not isinstance(path, Path) or not isinstance(address, PostgresAddress):
        hint = translate("Write `tao db move --from runs.db --to postgresql://USER@HOST/DATABASE`.")
        raise ConfigError(translate("A database is moved from an SQLite file into PostgreSQL."), hint=hint)
    _require_file(path)
    report = asyncio.run(_move(path, address))
    text = mark(
        "{path}: {n} run with {events} events is in {target}, as it was; {copied} copied now."
        "|{path}: {n} runs with {events} events are in {target}, as they were; {copied} copied now."
    )
    values = {"path": path, "target": address, "events": report.events, "copied": report.copied}
    print_stderr(translate(text, n=report.runs, **values))
    for run_id in report.damaged:
        text = mark("Run {run_id} was changed after it was written, before the move: tao verify {run_id}")
        print_stderr(translate(text, run_id=run_id))
    return exits.TAMPERED if report.damaged else exits.OK


async def _move(path: Path, address: PostgresAddress) -> Any:
    from taoloop.journals.moving import move  # noqa: PLC0415  # loads the driver
    from taoloop.journals.postgres.journal import PostgresJournal  # noqa: PLC0415  # the same
    from taoloop.journals.sqlite.journal import SqliteJournal  # noqa: PLC0415  # the same

    def tell(count: int, of: int) -> None:
        print_stderr(translate("{n} of {of} runs", n=count, of=of))

    async with SqliteJournal(path) as source, PostgresJournal(address) as target:
        return await move(source, target, tell)


def _require_file(path: DatabaseAddress) -> None:
    if not is_there(path):
        raise JournalError(translate("{path}: there is no journal.", path=path))


def _file_sizes(path: DatabaseAddress) -> dict[str, int]:
    """The bytes of an SQLite file, and of what lies beside it."""
    files = [Path(str(path)), *(Path(f"{path}{suffix}") for suffix in ("-wal", "-search", "-notices"))]
    return {file.name: file.stat().st_size for file in files if file.exists()}


async def _server_sizes(address: PostgresAddress) -> dict[str, int]:
    from taoloop.journals.postgres.migration import table_sizes  # noqa: PLC0415  # loads the driver

    return await table_sizes(address)
