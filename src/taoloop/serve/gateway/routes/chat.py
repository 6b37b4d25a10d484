"""`POST /v1/chat/completions`: one request, one run, one answer, whole or as it is written."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web

from taoloop.core.stored_events import event_record
from taoloop.serve.gateway.answer_pieces import AnswerPieces
from taoloop.serve.gateway.errors import ApiErrorRaised
from taoloop.serve.gateway.routes.run_stream import stream_run
from taoloop.serve.gateway.run_request import chat_run_request
from taoloop.serve.gateway.schema.chat import DONE, ChatChunks, ChatRequest, completion, read_chat, sse

if TYPE_CHECKING:
    from taoloop.core.events import Event
    from taoloop.core.message import Delta
    from taoloop.serve.gateway.errors import ApiError
    from taoloop.serve.gateway.request_context import RequestContext
    from taoloop.serve.gateway.run_request import RunRequest
    from taoloop.serve.gateway.run_response import RunResponse

HIDDEN_STEPS = ("run_started",)
"""Events that no client gets: they hold the whole description of the agent."""


async def chat_completions(context: RequestContext) -> web.StreamResponse:
    """Answer a chat request.

    Raises:
        ApiErrorRaised: the request is invalid, or its run has no answer.
    """
    request = read_chat(await context.read_body())
    served = context.find_agent(request.model)
    run_request = await context.service.resolve_request(chat_run_request(request, served, context.key))
    context.report_ignored_fields(request.ignored)
    with context.admit_run(run_request) as run_id:
        if request.stream:
            return await stream_run(context, run_request, run_id, _ChatEncoder(request, run_request, run_id))
        return await _respond_whole(context, request, run_request, run_id)


async def _respond_whole(
    context: RequestContext, request: ChatRequest, run_request: RunRequest, run_id: str
) -> web.Response:
    created = int(time.time())
    response = await context.service.answer(run_request, run_id, on_event=context.on_event)
    context.record_response(response)
    if response.error is not None:
        raise ApiErrorRaised(response.error)
    response = apply_stop_sequences(response, request.stops)
    body = completion(
        run_id=response.run_id,
        created=created,
        model=run_request.served.name,
        content=response.content if not response.tool_calls or response.content else None,
        finish_reason=response.finish_reason,
        usage=response.usage,
        agent=response.agent,
        tool_calls=response.tool_calls,
    )
    return web.Response(
        body=json.dumps(body, ensure_ascii=False).encode(errors="replace"),
        content_type="application/json",
        headers=context.response_headers,
    )


class _ChatEncoder:
    """A run as the chunks of a streamed chat completion."""

    def __init__(self, request: ChatRequest, run_request: RunRequest, run_id: str) -> None:
        options = request.stream_options
        self._with_steps = bool(options and options.include_steps)
        self._run_id = run_id
        self._chunks = ChatChunks(
            run_id=run_id,
            created=int(time.time()),
            model=run_request.served.name,
            with_usage=bool(options and options.include_usage),
        )
        self._pieces = AnswerPieces.of(run_request, stops=request.stops)

    def on_delta(self, delta: Delta) -> bytes:
        text = self._pieces.on_delta(delta)
        return self._chunks.piece(text) if text else b""

    def on_event(self, event: Event) -> bytes:
        self._pieces.on_event(event)
        if self._with_steps and event.fact.kind not in HIDDEN_STEPS:
            return self._chunks.step(event_record(self._run_id, event))
        return b""

    def end(self, response: RunResponse) -> bytes:
        """The rest of the answer, tool calls, why it ends, tokens."""
        if response.error is not None:
            return self.error(response.error)
        data = b""
        if not (response.tool_calls and self._pieces.has_sent) and (rest := self._pieces.finish(response.content)):
            data += self._chunks.piece(rest)
        if response.tool_calls:
            data += self._chunks.calls(response.tool_calls)
        reason = "stop" if self._pieces.is_cut and not response.tool_calls else response.finish_reason
        return data + self._chunks.end(reason, response.agent) + self._chunks.usage(response.usage) + DONE

    def error(self, error: ApiError) -> bytes:
        return sse(error.body) + DONE


def apply_stop_sequences(response: RunResponse, stops: tuple[str, ...]) -> RunResponse:
    """The answer up to the first of the client's stop sequences."""
    if not stops or response.finish_reason == "tool_calls":
        return response
    from taoloop.dialects.streaming.answer_stream import cut_at  # noqa: PLC0415  # few requests name stop sequences

    content = cut_at(response.content, stops)
    if content == response.content:
        return response
    return replace(response, content=content, finish_reason="stop")
