"""`tao run`: one task from its words to its answer."""

from __future__ import annotations

import asyncio
import locale
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.agent_loading import (
    AgentOptions,
    agent_from_options,
    agent_of_run,
    database_of,
    merge_limits,
    model_notice,
    require_extra,
    with_mock_model,
)
from taoloop.cli.database import (
    count_orphaned_runs,
    database,
    holder_of,
    load_run,
    make_private,
    warn_if_workspace_is_new,
)
from taoloop.cli.dotenv import load_environment
from taoloop.cli.signals import SignalStopper
from taoloop.cli.ui.approval_prompt import TerminalApprover
from taoloop.cli.ui.event_view import LIMIT_OPTIONS, answer_command, resume_command, summary
from taoloop.cli.ui.live_view import JsonView, LiveView
from taoloop.cli.ui.stdio import OutputError, capture_stdout, print_stderr, terminal_language
from taoloop.cli.ui.terminal_text import one_line
from taoloop.cli.ui.texts import ui_text
from taoloop.core.cards.tool_card import TIERS
from taoloop.core.events import Event
from taoloop.core.policy import PROFILES
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, RunHeld, RunNotResumable, TaoError
from taoloop.models.base import DeltaListener
from taoloop.models.wrappers.build import split_specs
from taoloop.runtime.after.recovery import Recovered
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.result import Result
from taoloop.runtime.runner import Listener
from taoloop.runtime.subagent import inner_agents

_HELP = """Run TASK with an agent and show each thought, action and observation. `-` reads the task from standard input.

Without --agent and --tools the agent has a calculator and a clock, and with --workspace tools to read, list, search
and write its files. A call that changes something is put before you. Where nobody can be asked the run waits (exit
code 8): the last line of --json is then `paused` with `status: waiting`, and not `finished`.

\b
  tao run "What is 3.5 squared plus the hour in Asia/Shanghai?"
  tao run "What is in notes.md?" --workspace ~/notes
  tao run "Which orders are late?" --tools tools.yaml,calculator
  tao run "Plan the release" --agent agent.yaml --model openai:gpt-4o-mini --max-cost 0.50
  tao run "And in Tokyo?" --after last             the next turn of a conversation
  tao run --resume 20261104-09 --max-steps 12
  tao run --resume 20261104-09 --approve write     go on with a run that waits

Ctrl-C stops the run; nothing is lost, and --resume goes on with it. Exit code 0 means completed, every other status
has its own (see `tao --help`).
"""

_FIXED = (
    "dialect",
    "strategy",
    "lang",
    "output-schema",
    "context-tokens",
    "prompts",
    "no-closing-turn",
    "profile",
    "policy",
)
"""Options that describe a run; it keeps its description when it is resumed."""


