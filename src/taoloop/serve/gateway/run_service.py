"""The gateway without HTTP: a request drives a run, from the first message to the answer in OpenAI's terms.

At most one further run follows it, where the client asked for a tool call or for JSON and the answer has none.

A `ConfigSnapshot` is one configuration in use, with its agents bound to the journal.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.attachments.files import File, infos_of
from taoloop.core.cards.tool_search import PAGING_TOOL
from taoloop.core.events import RunStarted
from taoloop.core.handles import READER
from taoloop.core.text import replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import (
    ApprovalStale,
    ConfigError,
    FenceLost,
    InvalidArguments,
    NotWaiting,
    RunHeld,
    RunNotAnswered,
    RunNotFound,
    RunNotResumable,
    UnknownName,
)
from taoloop.journals.base import Journal, locks_of
from taoloop.models.base import DeltaListener
from taoloop.models.http.sdk_request import load_sdk
from taoloop.models.model_builder import split_specs
from taoloop.runtime.after.recovery import require_alive
from taoloop.runtime.agent import Agent
from taoloop.runtime.agent_toolbox import FINDERS
from taoloop.runtime.approvals.inbox import PendingApproval, pending_approvals
from taoloop.runtime.approvals.request import ApprovalAnswer
from taoloop.runtime.approvals.user_questions import question_answer
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.chat import has_untrusted_turns, load_history
from taoloop.runtime.engine.clock import new_nonce, new_run_id, start_timer
from taoloop.runtime.output_type import OutputValidator
from taoloop.runtime.runner import Listener
from taoloop.serve.gateway.auth.keys import TOKEN_OWNER, ApiKey, KeyRing
from taoloop.serve.gateway.auth.tokens import TokenVerifier
from taoloop.serve.gateway.chat_approval import answer_all, asked_now, has_question, is_for_operator, matches_question
from taoloop.serve.gateway.client_tools import bind_client_tools, client_tools_of, open_client_calls
from taoloop.serve.gateway.config.model import GatewayConfig, ServedAgent
from taoloop.serve.gateway.errors import ApiError, invalid
from taoloop.serve.gateway.higress.file import rewrite_as_json
from taoloop.serve.gateway.quotas import RunAccounts
from taoloop.serve.gateway.request_attachments import RequestAttachments, take_attachments
from taoloop.serve.gateway.run_request import RunRequest, approval_not_allowed
from taoloop.serve.gateway.run_response import ENDED_STATUSES, RunResponse, build_response
from taoloop.serve.hosts import AllowedHosts
from taoloop.serve.texts import TEXTS
from taoloop.tools.tool import Tool

_RUNTIME_TOOLS = (PAGING_TOOL, READER, *FINDERS)
"""Tools that the runtime adds to those of an agent by itself."""

_JOIN_INTERVAL_S = 0.5
"""How often a repeated request looks whether the run of the first attempt is over."""

_GRACE_S = 15.0
"""How long after its time is up a run may take for its last answer."""


@dataclass(eq=False)
class _StaleApprovalReply(Exception):  # no error: the client is shown what waits
    """The client's reply was to another question than the one that waits in this run now."""

    trace: Trace
    """The run."""


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
            ApiError: it cannot be done: a field is invalid, or the run is unknown or not its owner's.
        """
        try:
            with self._time_limit():
                if request.run is None:
                    result = await self.start(request, run_id, on_event, on_delta)
                else:
                    result = await self.resume(request, request.run, on_event, on_delta)
                if request.must_call and result.status == "completed" and not request.is_repeat:
                    return await _force_tool_call(self, request, result, on_event)
                has_schema = result.trace.agent.output_schema is not None  # the client asked for a form of its own
                schema = request.served.reshape
                if schema is not None and result.status == "completed" and not has_schema:
                    return await _with_json_answer(self, request, schema, result, on_event)
                one_call = request.settings.parallel_tool_calls is False
                return await build_response(
                    self.journal, result, request.served, one_call=one_call, authority=request.authority
                )
        except _StaleApprovalReply as error:
            response = await build_response(self.journal, Result.of(error.trace), request.served)
            notice = TEXTS.text(error.trace.agent.language, "approval_unused")
            return replace(response, content=f"{notice}\n\n{response.content}")
        except (NotWaiting, ApprovalStale, RunHeld, FenceLost, RunNotResumable, UnknownName, ConfigError) as error:
            if request.run is None:
                raise
            message = f"Run {request.run} cannot be continued now: {error.message} {error.hint}".strip()
            raise ApiError(status=409, message=message, code=error.code, param="messages") from None
        except TimeoutError:
            run_id = request.run or run_id
            message = f"The run took longer than {self._run_timeout_s:g} s and was stopped (run {run_id})."
            raise ApiError(status=504, message=message, code="run_timeout") from None

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        """Cancel what the block does after the time of a run. A timer of its own would be a twentieth of a request.

        Raises:
            TimeoutError: the block took too long.
        """
        timer = start_timer(self._run_timeout_s + _GRACE_S)
        try:
            yield
        except asyncio.CancelledError as error:
            if timer.stop():
                raise TimeoutError from error
            raise
        finally:
            timer.stop()

    async def resolve_request(self, request: RunRequest) -> RunRequest:
        """The request itself, or its fallback where its tool results come with tools that their run does not know.

        Raises:
            ApiError: there is no such run of this client.
        """
        if request.fallback is None or request.run is None:
            return request
        trace = await self.load_owned_run(request.owner, request.run, request.served.name)
        return request.fallback if trace.paused is not None and _needs_new_run(request, trace) else request

    async def load_run_before(self, request: RunRequest) -> Trace | None:
        """The run that a request continues, as it is now; None: it starts one.

        Raises:
            ApiError: there is no such run of this client.
        """
        if request.run is None:
            return None
        return await self.load_owned_run(request.owner, request.run, request.served.name)

    async def start(
        self, request: RunRequest, run_id: str, on_event: Listener | None, on_delta: DeltaListener | None
    ) -> Result:
        """Start a new run and drive it until it ends or waits.

        Raises:
            ApiError: a field is invalid, or the earlier run is not this client's, or has no answer.
        """
        agent, settings = request.served.agent, request.settings
        handles = bind(agent).hides_observations
        if request.after is not None:
            await self.load_owned_run(request.owner, request.after)
            try:
                history, untrusted = await load_history(self.journal, request.after, handles=handles)
            except RunNotAnswered as error:
                raise invalid(f"{error.message} {error.hint}", "previous_response_id") from None
        else:
            history = request.history
            try:
                untrusted = has_untrusted_turns(history, handles=handles)
            except ConfigError as error:
                raise invalid(error.message, settings.message_names[0]) from None
        attachments = RequestAttachments(history=history)
        if request.attachments:
            attachments = await take_attachments(request.attachments, history, agent, request.served.image_urls)
        if request.tools:
            language, reserved = agent.spec_for(request.task).language, _reserved_tool_names(agent)
            tools = bind_client_tools(request.tools, reserved, language=language, param_format=settings.tool_param)
            agent = _with_tools(agent, tools)
        if settings.answer_schema is not None:
            agent = _with_output_schema(agent, settings.answer_schema, settings.schema_param)
        started = RunStarted(
            task=replace_surrogates(request.task),
            agent=self._spec_for(request, agent),
            nonce=new_nonce(),
            history=attachments.history,
            after=request.after,
            tainted=untrusted or any(isinstance(item, File) for item in attachments.all),
            user_instructions=request.system,
            authority=None if request.authority == "full" else request.authority,
            labels=request.labels,
            **infos_of(attachments.task),
        )
        return await bind(agent).start(
            self.journal, Trace(run_id), started, attachments=attachments.all, listener=on_event, on_delta=on_delta
        )

    async def resume(
        self, request: RunRequest, run_id: str, on_event: Listener | None, on_delta: DeltaListener | None
    ) -> Result:
        """Resume a run that waits. One that somebody else resumed meanwhile gives what it has by now.

        Raises:
            ApiError: there is no such run of this client, or the results are for no call that waits.
            ApprovalStale, RunHeld, RunNotResumable: it cannot be resumed now.
        """
        if request.is_repeat:
            return await self._rejoin(request, run_id, on_event, on_delta)
        trace = await self.load_owned_run(request.owner, run_id, request.served.name)
        waiting: Sequence[PendingApproval] = ()
        if request.approval is not None:  # what waits is loaded before the run, so that it is no newer than that
            waiting = asked_now(await pending_approvals(self.journal, run_id=run_id))
            if request.authority == "full" and not request.may_approve and not has_question(waiting):
                raise approval_not_allowed()
            trace = await self.load_owned_run(request.owner, run_id, request.served.name)
        if trace.status in ENDED_STATUSES:
            return Result.of(trace)
        require_same_policy(trace, request.served)
        if request.approval is not None and waiting and trace.paused is not None:
            if is_for_operator(request.authority, waiting):  # who hears that it waits
                return Result.of(trace)
            if not matches_question(request.approval, trace, waiting):
                raise _StaleApprovalReply(trace)
            with suppress(ApprovalStale):  # its time is over, which counts as a no: the run resumes with that
                reply, by = request.approval, request.owner or "client"
                verified = "gateway_key" if request.owner else ""
                answer = ApprovalAnswer(approved=reply.approved, by=by, note=reply.note, authenticated=verified)
                if has_question(waiting):
                    try:
                        answer = question_answer(waiting[0].request, reply.text, by=by, authenticated=verified)
                    except InvalidArguments:
                        return Result.of(trace)  # the question stands there once more, with what fits
                await answer_all(self.journal, waiting, answer)
            trace = await self.load_owned_run(request.owner, run_id)
            if trace.status == "completed":  # the auto-resumer found the answers first
                return Result.of(trace)
        agent = self._original_agent(request, trace)
        limits = replace(trace.limits, max_wall_s=trace.wall_s + self._run_timeout_s)
        return await agent.resume(run_id, limits=limits, on_event=on_event, on_delta=on_delta)

    async def _rejoin(
        self, request: RunRequest, run_id: str, on_event: Listener | None, on_delta: DeltaListener | None
    ) -> Result:
        """What came of the run that an earlier attempt of the request began.

        While it is driven elsewhere, it is waited for; where it lost its process, failed or was stopped, it goes on.
        """
        trace = await self._wait_for_driver(await self.load_owned_run(request.owner, run_id, request.served.name))
        if trace.status == "waiting":
            return Result.of(trace)
        await require_alive(self.journal, trace)
        try:
            return await self.resume(replace(request, is_repeat=False), run_id, on_event, on_delta)
        except (RunHeld, FenceLost):  # another attempt or the recovery was faster
            return await self._rejoin(request, run_id, on_event, on_delta)

    async def _wait_for_driver(self, trace: Trace) -> Trace:
        """The run once nothing drives it any more: no other request, and no recovery."""
        locks = locks_of(self.journal)
        while trace.status == "running" and (locks is None or await locks.holder(trace.run_id) is not None):
            await asyncio.sleep(_JOIN_INTERVAL_S)
            trace = Trace(trace.run_id, await self.journal.load(trace.run_id))
        return trace

    async def load_owned_run(self, owner: str, run_id: str, agent: str | None = None) -> Trace:
        """The trace of a run that this client began, with this agent where one is named.

        Raises:
            ApiError: there is none, or it is another client's, which gives the same error.
        """
        labels: Mapping[str, str] = {}
        with suppress(RunNotFound):
            trace = Trace(run_id, await self.journal.load(run_id))
            labels = trace.started.labels if trace.started is not None else {}
        if labels.get("key") != owner or agent not in (None, labels.get("agent")):
            raise ApiError(status=404, message=f"There is no run {run_id} of this client.", code="run_not_found")
        return trace

    def _original_agent(self, request: RunRequest, trace: Trace) -> Agent:
        """The agent with the client's tools from when the run began; they give the results that the client sent."""
        agent, tools = request.served.agent, client_tools_of(trace)
        if not tools:
            return agent
        awaited = {call.requested.call_id for call in open_client_calls(trace)}
        results = {call_id: text for call_id, text in request.tool_results.items() if call_id in awaited}
        if request.tool_results and awaited and not results:
            message = f"`tool_call_id` names no call that waits; what waits is {', '.join(sorted(awaited))}."
            raise invalid(message, "messages")
        language = trace.agent.language
        return _with_tools(agent, bind_client_tools(tools, _reserved_tool_names(agent), results, language=language))

    def _spec_for(self, request: RunRequest, agent: Agent) -> AgentSpec:
        """The agent's description with the settings of this request."""
        spec = self._with_time_limit(agent.spec_for(request.task), keep=agent is request.served.agent)
        changes: dict[str, Any] = {}
        instructions = [spec.instructions]
        if request.must_call:
            names = ", ".join(tool.function.name for tool in request.tools)
            instructions.append(TEXTS.text(spec.language, "must_call_tool", names=names))
        instructions.append(request.system)  # at the end, as `user_instructions` of the run
        if any(instructions[1:]):
            changes["instructions"] = "\n\n".join(filter(None, instructions))
        settings = request.settings
        sampling = {"temperature": settings.temperature, "top_p": settings.top_p}
        changes |= {name: value for name, value in sampling.items() if value is not None}
        if (limit := settings.token_limit) is not None:
            changes["max_output_tokens"] = min(limit, spec.max_output_tokens or limit)
        try:
            return replace(spec, **changes) if changes else spec
        except ConfigError as error:  # such as more tokens than the model's window has
            raise invalid(f"{error.message} {error.hint}") from None

    def _with_time_limit(self, spec: AgentSpec, *, keep: bool) -> AgentSpec:
        """The description with the time that a run may take; `keep` it for further requests."""
        if (cached := self._specs.get(id(spec))) is not None:
            return cached[1]
        wall_s = min(self._run_timeout_s, spec.limits.max_wall_s or self._run_timeout_s)
        limited = replace(spec, limits=replace(spec.limits, max_wall_s=wall_s), takes_cut_answers=True)
        if keep:
            self._specs[id(spec)] = (spec, limited)
        return limited


