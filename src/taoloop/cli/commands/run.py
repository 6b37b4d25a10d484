"""`tao run`: one task from its words to its answer."""

from __future__ import annotations

import asyncio
import locale
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TextIO

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.agent_loading import (
    AgentOptions,
    agent_from_options,
    agent_of_run,
    database_of,
    merge_limits,
    model_notice,
    replacement_policy,
    require_extra,
    with_mock_model,
)
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import (
    count_orphaned_runs,
    database,
    holder_of,
    load_environment,
    load_run,
    make_private,
    query_database,
    require_whole,
    warn_if_workspace_is_new,
)
from taoloop.cli.resume_check import check_resume
from taoloop.cli.signals import SignalStopper
from taoloop.cli.translation import stable_texts, translate, view_language
from taoloop.cli.ui.approval_prompt import TerminalApprover, confirm
from taoloop.cli.ui.event_view import RESUME, next_commands, resume_line, summary, write_events
from taoloop.cli.ui.live_view import JsonView, LiveView
from taoloop.cli.ui.stdio import OutputError, capture_stdout, one_line, print_stderr, write_json_lines
from taoloop.core.events import Event
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, RunNotResumable, TaoError
from taoloop.journals.addresses import DatabaseAddress, journal_at, stored_at
from taoloop.models.base import DeltaListener
from taoloop.runtime.after.fork import fork_for
from taoloop.runtime.after.fork_edits import Edits
from taoloop.runtime.after.recovery import Recovered, belongs_to, orphans, recover, stuck_runs
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.attachment_sources import load_attachment
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.journal_access import end_holder, require_unlocked
from taoloop.runtime.runner import Listener
from taoloop.runtime.subagent import inner_agents
from taoloop.translation import mark, translate_error

_FIXED = (
    *("dialect", "strategy", "lang", "output_schema", "context_tokens", "prompts", "evidence"),
    *("no_closing_turn", "attach", "lessons_from"),
)
"""Parameters that describe a run; it keeps its description when it is resumed."""


