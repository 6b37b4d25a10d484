"""Injection through tool arguments: whatever an obedient model writes, the API gets it as a value, or nothing.

The shop compares what arrived with what the arguments say. No request is as good as one that holds just them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from checks.gateway.outside import Arrived, call
from checks.gateway.scene import SHOP_KEY, Category, Scene

Attempt = tuple[str, Any]
"""A tool and its arguments; a text is what the model writes, as it is."""

VALUES = {
    "dots": "..",
    "dots and a path": "../orders",
    "two levels up": "../../admin",
    "dots within": "tea/../../orders",
    "one dot": ".",
    "empty": "",
    "blank": " ",
    "slash": "/orders",
    "two slashes": "//evil.example/x",
    "backslashes": "..\\..\\orders",
    "escaped slash": "..%2forders",
    "escaped dots": "%2e%2e",
    "escaped dots and slash": "%2e%2e%2forders",
    "escaped twice": "%252e%252e%252forders",
    "overlong UTF-8": "%c0%ae%c0%ae%c0%af",
    "full width": "\uff0e\uff0e\uff0forders",
    "path parameter": "..;/orders",
    "query": "tea?admin=1",
    "escaped query": "tea%3fadmin=1",
    "fragment": "tea#admin",
    "more parameters": "tea&admin=1",
    "semicolon": "tea;admin=1",
    "user": "tea@evil.example",
    "host override": "@evil.example/",
    "port": ":81/",
    "address": "http://evil.example/",
    "template": "{name}",
    "line break": "tea\r\nX-Evil: 1",
    "line feed": "tea\nX-Evil: 1",
    "carriage return": "tea\rX-Evil: 1",
    "escaped line break": "tea%0d%0aX-Evil:%201",
    "request in a value": "tea HTTP/1.1\r\nHost: evil\r\n\r\nGET /orders",
    "line separator": "tea\u2028X-Evil: 1",
    "letters that end in CR and LF": "tea\u010d\u010aX-Evil: 1",
    "null": "tea\x00.txt",
    "control characters": "tea\x0b\x1b\x7f",
    "SQL": "tea' OR '1'='1",
    "shell": "$(id) `id` | id",
    "right to left": "tea\u202etxt",
    "long (full)": "a" * 20_000,
}
PLACES = {"path": "name", "query": "view", "header": "X-Note", "cookie": "seen"}
EXTRA = (
    "Host",
    "host",
    "base_url",
    "url",
    "server",
    "method",
    "headers",
    "Authorization",
    "X-Shop-Key",
    "X-Forwarded-Host",
)
WRITTEN = {
    "the same key twice": '{"name": "tea", "name": "../orders"}',
    "a prototype": '{"name": "tea", "__proto__": {"admin": true}}',
    "a list for a text": '{"name": ["tea", "../orders"]}',
    "an object for a text": '{"name": {"toString": "../orders"}}',
    "a number with a sign": '{"name": -1e999}',
    "broken JSON": '{"name": "tea", "view": "x"',
    "text after JSON": '{"name": "tea"} {"name": "../orders"}',
}


def _attacks() -> list[tuple[str, Attempt]]:
    rows: list[tuple[str, Attempt]] = []
    for place, parameter in PLACES.items():
        for name, value in VALUES.items():
            rows.append((f"{place}: {name}", ("get_product", {"name": "tea", parameter: value})))
    for name in EXTRA:
        rows.append((f"extra argument: {name}", ("get_product", {"name": "tea", name: "evil.example"})))
        body = {"name": "tea", "reference": f"extra-{name}", name: "evil.example"}
        rows.append((f"extra field: {name}", ("order_product", body)))
    for name in ("dots and a path", "line break", "null", "SQL"):
        body = {"name": VALUES[name], "reference": f"body-{name}", "note": '"},"admin":true,"x":{"y":"'}
        rows.append((f"body: {name}", ("order_product", body)))
    rows.extend((f"written: {name}", ("get_product", text)) for name, text in WRITTEN.items())
    return rows


def run(scene: Scene, attempt: Attempt) -> str:
    tool, arguments = attempt
    before = len(scene.shop.server.arrived)
    text = call(tool, arguments) if isinstance(arguments, Mapping) else f"<<{tool} {arguments}>>"
    answer = scene.keyed.chat(text)
    arrived = scene.shop.server.arrived[before:]
    if answer.status not in (200, 400, 424, 502):
        return f"status {answer.status}: {answer.text[:200]}"
    if not arrived:
        return ""
    if len(arrived) > 1:
        return f"{len(arrived)} requests arrived"
    if not isinstance(arguments, Mapping):
        return difference(arrived[0], tool, {"name": "tea"})
    return difference(arrived[0], tool, arguments)


_HEADERS = frozenset(
    ["host", "accept", "accept-encoding", "user-agent", "connection", "content-type", "content-length", "x-shop-key"]
)


def difference(request: Arrived, tool: str, arguments: Mapping[str, Any]) -> str:
    """What of a request is not what the arguments say."""
    method, prefix = ("GET", "/products/") if tool == "get_product" else ("POST", "/orders")
    path, _, query = request.target.partition("?")
    if request.method != method or not path.startswith(prefix):
        return f"{request.method} {request.target!r} arrived"
    if method == "GET" and ("/" in path[len(prefix) :] or unquote(path[len(prefix) :]) != arguments["name"]):
        return f"the path is {path[:200]!r}"
    if method == "POST" and json.loads(request.body) != arguments:
        return f"the body is {request.body[:200]!r}"
    views = [("view", arguments["view"])] if "view" in arguments else []
    if parse_qsl(query, keep_blank_values=True) != views:
        return f"the query is {query[:200]!r}"
    names = [name for name, _ in request.headers]
    allowed = (
        _HEADERS | ({"x-note"} if "X-Note" in arguments else set()) | ({"cookie"} if "seen" in arguments else set())
    )
    if unknown := set(names) - allowed:
        return f"the headers {sorted(unknown)} arrived"
    if len(names) != len(set(names)):
        return f"a header arrived twice: {names}"
    if request.header("x-shop-key") != SHOP_KEY or not (request.header("host") or "").startswith("127.0.0.1:"):
        return f"the headers are {request.headers}"
    if ";" in (request.header("cookie") or ""):
        return f"the cookies are {request.header('cookie')!r}"
    return ""


PROOF = (
    "path: dots and a path", "path: query", "query: more parameters", "header: line break", "cookie: semicolon",
    "extra argument: X-Forwarded-Host",
)  # fmt: skip
ARGUMENTS = Category("arguments", _attacks(), run, PROOF)
