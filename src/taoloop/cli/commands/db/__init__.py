"""`tao db`: look after the database of runs: its size, its form, and where it is."""

from __future__ import annotations

import click

from taoloop.cli.commands.db.maintenance import migrate_command, move_command, stats_command
from taoloop.cli.commands.db.retention import archive_command, prune_command, restore_command


@click.group("db", no_args_is_help=True)
def db_command() -> None:
    """Look after the database of runs: remove or archive old runs, and move it into PostgreSQL."""


for _command in (prune_command, archive_command, restore_command, stats_command, migrate_command, move_command):
    db_command.add_command(_command)
