"""What tests of the gateway share: bodies of requests, replies of models, tools, and a plain HTTP client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from tests.serve.gateway.conftest import Running

from taoloop import tool
from taoloop.serve.gateway.observe.request_log import RequestRecord

SENT: list[dict[str, Any]] = []


@tool(tier="write")
def send_note(to: str, text: str) -> str:
    """Send a note to a person."""
    SENT.append({"to": to, "text": text})
    return "sent"


def ask(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


CALL = {"text": "Let me see.", "tool_calls": [{"name": "double", "args": {"number": 4}}]}


CLIENT_TOOL: Any = {
    "type": "function",
    "function": {
        "name": "look_outside",
        "description": "What the sky looks like.",
        "parameters": {"type": "object", "properties": {"window": {"type": "string"}}, "required": ["window"]},
    },
}


LOOK = {"tool_calls": [{"name": "look_outside", "args": {"window": "east"}}]}


NOTE = {"tool_calls": [{"name": "send_note", "args": {"to": "Ann", "text": "hello"}}]}


CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


def post(running: Running, body: Any, *, path: str = CHAT, method: str = "POST", **headers: str) -> tuple[int, Any]:
    """Status and body of the answer to a body that is sent as it is."""
    address = urlsplit(running.url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read()
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, json.loads(text) if is_json else text
    finally:
        connection.close()


def speak(running: Running, *pieces: bytes, until_closed: bool = True) -> bytes:
    """What a server says to bytes."""
    address = urlsplit(running.url)
    assert address.hostname is not None
    assert address.port is not None
    with socket.create_connection((address.hostname, address.port), timeout=20) as line:
        said = b""
        try:
            for piece in pieces:
                line.sendall(piece)
            while data := line.recv(65536):
                said += data
                if not until_closed and b"\r\n\r\n" in said:
                    break
        except ConnectionError:
            pass
        return said


def body_of(**changes: Any) -> dict[str, Any]:
    return {"model": "assistant", "messages": ask("Hi."), **changes}


def records(running: Running) -> list[RequestRecord]:
    """The requests that were answered, once there is one."""
    until = time.monotonic() + 10
    while not running.logged and time.monotonic() < until:
        threading.Event().wait(0.02)
    return running.logged


def ended(running: Running) -> str:
    """The status of the one run, once it has ended."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if (found := running.traces()) and found[0].status != "running":
            return found[0].status
        threading.Event().wait(0.02)
    return "running"
