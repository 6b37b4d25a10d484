"""`tao tools`: the cards of tools, what the linter finds, and what MCP servers changed about theirs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TextIO

import click
from rich.cells import cell_len

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.agent_loading import (
    AgentOptions,
    agent_from_options_unloaded,
    named_tools,
    no_tool_left,
    print_load_problems,
    skills_source,
)
from taoloop.cli.commands.source_changes import approve_source_changes
from taoloop.cli.database import database, load_environment, make_private, warn_if_workspace_is_new
from taoloop.cli.options import current_user
from taoloop.cli.translation import interface_language, join_on_one_line, translate
from taoloop.cli.ui.approval_prompt import confirm
from taoloop.cli.ui.event_view import console_for
from taoloop.cli.ui.stdio import (
    capture_stdout,
    one_line,
    print_stderr,
    strip_control_codes,
    write_json_lines,
)
from taoloop.config.agent_file import load_agent
from taoloop.config.document import is_config_file, read_document
from taoloop.config.tool_file import load_tools, tools_named
from taoloop.core.cards.card_lint import Finding, lint
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import Observed
from taoloop.core.policy import Policy
from taoloop.core.search import suggest_names
from taoloop.core.text import escape_invisible, join_sentences
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, RunNotFound, UnknownName
from taoloop.journals.addresses import DatabaseAddress, journal_at
from taoloop.journals.base import Journal
from taoloop.models.offline.planner import OfflineModel
from taoloop.models.scripted import Reply, ScriptedModel
from taoloop.runtime.agent import Agent
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.tool_source import ToolSource, sources_in
from taoloop.tools.builtin.catalog import builtin_tools
from taoloop.tools.settings_check import expand_home
from taoloop.tools.tool import Tool, expected_form
from taoloop.tools.toolbox import LoadProblem, Toolbox
from taoloop.translation import mark, translate_error

if TYPE_CHECKING:
    from taoloop.serve.gateway.config.model import GatewayConfig

_NO_SEARCH = 1_000_000
"""Up to this number operations have cards of their own: all of them."""

_NO_ENDPOINT = "https://endpoint.invalid"
"""The endpoint of a schema whose tools are only shown."""

_MOST_VALUES = 20
_LABEL_CELLS = 12


@click.command("tools")
@click.argument("names", nargs=-1)
@options.agent_option
@options.skills_option
@click.option("--openapi", metavar="DOCUMENT", help="Show the operations of this OpenAPI document, a path or URL.")
@click.option("--graphql", metavar="SCHEMA", help="Show the operations of this GraphQL schema, a file or an endpoint.")
@options.json_option("One JSON object per card and line, with `name`, `description`, `tier`, `input_schema` and more.")
@click.option("--lint", "linting", is_flag=True, help="Show what to improve; exit code 1 if there is anything.")
@click.option(
    "--approve-changes",
    "approving",
    is_flag=True,
    help="Show what MCP servers changed about their tools, and which skills are new or changed, and approve it.",
)
@click.option("--yes", is_flag=True, help="With --approve-changes: do not ask.")
def tools_command(
    names: tuple[str, ...],
    agent: str | None,
    skills: tuple[str, ...],
    openapi: str | None,
    graphql: str | None,
    as_json: bool,
    linting: bool,
    approving: bool,
    yes: bool,
) -> int:
    """Show the cards of tools: what a model reads, and what the executor enforces.

    Without NAMES, --agent, --openapi and --graphql: the built-in tools. A name is a built-in tool, module:attribute,
    or a tool file FILE.yaml; with a file or an agent, other names choose among its tools. What cannot be loaded is
    reported on standard error; the rest is shown.

      tao tools
      tao tools calculator lookup --json
      tao tools mytools:book_table --lint
      tao tools tools.yaml
      tao tools higress.yaml --lint               the operations of a file of the Higress plugin ai-agent
      tao tools tools.yaml shop_list --json
      tao tools --agent agent.yaml --lint         its tools, and effects of the agent that nobody guards
      tao tools gateway.yaml --lint               the same for the agents of a gateway, and who may use them
      tao tools --openapi openapi.yaml --json     every operation of an OpenAPI document (file or URL)
      tao tools --skills DIR                      the skills of a folder, and which of them are approved
      tao tools tools.yaml --approve-changes      what MCP servers and skills changed since you approved them
    """
    folders = tuple(map(skills_source, skills))
    if (openapi or graphql) and (names or agent is not None or folders or approving or (openapi and graphql)):
        option = "--openapi" if openapi else "--graphql"
        raise click.UsageError(
            translate("{option} shows one document; omit NAMES and the other sources.", option=option)
        )
    env = load_environment()
    with capture_stdout() as stream:
        if approving:
            plain = [name for name in names if not is_config_file(name)]
            return approve_source_changes(stream, (*_entries(names, agent, env), *folders), plain, yes=yes)
        loaded = _tools_of_document(openapi, graphql) or _load_tools(names, agent, folders, env)
        tools = loaded.tools
        _report(loaded)
        findings = {tool.name: (*lint(tool.card), *tool.findings) for tool in tools} if linting else {}
        advice = _agent_findings(loaded) if linting else {}
        if as_json:
            extras = {name: {"findings": list(map(asdict, rows))} for name, rows in findings.items()}
            records = [card_record(tool.card) | extras.get(tool.name, {}) for tool in tools]
            records += [{kind: name, "findings": list(map(asdict, rows))} for (kind, name), rows in advice.items()]
            write_json_lines(stream, records)
        else:
            console, language = console_for(stream), interface_language()
            texts = [findings_text(name, rows) for name, rows in findings.items()]
            texts += [findings_text(f"{kind} {name}", rows) for (kind, name), rows in advice.items()]
            for text in texts if linting else (card_text(tool.card_in(language)) for tool in tools):
                console.print(strip_control_codes(text), soft_wrap=not console.is_terminal)
    return exits.FOUND if any(findings.values()) or any(advice.values()) else exits.OK


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What is to be shown."""

    tools: Sequence[Tool]
    """The tools."""
    problems: Sequence[LoadProblem]
    """What cannot be loaded."""
    agents: Mapping[str, Agent] = field(default_factory=dict)
    """The agents all of whose tools are shown, by how they are called."""
    gateway: GatewayConfig | None = None
    """The gateway that serves them."""