def require_same_policy(trace: Trace, served: ServedAgent) -> None:
    """Refuse to continue a run under another policy than it began with; the operator may have replaced it since.

    Raises:
        ApprovalStale: the policy is another one.
    """
    began = trace.agent if trace.started is None else trace.started.agent
    if began.policy.version != served.agent.spec_for(trace.task).policy.version:
        raise ApprovalStale("The agent's policy has changed since the run began.", hint="Ask again.")


async def _force_tool_call(
    service: Service, request: RunRequest, result: Result, on_event: Listener | None
) -> RunResponse:
    """The call that the client asked for, where the agent answered in words: a further run is told to make it."""
    names = [tool.function.name for tool in request.tools]
    task = TEXTS.text(result.trace.agent.language, "call_tool_now", names=", ".join(names))
    retry = replace(request, task=task, history=(), attachments={}, after=result.run_id, run=None)
    retry = replace(retry, tool_results={}, fallback=None)
    retried = await service.start(retry, new_run_id(time.time()), on_event, None)
    one_call, authority = request.settings.parallel_tool_calls is False, request.authority
    response = await build_response(service.journal, retried, request.served, one_call=one_call, authority=authority)
    response = replace(response, usage=result.usage + retried.usage)
    if retried.status != "completed":
        return response
    message = f"The model answered in words and called none of {', '.join(names)} (run {retried.run_id})."
    return replace(response, error=ApiError(status=502, message=message, code="tool_not_called"))


