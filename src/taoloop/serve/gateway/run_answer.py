"""A run as the answer to its request: one JSON object, or a stream of server-sent events, sent as they happen.

An encoder for each API gives the answer its form. `AnswerPieces` (`taoloop.dialects.answer_pieces`) decides what of a
reply that is being written may be sent, and `EventStream` sends it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from aiohttp import web

from taoloop.core.events import Event
from taoloop.core.message import Delta
from taoloop.dialects.answer_pieces import AnswerPieces
from taoloop.dialects.pending_text import cut_at
from taoloop.serve.gateway.auth.login_links import add_login_links
from taoloop.serve.gateway.errors import ApiError, error_for_exception
from taoloop.serve.gateway.request_context import RequestContext
from taoloop.serve.gateway.run_request import RunRequest
from taoloop.serve.gateway.run_response import RunResponse
from taoloop.strategies import is_revised

WRITE_TIMEOUT_S = 30.0
"""How long a client may leave a piece of its stream unread before it counts as disconnected."""

FINAL_WRITE_TIMEOUT_S = 1.0
"""The same during shutdown."""

_HEARTBEAT = b": still at work\n\n"


class AnswerEncoder(Protocol):
    """Encodes a run for an API: as a JSON object, or as server-sent events, of which there may be none."""

    def whole(self, response: RunResponse) -> dict[str, Any]:
        """The whole answer of a run that is over."""

    def piece(self, text: str) -> bytes:
        """A piece of the answer."""

    def thought(self, text: str, /) -> bytes:
        """A piece of the thinking that a reasoning model keeps apart from its reply."""

    def step(self, event: Event, /) -> bytes:
        """Something happened in the run."""

    def identify(self, response: RunResponse) -> None:
        """The run is over: whatever is sent from here on is of this response, and so is its id, if none was sent."""

    def end(self, response: RunResponse) -> bytes:
        """The run is over, with an error or with all of its answer sent: the last events of the stream."""

    def error(self, error: ApiError) -> bytes:
        """The stream ends with an error."""


async def answer_request(
    context: RequestContext, run_request: RunRequest, run_id: str, encoder: AnswerEncoder, *, stream: bool
) -> web.StreamResponse:
    """Drive a run and send its answer as the encoder encodes it. A client that leaves stops the run.

    Raises:
        ApiError: the run failed before anything was sent; afterwards an error is an event of the stream.
    """
    if stream:
        return await _stream_run(context, run_request, run_id, encoder)
    response = await context.service.answer(run_request, run_id, on_event=context.on_event)
    response = await add_login_links(context, run_request, response)
    context.record_response(response)
    if response.error is not None:
        raise response.error
    if run_request.stops and response.finish_reason != "tool_calls":
        content = cut_at(response.content, run_request.stops)
        if content != response.content:
            response = replace(response, content=content, finish_reason="stop")
    whole = context.json_response(encoder.whole(response))
    if run_request.identity is not None:  # the request counts as answered once this is sent
        await whole.prepare(context.request)
        await whole.write_eof()
    return whole


async def _stream_run(
    context: RequestContext, run_request: RunRequest, run_id: str, encoder: AnswerEncoder
) -> web.StreamResponse:
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    pieces = _pieces_for(run_request)

    def enqueue(data: bytes) -> None:
        if data:
            context.record_first_piece()
            queue.put_nowait(data)

    def on_event(event: Event) -> None:
        context.on_event(event)
        pieces.on_event(event)
        enqueue(encoder.step(event))

    def on_delta(delta: Delta) -> None:
        if delta.kind == "thinking":
            enqueue(encoder.thought(delta.text))
        if text := pieces.on_delta(delta):
            enqueue(encoder.piece(text))

    async def answer() -> RunResponse:
        response = await context.service.answer(run_request, run_id, on_event=on_event, on_delta=on_delta)
        return await add_login_links(context, run_request, response)

    run_task = asyncio.create_task(answer())
    stream = EventStream(context.request, context.config.limits.heartbeat_s, context.response_headers)
    try:
        await stream.follow(queue, run_task)
        await _send_end(context, stream, run_task, encoder, pieces)
    except ConnectionError:  # the client has left; there is nobody to tell
        context.record.client_left = True
    except asyncio.CancelledError:
        if not (context.is_shut_down and stream.has_begun):
            raise
        error = context.absorb_shutdown()
        context.record_error(error)
        await _cancel(run_task)
        await stream.end(encoder.error(error))
    finally:
        await _cancel(run_task)
    return stream.response


async def _send_end(
    context: RequestContext,
    stream: EventStream,
    run_task: asyncio.Task[RunResponse],
    encoder: AnswerEncoder,
    pieces: AnswerPieces,
) -> None:
    """Send the end of the answer. Once the status has gone out, every error must be an event."""
    try:
        response = context.record_response(run_task.result())
    except Exception as error:
        if not stream.has_begun:
            raise
        api_error = context.final_error(error_for_exception(error, context.record.request_id))
        context.record_error(api_error)
        await stream.send(encoder.error(api_error))
    else:
        if response.error is not None and not stream.has_begun:
            raise response.error
        encoder.identify(response)
        if response.error is not None:
            response = replace(response, error=context.final_error(response.error))
        rest = b""
        if response.error is None and not (response.tool_calls and pieces.has_sent):
            text = pieces.finish(response.content)
            rest = encoder.piece(text) if text else b""
            if pieces.is_cut and not response.tool_calls:
                response = replace(response, finish_reason="stop")
        await stream.send(rest + encoder.end(response))
    await stream.response.write_eof()


async def _cancel(task: asyncio.Task[RunResponse]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))


def sse(value: Mapping[str, Any], event: str = "") -> bytes:
    """One event of a stream."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n\n".encode(errors="replace")


