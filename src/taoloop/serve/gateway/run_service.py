"""The gateway without HTTP: one request is one run, from the first message to the answer in OpenAI's terms."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from taoloop.core.events import ActionRequested, ModelReplied, RunStarted
from taoloop.core.handles.opaque_observation import READER
from taoloop.core.message import Message, Usage
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.dialects.streaming.answer_stream import truncated_answer
from taoloop.errors import ConfigError, FenceLost, RunHeld, RunNotAnswered, RunNotFound, RunNotResumable, UnknownName
from taoloop.runtime.agent_setup import FINDERS, PAGING_TOOL
from taoloop.runtime.approvals.inbox import ApprovalStale, NotWaiting, pending_approvals
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.chat import has_untrusted_turns, load_history
from taoloop.runtime.engine.clock import new_nonce, new_run_id
from taoloop.runtime.output_type import OutputValidator
from taoloop.runtime.result import Result
from taoloop.serve.gateway.chat_approval import (
    ApprovalReply,
    answer_all,
    matches_question,
    unused_reply_text,
    waiting_text,
)
from taoloop.serve.gateway.client_tools import (
    bind_client_tools,
    call_now_text,
    client_tools_of,
    must_call_text,
    open_client_calls,
    tool_call_parts,
)
from taoloop.serve.gateway.errors import (
    SERVER,
    ApiError,
    ApiErrorRaised,
    error_for_failed_run,
    error_for_filtered_reply,
    invalid,
)
from taoloop.serve.gateway.higress.json_response import rewrite_as_json

if TYPE_CHECKING:
    from taoloop.core.agent_spec import AgentSpec
    from taoloop.journals.base import Journal
    from taoloop.models.base import DeltaListener
    from taoloop.runtime.agent import Agent
    from taoloop.runtime.runner import Listener
    from taoloop.serve.gateway.config.model import ServedAgent
    from taoloop.serve.gateway.schema.chat import ClientTool
    from taoloop.tools.tool import Tool

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]

_CUT_REPLIES: dict[str, FinishReason] = {
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "safety", "recitation"), "content_filter"),
}
"""Why a reply was cut, by what the APIs of providers call it."""

_LIMIT_STATUSES = ("max_steps_exceeded", "budget_exceeded", "too_many_errors", "repeated_action")
_BUILTIN_TOOLS = (PAGING_TOOL, READER, *FINDERS)
"""Tools that go with the others by themselves."""

_GRACE_S = 15.0
"""How long after its time is up a run may take for its last answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What one request wants of an agent.

    Either it begins a run for `task`, with the `history` of the conversation or `after` an earlier run; or it goes on
    with `run`, which waits: for results of the client's own tools (`outputs`, by call id) or for a person's word
    (`said`). `tools` are the client's: one of them `must_call` before an answer, or an answer shows `one_call` at a
    time. `anew` is what begins instead where results come with tools that the run does not know. `system` are the
    client's instructions; None leaves a setting of the agent as it is. `owner` is the name of the key: nobody goes on
    with a run of another one.
    """

    served: ServedAgent
    task: str = ""
    history: tuple[Message, ...] = ()
    system: str = ""
    after: str | None = None
    run: str | None = None
    tool_results: Mapping[str, str] = field(default_factory=dict)
    approval: ApprovalReply | None = None
    temperature: float | None = None
    top_p: float | None = None
    token_limit: int | None = None
    schema: Mapping[str, Any] | None = None
    schema_param: str = "response_format.json_schema.schema"
    tools: tuple[ClientTool, ...] = ()
    tool_param: str = "tools[{}].function"
    must_call: bool = False
    one_call: bool = False
    fallback: RunRequest | None = None
    owner: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResponse:
    """What came of a request. `refusal` is there where the run's end is an error for the client."""

    run_id: str
    trace: Trace
    content: str
    finish_reason: FinishReason
    usage: Usage
    agent: Mapping[str, Any]
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    error: ApiError | None = None


