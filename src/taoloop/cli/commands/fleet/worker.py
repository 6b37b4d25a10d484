"""`tao worker`: a process that drives submitted runs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from taoloop.cli import options
from taoloop.cli.agent_loading import AgentOptions, agent_of_run, with_mock_model
from taoloop.cli.commands.fleet.submit import engine_option
from taoloop.cli.database import database, load_environment, make_private
from taoloop.cli.signals import signal_callbacks
from taoloop.cli.translation import translate
from taoloop.cli.ui.stdio import print_stderr
from taoloop.config.agent_file import load_agent
from taoloop.config.document import is_config_file
from taoloop.config.import_attribute import load_attribute
from taoloop.core.agent_spec import DEFAULT_QUEUE, AgentSpec
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.journals.addresses import DatabaseAddress, journal_at
from taoloop.runtime.after.recovery import AgentFor
from taoloop.runtime.agent import Agent
from taoloop.runtime.fleet.engines import open_engine, require_engine_address
from taoloop.runtime.fleet.worker import GRACE_S, Worker
from taoloop.translation import mark

_HEALTH_S = 60.0
_MOST_AGENTS = 64


@click.command("worker")
@options.db_option
@engine_option
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    multiple=True,
    default=(DEFAULT_QUEUE,),
    show_default=True,
    help="A queue to take runs from; repeatable.",
)
@click.option(
    "--agents",
    "sources",
    metavar="SOURCE",
    multiple=True,
    help="Agents: FILE.yaml, module:attribute, or a module with all of its agents; repeatable. Default: each run's own"
    " source.",
)
@click.option(
    "--concurrency", type=click.IntRange(min=1), metavar="N", default=10, show_default=True, help="Runs at once."
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=GRACE_S,
    show_default=True,
    help="How long SIGTERM waits for runs to come to a safe point.",
)
def worker_command(
    db: str | None,
    engine: str | None,
    queues: tuple[str, ...],
    sources: tuple[str, ...],
    concurrency: int,
    grace: float,
) -> int:
    """Drive submitted runs (`tao submit`) until SIGTERM or Ctrl-C. Start as many workers as you like.

    Workers on one machine share the runs of a database and take over those of a worker that dies. A worker that is to
    end leaves its runs to the others, without an event: it starts no further call, waits for those under way up to
    --grace, then abandons model calls; what a tool may have done by then is in doubt. A second signal ends it at once.

      tao worker
      tao worker --agents agent.yaml --agents shop.agents --concurrency 50
      tao worker --db runs.db --queue reports --grace 30
    """
    require_engine_address(engine or "")
    env = load_environment()
    path = database(db, env)
    agents = [agent for source in sources for agent in _agents_of(source, env)]
    make_private(path, expected=db is None)
    _log_to_stderr()
    return asyncio.run(_work(path, engine, queues, agents, env, concurrency, grace))


async def _work(
    address: DatabaseAddress,
    engine_address: str | None,
    queues: tuple[str, ...],
    agents: list[Agent],
    env: Mapping[str, str],
    concurrency: int,
    grace_s: float,
) -> int:
    sources = _SourceAgents(env)
    known: list[Agent] | AgentFor = agents or sources.find
    async with (
        journal_at(address) as journal,
        open_engine(engine_address, journal, queues=queues, concurrency=concurrency) as engine,
    ):
        worker = Worker(journal, known, engine, grace_s=grace_s)

        def stop() -> None:
            if worker.health.is_stopping:
                os._exit(0)  # the second signal
            worker.stop()

        health = asyncio.create_task(_report_health(worker))
        with signal_callbacks({signal.SIGINT: stop, signal.SIGTERM: stop}):
            names = ", ".join(sorted({agent.name for agent in agents})) or translate("those that the runs name")
            text = mark("Worker {process} serves {queues} of {path}; agents: {agents}.")
            print_stderr(translate(text, process=os.getpid(), queues=", ".join(queues), path=address, agents=names))
            try:
                await worker.run()
            finally:
                health.cancel()
                print_stderr(translate("Worker {process}: {health}", process=os.getpid(), health=worker.health))
        for agent in (*agents, *sources.agents):
            await agent.close()
    if len(asyncio.all_tasks()) > 1:  # a tool that does not let go: its run goes on elsewhere
        sys.stderr.flush()
        os._exit(0)
    return 0


async def _report_health(worker: Worker) -> None:
    """Log how the worker is, once a minute while anything happens."""
    log, last = logging.getLogger("taoloop.fleet"), worker.health
    while True:
        await asyncio.sleep(_HEALTH_S)
        if worker.health != last or worker.health.under_way:
            last = worker.health
            log.info("worker %d: %s", os.getpid(), last)


class _SourceAgents:
    """The agents that stored runs name as their source: each is made once."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._known: list[tuple[AgentSpec, Agent]] = []

    @property
    def agents(self) -> list[Agent]:
        """Those that were made."""
        return [agent for _, agent in self._known]

    def find(self, trace: Trace) -> Agent:
        """The agent of a run.

        Raises:
            ConfigError: its source is not here, or cannot be used.
        """
        for spec, agent in self._known:
            if spec == trace.agent:
                return agent
        chosen = AgentOptions()
        agent = with_mock_model(agent_of_run(trace.agent, chosen, self._env), chosen, self._env)
        self._known = [(trace.agent, agent), *self._known[: _MOST_AGENTS - 1]]
        return agent


def _agents_of(source: str, env: Mapping[str, str]) -> list[Agent]:
    """The agents of a file, of `module:attribute`, or all of a module.

    Raises:
        ConfigError: there is none.
    """
    if is_config_file(source) or ":" in source:
        return [replace(load_agent(source, env=env), env=env)]
    attributes = load_attribute(f"{source}:__dict__", Path.cwd())
    agents = {name: value for name, value in attributes.items() if isinstance(value, Agent)}
    if not agents:
        text = translate("The module {module!r} has no agents.", module=source)
        raise ConfigError(text, hint=translate("Give FILE.yaml, module:attribute, or a module that has some."))
    return [replace(agent, source=f"{source}:{name}") for name, agent in agents.items()]


def _log_to_stderr() -> None:
    """Log what happens to runs, with their ids, on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("taoloop")
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(logging.WARNING)
    logging.getLogger("taoloop.fleet").setLevel(logging.INFO)