def _report(loaded: _Loaded) -> None:
    """Report what cannot be loaded, and refuse to show nothing."""
    for problem in loaded.problems:
        print_stderr(one_line(translate_error(str(problem))))
    if loaded.problems and not loaded.tools:
        raise no_tool_left()
    if not loaded.tools:
        hint = translate("Start with `tools: [calculator]`.")
        raise ConfigError(translate("There is no tool to show: the file names none."), hint=hint)


def _agent_findings(loaded: _Loaded) -> dict[tuple[str, str], list[Finding]]:
    """What nobody guards about the agents, by `agent` and its name; and about their `gateway`, by its host."""
    from taoloop.serve.agent_lint import lint_agent, lint_gateway  # noqa: PLC0415  # only where agents are linted

    findings = {("agent", name): lint_agent(agent) for name, agent in loaded.agents.items()}
    if (gateway := loaded.gateway) is not None:
        findings["gateway", gateway.host] = lint_gateway(gateway)
    return findings


def _load_tools(
    names: Sequence[str], agent: str | None, folders: Sequence[ToolSource], env: Mapping[str, str]
) -> _Loaded:
    files = [name for name in names if is_config_file(name)]
    plain = [name for name in names if name not in files]
    if agent is None and not files and not folders:
        return _Loaded([_single_tool(name, env) for name in plain] or list(builtin_tools(None).values()), ())
    tools: list[Tool] = []
    problems: list[LoadProblem] = []
    agents: dict[str, Agent] = {}
    gateway = None
    if agent is not None:
        loaded_agent = load_agent(agent, env=env)
        problems += [problem for source in sources_in(loaded_agent.tools) for problem in source.take_problems()]
        tools += loaded_agent.toolbox
        agents[loaded_agent.name] = loaded_agent
        asyncio.run(loaded_agent.close())
    for file in files:
        if (config := _gateway_config(file, env)) is not None:
            gateway = config
            served = {name: entry.agent for name, entry in config.agents.items()}
            tools += {tool.name: tool for each in served.values() for tool in each.toolbox}.values()
            agents |= served
            continue
        if (gateway_tools := _ai_agent_tools(file, env)) is not None:
            tools += gateway_tools
            continue
        loaded = load_tools(file, env=env)
        loaded.close()
        tools += loaded.tools
        problems += loaded.problems
    loaded_folders = [folder.loaded() for folder in folders]
    tools += [tool for folder in loaded_folders for tool in folder.tools]
    problems += [problem for folder in loaded_folders for problem in folder.problems]
    box = Toolbox(tools)
    chosen = [_single_tool(name, env) if ":" in name else box.get(name) for name in plain]
    return _Loaded(chosen or list(box), problems, {} if chosen else agents, None if chosen else gateway)