class _StaleApprovalReply(Exception):  # no error: the client is shown what waits
    """A client's word was for something else than what waits in this run now."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace.run_id)
        self.trace = trace


class Service:
    """Runs agents for requests, all in one journal."""

    def __init__(self, journal: Journal, *, run_timeout_s: float) -> None:
        self.journal, self._run_timeout_s = journal, run_timeout_s
        self._specs: dict[int, tuple[AgentSpec, AgentSpec]] = {}  # those of the agents, which live as long as this

    async def answer(
        self,
        request: RunRequest,
        run_id: str,
        *,
        on_event: Listener | None = None,
        on_delta: DeltaListener | None = None,
    ) -> RunResponse:
        """Do what a request wants, within the time that a run may take. A cancellation stops the run.

        Raises:
            RequestRefused: there is nothing to do it with: a bad field, a run that is not there or not its owner's.
        """
        try:
            async with asyncio.timeout(self._run_timeout_s + _GRACE_S):
                result = await (
                    self._start(request, run_id, on_event, on_delta)
                    if request.run is None
                    else self._resume(request, request.run, on_event, on_delta)
                )
                if request.must_call and result.status == "completed":
                    return await self._force_tool_call(request, result, on_event)
                return await self._with_json_answer(request, result, on_event)
        except _StaleApprovalReply as error:
            response = await self._response_of(Result.of(error.trace))
            return replace(response, content=f"{unused_reply_text(error.trace.agent.language)}\n\n{response.content}")
        except (NotWaiting, ApprovalStale, RunHeld, FenceLost, RunNotResumable, UnknownName, ConfigError) as error:
            if request.run is None:
                raise
            message = f"Run {request.run} cannot go on now: {error.message} {error.hint}".strip()
            raise ApiErrorRaised(ApiError(status=409, message=message, code=error.code, param="messages")) from None
        except TimeoutError:
            message = (
                f"The run took longer than {self._run_timeout_s:g} s and was stopped (run {request.run or run_id})."
            )
            raise ApiErrorRaised(ApiError(status=504, message=message, kind=SERVER, code="run_timeout")) from None

    async def resolve_request(self, request: RunRequest) -> RunRequest:
        """The wish, or the one to begin anew, where results come with tools that their run does not know.

        Raises:
            RequestRefused: there is no such run of this client.
        """
        if request.fallback is None or request.run is None:
            return request
        trace = await self.load_owned_run(request.owner, request.run, request.served.name)
        return request.fallback if trace.paused is not None and _needs_new_run(request, trace) else request

    async def _start(
        self, request: RunRequest, run_id: str, on_event: Listener | None, on_delta: DeltaListener | None
    ) -> Result:
        agent, history, untrusted = request.served.agent, request.history, False
        if request.after is not None:
            await self.load_owned_run(request.owner, request.after)
            try:
                history, untrusted = await load_history(
                    self.journal, request.after, handles=bind(agent).hides_observations
                )
            except RunNotAnswered as error:
                raise invalid(f"{error.message} {error.hint}", "previous_response_id") from None
        else:
            try:
                untrusted = has_untrusted_turns(history, handles=bind(agent).hides_observations)
            except ConfigError as error:
                raise invalid(
                    error.message, "input" if request.labels.get("via") == "responses" else "messages"
                ) from None
        if request.tools:
            agent = _extended_agent(
                agent, bind_client_tools(request.tools, _reserved_tool_names(agent), param_format=request.tool_param)
            )
        if request.schema is not None:
            agent = _extended_agent(agent, schema=request.schema, param=request.schema_param)
        started = RunStarted(
            task=replace_surrogates(request.task),
            agent=self._spec_for(request, agent),
            nonce=new_nonce(),
            history=history,
            after=request.after,
            tainted=untrusted,
            labels=request.labels,
        )
        return await bind(agent).start(self.journal, Trace(run_id), started, listener=on_event, on_delta=on_delta)

    async def _resume(
        self, request: RunRequest, run_id: str, on_event: Listener | None, on_delta: DeltaListener | None
    ) -> Result:
        """Go on with a run that waits. One that somebody else went on with meanwhile gives what it has by now."""
        await self.load_owned_run(request.owner, run_id, request.served.name)
        waiting = await pending_approvals(self.journal, run_id=run_id) if request.approval is not None else []
        trace = await self.load_owned_run(request.owner, run_id, request.served.name)
        if trace.status == "completed" or trace.status in _LIMIT_STATUSES:
            return Result.of(trace)
        if trace.agent.policy.version != request.served.agent.spec_for(trace.task).policy.version:
            raise ApprovalStale("The policy of the agent was changed since it began.", hint="Ask anew.")
        if request.approval is not None and waiting and trace.paused is not None:
            if not matches_question(request.approval, trace, waiting):
                raise _StaleApprovalReply(trace)
            with suppress(ApprovalStale):  # its time is over: the run goes on with that, for it counts as a no
                await answer_all(self.journal, waiting, request.approval, by=request.owner or "client")
            trace = await self.load_owned_run(request.owner, run_id)
            if trace.status == "completed":  # by whoever looks for runs that have their answers
                return Result.of(trace)
        agent = self._original_agent(request, trace)
        limits = replace(trace.limits, max_wall_s=trace.wall_s + self._run_timeout_s)
        return await agent.resume(run_id, limits=limits, on_event=on_event, on_delta=on_delta)

    def _original_agent(self, request: RunRequest, trace: Trace) -> Agent:
        """The agent with the client's tools that the run began with, which know the results that the client gives."""
        agent = request.served.agent
        client_tools = client_tools_of(trace)
        if not client_tools:
            return agent
        awaited = {call.requested.call_id for call in open_client_calls(trace)}
        results = {call_id: text for call_id, text in request.tool_results.items() if call_id in awaited}
        if request.tool_results and awaited and not results:
            message = f"`tool_call_id` names no call that waits; what waits is {', '.join(sorted(awaited))}."
            raise invalid(message, "messages")
        return _extended_agent(agent, bind_client_tools(client_tools, _reserved_tool_names(agent), results))

    async def load_owned_run(self, owner: str, run_id: str, agent: str | None = None) -> Trace:
        """The trace of a run that this client began, with this agent where one is named.

        Raises:
            RequestRefused: there is none, or it is somebody else's, which is told the same.
        """
        unknown = f"There is no run {run_id} of this client."
        try:
            trace = Trace(run_id, await self.journal.load(run_id))
        except RunNotFound:
            raise ApiErrorRaised(ApiError(status=404, message=unknown, code="run_not_found")) from None
        started = trace.started
        labels = started.labels if started is not None else {}
        if labels.get("key") != owner or agent not in (None, labels.get("agent")):
            raise ApiErrorRaised(ApiError(status=404, message=unknown, code="run_not_found"))
        return trace

    def _spec_for(self, request: RunRequest, agent: Agent) -> AgentSpec:
        """The agent's description with what this request wants otherwise."""
        spec = self._with_time_limit(agent.spec_for(request.task), keep=agent is request.served.agent)
        changes: dict[str, Any] = {}
        must_call = (
            must_call_text([tool.function.name for tool in request.tools], spec.language) if request.must_call else ""
        )
        if request.system or must_call:
            changes["instructions"] = "\n\n".join(
                part for part in (spec.instructions, request.system, must_call) if part
            )
        sampling = {"temperature": request.temperature, "top_p": request.top_p}
        changes |= {name: value for name, value in sampling.items() if value is not None}
        if request.token_limit is not None:
            changes["max_output_tokens"] = min(request.token_limit, spec.max_output_tokens or request.token_limit)
        try:
            return replace(spec, **changes) if changes else spec
        except ConfigError as error:  # such as more tokens than the model's window has
            raise invalid(f"{error.message} {error.hint}") from None

    def _with_time_limit(self, spec: AgentSpec, *, keep: bool) -> AgentSpec:
        """The description with the time that a run may take; `keep` it, for it will be wanted again."""
        if (cached := self._specs.get(id(spec))) is not None:
            return cached[1]
        wall_s = min(self._run_timeout_s, spec.limits.max_wall_s or self._run_timeout_s)
        bounded = replace(spec, limits=replace(spec.limits, max_wall_s=wall_s), takes_cut_answers=True)
        if keep:
            self._specs[id(spec)] = (spec, bounded)
        return bounded

    async def _with_json_answer(self, request: RunRequest, result: Result, on_event: Listener | None) -> RunResponse:
        """The answer, written anew where the file of the agent says so and the client asked for no form of its own."""
        if (
            result.status != "completed"
            or request.served.reshape is None
            or result.trace.agent.output_schema is not None
        ):
            return await self._response_of(result, one_call=request.one_call)
        rewritten = await rewrite_as_json(request.served, self.journal, result, on_event)
        response = await self._response_of(rewritten if rewritten.status == "completed" else result)
        usage = _add_usage(result.usage, rewritten.usage)
        agent = {**_agent_part(result), "reshaped": rewritten.run_id}
        if rewritten.status != "completed":
            rejected = rewritten.trace.last_rejected
            why = rewritten.reason if rejected is None else rejected.message
            message = f"The answer could not be written as JSON that fits: {why}"
            error = ApiError(status=502, message=message, kind=SERVER, code="json_answer_failed")
            return replace(response, run_id=result.run_id, trace=result.trace, usage=usage, agent=agent, error=error)
        return replace(response, run_id=result.run_id, trace=result.trace, usage=usage, agent=agent)

    async def _force_tool_call(self, request: RunRequest, result: Result, on_event: Listener | None) -> RunResponse:
        """The call that the client asked for, of an agent that answered in words: a run after that one is told so."""
        names = [tool.function.name for tool in request.tools]
        task = call_now_text(names, result.trace.agent.language)
        retry = replace(request, task=task, history=(), after=result.run_id, run=None, tool_results={}, fallback=None)
        retried = await self._start(retry, new_run_id(time.time()), on_event, None)
        response = await self._response_of(retried, one_call=request.one_call)
        response = replace(response, usage=_add_usage(result.usage, retried.usage))
        if retried.status != "completed":
            return response
        message = f"The model answered in words and called none of {', '.join(names)} (run {retried.run_id})."
        return replace(response, error=ApiError(status=502, message=message, kind=SERVER, code="tool_not_called"))

    async def _response_of(self, result: Result, *, one_call: bool = False) -> RunResponse:
        """The end of a run, or that it waits, in the client's terms."""
        trace, response = (
            result.trace,
            RunResponse(
                run_id=result.run_id,
                trace=result.trace,
                content=result.answer or result.reason,
                finish_reason="stop",
                usage=result.usage,
                agent=_agent_part(result),
            ),
        )
        if result.status == "waiting":
            return await self._waiting_response(result, response, one_call=one_call)
        if result.status in _LIMIT_STATUSES:
            return replace(response, finish_reason="length")
        if result.status == "unreadable" and (cut := _cut_reply(trace)) is not None:
            text, why = cut
            if text:
                return replace(response, content=text, finish_reason=why)
            if why == "content_filter":
                return replace(response, error=error_for_filtered_reply(result.run_id))
        if result.status in ("model_failed", "unreadable") and trace.finished is not None:
            error = error_for_failed_run(trace.finished, result.run_id, trace.agent.model)
            return replace(response, error=error)
        if result.status == "stopped":
            message = f"The run was stopped before it had an answer (run {result.run_id})."
            return replace(response, error=ApiError(status=503, message=message, kind=SERVER, code="run_stopped"))
        reply = trace.last_reply
        return replace(response, finish_reason=_cut_reason(reply) or "stop") if reply is not None else response

    async def _waiting_response(self, result: Result, response: RunResponse, *, one_call: bool) -> RunResponse:
        trace = result.trace
        if calls := open_client_calls(trace):
            calls = calls[:1] if one_call else calls  # the others wait in the run until this one is answered
            reason = trace.last_reply.decision.reason if trace.last_reply and trace.last_reply.decision else ""
            parts = tuple(tool_call_parts(result.run_id, calls))
            return replace(response, content=reason, finish_reason="tool_calls", tool_calls=parts)
        waiting = await pending_approvals(self.journal, run_id=result.run_id)
        doubts = [call for call in trace.pending.values() if call.doubt is not None]
        pending = [
            {"run_id": approval.request.run_id, "call_id": approval.request.call_id, "tool": approval.request.tool}
            for approval in waiting
        ]
        text = waiting_text(result.run_id, waiting, doubts, trace.agent.language)
        if not waiting and not doubts:  # it waits with a run inside it that waits for something else
            text = f"{result.reason}\n{text}"
        return replace(response, content=text, agent={**response.agent, "waiting_for": pending})


