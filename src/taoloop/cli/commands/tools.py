"""`tao tools`: the cards of tools, and what the linter says of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.agent_loading import named_tools
from taoloop.cli.dotenv import load_environment
from taoloop.cli.mcp_changes import approve
from taoloop.cli.ui.card_text import card_record, card_text, findings_text
from taoloop.cli.ui.event_view import console_for
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.cli.ui.terminal_text import one_line, strip_control_codes
from taoloop.config.agent_file import load_agent
from taoloop.config.document import is_config_file
from taoloop.config.tool_file import load_tools, tools_named
from taoloop.core.cards.card_lint import lint
from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import ConfigError
from taoloop.runtime.agent import Agent
from taoloop.runtime.tool_source import ToolSource, sources_in
from taoloop.tools.builtin.catalog import builtin_tools
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import LoadProblem, Toolbox

_NO_SEARCH = 1_000_000
"""So many operations have cards of their own: all of them."""

_HELP = """Show the cards of tools: what a model is told, and what the executor holds a call to.

Without NAMES, --agent and --openapi: the built-in tools. A name is that of a built-in tool, module:attribute, or a tool
file FILE.yaml; with a file or an agent, other names choose among its tools. What a file names and cannot be had is told
on standard error; the rest is shown.

\b
  tao tools
  tao tools calculator lookup --json
  tao tools mytools:book_table --lint
  tao tools tools.yaml
  tao tools tools.yaml shop_list --json
  tao tools --agent agent.yaml --lint
  tao tools --openapi openapi.yaml --json     every operation of an OpenAPI document (file or address)
  tao tools tools.yaml --approve-changes      what MCP servers changed about their tools since you allowed them
"""


@click.command("tools", help=_HELP)
@click.argument("names", nargs=-1)
@options.agent_option
@click.option("--openapi", metavar="DOCUMENT", help="The operations of this OpenAPI document: a path or an address.")
@options.json_option("One JSON object per card and line, with `name`, `description`, `tier`, `input_schema` and more.")
@click.option("--lint", "linting", is_flag=True, help="What to improve; exit code 1 if there is anything.")
@click.option(
    "--approve-changes",
    "approving",
    is_flag=True,
    help="Show what MCP servers changed about their tools, and allow it.",
)
@click.option("--yes", is_flag=True, help="With --approve-changes: without asking.")
def command(
    names: tuple[str, ...],
    agent: str | None,
    openapi: str | None,
    as_json: bool,
    linting: bool,
    approving: bool,
    yes: bool,
) -> int:
    """Print or lint the cards."""
    if openapi is not None and (names or agent is not None or approving):
        raise click.UsageError("--openapi shows one document; leave NAMES and the other sources away.")
    env = load_environment()
    with capture_stdout() as stream:
        if approving:
            plain = [name for name in names if not is_config_file(name)]
            return approve(stream, _sources(names, agent, env), plain, yes=yes)
        result = _of_document(openapi) if openapi is not None else _load_cards(names, agent, env)
        for problem in result.problems:
            print_stderr(one_line(str(problem)))
        if result.problems and not result.cards:
            raise ConfigError("There is no tool left.", hint="The lines before this one say what is wrong.")
        if not result.cards:
            raise ConfigError("There is no tool to show: none is named.", hint="Begin with `tools: [calculator]`.")
        findings = {card.name: lint(card) for card in result.cards} if linting else {}
        if as_json:
            for card in result.cards:
                extra = {"findings": [asdict(f) for f in findings[card.name]]} if linting else {}
                stream.write(json.dumps(card_record(card) | extra, ensure_ascii=False, default=str) + "\n")
        else:
            console = console_for(stream)
            for card in result.cards:
                text = findings_text(card, findings[card.name]) if linting else card_text(card)
                console.print(strip_control_codes(text), soft_wrap=not console.is_terminal)
    return exits.FOUND if any(findings.values()) else exits.OK


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be shown, and what cannot be."""

    cards: tuple[ToolCard, ...]
    problems: tuple[LoadProblem, ...] = ()


def _load_cards(names: Sequence[str], agent: str | None, env: Mapping[str, str]) -> _Found:
    files = [name for name in names if is_config_file(name)]
    plain = [name for name in names if name not in files]
    if agent is None and not files:
        builtin = tuple(tool.card for tool in builtin_tools(None).values())
        return _Found(tuple(_single_card(name, env) for name in plain) if plain else builtin)
    tools: list[Tool] = []
    problems: list[LoadProblem] = []
    if agent is not None:
        loaded_agent = load_agent(agent, env=env)
        problems += [problem for source in sources_in(loaded_agent.tools) for problem in source.untold()]
        tools += loaded_agent.toolbox
        asyncio.run(loaded_agent.close())
    for file in files:
        loaded = load_tools(file, env=env)
        loaded.close()
        tools += loaded.tools
        problems += loaded.problems
    box = Toolbox(tools)
    cards = (
        tuple(_single_card(name, env) if ":" in name else box.get(name).card for name in plain) if plain else box.cards
    )
    return _Found(cards, tuple(problems))


def _sources(names: Sequence[str], agent: str | None, env: Mapping[str, str]) -> tuple[ToolSource, ...]:
    """The sources that files and an agent name; none of them is loaded."""
    entries = [item for name in names if is_config_file(name) for item in tools_named(name, env=env)]
    return sources_in([*(() if agent is None else load_agent(agent, env=env).tools), *entries])


def _single_card(name: str, env: Mapping[str, str]) -> ToolCard:
    """The card of a built-in tool, or of module:attribute."""
    return Agent(tools=named_tools([name], env)).toolbox.cards[0]


def _of_document(document: str) -> _Found:
    """Every operation of an OpenAPI document, deprecated ones too, each with a card of its own."""
    from taoloop.tools.openapi import OpenapiSource, openapi_tools  # noqa: PLC0415  # only where one is named

    loaded = openapi_tools(OpenapiSource(document=document, include_deprecated=True, search_above=_NO_SEARCH))
    return _Found(tuple(tool.card for tool in loaded.tools), loaded.problems)