def _gateway_config(file: str, env: Mapping[str, str]) -> GatewayConfig | None:
    """What a gateway file says; None: it is another kind of file."""
    document = read_document(expand_home(file).absolute(), "a tool file")
    if "agents" not in document.data or "tools" in document.data or "handoffs" in document.data:
        return None
    from taoloop.serve.gateway.config.gateway_file import load_config  # noqa: PLC0415  # only for such a file

    return load_config(file, env=env)


def _ai_agent_tools(file: str, env: Mapping[str, str]) -> list[Tool] | None:
    """The tools of a file of the Higress plugin `ai-agent`, warnings about it reported; None: it is another kind."""
    document = read_document(expand_home(file).absolute(), "a tool file")
    if "tools" in document.data or not {"apis", "llm", "spec"} & document.data.keys():
        return None
    from taoloop.serve.gateway.config.host_overrides import HostOverrides  # noqa: PLC0415  # only for such a file
    from taoloop.serve.gateway.higress.file import is_ai_agent, read_higress  # noqa: PLC0415  # as above

    if not is_ai_agent(document.data):
        return None
    content = read_higress(document, env, HostOverrides())
    for warning in content.warnings:
        print_stderr(one_line(translate_error(warning)))
    return [tool for served in content.agents.values() for tool in served.agent.tools if isinstance(tool, Tool)]


def _entries(names: Sequence[str], agent: str | None, env: Mapping[str, str]) -> tuple[Any, ...]:
    """The tools and sources that files and an agent name; none of them is loaded."""
    entries = [item for name in names if is_config_file(name) for item in tools_named(name, env=env)]
    return (*(() if agent is None else load_agent(agent, env=env).tools), *entries)


def _single_tool(name: str, env: Mapping[str, str]) -> Tool:
    """A built-in tool, or that of module:attribute."""
    return next(iter(Agent(tools=named_tools([name], env)).toolbox))


def _tools_of_document(openapi: str | None, graphql: str | None) -> _Loaded | None:
    """Every operation of an OpenAPI document or a GraphQL schema, deprecated ones too; None: none is named."""
    if openapi is not None:
        from taoloop.tools.openapi import OpenapiSource, openapi_tools  # noqa: PLC0415  # only where one is named

        loaded = openapi_tools(OpenapiSource(document=openapi, include_deprecated=True, search_above=_NO_SEARCH))
    elif graphql is not None:
        from taoloop.tools.graphql import GraphqlSource, graphql_tools  # noqa: PLC0415  # as above

        is_endpoint = graphql.lower().startswith(("http://", "https://"))
        endpoint, schema_file = (graphql, "") if is_endpoint else (_NO_ENDPOINT, graphql)
        loaded = graphql_tools(
            GraphqlSource(endpoint=endpoint, schema_file=schema_file, operations=("*",), search_above=_NO_SEARCH)
        )
    else:
        return None
    return _Loaded(loaded.tools, loaded.problems)


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
    yield from _content_rows(card)
    limits = translate("{seconds:g} s, {n:,} bytes of arguments", seconds=card.timeout_s, n=card.max_input_bytes)
    yield translate("limits:"), limits


def _content_rows(card: ToolCard) -> Iterator[tuple[str, str]]:
    """What the calls read where that is fixed, and whether it was approved."""
    for number, content in enumerate(card.contents):
        if number == _MOST_VALUES:
            yield "", "…"
            return
        state = translate("approved") if content.trusted else translate("not approved: untrusted")
        text = f"{content.name} [{state}] {content.digest}"
        if content.tools is not None:
            named = ", ".join(content.tools) or translate("none")
            text = join_sentences(f"{text};", translate("says it needs: {tools}", tools=named))
        yield "" if number else translate("contents:"), text


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
        mark("no question in the same run"): card.repeatable,
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
    return join_sentences(*parts)


def findings_text(name: str, findings: Sequence[Finding]) -> str:
    """What the linter says, one finding a line."""
    if not findings:
        return translate("{tool}: nothing to improve", tool=name)
    return "\n".join(f"{name}: {f.field}: {translate_error(f'{f.message} {f.advice}')} [{f.code}]" for f in findings)


