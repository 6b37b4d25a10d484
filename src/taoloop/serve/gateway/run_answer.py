"""A run as the answer to its request: one JSON object, or a stream of server-sent events, sent as they happen.

An encoder for each API gives the answer its form. `AnswerPieces` decides what of a reply that is being written may be
sent, and `EventStream` sends it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from aiohttp import web

from taoloop.core.events import Event, ModelReplied
from taoloop.core.message import Delta
from taoloop.dialects.answer_stream import AnswerStream, unsent_suffix
from taoloop.dialects.pending_text import StopCutter, cut_at
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
_BREAK = "\n\n"


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
    pieces = AnswerPieces(run_request)

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


class AnswerPieces:
    """Takes the events of a run and gives the pieces of the answer that can be sent.

    What was sent cannot be taken back: where text turns out not to be part of the answer (words before a tool call, a
    reply that started over), it comes before the answer, separated by an empty line. Stop sequences cut each of them
    by itself: one that comes before the answer does not end it.
    """

    def __init__(self, run_request: RunRequest) -> None:
        agent = run_request.served.agent
        self._dialect = agent.spec_for(run_request.task).dialect
        own_names = (card.name for card in agent.toolbox.cards)
        self._tool_names = (*own_names, *(tool.function.name for tool in run_request.tools))
        is_checked = agent.evidence == "require" or is_revised(agent.strategy)
        self._is_held_back = run_request.answer_is_held_back or is_checked
        self._stops, self._cutter = run_request.stops, StopCutter(run_request.stops)
        self._stream = self._new_stream()
        self._current = ""  # what was sent of the reply that is being written
        self._rejected = ""  # what was sent of an unreadable reply, which may be the answer all the same
        self._before = ""  # what is still to be sent of text before the answer, and an empty line

    @property
    def is_cut(self) -> bool:
        """Whether a stop sequence of the client ended the answer."""
        return self._cutter.hit

    @property
    def has_sent(self) -> bool:
        """Whether anything went out."""
        return bool(self._current or self._before)

    def on_delta(self, delta: Delta) -> str:
        """Take a piece of a reply; returns what can be sent of it."""
        if self._is_held_back or delta.kind == "progress":
            return ""
        text = self._stream.feed(delta)
        if delta.kind == "restart" and self._current:
            self._start_new_text()
        return self._emit(text)

    def on_event(self, event: Event) -> None:
        """Take an event: after a complete reply comes another one, or the end."""
        if isinstance(event.fact, ModelReplied):
            decision = event.fact.decision
            is_answer = decision is not None and not hasattr(decision, "calls")
            if self._current and not is_answer:
                self._rejected = self._current if decision is None and not self._cutter.hit else ""
                self._start_new_text()
            self._stream = self._new_stream()

    def finish(self, answer: str) -> str:
        """The rest of the answer, now that all of it is known."""
        pending = ""
        if self._rejected and not self._current and answer.startswith(self._rejected):  # it was cut off
            self._current, pending, self._before = self._rejected, self._before.removesuffix(_BREAK), ""
        more, fits = unsent_suffix(answer, self._current)
        if not fits and self.has_sent:
            self._start_new_text()
        return pending + self._emit(more) + self._cutter.flush()

    def _emit(self, text: str) -> str:
        if not text:
            return ""
        self._current += text
        before, self._before = self._before, ""
        return before + self._cutter.feed(text)

    def _start_new_text(self) -> None:
        self._current, self._before = "", self._before.removesuffix(_BREAK) + self._cutter.flush() + _BREAK
        self._cutter = StopCutter(self._stops)

    def _new_stream(self) -> AnswerStream:
        names = self._tool_names
        return AnswerStream(self._dialect, tools_offered=bool(names), has_schema=self._is_held_back, tool_names=names)
