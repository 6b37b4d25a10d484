"""`tao recover`: go on with every run that a dead process left behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from taoloop.cli import exits, options
from taoloop.cli.agents import Chosen, agent_of_run, under_mock
from taoloop.cli.environment import environment
from taoloop.cli.store import database, look
from taoloop.cli.streams import owning_stdout, say
from taoloop.cli.text import one_line
from taoloop.core.trace import Trace
from taoloop.journals.sqlite import SqliteJournal
from taoloop.runtime.agent import Agent
from taoloop.runtime.recovery import Recovered, orphans, recover

_HELP = """Go on with every run that lost its process: killed, crashed, or cut off by a power failure.

A run counts as lost when nothing was heard of it for longer than its calls may take; --after SECONDS says otherwise. A
call that was under way is looked into, repeated if that is safe, or put before you: such a run waits (`tao settle`).

\b
  tao recover --dry-run          only list them
  tao recover --after 0          all that are running, now: when no other process is at work
"""


@click.command("recover", help=_HELP)
@options.db_option
@options.agent_option
@click.option("--after", type=click.FloatRange(min=0), metavar="SECONDS", help="Silent for so long means lost.")
@click.option("--dry-run", is_flag=True, help="List the runs and leave them alone.")
@options.json_option("One JSON object per run and line.")
def command(db: str | None, agent: str | None, after: float | None, dry_run: bool, as_json: bool) -> int:
    """Take up what was left behind, one run after the other."""
    env = environment()
    path, chosen = database(db, env), Chosen(agent=agent)
    with owning_stdout() as stream:
        if dry_run:
            found = look(path, lambda journal: orphans(journal, silent_s=after))
            for trace in found:
                _tell(stream, as_json, trace.run_id, "running", trace.task)
            count, failed = len(found), 0
        else:
            look(path, lambda journal: journal.runs(limit=1))  # a database that is not there is not made
            done = asyncio.run(_recover(path, chosen, env, after, stream, as_json))
            count, failed = len(done), sum(one.error is not None for one in done)
    if not count:
        say(f"{path}: no run has lost its process.")
    return exits.FOUND if failed else exits.OK


async def _recover(
    path: Path, chosen: Chosen, env: Mapping[str, str], after: float | None, stream: TextIO, as_json: bool
) -> list[Recovered]:
    agents: list[Agent] = []
    async with SqliteJournal(path) as journal:

        def agent_for(trace: Trace) -> Agent:
            agents.append(under_mock(replace(agent_of_run(trace.agent, chosen, env), journal=journal), chosen, env))
            return agents[-1]

        def tell(one: Recovered) -> None:
            status = "failed" if one.result is None else one.result.status
            text = one.error.message if one.error is not None else one.result.reason if one.result is not None else ""
            _tell(stream, as_json, one.run_id, status, text)

        try:
            return await recover(journal, agent_for, silent_s=after, on_recovered=tell)
        finally:
            for agent in agents:
                await agent.close()


def _tell(stream: TextIO, as_json: bool, run_id: str, status: str, text: str) -> None:
    record = {"run_id": run_id, "status": status, "text": text}
    line = json.dumps(record, ensure_ascii=False) if as_json else f"{run_id}  {status}  {one_line(text)}"
    stream.write(f"{line}\n")
    stream.flush()