@click.command("call")
@click.argument("name", metavar="TOOL")
@options.tools_option("Where the tool comes from: a tool file FILE.yaml, module:attribute, or built-in names.")
@click.option(
    "--args",
    "args_text",
    metavar="JSON",
    default="{}",
    help="The arguments as an object; `-` reads them from standard input.",
)
@click.option("--yes", is_flag=True, help="Call without asking for confirmation.")
@options.agent_option
@options.workspace_option
@options.memory_option
@options.db_option
@options.json_option("One object: `tool`, `tier`, `ok`, `error`, `latency_s`, `run_id`, `output`.")
def call_command(
    name: str, tools: tuple[str, ...], args_text: str, yes: bool, db: str | None, as_json: bool, **arguments: Any
) -> int:
    """Call TOOL once with arguments of your own, and print its output.

    TOOL is one of the tools of --tools or --agent; without these options, a built-in tool or module:attribute. The
    arguments are checked first (exit code 2 if they do not fit). At a terminal a call that may change something
    shows its tier and asks for confirmation (exit code 8 for a no); in a script the command itself counts as the
    confirmation. The error of a tool that fails is one line (exit code 1).

      tao call calculator --args '{"expression": "3.5 ** 2"}'
      tao call shop_get_order --tools tools.yaml --args '{"id": 7}'
      tao call shop_cancel --tools tools.yaml --args '{"id": 7}'
      tao call shop_create --tools tools.yaml --args - < order.json

    The call is handled like a call of an agent: judged by the policy, bound by its limits, with secrets redacted,
    and recorded as a run of its own for `tao runs`, `tao show` and `tao undo`.
    """
    env = load_environment()
    with capture_stdout() as stream:
        tool_names = options.split_repeated(tools) or ((name,) if arguments["agent"] is None else None)
        try:
            agent = agent_from_options_unloaded(AgentOptions(tools=tool_names, **arguments), env)
            with warn_if_workspace_is_new(agent.workspace):
                agent, tool = _with_one(agent, None if ":" in name and tool_names == (name,) else name)
        except UnknownName as error:
            raise _unknown(error, name, without_file=tool_names == (name,)) from None
        text = (sys.stdin.read() if args_text == "-" else args_text).strip()
        tool.prepare(options.json_object(text))
        try:
            if not yes and sys.stdin.isatty() and sys.stderr.isatty() and not _is_confirmed(tool, text):
                return exits.OF_STATUS["waiting"]
            db_path = database(db, env)
            make_private(db_path, expected=db_path == database(None, {}))
            language = "zh" if interface_language() == "zh" and not as_json else agent.language
            outcome = asyncio.run(_run_call(replace(agent, language=language), tool, text, db_path))
            return _print_result(stream, tool, outcome, db_path, as_json=as_json)
        finally:
            asyncio.run(agent.close())


def _with_one(agent: Agent, name: str | None) -> tuple[Agent, Tool]:
    """The agent with the tool of this name alone (None: its first one). Only what may have it is loaded.

    Raises:
        UnknownName: there is none; what is wrong with the sources is reported before.
    """
    entries: list[Any] = list(agent.tools)
    sources = sorted(sources_in(entries), key=lambda source: _distance(source, name or ""))
    plain = replace(agent, tools=tuple(entry for entry in entries if not isinstance(entry, ToolSource)))
    marks: tuple[Any, ...] = tuple(source for source in sources if source.given_as)
    if name is None or name in plain.toolbox:
        tool = plain.toolbox.get(name) if name is not None else next(iter(plain.toolbox))
        agent_entry: Any = tool if tool.name not in agent.tools else tool.name
        return replace(agent, tools=(agent_entry, *marks)), tool
    for source in sources:
        if match := next((candidate for candidate in source.loaded().tools if candidate.name == name), None):
            return replace(agent, tools=(match, *marks)), match
    print_load_problems(agent)
    return agent, agent.toolbox.get(name)


def _unknown(error: UnknownName, name: str, *, without_file: bool) -> UnknownName:
    """The error for a name that no tool has, with what may have been meant."""
    near = suggest_names(name, error.known, at_most=1)
    hints = [translate("Did you mean {name!r}?", name=near[0])] if near else []
    if without_file:
        hints.append(translate("For a tool of a file add --tools FILE.yaml."))
    return UnknownName(error.what, error.name, error.known, hint=" ".join(hints)) if hints else error


def _distance(source: ToolSource, name: str) -> int:
    """How likely a source has a tool of this name, 0 most: names of tools begin with that of their source, if any."""
    prefix = getattr(source.settings, "name", "")
    return (0 if name.startswith(prefix) else 2) if prefix else 1


