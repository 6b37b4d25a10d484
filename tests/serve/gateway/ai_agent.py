"""Files of the `ai-agent` plugin for tests, and a server in the place of the model and the services of one."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from taoloop.core.views.transcript import Result
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.config.model import GatewayConfig, ServedAgent
from taoloop.tools.tool import Tool

DATA = Path(__file__).parents[2] / "data" / "higress"
CONFIGS = DATA / "configs"
FINAL = 'Thought: done\nAction:\n```json\n{"action": "Final Answer", "action_input": "It is sunny."}\n```'


class World:
    """A model and the services of a file, on one port: keeps every request, and replies to chats in order."""

    def __init__(self, replies: list[str | tuple[int, Any]]) -> None:
        self.replies = replies
        self.chats: list[dict[str, Any]] = []
        self.heads: list[dict[str, str]] = []
        self.calls: list[tuple[str, str, list[tuple[str, str]], dict[str, str], Any]] = []
        self.place = ""
        self.status = 200  # of what the services answer

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        if b'"messages"' not in body:
            parts = urlsplit(path)
            sent = json.loads(body) if body else None
            self.calls.append((method, parts.path, parse_qsl(parts.query), headers, sent))
            return self.status, {"ok": True, "number": len(self.calls)}
        self.chats.append({"path": path, **json.loads(body)})
        self.heads.append(headers)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, tuple):
            return reply
        choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        return 200, {"id": "x", "object": "chat.completion", "model": "demo", "choices": [choice], "usage": usage}


@contextmanager
def world(*replies: str | tuple[int, Any]) -> Iterator[World]:
    made = World(list(replies) or [FINAL])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, value = made.answer(self.command, self.path, headers, body)
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Retry-After", "0")  # what may be tried again need not wait
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    made.place = f"127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def one(config: GatewayConfig) -> ServedAgent:
    return next(iter(config.agents.values()))


def tools_of(agent: Agent) -> dict[str, Tool]:
    return {tool.name: tool for tool in agent.toolbox}


def data_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CONFIGS / name).read_text(encoding="utf-8"))
    return found


def changed(name: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """A file with other values at some dotted places; a value of ... takes the field out."""
    data = copy.deepcopy(data_of(name))
    for place, value in change.items():
        inner: Any = data
        *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
        for part in path:
            inner = inner[part]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return data


def load(folder: Path, data: Mapping[str, Any] | str, **options: Any) -> GatewayConfig:
    path = folder / "shop.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    return load_config(path, **{"env": {}, **options})


def run(agent: Agent, task: str = "What is the weather in Bonn?") -> Result:
    async def body() -> Result:
        try:
            return await agent.run(task)
        finally:
            await bind(agent).model.close()

    return asyncio.run(body())


def asks(tool: str, **args: Any) -> str:
    return f"Thought: t\nAction:```json\n{json.dumps({'action': tool, 'action_input': args})}\n```"