class EventStream:
    """The answer to one request as server-sent events. Nothing is sent before there is something to send.

    So an error before that has a status of its own; after that an error is an event.
    """

    def __init__(
        self, request: web.Request, heartbeat_s: float, headers: dict[str, str], *, write_s: float = WRITE_TIMEOUT_S
    ) -> None:
        self._request, self._heartbeat_s, self._write_s = request, heartbeat_s, write_s
        self.response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
                "X-Accel-Buffering": "no",
                **headers,
            }
        )

    @property
    def has_begun(self) -> bool:
        """Whether the status has been sent."""
        return self.response.prepared

    async def send(self, data: bytes) -> None:
        """Send some events.

        Raises:
            ConnectionError: the client has left, or no longer reads.
        """
        if not data:
            return
        try:
            async with asyncio.timeout(self._write_s):
                if not self.response.prepared:
                    await self.response.prepare(self._request)
                await self.response.write(data)
        except TimeoutError:
            raise ConnectionResetError("the client reads nothing") from None

    async def end(self, data: bytes) -> None:
        """Send the last events in a hurry; a client that does not read them is ignored."""
        self._write_s = min(self._write_s, FINAL_WRITE_TIMEOUT_S)
        with suppress(ConnectionError):
            await self.send(data)
            await self.response.write_eof()

    async def follow(self, queue: asyncio.Queue[bytes], work: asyncio.Task[object]) -> None:
        """Send what comes into the queue until the work is done, and a heartbeat comment in longer pauses."""
        work.add_done_callback(lambda _: queue.put_nowait(b""))
        while not (work.done() and queue.empty()):
            try:
                async with asyncio.timeout(self._heartbeat_s):
                    data = await queue.get()
            except TimeoutError:
                data = _HEARTBEAT
            while not queue.empty():
                data += queue.get_nowait()
            await self.send(data)


def _pieces_for(run_request: RunRequest) -> AnswerPieces:
    """The pieces of the answer to a request: cut at its stop sequences, held back where the answer is checked first."""
    agent = run_request.served.agent
    is_checked = agent.evidence == "require" or is_revised(agent.strategy)
    return AnswerPieces(
        agent.spec_for(run_request.task).dialect,
        (*(card.name for card in agent.toolbox.cards), *(tool.function.name for tool in run_request.tools)),
        is_held_back=run_request.answer_is_held_back or is_checked,
        stops=run_request.stops,
    )
