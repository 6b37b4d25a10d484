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
from taoloop.serve.gateway.request_context import failure
from taoloop.serve.gateway.run_request import chat_run_request
from taoloop.serve.gateway.run_service import RunRequest, RunResponse
from taoloop.serve.gateway.schema.chat import DONE, ChatRequest, Chunks, completion, read_chat, sse

if TYPE_CHECKING:
    from taoloop.serve.gateway.request_context import RequestContext

STEPS_HIDDEN = ("run_started",)
"""Events that a client does not get: they hold the whole description of the agent."""


async def chat_completions(visit: RequestContext) -> web.StreamResponse:
    """Answer a chat request.

    Raises:
        RequestRefused: the request is of no use, or its run has no answer.
    """
    request = read_chat(await visit.body())
    served = visit.served(request.model)
    wish = await visit.service.resolve_request(chat_run_request(request, served, visit.key))
    visit.ignored(request.ignored)
    with visit.enter(served):
        if request.stream:
            return await _streamed(visit, request, wish)
        return await _whole(visit, request, wish)


async def _whole(visit: RequestContext, request: ChatRequest, wish: RunRequest) -> web.Response:
    created, run_id = int(time.time()), visit.begin(wish, new_run_id(time.time()))
    answered = visit.finish(await visit.service.answer(wish, run_id, on_event=visit.on_event))
    if answered.refusal is not None:
        raise ApiErrorRaised(answered.refusal)
    answered = apply_stop_sequences(answered, request.stops)
    body = completion(
        run_id=answered.run_id,
        created=created,
        model=wish.served.name,
        content=answered.content if not answered.tool_calls or answered.content else None,
        finish_reason=answered.finish_reason,
        usage=answered.usage,
        agent=answered.agent,
        tool_calls=answered.tool_calls,
    )
    return web.Response(
        body=json.dumps(body, ensure_ascii=False).encode(errors="replace"),
        content_type="application/json",
        headers=visit.headers,
    )


async def _streamed(visit: RequestContext, request: ChatRequest, wish: RunRequest) -> web.StreamResponse:
    run_id = visit.begin(wish, new_run_id(time.time()))
    options = request.stream_options
    chunks = Chunks(
        run_id=run_id,
        created=int(time.time()),
        model=wish.served.name,
        with_usage=bool(options and options.include_usage),
    )
    agent = wish.served.agent
    pieces = AnswerPieces(
        dialect=agent.spec_for(wish.task).dialect,
        tools_offered=bool(agent.toolbox.cards) or bool(wish.tools),
        holds=wish.schema is not None or wish.served.reshape is not None or wish.must_call,
        stops=request.stops,
    )
    steps = bool(options and options.include_steps)

    def on_event(event: Event) -> bytes:
        visit.on_event(event)
        pieces.on_event(event)
        if steps and event.fact.kind not in STEPS_HIDDEN:
            return chunks.step(event_record(run_id, event))
        return b""

    def on_delta(delta: Delta) -> bytes:
        text = pieces.on_delta(delta)
        return chunks.piece(text) if text else b""

    def at_end(answered: RunResponse) -> bytes:
        return _ending(answered, chunks, pieces)

    return await stream_run(visit, wish, run_id, on_event=on_event, on_delta=on_delta, at_end=at_end)


def _ending(answered: RunResponse, chunks: Chunks, pieces: AnswerPieces) -> bytes:
    """The last events of a stream: what is still to be said, calls, why it ends, tokens."""
    if answered.refusal is not None:
        return sse(answered.refusal.body) + DONE
    data = b""
    if not (answered.tool_calls and pieces.has_sent) and (rest := pieces.finish(answered.content)):
        data += chunks.piece(rest)
    if answered.tool_calls:
        data += chunks.calls(answered.tool_calls)
    reason = "stop" if pieces.is_cut and not answered.tool_calls else answered.finish_reason
    return data + chunks.end(reason, answered.agent) + chunks.usage(answered.usage) + DONE


async def stream_run(
    visit: RequestContext,
    wish: RunRequest,
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

    def put(data: bytes) -> None:
        if data:
            visit.first_piece()
            queue.put_nowait(data)

    work = asyncio.create_task(
        visit.service.answer(
            wish, run_id, on_event=lambda event: put(on_event(event)), on_delta=lambda delta: put(on_delta(delta))
        )
    )
    stream = EventStream(visit.request, visit.config.limits.heartbeat_s, visit.headers)
    try:
        await stream.follow(queue, work)
        try:
            answered = visit.finish(work.result())
        except Exception as error:  # the status has gone out, so that every error must be an event
            if not stream.has_begun:
                raise
            refusal = error.refusal if isinstance(error, ApiErrorRaised) else failure(error, visit.request_id)
            visit.refused(refusal)
            await stream.send(at_error(refusal))
            await stream.response.write_eof()
            return stream.response
        if answered.refusal is not None:
            visit.refused(answered.refusal)
            if not stream.has_begun:
                raise ApiErrorRaised(answered.refusal)
        await stream.send(at_end(answered))
        await stream.response.write_eof()
        return stream.response
    except ConnectionError:  # the client is gone; there is nobody to be told
        visit.client_left()
        return stream.response
    except asyncio.CancelledError:
        if not (visit.is_cut and stream.has_begun):
            raise
        refusal = visit.shutdown_error()
        visit.refused(refusal)
        work.cancel()
        await asyncio.wait((work,))
        await stream.end(at_error(refusal))
        return stream.response
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait((work,))


def apply_stop_sequences(answered: RunResponse, stops: tuple[str, ...]) -> RunResponse:
    """The answer up to the first of the client's stop texts."""
    if not stops or answered.finish_reason == "tool_calls":
        return answered
    from taoloop.dialects.streaming.answer_stream import cut_at  # noqa: PLC0415  # few requests name stop texts

    shorter = cut_at(answered.content, stops)
    if shorter == answered.content:
        return answered
    return replace(answered, content=shorter, finish_reason="stop")
