"""`tao recover`: go on with every run that a dead process left behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.agent_loading import AgentOptions, agent_of_run, with_mock_model
from taoloop.cli.database import database, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.cli.ui.terminal_text import one_line
from taoloop.core.trace import Trace
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.after.recovery import Recovered, belongs_to, orphans, recover
from taoloop.runtime.agent import Agent

_HELP = """Go on with every run that lost its process: killed, crashed, or cut off by a power failure.

What a live process is at work on is left alone. A call that was under way is looked into, repeated if that is safe, or
put before you: such a run waits (`tao settle`).

\b
  tao recover --dry-run          only list them
  tao recover --after 3600       only those of which nothing was heard for an hour
"""


@click.command("recover", help=_HELP)
@options.db_option
@options.agent_option
@click.option("--after", type=click.FloatRange(min=0), metavar="SECONDS", help="Only runs silent for so long.")
@click.option("--dry-run", is_flag=True, help="List the runs and leave them alone.")
@options.json_option("One JSON object per run and line.")
def command(db: str | None, agent: str | None, after: float | None, dry_run: bool, as_json: bool) -> int:
    """Take up what was left behind, one run after the other."""
    env = load_environment()
    path, chosen = database(db, env), AgentOptions(agent=agent)
    with capture_stdout() as stream:
        if dry_run:
            orphan_runs = query_database(path, lambda journal: orphans(journal, silent_s=after))
            for trace in orphan_runs:
                _tell(stream, as_json, trace.run_id, "running", trace.task)
            count, failed = len(orphan_runs), 0
        else:
            query_database(path, lambda journal: journal.runs(limit=1))  # a database that is not there is not made

            def tell(recovered: Recovered) -> None:
                _tell(stream, as_json, recovered.run_id, *outcome(recovered))

            done = asyncio.run(recover_with(path, chosen, env, tell, silent_s=after))
            count, failed = (
                len(done),
                sum(recovered.error is not None and not recovered.elsewhere for recovered in done),
            )
    if not count:
        print_stderr(f"{path}: no run has lost its process.")
    return exits.FOUND if failed else exits.OK


async def recover_with(
    path: Path,
    chosen: AgentOptions,
    env: Mapping[str, str],
    tell: Callable[[Recovered], None],
    *,
    silent_s: float | None = None,
    only: Agent | None = None,
) -> list[Recovered]:
    """Go on with what is left in a database, with the agents that the runs name; `only` those of one agent."""
    agents: list[Agent] = []
    async with SqliteJournal(path) as journal:

        def agent_for(trace: Trace) -> Agent | None:
            if only is not None and not belongs_to(trace, only):
                return None
            agents.append(
                with_mock_model(replace(agent_of_run(trace.agent, chosen, env), journal=journal), chosen, env)
            )
            return agents[-1]

        try:
            return await recover(journal, agent_for, silent_s=silent_s, on_recovered=tell)
        finally:
            for agent in agents:
                await agent.close()


def outcome(recovered: Recovered) -> tuple[str, str]:
    """How a run stands that was to be taken up, and why, for people."""
    if recovered.result is not None:
        return recovered.result.status, recovered.result.reason
    text = recovered.error.message if recovered.error is not None else ""
    return ("elsewhere" if recovered.elsewhere else "failed"), text


def _tell(stream: TextIO, as_json: bool, run_id: str, status: str, text: str) -> None:
    record = {"run_id": run_id, "status": status, "text": text}
    line = json.dumps(record, ensure_ascii=False) if as_json else f"{run_id}  {status}  {one_line(text)}"
    stream.write(f"{line}\n")
    stream.flush()
