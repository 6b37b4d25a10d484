"""Answers of a provider for `HttpDouble`, byte by byte and however wrong they are, and requests to it."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, RunStarted
from taoloop.core.message import Delta, Message, ModelReply
from taoloop.core.trace import Trace
from taoloop.models.base import Model

Act = Callable[[socket.socket], None]
"""What to do on a connection once its request is read. Afterwards the connection is closed."""


def whole(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Act:
    """A complete answer; bytes as they are, anything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"content-type": "application/json", "content-length": str(len(raw)), "connection": "close"}
    return sent([head(status, {**fields, **(headers or {})}), raw])


def events(datas: Iterable[Any], *, end: bytes = b"data: [DONE]\n\n") -> Act:
    """A stream of events, one per piece; it ends with the connection."""
    pieces = [data if isinstance(data, bytes) else f"data: {json.dumps(data)}\n\n".encode() for data in datas]
    return sent([head(200, {"content-type": "text/event-stream", "connection": "close"}), *pieces, end])


def sent(pieces: Iterable[bytes]) -> Act:
    """These bytes, as they are."""

    def act(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return act


def reset(pieces: Iterable[bytes] = ()) -> Act:
    """These bytes, and then the connection is reset."""

    def act(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.close(connection.detach())  # at once: the server would end the stream in an orderly way first

    return act


def silent(pieces: Iterable[bytes] = ()) -> Act:
    """These bytes, and then nothing until the client leaves."""

    def act(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
        while connection.recv(65536):
            pass

    return act


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} x\r\n{lines}\r\n".encode()


def asking(**fields: Any) -> ModelRequest:
    """A request with two messages; `fields` replace its own."""
    messages = (Message(role="system", content="You add numbers."), Message(role="user", content="add 2 and 3"))
    spec = AgentSpec(tools=fields.get("tools", ()))
    trace = Trace("r", [Event(0, 0.0, RunStarted(task="add 2 and 3", agent=spec, nonce="n"))])
    request = ModelRequest(task="add 2 and 3", trace=trace, messages=messages, dialect="native", native=True)
    return replace(request, **fields)


def ask(model: Model, **fields: Any) -> ModelReply:
    """The reply to one request, in a loop of its own."""
    return asyncio.run(model.complete(asking(**fields)))


def ask_streaming(model: Model, **fields: Any) -> tuple[ModelReply, list[Delta]]:
    """The reply to one request, and what a listener heard of it."""
    heard: list[Delta] = []
    return ask(model, on_delta=heard.append, **fields), heard
