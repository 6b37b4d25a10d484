"""`tao undo`: take back what a run did."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import click
from rich.text import Text

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.agent_loading import AgentOptions, agent_of_run, database_of, named_tools
from taoloop.cli.database import load_run, query_database, require_whole
from taoloop.cli.dotenv import load_environment
from taoloop.cli.signals import SignalStopper
from taoloop.cli.ui.approval_prompt import discard_typeahead
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, terminal_language
from taoloop.cli.ui.terminal_text import escape_invisible, one_line, strip_control_codes
from taoloop.cli.ui.texts import ui_text
from taoloop.config.document import is_config_file
from taoloop.core.events import Event, Observed, Undo
from taoloop.core.stored_events import event_line
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import input_text, observation_text
from taoloop.errors import ConfigError, TaoError
from taoloop.journals.base import Journal
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.after.undo import UndoResult, approved_by, plan_undo, undo
from taoloop.runtime.after.undo_plan import PlannedUndo, UndoPlan
from taoloop.runtime.agent import Agent
from taoloop.runtime.result import Result
from taoloop.runtime.run_lock import require_unlocked
from taoloop.runtime.runner import Listener
from taoloop.runtime.tool_source import resolve_sources
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox

_HELP = """Take back what RUN_ID did, the last effect first: each call by the compensation that its tool names.

Shows what would be undone and by which call, and what cannot be undone and why; then asks. With --yes that is taken as
agreed. Where nobody can be asked the plan is all there is (exit code 8). Runs inside the run are undone with it.

\b
  tao undo RUN_ID                    all of it
  tao undo RUN_ID --to 3             what came after step 3, so that everything is as it was at the end of that step
  tao undo RUN_ID --skip call_4      leave one call alone, such as a file that somebody changed since
  tao undo RUN_ID --json             the plan as JSON

