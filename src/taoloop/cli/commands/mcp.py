"""`tao mcp`: tools and agents for MCP hosts."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.agent_loading import (
    AgentOptions,
    agent_from_options,
    default_tools,
    missing_package,
    policy_of,
    require_extra,
    with_mock_model,
)
from taoloop.cli.database import database, load_environment, make_private
from taoloop.cli.signals import signal_callbacks
from taoloop.cli.translation import interface_language, translate
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.config.document import is_config_file, read_document
from taoloop.config.import_attribute import load_attribute
from taoloop.config.tool_entries import TOOL_FILE_FIELDS
from taoloop.config.tool_file import load_tools
from taoloop.core.cards.tool_search import PAGING_TOOL
from taoloop.core.policy import Policy
from taoloop.errors import ConfigError
from taoloop.journals.addresses import DatabaseAddress, database_address
from taoloop.journals.base import Journal
from taoloop.policy import reject_unmatchable_rules
from taoloop.runtime.after.recovery import orphans
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.journal_access import JOURNALS
from taoloop.runtime.subagent import inner_agents
from taoloop.runtime.tool_call_run import ToolCallRuns
from taoloop.serve import mcp as mcp_server
from taoloop.tools.settings_check import expand_home
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox
from taoloop.translation import mark, set_interface_language, translate_error


@click.command("mcp")
@click.argument("sources", metavar="[SOURCE]...", nargs=-1)
@click.option(
    "--http", metavar="HOST:PORT", help="Serve over HTTP at this address instead of standard input and output."
)
@click.option(
    "--allow-host", metavar="NAME", multiple=True, help="A host name that clients use for the server; repeatable."
)
@click.option("--agent", metavar="AGENT", help="An agent to serve: FILE.yaml (or .json), or module:attribute.")
@click.option("--purpose", metavar="TEXT", default="", help="What the agent is for; the model of the host reads it.")
@click.option("--model", metavar="SPEC", help="The model of the served agents.")
@options.workspace_option
@options.memory_option
@options.db_option
@options.approve_option
@options.profile_option
@options.policy_option
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=64,
    metavar="N",
    help="The most calls at the same time (default: 64).",
)
def mcp_command(sources: tuple[str, ...], http: str | None, allow_host: tuple[str, ...], **arguments: Any) -> int:
    """Serve tools and agents to an MCP host, over standard input and output, or with --http over HTTP.

    A SOURCE is a tool file, an agent file, module:attribute (an agent, a tool, or a typed function), or the name of
    a built-in tool. Each tool is offered with its card; an agent is one tool that takes a task. Without a SOURCE: a
    calculator and a clock, and with --workspace tools for its files.

      tao mcp tools.yaml                             a host starts this command and talks to it
      tao mcp agent.yaml calculator --profile strict
      tao mcp tools.yaml --http 127.0.0.1:8000       hosts connect to http://127.0.0.1:8000/mcp

    Every call is a run (`tao runs`). A call that changes something needs the approval of the person at the host, if
    the host can ask; otherwise it is refused, unless --approve or a rule of --policy allows it. An address that
    other machines can reach needs a token, in the variable TAOLOOP_MCP_TOKEN.
    """
    if find_spec("mcp") is None:
        raise missing_package("tao mcp", "mcp", extra="mcp")
    if allow_host and http is None:
        raise click.UsageError(translate("--allow-host requires --http HOST:PORT."))
    env = load_environment()
    with capture_stdout() as stream:
        address = None
        if http is not None:
            address = mcp_server.parse_address(http, token=env.get("TAOLOOP_MCP_TOKEN"), names=allow_host)
        plan = _plan(sources, arguments, env)
        with plan.closing:
            return asyncio.run(_serve(plan, address, stream))


@dataclass(kw_only=True)
class _Plan:
    """What is to be served, before anything is open."""

    arguments: Mapping[str, Any]
    chosen: AgentOptions
    policy: Policy
    db: DatabaseAddress
    env: Mapping[str, str]
    tools: list[Tool] = field(default_factory=list)
    agents: list[Agent] = field(default_factory=list)
    closing: ExitStack = field(default_factory=ExitStack)
    """Closes what the tools of files hold open."""
    secrets: dict[str, str] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)


def _plan(sources: Sequence[str], arguments: Mapping[str, Any], env: Mapping[str, str]) -> _Plan:
    """What the command line names.

    Raises:
        ConfigError: a source cannot be used, or there is nothing to serve.
    """
    from taoloop.serve.mcp.dispatcher import QUESTION_TIMEOUT_S  # noqa: PLC0415  # loads the SDK

    chosen = AgentOptions.from_arguments({**arguments, "agent": None})
    policy = policy_of(Agent().policy, chosen)
    if policy.approval_timeout_s is None:
        policy = replace(policy, approval_timeout_s=QUESTION_TIMEOUT_S)
    plan = _Plan(arguments=arguments, chosen=chosen, policy=policy, db=database(arguments["db"], env), env=env)
    tool_names: list[Any] = []
    for source in dict.fromkeys(sources):
        _add_source(plan, source, tool_names)
    if arguments["agent"] is not None:
        plan.agents.append(_agent(plan, arguments["agent"]))
    if not sources and not plan.agents:
        tool_names = list(default_tools(chosen))
    if tool_names:
        box = Agent(tools=tool_names, **_tool_paths(chosen)).toolbox
        plan.tools += [tool for tool in box if tool.name != PAGING_TOOL]  # it reads runs; a host gets outputs whole
    if not plan.tools and not plan.agents:
        hint = translate("The lines above say what is wrong with the sources.")
        raise ConfigError(translate("There is nothing to serve."), hint=hint)
    if plan.tools:
        reject_unmatchable_rules(policy, {tool.name: tool.card for tool in plan.tools})
    for agent in plan.agents:
        for checked_agent in (agent, *inner_agents(agent)):
            require_extra(bind(checked_agent).spec_for("").model)
    return plan


def _tool_paths(chosen: AgentOptions) -> dict[str, Any]:
    paths = {"workspace": chosen.workspace, "memory": chosen.memory}
    return {name: None if path is None else str(_absolute(path)) for name, path in paths.items()}


def _absolute(path: str) -> Path:
    return expand_home(path).absolute()


def _add_source(plan: _Plan, source: str, tool_names: list[Any]) -> None:
    """Put one source where it belongs."""
    if is_config_file(source):
        if set(read_document(_absolute(source), "a tool file").data) - set(TOOL_FILE_FIELDS):
            plan.agents.append(_agent(plan, source))
            return
        loaded = load_tools(source, env=plan.env)
        plan.tools += loaded.tools
        plan.origins.update(dict.fromkeys((tool.name for tool in loaded.tools), str(_absolute(source))))
        for problem in loaded.problems:
            print_stderr(translate_error(str(problem)))
        plan.closing.callback(loaded.close)
        plan.secrets.update(loaded.secrets)
    elif ":" in source:
        attribute = load_attribute(source, Path.cwd())
        if isinstance(attribute, Agent):
            plan.agents.append(_agent(plan, source))
        else:
            for tool in Toolbox([attribute]):
                tool_names.append(tool)
                plan.origins[tool.name] = source
    else:
        tool_names.append(source)


def _agent(plan: _Plan, source: str) -> Agent:
    agent = agent_from_options(replace(plan.chosen, agent=source), plan.env)
    if agent.journal is None:
        agent = replace(agent, journal=plan.db)
    return with_mock_model(agent, plan.chosen, plan.env)


async def _serve(plan: _Plan, address: mcp_server.ListenAddress | None, stream: TextIO) -> int:
    """The exit code. The first Ctrl-C or SIGTERM is an orderly end, and the second one the end of the process."""
    dispatcher, stop = mcp_server.CallDispatcher(at_once=plan.arguments["at_once"]), asyncio.Event()
    exit_code = exits.OK

    def on_signal(code: int) -> None:
        nonlocal exit_code
        if stop.is_set():
            os._exit(code)
        exit_code = code
        stop.set()

    async def close_on_stop() -> None:
        await stop.wait()
        await dispatcher.close()

    codes = {signal.SIGINT: exits.INTERRUPTED, signal.SIGTERM: exits.TERMINATED}
    async with AsyncExitStack() as stack:
        stack.enter_context(signal_callbacks({number: partial(on_signal, code) for number, code in codes.items()}))
        server = mcp_server.make_server(await _offers(plan, dispatcher, stack))
        language = interface_language()
        set_interface_language("en")  # what hosts get outside of a run does not follow the locale
        closing = asyncio.create_task(close_on_stop())  # running calls end before their host is disconnected
        try:
            if address is None:
                await _over_stdio(server, stop, stream, language)
            else:
                await mcp_server.serve_http(
                    server,
                    address,
                    stop=stop,
                    on_ready=lambda url: print_stderr(translate("serving at {url}", language, url=url)),
                )
        finally:
            closing.cancel()
            await dispatcher.close()
            for agent in plan.agents:
                await agent.close()
    return exit_code


async def _offers(
    plan: _Plan, dispatcher: mcp_server.CallDispatcher, stack: AsyncExitStack
) -> list[mcp_server.CardTool | mcp_server.AgentAsTool]:
    """The tools and agents with what they need: their journals stay open as long as the server."""
    reported: set[DatabaseAddress] = set()

    async def opened(journal: Journal | str | DatabaseAddress | None) -> Journal:
        if journal is None or isinstance(journal, str | DatabaseAddress):
            path = database_address(journal) if journal is not None else plan.db
            make_private(path, expected=path == database(None, {}))
            journal = await stack.enter_async_context(JOURNALS.use(path))
            if path not in reported:
                reported.add(path)
                await _report_orphaned_runs(journal, path)
        return journal

    offers: list[mcp_server.CardTool | mcp_server.AgentAsTool] = []
    if plan.tools:
        calls = ToolCallRuns(
            journal=await opened(plan.db),
            policy=plan.policy,
            approved_tiers=plan.chosen.approved_tiers or (),
            redactor=redactor_for(plan.env, plan.secrets),
            **_tool_paths(plan.chosen),
            origins=plan.origins,
            cards=[tool.card for tool in plan.tools],
        )
        offers += [mcp_server.CardTool(tool=tool, calls=calls, desk=dispatcher) for tool in plan.tools]
    for agent in plan.agents:
        journal, purpose = await opened(agent.journal), plan.arguments["purpose"]
        offers.append(mcp_server.AgentAsTool(agent=agent, journal=journal, desk=dispatcher, purpose=purpose))
    return offers


async def _report_orphaned_runs(journal: Journal, path: DatabaseAddress) -> None:
    """Report the runs of processes that were killed. None of them is resumed here."""
    if count := len(await orphans(journal)):
        text = mark(
            "{path}: {n} run lost its process, possibly in the middle of a call; see: tao recover --dry-run"
            "|{path}: {n} runs lost their processes, possibly in the middle of a call; see: tao recover --dry-run"
        )
        print_stderr(translate(text, path=path, n=count))


async def _over_stdio(server: Any, stop: asyncio.Event, stream: TextIO, language: str) -> None:
    """Serve until the host closes its end or a signal comes. Nobody else reads or writes these streams meanwhile."""
    if sys.stdin.isatty():
        text = mark("serving over standard input and output; an MCP host should start this command. Ctrl-C ends it.")
        print_stderr(translate(text, language))
    with _owning_stdin() as read_fd:
        await mcp_server.serve_stdio(server, read_fd, stream.fileno(), stop=stop)


@contextmanager
def _owning_stdin() -> Iterator[int]:
    """A descriptor of standard input that no tool and no child process has; they read nothing."""
    own = os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    try:
        yield own
    finally:
        os.dup2(own, 0)  # `own` stays open: a thread may still read from it