def _extended_agent(
    agent: Agent, extra_tools: Sequence[Tool] = (), *, schema: Mapping[str, Any] | None = None, param: str = ""
) -> Agent:
    """The agent with further tools, and an answer that must fit; its own tools are taken as they are, loaded.

    Raises:
        RequestRefused: the schema is none.
    """
    own_tools = [tool for tool in agent.toolbox if tool.name not in _BUILTIN_TOOLS]
    extended = replace(agent, model=bind(agent).model, fallback=(), tools=(*own_tools, *extra_tools))
    if schema is None:
        return extended
    try:
        return replace(extended, output_type=OutputValidator(schema).schema)
    except ConfigError as error:
        raise invalid(f"`{param}` is of no use: {error.message}", param, "invalid_json_schema") from None


def _needs_new_run(request: RunRequest, trace: Trace) -> bool:
    """Whether results come with tools that their run does not know: a client that goes on as another agent of its own.

    Not where the run has changed something: one that begins anew would not see that, and might do it again.
    """
    tools = {card.name: card for card in trace.agent.tools}
    if all(tool.function.name in tools for tool in request.tools):
        return False
    called = [event.fact.tool for event in trace.events if isinstance(event.fact, ActionRequested)]
    return all(name in tools and tools[name].reads_only for name in called)


