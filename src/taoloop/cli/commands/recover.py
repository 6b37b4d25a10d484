"""`tao recover`: resume every run whose process died."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.agent_loading import AgentOptions, agent_of_run, with_mock_model
from taoloop.cli.database import database, query_database
from taoloop.cli.dotenv import load_environment
from taoloop.cli.translation import translate
from taoloop.cli.ui.stdio import capture_stdout, one_line, print_stderr
from taoloop.core.trace import Trace
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.runtime.after.recovery import Recovered, belongs_to, orphans, recover
from taoloop.runtime.agent import Agent


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
    that is safe, or put before you: such a run then waits (`tao settle`).

      tao recover --dry-run          only list the runs
      tao recover --after 3600       only runs without an event for an hour
    """
    env = load_environment()
    path, chosen = database(db, env), AgentOptions(agent=agent)
    with capture_stdout() as stream:
        if dry_run:
            orphan_runs = query_database(path, lambda journal: orphans(journal, silent_s=after))
            for trace in orphan_runs:
                _write(stream, as_json, trace.run_id, "running", trace.task)
            count, failed = len(orphan_runs), 0
        else:
            query_database(path, lambda journal: journal.runs(limit=1))  # a database that is not there is not made

            def report(recovered: Recovered) -> None:
                _write(stream, as_json, recovered.run_id, *outcome(recovered))

            done = asyncio.run(recover_with(path, chosen, env, report, silent_s=after))
            count = len(done)
            failed = sum(recovered.error is not None and not recovered.elsewhere for recovered in done)
    if not count:
        print_stderr(translate("{path}: no run has lost its process.", path=path))
    return exits.FOUND if failed else exits.OK


async def recover_with(
    path: Path,
    chosen: AgentOptions,
    env: Mapping[str, str],
    report: Callable[[Recovered], None],
    *,
    silent_s: float | None = None,
    only: Agent | None = None,
) -> list[Recovered]:
    """Resume the orphaned runs of a database, with the agents that the runs name; `only` those of one agent."""
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
            return await recover(journal, agent_for, silent_s=silent_s, on_recovered=report)
        finally:
            for agent in agents:
                await agent.close()


def outcome(recovered: Recovered) -> tuple[str, str]:
    """The status of a run after its recovery, and why, for people."""
    if recovered.result is not None:
        return recovered.result.status, recovered.result.reason
    text = recovered.error.message if recovered.error is not None else ""
    return ("elsewhere" if recovered.elsewhere else "failed"), text


def _write(stream: TextIO, as_json: bool, run_id: str, status: str, text: str) -> None:
    record = {"run_id": run_id, "status": status, "text": text}
    line = json.dumps(record, ensure_ascii=False) if as_json else f"{run_id}  {status}  {one_line(text)}"
    stream.write(f"{line}\n")
    stream.flush()