def _is_confirmed(tool: Tool, args: str) -> bool:
    """Whether to make the call: it only reads, or the person confirms it. `args` are shown as they were typed."""
    tier = tool.card.tier
    if tier == "read" and not tool.card.requires_approval:
        return True
    call = f"{tool.name} [{tier or translate(options.NO_TIER)}] {args}"
    return confirm(f"{escape_invisible(call)}\n" + translate("Call it?"))


async def _run_call(agent: Agent, tool: Tool, args: str, db_path: DatabaseAddress) -> tuple[Result, str]:
    """A run that is this call, and the whole output. The arguments go on as they were typed, digits and all."""
    replies: list[Reply] = [
        {"tool_calls": [{"name": tool.name, "args": args}]},
        translate("The call was made.", agent.language),
    ]
    policy = agent.policy if isinstance(agent.policy, Policy) else Policy(profile=agent.policy)
    run = replace(
        agent,
        model=ScriptedModel(replies, spec=OfflineModel().spec, strict=False),
        fallback=(),
        name="by hand",
        dialect="native",
        strategy="react",
        policy=replace(policy, observations="shown"),
        instructions="",
        output_type=None,
        closing_turn=False,
        repair_turns=0,
        early_reads=False,
        recover_on_start=False,
        approve=_approver(current_user(None)),
    )
    async with journal_at(db_path) as journal:
        run_id = new_run_id(agent.clock.now())
        try:
            result = await replace(run, journal=journal).run(f"Call {tool.name} with {args}", run_id=run_id)
        except asyncio.CancelledError:
            await _report_doubt(journal, run_id, db_path)
            raise
        observed = _observed(result)
        if observed is None or observed.artifact is None:
            return result, observed.output if observed is not None else ""
        whole = await journal.artifact(result.run_id, observed.artifact)
        return result, whole.body if whole is not None else observed.output


async def _report_doubt(journal: Journal, run_id: str, db_path: DatabaseAddress) -> None:
    """Report a call that was stopped in the middle: nobody knows its outcome."""
    try:
        calls = Trace(run_id, await journal.load(run_id)).calls.values()
    except RunNotFound:  # stopped before it began
        return
    for call in calls:
        if call.started_at is not None and call.observed is None:
            text = translate(
                "{tool} was stopped while it ran: it may have happened or not. Check before you repeat it."
                " See: {command}",
                tool=call.requested.tool,
                command=f"tao show {run_id} --db {db_path}",
            )
            print_stderr(one_line(text))


def _approver(name: str) -> Any:
    """Approves in the name of the person, who has seen the call; the outcome of a lost call is left open."""

    def approve(request: ApprovalRequest) -> ApprovalAnswer | None:
        is_other = request.doubt or request.question is not None  # nothing is filled in for a person
        return None if is_other else ApprovalAnswer(approved=True, by=name, note="called by hand")

    return approve


def _observed(result: Result) -> Observed | None:
    return next((call.observed for call in result.trace.calls.values()), None)


def _print_result(
    stream: TextIO, tool: Tool, outcome: tuple[Result, str], db_path: DatabaseAddress, *, as_json: bool
) -> int:
    result, output = outcome
    observed = _observed(result)
    if observed is None:
        command = f"tao show {result.run_id} --db {db_path}"
        text = mark("{tool} returned nothing: {reason} See: {command}")
        print_stderr(one_line(translate(text, tool=tool.name, reason=result.reason, command=command)))
        return exits.OF_STATUS[result.status] or exits.FOUND
    fault = observed.error
    if as_json:
        record = {
            "tool": tool.name,
            "tier": tool.card.tier,
            "ok": observed.ok,
            "error": None if fault is None else {"code": fault.code, "message": fault.message, "hint": fault.hint},
            "latency_s": observed.latency_s,
            "run_id": result.run_id,
        }
        output_text = output if observed.ok and observed.form == "json" else json.dumps(output, ensure_ascii=False)
        head = json.dumps(record, ensure_ascii=False)
        stream.write(f'{head[:-1]}, "output": {output_text}}}\n')  # as it came: reading it would change digits
    elif observed.ok:
        stream.write(output + "\n")
    if fault is not None:
        error = translate_error(join_on_one_line(f"{fault.code}: {fault.message}", fault.hint))
        print_stderr(one_line(translate("{tool} failed: {error}", tool=tool.name, error=error)))
    return exits.OK if observed.ok else exits.FOUND