async def _with_json_answer(
    service: Service, request: RunRequest, schema: Mapping[str, Any], result: Result, on_event: Listener | None
) -> RunResponse:
    """The answer rewritten as JSON by a run of its own; usage is that of both."""
    rewritten = await rewrite_as_json(request.served, schema, service.journal, result, on_event)
    response = await build_response(service.journal, result, request.served)
    agent = {**response.agent, "reshaped": rewritten.run_id}
    response = replace(response, usage=result.usage + rewritten.usage, agent=agent)
    if rewritten.status == "completed":
        written = await build_response(service.journal, rewritten, request.served)
        return replace(response, content=written.content, finish_reason=written.finish_reason)
    rejected = rewritten.trace.last_rejected
    reason = rewritten.reason if rejected is None else rejected.message
    message = f"The answer could not be written as JSON that fits: {reason}"
    return replace(response, error=ApiError(status=502, message=message, code="json_answer_failed"))


def _with_tools(agent: Agent, tools: Sequence[Tool]) -> Agent:
    """The agent with further tools; its own are taken as they are, loaded."""
    own_tools = [tool for tool in agent.toolbox if tool.name not in _RUNTIME_TOOLS]
    return replace(agent, model=bind(agent).model, fallback=(), tools=(*own_tools, *tools))