@click.command("run")
@click.argument("words", metavar="[TASK]", nargs=-1)
@options.agent_option
@click.option("--model", metavar="SPEC", help="offline, openai:NAME, deepseek:NAME, ollama:NAME, scripted:FILE …")
@options.fallback_option
@options.vision_option
@options.attach_option
@click.option(
    "--dialect", metavar="NAME", help="How the model writes decisions: native, json, json_final, text or fenced."
)
@options.strategy_option
@options.evidence_option
@click.option("--lang", type=click.Choice(["auto", "en", "zh"]), help="Language of the prompts; auto follows the task.")
@options.tools_option("Only these tools: built-in names, module:attribute, or a tool file FILE.yaml; repeatable.")
@options.skills_option
@options.workspace_option
@options.memory_option
@click.option(
    "--output-schema",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A JSON Schema (JSON or YAML): the answer is one JSON value that conforms to it.",
)
@options.limit_options
@click.option(
    "--context-tokens", type=click.IntRange(min=1), metavar="N", help="Context window of the model, in tokens."
)
@options.db_option
@options.json_option("Print only events as JSON, one per line; the last one is `finished` or `paused`.")
@click.option("--resume", metavar="RUN_ID", shell_complete=complete_run_ids, help="Resume a run that is not completed.")
@options.take_over_option
@options.kill_holder_option
@click.option("--recover", is_flag=True, help="First resume the runs of this agent whose processes died.")
@click.option(
    "--after",
    metavar="RUN_ID",
    shell_complete=complete_run_ids,
    help="Continue the conversation of that run; `last` is the newest run.",
)
@click.option("--lessons-from", metavar="RUN_ID", multiple=True, help="Read the lesson of that attempt; repeatable.")
@options.approve_option
@options.profile_option
@options.policy_option
@click.option("--prompts", metavar="DIR", type=click.Path(file_okay=False), help="A folder of edited prompts.")
@click.option("--no-closing-turn", is_flag=True, help="Skip the closing turn of the model when a limit is reached.")
@options.verbose_option
def run_command(
    words: tuple[str, ...],
    db: str | None,
    resume: str | None,
    take_over: bool,
    kill_holder: bool,
    recover: bool,
    after: str | None,
    as_json: bool,
    verbose: bool,
    **arguments: Any,
) -> int:
    """Run TASK with an agent and show each thought, action and observation. `-` reads the task from standard input.

    Without --agent and --tools the agent has a calculator and a clock; --workspace adds tools that read, list,
    search and write its files. A call that changes something needs your approval. Where nobody can be asked, the
    run waits (exit code 8), and the last line of --json is `paused` with `status: waiting` instead of `finished`.

      tao run "What is 3.5 squared plus the hour in Asia/Shanghai?"
      tao run "What is in notes.md?" --workspace ~/notes
      tao run "Which orders are late?" --tools tools.yaml,calculator
      tao run "What is in this picture?" --attach photo.jpg --model openai:gpt-4o-mini
      tao run "Plan the release" --agent agent.yaml --model openai:gpt-4o-mini --max-cost 0.50
      tao run "What time is it in Tokyo?" --after last     the next turn of a conversation
      tao run --resume 20261104-09 --max-steps 12
      tao run --resume 20261104-09 --approve write         resume a waiting run

    Ctrl-C stops the run; nothing is lost, and --resume continues it. Exit code 0 means completed; every other
    status has its own exit code (see `tao --help`).
    """
    if bool(words) == (resume is not None):
        conflict = translate("--resume continues the original task; omit TASK.")
        raise click.UsageError(conflict if words else translate("Give a TASK, or --resume RUN_ID."))
    if resume is not None:
        _check_resume(arguments, after=after, recover=recover)
    elif take_over or kill_holder:
        option = "--take-over" if take_over else "--kill-holder"
        raise click.UsageError(translate("{option} requires --resume RUN_ID.", option=option))
    if len(words) > 1:
        task = shlex.quote(" ".join(words))
        raise click.UsageError(translate("The task was {n} words; quote it: tao run {task}", n=len(words), task=task))
    env = load_environment()
    chosen = AgentOptions.from_arguments(arguments)
    with capture_stdout() as stream:
        if words:
            session = new_session(chosen, env, read_task(words[0]), db, after, arguments)
            session.report_orphaned_runs(env, recover=recover)
        else:
            can_ask = stream.isatty() and sys.stdin.isatty() and not as_json
            how = {"take_over": take_over, "kill_holder": kill_holder}
            session = _resumed_session(chosen, env, resume or "", db, can_ask=can_ask, how=how)
        return session.run(stream, as_json=as_json, verbose=verbose)


def _check_resume(arguments: Mapping[str, Any], *, after: str | None, recover: bool) -> None:
    if after is not None:
        raise click.UsageError(translate("--resume and --after exclude each other; --after starts the next run."))
    if recover:
        raise click.UsageError(translate("--recover requires a TASK; to resume every run, use: tao recover."))
    if fixed := next((name for name in _FIXED if arguments[name]), None):
        option = fixed.replace("_", "-")
        raise click.UsageError(translate("--resume keeps the settings of the run; omit --{option}.", option=option))


_ONLY_NEW = {"words", "resume", "recover", "after", *_FIXED}
"""Parameters of `tao run` that describe a new run, so `tao resume` does not have them."""


def _resume(run_id: str, *, check: bool, **arguments: Any) -> int:
    """Resume the run RUN_ID, which is waiting, was stopped, reached a limit, or lost its process.

    A waiting run continues with the answers it has (`tao approve`, `tao deny`). A call without an answer is asked
    about again at a terminal; without a terminal the run keeps waiting (exit code 8). The run keeps its settings;
    only --policy and --profile replace its policy. The model is then told which calls were denied before.
    The same as `tao run --resume RUN_ID`. A run that another process is working on is left alone (exit code 14)
    without --kill-holder, which ends that process and waits until it is gone. Where it cannot be ended from here,
    --take-over takes the run; calls that it was making are then put before you.

      tao resume 20261104-09
      tao resume RUN_ID --max-steps 12
      tao resume RUN_ID --approve write          approve its calls up to this tier
      tao resume RUN_ID --policy policy.yaml     judge what it calls from here on by other rules
      tao resume RUN_ID --profile supervised     ask a person where `headless` has denied
      tao resume RUN_ID --kill-holder            end the process that is working on it
      tao resume RUN_ID --check                  show what has changed: tools, model, policy

    With --check nothing is run. Exit code 0: nothing has changed; 1: something has; 2: it cannot be resumed.
    """
    if check:
        env = load_environment()
        chosen = AgentOptions.from_arguments(arguments)
        return check_resume(chosen, env, run_id, arguments["db"], as_json=arguments["as_json"])
    absent = dict.fromkeys(_ONLY_NEW) | {"words": (), "recover": False}
    code: int = run_command.callback(**absent | arguments | {"resume": run_id})  # type: ignore[misc]  # it has one
    return code


