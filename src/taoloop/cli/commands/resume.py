"""`tao resume`: go on with a run. It is `tao run --resume`, with the options that a run can take when it goes on."""

from __future__ import annotations

from typing import Any

import click

from taoloop.cli.commands import run

_HELP = """Go on with the run RUN_ID: one that waits, was stopped, reached a limit, or lost its process.

A run that waits goes on with the answers that it has (`tao approve`, `tao deny`); what has none is asked again at a
terminal, and keeps waiting (exit code 8) where there is none. The run keeps its description; the same as
`tao run --resume RUN_ID`. One that another process is at work on is left alone (exit code 14) without --take-over.

\b
  tao resume 20261104-09
  tao resume RUN_ID --max-steps 12
  tao resume RUN_ID --approve write          allow its calls up to this tier, without asking
  tao resume RUN_ID --take-over              although another process is at work on it
"""

_LEFT_OUT = {"words", "resume", "recover", "after", *(option.replace("-", "_") for option in run._FIXED)}
"""What describes a new run, and so has no place here."""


def _resume(run_id: str, **arguments: Any) -> int:
    """Go on with the run."""
    go_on = run.command.callback
    assert go_on is not None  # noqa: S101  # a click command of ours has one
    absent = dict.fromkeys(_LEFT_OUT) | {"words": (), "no_closing_turn": False, "recover": False}
    code: int = go_on(**absent | arguments | {"resume": run_id})
    return code


command = click.Command(
    "resume",
    help=_HELP,
    callback=_resume,
    params=[
        click.Argument(["run_id"]),
        *(option for option in run.command.params if option.name not in _LEFT_OUT),
    ],
)
