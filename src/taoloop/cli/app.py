"""The group of commands, its help pages, and how errors reach a person. Commands are loaded when they are called.

Help pages are in the language of the command line, with columns that wide characters do not break.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
import traceback
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from gettext import gettext, ngettext
from typing import Any

import click

import taoloop
from taoloop.cli import exit_codes as exits
from taoloop.cli.translation import interface_language, join_on_one_line, translate, translate_warnings
from taoloop.cli.ui.stdio import print_stderr, reopen_closed_streams, silence_stdout
from taoloop.errors import TaoError
from taoloop.translation import error_texts, mark, set_interface_language

_PIECE = re.compile(r"[（“《【]*(?:[!-~]+|\S)[…，。；：、！？）”》】]*\s*")
"""What stays on one line: an ASCII word or one other character, with the punctuation that belongs to it."""

COMMENT = re.compile(r"(\s*\S.*?\s{3,})(\S.*)")
"""An example, and what is said of it after at least three spaces."""


class HelpFormatter(click.HelpFormatter):
    """Writes help in the language of the command line. A paragraph with an indented line keeps its lines."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The line of usage; click's words in it are translated, the names of arguments stay."""
        for word in ("COMMAND [ARGS]...", "[OPTIONS]"):
            args = args.replace(word, translate(word))
        super().write_usage(prog, args, translate("Usage: ") if prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        """The title of a section."""
        self.write(f"{'':>{self.current_indent}}{translate(heading)}{translate(':')}\n")

    def write_text(self, text: str) -> None:
        """Paragraphs, wrapped; examples as they are."""
        indent = " " * self.current_indent
        width = self.width - self.current_indent
        paragraphs = [
            list(map(_translated_example, paragraph.splitlines()))
            if has_examples(paragraph)
            else _wrap(translate(_joined(paragraph)), width)
            for paragraph in text.split("\n\n")
        ]
        self.write("\n\n".join("\n".join(f"{indent}{line}" for line in lines) for lines in paragraphs) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Terms in one column, what they mean in another. click puts defaults after the text, in brackets."""
        rows = list(rows)
        column = min(max(len(term) for term, _ in rows), col_max) + col_spacing
        margin = " " * self.current_indent
        for term, meaning in rows:
            text, bracket, rest = meaning.partition("  [")
            shown = text if text in exits.OF_STATUS else translate(text)  # a status is a code
            lines = _wrap(shown + bracket + rest, max(self.width - column - 2, 10)) or [""]
            first, *others = lines if len(term) <= column - col_spacing else ["", *lines]
            self.write(f"{margin}{term:<{column}}{first}".rstrip() + "\n")
            self.write("".join(f"{margin}{'':<{column}}{line}\n" for line in others))


def has_examples(paragraph: str) -> bool:
    """Whether a paragraph of a help text consists of examples, whose lines stay as they are."""
    return any(line.startswith("  ") for line in paragraph.splitlines())


def translate_click() -> None:
    """Let click's own words ("Usage:", "No such option") pass through `translate`, too.

    click asks gettext, which looks for compiled catalogues of the locale alone and does not know `TAOLOOP_LANG`.
    """
    names = [name for name in sys.modules if name.startswith("click.") and name != "click.decorators"]
    for module in map(sys.modules.__getitem__, names):  # decorators: commands keep its texts, so they stay English
        if vars(module).get("_") is gettext:
            vars(module)["_"] = translate
        if vars(module).get("ngettext") is ngettext:
            vars(module)["ngettext"] = lambda one, many, n: translate(one if n == 1 else many)


def _joined(paragraph: str) -> str:
    return " ".join(paragraph.split())


def _translated_example(line: str) -> str:
    example = line.strip()
    if (translation := translate(example)) != example:  # also an example that has a task in the other language
        return line.replace(example, translation)
    match = COMMENT.fullmatch(line)
    return match[1] + translate(match[2]) if match else line


def _cells(text: str) -> int:
    """The columns that a text takes. As `rich.cells.cell_len`, without loading rich for a help page."""
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def _wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for piece in _PIECE.findall(text):
        if lines[-1] and _cells(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines if line.strip()]


DEBUG = "TAOLOOP_DEBUG"

_COMMANDS = {
    "run": ("run", "Run a task: think, act, observe, answer."),
    "chat": ("chat", "Talk with an agent at the terminal."),
    "resume": ("run", "Resume a run that is waiting, was stopped, or reached a limit."),
    "approvals": ("approvals", "List the calls that are waiting for a person."),
    "approve": ("approvals", "Approve a waiting call."),
    "answer": ("approvals", "Answer a question of the model."),
    "deny": ("approvals", "Deny a waiting call; the model sees why."),
    "settle": ("approvals", "Record whether a call with an unknown outcome took effect."),
    "recover": ("run", "Resume every run whose process died."),
    "abandon": ("approvals", "End a run for good; it cannot be resumed."),
    "note": ("approvals", "Add a note to a waiting or stopped run; the model reads it next."),
    "mark": ("approvals", "Mark the outcome of a run as right or wrong."),
    "runs": ("runs", "List the runs in the database."),
    "show": ("show", "Show what happened in a run."),
    "replay": ("show", "Repeat the decisions of a run, without model, tools or network."),
    "fork": ("run", "Start a new run from a step of another one, with edits."),
    "lessons": ("lessons", "List what failed attempts left for the next one, and drop it."),
    "diff": ("diff", "Compare runs and show where they first differ."),
    "undo": ("undo", "Undo what a run did."),
    "submit": ("fleet.submit", "Store a task for workers to run."),
    "worker": ("fleet.worker", "Drive submitted runs until it is stopped."),
    "cancel": ("fleet.submit", "Stop a submitted run, wherever it is driven."),
    "eval": ("eval", "Run a suite of cases, and measure agents with intervals."),
    "costs": ("runs", "Add up model costs by API key, agent and day."),
    "verify": ("audit", "Check that a run was not changed after it was written."),
    "db": ("db", "Look after the database of runs: prune, archive, move it into PostgreSQL."),
    "export": ("audit", "Write a run to a file: JSON lines, or a page to read."),
    "policy": ("policy", "Try a policy on stored runs, explain verdicts, suggest rules."),
    "tools": ("tools", "Show the cards of tools, and lint them."),
    "call": ("tools", "Call one tool by hand."),
    "login": ("login", "Log in to MCP servers and APIs that want OAuth, in a browser."),
    "serve": ("serve", "Serve agents to OpenAI clients."),
    "panel": ("panel", "Watch runs in the browser, and answer what waits for a person."),
    "mcp": ("mcp", "Serve tools and agents to MCP hosts."),
    "models": ("doctor", "List the models that can be used, and what is missing for the others."),
    "doctor": ("doctor", "Check that everything taoloop needs is in order."),
}
"""The module of each command, in the order of the help page, and what the command does."""


class _Context(click.Context):
    formatter_class = HelpFormatter


class Commands(click.Group):
    """Loads the module of a command when it is called, so that `tao --help` loads none."""

    context_class = _Context
    summaries = _COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """The names in the order of the help page."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name, or None."""
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"taoloop.cli.commands.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        for each in (command, *getattr(command, "commands", {}).values()):
            each.context_class = _Context
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that was called; where there is none, what may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close_matches = get_close_matches(args[0], _COMMANDS, n=1)
            if " " in args[0] or not args[0].isascii():
                hint = translate("To run a task, use: tao run {task!r}.", task=args[0])
            elif close_matches:
                hint = translate("Did you mean {name!r}?", name=close_matches[0])
            else:
                raise
            message = translate("There is no command {name!r}.", name=args[0])
            raise click.UsageError(join_on_one_line(message, hint), ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; it ends quietly once nobody reads its output."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            silence_stdout()
            raise click.exceptions.Exit(exits.BROKEN_PIPE) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of the help page, and the exit codes after it."""
        with formatter.section(mark("Commands")):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])
        with formatter.section(mark("Exit codes")):
            formatter.write_dl([(str(code), meaning) for code, meaning in exits.TABLE.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(taoloop.__version__, prog_name="tao", message="%(prog)s %(version)s")
def cli() -> None:
    """Run ReAct agents whose every action can be checked, recorded, stopped and replaced.

    Start here (no key, no network):
      tao run "What is 3.5 squared plus the hour in Asia/Shanghai?"
      tao run "北京现在几点?"

    With a model of a provider (`tao models` lists which are configured):
      tao run "Summarise notes.md" --workspace . --model deepseek:deepseek-chat
      tao run "..." --agent agent.yaml --json | jq .kind

    Every run is stored. Look at it, resume it, replay its decisions:
      tao runs
      tao show RUN_ID
      tao run --resume RUN_ID --max-steps 12
      tao replay RUN_ID

    A run id may be shortened to its beginning, as long as no other run has the same.
    """


def execute(args: list[str]) -> int:
    """Run one command; every error becomes one line on standard error. Returns the exit code."""
    reopen_closed_streams()
    translate_click()
    set_interface_language(interface_language())
    if interface_language() == "zh":
        translate_warnings()
    try:
        result: Any = cli.main(args=args, prog_name="tao", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        _report_usage_error(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print_stderr(translate("stopped."))
        return exits.INTERRUPTED
    except BrokenPipeError:  # at the last flush
        silence_stdout()
        return exits.BROKEN_PIPE
    except TaoError as error:
        return _report_error(error)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _report_unexpected_error(error)
        silence_stdout()
        print_stderr(translate("The output cannot be written: {reason}.", reason=error.strerror))
        return exits.FOUND
    except Exception as error:  # noqa: BLE001  # the last place where an error can be reported in one line
        return _report_unexpected_error(error)
    return result if isinstance(result, int) else 0


def _report_unexpected_error(error: Exception) -> int:
    if not _print_traceback_if_debugging():
        text = mark("unexpected {kind}: {error} (set {variable}=1 to see the traceback, and please report it)")
        print_stderr(translate(text, kind=type(error).__name__, error=error, variable=DEBUG))
    return exits.FOUND


def _report_error(error: TaoError) -> int:
    _print_traceback_if_debugging()
    print_stderr(join_on_one_line(*error_texts(error)))
    return exits.exit_code_for(error)


def _report_usage_error(error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        with suppress(OSError):
            click.echo(error.format_message(), err=True)
        return
    message = error.format_message()
    if message.endswith("."):  # click adds it to some messages itself
        message = message[:-1] + translate(".")
    context = getattr(error, "ctx", None)
    hint = "" if context is None else translate("See `{command} --help`.", command=context.command_path)
    print_stderr(join_on_one_line(message, hint))


def _print_traceback_if_debugging() -> bool:
    if os.environ.get(DEBUG, "").strip() in ("", "0"):
        return False
    traceback.print_exc()
    return True