_CHECK_OPTION = click.Option(
    ["--check"], is_flag=True, help="Only show what has changed since the run was last driven."
)

resume_command = click.Command(
    "resume",
    help=_resume.__doc__,
    callback=_resume,
    params=[
        click.Argument(["run_id"], shell_complete=complete_run_ids),
        _CHECK_OPTION,
        *(param for param in run_command.params if param.name not in _ONLY_NEW),
    ],
)


class RunSession:
    """One process's work on one run: the agent, what to ask of it, and the trace as this process has seen it."""

    def __init__(self, agent: Agent, trace: Trace, language: str, db: str | None, **call: Any) -> None:
        self.agent, self.trace, self.language, self._db, self._call = agent, trace, language, db, call

    def run(self, stream: TextIO, *, as_json: bool, verbose: bool) -> int:
        """Run to the end or to a wait; returns the exit code."""
        if as_json:
            view: JsonView | LiveView = JsonView(stream, self.trace)
        else:
            view = LiveView(stream, self.trace, language=self.language, raw=verbose)
            if stream.isatty() and sys.stdin.isatty():
                self.agent = replace(self.agent, approve=TerminalApprover(view))
        failure: TaoError | None = None
        with SignalStopper(lambda: self.report("stopping… (Ctrl-C again to quit at once)")) as stopper:

            def listen(event: Event) -> None:
                self.trace.append(event)
                if stopper.lost is None:
                    view.show(event)

            try:
                with view:
                    stopper.drive(self._run_agent(stopper.guard(listen), view.hears))
            except TaoError as error:
                failure = error
        self._print_outcome(stopper, view, stream)
        code = self._exit_code(stopper)
        if failure is not None:
            raise failure
        return code

    def join_session(self, session: str, run_id: str) -> None:
        """Make it the turn `run_id` of a session."""
        self.trace = Trace(run_id)
        self._call |= {"session": session}

    async def _run_agent(self, listener: Listener, hears: DeltaListener | None) -> None:
        run_id, call = self.trace.run_id, {"on_event": listener, "on_delta": hears, **self._call}
        try:
            if self.trace.events:
                await self.agent.resume(run_id, **call)
            else:
                await self.agent.run(run_id=run_id, started_by=options.starter(), **call)
        finally:
            with suppress(Exception):
                await bind(self.agent).model.close()
                await self.agent.close()

    def report_orphaned_runs(self, env: Mapping[str, str], *, recover: bool) -> None:
        """Report on standard error the runs whose processes died; with `recover` resume those of this agent first."""
        agent, path = self.agent, stored_at(self.agent.journal)
        self.agent = replace(agent, recover_on_start=False)  # it is done here
        if path is None or not (orphan_count := count_orphaned_runs(path)):
            return
        if recover or agent.recover_on_start:

            def report_recovered(recovered: Recovered) -> None:
                status, text = outcome(recovered)
                values = {"run_id": recovered.run_id, "status": status, "text": one_line(text)}
                self.report("run {run_id}, left unfinished, is now {status}: {text}", **values)

            asyncio.run(recover_with(path, AgentOptions(), env, report_recovered, only=agent))
            orphan_count = count_orphaned_runs(path)
        if orphan_count:
            db = None if path == database(None, env) else str(path)
            self.report(
                "{n} run was left unfinished by a process that died. Resume it: {command}"
                "|{n} runs were left unfinished by processes that died. Resume them: {command}",
                n=orphan_count,
                command=f"tao recover{options.db_argument(db)}",
            )

    def report(self, text: str, /, **values: object) -> None:
        """One line on standard error, in the language that shows the run."""
        print_stderr(translate(text, view_language(self.language, sys.stderr), **values))

    def _print_outcome(self, stopper: SignalStopper, view: JsonView | LiveView, stream: TextIO) -> None:
        """The last lines: a summary, and the commands that decide on what waits and resume the run.

        Raises:
            BrokenPipeError: nobody reads the output any more.
            OutputError: the output could not be written.
        """
        trace = self.trace
        if stopper.code == exits.BROKEN_PIPE:
            raise BrokenPipeError
        command_line = resume_line(trace, self._db) if trace.events else None
        if stopper.lost is not None:
            resume = translate("Resume the run: {command}", command=command_line)
            hint = resume if command_line else translate("The run is completed.")
            raise OutputError(stopper.lost.message, hint=hint)
        if isinstance(view, LiveView) and trace.events and trace.status != "running":
            view.pen.gap()
            view.pen.line(summary(trace, view.pen), "dim")
            stream.flush()
        for text, command in next_commands(trace, self._db) if trace.events else ():
            if isinstance(view, LiveView):
                view.pen.line(view.pen.text(text, command=command), "bold")
                stream.flush()
            else:
                self.report(text, command=command)

    def _exit_code(self, stopper: SignalStopper) -> int:
        """That of the signal that stopped the run, else that of its status."""
        status = self.trace.status
        if stopper.code is not None and status in ("stopped", "running"):
            return stopper.code
        return exits.FOUND if status == "running" else exits.OF_STATUS[status]


