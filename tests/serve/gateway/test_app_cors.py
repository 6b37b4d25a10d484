"""Pages of other origins: which may call from a browser, what browsers are told, and what a page may never do."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given, strategies as st
from tests.serve.gateway.conftest import AGENT, config_of, gateway, model_env, until, upstream
from tests.serve.gateway.server_process import run, serving

from taoloop import Agent, MemoryJournal
from taoloop.errors import AgentFileError, ConfigError
from taoloop.serve.gateway.app import ROUTES
from taoloop.serve.gateway.auth.keys import new_key
from taoloop.serve.gateway.auth.origins import ANY, is_foreign, origin_of
from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.serve.gateway.config.model import GatewayConfig, ServerLimits

CHAT = "https://chat.example"
EVIL = "https://evil.example"
ALLOWED = "Access-Control-Allow-Origin"
COMPLETIONS = "/v1/chat/completions"


def call(
    url: str, method: str, path: str, body: Any = None, **headers: str | bytes
) -> tuple[int, HTTPMessage, dict[str, Any]]:
    """Status, headers and body; `_` in the name of a header stands for `-`."""
    data = None if body is None else json.dumps(body).encode()
    with closing(HTTPConnection(url.removeprefix("http://"), timeout=20)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, data, {"Content-Type": "application/json", **named})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, answer.headers, json.loads(text) if text else {}


def asked(url: str, method: str, path: str, origin: str, wanted: str = "authorization,content-type") -> Any:
    """What a browser asks ahead."""
    headers = {"Access_Control_Request_Method": method, "Access_Control_Request_Headers": wanted}
    return call(url, "OPTIONS", path, Origin=origin, **headers)


def of_cors(headers: HTTPMessage) -> list[str]:
    return [name for name in headers if name.lower().startswith("access-control-")]


def may_be_read(headers: HTTPMessage, *names: str, origin: str = CHAT) -> bool:
    exposed = {name.strip().lower() for name in (headers["Access-Control-Expose-Headers"] or "").split(",")}
    return (
        headers[ALLOWED] == origin
        and "origin" in (headers["Vary"] or "").lower()
        and "Access-Control-Allow-Credentials" not in headers
        and exposed.issuperset(name.lower() for name in names)
        and all(name in headers for name in names)
    )


def hello(**more: Any) -> dict[str, Any]:
    return {"model": "sums", "messages": [{"role": "user", "content": "Hi."}], **more}


def sums(*replies: Any, origins: tuple[str, ...] = (CHAT,), **changes: Any) -> GatewayConfig:
    agent = Agent(name="sums", model=[*(replies or ("Hello.",))])
    return config_of(agent, allow_origins=origins, **changes)


def test_without_an_allowed_origin_there_is_not_one_header_of_cors_and_no_answer_ahead() -> None:
    with gateway(sums(origins=())) as running:
        for method, path, _ in ROUTES:
            status, headers, _ = asked(running.url, method, path.replace("{", "").replace("}", ""), CHAT)
            assert (status, of_cors(headers)) == (405, [])
        for method, path, body in (("POST", COMPLETIONS, hello()), ("GET", "/v1/models", None), ("GET", "/v2", None)):
            _, headers, _ = call(running.url, method, path, body, Origin=CHAT)
            assert of_cors(headers) == []
            assert "Vary" not in headers
        assert not running.process.gateway.cors_enabled
        assert len(running.process.gateway.app.middlewares) == 1


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in ROUTES])
def test_what_a_browser_asks_ahead_is_granted_on_every_path_and_without_a_key(method: str, path: str) -> None:
    path = path.replace("{run_id}", "20270115-080000-1a2b3c4d").replace("{model:.+}", "sums")
    wanted = "authorization,content-type,x-stainless-lang,x-request-id"
    with gateway(sums(keys=(new_key("shop")[1],))) as running:
        status, headers, _ = asked(running.url, method, path, CHAT, wanted)
        assert status == 200
        assert headers[ALLOWED] == CHAT
        assert headers["Access-Control-Allow-Methods"] == method
        assert {*headers["Access-Control-Allow-Headers"].lower().split(",")} == {*wanted.split(",")}
        assert "Origin" in headers["Vary"]
        assert "Access-Control-Allow-Credentials" not in headers
        assert not running.logged  # it is no request of anybody


def test_another_origin_gets_nothing_ahead_and_nothing_that_it_could_read() -> None:
    with gateway(sums()) as running:
        for origin in (
            EVIL,
            "http://chat.example",
            "https://chat.example:8443",
            "https://chat.example.evil",
            "null",
            "*",
        ):
            status, headers, body = asked(running.url, "POST", COMPLETIONS, origin)
            assert (status, of_cors(headers), body["error"]["code"]) == (403, [], "origin_not_allowed")
            way_out = "serve the page over HTTP" if origin == "null" else f"--allow-origin {origin}`"
            assert way_out in body["error"]["message"]
            status, headers, _ = call(running.url, "GET", "/v1/models", Origin=origin)
            assert (status, of_cors(headers)) == (200, [])
            assert headers["Vary"] == "Origin"  # or a cache would give this answer to a page that may


def test_an_answer_can_be_read_and_the_headers_of_ours_too() -> None:
    with gateway(sums()) as running:
        status, headers, body = call(running.url, "POST", COMPLETIONS, hello(colour="red"), Origin=CHAT)
        assert status == 200
        assert may_be_read(headers, "x-request-id", "x-taoloop-run-id", "x-taoloop-ignored")
        assert headers["x-taoloop-run-id"] == body["agent"]["run_id"]
        for path in ("/v1/models", "/v1/models/sums", f"/v1/runs/{body['agent']['run_id']}", "/openapi.json"):
            status, headers, _ = call(running.url, "GET", path, Origin=CHAT)
            assert (status, may_be_read(headers, "x-request-id")) == (200, True)
        status, headers, _ = call(running.url, "POST", "/v1/responses", {"model": "sums", "input": "Hi."}, Origin=CHAT)
        assert (status, may_be_read(headers, "x-taoloop-run-id")) == (200, True)


def test_every_error_can_be_read_and_when_to_come_back() -> None:
    secret, key = new_key("shop")
    key = replace(key, requests_per_minute=1, task_authority="full")
    broken = Agent(name="broken", model=[{"text": "x"}], instructions="y")
    config = sums(keys=(key,), limits=ServerLimits(max_body_bytes=1_000))
    config = replace(config, agents={**config.agents, **config_of(broken).agents})
    bearer = {"Authorization": f"Bearer {secret}"}
    with gateway(config) as running:
        found = {}
        for name, method, path, body, more in (
            ("no key", "POST", COMPLETIONS, hello(), {}),
            ("bad body", "POST", COMPLETIONS, {"model": "sums"}, bearer),
            ("too large", "POST", COMPLETIONS, hello(user="x" * 1_000), bearer),
            ("no model", "POST", COMPLETIONS, {**hello(), "model": "nobody"}, bearer),
            ("no run", "POST", "/v1/runs/20270115-080000-1a2b3c4d/approvals", {"decision": "deny"}, bearer),
            ("no path", "POST", "/chat/completions", hello(), bearer),
            ("no method", "GET", COMPLETIONS, None, bearer),
        ):
            status, headers, told = call(running.url, method, path, body, Origin=CHAT, **more)
            assert may_be_read(headers), name
            found[name] = (status, told["error"]["code"])
        assert found == {
            "no key": (401, "invalid_api_key"),
            "bad body": (400, "missing_required_parameter"),
            "too large": (413, "request_too_large"),
            "no model": (404, "model_not_found"),
            "no run": (404, "run_not_found"),
            "no path": (404, "unknown_url"),
            "no method": (405, "method_not_allowed"),
        }
        assert call(running.url, "POST", COMPLETIONS, hello(), Origin=CHAT, **bearer)[0] == 200
        status, headers, _ = call(running.url, "POST", COMPLETIONS, hello(), Origin=CHAT, **bearer)
        assert (status, may_be_read(headers, "Retry-After")) == (429, True)


class Broken(MemoryJournal):
    """A journal with a bug."""

    async def load(self, *_: object, **__: object) -> Any:
        raise RuntimeError("a bug")


def test_a_bug_can_be_read_as_well() -> None:
    with gateway(sums(), journal=Broken()) as running:
        status, headers, body = call(running.url, "GET", "/v1/runs/20270115-080000-1a2b3c4d", Origin=CHAT)
        assert (status, body["error"]["code"]) == (500, "internal_error")
        assert may_be_read(headers, "x-request-id")


def test_a_stream_is_still_one_and_a_page_that_leaves_ends_its_run() -> None:
    reply = {"pieces": ["One ", "two."], "waits": True}
    with upstream(reply) as server:
        agent = Agent(name="sums", model="openai:m", env=model_env(server))
        with gateway(config_of(agent, allow_origins=(CHAT,))) as running:
            with openai.OpenAI(base_url=f"{running.url}/v1", api_key="x", default_headers={"Origin": CHAT}) as page:
                stream = page.chat.completions.create(**hello(stream=True))
                assert may_be_read(stream.response.headers, "x-taoloop-run-id")
                assert next(iter(stream)).choices[0].delta.content == "One"  # while the model still waits
                stream.close()
            until(lambda: running.traces()[0].status == "stopped")  # while the model still waits


def test_every_page_only_when_that_is_said_and_never_with_credentials() -> None:
    with gateway(sums(origins=(ANY,))) as running:
        for origin in (CHAT, "null", "tauri://localhost"):
            status, headers, _ = asked(running.url, "POST", COMPLETIONS, origin)
            assert (status, headers[ALLOWED]) == (200, origin)
            _, headers, _ = call(running.url, "POST", COMPLETIONS, hello(), Origin=origin, Cookie="a=b")
            assert may_be_read(headers, "x-request-id", origin=origin)


def test_strange_headers_break_nothing() -> None:
    with gateway(sums(origins=(ANY,))) as running:
        for bad in (b"\xff\xfe", "http://ü".encode(), b"x" * 8_000, b"a, b", b""):
            for name in ("Origin", "Access_Control_Request_Headers", "Access_Control_Request_Method"):
                said: dict[str, str | bytes] = {"Origin": CHAT, "Access_Control_Request_Method": "POST"}
                assert call(running.url, "OPTIONS", COMPLETIONS, **{**said, name: bad})[0] in (200, 400, 403, 405)
            assert call(running.url, "POST", COMPLETIONS, hello(), Origin=bad)[0] in (200, 400)
        assert call(running.url, "GET", "/healthz", Origin=CHAT)[0] == 200


@pytest.mark.parametrize("origin", [EVIL, "http://evil.example:8080", "null"])
@pytest.mark.parametrize("path", [COMPLETIONS, "/v1/responses", "/v1/runs/20270115-080000-1a2b3c4d/approvals"])
def test_a_page_of_another_site_sets_no_agent_to_work_though_it_need_not_read_the_answer(
    origin: str, path: str
) -> None:
    of_browser = {"Origin": origin, "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}
    with gateway(sums(origins=())) as running:
        status, _, body = call(running.url, "POST", path, hello(), Content_Type="text/plain", **of_browser)
        assert (status, body["error"]["code"]) == (403, "origin_not_allowed")
        assert running.traces() == []
        assert call(running.url, "POST", COMPLETIONS, hello())[0] == 200  # programs are no pages


def test_is_foreign_knows_pages_from_programs() -> None:
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert is_foreign({**cross, "Origin": EVIL}, ())
    assert is_foreign({**cross, "Origin": EVIL}, (CHAT,))
    assert is_foreign({**cross, "Origin": "null"}, (CHAT,))
    other_port = {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000", "Host": "localhost:8080"}
    assert is_foreign(other_port, (CHAT,))
    assert not is_foreign(other_port, ("http://localhost:3000",))
    for headers in (
        {},
        {**cross, "Origin": CHAT},
        {**cross, "Origin": "file://"},
        {**cross, "Origin": "chrome-extension://abc"},
        {"Sec-Fetch-Site": "same-origin", "Origin": EVIL},
        {"Sec-Fetch-Site": "none", "Origin": EVIL},
    ):
        assert not is_foreign(headers, (CHAT,))
    assert not is_foreign({**cross, "Origin": EVIL}, (ANY,))


def test_a_page_is_known_where_its_browser_says_nothing_of_sites() -> None:
    """Towards a name that is not known to be this machine's, browsers send no `Sec-Fetch-Site` without TLS."""
    page, here = "http://evil.example", "here.evil.example:8080"
    assert is_foreign({"Origin": page, "Host": here}, (CHAT,))
    assert is_foreign({"Origin": "null", "Host": here}, (CHAT,))
    assert is_foreign({"Origin": page}, (CHAT,))
    assert not is_foreign({"Origin": f"http://{here}", "Host": here}, ())
    assert not is_foreign({"Origin": page, "Host": here}, (page,))
    assert not is_foreign({"Origin": page, "Host": here}, (ANY,))
    assert not is_foreign({"Host": here}, ())  # programs
    with gateway(sums(origins=())) as running:
        status, _, body = call(running.url, "POST", COMPLETIONS, hello(), Content_Type="text/plain", Origin=page)
        assert (status, body["error"]["code"]) == (403, "origin_not_allowed")
        assert running.traces() == []


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("https://chat.example", "https://chat.example"),
        ("HTTPS://Chat.Example:443", "https://chat.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("http://[::1]:8081", "http://[::1]:8081"),
        ("https://聊天.example", "https://xn--rss932g.example"),
        ("tauri://localhost", "tauri://localhost"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ("*", "*"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(written: str, sent: str) -> None:
    assert origin_of(written) == sent


BAD = {
    "https://chat.example/": "Leave out what comes after the host: https://chat.example.",
    "https://chat.example:8443/v1?x=1#y": "Leave out what comes after the host: https://chat.example:8443.",
    "chat.example": "Write the scheme too",
    "localhost:3000": "Write the scheme too",
    "": "Write the scheme too",
    "https://": "Write scheme, host",
    "https://ann@chat.example": "Write scheme, host",
    "https://chat.example:99999": "Write scheme, host",
    "https://chat example": "Write scheme, host",
    " https://chat.example": "Write scheme, host",
    "https://*.example": "Patterns are not supported",
    "null": "serve the page over HTTP",
}


@pytest.mark.parametrize(("bad", "way_out"), BAD.items())
def test_what_is_no_origin_is_refused_with_path_and_line(tmp_path: Path, bad: str, way_out: str) -> None:
    path = tmp_path / "gate.yaml"
    text = "agents:\n  sums: {model: offline}\nserver:\n  allow_origins:\n  - https://chat.example\n  - "
    path.write_text(text + json.dumps(bad), encoding="utf-8")
    with pytest.raises(AgentFileError) as error:
        load_config(path, env={})
    told = str(error.value)
    assert f"{path}:6" in told
    assert "server.allow_origins[1]" in told
    assert f"{bad!r} is not the origin" in told
    assert way_out in told
    made = run(tmp_path, path.name, "--allow-origin", bad, "--check")
    assert made.code == 2


@given(st.text())
def test_any_text_is_an_origin_or_a_clear_error(text: str) -> None:
    try:
        found = origin_of(text)
    except ConfigError as error:
        found = ANY if error.hint else ""
    assert origin_of(found) == found


@pytest.mark.parametrize(
    ("given_there", "told"),
    [('"*"', "a list is expected"), ("[8080]", "a text is expected"), ("[*]", ""), ("[null]", "a text is expected")],
)
def test_fields_of_another_kind_are_refused(tmp_path: Path, given_there: str, told: str) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text(f"agents:\n  sums: {{model: offline}}\nserver:\n  allow_origins: {given_there}\n")
    with pytest.raises(AgentFileError) as error:
        load_config(path, env={})
    assert f"{path}:4" in str(error.value)
    assert told in str(error.value)


def test_an_origin_comes_from_the_file_the_environment_or_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text(
        "agents:\n  sums: {model: offline}\n"
        'server:\n  allow_origins: ["${CHAT_ORIGIN}", "https://Chat.example", "https://chat.example:443"]\n'
    )
    env = {"CHAT_ORIGIN": "http://localhost:3000"}
    config = load_config(path, env=env)
    assert config.allow_origins == ("http://localhost:3000", "https://chat.example")
    told = "pages that may call it from a browser: http://localhost:3000, https://chat.example"
    assert told in config_summary(config)
    assert config.warnings == ()
    config = load_config(path, env=env, allow_origins=[EVIL, "*"])
    assert config.allow_origins == (EVIL, ANY)
    assert "there are no keys" in config.warnings[0]
    plain = tmp_path / "agent.yaml"
    plain.write_text("model: offline\n")
    assert load_config(plain, env={}).allow_origins == ()
    assert "browser" not in config_summary(load_config(plain, env={}))
    assert load_config(plain, env={}, allow_origins=[CHAT]).allow_origins == (CHAT,)


HIGRESS = """\
llm: {apiKey: k, serviceName: llm, servicePort: 443, domain: llm.example, path: /v1/chat/completions, model: m}
apis:
- url: https://api.example.com
  tools:
  - {toolName: look, description: Looks., method: GET, path: /look}
"""


@pytest.mark.parametrize("form", [AGENT.format(name="assistant", instructions="Be brief."), HIGRESS])
def test_the_option_opens_any_file_to_a_page(agent_file: Path, form: str) -> None:
    agent_file.write_text(form)
    options = ("--allow-origin", CHAT, "--allow-origin", "http://localhost:3000")
    with upstream("Hello.") as server, serving(agent_file, server, *options) as served:
        for origin in (CHAT, "http://localhost:3000"):
            assert asked(served.url, "POST", COMPLETIONS, origin)[1][ALLOWED] == origin
            _, headers, _ = call(served.url, "GET", "/v1/models", Origin=origin)
            assert may_be_read(headers, origin=origin)
        assert asked(served.url, "POST", COMPLETIONS, EVIL)[0] == 403


def test_a_changed_list_holds_at_once_and_a_first_one_says_that_it_takes_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"

    def write(origins: list[str]) -> None:
        path.write_text(f"agents:\n  sums: {{model: offline}}\nserver:\n  allow_origins: {json.dumps(origins)}\n")

    with upstream("Hello.") as server:
        write([CHAT])
        with serving(path, server) as served:
            assert call(served.url, "GET", "/v1/models", Origin=CHAT)[1][ALLOWED] == CHAT
            for origins in ([EVIL], []):
                write(origins)
                served.process.send_signal(signal.SIGHUP)
                served.said("The changed configuration is in use.")
                for origin in (CHAT, EVIL):
                    allowed = call(served.url, "GET", "/v1/models", Origin=origin)[1][ALLOWED]
                    assert allowed == (origin if origin in origins else None)
                    assert asked(served.url, "GET", "/v1/models", origin)[0] == (200 if origin in origins else 403)
        with serving(path, server) as served:
            write([CHAT])
            served.process.send_signal(signal.SIGHUP)
            served.said("requires a restart")
            assert of_cors(call(served.url, "GET", "/v1/models", Origin=CHAT)[1]) == []
