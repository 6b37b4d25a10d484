"""The group of commands, and how their errors reach a person. Commands are loaded when they are called."""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

import click

import taoloop
from taoloop.cli.ui.stdio import print_stderr, reopen_closed_streams, silence_stdout
from taoloop.errors import TaoError

DEBUG = "TAOLOOP_DEBUG"

_COMMANDS = {
    "run": "Run a task: think, act, observe, answer.",
    "resume": "Go on with a run that waits, was stopped, or reached a limit.",
    "approvals": "List the calls that wait for a person.",
    "approve": "Allow a call that waits.",
    "deny": "Refuse a call that waits; the model sees why.",
    "settle": "Say of a call in doubt whether it happened.",
    "recover": "Go on with every run that lost its process.",
    "note": "Tell a run that waits or was stopped something.",
    "runs": "List the runs in the database.",
    "show": "Show what happened in a run.",
    "replay": "Let a run decide again, without model, tools or network.",
    "fork": "Make a new run from a step of another one, with something edited.",
    "diff": "Compare two runs, up to where they first differ.",
    "undo": "Take back what a run did.",
    "costs": "Add up what models cost, by API key, agent and day.",
    "verify": "Check that a run is still what was written.",
    "export": "Write a run to a file: JSON lines, or a page to read.",
    "tools": "Show the cards of tools, and lint them.",
    "call": "Call one tool by hand.",
    "serve": "Serve agents to OpenAI clients.",
    "mcp": "Serve tools and agents to MCP hosts.",
    "models": "Which models are configured, and what is missing.",
    "doctor": "Check that everything taoloop needs is in order.",
}

_PACKAGES = {  # where the modules of these commands are; the others are in taoloop.cli.commands
    "taoloop.cli.commands.approval": {"approvals", "approve", "deny", "settle"},
    "taoloop.cli.commands.history": {"runs", "show", "replay", "fork", "diff", "undo", "costs", "verify", "export"},
}

_EXAMPLES = """\b
Begin here (no key, no network):
  tao run "What is 3.5 squared plus the hour in Asia/Shanghai?"
  tao run "北京现在几点?"
\b
With a model of a provider (`tao models` tells which are set up):
  tao run "Summarise notes.md" --workspace . --model deepseek:deepseek-chat
  tao run "..." --agent agent.yaml --json | jq .kind
\b
Every run is kept. Look at it, go on with it, let it decide again:
  tao runs
  tao show RUN_ID
  tao run --resume RUN_ID --max-steps 12
  tao replay RUN_ID
A run may be named by the beginning of its id, as long as no other begins so.
"""


class Commands(click.Group):
    """Loads the module of a command when it is called, so that `tao --help` loads none."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """The names in the order of the help page."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name, or None."""
        if cmd_name not in _COMMANDS:
            return None
        package = next((package for package, names in _PACKAGES.items() if cmd_name in names), "taoloop.cli.commands")
        command: click.Command = importlib.import_module(f"{package}.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that was called; where there is none, what may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], _COMMANDS, n=1)
            if " " in args[0] or not args[0].isascii():
                way_out = f"A task is run with: tao run {args[0]!r}."
            elif near:
                way_out = f"Did you mean {near[0]!r}?"
            else:
                raise
            raise click.UsageError(f"There is no command {args[0]!r}. {way_out}", ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; where nobody reads its output any more it ends quietly."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            silence_stdout()
            raise click.exceptions.Exit(141) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of the help page, and the exit codes after it."""
        from taoloop.cli.exit_codes import TABLE  # noqa: PLC0415  # loads the core; only the help page needs it here

        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in TABLE.items()])


@click.group(
    cls=Commands,
    help=f"Run ReAct agents whose every action can be checked, recorded, stopped and replaced.\n\n{_EXAMPLES}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(taoloop.__version__, prog_name="tao", message="%(prog)s %(version)s")
def cli() -> None:
    """Gather the commands; their help is above."""


def execute(args: list[str]) -> int:
    """Run one command; every error becomes one line on standard error. Returns the exit code."""
    reopen_closed_streams()
    try:
        result: Any = cli.main(args=args, prog_name="tao", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        _usage(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print_stderr("stopped.")
        return 130
    except BrokenPipeError:  # at the last flush
        silence_stdout()
        return 141
    except TaoError as error:
        return _report_error(error)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _unexpected(error)
        silence_stdout()
        print_stderr(f"The output cannot be written: {error.strerror}.")
        return 1
    except Exception as error:  # noqa: BLE001  # the last place where an error can be told in one line
        return _unexpected(error)
    return result if isinstance(result, int) else 0


def _unexpected(error: Exception) -> int:
    if not _debugging():
        print_stderr(f"unexpected {type(error).__name__}: {error} (set {DEBUG}=1 to see where, and please report it)")
    return 1


def _report_error(error: TaoError) -> int:
    from taoloop.cli.exit_codes import exit_code_for  # noqa: PLC0415  # loads the core; only errors need it here

    _debugging()
    print_stderr(" ".join(f"{error.message} {error.hint}".split()))
    return exit_code_for(error)


def _usage(error: click.ClickException) -> None:
    context = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        with suppress(OSError):
            click.echo(error.format_message(), err=True)
        return
    help_line = f" See `{context.command_path} --help`." if context is not None else ""
    message = " ".join(error.format_message().split())
    print_stderr(f"{message}{help_line}")


def _debugging() -> bool:
    """Show the traceback of the error at hand if the person asked for it."""
    if os.environ.get(DEBUG, "").strip() in ("", "0"):
        return False
    traceback.print_exc()
    return True
