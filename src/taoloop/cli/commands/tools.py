"""`tao tools`: the cards of tools, what the linter finds, and what MCP servers changed about theirs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

import click
from rich.cells import cell_len

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.agent_loading import named_tools, no_tool_left
from taoloop.cli.dotenv import load_environment
from taoloop.cli.translation import interface_language, join_sentences, translate
from taoloop.cli.ui.approval_prompt import confirm
from taoloop.cli.ui.event_view import console_for
from taoloop.cli.ui.stdio import capture_stdout, escape_invisible, one_line, print_stderr, strip_control_codes
from taoloop.config.agent_file import load_agent
from taoloop.config.document import is_config_file
from taoloop.config.tool_file import load_tools, tools_named
from taoloop.core.cards.card_lint import Finding, lint
from taoloop.core.cards.tool_card import ToolCard
from taoloop.errors import ConfigError, TaoError
from taoloop.runtime.agent import Agent
from taoloop.runtime.tool_source import ToolSource, sources_in
from taoloop.tools.builtin.catalog import builtin_tools
from taoloop.tools.tool import Tool, expected_form
from taoloop.tools.toolbox import LoadProblem, Toolbox
from taoloop.translation import mark

if TYPE_CHECKING:
    from taoloop.tools.mcp import McpServer

_NO_SEARCH = 1_000_000
"""Up to this number operations have cards of their own: all of them."""

_MOST_VALUES = 20
_LABEL_CELLS = 12


@click.command("tools")
@click.argument("names", nargs=-1)
@options.agent_option
@click.option("--openapi", metavar="DOCUMENT", help="Show the operations of this OpenAPI document, a path or URL.")
@options.json_option("One JSON object per card and line, with `name`, `description`, `tier`, `input_schema` and more.")
@click.option("--lint", "linting", is_flag=True, help="Show what to improve; exit code 1 if there is anything.")
@click.option(
    "--approve-changes",
    "approving",
    is_flag=True,
    help="Show what MCP servers changed about their tools, and approve it.",
)
@click.option("--yes", is_flag=True, help="With --approve-changes: do not ask.")
def tools_command(
    names: tuple[str, ...],
    agent: str | None,
    openapi: str | None,
    as_json: bool,
    linting: bool,
    approving: bool,
    yes: bool,
) -> int:
    """Show the cards of tools: what a model is told, and what the executor enforces.

    Without NAMES, --agent and --openapi: the built-in tools. A name is a built-in tool, module:attribute, or a tool
    file FILE.yaml; with a file or an agent, other names choose among its tools. What cannot be loaded is reported
    on standard error; the rest is shown.

      tao tools
      tao tools calculator lookup --json
      tao tools mytools:book_table --lint
      tao tools tools.yaml
      tao tools tools.yaml shop_list --json
      tao tools --agent agent.yaml --lint
      tao tools --openapi openapi.yaml --json     every operation of an OpenAPI document (file or URL)
      tao tools tools.yaml --approve-changes      what MCP servers changed about their tools since you approved them
    """
    if openapi is not None and (names or agent is not None or approving):
        raise click.UsageError(translate("--openapi shows one document; omit NAMES and the other sources."))
    env = load_environment()
    with capture_stdout() as stream:
        if approving:
            plain = [name for name in names if not is_config_file(name)]
            return _approve_changes(stream, _sources(names, agent, env), plain, yes=yes)
        tools, problems = _tools_of_document(openapi) if openapi is not None else _load_tools(names, agent, env)
        for problem in problems:
            print_stderr(one_line(str(problem)))
        if problems and not tools:
            raise no_tool_left()
        if not tools:
            hint = translate("Start with `tools: [calculator]`.")
            raise ConfigError(translate("There is no tool to show: the file names none."), hint=hint)
        findings = {tool.name: lint(tool.card) for tool in tools} if linting else {}
        if as_json:
            for tool in tools:
                extra = {"findings": [asdict(finding) for finding in findings[tool.name]]} if linting else {}
                stream.write(json.dumps(card_record(tool.card) | extra, ensure_ascii=False, default=str) + "\n")
        else:
            console, language = console_for(stream), interface_language()
            for tool in tools:
                text = findings_text(tool.card, findings[tool.name]) if linting else card_text(tool.card_in(language))
                console.print(strip_control_codes(text), soft_wrap=not console.is_terminal)
    return exits.FOUND if any(findings.values()) else exits.OK


_Loaded = tuple[Sequence[Tool], Sequence[LoadProblem]]
"""The tools to show, and what cannot be loaded."""


def _load_tools(names: Sequence[str], agent: str | None, env: Mapping[str, str]) -> _Loaded:
    files = [name for name in names if is_config_file(name)]
    plain = [name for name in names if name not in files]
    if agent is None and not files:
        return [_single_tool(name, env) for name in plain] or list(builtin_tools(None).values()), ()
    tools: list[Tool] = []
    problems: list[LoadProblem] = []
    if agent is not None:
        loaded_agent = load_agent(agent, env=env)
        problems += [problem for source in sources_in(loaded_agent.tools) for problem in source.take_problems()]
        tools += loaded_agent.toolbox
        asyncio.run(loaded_agent.close())
    for file in files:
        loaded = load_tools(file, env=env)
        loaded.close()
        tools += loaded.tools
        problems += loaded.problems
    box = Toolbox(tools)
    chosen = [_single_tool(name, env) if ":" in name else box.get(name) for name in plain]
    return chosen or list(box), problems


def _sources(names: Sequence[str], agent: str | None, env: Mapping[str, str]) -> tuple[ToolSource, ...]:
    """The sources that files and an agent name; none of them is loaded."""
    entries = [item for name in names if is_config_file(name) for item in tools_named(name, env=env)]
    return sources_in([*(() if agent is None else load_agent(agent, env=env).tools), *entries])


def _single_tool(name: str, env: Mapping[str, str]) -> Tool:
    """A built-in tool, or that of module:attribute."""
    return next(iter(Agent(tools=named_tools([name], env)).toolbox))


def _tools_of_document(document: str) -> _Loaded:
    """Every operation of an OpenAPI document, deprecated ones too, each as a tool of its own."""
    from taoloop.tools.openapi import OpenapiSource, openapi_tools  # noqa: PLC0415  # only where one is named

    loaded = openapi_tools(OpenapiSource(document=document, include_deprecated=True, search_above=_NO_SEARCH))
    return loaded.tools, loaded.problems


def card_record(card: ToolCard) -> dict[str, Any]:
    """The card as data: name, `description` (its purpose, by the name that others use), tier, schema, and the rest."""
    record = asdict(card)
    first = {"name": card.name, "description": card.purpose, "tier": card.tier, "input_schema": record["input_schema"]}
    return first | record


def card_text(card: ToolCard) -> str:
    """The card in lines."""
    lines = [f"{card.name}  [{card.tier or translate(options.NO_TIER)}]", f"  {_indented(card.purpose, 2)}"]
    for label, text in _card_rows(card):
        padding = " " * max(_LABEL_CELLS - cell_len(label), label.endswith(":"))
        lines.append(f"  {label}{padding}{text}" if label else f"    {text}")
    return "\n".join(lines) + "\n"


def _card_rows(card: ToolCard) -> Iterator[tuple[str, str]]:
    if card.use_when:
        yield translate("use when:"), card.use_when
    if card.avoid_when:
        yield translate("avoid when:"), card.avoid_when
    yield translate("arguments:"), expected_form(card)
    for name, rule in card.parameters.items():
        if text := _rule_text(rule):
            yield "", f"{name}: {text}"
    if card.roles:
        yield translate("roles:"), ", ".join(f"{name} {role}" for name, role in card.roles.items())
    if card.ids:
        ids = (translate("{name} of a {kind}", name=name, kind=kind) for name, kind in card.ids.items())
        yield translate("ids:"), ", ".join(ids)
    yield from _effect_rows(card)
    for error in card.errors:
        retry = translate(" (retryable)") if error.retryable else ""
        yield translate("error {code}{retry}:", code=error.code, retry=retry), error.advice
    limits = translate("{seconds:g} s, {n:,} bytes of arguments", seconds=card.timeout_s, n=card.max_input_bytes)
    yield translate("limits:"), limits


def _effect_rows(card: ToolCard) -> Iterator[tuple[str, str]]:
    """What a call can do to the world, beyond the tier."""
    egress = card.egress
    if isinstance(egress, tuple):
        names = translate(" or ").join(egress)
        yield translate("egress:"), translate("if {arguments} is given", arguments=names)
    elif egress is not None:
        yield translate("egress:"), translate("yes") if egress else translate("no")
    elif card.tier in ("write", "destructive", None):
        yield translate("egress:"), translate("not declared: counts as yes")
    if card.requires_approval:
        yield translate("approval:"), translate("needed before each call")
    if card.tier == "read":
        return
    if card.compensation is not None:
        yield translate("undone by:"), card.compensation
    elif card.reversible is not None:
        yield translate("undone by:"), translate("hand") if card.reversible else translate("nothing")
    elif card.tier != "draft":
        yield translate("undone by:"), translate("not declared")
    features = {
        mark("probes"): card.probes,
        mark("transactional"): card.transactional,
        mark("no second effect under the same key"): card.idempotent,
    }
    if any(features.values()):
        yield translate("a repeat:"), ", ".join(translate(text) for text, holds in features.items() if holds)


def _indented(text: Any, by: int) -> str:
    """A text whose further lines are indented, too."""
    return str(text).strip().replace("\n", "\n" + " " * by)


def _rule_text(rule: Any) -> str:
    """What the schema of a parameter says beyond its type; empty: nothing."""
    if not isinstance(rule, Mapping):
        return ""
    parts = [_indented(rule["description"], 6)] if rule.get("description") else []
    values = rule.get("enum")
    if isinstance(values, list | tuple) and values:
        value_texts = [json.dumps(value, ensure_ascii=False, default=str) for value in values[:_MOST_VALUES]]
        listing = ", ".join(value_texts) + (", …" if len(values) > _MOST_VALUES else "")
        parts.append(translate("(one of {values})", values=listing))
    if rule.get("default") not in (None, "", [], {}):
        value = json.dumps(rule["default"], ensure_ascii=False, default=str)
        parts.append(translate("(default {value})", value=value))
    return " ".join(parts)


def findings_text(card: ToolCard, findings: Sequence[Finding]) -> str:
    """What the linter says, one finding a line."""
    if not findings:
        return translate("{tool}: nothing to improve", tool=card.name)
    return "\n".join(f"{card.name}: {f.field}: {f.message} {f.advice} [{f.code}]" for f in findings)


def _approve_changes(stream: TextIO, sources: Iterable[ToolSource], names: Sequence[str], *, yes: bool) -> int:
    """Show what changed, ask, and approve it as it was shown, for the servers called `names` (none: for all).

    Raises:
        ConfigError: there is no server, or none of a name.
        MissingExtra: the MCP SDK is not installed.
    """
    from taoloop.tools.mcp import McpServer  # noqa: PLC0415  # only where somebody asks for it

    servers = {source.settings.name: source.settings for source in sources if isinstance(source.settings, McpServer)}
    if unknown := [name for name in names if name not in servers]:
        hint = translate("There are: {names}.", names=", ".join(servers))
        raise ConfigError(translate("There is no MCP server called {name!r}.", name=unknown[0]), hint=hint)
    if not servers:
        hint = translate("Name a tool file that has one: tao tools FILE.yaml")
        raise ConfigError(translate("There is no MCP server here."), hint=hint)
    return max(
        _approve_server(stream, server, yes=yes) for name, server in servers.items() if not names or name in names
    )


def _approve_server(stream: TextIO, server: McpServer, *, yes: bool) -> int:
    from taoloop.tools.mcp import approve_changes, pending_changes  # noqa: PLC0415  # as above

    try:
        changes = pending_changes(server)
    except TaoError as error:
        print_stderr(one_line(join_sentences(f"{server.name}: {error.message}", error.hint)))
        return exits.FOUND
    stream.writelines(escape_invisible(f"{server.name}: {change}") + "\n" for change in changes)
    stream.flush()
    if not changes:
        print_stderr(translate("{server}: all its tools are as they were approved.", server=server.name))
        return exits.OK
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            text = mark("{server}: nothing was approved. Read the lines above, and add --yes to approve them.")
            print_stderr(translate(text, server=server.name))
            return exits.OF_STATUS["waiting"]
        if not confirm(translate("Approve this?|Approve these?", n=len(changes))):
            return exits.OF_STATUS["waiting"]
    approve_changes(server, changes)
    names = ", ".join(one_line(change.tool) for change in changes)
    print_stderr(translate("{server}: approved: {tools}.", server=server.name, tools=names))
    return exits.OK