@click.command("run", help=_HELP)
@click.argument("words", metavar="[TASK]", nargs=-1)
@options.agent_option
@click.option("--model", metavar="SPEC", help="offline, openai:NAME, deepseek:NAME, ollama:NAME, scripted:FILE …")
@click.option("--fallback", metavar="SPEC", multiple=True, help="A model that answers where --model fails; repeatable.")
@click.option("--dialect", metavar="NAME", help="How decisions are written: native, json, text or fenced.")
@click.option("--strategy", metavar="NAME", help="react, act_only, reason_only or standard.")
@click.option("--lang", type=click.Choice(["auto", "en", "zh"]), help="Language of the prompts. auto follows the task.")
@options.tools_option("Only these tools: built-in names, module:attribute, or a tool file FILE.yaml; repeatable.")
@options.workspace_option
@options.memory_option
@click.option(
    "--output-schema",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A JSON Schema (JSON or YAML): the answer is one JSON value that fits it.",
)
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Decisions of the model (6).")
@click.option("--max-tool-calls", type=click.IntRange(min=1), metavar="N", help="Tool calls.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens of all model calls.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Cost of model calls.")
@click.option("--context-tokens", type=click.IntRange(min=1), metavar="N", help="Window of the model, in tokens.")
@click.option("--max-time", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Wall time.")
@options.db_option
@options.json_option("Events as JSON, one per line, and nothing else; the last is `finished`, or `paused`.")
@click.option("--resume", metavar="RUN_ID", help="Go on with a run that is not completed.")
@click.option("--take-over", is_flag=True, help="With --resume: take the run from the process that is at work on it.")
@click.option("--recover", is_flag=True, help="First go on with the runs of this agent that dead processes left.")
@click.option("--after", metavar="RUN_ID", help="Go on with the conversation of that run; `last` is the newest.")
@click.option("--approve", type=click.Choice(TIERS), help="Allow calls up to this tier without asking.")
@click.option("--profile", type=click.Choice(PROFILES), help="What the agent may do unasked (supervised).")
@click.option("--policy", metavar="FILE", type=click.Path(dir_okay=False), help="Your own rules, as YAML or JSON.")
@click.option("--prompts", metavar="DIR", type=click.Path(file_okay=False), help="A folder of edited prompts.")
@click.option("--no-closing-turn", is_flag=True, help="No last turn of the model when a limit is reached.")
@click.option("-v", "--verbose", is_flag=True, help="Show the model's output as it came.")
def command(
    words: tuple[str, ...],
    db: str | None,
    resume: str | None,
    take_over: bool,
    recover: bool,
    after: str | None,
    as_json: bool,
    verbose: bool,
    **arguments: Any,
) -> int:
    """Run a task, or go on with a run."""
    if bool(words) == (resume is not None):
        problem = (
            "--resume goes on with its own task; leave TASK away." if words else "Give a TASK, or --resume RUN_ID."
        )
        raise click.UsageError(problem)
    if resume is not None and after is not None:
        raise click.UsageError("--resume goes on with a run, --after begins the next one; give one of the two.")
    if take_over and resume is None:
        raise click.UsageError("--take-over goes with --resume RUN_ID.")
    if recover and resume is not None:
        raise click.UsageError("--recover goes with a TASK; all that is left: tao recover.")
    if resume is not None and (fixed := [option for option in _FIXED if arguments[option.replace("-", "_")]]):
        raise click.UsageError(f"--resume goes on with the run as it was described; leave --{fixed[0]} away.")
    if len(words) > 1:
        raise click.UsageError(f"The task came as {len(words)} words; quote it: tao run {shlex.quote(' '.join(words))}")
    env = load_environment()
    chosen = _chosen(arguments)
    with capture_stdout() as stream:
        asks = stream.isatty() and sys.stdin.isatty() and not as_json
        if words:
            session = _new(chosen, env, _task(words[0]), db, after)
            session.report_orphaned_runs(env, recover=recover)
        else:
            session = _resumed(chosen, env, resume or "", db, asks, take_over)
        return session.run(stream, as_json=as_json, verbose=verbose)


class RunSession:
    """One process's work on one run: the agent, what to ask of it, and the trace as this process has seen it."""

    def __init__(self, agent: Agent, trace: Trace, language: str, db: str | None, **ask: Any) -> None:
        self.agent, self.trace, self.language, self._db, self._ask = agent, trace, language, db, ask

    def run(self, stream: TextIO, *, as_json: bool, verbose: bool) -> int:
        """Run to the end or to a wait; returns the exit code."""
        view: JsonView | LiveView
        asks: LiveView | None = None
        if as_json:
            view = JsonView(stream, self.trace)
        else:
            view = LiveView(stream, self.trace, language=self.language, raw=verbose)
            asks = view if stream.isatty() and sys.stdin.isatty() else None
        agent = replace(self.agent, approve=None if asks is None else TerminalApprover(asks))

        def listen(event: Event) -> None:
            self.trace.append(event)
            if stopper.lost is None:
                view.show(event)

        failure: TaoError | None = None
        with SignalStopper(lambda: self._say("stopping")) as stopper:
            try:
                with view:
                    stopper.drive(lambda listener: self._run(agent, listener, view.hears), listen)
            except TaoError as error:
                failure = error
        code = self._print_outcome(stopper, view, stream)
        if failure is not None:
            raise failure
        return code

    def report_orphaned_runs(self, env: Mapping[str, str], *, recover: bool) -> None:
        """Tell on standard error what dead processes left in the database; go on with it first where that is wished."""
        agent, journal = self.agent, self.agent.journal
        self.agent = replace(agent, recover_on_start=False)  # it is done here
        if not isinstance(journal, str | Path) or not (orphan_count := count_orphaned_runs(Path(journal))):
            return
        if recover or agent.recover_on_start:
            from taoloop.cli.commands.recover import outcome, recover_with  # noqa: PLC0415  # it is rarely asked for

            def tell(recovered: Recovered) -> None:
                status, text = outcome(recovered)
                self._say("recovered", run_id=recovered.run_id, status=status, text=one_line(text))

            asyncio.run(recover_with(Path(journal), AgentOptions(), env, tell, only=agent))
            orphan_count = count_orphaned_runs(Path(journal))
        if orphan_count:
            where = "" if Path(journal) == database(None, env) else f" --db {shlex.quote(str(journal))}"
            self._say("left", n=orphan_count, command=f"tao recover{where}")

    def _say(self, name: str, **values: object) -> None:
        print_stderr(ui_text(terminal_language(self.language, sys.stderr), name, **values))

    async def _run(self, agent: Agent, listener: Listener, hears: DeltaListener | None) -> Result:
        try:
            if self.trace.events:
                return await agent.resume(self.trace.run_id, on_event=listener, on_delta=hears, **self._ask)
            return await agent.run(run_id=self.trace.run_id, on_event=listener, on_delta=hears, **self._ask)
        finally:
            with suppress(Exception):
                await bind(agent).model.close()
                await agent.close()

    def _print_outcome(self, stopper: SignalStopper, view: JsonView | LiveView, stream: TextIO) -> int:
        """The last lines, and the exit code."""
        trace = self.trace
        if stopper.code == exits.BROKEN_PIPE:
            raise BrokenPipeError
        command_line = resume_command(trace, self._db) if trace.events else None
        if stopper.lost is not None:
            hint = f"Go on with the run: {command_line}" if command_line else "The run is completed."
            raise OutputError(stopper.lost.message, hint=hint)
        status = trace.status
        if isinstance(view, LiveView) and trace.events and status != "running":
            view.pen.gap()
            view.pen.line(summary(trace, view.pen.language), "dim")
            stream.flush()
        next_commands = {"answer_first": answer_command(trace, self._db), "resume": command_line}
        for name, next_one in next_commands.items():
            if next_one is not None and isinstance(view, LiveView):
                view.pen.line(ui_text(view.pen.language, name, command=next_one), "bold")
                stream.flush()
            elif next_one is not None:
                self._say(name, command=next_one)
        if stopper.code is not None and status in ("stopped", "running"):
            return stopper.code
        return exits.FOUND if status == "running" else exits.OF_STATUS[status]


def _new(chosen: AgentOptions, env: Mapping[str, str], task: str, db: str | None, after: str | None) -> RunSession:
    db_path = database_of(chosen, env, db) if after is not None else None
    earlier = load_run(db_path, after) if db_path is not None and after is not None else None
    if earlier is None or chosen.agent is not None:
        configured = agent_from_options(chosen, env)
    else:
        configured = replace(agent_of_run(earlier.agent, chosen, env), journal=db_path)
    if db is not None or configured.journal is None:
        configured = replace(configured, journal=database(db, env))
    agent = with_mock_model(configured, chosen, env)
    with warn_if_workspace_is_new(agent.workspace):
        spec = agent.spec_for(task)  # whatever is wrong with the agent is told before anything is stored
        models = [spec.model, *(bind(inner).spec_for(task).model for inner in inner_agents(agent))]
    for model in models:
        for model_spec in split_specs(model):
            require_extra(model_spec)
    if remark := model_notice(configured, agent, env, terminal_language(spec.language, sys.stderr)):
        print_stderr(remark)
    if isinstance(agent.journal, str | Path):
        make_private(Path(agent.journal), expected=Path(agent.journal) == database(None, {}))
    trace = Trace(new_run_id(agent.clock.now()))
    return RunSession(agent, trace, spec.language, db, task=task, after=None if earlier is None else earlier.run_id)


def _resumed(
    chosen: AgentOptions, env: Mapping[str, str], run_prefix: str, db: str | None, asks: bool, take_over: bool
) -> RunSession:
    path = database_of(chosen, env, db)
    trace = load_run(path, run_prefix)
    if trace.status == "completed":
        look = f"Start a new run, or look: tao show {trace.run_id}"
        raise RunNotResumable(f"The run {trace.run_id} is completed.", hint=look)
    limits = merge_limits(trace.limits, chosen.limits)
    ended = trace.finished.limit if trace.finished is not None else None
    if ended in LIMIT_OPTIONS and getattr(limits, ended) == getattr(trace.limits, ended):
        raise ConfigError(
            f"The run {trace.run_id} has used up its {ended} of {getattr(limits, ended):g}.",
            hint=f"Give it more: {resume_command(trace, db)}",
        )
    language = terminal_language(trace.agent.language, sys.stderr)
    configured = replace(agent_of_run(trace.agent, chosen, env), journal=path)
    agent = with_mock_model(configured, chosen, env)
    if agent is not configured:
        print_stderr(model_notice(configured, agent, env, language))
    if (holder := holder_of(path, trace.run_id)) is not None and asks and not take_over:
        number = "" if holder.process is None else f" ({holder.process})"
        print_stderr(ui_text(language, "held", run_id=trace.run_id, number=number))
        take_over = click.confirm(ui_text(language, "held_ask"), err=True)
    if holder is not None and not take_over:
        raise RunHeld(
            f"Run {trace.run_id} was left alone: {holder} is at work on it.",
            hint="Wait for it, stop it there, or take the run over: --take-over.",
        )
    ask = {"limits": limits, "approved_tiers": chosen.approved_tiers, "take_over": take_over}
    return RunSession(agent, trace, trace.agent.language, db, **ask)


def _chosen(arguments: dict[str, Any]) -> AgentOptions:
    limits = {
        name: arguments[option]
        for name, option in (
            ("max_steps", "max_steps"),
            ("max_tool_calls", "max_tool_calls"),
            ("max_tokens", "max_tokens"),
            ("max_cost_usd", "max_cost"),
            ("max_wall_s", "max_time"),
        )
        if arguments[option] is not None
    }
    return AgentOptions(
        agent=arguments["agent"],
        model=arguments["model"],
        fallback=arguments["fallback"] or None,
        dialect=arguments["dialect"],
        strategy=arguments["strategy"],
        language=arguments["lang"],
        tools=options.split_repeated(arguments["tools"]),
        workspace=arguments["workspace"],
        memory=arguments["memory"],
        output_schema=arguments["output_schema"],
        prompts=arguments["prompts"],
        closing_turn=False if arguments["no_closing_turn"] else None,
        approve=arguments["approve"],
        profile=arguments["profile"],
        policy=arguments["policy"],
        context_tokens=arguments["context_tokens"],
        limits=limits,
    )


def _task(text: str) -> str:
    if text == "-":
        text = _standard_input()
    with suppress(UnicodeError):  # arguments as the process was given them, whatever its locale can spell
        text = os.fsencode(text).decode("utf-8")
    text = text.strip()
    if not text:
        raise ConfigError("The task is empty.", hint='Say what the agent should do: tao run "…"')
    return text


def _standard_input() -> str:
    """What comes as UTF-8, or in the encoding of the locale."""
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        with suppress(UnicodeDecodeError, LookupError):
            return data.decode(locale.getencoding())
        raise ConfigError(f"The task on standard input is not text: {error}.", hint="Send UTF-8.") from error
