"""`tao fork`: a new run from a step of another one."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.agent_loading import (
    AgentOptions,
    agent_of_run,
    database_of,
    merge_limits,
    model_notice,
    with_mock_model,
)
from taoloop.cli.commands.run import RunSession
from taoloop.cli.database import load_run, require_whole
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.event_view import resume_command
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, terminal_language
from taoloop.core.cards.tool_card import TIERS
from taoloop.core.stored_events import event_line
from taoloop.core.trace import Trace
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.after.fork import store_fork
from taoloop.runtime.after.fork_edits import Edits
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.run_lock import require_resumable

_HELP = """Make a new run that begins as RUN_ID did and decides step N anew, and go on with it.

The steps before N are copied: nothing of them is done again, and their observations are what they were. The world is
not rolled back: what the original did stays done, and what the fork does is done in the world as it is now, perhaps for
a second time. Approvals are not inherited: the fork asks again, unless --approve says otherwise.

\b
--edit KIND=VALUE changes something on the way (repeatable):
  task=TEXT                  the task
  instructions=TEXT          the instructions of the agent
  decision=JSON              what step N decides: {"tool": NAME, "args": {...}}, {"calls": [...]} or
                             {"answer": TEXT}, with a "thought" beside it; calls are judged and run
  thought=TEXT               why step N decided so; its calls and observations stay
  observation=[CALL=]TEXT    what a call of step N gave; its decision stays
  error=[CALL=][CODE: ]TEXT  the same, but the call failed

With an edited thought or observation of step N, step N+1 is the first that is decided anew. A CALL, such as call_2, is
named where the step has several. Where N is one above the last step of a run that has no answer, the fork goes on where
that run ended. What was edited stands in the `resumed` event of the fork.

\b
  tao fork RUN_ID --at 3
  tao fork RUN_ID --at 3 --edit observation='the shop is closed'
  tao fork RUN_ID --at 1 --edit instructions="Answer in one word." --no-run
  tao diff RUN_ID FORK_ID                                    where they part
"""

_EN = {
    "made": "run {run_id} is a fork of {origin} at step {at}",
    "edited": "edited: {names}",
    "go_on": "Go on: {command}",
}
_ZH = {
    "made": "运行 {run_id} 是 {origin} 在第 {at} 步的分支",
    "edited": "已修改：{names}",
    "go_on": "继续：{command}",
}

_LIMITS = {
    "max_steps": "max_steps",
    "max_tool_calls": "max_tool_calls",
    "max_tokens": "max_tokens",
    "max_cost": "max_cost_usd",
    "max_time": "max_wall_s",
}


@click.command("fork", help=_HELP)
@click.argument("run_id")
@click.option("--at", type=click.IntRange(min=1), metavar="N", required=True, help="The step to decide anew, from 1.")
@click.option("--edit", "edits", metavar="KIND=VALUE", multiple=True, help="What is different; repeatable, see above.")
@click.option("--no-run", is_flag=True, help="Only make the fork; `tao run --resume` goes on with it.")
@options.agent_option
@click.option("--model", metavar="SPEC", help="The model that goes on; default: that of the run.")
@click.option("--fallback", metavar="SPEC", multiple=True, help="A model that answers where --model fails; repeatable.")
@options.workspace_option
@options.memory_option
@click.option(
    "--max-steps", type=click.IntRange(min=1), metavar="N", help="Decisions of the model, copied ones included."
)
@click.option("--max-tool-calls", type=click.IntRange(min=1), metavar="N", help="Tool calls, likewise.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens of all model calls, likewise.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Cost, likewise.")
@click.option("--max-time", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Wall time, likewise.")
@click.option("--approve", type=click.Choice(TIERS), help="Allow calls up to this tier without asking.")
@options.db_option
@options.json_option("Events as JSON, one per line, from the first copied one on.")
@click.option("-v", "--verbose", is_flag=True, help="Show the model's output as it came.")
def command(
    run_id: str,
    at: int,
    edits: tuple[str, ...],
    no_run: bool,
    db: str | None,
    as_json: bool,
    verbose: bool,
    **arguments: Any,
) -> int:
    """Fork the run, and go on with the fork."""
    env = load_environment()
    chosen, parsed = _chosen(arguments), Edits.parse(edits)
    path = database_of(chosen, env, db)
    original = load_run(path, run_id)
    require_whole(path, original)  # else the fork would give an edited history a chain that is whole
    language = original.agent.language
    with capture_stdout() as stream:
        configured = replace(agent_of_run(original.agent, chosen, env), journal=path)
        agent = with_mock_model(configured, chosen, env)
        trace = _forked(path, original, at, parsed, agent, chosen)
        _say(language, "made", run_id=trace.run_id, origin=original.run_id, at=at)
        if parsed.names:
            _say(language, "edited", names=", ".join(parsed.names))
        if as_json:
            stream.writelines(event_line(trace.run_id, event) + "\n" for event in trace.events)
            stream.flush()
        if no_run:
            _say(language, "go_on", command=resume_command(trace, db))
            return exits.OK
        if agent is not agent:
            print_stderr(model_notice(agent, agent, env, terminal_language(language, sys.stderr)))
        return RunSession(agent, trace, language, db, limits=trace.limits).run(stream, as_json=as_json, verbose=verbose)


def _forked(path: Path, original: Trace, at: int, edits: Edits, agent: Agent, chosen: AgentOptions) -> Trace:
    """The fork, in the database. The tiers allowed ahead are those that the agent of now allows."""

    async def make() -> Trace:
        async with SqliteJournal(path) as journal:
            return await store_fork(
                journal,
                original.run_id,
                at=at,
                now=agent.clock.now(),
                edit=edits,
                limits=merge_limits(original.limits, chosen.limits),
                approved_tiers=agent.approved_tiers,
                strategy=bind(agent).strategy,
                check=partial(require_resumable, toolbox=agent.toolbox),
                redactor=bind(agent).redactor,
            )

    return asyncio.run(make())


def _chosen(arguments: dict[str, Any]) -> AgentOptions:
    return AgentOptions(
        agent=arguments["agent"],
        model=arguments["model"],
        fallback=arguments["fallback"] or None,
        workspace=arguments["workspace"],
        memory=arguments["memory"],
        approve=arguments["approve"],
        limits={limit: arguments[option] for option, limit in _LIMITS.items() if arguments[option] is not None},
    )


def _say(language: str, name: str, **values: object) -> None:
    spoken_in = terminal_language(language, sys.stderr)
    print_stderr((_ZH if spoken_in == "zh" else _EN)[name].format(**values))