The undo stops at the first call that fails, because those before it may rest on it; the same command goes on where it
stopped, also after a crash, and undoes nothing twice. A call that may or may not have happened is for you to check;
with --again its compensation is tried once more. A run that another process is at work on is left alone without
--take-over (exit code 14). Exit code 0: everything is undone; 13: something is not.
"""

_EN = {
    "title": "Undo run {run_id}",
    "to": ", back to the end of step {step}",
    "nothing": "There is nothing to undo.",
    "will": "Will be undone, in this order:",
    "cannot": "Cannot be undone:",
    "unknown": "May or may not have happened, check by hand:",
    "skipped": "Left alone:",
    "undone": "Undone before: {names}",
    "elsewhere": "Not by this run:",
    "step": "step {step}",
    "by": "by",
    "ask": "Make this call?|Make these {n} calls?",
    "later": "Nothing was undone. Do it: {command}",
    "done": "undone: {name} {tool}",
    "failed": "not undone: {name} {tool}: {why}",
    "all": "Everything that was to be undone is undone.",
    "some": "{n} call was undone now.|{n} calls were undone now.",
    "left": "Not undone:",
    "go_on": "Go on: {command}",
}
_ZH = {
    "title": "撤销运行 {run_id}",
    "to": "，回到第 {step} 步结束时",
    "nothing": "没有可撤销的内容。",
    "will": "将按此顺序撤销：",
    "cannot": "无法撤销：",
    "unknown": "可能已生效，也可能没有，请人工检查：",
    "skipped": "保留不动：",
    "undone": "此前已撤销：{names}",
    "elsewhere": "不是本次运行所做：",
    "step": "第 {step} 步",
    "by": "用",
    "ask": "执行这 {n} 次调用吗？",
    "later": "没有撤销任何内容。执行撤销：{command}",
    "done": "已撤销：{name} {tool}",
    "failed": "没有撤销：{name} {tool}：{why}",
    "all": "应撤销的内容已全部撤销。",
    "some": "本次撤销了 {n} 次调用。",
    "left": "没有撤销：",
    "go_on": "继续：{command}",
}
_SHOWN_CHARS = 160  # of a call that is undone; the one that undoes it is shown whole


@click.command("undo", help=_HELP)
@click.argument("run_id")
@click.option(
    "--to", "to_step", type=click.IntRange(min=0), metavar="STEP", default=0, help="Keep the steps up to this one."
)
@click.option("--yes", is_flag=True, help="Carry out the plan without asking.")
@click.option("--skip", metavar="CALL", multiple=True, help="Leave this call alone; repeatable.")
@click.option("--again", metavar="CALL", multiple=True, help="Try again, though it may have happened; repeatable.")
@click.option(
    "--tools", metavar="NAME,…", help="Tools that undo and that the agent does not have: module:attribute, or a file."
)
@click.option("--take-over", is_flag=True, help="Take the run from the process that is at work on it.")
@options.agent_option
@options.workspace_option
@options.memory_option
@options.db_option
@options.json_option("The plan, the events of the undo and what came of it as JSON, one object per line.")
def command(run_id: str, db: str | None, tools: str | None, yes: bool, as_json: bool, **arguments: Any) -> int:
    """Show the plan, ask, and carry it out."""
    env = load_environment()
    chosen = AgentOptions(agent=arguments["agent"], workspace=arguments["workspace"], memory=arguments["memory"])
    path = database_of(chosen, env, db)
    trace = load_run(path, run_id)
    require_whole(path, trace)
    agent = replace(agent_of_run(trace.agent, chosen, env), journal=path)
    wish = {name: arguments[name] for name in ("to_step", "skip", "again")} | {"tools": _tools(tools, env)}
    session = UndoCommand(
        agent, path, trace, wish, _command(trace.run_id, db, tools, arguments), take_over=arguments["take_over"]
    )
    with capture_stdout() as stream:
        return session.go(stream, yes=yes, as_json=as_json)


class UndoCommand:
    """One command's work: what is undone, where, and how it is told."""

    def __init__(
        self, agent: Agent, path: Path, trace: Trace, wish: dict[str, Any], command_line: str, *, take_over: bool
    ) -> None:
        self.agent, self.path, self.trace, self.wish, self.again = agent, path, trace, wish, command_line
        self.take_over = take_over

    def go(self, stream: TextIO, *, yes: bool, as_json: bool) -> int:
        """Show the plan, ask, and carry it out; returns the exit code."""
        plan = query_database(self.path, lambda journal: plan_undo(self.agent, journal, self.trace.run_id, **self.wish))
        teller = UndoPrinter(stream, self.trace.agent.language, as_json=as_json)
        teller.plan(plan)
        if not plan.todo:
            return exits.NOT_UNDONE if plan.left else exits.OK
        asks = not as_json and stream.isatty() and sys.stdin.isatty()
        if (yes or asks) and not self.take_over:
            query_database(self.path, lambda journal: require_unlocked(journal, self.trace.run_id))
        if asks and not yes:
            discard_typeahead()
        if not yes and not (asks and click.confirm(teller.text("ask", n=len(plan.todo)), err=True)):
            print_stderr(teller.text("later", command=f"{self.again} --yes"))
            return exits.OF_STATUS["waiting"]
        return self._carry_out(teller, plan)

    def _carry_out(self, teller: UndoPrinter, plan: UndoPlan) -> int:
        came: list[UndoResult] = []
        failure: TaoError | None = None

        async def work(listener: Listener) -> Result:
            def hear(run_id: str, entry: Undo | None, event: Event) -> None:
                teller.place = run_id, entry
                listener(event)

            async with _journal(self.path) as journal:
                done = await undo(
                    self.agent,
                    journal,
                    self.trace.run_id,
                    approver=approved_by("user"),
                    agreed=plan,
                    take_over=self.take_over,
                    on_event=hear,
                    **self.wish,
                )
            came.append(done)
            return done.runs[-1] if done.runs else Result.of(self.trace)

        with SignalStopper(lambda: print_stderr(ui_text(teller.spoken, "stopping"))) as stopper:
            try:
                stopper.drive(work, lambda event: teller.event(plan, event))
            except TaoError as error:
                failure = error
        if failure is not None:
            raise failure
        if not came:
            return stopper.code if stopper.code is not None else exits.FOUND
        teller.end(came[0], self.again)
        return exits.OK if came[0].complete else exits.NOT_UNDONE


