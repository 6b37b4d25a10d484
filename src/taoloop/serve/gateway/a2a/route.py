"""`POST /a2a/{agent}`: A2A over JSON-RPC. A task is a run, and a context is a conversation.

An error of a task is the state of the task. One of a request is an error of JSON-RPC with the status 200, unless it is
about who may call, or whether there is a place.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from aiohttp import web

from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import FenceLost, RunHeld, RunNotAnswered, RunNotFound, RunNotResumable
from taoloop.runtime.after.abandonment import abandon_run
from taoloop.runtime.chat import load_history
from taoloop.runtime.engine.clock import random_hex
from taoloop.serve.gateway.a2a.encoder import CONTEXT, TaskEncoder, context_of, task_of
from taoloop.serve.gateway.a2a.push_configs import PushConfig, PushParams, PushSettings, push_config
from taoloop.serve.gateway.a2a.push_delivery import check_push_url
from taoloop.serve.gateway.a2a.wire import (
    A2aMessage,
    RpcRequest,
    SendParams,
    TaskParams,
    Wire,
    chat_message,
    error_response_body,
    named_method,
    required_context,
)
from taoloop.serve.gateway.chat_approval import asked_now, parse_approval_reply, question_code
from taoloop.serve.gateway.config.model import ServedAgent
from taoloop.serve.gateway.errors import ApiError, missing
from taoloop.serve.gateway.repeats.matching import entered_request, match_request, run_of_ids
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.request_schema import ChatRequest, parse_body
from taoloop.serve.gateway.run_answer import answer_request
from taoloop.serve.gateway.run_request import RunRequest, new_run_request, owner_of
from taoloop.serve.gateway.run_response import RunResponse, build_response

_TRANSPORT_STATUSES = (401, 403, 408, 413, 421, 429, 503)
"""Statuses of errors that are no answers of the protocol: who may call, and whether there is a place."""


class A2aSettings(ChatRequest):
    """A message in the terms of a chat completion."""

    via = "a2a"
    message_names = ("messages", "taskId", "parts")


async def call_a2a(context: RequestContext) -> web.StreamResponse:
    """Answer a request of JSON-RPC.

    Raises:
        ApiError: the protocol is off, the key is unknown, or there is no place for a run.
    """
    context.require_protocol("a2a")
    body = await context.read_body()
    request_id = None
    try:
        served = context.find_agent(context.request.match_info["agent"])
        rpc = _read_request(body)
        request_id = rpc.id
        return await TaskCall(context, served, rpc).answer()
    except ApiError as error:
        final_error = context.final_error(error)
        if final_error.status in _TRANSPORT_STATUSES:
            raise
        context.record_error(final_error)
        return context.json_response(error_response_body(final_error, request_id))


def _read_request(body: bytes) -> RpcRequest:
    try:
        return parse_body(RpcRequest, body)
    except ApiError as error:
        code = "invalid_json" if error.code == "invalid_json" else "invalid_request"
        raise replace(error, code=code) from None


class TaskCall:
    """One request about a task.

    Args:
        context: The request.
        served: The agent.
        rpc: What is called.

    Raises:
        ApiError: there is no such method.
    """

    def __init__(self, context: RequestContext, served: ServedAgent, rpc: RpcRequest) -> None:
        self._context, self._served, self._rpc = context, served, rpc
        self._version, self._operation = named_method(rpc.method)
        self._params = json.dumps(rpc.params, ensure_ascii=False, sort_keys=True).encode(errors="replace")
        self._owner, self._authority = owner_of(context.key)
        self._push: PushSettings | None = None

    async def answer(self) -> web.StreamResponse:
        """Do what is called.

        Raises:
            ApiError: the parameters are invalid, there is no such task of this client, or it cannot be done now.
        """
        if self._operation in ("send", "stream"):
            params = parse_body(SendParams, self._params)
            message, self._push = params.message, self._pushed_to(params.configuration)
            return await (self._reply(message, message.task_id) if message.task_id else self._start(message))
        if self._operation.startswith("push_"):
            return await self._configure_push()
        task_id = parse_body(TaskParams, self._params).id
        trace = await self._context.service.load_owned_run(self._owner, task_id, self._served.name)
        if self._operation == "cancel":
            return await self._cancel(trace)
        if self._operation == "get" or _is_abandoned(trace):
            return await self._show(trace)
        run_request = self._continued(task_id)
        return await self._drive(replace(run_request, is_repeat=True), context_of(trace), is_stream=True)

    async def _start(self, message: A2aMessage) -> web.StreamResponse:
        """A new task, which continues the conversation of its context."""
        context_id = message.context_id or f"ctx_{random_hex(12)}"
        settings = A2aSettings(model=self._served.name, messages=[chat_message(message)])
        try:
            run_request = new_run_request(settings, settings.messages, self._served, self._context.key)
        except ApiError as error:
            raise _named_as_sent(error) from None
        last_run = self._context.conversations.last_run(self._owner, self._served.name, f"a2a:{context_id}")
        after = None if last_run is None else await self._answered(last_run)
        run_request = replace(run_request, labels={**run_request.labels, CONTEXT: context_id}, after=after)
        key = self._request_key(message)
        run_of_ids(self._context, self._params, key, "message.messageId")
        run_request = await match_request(self._context, run_request, self._params, key)
        return await self._drive(run_request, context_id, is_stream=self._operation == "stream")

    async def _reply(self, message: A2aMessage, task_id: str) -> web.StreamResponse:
        """The person's answer to what a task waits for; only to what this client was shown."""
        trace = await self._context.service.load_owned_run(self._owner, task_id, self._served.name)
        context_id, key = context_of(trace), self._request_key(message)
        required_context(message, context_id)
        known_run = run_of_ids(self._context, self._params, key, "message.messageId")
        if trace.paused is None and known_run != task_id:
            state = (
                "is over: send a message without `taskId`"
                if trace.finished is not None
                else "is at work: `SubscribeToTask`"
            )
            text = f"The task {task_id} {state}."
            raise ApiError(status=409, message=text, param="message.taskId", code="unsupported_operation")
        code = self._context.conversations.shown_question(self._owner, task_id)
        text = chat_message(message).text
        run_request = replace(self._continued(task_id), approval=replace(parse_approval_reply(text), code=code))
        run_request = await match_request(self._context, run_request, self._params, key)
        run_request = replace(run_request, is_repeat=known_run == task_id)  # the same words may not answer twice
        return await self._drive(run_request, context_id, is_stream=self._operation == "stream")

    async def _drive(self, run_request: RunRequest, context_id: str, *, is_stream: bool) -> web.StreamResponse:
        context = self._context
        before = await context.service.load_run_before(run_request)
        with context.admit_run(run_request, before) as run_id, entered_request(context, run_request, run_id):
            if run_request.run is None:
                context.conversations.enter(self._owner, self._served.name, f"a2a:{context_id}", run_id)
            if self._push is not None:
                self._enter_push(self._push, run_id, 0 if before is None else len(before))
            wire = Wire(self._version, self._rpc.id, run_id, context_id)
            encoder = TaskEncoder(wire)
            try:
                return await answer_request(context, run_request, run_id, encoder, stream=is_stream)
            except ApiError as error:
                if error.status in _TRANSPORT_STATUSES or (task := await self._failed_task(wire, error)) is None:
                    raise _named_as_sent(error) from None
                return context.json_response(wire.sent(task))
            finally:
                if encoder.shown:
                    context.conversations.enter_question(self._owner, run_id, encoder.shown)

    def _pushed_to(self, configuration: dict[str, Any]) -> PushSettings | None:
        """Where a message asks to push the states of its task; None: nowhere."""
        names = ("taskPushNotificationConfig", "pushNotificationConfig")
        name = next((name for name in names if configuration.get(name) is not None), None)
        if name is None:
            return None
        path = f"configuration.{name}"
        return self._checked_push(parse_body(PushSettings, json.dumps(configuration[name]).encode()), f"{path}.url")

    def _checked_push(self, settings: PushSettings, param: str) -> PushSettings:
        rules = self._context.config.a2a_push
        if rules is None:
            message = "This server pushes no states: its operator allows no address (`server: {a2a_push: …}`)."
            raise ApiError(status=400, message=message, code="push_not_supported")
        check_push_url(rules, settings.url, param)
        return settings

    def _enter_push(self, settings: PushSettings, run_id: str, seq: int) -> PushConfig:
        owner, agent = self._owner, self._served.name
        config = push_config(settings, self._version, owner=owner, agent=agent, run_id=run_id, seq=seq)
        self._context.push_configs.enter(config)
        return config

    async def _configure_push(self) -> web.Response:
        """Set, get, list or delete where the states of a task are pushed to."""
        if self._context.config.a2a_push is None:
            self._checked_push(PushSettings(url="-"), "url")
        params, is_old = parse_body(PushParams, self._params), self._version == "0.3"
        task_id = params.id if is_old and self._operation != "push_set" else params.task_id
        if task_id is None:
            raise missing("id" if is_old else "taskId")
        trace = await self._context.service.load_owned_run(self._owner, task_id, self._served.name)
        wire, store = Wire(self._version, self._rpc.id, task_id, context_of(trace)), self._context.push_configs

        def shown(config: PushConfig) -> dict[str, Any]:
            settings = config.public()
            return {"taskId": task_id, **({"pushNotificationConfig": settings} if is_old else settings)}

        if self._operation == "push_set":
            if is_old and params.push_notification_config is None:
                raise missing("pushNotificationConfig")
            settings = params.push_notification_config or parse_body(PushSettings, self._params)
            self._checked_push(settings, "pushNotificationConfig.url" if is_old else "url")
            seq = 0 if trace.status == "running" else len(trace)  # a state that the client can see is not pushed
            return self._context.json_response(wire.result(shown(self._enter_push(settings, task_id, seq))))
        configs = store.of_task(self._owner, task_id)
        if self._operation == "push_list":
            all_shown = [shown(config) for config in configs]
            return self._context.json_response(wire.result(all_shown if is_old else {"configs": all_shown}))
        config_id = params.push_notification_config_id if is_old else params.id
        named = [config for config in configs if config_id in (None, config.id)]
        if self._operation == "push_delete":
            if config_id is None:
                raise missing("pushNotificationConfigId" if is_old else "id")
            store.remove(self._owner, task_id, config_id)
            return self._context.json_response(wire.result(None if is_old else {}))
        if not named:
            raise ApiError(status=404, message="The task has no such configuration.", param="id", code="run_not_found")
        return self._context.json_response(wire.result(shown(named[0])))

    async def _failed_task(self, wire: Wire, error: ApiError) -> dict[str, Any] | None:
        """The task of a run that ended with this error; None: it has not begun or not ended."""
        try:
            trace = await self._context.service.load_owned_run(self._owner, wire.task_id)
        except ApiError:
            return None
        if trace.finished is None:
            return None
        response = await self._response(trace)
        return task_of(wire, replace(response, error=self._context.final_error(error)))

    async def _show(self, trace: Trace) -> web.Response:
        """The task as it is."""
        wire = Wire(self._version, self._rpc.id, trace.run_id, context_of(trace))
        if trace.status == "running":
            task = wire.task("working", "", None, {"run_id": trace.run_id})
        else:
            response = await self._response(trace)
            task = task_of(wire, response)
            if response.waiting:
                code = question_code(asked_now(response.waiting))
                self._context.conversations.enter_question(self._owner, trace.run_id, code)
        return self._context.json_response(wire.result(task))

    async def _cancel(self, trace: Trace) -> web.Response:
        """End a task that waits or was stopped, for good."""
        by, authenticated = self._owner or "client", "gateway_key" if self._owner else ""
        try:
            await abandon_run(self._context.service.journal, trace.run_id, by=by, authenticated=authenticated)
        except (RunNotResumable, RunHeld, FenceLost) as error:
            message = f"{error.message} {error.hint or ''}".strip()
            raise ApiError(status=409, message=message, param="id", code="task_not_cancelable") from None
        return await self._show(await self._context.service.load_owned_run(self._owner, trace.run_id))

    async def _response(self, trace: Trace) -> RunResponse:
        journal = self._context.service.journal
        return await build_response(journal, Result.of(trace), self._served, authority=self._authority)

    async def _answered(self, run_id: str) -> str | None:
        """The run whose conversation a new one continues: the last one of the context, or the one before it."""
        try:
            trace = await self._context.service.load_owned_run(self._owner, run_id)
            await load_history(self._context.service.journal, run_id)
        except (ApiError, RunNotFound):
            return None
        except RunNotAnswered:
            return None if trace.started is None else trace.started.after
        return run_id

    def _continued(self, run_id: str) -> RunRequest:
        key = self._context.key
        return RunRequest(
            served=self._served,
            run=run_id,
            owner=self._owner,
            authority=self._authority,
            may_approve=key is None or key.may_approve,
        )

    def _request_key(self, message: A2aMessage) -> str:
        """The id of the message in place of an `Idempotency-Key`: a client that lost its answer sends it again."""
        return hashlib.sha256(f"a2a\0{message.message_id}".encode(errors="replace")).hexdigest()


def _is_abandoned(trace: Trace) -> bool:
    return trace.finished is not None and bool(trace.finished.abandoned_by)


def _named_as_sent(error: ApiError) -> ApiError:
    """The error with the names that the fields have in the request."""

    def renamed(text: str) -> str:
        return text.replace("messages[0].content", "message.parts").replace("messages[0]", "message")

    return replace(error, message=renamed(error.message), param=None if error.param is None else renamed(error.param))
