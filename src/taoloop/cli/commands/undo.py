"""`tao undo`: undo what a run did."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.agent_loading import AgentOptions, agent_of_run, database_of, named_tools
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import load_environment, load_run, query_database, require_whole
from taoloop.cli.signals import SignalStopper
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.approval_prompt import confirm, fold_line
from taoloop.cli.ui.event_view import RESUME, RowWriter, console_for, write_events
from taoloop.cli.ui.stdio import capture_stdout, one_line, print_stderr, write_json_lines
from taoloop.config.document import is_config_file
from taoloop.core.events import Event, Observed, Undo
from taoloop.core.text import escape_invisible
from taoloop.core.views.transcript import input_text, observation_text
from taoloop.errors import ConfigError
from taoloop.journals.addresses import DatabaseAddress, journal_at
from taoloop.runtime.after.undo import UndoResult, approved_by, plan_undo, require_not_undone, undo
from taoloop.runtime.after.undo_plan import PlannedUndo, UndoPlan, UndoStatus
from taoloop.runtime.agent import Agent
from taoloop.runtime.tool_source import resolve_sources
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox
from taoloop.translation import mark

_SHOWN_CHARS = 160  # of a call that is undone; the one that undoes it is shown whole
_GROUPS: dict[UndoStatus, str] = {
    "cannot": mark("Cannot be undone:"),
    "unknown": mark("May or may not have happened, check by hand:"),
    "skipped": mark("Left alone:"),
    "elsewhere": mark("Not by this run:"),
}
"""What is said of the calls that will not be undone."""


@click.command("undo")
@click.argument("run_id", shell_complete=complete_run_ids)
@click.option(
    "--to", "to_step", type=click.IntRange(min=0), metavar="STEP", default=0, help="Keep the steps up to this one."
)
@click.option("--yes", is_flag=True, help="Carry out the plan without asking.")
@click.option("--skip", metavar="CALL", multiple=True, help="Leave this call alone; repeatable.")
@click.option(
    "--again", metavar="CALL", multiple=True, help="Try this call again although it may have been undone; repeatable."
)
@options.tools_option("Compensating tools that the agent does not have: module:attribute, or a file.")
@options.take_over_option
@options.kill_holder_option
@options.agent_option
@options.workspace_option
@options.memory_option
@options.db_option
@options.json_option("The plan, the events of the undo and its outcome as JSON, one object per line.")
def undo_command(
    run_id: str, db: str | None, tools: tuple[str, ...], yes: bool, as_json: bool, **arguments: Any
) -> int:
    """Undo what RUN_ID did, the last effect first: each call by the compensation that its tool names.

    Shows what will be undone and by which call, and what cannot be undone and why; then asks. --yes answers the
    question. Where nobody can be asked, only the plan is shown (exit code 8). Runs inside the run are undone with
    it.

      tao undo RUN_ID                    everything
      tao undo RUN_ID --to 3             what came after step 3
      tao undo RUN_ID --skip call_4      except this call, such as a file that somebody has changed since
      tao undo RUN_ID --json             the plan as JSON

    The undo stops at the first call that fails, because earlier ones may depend on it; the same command continues
    where it stopped, also after a crash, and undoes nothing twice. A call that may or may not have happened is for
    you to check; --again tries its compensation once more. A run that another process is working on is left alone
    without --kill-holder (exit code 14). Exit code 0: everything is undone; 13: something is not.
    """
    env = load_environment()
    chosen = AgentOptions.from_arguments(arguments)
    path = database_of(chosen, env, db)
    trace = load_run(path, run_id)
    require_whole(path, trace)
    agent = replace(agent_of_run(trace.agent, chosen, env), journal=path)
    selection = {name: arguments[name] for name in ("to_step", "skip", "again")} | {"tools": _tools(tools, env)}
    command_line = _command_line(trace.run_id, db, tools, arguments)
    take_over = {name: arguments[name] for name in ("take_over", "kill_holder")}
    with capture_stdout() as stream:
        plan = query_database(path, lambda journal: plan_undo(agent, journal, trace.run_id, **selection))
        printer = UndoPrinter(stream, trace.agent.language, as_json=as_json)
        printer.plan(plan)
        if not plan.todo:
            return exits.NOT_UNDONE if plan.left else exits.OK
        can_ask = not as_json and stream.isatty() and sys.stdin.isatty()
        if (yes or can_ask) and not any(take_over.values()):
            query_database(path, lambda journal: require_not_undone(journal, trace.run_id))
        if not yes and not (can_ask and printer.confirm(plan)):
            printer.report("Nothing was undone. To undo it: {command}", command=f"{command_line} --yes")
            return exits.OF_STATUS["waiting"]
        with SignalStopper(lambda: printer.report("stopping… (Ctrl-C again to quit at once)")) as stopper:
            undone = stopper.drive(_carry_out(agent, path, plan, stopper, printer, **take_over, **selection))
        if undone is None:
            return stopper.code if stopper.code is not None else exits.FOUND
        printer.end(undone, command_line)
        return exits.OK if undone.complete else exits.NOT_UNDONE


async def _carry_out(
    agent: Agent, path: DatabaseAddress, plan: UndoPlan, stopper: SignalStopper, printer: UndoPrinter, **options: Any
) -> UndoResult:
    def hear(run_id: str, entry: Undo | None, event: Event) -> None:
        stopper.guard(lambda _: printer.event(plan, run_id, entry, event))(event)  # type: ignore[arg-type]  # one of them

    async with journal_at(path) as journal:
        approver = approved_by("user")
        return await undo(agent, journal, plan.run_id, approver=approver, agreed=plan, on_event=hear, **options)


class UndoPrinter:
    """Tells a person, or a program, what is planned and what happens."""

    def __init__(self, stream: TextIO, language: str, *, as_json: bool) -> None:
        self._stream, self._as_json, self._language = stream, as_json, view_language(language, sys.stderr)
        self._pen = RowWriter(console_for(stream), view_language(language, stream))

    def report(self, text: str, /, **values: object) -> None:
        """One line on standard error."""
        print_stderr(translate(text, self._language, **values))

    def confirm(self, plan: UndoPlan) -> bool:
        """Whether the person agrees to the plan."""
        question = translate("Make this call?|Make these {n} calls?", self._language, n=len(plan.todo))
        return confirm(question, self._language)

    def plan(self, plan: UndoPlan) -> None:
        """Show everything that the person is to agree to: each call that will be made, with all its arguments."""
        if self._as_json:
            record = {"kind": "undo_plan", "run_id": plan.run_id, "to_step": plan.to_step}
            write_json_lines(self._stream, [{**record, "items": _records(plan.items)}])
            return
        pen = self._pen
        text = mark("Undo run {run_id}, back to the end of step {step}") if plan.to_step else mark("Undo run {run_id}")
        pen.line(pen.text(text, run_id=plan.run_id, step=plan.to_step), "bold")
        if not plan.items:
            pen.line(pen.text("There is nothing to undo."))
        if plan.todo:
            pen.line(pen.text("Will be undone, in this order:"))
            for number, item in enumerate(plan.todo, 1):
                self._item(item, f"{number:>3}.")
        for standing, text in _GROUPS.items():
            if planned := plan.of(standing):
                pen.line(pen.text(text), "yellow" if standing in ("cannot", "unknown") else "")
                for item in planned:
                    self._item(item, "  -")
        if before := plan.of("undone"):
            pen.line(pen.text("Undone before: {calls}", calls=", ".join(item.name for item in before)), "dim")
        self._stream.flush()

    def event(self, plan: UndoPlan, run_id: str, entry: Undo | None, event: Event) -> None:
        """Report the outcome of a call."""
        if self._as_json:
            write_events(self._stream, run_id, [event])
        elif isinstance(event.fact, Observed):
            key = None if entry is None else (entry.run_id, entry.call_id)
            item = next((planned for planned in plan.items if (planned.run_id, planned.call_id) == key), None)
            values = {"call": item.name if item else event.fact.call_id, "tool": item.tool if item else ""}
            if event.fact.ok:
                self._pen.line(self._pen.text("undone: {call} {tool}", **values), "green")
            else:
                values["reason"] = one_line(observation_text(event.fact))
                self._pen.line(self._pen.text("not undone: {call} {tool}: {reason}", **values), "red")
            self._stream.flush()

    def end(self, result: UndoResult, command_line: str) -> None:
        """Report what was undone in all, and what is left."""
        pen = self._pen
        if self._as_json:
            record = {"kind": "undo_result", "run_id": result.now.run_id, "complete": result.complete}
            record |= {"undone": [call.name for call in result.undone], "left": _records(result.left)}
            write_json_lines(self._stream, [record])
            return
        if result.complete:
            pen.line(pen.text("Everything was undone as planned."), "bold green")
            return
        pen.line(pen.text("{n} call was undone now.|{n} calls were undone now.", n=len(result.undone)), "bold")
        pen.line(pen.text("Not undone:"), "bold yellow")
        for item in result.left:
            self._item(item, "  -")
        if result.now.todo:
            self.report(RESUME, command=command_line)

    def _item(self, item: PlannedUndo, bullet: str) -> None:
        """A call and what undoes it, so that nothing in either can hide or pass for a line of ours."""
        pen = self._pen
        args = _args_on_one_line(item.args)
        pen.line(f"{bullet} {pen.text('step {step}', step=item.step)} {item.name} {item.tool}")
        self._block(args if len(args) <= _SHOWN_CHARS else f"{args[: _SHOWN_CHARS - 1]}…")
        if item.call is not None:
            pen.line("      " + pen.text("by {tool}", tool=item.call.tool), "cyan")
            self._block(_args_on_one_line(item.call.args), "cyan")
        if item.why:
            self._block(one_line(item.why), "dim", bar=" ")

    def _block(self, text: str, style: str = "", *, bar: str = "│") -> None:
        """A text between bars, also where it is folded."""
        for part in fold_line(self._pen, text, 8):
            self._pen.line(f"      {bar} {part}", style)


def _args_on_one_line(args: Mapping[str, Any]) -> str:
    return escape_invisible(input_text(args)).replace("\n", "\\n")


def _records(items: Sequence[PlannedUndo]) -> list[dict[str, Any]]:
    return [
        {
            "call": item.name,
            "step": item.step,
            "tool": item.tool,
            "args": item.args,
            "standing": item.status,
            "by": None if item.call is None else {"tool": item.call.tool, "args": item.call.args},
            "why": item.why,
        }
        for item in items
    ]


def _tools(values: tuple[str, ...], env: Mapping[str, str]) -> tuple[Tool, ...]:
    names = options.split_repeated(values) or ()
    if plain := [name for name in names if ":" not in name and not is_config_file(name)]:
        hint = translate("Name it as module:attribute, or a file.")
        raise ConfigError(translate("--tools: {name!r} is not a tool of yours.", name=plain[0]), hint=hint)
    return tuple(Toolbox(tool for tool in resolve_sources(named_tools(names, env)).tools if not isinstance(tool, str)))


def _command_line(run_id: str, db: str | None, tools: tuple[str, ...], arguments: dict[str, Any]) -> str:
    """The command as it was called, without what answers its question."""
    parts = ["tao undo", run_id]
    if arguments["to_step"]:
        parts.append(f"--to {arguments['to_step']}")
    parts += [f"--skip {shlex.quote(name)}" for name in arguments["skip"]]
    settings = {"tools": ",".join(tools) or None, "db": db} | {
        name: arguments[name] for name in ("agent", "workspace", "memory")
    }
    parts += [f"--{name} {shlex.quote(value)}" for name, value in settings.items() if value is not None]
    return " ".join(parts)