def _with_output_schema(agent: Agent, schema: Mapping[str, Any], param: str) -> Agent:
    """The agent with an answer that must fit a schema.

    Raises:
        ApiError: it is no valid schema.
    """
    try:
        return replace(_with_tools(agent, ()), output_type=OutputValidator(schema).schema)
    except ConfigError as error:
        raise invalid(f"`{param}` is invalid: {error.message}", param, "invalid_json_schema") from None


def _reserved_tool_names(agent: Agent) -> set[str]:
    """The names that no tool of a client can have: those of the agent's tools, and of those that the runtime adds."""
    return {*_RUNTIME_TOOLS, *(tool.name for tool in agent.toolbox)}


def _needs_new_run(request: RunRequest, trace: Trace) -> bool:
    """Whether the tool results come with tools that their run does not know: a client that switched its own agent.

    Not where the run has changed something: a new run would not see that, and might do it again.
    """
    tools = {card.name: card for card in trace.agent.tools}
    if all(tool.function.name in tools for tool in request.tools):
        return False
    called = (call.requested.tool for call in trace.calls.values())
    return all(name in tools and tools[name].reads_only for name in called)


_LOG = logging.getLogger("taoloop.gateway")


class ConfigSnapshot:
    """One configuration with its agents, bound to the journal. The accounts are shared by all snapshots.

    A request keeps the snapshot that it began with. When a snapshot is replaced, its agents are closed after its last
    request.
    """

    def __init__(self, config: GatewayConfig, journal: Journal, accounts: RunAccounts) -> None:
        bound_agents = {
            name: replace(served, agent=replace(served.agent, journal=journal))
            for name, served in config.agents.items()
        }
        self.config = replace(config, agents=bound_agents)
        self._keys, self.admin_keys = KeyRing(config.keys), KeyRing(config.admin_keys)
        self.tokens = None if config.jwt is None else TokenVerifier(config.jwt)
        self.hosts = AllowedHosts(config.allow_hosts)
        self.service = Service(journal, run_timeout_s=config.limits.run_timeout_s)
        self.journal, self.accounts = journal, accounts
        self._active = 0
        self._is_replaced = False

    def warm_up(self) -> None:
        """Load what the first request would have to wait for: tools, prompts and model clients.

        Raises:
            ConfigError: the configuration of an agent is wrong.
            MissingExtra: a model needs a package that is not installed.
        """
        for served in self.config.agents.values():
            for language in ("", "你好"):
                served.agent.spec_for(language)
            for spec in split_specs(bind(served.agent).model.spec):
                load_sdk(spec.partition(":")[0])
            _ = served.agent.toolbox

    def find_key(self, presented: str | None) -> ApiKey | None:
        """The entry of a presented key: of the file, or of those that administrators manage; None: unknown."""
        key = self._keys.find(presented)
        managed_keys = self.accounts.managed_keys
        if key is None and self.config.admin_keys and managed_keys is not None:
            key = managed_keys.find(presented)
            if key is not None and any(key.name == other.name for other in self.config.keys):
                return None  # the file has given the name, and with it the runs, to another key since
        return key

    def owner_key(self, name: str) -> ApiKey | None:
        """The key of an owner, by the name under which its runs are stored; None: there is none."""
        key = next((key for key in self.config.keys if key.name == name), None)
        if key is None and self.config.jwt is not None and name.startswith(TOKEN_OWNER):
            return self.config.jwt.key_of(name)
        managed_keys = self.accounts.managed_keys
        if key is None and self.config.admin_keys and managed_keys is not None:
            managed = managed_keys.entry(name)
            return None if managed is None else managed.key
        return key

    def enter(self) -> None:
        """A request has begun."""
        self._active += 1

    async def leave(self) -> None:
        """A request has ended."""
        self._active -= 1
        if self._is_replaced:
            await self.retire()

    async def retire(self) -> None:
        """Another snapshot replaces this one, or the server ends."""
        self._is_replaced = True
        if self._active == 0:
            if self.tokens is not None:
                await self.tokens.close()
            for served in self.config.agents.values():
                try:
                    await served.agent.close()
                except Exception:  # noqa: BLE001  # it must not cost the last request its answer
                    _LOG.exception("the connections of %s could not be closed", served.name)
