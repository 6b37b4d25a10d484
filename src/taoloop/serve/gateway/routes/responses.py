"""`POST /v1/responses`: one request, one run, one response; the next request may continue from it by its id."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aiohttp import web

from taoloop.core.events import ActionRequested
from taoloop.core.message import Message
from taoloop.runtime.result import Result
from taoloop.serve.gateway.answer_pieces import AnswerPieces
from taoloop.serve.gateway.chat_approval import parse_approval_reply, resume_count
from taoloop.serve.gateway.chat_messages import InvalidMessages, parse_messages
from taoloop.serve.gateway.client_tools import apply_tool_choice, client_call_id, open_client_calls, parse_call_id
from taoloop.serve.gateway.errors import ApiErrorRaised, invalid, invalid_field
from taoloop.serve.gateway.routes.run_stream import stream_run
from taoloop.serve.gateway.run_request import (
    RunRequest,
    continue_message,
    parse_tool_results,
    require_may_approve,
    run_labels,
    with_tool_results,
)
from taoloop.serve.gateway.schema.chat import ChatMessage
from taoloop.serve.gateway.schema.responses import (
    CALL_ITEM,
    TEXT_ITEM,
    ResponseEvents,
    ResponsesRequest,
    parse_response_id,
    read_responses,
)

if TYPE_CHECKING:
    from taoloop.core.events import Event
    from taoloop.core.message import Delta
    from taoloop.core.trace import Trace
    from taoloop.serve.gateway.config.model import ServedAgent
    from taoloop.serve.gateway.errors import ApiError
    from taoloop.serve.gateway.request_context import RequestContext
    from taoloop.serve.gateway.run_response import RunResponse
    from taoloop.serve.gateway.run_service import Service


async def load_referenced_items(
    service: Service, owner: str, references: Sequence[tuple[int, str]]
) -> dict[int, dict[str, Any]]:
    """The referenced items as messages of a chat, by their index in the input.

    Raises:
        ApiErrorRaised: one of them is not of this client; names its field.
    """
    messages: dict[int, dict[str, Any]] = {}
    traces: dict[str, Trace] = {}  # the last one: the items of a run are in sequence, and a trace may be long

    async def trace_of(run_id: str) -> Trace:
        if run_id not in traces:
            traces.clear()
            traces[run_id] = await service.load_owned_run(owner, run_id)
        return traces[run_id]

    for index, item in references:
        try:
            message = await _item_message(trace_of, item)
        except ApiErrorRaised:
            message = None
        if message is None:
            raise invalid_field(f"input[{index}].id", f"There is no item {item[:80]!r} of this client.")
        messages[index] = message
    return messages


async def _item_message(trace_of: Callable[[str], Awaitable[Trace]], item: str) -> dict[str, Any] | None:
    if item.startswith(TEXT_ITEM):
        result = Result.of(await trace_of(parse_response_id(item.removeprefix(TEXT_ITEM))[0]))
        return {"role": "assistant", "content": result.answer or ""}
    if not item.startswith(CALL_ITEM) or (call_ids := parse_call_id(item.removeprefix(CALL_ITEM))) is None:
        return None
    run_id, call_id = call_ids
    for fact in (event.fact for event in (await trace_of(run_id)).events):
        if isinstance(fact, ActionRequested) and fact.call_id == call_id:
            function = {"name": fact.tool, "arguments": json.dumps(fact.args, ensure_ascii=False)}
            call = {"id": client_call_id(run_id, call_id), "type": "function", "function": function}
            return {"role": "assistant", "tool_calls": [call]}
    return None


_STATUS = {"stop": "completed", "tool_calls": "completed", "length": "incomplete", "content_filter": "incomplete"}
_INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


async def responses(context: RequestContext) -> web.StreamResponse:
    """Answer a request for a response.

    Raises:
        ApiErrorRaised: the request is invalid, or its run has no answer.
    """
    request = read_responses(await context.read_body())
    served = context.find_agent(request.model)
    run_request, turn = await _resolve_run_request(context, request, served)
    context.report_ignored_fields(request.ignored)
    with context.admit_run(run_request) as run_id:
        events = ResponseEvents(request, run_id=run_id, created=int(time.time()), model=served.name, turn=turn)
        if request.stream:
            return await stream_run(context, run_request, run_id, _ResponseEncoder(events, run_request))
        response = await context.service.answer(run_request, run_id, on_event=context.on_event)
        context.record_response(response)
        if response.error is not None:
            raise ApiErrorRaised(response.error)
        body = events.response(
            status=_STATUS[response.finish_reason],
            text=response.content,
            usage=response.usage,
            agent=response.agent,
            incomplete_reason=_INCOMPLETE_REASONS.get(response.finish_reason, ""),
            calls=response.tool_calls,
        )
        data = json.dumps(body, ensure_ascii=False).encode(errors="replace")
        return web.Response(body=data, content_type="application/json", headers=context.response_headers)


async def _resolve_run_request(
    context: RequestContext, request: ResponsesRequest, served: ServedAgent
) -> tuple[RunRequest, int]:
    """The run request, and which turn of its run the response will be."""
    key = context.key
    owner = key.name if key is not None else ""
    try:
        messages = request.messages(await load_referenced_items(context.service, owner, request.references))
        tool_results = parse_tool_results(
            [
                ChatMessage(
                    role=message["role"], content=message.get("content"), tool_call_id=message.get("tool_call_id")
                )
                for message in messages
            ],
            ("input", "call_id", "output"),
        )
        parsed = parse_messages(messages if tool_results is None else [*messages, continue_message(messages)])
    except InvalidMessages as error:
        raise invalid_field(error.param.replace("messages", "input", 1), str(error)) from None
    choice = apply_tool_choice(request.tool_choice, request.client_tools)
    run_request = RunRequest(
        served=served,
        task=parsed.question,
        history=parsed.history,
        system="\n\n".join(part for part in (request.instructions, parsed.system) if part),
        temperature=request.temperature,
        top_p=request.top_p,
        token_limit=request.max_output_tokens,
        schema=request.answer_schema,
        schema_param="text.format.schema",
        tools=choice.offered,
        tool_param="tools[{}]",
        must_call=choice.must_call,
        one_call=request.parallel_tool_calls is False,
        owner=owner,
        labels=run_labels(served, owner, "responses", request.user),
    )
    if tool_results is not None:
        trace = await context.service.load_owned_run(owner, tool_results[0])
        if request.previous_response_id is not None and trace.started is not None:  # the input has only the results
            before = (*trace.started.history, Message(role="user", content=trace.task))
            run_request = replace(run_request, history=(*before, *run_request.history))
        run_request = await context.service.resolve_request(with_tool_results(run_request, *tool_results))
        return run_request, resume_count(trace) + (trace.paused is not None) if run_request.run is not None else 0
    if request.previous_response_id is None:
        return run_request, 0
    if parsed.history:
        message = "With `previous_response_id` it must be only the new message; the server has the others."
        raise invalid_field("input", message)
    earlier, turn = parse_response_id(request.previous_response_id)
    try:
        trace = await context.service.load_owned_run(owner, earlier)
    except ApiErrorRaised as error:
        raise ApiErrorRaised(replace(error.error, param="previous_response_id")) from None
    if trace.paused is not None:
        if open_client_calls(trace):
            message = "That run waits for results of its client's tools: give a `function_call_output` for each call."
            raise invalid(message, "previous_response_id", "waits_for_tools")
        require_may_approve(key)
        current_turn = resume_count(trace)  # a reply to an earlier question gets the current one
        approval = replace(parse_approval_reply(parsed.question), turn=turn)
        return replace(
            run_request, run=earlier, approval=approval
        ), current_turn + 1 if turn == current_turn else current_turn
    return replace(run_request, after=earlier), 0


class _ResponseEncoder:
    """A run as the events of a streamed response."""

    def __init__(self, events: ResponseEvents, run_request: RunRequest) -> None:
        self._events, self._pieces = events, AnswerPieces.of(run_request)
        self._sent: list[str] = []

    def on_delta(self, delta: Delta) -> bytes:
        return self._piece(self._pieces.on_delta(delta))

    def on_event(self, event: Event) -> bytes:
        self._pieces.on_event(event)
        return b""

    def end(self, response: RunResponse) -> bytes:
        if response.error is not None:
            return self._start() + self._events.end(
                status="failed", text="", usage=response.usage, agent=response.agent, error=response.error
            )
        has_only_calls = response.tool_calls and self._pieces.has_sent
        data = b"" if has_only_calls else self._piece(self._pieces.finish(response.content))
        return (
            data
            + self._start()
            + self._events.end(
                status=_STATUS[response.finish_reason],
                text="".join(self._sent),
                usage=response.usage,
                agent=response.agent,
                incomplete_reason=_INCOMPLETE_REASONS.get(response.finish_reason, ""),
                calls=response.tool_calls,
            )
        )

    def error(self, error: ApiError) -> bytes:
        return self._events.error_event(error)

    def _start(self) -> bytes:
        """The first events, where nothing was sent yet."""
        return b"" if self._sent else self._events.start()

    def _piece(self, text: str) -> bytes:
        if not text:
            return b""
        start = self._start()
        self._sent.append(text)
        return start + self._events.piece(text)