def _reserved_tool_names(agent: Agent) -> set[str]:
    """The names that no tool of a client can have: those of the agent's tools, and of those that go with others."""
    return {*_BUILTIN_TOOLS, *(tool.name for tool in agent.toolbox)}


def _cut_reason(reply: ModelReplied) -> FinishReason | None:
    """Why a reply is not whole, in OpenAI's words, whatever its provider calls it; None: it is."""
    return _CUT_REPLIES.get((reply.finish_reason or "").lower())


def _cut_reply(trace: Trace) -> tuple[str, FinishReason] | None:
    """What the model had written of its answer when its last reply was cut, and by what; None: it was not cut."""
    reply = next((event.fact for event in reversed(trace.events) if isinstance(event.fact, ModelReplied)), None)
    why = _cut_reason(reply) if reply is not None else None
    if reply is None or why is None:
        return None
    return truncated_answer(reply.text, trace.agent.dialect, tools_offered=bool(trace.agent.tools)), why


def _agent_part(result: Result) -> dict[str, Any]:
    """What an answer says of its run, beside what OpenAI's API has a place for."""
    part: dict[str, Any] = {
        "run_id": result.run_id,
        "status": result.status,
        "reason": result.reason,
        "steps": result.trace.step_count,
        "tool_calls": result.trace.tool_calls,
    }
    if result.cost_usd is not None:
        part["cost_usd"] = result.cost_usd
    if result.trace.finished is not None and result.trace.finished.citations:
        part["citations"] = list(result.trace.finished.citations)
    return part


def _add_usage(first: Usage, second: Usage) -> Usage:
    return Usage(
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        cached_tokens=first.cached_tokens + second.cached_tokens,
    )
