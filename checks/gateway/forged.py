"""Server-side request forgery: no client, model or redirect makes the gateway call an inner address.

The canary is a service of this machine. No connection may reach it, and its secret may not come back. Addresses without
a canary, such as a cloud's metadata service, must be refused before a connection, which the error says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from checks.gateway.outside import CANARY, call
from checks.gateway.scene import Category, Scene

Attempt = tuple[str, Any]
"""A way (`fetch`, `redirect`, `tool redirect`, `chat`, `responses`, `target`) and what it carries."""

URL, PORT = "CANARY_URL", "CANARY_PORT"
LOOPBACK = {
    "name": "localhost",
    "name with a dot": "localhost.",
    "capitals": "LOCALHOST",
    "name of a distribution": "ip6-localhost",
    "subdomain": "app.localhost",
    "another form of the name": "localhost.localdomain",
    "IPv4": "127.0.0.1",
    "IPv4 with a dot": "127.0.0.1.",
    "another address": "127.0.0.2",
    "last address": "127.255.255.254",
    "short": "127.1",
    "decimal": "2130706433",
    "hexadecimal": "0x7f000001",
    "hexadecimal parts": "0x7f.0.0.0x1",
    "octal": "0177.0.0.1",
    "octal with zeros": "00000177.0.0.01",
    "mixed": "0x7f.1",
    "overflow": "4294967296",
    "any address": "0.0.0.0",  # noqa: S104  # an address to attack
    "zero": "0",
    "IPv6": "[::1]",
    "IPv6 in full": "[0:0:0:0:0:0:0:1]",
    "any IPv6": "[::]",
    "mapped": "[::ffff:127.0.0.1]",
    "mapped in hexadecimal": "[::ffff:7f00:1]",
    "compatible": "[::127.0.0.1]",
    "NAT64": "[64:ff9b::7f00:1]",
    "6to4": "[2002:7f00:1::]",
    "Teredo": "[2001:0:7f00:1::]",
    "with a scope": "[::1%25lo]",
    "full width": "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    "circled digits": "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
    "ideographic dots": "127\u30020\u30020\u30021",
    "escaped": "%31%32%37.0.0.1",
    "escaped name": "%6cocalhost",
    "user": "example.com@127.0.0.1",
    "user and password": "example.com:80@127.0.0.1",
    "null": "127.0.0.1%00.example.com",
    "soft hyphen": "local\u00adhost",
}
INNER = (
    "169.254.169.254", "169.254.169.254.", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
    "[::ffff:169.254.169.254]",
    "[fd00:ec2::254]", "metadata.google.internal", "100.100.100.200", "10.0.0.1", "10.1", "192.168.1.1", "172.16.0.1",
    "172.31.255.255", "100.64.0.1", "198.18.0.1", "192.0.0.192", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "[ff02::1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b::a00:1]",
    "[2002:a00:1::]",
)  # fmt: skip
ADDRESSES = {
    "fragment and user": f"http://127.0.0.1:{PORT}#@example.com/",
    "backslash and user": f"http://127.0.0.1:{PORT}\\@example.com/",
    "query and user": f"http://127.0.0.1:{PORT}?@example.com/",
    "allowed host as user": f"http://127.0.0.1:SHOP_PORT@127.0.0.1:{PORT}/",
    "two ports": f"http://127.0.0.1:SHOP_PORT:{PORT}/",
    "tab in the scheme": f"ht\ttp://127.0.0.1:{PORT}/",
    "line break in the host": f"http://127.0.\n0.1:{PORT}/",
    "blank before": f"  http://127.0.0.1:{PORT}/",
    "no scheme": f"//127.0.0.1:{PORT}/",
    "three slashes": f"http:///127.0.0.1:{PORT}/",
    "one slash": f"http:/127.0.0.1:{PORT}/",
    "no slash": f"http:127.0.0.1:{PORT}",
    "backslashes": f"http:\\\\127.0.0.1:{PORT}\\",
    "port with zeros": f"http://127.0.0.1:00{PORT}/",
    "request in the path": f"http://127.0.0.1:SHOP_PORT/\r\nHost: x\r\n\r\nGET http://127.0.0.1:{PORT}/",
    "file": "file:///etc/passwd",
    "file of this machine": "file://localhost/etc/passwd",
    "gopher": f"gopher://127.0.0.1:{PORT}/_GET%20/",
    "ftp": f"ftp://127.0.0.1:{PORT}/",
    "dict": f"dict://127.0.0.1:{PORT}/info",
    "socket": "http+unix://%2fvar%2frun%2fdocker.sock/info",
    "archive": f"jar:http://127.0.0.1:{PORT}!/",
    "view": f"view-source:http://127.0.0.1:{PORT}/",
    "script": "javascript:fetch('/')",
    "url in a url": f"url:http://127.0.0.1:{PORT}/",
}
REDIRECTS = ("127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1")  # noqa: S104
PARTS: dict[str, Mapping[str, Any]] = {
    "image": {"type": "image_url", "image_url": {"url": URL}},
    "image as text": {"type": "image_url", "image_url": URL},
    "sound": {"type": "input_audio", "input_audio": {"data": URL, "format": "wav", "url": URL}},
    "film": {"type": "video_url", "video_url": {"url": URL}},
    "file": {"type": "file", "file": {"file_id": URL, "file_url": URL, "filename": "a.pdf"}},
    "image of a response": {"type": "input_image", "image_url": URL},
    "file of a response": {"type": "input_file", "file_url": URL},
    "unknown": {"type": "link", "url": URL},
}
SCHEMAS: dict[str, Mapping[str, Any]] = {
    "reference": {"$ref": URL},
    "reference to a file": {"$ref": "file:///etc/passwd"},
    "relative reference": {"$id": URL, "$ref": "other.json"},
    "reference in a property": {"type": "object", "properties": {"a": {"$ref": f"{URL}a.json#/x"}}},
    "reference in definitions": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": URL}}},
    "dynamic reference": {"$dynamicRef": f"{URL}#node"},
    "meta schema": {"$schema": URL, "type": "object"},
    "old id": {"id": URL, "type": "object", "properties": {"a": {"$ref": "b.json"}}},
}
FIELDS: dict[str, Mapping[str, Any]] = {
    "MCP server": {"tools": [{"type": "mcp", "server_label": "x", "server_url": URL, "require_approval": "never"}]},
    "web search": {"tools": [{"type": "web_search", "search_context_size": URL, "url": URL}]},
    "file search": {"tools": [{"type": "file_search", "vector_store_ids": [URL]}]},
    "computer": {"tools": [{"type": "computer_use_preview", "environment": URL}]},
    "API of a tool": {"tools": [{"type": "function", "function": {"name": "a", "url": URL, "api": URL}}]},
    "call back": {"webhook_url": URL, "callback_url": URL, "metadata": {"webhook": URL}},
    "base address": {"base_url": URL, "api_base": URL, "api_key": "x"},
    "prompt": {"prompt": {"id": URL}},
    "data source": {"data_sources": [{"type": "azure_search", "parameters": {"endpoint": URL}}]},
    "plug-in": {"plugins": [{"id": "web", "url": URL}], "functions": [{"name": "f", "url": URL}]},
}
REFUSED = re.compile(r"egress_refused|bad_url|name_not_found|invalid_argument|not allowed|not a usable")


def _attacks() -> list[tuple[str, Attempt]]:
    rows: list[tuple[str, Attempt]] = []
    rows += [(f"fetch: {name}", ("fetch", f"http://{host}:{PORT}/")) for name, host in LOOPBACK.items()]
    rows += [(f"fetch: {host}", ("fetch", f"http://{host}/latest/meta-data/")) for host in INNER]
    rows += [(f"fetch: {name}", ("fetch", url)) for name, url in ADDRESSES.items()]
    for way in ("redirect", "tool redirect"):
        rows += [(f"{way}: {host}", (way, f"http://{host}:{PORT}/")) for host in REDIRECTS]
        rows += [(f"{way}: relative", (way, f"//127.0.0.1:{PORT}/")), (f"{way}: file", (way, "file:///etc/passwd"))]
    for role in ("user", "assistant", "system"):
        for name, part in PARTS.items():
            message = {"role": role, "content": [{"type": "text", "text": "What is this?"}, part]}
            last = [] if role == "user" else [{"role": "user", "content": "What is this?"}]
            rows.append((f"part of {role}: {name}", ("chat", {"messages": [message, *last]})))
    for name, part in PARTS.items():
        rows.append((f"part of input: {name}", ("responses", {"input": [{"role": "user", "content": [part]}]})))
    for name, schema in SCHEMAS.items():
        tool = {"name": "look", "parameters": schema}
        response_format = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        text = {"format": {"type": "json_schema", "name": "a", "schema": schema}}
        rows.append((f"schema of an answer: {name}", ("chat", {"response_format": response_format})))
        rows.append((f"schema of a tool: {name}", ("chat", {"tools": [{"type": "function", "function": tool}]})))
        rows.append((f"schema of a response: {name}", ("responses", {"text": text})))
        rows.append((f"schema of a response's tool: {name}", ("responses", {"tools": [{"type": "function", **tool}]})))
    rows += [(f"field of a chat: {name}", ("chat", fields)) for name, fields in FIELDS.items()]
    rows += [(f"field of a response: {name}", ("responses", fields)) for name, fields in FIELDS.items()]
    for method in ("GET", "POST", "CONNECT", "TRACE"):
        rows.append((f"target: {method}", ("target", f"{method} {URL} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n")))
    return rows


def run(scene: Scene, attempt: Attempt) -> str:
    way, content = attempt
    before = scene.canary.connections
    text = _send(scene, way, content)
    if scene.canary.connections > before:
        return "the canary was reached"
    if CANARY in text or "root:x:0" in text:
        return "a secret came back"
    if way == "fetch" and not REFUSED.search(text):
        return f"it was not refused: {text[-300:]}"
    return ""


def _send(scene: Scene, way: str, content: Any) -> str:
    gateway = scene.keyed
    if isinstance(content, str):
        content = content.replace(URL, f"{scene.canary.url}/").replace(PORT, str(scene.canary.port))
        content = content.replace("SHOP_PORT", str(scene.shop.server.port))
    if way == "target":
        bearer = f"Authorization: Bearer {gateway.keys['alpha']}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        return gateway.send_bytes((content + bearer).encode(), wait_s=3)
    if way == "fetch":
        return gateway.chat(call("fetch", {"url": content}), "surfer").text
    if way.endswith("redirect"):
        scene.shop.redirects_to = content
        url = f"{scene.shop.server.url}/go/x"
        is_tool = way.startswith("tool")
        text = call("go_to", {"name": "x"}) if is_tool else call("fetch", {"url": url})
        return gateway.chat(text, "desk" if is_tool else "surfer").text
    filled = _filled(content, f"{scene.canary.url}/")
    if way == "chat":
        return gateway.chat("What is this?", **filled).text
    return gateway.send("POST", "/v1/responses", {"model": "desk", "input": "What is this?", **filled}).text


def _filled(part: Any, url: str) -> Any:
    if isinstance(part, Mapping):
        return {name: _filled(value, url) for name, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, url) for value in part]
    return part.replace(URL, url) if isinstance(part, str) else part


PROOF = (
    "fetch: name", "fetch: IPv4", "fetch: user", "fetch: file", "redirect: 127.0.0.1", "tool redirect: localhost",
    "part of user: image", "schema of an answer: reference", "field of a response: MCP server", "target: GET",
)  # fmt: skip
FORGED = Category("forged requests", _attacks(), run, PROOF)
