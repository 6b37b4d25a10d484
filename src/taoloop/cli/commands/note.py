"""`tao note`: a remark of a person, which the model reads in its next turn."""

from __future__ import annotations

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.approval_answers import current_user, print_answer, record_answer
from taoloop.cli.database import database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.stdio import capture_stdout, terminal_language
from taoloop.cli.ui.texts import ui_text
from taoloop.runtime.approvals.inbox import add_note

_HELP = """Tell the run RUN_ID something. The model reads TEXT in its next turn; `tao resume` goes on with the run.

The run must wait, be stopped, or have reached a limit. What you write counts as part of the task: the model may use
its values in calls. To change what the model decided, see `tao approve --args` (other arguments), `tao deny` (not this
call) and `tao fork` (another decision or thought).

\b
  tao note 20261104-09 "The office is in Hamburg, not in Berlin."
"""


@click.command("note", help=_HELP)
@click.argument("run_id")
@click.argument("text")
@options.db_option
@click.option("--by", metavar="NAME", help="Who says so. Default: the user of the system.")
@options.json_option("The new events as JSON, one per line.")
def command(run_id: str, text: str, db: str | None, by: str | None, as_json: bool) -> int:
    """Write the remark down."""
    path = database(db, load_environment())
    with capture_stdout() as stream:
        done, outer = record_answer(
            path, run_id, lambda journal, run: add_note(journal, run, text, by=current_user(by))
        )
        if not as_json:
            language = terminal_language(done.trace.agent.language, stream)
            stream.write(ui_text(language, "noted_now", run_id=done.trace.run_id) + "\n")
        print_answer(stream, done, outer, db, as_json=as_json)
    return exits.OK
