"""The MCP server and what it exposes, tools by their cards and agents as tools that take a task, in both eras.

One object serves over any transport.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol
from urllib.parse import quote

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError

import taoloop
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ApprovalRefused, Fault, Observed, RunStarted
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result, observation_text
from taoloop.errors import ConfigError, InvalidArguments
from taoloop.journals.base import Journal
from taoloop.runtime.agent import Agent
from taoloop.runtime.approvals.request import ApprovalAnswer, ApprovalRequest, Approver
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.clock import new_nonce
from taoloop.runtime.runner import Listener
from taoloop.runtime.subagent import egress_without_approval, tier_of
from taoloop.runtime.tool_call_run import ToolCallRuns
from taoloop.serve.mcp.dispatcher import (
    QUESTION_TIMEOUT_S,
    RUN_KEY,
    Answer,
    Arguments,
    CallDispatcher,
    Ctx,
    failed_result,
    refusal,
)
from taoloop.serve.texts import TEXTS
from taoloop.tools.tool import Tool, require_name

NAME = "taoloop"

INSTRUCTIONS = (
    "Tools and agents of taoloop. Every call is a run in the journal of the server; its id is in `_meta` as "
    "`taoloop/run_id`. A call that changes something may be put before a person first."
)

PAGE = 200
"""How many tools are on one page of the list."""

MAX_TASK_CHARS = 100_000

TIER_KEY = "taoloop/tier"
"""The field of `_meta` with the tier of a tool."""

MAX_RESULT_CHARS = 1_000_000
"""The longest output that a host gets in full. It gets a preview of a longer one; the journal has all of it."""

WRAPPER_FIELD = "result"
"""The only field of a structured result whose tool returns something other than an object."""

_MAX_LISTED = 12


class ExposedTool(Protocol):
    """One tool of the server: its entry in the list, and its calls."""

    @property
    def listed(self) -> types.Tool:
        """The entry in the list of tools."""

    async def call(self, ctx: Ctx, params: types.CallToolRequestParams) -> Answer:
        """Serve one call."""


# Tools


@dataclass(frozen=True, kw_only=True)
class CardTool:
    """A tool with a card. Each call is a run of its own."""

    tool: Tool
    """The tool."""

    calls: ToolCallRuns
    """Runs the calls, by the policy of the operator."""

    desk: CallDispatcher
    """Drives the runs, and asks the person at the host."""

    @property
    def listed(self) -> types.Tool:
        """The card in the form of MCP."""
        return listed_tool(self.tool.card)

    async def call(self, ctx: Ctx, params: types.CallToolRequestParams) -> Answer:
        """Serve one call, by the policy of the operator."""
        return await self.desk.serve(ctx, params, self)

    def language(self, _args: Arguments) -> str:
        """The language of its runs."""
        return self.calls.language

    async def start(self, args: Arguments, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Start the run of a call."""
        return await self.calls.start(self.tool, args, run_id=run_id, approver=approver, listener=listener)

    async def resume(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Resume it."""
        return await self.calls.resume(self.tool, run_id, approver=approver, listener=listener)

    async def result_for_host(self, result: Result) -> types.CallToolResult:
        """Its output."""
        return await result_of_call(self.calls.journal, result, self.tool.card)

    async def abandon(self, run_id: str) -> None:
        """Refuse its calls, so that nobody approves later what nobody waits for."""
        if Trace(run_id, await self.calls.journal.load(run_id)).status == "waiting":
            await self.calls.resume(self.tool, run_id, approver=self._refuse_abandoned)

    def _refuse_abandoned(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        return (
            None
            if request.doubt or request.question is not None
            else refusal(TEXTS.text(self.calls.language, "caller_gone"))
        )


def listed_tool(card: ToolCard) -> types.Tool:
    """The card in the form of MCP: hints follow from the tier, and the description says when to use the tool."""
    return types.Tool(
        name=card.name,
        title=_title(card.name),
        description=_description(card),
        input_schema={"type": "object", **card.input_schema},
        output_schema=output_schema(card),
        annotations=hints_of(card),
        _meta={TIER_KEY: card.tier or "destructive"},
    )


def hints_of(card: ToolCard) -> types.ToolAnnotations:
    """The hints for hosts. An undeclared tier counts as destructive, an undeclared egress as yes where possible."""
    reads = card.tier == "read"
    egress = card.egress
    if egress is None:
        egress = not reads or any(card.is_address(name) for name in card.parameters)
    return types.ToolAnnotations(
        title=_title(card.name),
        read_only_hint=reads,
        destructive_hint=card.tier in ("destructive", None),
        idempotent_hint=reads or card.idempotent,
        open_world_hint=bool(egress),
    )


def _title(name: str) -> str:
    return re.sub(r"[._-]+", " ", name).strip().capitalize() or name


def _description(card: ToolCard) -> str:
    lines = [card.purpose]
    if card.use_when:
        lines.append(f"Use when: {card.use_when}")
    if card.avoid_when:
        lines.append(f"Avoid when: {card.avoid_when}")
    lines += [f"Error {error.code}: {error.advice}" for error in card.errors if error.advice]
    return "\n".join(lines)


# Results of calls


def output_schema(card: ToolCard) -> dict[str, Any] | None:
    """The schema of the structured result: that of the card, or of an object around it; None where it has none."""
    if card.output_schema is None:
        return None
    schema = dict(card.output_schema)
    if not needs_wrapper(card):
        return schema
    outer: dict[str, Any] = {key: schema.pop(key) for key in ("$defs", "definitions", "$schema") if key in schema}
    if _references_root(schema) or _references_root(outer):
        return None  # the reference to the whole schema would now mean another one
    return {**outer, "type": "object", "properties": {WRAPPER_FIELD: schema}, "required": [WRAPPER_FIELD]}


def needs_wrapper(card: ToolCard) -> bool:
    """Whether the result of a tool must be wrapped in an object: hosts before 2026 accept nothing else."""
    return card.output_schema is not None and card.output_schema.get("type") != "object"


def _references_root(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref.startswith("#") and not ref.startswith(("#/$defs/", "#/definitions/")):
            return True
        return any(_references_root(part) for part in schema.values())
    return isinstance(schema, list) and any(_references_root(part) for part in schema)


async def result_of_call(journal: Journal, result: Result, card: ToolCard) -> types.CallToolResult:
    """The result of a run that is one call."""
    call = next(iter(result.trace.calls.values()), None)
    fail = partial(failed_result, run_id=result.run_id)
    if call is None or call.observed is None:  # it waits, but not for an answer that the host could give
        return fail(
            "in_doubt",  # no failure, and not to be repeated
            "The call was started and gave no result in time: it may have happened, or may still happen.",
            f"Find out before you repeat it. The operator of `tao mcp` resolves it: tao settle {result.run_id} call_1",
        )
    observed = call.observed
    if isinstance(call.approval, ApprovalRefused):
        return fail("refused", f"The call was not made: {call.approval.note or 'it was refused'}.", "")
    if not observed.ok:
        fault = observed.error or Fault(code="failed", message="It failed.")
        return fail(fault.code, fault.message, fault.hint, retryable=fault.retryable)
    if observed.size_chars > MAX_RESULT_CHARS:
        return _too_long(observed, result.run_id, card)
    text = observed.output
    if observed.artifact is not None and (whole := await journal.artifact(result.run_id, observed.artifact)):
        text = whole.body
    value: Any = text
    if observed.form == "json":
        try:
            value = json.loads(text)
        except ValueError:  # Python parses no integer with more than some thousand digits
            reason = "The call was made, but its output has numbers that no host can read."
            return fail("invalid_output", reason, "Do not repeat it only because of this.")
    structured = {WRAPPER_FIELD: value} if needs_wrapper(card) else value
    if not isinstance(structured, dict) or (card.output_schema is not None and output_schema(card) is None):
        structured = None
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    stored = [await journal.artifact(result.run_id, image.ref) for image in observed.images]
    content += [types.ImageContent(type="image", data=image.body, mime_type=image.form) for image in stored if image]
    for file in observed.files:
        if (whole := await journal.artifact(result.run_id, file.ref)) is not None:
            uri = f"taoloop://{result.run_id}/{file.ref}/{quote(file.file_name)}"
            blob = types.BlobResourceContents(uri=uri, mime_type=file.media_type, blob=whole.body)
            content.append(types.EmbeddedResource(type="resource", resource=blob))
    return types.CallToolResult(content=content, structured_content=structured, _meta={RUN_KEY: result.run_id})


def _too_long(observed: Observed, run_id: str, card: ToolCard) -> types.CallToolResult:
    message = (
        f"The output has {observed.size_chars:,} characters; a result holds {MAX_RESULT_CHARS:,}. This is its preview:"
        f"\n\n{observation_text(observed)}\n\nThe full output is kept in the run {run_id}. Ask for less."
    )
    if output_schema(card) is not None:  # hosts validate a result that is not an error
        return failed_result("output_too_long", message, "", run_id=run_id)
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], _meta={RUN_KEY: run_id})


# Agents

_TASK = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_TASK_CHARS,
            "description": "What the agent should do, with everything that it needs to know: it sees nothing else.",
        }
    },
    "required": ["task"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class AgentAsTool:
    """An agent as one tool: it takes a task and gives the answer.

    The task comes from the host's model, and counts as the task of the agent's user: values in it count as the user's
    own. The person at the host answers what the agent's policy asks.
    """

    agent: Agent
    """The agent."""

    journal: Journal
    """Keeps the runs."""

    desk: CallDispatcher
    """Drives the runs, and asks the person at the host."""

    purpose: str = ""
    """What the agent is for, as the host's model reads it; by default its name."""

    @property
    def listed(self) -> types.Tool:
        """The agent as a tool."""
        return listed_tool(self.card)

    @cached_property
    def card(self) -> ToolCard:
        """The card of the tool: its tier is what the agent can do without approval."""
        names = [tool.name for tool in self.agent.toolbox if tool.card.name != "read_observation"]
        more = ", …" if len(names) > _MAX_LISTED else ""
        tools = f" It has these tools: {', '.join(names[:_MAX_LISTED])}{more}." if names else ""
        answers = bind(self.agent).output_validator
        output = {} if answers is None else {"output": {"description": "The answer as data."}}
        return ToolCard(
            name=require_name(re.sub(r"[^A-Za-z0-9._-]+", "_", self.agent.name)[:64] or "agent"),
            purpose=(self.purpose or f"Give a task to the agent {self.agent.name!r} and get its answer.") + tools,
            input_schema=_TASK,
            output_schema={
                "type": "object",
                "properties": {
                    "run_id": {"type": "string", "description": "The run, in the journal of who serves the agent."},
                    "status": {"type": "string", "description": "`completed`, or how the run ended without an answer."},
                    "answer": {"type": ["string", "null"]},
                    "reason": {"type": "string"},
                    "steps": {"type": "integer"},
                    **output,
                },
                "required": ["run_id", "status", "answer", "reason", "steps"],
            },
            tier=tier_of(self.agent),
            egress=egress_without_approval(self.agent),
        )

    async def call(self, ctx: Ctx, params: types.CallToolRequestParams) -> Answer:
        """Run the agent."""
        return await self.desk.serve(ctx, params, self)

    def language(self, args: Arguments) -> str:
        """The language of the task."""
        return self.agent.spec_for(self._task(args)).language

    async def start(self, args: Arguments, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Start the agent's run."""
        task = self._task(args)
        started = RunStarted(task=replace_surrogates(task), agent=self.agent.spec_for(task), nonce=new_nonce())
        return await bind(self.agent).start(self.journal, Trace(run_id), started, listener=listener, approver=approver)

    async def resume(self, run_id: str, approver: Approver, listener: Listener | None) -> Result:
        """Resume it."""
        bound = bind(self.agent)
        trace = await bound.load_resumable(self.journal, run_id)
        return await bound.continue_run(
            self.journal,
            trace,
            limits=trace.limits,
            listener=listener,
            approver=approver,
            at=len(trace),
            take_over=False,
        )

    async def result_for_host(self, result: Result) -> types.CallToolResult:
        """The answer with what the run came to."""
        if result.status == "waiting":
            message = f"The run {result.run_id} waits for a person: {result.reason}"
            return failed_result(
                "waiting", message, "The operator of `tao mcp` finds it with: tao approvals", run_id=result.run_id
            )
        structured: dict[str, Any] = {
            "run_id": result.run_id,
            "status": result.status,
            "answer": result.answer,
            "reason": result.reason,
            "steps": result.trace.step_count,
        }
        if bind(self.agent).output_validator is not None and result.answer is not None and result.status == "completed":
            structured["output"] = json.loads(result.answer)
        is_done = result.status == "completed"
        text = result.answer if is_done and result.answer is not None else f"{result.status}: {result.reason}"
        if not is_done and result.answer:
            text = f"{text}\nWhat it has so far: {result.answer}"
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=structured,
            is_error=not is_done,
            _meta={RUN_KEY: result.run_id},
        )

    async def abandon(self, run_id: str) -> None:
        """Leave it waiting: it can be answered and resumed like any run of the agent (`tao approvals`)."""

    def _task(self, args: Arguments) -> str:
        task = args.get("task")
        if not isinstance(task, str) or not task.strip() or len(task) > MAX_TASK_CHARS or set(args) != {"task"}:
            raise InvalidArguments(
                f"{self.card.name!r} takes one argument, `task`: a text of 1 to {MAX_TASK_CHARS:,} characters.",
                hint='Expected: {"task": string}',
            )
        return task


# The server


def make_server(
    tools: Sequence[ExposedTool],
    *,
    question_s: float = QUESTION_TIMEOUT_S,
    bus: InMemorySubscriptionBus | None = None,
) -> Server[Any]:
    """A server with these tools. `question_s` is how long a question stays open.

    Raises:
        ConfigError: two tools have the same name.
    """
    catalogue = _Catalogue(tools)
    server: Server[Any] = Server(
        NAME,
        version=taoloop.__version__,
        title=NAME,
        instructions=INSTRUCTIONS,
        on_list_tools=catalogue.list_tools,
        on_call_tool=catalogue.call_tool,
        on_subscriptions_listen=ListenHandler(bus or InMemorySubscriptionBus()),
        get_tool_input_schema=catalogue.input_schema,
    )
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(ttl=question_s), default_audience=NAME)
    )  # only accepts states that this server made, for exactly this call, and in time
    return server


