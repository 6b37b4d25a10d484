"""`tao call`: one tool, called by hand."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.agent_loading import AgentOptions, agent_from_options_unloaded, print_load_problems
from taoloop.cli.database import database, make_private, warn_if_workspace_is_new
from taoloop.cli.dotenv import load_environment
from taoloop.cli.options import current_user
from taoloop.cli.translation import join_sentences, translate
from taoloop.cli.ui.approval_prompt import confirm
from taoloop.cli.ui.stdio import capture_stdout, escape_invisible, one_line, print_stderr
from taoloop.core.events import Observed
from taoloop.core.policy import Policy
from taoloop.core.search import suggest_names
from taoloop.core.trace import Trace
from taoloop.dialects.parsing.strict_json import NotJsonError, loads
from taoloop.errors import ConfigError, RunNotFound, UnknownName
from taoloop.journals.sqlite.journal import SqliteJournal
from taoloop.models.offline.planner import OfflineModel
from taoloop.models.scripted import Reply, ScriptedModel
from taoloop.runtime.agent import Agent
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest
from taoloop.runtime.engine.clock import new_run_id
from taoloop.runtime.result import Result
from taoloop.runtime.tool_source import ToolSource, sources_in
from taoloop.tools.tool import Tool
from taoloop.translation import mark

_EXAMPLE_ARGS = """'{"id": 7}'"""


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
        tool.prepare(_object(text))
        try:
            if not yes and sys.stdin.isatty() and sys.stderr.isatty() and not _is_confirmed(tool, text):
                return exits.OF_STATUS["waiting"]
            db_path = database(db, env)
            make_private(db_path, expected=db_path == database(None, {}))
            return _print_result(
                stream, tool, asyncio.run(_run_call(agent, tool, text, db_path)), db_path, as_json=as_json
            )
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


def _object(text: str) -> dict[str, Any]:
    """The arguments as JSON."""
    try:
        parsed = loads(text)
    except NotJsonError as error:
        hint = translate("Write an object in quotes: --args {example}.", example=_EXAMPLE_ARGS)
        raise ConfigError(translate("--args is not JSON: {error}.", error=error), hint=hint) from None
    if not isinstance(parsed, dict):
        hint = translate("Write one, such as --args {example}.", example=_EXAMPLE_ARGS)
        raise ConfigError(translate("--args is not a JSON object."), hint=hint)
    return parsed


def _is_confirmed(tool: Tool, args: str) -> bool:
    """Whether to make the call: it only reads, or the person confirms it. `args` are shown as they were typed."""
    tier = tool.card.tier
    if tier == "read" and not tool.card.requires_approval:
        return True
    call = f"{tool.name} [{tier or translate(options.NO_TIER)}] {args}"
    return confirm(f"{escape_invisible(call)}\n" + translate("Call it?"))


async def _run_call(agent: Agent, tool: Tool, args: str, db_path: Path) -> tuple[Result, str]:
    """A run that is this call, and the whole output. The arguments go on as they were typed, digits and all."""
    replies: list[Reply] = [{"tool_calls": [{"name": tool.name, "args": args}]}, "The call was made."]
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
    async with SqliteJournal(db_path) as journal:
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


async def _report_doubt(journal: SqliteJournal, run_id: str, db_path: Path) -> None:
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
        return None if request.doubt else ApprovalAnswer(approved=True, by=name, note="called by hand")

    return approve


def _observed(result: Result) -> Observed | None:
    return next((call.observed for call in result.trace.calls.values()), None)


def _print_result(stream: TextIO, tool: Tool, outcome: tuple[Result, str], db_path: Path, *, as_json: bool) -> int:
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
        error = join_sentences(f"{fault.code}: {fault.message}", fault.hint)
        print_stderr(one_line(translate("{tool} failed: {error}", tool=tool.name, error=error)))
    return exits.OK if observed.ok else exits.FOUND
