"""`tao deny`: a call that waits may not run."""

from __future__ import annotations

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.approval_answers import current_user, print_answer, record_answer
from taoloop.cli.database import database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.stdio import capture_stdout
from taoloop.runtime.approvals.inbox import answer_approval
from taoloop.runtime.approvals.request import ApprovalAnswer

_HELP = """Refuse the call CALL_ID of the run RUN_ID. The model sees that, and the text of --note; `tao resume` goes on.

\b
  tao deny 20261104-09 call_2 --note "ask ann for the account first"
  tao deny RUN_ID CALL_ID --all --note "no payments today"
"""


@click.command("deny", help=_HELP)
@click.argument("run_id")
@click.argument("call_id")
@options.db_option
@click.option("--by", metavar="NAME", help="Who says so. Default: the user of the system.")
@click.option("--note", metavar="TEXT", default="", help="Why not; the model reads it.")
@click.option("--all", "batch", is_flag=True, help="Also the other calls of this question: asked by the same rule.")
@options.json_option("The new events as JSON, one per line.")
def command(run_id: str, call_id: str, db: str | None, by: str | None, note: str, batch: bool, as_json: bool) -> int:
    """Write the refusal down."""
    refusal = ApprovalAnswer(approved=False, by=current_user(by), note=note, batch=batch)
    path = database(db, load_environment())
    with capture_stdout() as stream:
        done, outer = record_answer(path, run_id, lambda journal, run: answer_approval(journal, run, call_id, refusal))
        print_answer(stream, done, outer, db, as_json=as_json)
    return exits.OK