class UndoPrinter:
    """Tells a person, or a program, what is planned and what happens."""

    def __init__(self, stream: TextIO, language: str, *, as_json: bool) -> None:
        self._stream, self._as_json = stream, as_json
        self._pen = RowWriter(console_for(stream), terminal_language(language, stream))
        self.spoken = terminal_language(language, sys.stderr)
        self.place: tuple[str, Undo | None] = "", None  # of the next event

    def text(self, name: str, /, **values: object) -> str:
        """A text for standard error."""
        return _text(self.spoken, name, **values)

    def plan(self, plan: UndoPlan) -> None:
        """Show everything that the person is to agree to: each call that will be made, with all its arguments."""
        if self._as_json:
            self._write(
                {"kind": "undo_plan", "run_id": plan.run_id, "to_step": plan.to_step, "items": _records(plan.items)}
            )
            return
        title = self._text("title", run_id=plan.run_id)
        self._pen.line(title + (self._text("to", step=plan.to_step) if plan.to_step else ""), "bold")
        if not plan.items:
            self._pen.line(self._text("nothing"))
        if plan.todo:
            self._pen.line(self._text("will"))
            for number, item in enumerate(plan.todo, 1):
                self._item(item, f"{number:>3}.")
        for name in ("cannot", "unknown", "skipped", "elsewhere"):
            if planned := plan.of(name):
                self._pen.line(self._text(name), "yellow" if name in ("cannot", "unknown") else "")
                for item in planned:
                    self._item(item, "  -")
        if before := plan.of("undone"):
            self._pen.line(self._text("undone", names=", ".join(item.name for item in before)), "dim")
        self._stream.flush()

    def event(self, plan: UndoPlan, event: Event) -> None:
        """Tell what came of a call."""
        run_id, entry = self.place
        if self._as_json:
            self._stream.write(event_line(run_id, event) + "\n")
            self._stream.flush()
        elif isinstance(event.fact, Observed):
            key = None if entry is None else (entry.run_id, entry.call_id)
            item = next((planned for planned in plan.items if (planned.run_id, planned.call_id) == key), None)
            values = {"name": item.name if item else event.fact.call_id, "tool": item.tool if item else ""}
            if event.fact.ok:
                self._pen.line(self._text("done", **values), "green")
            else:
                self._pen.line(self._text("failed", **values, why=one_line(observation_text(event.fact))), "red")
            self._stream.flush()

    def end(self, done: UndoResult, command_line: str) -> None:
        """Tell what was undone in all, and what is left."""
        if self._as_json:
            record = {"kind": "undo_result", "run_id": done.now.run_id, "complete": done.complete}
            self._write({**record, "undone": [call.name for call in done.undone], "left": _records(done.left)})
            return
        if done.complete:
            self._pen.line(self._text("all"), "bold green")
            return
        self._pen.line(self._text("some", n=len(done.undone)), "bold")
        self._pen.line(self._text("left"), "bold yellow")
        for item in done.left:
            self._item(item, "  -")
        if done.now.todo:
            print_stderr(self.text("go_on", command=command_line))

    def _item(self, item: PlannedUndo, mark: str) -> None:
        """A call and what takes it back, so that nothing in either can hide or pass for a line of ours."""
        args = escape_invisible(input_text(item.args)).replace("\n", "\\n")
        args_text = args if len(args) <= _SHOWN_CHARS else f"{args[: _SHOWN_CHARS - 1]}…"
        self._pen.line(f"{mark} {self._text('step', step=item.step)} {item.name} {item.tool}")
        self._block(args_text)
        if item.call is not None:
            self._pen.line(f"      {self._text('by')} {item.call.tool}", "cyan")
            self._block(escape_invisible(input_text(item.call.args)).replace("\n", "\\n"), "cyan")
        if item.why:
            self._block(one_line(item.why), "dim", bar=" ")

    def _block(self, text: str, style: str = "", *, bar: str = "│") -> None:
        """A text between bars, also where it is folded."""
        console = self._pen.console
        if not console.is_terminal:
            self._pen.line(f"      {bar} {text}", style)
            return
        for part in Text(text).wrap(console, max(10, console.width - 8), overflow="fold"):
            self._pen.line(f"      {bar} {part.plain}", style)

    def _text(self, name: str, /, **values: object) -> str:
        return _text(self._pen.language, name, **values)

    def _write(self, record: dict[str, Any]) -> None:
        self._stream.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
        self._stream.flush()


def _text(language: str, name: str, /, **values: object) -> str:
    text = (_ZH if language == "zh" else _EN)[name]
    singular, _, many = text.partition("|")
    return strip_control_codes((many or singular if values.get("n") != 1 else singular).format(**values))


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


def _journal(path: Path) -> AbstractAsyncContextManager[Journal]:
    return SqliteJournal(path)


def _tools(spec: str | None, env: Mapping[str, str]) -> tuple[Tool, ...]:
    names = options.names(spec) or ()
    if plain := [name for name in names if ":" not in name and not is_config_file(name)]:
        raise ConfigError(f"--tools: {plain[0]!r} is no tool of yours.", hint="Name it as module:attribute, or a file.")
    return tuple(Toolbox(tool for tool in resolve_sources(named_tools(names, env)) if not isinstance(tool, str)))


def _command(run_id: str, db: str | None, tools: str | None, arguments: dict[str, Any]) -> str:
    """The command as it was called, without what answers its question."""
    parts = ["tao undo", run_id]
    if arguments["to_step"]:
        parts.append(f"--to {arguments['to_step']}")
    parts += [f"--skip {shlex.quote(name)}" for name in arguments["skip"]]
    settings = {"tools": tools, "db": db} | {name: arguments[name] for name in ("agent", "workspace", "memory")}
    parts += [f"--{name} {shlex.quote(value)}" for name, value in settings.items() if value is not None]
    return " ".join(parts)
