"""The server over standard input and output, one message per line.

Not the transport of the SDK: that one reads lines of any length, and its blocking reader would delay the end of the
process.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from taoloop.runtime.threads import WorkerThreads

MAX_LINE_BYTES = 4 * 1024 * 1024
"""The longest message; a longer one is dropped and answered with an error."""

_TOO_LONG = f"A message may have {MAX_LINE_BYTES:,} bytes; this one was dropped."
_CHUNK = 64 * 1024
_LONGEST_ID = 1_000
_FINAL_TIMEOUT_S = 2.0
_PIPES = WorkerThreads()  # separate: hanging tools may occupy all the others
_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectSendStream[SessionMessage]


async def serve_stdio(server: Server[Any], read_fd: int, write_fd: int, *, stop: asyncio.Event | None = None) -> None:
    """Serve one host over two file descriptors, until it closes its end or `stop` is set."""
    to_server, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    reader = asyncio.create_task(_read_lines(read_fd, to_server, writing.clone()))
    writer = asyncio.create_task(_write(write_fd, from_server))
    writer.add_done_callback(lambda _: reader.cancel())  # a host that no longer reads has left
    stopping = asyncio.create_task((stop or asyncio.Event()).wait())
    stopping.add_done_callback(lambda _: reader.cancel())  # for the server it is as if the host had left
    try:
        await server.run(reading, writing, server.create_initialization_options())
    finally:
        stopping.cancel()
        reader.cancel()
        for stream in (to_server, reading, writing):
            stream.close()
        with suppress(asyncio.CancelledError), anyio.CancelScope(shield=True):
            await asyncio.wait([reader, writer], timeout=_FINAL_TIMEOUT_S)
            writer.cancel()
        from_server.close()


async def _read_lines(fd: int, to_server: _Incoming, replies: _Outgoing) -> None:
    """Pass each line to the server. A thread reads, since a loop cannot wait for a file or a terminal."""
    buffer, dropping = bytearray(), False
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with to_server, replies:
            while chunk := await _PIPES.run(partial(_read_some, fd)):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    buffer += line
                    if dropping or len(buffer) > MAX_LINE_BYTES:
                        await _send_error(replies, _TOO_LONG)
                    elif buffer.strip():
                        await _deliver(bytes(buffer), to_server, replies)
                    dropping = False
                    buffer.clear()
                buffer += rest
                if len(buffer) > MAX_LINE_BYTES:
                    buffer.clear()
                    dropping = True


def _read_some(fd: int) -> bytes:
    with suppress(OSError):  # closed meanwhile: the host has left
        return os.read(fd, _CHUNK)
    return b""


async def _deliver(line: bytes, to_server: _Incoming, replies: _Outgoing) -> None:
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:  # pydantic's, or invalid UTF-8
        await _send_error(replies, "This line is not a valid JSON-RPC message.", _message_id(line))
        return
    if isinstance(message, types.JSONRPCNotification) and not message.method.startswith("notifications/"):
        await _send_error(replies, "A request needs an id that is a text or a whole number.")
        return
    await to_server.send(SessionMessage(message))


def _message_id(line: bytes) -> str | int | None:
    """The id in a line that cannot be parsed, for the error: half an emoji is enough for that, or NaN."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    message_id = message.get("id") if isinstance(message, dict) and "method" in message else None
    is_id = isinstance(message_id, str | int) and not isinstance(message_id, bool) and str(message_id).isprintable()
    return message_id if is_id and len(str(message_id)) <= _LONGEST_ID else None


async def _send_error(replies: _Outgoing, why: str, request_id: str | int | None = None) -> None:
    error = types.ErrorData(code=types.PARSE_ERROR, message=why)
    await replies.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))


async def _write(fd: int, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with suppress(OSError):  # the host no longer reads
        async for sent in from_server:
            text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            await _PIPES.run(partial(_write_all, fd, text.encode("utf-8", "replace") + b"\n"))


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
