"""`tao settle`: say of a call in doubt whether it happened."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.approval_answers import current_user
from taoloop.cli.database import database, load_run
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.event_view import resume_command
from taoloop.cli.ui.stdio import print_stderr
from taoloop.core.trace import Trace
from taoloop.core.views.steps import PROBE
from taoloop.errors import ConfigError
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.approvals.in_doubt import Settling, describe_doubt, settle_doubt

_HELP = """Say of the call CALL_ID of the run RUN_ID, which was started and has no outcome, what is to be done.

Look whether it happened before you answer: a call that is repeated although it happened has its effect twice.
Without an answer the command shows what is known.

\b
  tao settle RUN_ID call_3                    what is known
  tao settle RUN_ID call_3 --happened         it happened: the run goes on from there
  tao settle RUN_ID call_3 --repeat           it did not happen: run it again
  tao settle RUN_ID call_3 --leave            nobody knows: the model is told so
"""


@click.command("settle", help=_HELP)
@click.argument("run_id")
@click.argument("call_id")
@click.option("--happened", is_flag=True, help="It happened.")
@click.option("--repeat", is_flag=True, help="It did not happen: run it again.")
@click.option("--leave", is_flag=True, help="It stays open; the model is told so.")
@click.option("--by", metavar="NAME", help="Who says so. Default: the user of the system.")
@click.option("--note", metavar="TEXT", default="", help="What the model is told with it.")
@options.db_option
def command(run_id: str, call_id: str, by: str | None, note: str, db: str | None, **choices: bool) -> int:
    """Write the answer down; the run goes on when it is resumed."""
    how = _answer(choices)
    path = database(db, load_environment())
    trace = load_run(path, run_id)
    call = trace.pending.get(call_id)
    if call is None or not call.attempts:
        in_doubt = [call_view for call_view, view in trace.pending.items() if view.attempts]
        raise ConfigError(
            f"Run {trace.run_id}: {call_id} is not in doubt.", hint=f"Calls in doubt: {', '.join(in_doubt) or 'none'}."
        )
    if (earlier := call.settled) is not None and earlier.by != PROBE:
        raise ConfigError(
            f"Run {trace.run_id}: {call_id} has its answer, by {earlier.by}.",
            hint=f"Resume the run: {resume_command(trace, db)}",
        )
    if how is None:
        print_stderr(
            f"{call.requested.tool} ({call_id}): {describe_doubt(trace, call)} Say --happened, --repeat or --leave."
        )
        return exits.OF_STATUS["waiting"]
    settled = asyncio.run(_settle(path, trace, call_id, how, current_user(by), note))
    print_stderr(f"Noted. Resume the run: {resume_command(settled, db)}")
    return exits.OK


def _answer(choices: Mapping[str, bool]) -> Settling | None:
    outcomes: list[Settling] = [how for how in get_args(Settling) if choices[how]]
    if len(outcomes) > 1:
        raise click.UsageError(f"--{outcomes[0]} and --{outcomes[1]} are two answers; give one of them.")
    return outcomes[0] if outcomes else None


async def _settle(path: Path, trace: Trace, call_id: str, how: Settling, by: str, note: str) -> Trace:
    async with SqliteJournal(path) as journal:
        return await settle_doubt(journal, trace.run_id, call_id, how, by=by, note=note)
