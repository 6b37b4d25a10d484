"""Resource attacks: whatever arrives, the process lives, its memory stays bounded, and the next request is answered."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from checks.gateway.scene import ANSWER_S, Category, Scene

Attempt = tuple[str, Any]
"""A way (`json`, `body`, `bytes`, `connections`) and what it carries, or a function that makes it when it is needed."""

RSS_GROWTH_MB = 300.0
"""How much the process may grow from its state before the first attack, over all of them: bodies of 4 MiB, parsed."""
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
MESSAGE = {"role": "user", "content": "Hi."}
SAID = 'SAY "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"'  # the model's answer, which is then judged by the schema


def doubled(keyword: str, levels: int = 24) -> dict[str, Any]:
    """A schema of 2 kB with 2^levels ways through it: each definition refers twice to the next."""
    definitions: dict[str, Any] = {f"d{levels}": {"type": "string"}}
    for level in range(levels):
        reference = {"$ref": f"#/$defs/d{level + 1}"}
        definitions[f"d{level}"] = {keyword: [reference, reference]} if keyword != "items" else {
            "type": "array", "prefixItems": [reference, reference]
        }  # fmt: skip
    return {"$ref": "#/$defs/d0", "$defs": definitions}


def nested(levels: int, keyword: str = "items") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema} if keyword == "items" else {keyword: [schema, {"type": "null"}]}
    return schema


SCHEMAS: dict[str, dict[str, Any]] = {
    **{f"{keyword} doubled": doubled(keyword) for keyword in ("anyOf", "oneOf", "allOf", "items")},
    "48 levels": doubled("anyOf", 48),
    "not": {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}},
    "itself": {"$ref": "#"},
    "two that refer to each other": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "900 levels": nested(900),
    "anyOf in anyOf": nested(180, "anyOf"),
    "pattern": {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$" * 20},
    "pattern with a large count": {"type": "string", "pattern": "((a{1,1000}){1,1000}){1,1000}"},
    "pattern of properties": {"patternProperties": {f"(a+)+{index}$": {} for index in range(400)}},
    "large choice": {"enum": [f"value {index}" for index in range(50_000)]},
    "many properties": {"type": "object", "properties": {f"p{index}": {"type": "string"} for index in range(20_000)}},
    "large bounds": {"type": "array", "minItems": 10**18, "uniqueItems": True, "items": {"multipleOf": 1e-308}},
}


def _in_request(schema: Any, place: str) -> tuple[str, dict[str, Any]]:
    tool = {"name": "look", "parameters": schema if schema.get("type") == "object" else {"type": "object", **schema}}
    chat: dict[str, Any] = {"model": "desk", "messages": [{"role": "user", "content": SAID}]}
    response: dict[str, Any] = {"model": "desk", "input": SAID}
    bodies = {
        "answer": (
            CHAT,
            {**chat, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}},
        ),
        "tool": (CHAT, {**chat, "tools": [{"type": "function", "function": tool}]}),
        "response": (
            RESPONSES,
            {**response, "text": {"format": {"type": "json_schema", "name": "a", "schema": schema}}},
        ),
        "tool of a response": (RESPONSES, {**response, "tools": [{"type": "function", **tool}]}),
    }
    return bodies[place]


CONTENT = '{"model": "desk", "messages": [{"role": "user", "content": %s}]}'
BODIES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "blank": lambda: b" " * 1_000_000,
    "null": lambda: b"null",
    "list": lambda: b"[]",
    "text": lambda: b'"x"',
    "number": lambda: b"1",
    "cut": lambda: b'{"model": "desk", "messages": [',
    "two objects": lambda: b"{}{}",
    "lists in lists": lambda: b"[" * 500_000 + b"]" * 500_000,
    "lists without an end": lambda: b"[" * 4_000_000,
    "objects in objects": lambda: b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "lists in a field": (CONTENT % ("[" * 400_000 + "]" * 400_000)).encode,
    "parts in parts": (CONTENT % ('[{"type":"text","text":' * 50_000 + '"x"' + "}]" * 50_000)).encode,
    "large exponent": lambda: b'{"model": "desk", "messages": [], "temperature": 1e999999999}',
    "a million digits": lambda: b'{"model": "desk", "seed": ' + b"9" * 1_000_000 + b', "messages": []}',
    "not a number": lambda: b'{"model": "desk", "temperature": NaN, "messages": []}',
    "infinite": lambda: b'{"model": "desk", "top_p": -Infinity, "messages": []}',
    "half a character": (CONTENT % '"\\ud800"').encode,
    "half a name": lambda: b'{"model": "\\udfff", "messages": [{"role": "user", "content": "x"}]}',
    "null characters": (CONTENT % '"\\u0000\\u0000"').encode,
    "invalid UTF-8": lambda: (CONTENT % '"x"').encode().replace(b'"x"', b'"\xff\xfe\xc3\x28"'),
    "overlong UTF-8": lambda: (CONTENT % '"x"').encode().replace(b'"x"', b'"\xc0\xaf"'),
    "UTF-16": lambda: (CONTENT % '"x"').encode("utf-16"),
    "UTF-32": lambda: (CONTENT % '"x"').encode("utf-32"),
    "byte order mark": lambda: b"\xef\xbb\xbf" + (CONTENT % '"x"').encode(),
    "the same key twice": lambda: (
        b'{"model": "desk", "model": "surfer", "messages": [{"role": "user", "content": "x"}]}'
    ),
    "keys that collide": lambda: json.dumps({f"k{index}": index for index in range(200_000)}).encode(),
    "prototype": lambda: b'{"__proto__": {"x": 1}, "constructor": 1, "model": "desk", "messages": []}',
    "comment": lambda: b'{"model": "desk", /* x */ "messages": []}',
    "long text": (CONTENT % json.dumps("a" * 3_900_000)).encode,
    "text of signs": (CONTENT % json.dumps("<<{[(" * 100_000)).encode,
    "text of backslashes": (CONTENT % json.dumps("\\" * 1_000_000)).encode,
    "long model": lambda: json.dumps({"model": "m" * 1_000_000, "messages": [MESSAGE]}).encode(),
    "too large": lambda: b" " * 5_000_000,
    "far too large (full)": lambda: b" " * 200_000_000,
    "2,049 messages": lambda: json.dumps({"model": "desk", "messages": [MESSAGE] * 2_049}).encode(),
    "80,000 messages": lambda: json.dumps({"model": "desk", "messages": [MESSAGE] * 80_000}).encode(),
    "200,000 parts": (CONTENT % json.dumps([{"type": "text", "text": ""}] * 100_000)).encode,
    "3,000 tools": lambda: json.dumps(
        {"model": "desk", "messages": [MESSAGE], "tools": [{"type": "function", "function": {"name": "a"}}] * 3_000}
    ).encode(),
    "many stops": lambda: json.dumps({"model": "desk", "messages": [MESSAGE], "stop": ["x"] * 100_000}).encode(),
    "all results": lambda: json.dumps(
        {
            "model": "desk",
            "messages": [{"role": "tool", "tool_call_id": f"c{i}.x", "content": "x"} for i in range(2_000)],
        }
    ).encode(),
}
_BOMB = b" " * 100_000_000 + (CONTENT % '"x"').encode()
ENCODED: dict[str, Callable[[], tuple[bytes, dict[str, str]]]] = {
    "gzip bomb": lambda: (gzip.compress(_BOMB, 9), {"Content-Encoding": "gzip"}),
    "deflate bomb": lambda: (zlib.compress(_BOMB, 9), {"Content-Encoding": "deflate"}),
    "gzip in gzip": lambda: (gzip.compress(gzip.compress(_BOMB)), {"Content-Encoding": "gzip, gzip"}),
    "broken gzip": lambda: (b"\x1f\x8b" + b"x" * 1_000, {"Content-Encoding": "gzip"}),
    "unknown encoding": lambda: (b"{}", {"Content-Encoding": "br, zstd, x"}),
    "wrong encoding": lambda: (b"{}", {"Content-Encoding": "gzip"}),
    "plain text": lambda: ((CONTENT % '"x"').encode(), {"Content-Type": "text/plain"}),
    "form": lambda: (b"model=desk&messages=x", {"Content-Type": "application/x-www-form-urlencoded"}),
    "multipart": lambda: (b"--b\r\n\r\nx", {"Content-Type": "multipart/form-data; boundary=b"}),
    "multipart without a boundary": lambda: (b"x", {"Content-Type": "multipart/form-data"}),
    "unknown character set": lambda: (
        (CONTENT % '"x"').encode(),
        {"Content-Type": "application/json; charset=klingon"},
    ),
    "another character set": lambda: (
        (CONTENT % '"x"').encode("utf-16"),
        {"Content-Type": "application/json; charset=utf-7"},
    ),
    "broken type": lambda: (b"{}", {"Content-Type": ";;;===,,,"}),
    "long type": lambda: (b"{}", {"Content-Type": "application/json; " + "x=y; " * 5_000}),
}
_HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
_GOOD = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BYTES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "line breaks": lambda: b"\r\n" * 10_000,
    "nulls": lambda: b"\x00" * 100_000,
    "TLS": lambda: bytes.fromhex("16030100c8010000c40303") + b"\x00" * 200,
    "HTTP/2": lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 100,
    "HTTP/0.9": lambda: b"GET /\r\n\r\n",
    "HTTP/9": lambda: b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
    "no version": lambda: b"GET /healthz\r\nHost: x\r\n\r\n",
    "long address": lambda: b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "long method": lambda: b"G" * 100_000 + b" / HTTP/1.1\r\nHost: x\r\n\r\n",
    "long header": lambda: _HEAD.encode() + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "10,000 headers": lambda: _HEAD.encode() + b"".join(b"X%d: y\r\n" % i for i in range(10_000)) + b"\r\n",
    "header without an end": lambda: _HEAD.encode() + b"X: " + b"a" * 10_000,
    "header without a colon": lambda: _HEAD.encode() + b"nonsense\r\n\r\n",
    "blank in a name": lambda: _HEAD.encode() + b"Content-Length : 2\r\n\r\n{}",
    "folded header": lambda: _HEAD.encode() + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "line feeds alone": lambda: _HEAD.replace("\r\n", "\n").encode() + b"Content-Length: 2\n\n{}",
    "length below zero": lambda: _HEAD.encode() + b"Content-Length: -1\r\n\r\n{}",
    "length with a sign": lambda: _HEAD.encode() + b"Content-Length: +2\r\n\r\n{}",
    "length in words": lambda: _HEAD.encode() + b"Content-Length: two\r\n\r\n{}",
    "huge length": lambda: _HEAD.encode() + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "length beyond the body": lambda: _HEAD.encode() + b"Content-Length: 1000\r\n\r\n{}",
    "two lengths": lambda: _HEAD.encode() + b"Content-Length: 2\r\nContent-Length: 50\r\n\r\n{}" + _GOOD.encode(),
    "length and chunks": lambda: (
        _HEAD.encode() + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + _GOOD.encode()
    ),
    "hidden chunks": lambda: _HEAD.encode() + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + _GOOD.encode(),
    "chunks twice": lambda: _HEAD.encode() + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + _GOOD.encode(),
    "chunk of no size": lambda: _HEAD.encode() + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "chunk below zero": lambda: _HEAD.encode() + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    "huge chunk": lambda: _HEAD.encode() + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n",
    "long chunk extension": lambda: (
        _HEAD.encode() + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"x" * 200_000 + b"\r\n{}\r\n0\r\n\r\n"
    ),
    "chunks without an end": lambda: _HEAD.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 300_000,
    "100,000 trailers": lambda: (
        _HEAD.encode() + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 100_000 + b"\r\n"
    ),
    "WebSocket": lambda: (
        b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ),
    "HTTP/2 by upgrade": lambda: (
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    ),
    "expectation": lambda: _HEAD.encode() + b"Expect: 100-continue\r\nContent-Length: 5000000\r\n\r\n",
    "unknown expectation": lambda: _HEAD.encode() + b"Expect: 200-ok\r\nContent-Length: 2\r\n\r\n{}",
    "1,000 requests in a row": lambda: _GOOD.encode() * 1_000,
    "many ranges": lambda: b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nRange: bytes=" + b"0-," * 5_000 + b"\r\n\r\n",
}


def _attacks() -> list[tuple[str, Attempt]]:
    rows: list[tuple[str, Attempt]] = []
    for name, schema in SCHEMAS.items():
        places = ("answer", "tool", "response", "tool of a response")
        rows += [(f"schema of {place}: {name}", ("json", _in_request(schema, place))) for place in places]
    rows += [(f"body: {name}", ("body", (CHAT, make))) for name, make in BODIES.items()]
    rows += [(f"body of a response: {name} (full)", ("body", (RESPONSES, make))) for name, make in BODIES.items()]
    rows += [(f"encoding: {name}", ("encoded", make)) for name, make in ENCODED.items()]
    rows += [(f"bytes: {name}", ("bytes", make)) for name, make in BYTES.items()]
    rows += [
        ("400 connections that say nothing", ("connections", (400, b""))),
        ("400 connections with half a head", ("connections", (400, b"GET /healthz HTTP/1.1\r\nX: "))),
        (
            "100 connections with half a body (full)",
            ("connections", (100, _HEAD.encode() + b"Content-Length: 9\r\n\r\n{")),
        ),
        ("slow body (full)", ("bytes", lambda: _HEAD.encode() + b"Content-Length: 1000\r\n\r\n{")),
    ]
    return rows


def run(scene: Scene, attempt: Attempt) -> str:
    way, content = attempt
    gateway = scene.open
    limit = scene.facts.setdefault("rss", gateway.rss_mb) + RSS_GROWTH_MB
    status, text = _send(scene, way, content)
    if gateway.process.poll() is not None:
        return "the process has ended"
    if status in (500, 503, 504):  # 502: the model's answer did not fit what the request wanted
        return f"status {status}: {text[:200]}"
    if "no end within the time" in text or status == -1:
        return "there was no answer in time"
    if way == "bytes" and text.count("HTTP/1.1 200") > (
        1_000 if "GET" in content()[:4].decode(errors="replace") else 0
    ):
        return "a hidden request was answered"
    if gateway.rss_mb > limit:
        return f"the process has {gateway.rss_mb:.0f} MB of {limit:.0f}"
    return "" if gateway.is_well else "the next request was not answered"


def _send(scene: Scene, way: str, content: Any) -> tuple[int, str]:
    gateway = scene.open
    try:
        if way == "connections":
            count, data = content
            with ExitStack() as stack:
                for _ in range(count):
                    connection = socket.create_connection(("127.0.0.1", gateway.port), timeout=ANSWER_S)
                    stack.enter_context(connection).sendall(data)
                return (0, "") if gateway.is_well else (-1, "")
        if way == "bytes":
            text = gateway.send_bytes(content())
            return int(text[9:12]) if text[9:12].isdigit() else 0, text
        path, body, headers = CHAT, None, {}
        if way == "encoded":
            body, headers = content()
        else:
            path, body = content
            body = body() if callable(body) else body
        answer = gateway.send("POST", path, body, **headers)
        return answer.status, answer.text
    except TimeoutError:
        return -1, ""


PROOF = ("body: cut", "encoding: gzip bomb", "bytes: two lengths", "body: lists in lists")
RESOURCES = Category("resources", _attacks(), run, PROOF)
