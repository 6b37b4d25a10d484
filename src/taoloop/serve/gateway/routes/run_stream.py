"""A run as a stream of server-sent events, sent as they happen; an encoder for each API makes them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from aiohttp import web

from taoloop.serve.gateway.errors import ApiError, ApiErrorRaised, error_for_exception
from taoloop.serve.gateway.http.http_io import EventStream

if TYPE_CHECKING:
    from taoloop.core.events import Event
    from taoloop.core.message import Delta
    from taoloop.serve.gateway.request_context import RequestContext
    from taoloop.serve.gateway.run_request import RunRequest
    from taoloop.serve.gateway.run_response import RunResponse


class StreamEncoder(Protocol):
    """Encodes a run for an API: each method returns server-sent events, or nothing."""

    def on_delta(self, delta: Delta) -> bytes:
        """A piece of a reply that the model is writing."""
        ...

    def on_event(self, event: Event) -> bytes:
        """Something happened in the run."""
        ...

    def end(self, response: RunResponse) -> bytes:
        """The run is over: the last events of the stream."""
        ...

    def error(self, error: ApiError) -> bytes:
        """The stream ends with an error."""
        ...


async def stream_run(
    context: RequestContext, run_request: RunRequest, run_id: str, encoder: StreamEncoder
) -> web.StreamResponse:
    """Drive a run and send it as the encoder encodes it. A client that leaves stops the run.

    Raises:
        ApiErrorRaised: the run failed before anything was sent; afterwards an error is an event of the stream.
    """
    queue: asyncio.Queue[bytes] = asyncio.Queue()

    def enqueue(data: bytes) -> None:
        if data:
            context.record_first_piece()
            queue.put_nowait(data)

    def on_event(event: Event) -> None:
        context.on_event(event)
        enqueue(encoder.on_event(event))

    run_task = asyncio.create_task(
        context.service.answer(
            run_request, run_id, on_event=on_event, on_delta=lambda delta: enqueue(encoder.on_delta(delta))
        )
    )
    stream = EventStream(context.request, context.config.limits.heartbeat_s, context.response_headers)
    try:
        await stream.follow(queue, run_task)
        await _send_end(context, stream, run_task, encoder)
    except ConnectionError:  # the client has left; there is nobody to tell
        context.record_disconnect()
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
    context: RequestContext, stream: EventStream, run_task: asyncio.Task[RunResponse], encoder: StreamEncoder
) -> None:
    """Send the end of the answer. Once the status has gone out, every error must be an event."""
    try:
        response = context.record_response(run_task.result())
    except Exception as error:
        if not stream.has_begun:
            raise
        known = error.error if isinstance(error, ApiErrorRaised) else None
        api_error = known or error_for_exception(error, context.record.request_id)
        context.record_error(api_error)
        await stream.send(encoder.error(api_error))
    else:
        if response.error is not None and not stream.has_begun:
            raise ApiErrorRaised(response.error)
        await stream.send(encoder.end(response))
    await stream.response.write_eof()


async def _cancel(task: asyncio.Task[RunResponse]) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
