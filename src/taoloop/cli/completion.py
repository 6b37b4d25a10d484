"""What the shell offers while a command is typed: the ids of the runs in the database, the newest first.

click writes the script for the shell (`_TAO_COMPLETE=bash_source tao`), which asks `tao` at each tab.
"""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from taoloop.cli.database import LAST, database, load_environment, query_database
from taoloop.core.decision import excerpt
from taoloop.errors import TaoError
from taoloop.journals.queries import RunQuery, queries_of

MOST = 50
"""How many runs are offered: more would not be read."""


def complete_run_ids(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest runs whose ids begin so, with their status and task; runs inside others only behind a dot.

    Nothing is offered where there is no database, or it cannot be read: a shell has nowhere to show why.
    """
    query = RunQuery(prefix=incomplete, only_outermost="." not in incomplete)
    try:
        path = database(ctx.params.get("db"), load_environment())
        page = query_database(path, lambda journal: queries_of(journal).find(query, limit=MOST))
    except (TaoError, OSError):
        return []
    tasks = [excerpt(" ".join(row.task.split())) for row in page.rows]  # a line break would end the item
    rows = [
        CompletionItem(row.run_id, help=f"{row.status}: {task}") for row, task in zip(page.rows, tasks, strict=True)
    ]
    is_last = bool(rows) and LAST.startswith(incomplete)
    return [CompletionItem(LAST), *rows] if is_last else rows