def new_session(
    chosen: AgentOptions, env: Mapping[str, str], task: str, db: str | None, after: str | None, given: Mapping[str, Any]
) -> RunSession:
    """What a new run needs, made and checked before anything is stored; `after` is the run that it continues."""
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
        spec = agent.spec_for(task)  # whatever is wrong with the agent is reported before anything is stored
        images = bind(agent).read_attachments([load_attachment(path) for path in given["attach"]])
        models = [spec.model, *(bind(inner).spec_for(task).model for inner in inner_agents(agent))]
    for model in models:
        require_extra(model)
    if notice := model_notice(configured, agent, env, view_language(spec.language, sys.stderr)):
        print_stderr(notice)
    if (path := stored_at(agent.journal)) is not None:
        make_private(path, expected=path == database(None, {}))
    trace = Trace(new_run_id(agent.clock.now()))
    call = {"task": task, "after": None if earlier is None else earlier.run_id, "images": images}
    return RunSession(agent, trace, spec.language, db, lessons_from=given["lessons_from"], **call)


def _resumed_session(
    chosen: AgentOptions, env: Mapping[str, str], prefix: str, db: str | None, *, can_ask: bool, how: dict[str, bool]
) -> RunSession:
    path = database_of(chosen, env, db)
    trace = load_run(path, prefix)
    run_id = trace.run_id
    if trace.status == "completed":
        hint = translate("Start a new run, or look at this one: tao show {run_id}", run_id=run_id)
        raise RunNotResumable(translate("The run {run_id} is completed.", run_id=run_id), hint=hint)
    limits = merge_limits(trace.limits, chosen.limits)
    limit = trace.finished.limit if trace.finished is not None else None
    if limit in options.LIMIT_OPTIONS and (allowed := getattr(limits, limit)) == getattr(trace.limits, limit):
        text = translate(
            "The run {run_id} has used up its {limit} of {allowed:g}.", run_id=run_id, limit=limit, allowed=allowed
        )
        raise ConfigError(text, hint=translate("Raise the limit: {command}", command=resume_line(trace, db)))
    language = view_language(trace.agent.language, sys.stderr)
    configured = replace(agent_of_run(trace.agent, chosen, env), journal=path)
    agent = with_mock_model(configured, chosen, env)
    if agent is not configured:
        print_stderr(model_notice(configured, agent, env, language))
    holder = None if how["kill_holder"] else holder_of(path, run_id)
    if holder is not None and can_ask and not how["take_over"]:
        text = mark("Another process{number} is working on run {run_id}; it loses the run if you take it over.")
        number = "" if holder.process is None else f" ({holder.process})"
        print_stderr(translate(text, language, run_id=run_id, number=number))
        question = mark("End that process and take over the run?") if holder.identity else mark("Take over the run?")
        how = how | {
            "kill_holder" if holder.identity else "take_over": confirm(translate(question, language), language)
        }
    if how["kill_holder"]:
        query_database(path, lambda journal: end_holder(journal, run_id))
        trace = load_run(path, run_id)  # it may have recorded its end
    elif not how["take_over"] or (holder is not None and holder.identity is not None):
        query_database(path, lambda journal: require_unlocked(journal, run_id))
    policy = replacement_policy(trace, chosen)
    call = {"limits": limits, "approved_tiers": chosen.approved_tiers, "policy": policy, **how}
    return RunSession(agent, trace, trace.agent.language, db, **call)


