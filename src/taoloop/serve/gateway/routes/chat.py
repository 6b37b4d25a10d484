"""`POST /v1/chat/completions`: one request, one run, one answer, whole or as it is written."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web

from taoloop.core.codec import event_record
from taoloop.core.events import Event
from taoloop.core.message import Delta
from taoloop.runtime.engine.clock import new_run_id
from taoloop.serve.gateway.answer_pieces import AnswerPieces
from taoloop.serve.gateway.errors import ApiError, ApiErrorRaised
from taoloop.serve.gateway.http.http_io import EventStream
from taoloop.serve.gateway.request_context import error_for_exception
from taoloop.serve.gateway.run_request import chat_run_request
from taoloop.serve.gateway.run_service import RunRequest, RunResponse
from taoloop.serve.gateway.schema.chat import DONE, ChatChunks, ChatRequest, completion, read_chat, sse

if TYPE_CHECKING:
    from taoloop.serve.gateway.request_context import RequestContext

HIDDEN_STEPS = ("run_started",)
"""Events that a client does not get: they hold the whole description of the agent."""


async def chat_completions(context: RequestContext) -> web.StreamResponse:
    """Answer a chat request.

    Raises:
        RequestRefused: the request is of no use, or its run has no answer.
    """
    request = read_chat(await context.read_body())
    served = context.find_agent(request.model)
    run_request = await context.service.resolve_request(chat_run_request(request, served, context.key))
    context.report_ignored_fields(request.ignored)
    with context.run_slot(served):
        if request.stream:
            return await _respond_streamed(context, request, run_request)
        return await _respond_whole(context, request, run_request)


async def _respond_whole(context: RequestContext, request: ChatRequest, run_request: RunRequest) -> web.Response:
    created, run_id = int(time.time()), context.assign_run_id(run_request, new_run_id(time.time()))
    response = context.record_response(await context.service.answer(run_request, run_id, on_event=context.on_event))
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


async def _respond_streamed(
    context: RequestContext, request: ChatRequest, run_request: RunRequest
) -> web.StreamResponse:
    run_id = context.assign_run_id(run_request, new_run_id(time.time()))
    options = request.stream_options
    chunks = ChatChunks(
        run_id=run_id,
        created=int(time.time()),
        model=run_request.served.name,
        with_usage=bool(options and options.include_usage),
    )
    agent = run_request.served.agent
    pieces = AnswerPieces(
        dialect=agent.spec_for(run_request.task).dialect,
        tools_offered=bool(agent.toolbox.cards) or bool(run_request.tools),
        hold_back=run_request.schema is not None or run_request.served.reshape is not None or run_request.must_call,
        stops=request.stops,
    )
    steps = bool(options and options.include_steps)

    def on_event(event: Event) -> bytes:
        context.on_event(event)
        pieces.on_event(event)
        if steps and event.fact.kind not in HIDDEN_STEPS:
            return chunks.step(event_record(run_id, event))
        return b""

    def on_delta(delta: Delta) -> bytes:
        text = pieces.on_delta(delta)
        return chunks.piece(text) if text else b""

    def at_end(response: RunResponse) -> bytes:
        return _final_chunks(response, chunks, pieces)

    return await stream_run(context, run_request, run_id, on_event=on_event, on_delta=on_delta, at_end=at_end)


def _final_chunks(response: RunResponse, chunks: ChatChunks, pieces: AnswerPieces) -> bytes:
    """The last events of a stream: what is still to be said, calls, why it ends, tokens."""
    if response.error is not None:
        return sse(response.error.body) + DONE
    data = b""
    if not (response.tool_calls and pieces.has_sent) and (final_text := pieces.finish(response.content)):
        data += chunks.piece(final_text)
    if response.tool_calls:
        data += chunks.calls(response.tool_calls)
    reason = "stop" if pieces.is_cut and not response.tool_calls else response.finish_reason
    return data + chunks.end(reason, response.agent) + chunks.usage(response.usage) + DONE


async def stream_run(
    context: RequestContext,
    run_request: RunRequest,
    run_id: str,
    *,
    on_event: Callable[[Event], bytes],
    on_delta: Callable[[Delta], bytes],
    at_end: Callable[[RunResponse], bytes],
    at_error: Callable[[ApiError], bytes] = lambda refusal: sse(refusal.body) + DONE,
) -> web.StreamResponse:
    """Drive a run and send what the three functions make of it. A client that goes away stops the run.

    Raises:
        RequestRefused: the run failed before anything was sent; afterwards that is an event of the stream.
    """
    queue: asyncio.Queue[bytes] = asyncio.Queue()

    def enqueue(data: bytes) -> None:
        if data:
            context.record_first_piece()
            queue.put_nowait(data)

    run_task = asyncio.create_task(
        context.service.answer(
            run_request,
            run_id,
            on_event=lambda event: enqueue(on_event(event)),
            on_delta=lambda delta: enqueue(on_delta(delta)),
        )
    )
    stream = EventStream(context.request, context.config.limits.heartbeat_s, context.response_headers)
    try:
        await stream.follow(queue, run_task)
        try:
            response = context.record_response(run_task.result())
        except Exception as error:  # the status has gone out, so that every error must be an event
            if not stream.has_begun:
                raise
            refusal = (
                error.error if isinstance(error, ApiErrorRaised) else error_for_exception(error, context.request_id)
            )
            context.record_error(refusal)
            await stream.send(at_error(refusal))
            await stream.response.write_eof()
            return stream.response
        if response.error is not None:
            context.record_error(response.error)
            if not stream.has_begun:
                raise ApiErrorRaised(response.error)
        await stream.send(at_end(response))
        await stream.response.write_eof()
        return stream.response
    except ConnectionError:  # the client is gone; there is nobody to be told
        context.record_disconnect()
        return stream.response
    except asyncio.CancelledError:
        if not (context.is_shut_down and stream.has_begun):
            raise
        refusal = context.shutdown_error()
        context.record_error(refusal)
        run_task.cancel()
        await asyncio.wait((run_task,))
        await stream.end(at_error(refusal))
        return stream.response
    finally:
        if not run_task.done():
            run_task.cancel()
            await asyncio.wait((run_task,))


def apply_stop_sequences(response: RunResponse, stops: tuple[str, ...]) -> RunResponse:
    """The answer up to the first of the client's stop texts."""
    if not stops or response.finish_reason == "tool_calls":
        return response
    from taoloop.dialects.streaming.answer_stream import cut_at  # noqa: PLC0415  # few requests name stop texts

    content = cut_at(response.content, stops)
    if content == response.content:
        return response
    return replace(response, content=content, finish_reason="stop")
