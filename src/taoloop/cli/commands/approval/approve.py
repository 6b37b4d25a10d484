"""`tao approve`: a call that waits may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.approval_answers import current_user, print_answer, record_answer
from taoloop.cli.database import database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.stdio import capture_stdout
from taoloop.core.cards.decimals import decimal_literals
from taoloop.core.events import ApprovalScope
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import ConfigError
from taoloop.runtime.approvals.inbox import answer_approval
from taoloop.runtime.approvals.request import ApprovalAnswer

_HELP = """Allow the call CALL_ID of the run RUN_ID, once and exactly as it is; `tao resume` then goes on with the run.

`tao approvals` lists what waits. Who allowed it, when and why stands in the trace. A call that has its answer, or that
waits for none, is refused (exit code 2), and so is one whose time is over.

\b
  tao approve 20261104-09 call_2
  tao approve RUN_ID CALL_ID --args '{"to": "ann@example.com", "amount": 5}'
  tao approve RUN_ID CALL_ID --always --note "small payments are fine"
"""


@click.command("approve", help=_HELP)
@click.argument("run_id")
@click.argument("call_id")
@options.db_option
@click.option("--by", metavar="NAME", help="Who says so. Default: the user of the system.")
@click.option("--note", metavar="TEXT", default="", help="Why; it stands in the trace.")
@click.option("--args", "edited", metavar="JSON", help="Arguments in place of the model's; they must fit the tool.")
@click.option("--always", is_flag=True, help="Also allow this tool whenever the same rule would ask in this run.")
@click.option("--values", is_flag=True, help="Also trust the values of this call in this run, as if the task had them.")
@click.option("--digest", metavar="HEX", help="Only if it is still this call: its digest in `tao approvals --json`.")
@options.json_option("The new events as JSON, one per line.")
def command(
    run_id: str,
    call_id: str,
    db: str | None,
    by: str | None,
    note: str,
    edited: str | None,
    always: bool,
    values: bool,
    digest: str | None,
    as_json: bool,
) -> int:
    """Write the approval down."""
    if always and values:
        raise click.UsageError("--always and --values are two answers; give one of them.")
    scope: ApprovalScope = "rule" if always else "values" if values else "call"
    args = _args(edited)
    digits = None if args is None else decimal_literals(args, (edited or "",))
    approval = ApprovalAnswer(approved=True, by=current_user(by), note=note, args=args, scope=scope, digits=digits)
    path = database(db, load_environment())
    with capture_stdout() as stream:
        done, outer = record_answer(
            path, run_id, lambda journal, run: answer_approval(journal, run, call_id, approval, digest=digest)
        )
        print_answer(stream, done, outer, db, as_json=as_json)
    return exits.OK


def _args(text: str | None) -> Mapping[str, Any] | None:
    if text is None:
        return None
    try:
        parsed = loads(text)
    except NotJsonError as error:
        raise ConfigError(f"--args is no JSON: {error}.", hint="""Write --args '{"name": "value"}'.""") from error
    if not isinstance(parsed, dict):
        raise ConfigError(f"--args is {text[:80]!r}.", hint="Give a JSON object: all arguments of the call.")
    return parsed