class _Catalogue:
    """The tools by name."""

    def __init__(self, tools: Sequence[ExposedTool]) -> None:
        self._tools: dict[str, ExposedTool] = {}
        self._listed: list[types.Tool] = []
        for tool in tools:
            listed = tool.listed
            if listed.name in self._tools:
                raise ConfigError(f"Two of the tools to serve are called {listed.name!r}.", hint="Rename one of them.")
            self._tools[listed.name] = tool
            self._listed.append(listed)

    async def list_tools(self, _ctx: Ctx, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """One page of the tools."""
        cursor = params.cursor if params is not None else None
        start = 0 if cursor is None else int(cursor) if cursor.isdecimal() and len(cursor) < 8 else -1
        if start < 0 or (start and start >= len(self._listed)):
            raise MCPError(code=types.INVALID_PARAMS, message="There is no such page of the list.")
        end = start + PAGE
        following = str(end) if end < len(self._listed) else None
        return types.ListToolsResult(tools=self._listed[start:end], next_cursor=following)

    async def call_tool(self, ctx: Ctx, params: types.CallToolRequestParams) -> Answer:
        """One call; an error of the tool is a result that says so."""
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(list(self._tools)[:20]) + (" …" if len(self._tools) > 20 else "")
            message = f"There is no tool called {params.name[:80]!r}. Known: {known}."
            raise MCPError(code=types.INVALID_PARAMS, message=message)
        return await tool.call(ctx, params)

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments, for headers that mirror them."""
        tool = self._tools.get(name)
        return None if tool is None else tool.listed.input_schema
