"""`tao fork`: a new run from a step of another one."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from taoloop.cli import exit_codes as exits, options
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
from taoloop.cli.translation import view_language
from taoloop.cli.ui.event_view import RESUME, resume_line
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.core.cards.tool_card import TIERS
from taoloop.core.stored_events import event_line
from taoloop.core.trace import Trace
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.after.fork import store_fork
from taoloop.runtime.after.fork_edits import Edits
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.translation import mark


@click.command("fork")
@click.argument("run_id")
@click.option("--at", type=click.IntRange(min=1), metavar="N", required=True, help="The step to decide again, from 1.")
@click.option("--edit", "edits", metavar="KIND=VALUE", multiple=True, help="An edit, see above; repeatable.")
@click.option("--no-run", is_flag=True, help="Only create the fork; `tao run --resume` runs it.")
@options.agent_option
@click.option("--model", metavar="SPEC", help="The model to continue with; default: that of the run.")
@click.option("--fallback", metavar="SPEC", multiple=True, help="A model to use when --model fails; repeatable.")
@options.workspace_option
@options.memory_option
@options.limit_options
@click.option("--approve", type=click.Choice(TIERS), help="Approve calls up to this tier in advance.")
@options.db_option
@options.json_option("Events as JSON, one per line, including the copied ones.")
@click.option("-v", "--verbose", is_flag=True, help="Show the raw output of the model.")
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
        trace = _forked(path, original, at, parsed, agent, chosen)
        session = RunSession(agent, trace, original.agent.language, db, limits=trace.limits)
        text = mark("run {run_id} is a fork of {original} at step {step}")
        session.report(text, run_id=trace.run_id, original=original.run_id, step=at)
        if parsed.names:
            session.report("edited: {names}", names=", ".join(parsed.names))
        if as_json:
            stream.writelines(event_line(trace.run_id, event) + "\n" for event in trace.events)
            stream.flush()
        if no_run:
            session.report(RESUME, command=resume_line(trace, db))
            return exits.OK
        if agent is not configured:
            print_stderr(model_notice(configured, agent, env, view_language(session.language, sys.stderr)))
        return session.run(stream, as_json=as_json, verbose=verbose)


def _forked(path: Path, original: Trace, at: int, edits: Edits, agent: Agent, chosen: AgentOptions) -> Trace:
    """The fork, in the database. Tiers are approved in advance as the present agent says."""

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
                check=bind(agent).require_resumable,
                redactor=bind(agent).redactor,
            )

    return asyncio.run(make())
