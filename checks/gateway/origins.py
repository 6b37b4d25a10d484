"""DNS rebinding and pages of other sites: without keys, only programs of this machine start an agent."""

from __future__ import annotations

import json
from collections.abc import Mapping

from checks.gateway.scene import Category, Scene

Attempt = tuple[str, str, Mapping[str, str]]
"""Method, path and headers; PORT is the port of the server. An empty `Host` leaves the header out."""

HOSTS = {
    "a name": "evil.example",
    "a name with the port": "evil.example:PORT",
    "a subdomain of localhost": "localhost.evil.example:PORT",
    "an address in a name": "127.0.0.1.evil.example:PORT",
    "a service for names": "127-0-0-1.nip.example:PORT",
    "localhost with a suffix": "localhostevil:PORT",
    "an address of the network": "10.0.0.5:PORT",
    "a link-local address": "169.254.169.254",
    "any address": "0.0.0.0:PORT",
    "decimal": "2130706433:PORT",
    "user": "localhost@evil.example",
    "user of localhost": "evil.example@localhost:PORT",
    "fragment": "evil.example#localhost",
    "path": "evil.example/localhost",
    "two names": "localhost, evil.example",
    "brackets": "[::1].evil.example",
    "IPv6 of the network": "[fe80::1]:PORT",
    "empty": "",
    "blank": " ",
    "capitals": "EVIL.EXAMPLE",
    "letters like others": "l\u043ecalhost",
    "null": "localhost\x01.evil.example",
}
ORIGINS = {
    "a site": "http://evil.example",
    "a site with TLS": "https://evil.example",
    "no origin": "null",
    "another port": "http://localhost:3000",
    "another port of the address": "http://127.0.0.1:3000",
    "the address in a name": "http://127.0.0.1.evil.example:PORT",
    "the port as a name": "http://localhost:PORT.evil.example",
    "user": "http://127.0.0.1:PORT@evil.example",
    "another scheme": "https://127.0.0.1:PORT",
    "another name of this machine": "http://localhost:PORT",
    "a file": "file://",
    "an extension": "chrome-extension://abcdefgh",
    "two": "http://127.0.0.1:PORT, http://evil.example",
    "any": "*",
}
PATHS = (("POST", "/v1/chat/completions"), ("POST", "/v1/responses"), ("GET", "/v1/models"), ("GET", "/metrics"))


def _attacks() -> list[tuple[str, Attempt]]:
    rows: list[tuple[str, Attempt]] = []
    for method, path in PATHS:
        for name, host in HOSTS.items():
            if path in ("/v1/chat/completions", "/v1/models") or name in ("a name", "any address"):
                rows.append((f"host of {path}: {name}", (method, path, {"Host": host})))
    for name, origin in ORIGINS.items():
        posts = PATHS[:2]
        rows += [(f"origin of {path}: {name}", (method, path, {"Origin": origin})) for method, path in posts]
        text = {"Origin": origin, "Content-Type": "text/plain"}
        rows.append((f"simple request: {name}", ("POST", "/v1/chat/completions", text)))
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        rows.append((f"preflight: {name}", ("OPTIONS", "/v1/chat/completions", {"Origin": origin, **asked})))
    sites, chat = ("cross-site", "same-site"), "/v1/chat/completions"
    rows += [(f"without an origin: {site}", ("POST", chat, {"Sec-Fetch-Site": site})) for site in sites]
    return rows


def run(scene: Scene, attempt: Attempt) -> str:
    method, path, headers = attempt
    port = str(scene.open.port)
    headers = {name: value.replace("PORT", port) for name, value in headers.items()}
    asked = {"model": "desk", "messages": [{"role": "user", "content": "Hi."}], "input": "Hi."}
    body = json.dumps(asked if method == "POST" else None).encode() if method == "POST" else b""
    own = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**own, **headers, "Connection": "close"}.items())
    before = len(scene.model.arrived)
    text = scene.open.send_bytes(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    head = text.partition("\r\n\r\n")[0].lower()
    if len(scene.model.arrived) > before:
        return "an agent was started"
    if "access-control-allow-origin" in head:
        return "the page may read the answer"
    if "Host" in headers and " 200 " in head.partition("\r\n")[0]:
        return "it was answered"
    return ""


PROOF = (
    "host of /v1/chat/completions: a name", "host of /v1/models: a name", "origin of /v1/responses: a site",
    "simple request: a site", "preflight: a site", "without an origin: cross-site",
)  # fmt: skip
ORIGINS_AND_HOSTS = Category("origins and hosts", _attacks(), run, PROOF)
