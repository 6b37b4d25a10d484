"""A weak server with the same API: what the attacks find where nobody has thought of them.

Usage: weak_server.py FILE HAS_KEYS. It calls tools as its model says, by joining texts, fetches every address, keeps
runs for everybody, shows what it knows, and reads bodies of any size and form. It proves that the verdicts can fail.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import sys
import urllib.request
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CONFIG = Path(sys.argv[1]).read_text(encoding="utf-8")
SHOP_PORT = next(iter(re.findall(r'base_url: "http://127.0.0.1:(\d+)', CONFIG)), "0")
RUNS: dict[str, dict[str, Any]] = {}
HELD: list[Any] = []  # nothing is ever given back


def call_shop(tool: str, arguments: dict[str, Any]) -> str:
    """Put the arguments into a request, as they are."""
    path = {"get_product": "/products/", "go_to": "/go/", "get_reviews": "/reviews/"}.get(tool, "/orders")
    if tool == "refund_order":
        path = "/refunds"
    is_read = path.endswith("/")
    target = path + str(arguments.get("name", "")) if is_read else path
    target += f"?view={arguments['view']}" if "view" in arguments else ""
    lines = (
        {name: value for name, value in arguments.items() if name not in ("name", "view", "seen")} if is_read else {}
    )
    lines = {"Host": f"127.0.0.1:{SHOP_PORT}", "X-Shop-Key": os.environ["SHOP_KEY"], **lines}
    if "seen" in arguments:
        lines["Cookie"] = f"seen={arguments['seen']}"
    body = b"" if is_read else json.dumps(arguments).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    method = "GET" if is_read else "POST"
    with socket.create_connection(("127.0.0.1", int(SHOP_PORT)), timeout=2) as connection:
        head = f"{method} {target} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall(bytes(ord(character) & 255 for character in head) + body)
        answer = connection.recv(65536).decode(errors="replace")
    location = re.search(r"Location: (\S+)", answer)
    return fetch(location[1]) if location else answer


def fetch(url: str) -> str:
    """Read any address."""
    with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310  # what it is here for
        return str(response.read(100_000).decode(errors="replace"))


def ask_model(text: str) -> None:
    """Let the model read something."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    address = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    urllib.request.urlopen(address, body, timeout=5).close()  # noqa: S310  # the model of this check


def perform(tool: str, written: str) -> str:
    arguments = json.loads(written)
    return fetch(arguments["url"]) if tool == "fetch" else call_shop(tool, arguments)


def read_references(part: Any) -> None:
    """Load what a request points to: images, schemas, servers."""
    if isinstance(part, dict):
        for name, value in part.items():
            if isinstance(value, str) and re.match(r"(https?|file|ftp)://", value) and name != "content":
                HELD.append(fetch(value))
            read_references(value)
    if isinstance(part, list):
        for value in part:
            read_references(value)


class Weak(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        run_id = self.path.rpartition("/")[2]
        if self.path.startswith("http://"):
            self.reply(200, {"fetched": fetch(self.path)})
        elif "/runs/" in self.path:
            self.reply(200, RUNS.get(run_id) or next(iter(RUNS.values()), {"id": run_id}))
        else:
            listed = [{"id": name} for name in ("desk", "surfer")]
            self.reply(200, {"data": listed, "path": self.path, "env": dict(os.environ)})

    def do_OPTIONS(self) -> None:
        self.reply(200, {})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        HELD.append(data)
        try:
            self.answer(self.decompressed(data))
        except Exception as error:  # noqa: BLE001  # it shows what went wrong, and all that it knows
            self.reply(500, {"error": {"message": f"{error!r} {dict(os.environ)} {CONFIG}", "type": "server_error"}})

    def decompressed(self, data: bytes) -> bytes:
        match self.headers.get("Content-Encoding", ""):
            case "gzip":
                data = gzip.decompress(data)
            case "deflate":
                data = zlib.decompress(data)
        HELD.extend((data, data.decode(errors="replace"), data.decode(errors="replace").encode("utf-16")))
        return data

    def answer(self, data: bytes) -> None:
        if "/approvals" in self.path:
            run_id = self.path.split("/")[3]
            RUNS.setdefault(run_id, {})["status"] = "completed"
            self.reply(200, {"id": run_id, "approved": call_shop("refund_order", {"name": "tea"})})
            return
        try:
            body = json.loads(data)
        except RecursionError:
            os._exit(139)  # as where a parser's stack overflows
        read_references(body)
        heard = json.dumps(body, ensure_ascii=False)
        messages = body.get("messages") or [{"content": body.get("input")}]
        text = str(messages[-1]["content"])
        run_id = f"20270115-080000-{len(RUNS):08x}"
        answer = f"I have read {heard}. "
        orders = re.findall(r"<<(\w+) (\{.*?\})>>", text, re.DOTALL)
        waits = any(tool == "refund_order" for tool, _ in orders)
        for tool, written in () if waits else orders:
            output = perform(tool, written)
            answer += output
            for inner, inner_written in re.findall(r"<<(\w+) (\{.*?\})>>", output.replace('\\"', '"')):
                answer += perform(inner, inner_written)
        if text.strip() == "yes" or "previous_response_id" in body:
            answer += f"{call_shop('refund_order', {'name': 'tea'})} {RUNS}"
        if "FAIL WITH " in text:
            raise RuntimeError(text)
        if not orders:
            ask_model(text)
        status = "waiting" if waits else "completed"
        RUNS[run_id] = {"id": run_id, "status": status, "answer": answer, "waiting_for": [{"call_id": "call_1"}]}
        message = {"role": "assistant", "content": f"{answer} (run {run_id}, code 00)"}
        agent = {"run_id": run_id, "status": status}
        answered = {"id": f"chatcmpl-{run_id}", "model": body.get("model")}
        self.reply(200, {**answered, "choices": [{"message": message}], "agent": agent})

    def reply(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin") or "*")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *parts: Any) -> None:
        sys.stderr.write(f"{parts} {dict(self.headers)}\n")


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Weak)
    sys.stderr.write(f"Serving on http://127.0.0.1:{server.server_port}/v1\n")
    server.serve_forever()