def read_task(text: str) -> str:
    """The task of a command; `-` reads standard input."""
    if text == "-":
        text = _standard_input()
    with suppress(UnicodeError):  # arguments as the process received them, whatever its locale can spell
        text = os.fsencode(text).decode("utf-8")
    if not (text := text.strip()):
        raise ConfigError(translate("The task is empty."), hint=translate('Say what the agent should do: tao run "…"'))
    return text


def _standard_input() -> str:
    """What comes as UTF-8, or in the encoding of the locale."""
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        with suppress(UnicodeDecodeError, LookupError):
            return data.decode(locale.getencoding())
        text = translate("The task on standard input is not text: {error}.", error=error)
        raise ConfigError(text, hint=translate("Send UTF-8.")) from error


@click.command("fork")
@click.argument("run_id", shell_complete=complete_run_ids)
@click.option("--at", type=click.IntRange(min=1), metavar="N", required=True, help="The step to decide again, from 1.")
@click.option("--edit", "edits", metavar="KIND=VALUE", multiple=True, help="An edit, see above; repeatable.")
@click.option("--no-run", is_flag=True, help="Only create the fork; `tao run --resume` runs it.")
@options.agent_option
@click.option("--model", metavar="SPEC", help="The model to continue with; default: that of the run.")
@options.fallback_option
@options.workspace_option
@options.memory_option
@options.limit_options
@options.approve_option
@options.db_option
@options.json_option("Events as JSON, one per line, including the copied ones.")
@options.verbose_option
def fork_command(
    run_id: str,
    at: int,
    edits: tuple[str, ...],
    no_run: bool,
    db: str | None,
    as_json: bool,
    verbose: bool,
    **arguments: Any,
) -> int:
    """Start a new run that copies RUN_ID up to step N, decides that step again, and continues from there.

    The steps before N are copied: none of their calls is made again, and their observations stay as they were.
    Effects are not rolled back: what the original run did stays done, and what the fork does happens now, perhaps
    for a second time. Approvals are not inherited: the fork asks again, unless --approve says otherwise. Limits
    include copied steps.

    Edits, as --edit KIND=VALUE (repeatable):
      task=TEXT                    the task
      instructions=TEXT            the instructions of the agent
      decision=JSON                what step N decides; its calls are judged and run
      thought=TEXT                 why step N decided so; its calls and observations stay
      observation=[CALL=]TEXT      what a call of step N returned; the decision stays
      error=[CALL=][CODE: ]TEXT    the same, but the call failed

    A decision is {"tool": NAME, "args": {...}}, {"calls": [...]} or {"answer": TEXT}, optionally with a "thought".
    After an edited thought or observation of step N, step N+1 is the first that is decided again. Name a CALL, such
    as call_2, if the step has several. If N is one above the last step of a run without an answer, the fork
    continues where that run ended. The `resumed` event of the fork records what was edited.

      tao fork RUN_ID --at 3
      tao fork RUN_ID --at 3 --edit observation='the shop is closed'
      tao fork RUN_ID --at 1 --edit instructions="Answer in one word." --no-run
      tao diff RUN_ID FORK_ID                                    where they differ
    """
    env = load_environment()
    chosen, parsed = AgentOptions.from_arguments(arguments), Edits.parse(edits)
    path = database_of(chosen, env, db)
    original = load_run(path, run_id)
    require_whole(path, original)  # else the fork would give an edited history a chain that is whole
    with capture_stdout() as stream:
        configured = replace(agent_of_run(original.agent, chosen, env), journal=path)
        agent = with_mock_model(configured, chosen, env)
        limits = merge_limits(original.limits, chosen.limits)
        fork = partial(fork_for, agent, run_id=original.run_id, at=at, edit=parsed, limits=limits)
        trace = query_database(path, fork, read_only=False)
        session = RunSession(agent, trace, original.agent.language, db, limits=trace.limits)
        text = mark("run {run_id} is a fork of {original} at step {step}")
        session.report(text, run_id=trace.run_id, original=original.run_id, step=at)
        if parsed.names:
            session.report("edited: {names}", names=", ".join(parsed.names))
        if as_json:
            write_events(stream, trace.run_id, trace.events)
        if no_run:
            session.report(RESUME, command=resume_line(trace, db))
            return exits.OK
        if agent is not configured:
            print_stderr(model_notice(configured, agent, env, view_language(session.language, sys.stderr)))
        return session.run(stream, as_json=as_json, verbose=verbose)


