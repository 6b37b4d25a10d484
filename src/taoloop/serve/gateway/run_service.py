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
from taoloop.serve.gateway.chat_approval import ApprovalReply, answer_all, matches_question, not_used, waiting_text
from taoloop.serve.gateway.client_tools import (
    call_parts,
    client_tools,
    client_tools_of,
    must_text,
    now_text,
    open_calls_of_client,
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
    from taoloop.runtime.agent import Agent
    from taoloop.runtime.engine.delta_fanout import DeltaListener
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

_CUT_SHORT = ("max_steps_exceeded", "budget_exceeded", "too_many_errors", "repeated_action")
_AROUND = (PAGING_TOOL, READER, *FINDERS)
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
    outputs: Mapping[str, str] = field(default_factory=dict)
    said: ApprovalReply | None = None
    temperature: float | None = None
    top_p: float | None = None
    token_limit: int | None = None
    schema: Mapping[str, Any] | None = None
    schema_param: str = "response_format.json_schema.schema"
    tools: tuple[ClientTool, ...] = ()
    tool_param: str = "tools[{}].function"
    must_call: bool = False
    one_call: bool = False
    anew: RunRequest | None = None
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
    refusal: ApiError | None = None


class _OtherQuestion(Exception):  # no error: the client is shown what waits
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
        self, wish: RunRequest, run_id: str, *, on_event: Listener | None = None, on_delta: DeltaListener | None = None
    ) -> RunResponse:
        """Do what a request wants, within the time that a run may take. A cancellation stops the run.

        Raises:
            RequestRefused: there is nothing to do it with: a bad field, a run that is not there or not its owner's.
        """
        try:
            async with asyncio.timeout(self._run_timeout_s + _GRACE_S):
                result = await (
                    self._begin(wish, run_id, on_event, on_delta)
                    if wish.run is None
                    else self._go_on(wish, wish.run, on_event, on_delta)
                )
                if wish.must_call and result.status == "completed":
                    return await self._force_tool_call(wish, result, on_event)
                return await self._with_json_answer(wish, result, on_event)
        except _OtherQuestion as error:
            answered = await self._answered(Result.of(error.trace))
            return replace(answered, content=f"{not_used(error.trace.agent.language)}\n\n{answered.content}")
        except (NotWaiting, ApprovalStale, RunHeld, FenceLost, RunNotResumable, UnknownName, ConfigError) as error:
            if wish.run is None:
                raise
            message = f"Run {wish.run} cannot go on now: {error.message} {error.hint}".strip()
            raise ApiErrorRaised(ApiError(status=409, message=message, code=error.code, param="messages")) from None
        except TimeoutError:
            message = f"The run took longer than {self._run_timeout_s:g} s and was stopped (run {wish.run or run_id})."
            raise ApiErrorRaised(ApiError(status=504, message=message, kind=SERVER, code="run_timeout")) from None

    async def resolve_request(self, wish: RunRequest) -> RunRequest:
        """The wish, or the one to begin anew, where results come with tools that their run does not know.

        Raises:
            RequestRefused: there is no such run of this client.
        """
        if wish.anew is None or wish.run is None:
            return wish
        trace = await self.load_owned_run(wish.owner, wish.run, wish.served.name)
        return wish.anew if trace.paused is not None and _is_for_another(wish, trace) else wish

    async def _begin(
        self, wish: RunRequest, run_id: str, on_event: Listener | None, on_delta: DeltaListener | None
    ) -> Result:
        agent, history, untrusted = wish.served.agent, wish.history, False
        if wish.after is not None:
            await self.load_owned_run(wish.owner, wish.after)
            try:
                handles = bind(agent).hides_observations
                history, untrusted = await load_history(self.journal, wish.after, handles=handles)
            except RunNotAnswered as error:
                raise invalid(f"{error.message} {error.hint}", "previous_response_id") from None
        else:
            try:
                untrusted = has_untrusted_turns(history, handles=bind(agent).hides_observations)
            except ConfigError as error:
                raise invalid(error.message, "input" if wish.labels.get("via") == "responses" else "messages") from None
        if wish.tools:
            agent = _with(agent, client_tools(wish.tools, _taken(agent), place=wish.tool_param))
        if wish.schema is not None:
            agent = _with(agent, schema=wish.schema, param=wish.schema_param)
        started = RunStarted(
            task=replace_surrogates(wish.task),
            agent=self._spec(wish, agent),
            nonce=new_nonce(),
            history=history,
            after=wish.after,
            tainted=untrusted,
            labels=wish.labels,
        )
        return await bind(agent).start(self.journal, Trace(run_id), started, listener=on_event, on_delta=on_delta)

    async def _go_on(
        self, wish: RunRequest, run_id: str, on_event: Listener | None, on_delta: DeltaListener | None
    ) -> Result:
        """Go on with a run that waits. One that somebody else went on with meanwhile gives what it has by now."""
        await self.load_owned_run(wish.owner, run_id, wish.served.name)
        waiting = await pending_approvals(self.journal, run_id=run_id) if wish.said is not None else []
        trace = await self.load_owned_run(wish.owner, run_id, wish.served.name)
        if trace.status == "completed" or trace.status in _CUT_SHORT:
            return Result.of(trace)
        if trace.agent.policy.version != wish.served.agent.spec_for(trace.task).policy.version:
            raise ApprovalStale("The policy of the agent was changed since it began.", hint="Ask anew.")
        if wish.said is not None and waiting and trace.paused is not None:
            if not matches_question(wish.said, trace, waiting):
                raise _OtherQuestion(trace)
            with suppress(ApprovalStale):  # its time is over: the run goes on with that, for it counts as a no
                await answer_all(self.journal, waiting, wish.said, by=wish.owner or "client")
            trace = await self.load_owned_run(wish.owner, run_id)
            if trace.status == "completed":  # by whoever looks for runs that have their answers
                return Result.of(trace)
        agent = self._original_agent(wish, trace)
        limits = replace(trace.limits, max_wall_s=trace.wall_s + self._run_timeout_s)
        return await agent.resume(run_id, limits=limits, on_event=on_event, on_delta=on_delta)

    def _original_agent(self, wish: RunRequest, trace: Trace) -> Agent:
        """The agent with the client's tools that the run began with, which know the results that the client gives."""
        agent = wish.served.agent
        own = client_tools_of(trace)
        if not own:
            return agent
        awaited = {call.requested.call_id for call in open_calls_of_client(trace)}
        outputs = {call_id: text for call_id, text in wish.outputs.items() if call_id in awaited}
        if wish.outputs and awaited and not outputs:
            message = f"`tool_call_id` names no call that waits; what waits is {', '.join(sorted(awaited))}."
            raise invalid(message, "messages")
        return _with(agent, client_tools(own, _taken(agent), outputs))

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

    def _spec(self, wish: RunRequest, agent: Agent) -> AgentSpec:
        """The agent's description with what this request wants otherwise."""
        spec = self._bounded(agent.spec_for(wish.task), keep=agent is wish.served.agent)
        changes: dict[str, Any] = {}
        must = must_text([one.function.name for one in wish.tools], spec.language) if wish.must_call else ""
        if wish.system or must:
            changes["instructions"] = "\n\n".join(part for part in (spec.instructions, wish.system, must) if part)
        drawn = {"temperature": wish.temperature, "top_p": wish.top_p}
        changes |= {name: value for name, value in drawn.items() if value is not None}
        if wish.token_limit is not None:
            changes["max_output_tokens"] = min(wish.token_limit, spec.max_output_tokens or wish.token_limit)
        try:
            return replace(spec, **changes) if changes else spec
        except ConfigError as error:  # such as more tokens than the model's window has
            raise invalid(f"{error.message} {error.hint}") from None

    def _bounded(self, spec: AgentSpec, *, keep: bool) -> AgentSpec:
        """The description with the time that a run may take; `keep` it, for it will be wanted again."""
        if (found := self._specs.get(id(spec))) is not None:
            return found[1]
        wall_s = min(self._run_timeout_s, spec.limits.max_wall_s or self._run_timeout_s)
        bounded = replace(spec, limits=replace(spec.limits, max_wall_s=wall_s), takes_cut_answers=True)
        if keep:
            self._specs[id(spec)] = (spec, bounded)
        return bounded

    async def _with_json_answer(self, wish: RunRequest, result: Result, on_event: Listener | None) -> RunResponse:
        """The answer, written anew where the file of the agent says so and the client asked for no form of its own."""
        if result.status != "completed" or wish.served.reshape is None or result.trace.agent.output_schema is not None:
            return await self._answered(result, one_call=wish.one_call)
        made = await rewrite_as_json(wish.served, self.journal, result, on_event)
        told = await self._answered(made if made.status == "completed" else result)
        usage = _sum(result.usage, made.usage)
        agent = {**_agent_part(result), "reshaped": made.run_id}
        if made.status != "completed":
            rejected = made.trace.last_rejected
            why = made.reason if rejected is None else rejected.message
            message = f"The answer could not be written as JSON that fits: {why}"
            refusal = ApiError(status=502, message=message, kind=SERVER, code="json_answer_failed")
            return replace(told, run_id=result.run_id, trace=result.trace, usage=usage, agent=agent, refusal=refusal)
        return replace(told, run_id=result.run_id, trace=result.trace, usage=usage, agent=agent)

    async def _force_tool_call(self, wish: RunRequest, result: Result, on_event: Listener | None) -> RunResponse:
        """The call that the client asked for, of an agent that answered in words: a run after that one is told so."""
        names = [one.function.name for one in wish.tools]
        task = now_text(names, result.trace.agent.language)
        again = replace(wish, task=task, history=(), after=result.run_id, run=None, outputs={}, anew=None)
        made = await self._begin(again, new_run_id(time.time()), on_event, None)
        told = await self._answered(made, one_call=wish.one_call)
        told = replace(told, usage=_sum(result.usage, made.usage))
        if made.status != "completed":
            return told
        message = f"The model answered in words and called none of {', '.join(names)} (run {made.run_id})."
        return replace(told, refusal=ApiError(status=502, message=message, kind=SERVER, code="tool_not_called"))

    async def _answered(self, result: Result, *, one_call: bool = False) -> RunResponse:
        """The end of a run, or that it waits, in the client's terms."""
        trace, made = (
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
            return await self._waiting(result, made, one_call=one_call)
        if result.status in _CUT_SHORT:
            return replace(made, finish_reason="length")
        if result.status == "unreadable" and (cut := _cut_reply(trace)) is not None:
            text, why = cut
            if text:
                return replace(made, content=text, finish_reason=why)
            if why == "content_filter":
                return replace(made, refusal=error_for_filtered_reply(result.run_id))
        if result.status in ("model_failed", "unreadable") and trace.finished is not None:
            return replace(made, refusal=error_for_failed_run(trace.finished, result.run_id))
        if result.status == "stopped":
            message = f"The run was stopped before it had an answer (run {result.run_id})."
            return replace(made, refusal=ApiError(status=503, message=message, kind=SERVER, code="run_stopped"))
        reply = trace.last_reply
        return replace(made, finish_reason=_why_it_ended(reply) or "stop") if reply is not None else made

    async def _waiting(self, result: Result, made: RunResponse, *, one_call: bool) -> RunResponse:
        trace = result.trace
        if calls := open_calls_of_client(trace):
            calls = calls[:1] if one_call else calls  # the others wait in the run until this one is answered
            reason = trace.last_reply.decision.reason if trace.last_reply and trace.last_reply.decision else ""
            parts = tuple(call_parts(result.run_id, calls))
            return replace(made, content=reason, finish_reason="tool_calls", tool_calls=parts)
        waiting = await pending_approvals(self.journal, run_id=result.run_id)
        doubts = [call for call in trace.pending.values() if call.doubt is not None]
        pending = [
            {"run_id": one.request.run_id, "call_id": one.request.call_id, "tool": one.request.tool} for one in waiting
        ]
        text = waiting_text(result.run_id, waiting, doubts, trace.agent.language)
        if not waiting and not doubts:  # it waits with a run inside it that waits for something else
            text = f"{result.reason}\n{text}"
        return replace(made, content=text, agent={**made.agent, "waiting_for": pending})


def _with(
    agent: Agent, more: Sequence[Tool] = (), *, schema: Mapping[str, Any] | None = None, param: str = ""
) -> Agent:
    """The agent with further tools, and an answer that must fit; its own tools are taken as they are, loaded.

    Raises:
        RequestRefused: the schema is none.
    """
    own = [one for one in agent.toolbox if one.name not in _AROUND]
    made = replace(agent, model=bind(agent).model, fallback=(), tools=(*own, *more))
    if schema is None:
        return made
    try:
        return replace(made, output_type=OutputValidator(schema).schema)
    except ConfigError as error:
        raise invalid(f"`{param}` is of no use: {error.message}", param, "invalid_json_schema") from None


def _is_for_another(wish: RunRequest, trace: Trace) -> bool:
    """Whether results come with tools that their run does not know: a client that goes on as another agent of its own.

    Not where the run has changed something: one that begins anew would not see that, and might do it again.
    """
    tools = {card.name: card for card in trace.agent.tools}
    if all(one.function.name in tools for one in wish.tools):
        return False
    called = [event.fact.tool for event in trace.events if isinstance(event.fact, ActionRequested)]
    return all(name in tools and tools[name].reads_only for name in called)


def _taken(agent: Agent) -> set[str]:
    """The names that no tool of a client can have: those of the agent's tools, and of those that go with others."""
    return {*_AROUND, *(one.name for one in agent.toolbox)}


def _why_it_ended(reply: ModelReplied) -> FinishReason | None:
    """Why a reply is not whole, in OpenAI's words, whatever its provider calls it; None: it is."""
    return _CUT_REPLIES.get((reply.finish_reason or "").lower())


def _cut_reply(trace: Trace) -> tuple[str, FinishReason] | None:
    """What the model had written of its answer when its last reply was cut, and by what; None: it was not cut."""
    reply = next((event.fact for event in reversed(trace.events) if isinstance(event.fact, ModelReplied)), None)
    why = _why_it_ended(reply) if reply is not None else None
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


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
    )