@click.command("recover")
@options.db_option
@options.agent_option
@click.option(
    "--after", type=click.FloatRange(min=0), metavar="SECONDS", help="Only runs without an event for this long."
)
@click.option("--dry-run", is_flag=True, help="List the runs without resuming them.")
@options.json_option("One JSON object per run and line.")
def recover_command(db: str | None, agent: str | None, after: float | None, dry_run: bool, as_json: bool) -> int:
    """Resume every run whose process died: killed, crashed, or cut off by a power failure.

    A run that a live process is working on is left alone. A call that was in progress is looked up, repeated if
    that is safe, or put before you: such a run then waits (`tao settle`). Runs that died again and again without
    progress, or whose outer run continued without them, are listed as `stuck` (exit code 1): they need a decision.

      tao recover --dry-run          only list the runs
      tao recover --after 3600       only runs without an event for an hour
    """
    env = load_environment()
    path, chosen = database(db, env), AgentOptions(agent=agent)
    with capture_stdout() as stream:
        if dry_run:
            orphan_runs = query_database(path, lambda journal: orphans(journal, silent_s=after))
            stuck = {trace.run_id: trace for trace in query_database(path, stuck_runs)}
            orphan_runs = [trace for trace in orphan_runs if trace.run_id not in stuck]
            for trace in orphan_runs:
                _write(stream, as_json, trace.run_id, "running", trace.task)
            count, failed = len(orphan_runs), 0
        else:
            query_database(path, lambda journal: journal.runs(limit=1))  # a database that is not there is not made

            def report(recovered: Recovered) -> None:
                _write(stream, as_json, recovered.run_id, *outcome(recovered))

            with stable_texts(as_json):
                done = asyncio.run(recover_with(path, chosen, env, report, silent_s=after))
            count = len(done)
            failed = sum(recovered.error is not None and not recovered.elsewhere for recovered in done)
            reported = {recovered.run_id for recovered in done}
            stuck = {trace.run_id: trace for trace in query_database(path, stuck_runs) if trace.run_id not in reported}
        for trace in stuck.values():
            text = translate("needs a decision: tao approvals {run_id}; tao resume {run_id}", run_id=trace.run_id)
            _write(stream, as_json, trace.run_id, "stuck", text)
    if not count and not stuck:
        print_stderr(translate("{path}: no run has lost its process.", path=path))
    return exits.FOUND if failed or stuck else exits.OK


async def recover_with(
    path: DatabaseAddress,
    chosen: AgentOptions,
    env: Mapping[str, str],
    report: Callable[[Recovered], None],
    *,
    silent_s: float | None = None,
    only: Agent | None = None,
) -> list[Recovered]:
    """Resume the orphaned runs of a database, with the agents that the runs name; `only` those of one agent."""
    agents: list[Agent] = []
    async with journal_at(path) as journal:

        def agent_for(trace: Trace) -> Agent | None:
            if only is not None and not belongs_to(trace, only):
                return None
            agent = replace(agent_of_run(trace.agent, chosen, env), journal=journal)
            agents.append(with_mock_model(agent, chosen, env))
            return agents[-1]

        try:
            return await recover(journal, agent_for, silent_s=silent_s, on_recovered=report)
        finally:
            for agent in agents:
                await agent.close()


def outcome(recovered: Recovered) -> tuple[str, str]:
    """The status of a run after its recovery, and why, for people."""
    if recovered.result is not None:
        return recovered.result.status, translate_error(recovered.result.reason)
    text = translate_error(recovered.error.message) if recovered.error is not None else ""
    return ("elsewhere" if recovered.elsewhere else "failed"), text


def _write(stream: TextIO, as_json: bool, run_id: str, status: str, text: str) -> None:
    if as_json:
        write_json_lines(stream, [{"run_id": run_id, "status": status, "text": text}])
        return
    stream.write(f"{run_id}  {status}  {one_line(text)}\n")
    stream.flush()
