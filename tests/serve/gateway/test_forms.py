"""What the forms of a configuration have in common: odd but legal files, mistakes with their place, names sent away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.serve.gateway.ai_agent import CONFIGS, changed, data_of, load, one, run, tools_of, world
from tests.serve.gateway.clients import ask, post
from tests.serve.gateway.conftest import agent, config_of, gateway, until, upstream

from taoloop.errors import AgentFileError
from taoloop.serve.gateway.auth.keys import digest_of
from taoloop.serve.gateway.config.config_summary import config_summary
from taoloop.serve.gateway.config.gateway_file import load_config

FLAT, LONG = "06_flat_form.yaml", "01_weather.yaml"
TOOL = {"toolName": "look", "description": "Look it up", "method": "GET", "path": "/look"}


def flat(**tool: Any) -> dict[str, Any]:
    return changed(FLAT, {"apis.0.tools": [{**TOOL, **tool}]})


def schema_of(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = dict(tools_of(one(load(folder, data)).agent)["look"].card.input_schema)
    return found


def with_server(server: str) -> dict[str, Any]:
    text = data_of(LONG)["apis"][0]["api"].replace("- url: https://weather.example.com/v1", server)
    return changed(LONG, {"apis.0.api": text})


def base(config: Any) -> str:
    address: str = tools_of(one(config).agent)["get_forecast"].handler.api.source.base_url  # type: ignore[attr-defined]  # a Caller
    return address


# Addresses


@pytest.mark.parametrize("url", ["https://h.example.com:99999", "http://[broken", "https://h.example.com:x", "ftp://h"])
def test_an_address_that_is_none_is_named_with_its_line(url: str, tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match=r"apis\[0\]\.url") as caught:
        load(tmp_path, changed(FLAT, {"apis.0.url": url}))
    assert caught.value.line > 0
    with pytest.raises(AgentFileError, match="http") as caught:
        load(tmp_path, with_server(f"- url: '{url}'"))
    assert caught.value.field.startswith("apis[0]")
    assert caught.value.line > 0


def test_variables_of_a_server_have_their_defaults(tmp_path: Path) -> None:
    given = "- {url: 'https://{host}.example.com/{v}', variables: {host: {default: sky}, v: {default: 3}}}"
    assert base(load(tmp_path, with_server(given))) == "https://sky.example.com/3"
    with pytest.raises(AgentFileError, match="the variable 'host' of servers"):
        load(tmp_path, with_server("- url: 'https://{host}.example.com'"))


def test_a_server_without_a_scheme_counts_as_a_path_and_that_is_said(tmp_path: Path) -> None:
    config = load(tmp_path, with_server("- url: weather.example.com/v1"))
    assert base(config) == "https://weather.example.com/weather.example.com/v1"
    assert ["names no scheme" in warning for warning in config.warnings] == [True]
    assert load(tmp_path, with_server("- url: /v1")).warnings == ()


# The short form


@pytest.mark.parametrize("names", [["city", "day"], "city"])
def test_names_of_parameters_alone_are_parameters(names: Any, tmp_path: Path) -> None:  # S1-14
    schema = schema_of(flat(paramName=names), tmp_path)
    assert set(schema["properties"]) == set([names] if isinstance(names, str) else names)
    both = flat(paramName=["city", "day"], parameter={"type": "object", "properties": {"city": {"type": "string"}}})
    assert schema_of(both, tmp_path)["properties"] == {"city": {"type": "string"}, "day": {}}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_schema_may_refer_to_its_own_parts(method: str, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "integer"}}}
    data = flat(method=method, parameter=json.dumps(schema))
    made = schema_of(data, tmp_path)
    assert made["$defs"][made["properties"]["a"]["$ref"].rpartition("/")[2]] == {"type": "integer"}
    assert load(tmp_path, data).warnings == ()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"paramName": 5}, "paramName"),
        ({"paramName": ["a", 5]}, "paramName"),
        ({"path": "https://h.example.com/look"}, "path"),
        ({"parameter": "[]"}, "parameter"),
        ({"parameter": {"properties": [1]}}, "parameter.properties"),
        ({"parameter": {"properties": {"a": {}}, "required": 5}}, "parameter.required"),
        ({"parameter": {"properties": {"a": {}}, "required": "a"}}, "parameter.required"),
        ({"parameter": '{"properties": {"a": {"maximum": NaN}}}'}, "parameter"),
    ],
)
def test_a_tool_that_cannot_be_is_named_with_its_field(change: dict[str, Any], field: str, tmp_path: Path) -> None:
    with pytest.raises(AgentFileError) as caught:
        load(tmp_path, flat(**change))
    assert caught.value.field.startswith(f"apis[0].tools[0].{field}")
    assert caught.value.line > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameter": {"properties": {"a": {"type": "num"}}}}, "no valid|not valid JSON Schema"),
        ({"toolName": "查询天气"}, "'查询天气' is called get_look here"),
        ({"toolName": "look it up"}, "'look it up' is called look_it_up here"),
    ],
)
def test_what_a_tool_cannot_keep_is_said(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    [warning] = load(tmp_path, flat(**change)).warnings
    assert any(part in warning for part in said.split("|"))


def test_one_address_twice_is_refused_with_a_way_out(tmp_path: Path) -> None:
    data = changed(FLAT, {"apis.0.tools": [TOOL, {**TOOL, "toolName": "look_again"}]})
    with pytest.raises(AgentFileError, match=r"is there twice\. Put the second one into a separate entry of `apis`"):
        load(tmp_path, data)
    entry = data["apis"][0]
    data["apis"] = [{**entry, "tools": [tool]} for tool in entry["tools"]]
    assert {"look", "look_again"} <= set(tools_of(one(load(tmp_path, data)).agent))


# An ai-agent file among other agents, with keys


def test_an_ai_agent_file_is_an_agent_of_a_gateway_that_has_keys(tmp_path: Path) -> None:
    content = {
        "agents": {"weather": {"file": str(CONFIGS / LONG), "description": "The sky."}, "talk": {"model": "offline"}},
        "keys": [{"name": "web", "digest": digest_of("tao-web-0123456789"), "agents": ["weather"]}],
        "server": {"host": "127.0.0.1"},
    }
    answer = '{"city": "Bonn", "condition": "sunny", "temperature_c": 21}'
    final = '{"action": "Final Answer", "action_input": "Sunny."}'
    with world(final, answer) as there:
        content["services"] = {"llm.dns": there.place, "weather.dns": there.place}
        (tmp_path / "gate.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        config = load_config(tmp_path / "gate.yaml", env={})
        assert tuple(config.files) == (tmp_path / "gate.yaml", CONFIGS / LONG)
        assert {"llm-key-for-tests", "weather-key-for-tests"} <= set(config.secrets.values())
        assert "agent weather: The sky." in config_summary(config)
        assert "-for-tests" not in config_summary(config)
        with gateway(config) as running:
            body = {"model": "weather", "messages": ask("What is the weather in Bonn?")}
            assert post(running, body)[0] == 401
            status, told = post(running, body, Authorization="Bearer tao-web-0123456789")
            assert (status, json.loads(told["choices"][0]["message"]["content"])) == (200, json.loads(answer))
            [_, trace] = sorted(running.traces(), key=lambda trace: len(trace.run_id), reverse=True)
            assert trace.agent.name == "weather"


def test_warnings_and_mistakes_of_an_ai_agent_file_in_a_gateway_have_their_place(tmp_path: Path) -> None:
    inner = tmp_path / "w.yaml"
    (tmp_path / "gate.yaml").write_text("agents:\n  weather: w.yaml\n", encoding="utf-8")
    inner.write_text(yaml.safe_dump(changed(LONG, {"llm.extra": 1})), encoding="utf-8")
    [warning] = load_config(tmp_path / "gate.yaml", env={}).warnings
    assert warning.startswith("w.yaml:")
    assert "llm.extra" in warning
    inner.write_text(yaml.safe_dump(changed(LONG, {"llm.model": ...})), encoding="utf-8")
    with pytest.raises(
        AgentFileError, match=r"gate\.yaml:2: agents\.weather: .*w\.yaml:\d+: llm\.model: it is missing"
    ):
        load_config(tmp_path / "gate.yaml", env={})


# What an agent needs at the start


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("model: openai:gpt-4o\n", "gate.yaml:1: model"),
        ("agents:\n  a:\n    tools: []\n    model: openai:gpt-4o\n", "gate.yaml:4: agents.a.model"),
        ("agents:\n  a: {model: offline}\n  b: {model: offline, fallback: 'deepseek:x'}\n", "gate.yaml:3: agents.b"),
    ],
)
def test_a_model_without_its_key_is_named_by_its_place(content: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(AgentFileError, match=r"_API_KEY is not set\. Set .* or write `model: offline`") as caught:
        load_config(tmp_path / "gate.yaml", env={})
    assert place in str(caught.value)


def test_every_file_that_a_configuration_comes_from_is_watched(tmp_path: Path) -> None:
    api = {"openapi": "3.1.0", "info": {}, "servers": [{"url": "https://h.example.com"}], "paths": {"/a": {"get": {}}}}
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "role.txt").write_text("You are brief.", encoding="utf-8")
    for name, content in {
        "api.json": json.dumps(api),
        "tools.yaml": "tools: [{openapi: api.json}]",
        "policy.yaml": "profile: strict",
        "answer.yaml": "type: object",
        "inner.yaml": "model: offline\nname: inner",
        "gate.yaml": "agents:\n  a:\n    model: offline\n    tools: [{file: tools.yaml}, {agent: inner.yaml, name: in, "
        "purpose: Asks.}]\n    policy: policy.yaml\n    output_schema: answer.yaml\n    prompts: texts\n",
    }.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    names = {path.name for path in load_config(tmp_path / "gate.yaml", env={}).files}
    assert names == {"gate.yaml", "tools.yaml", "api.json", "policy.yaml", "answer.yaml", "inner.yaml", "role.txt"}


def test_what_a_change_cannot_do_and_what_it_warns_of_is_said() -> None:
    with upstream("Hello.") as server:
        config = config_of(agent(server))
        changed_to = replace(config, port=0, db=Path("other.db"), warnings=("gate.yaml:1: x: it has no effect.",))
        with gateway(config, load=lambda: changed_to) as running:
            running.reload()
            until(lambda: len(running.said) == 2)
            assert running.said[0].endswith("in use. A new `db` requires a restart.")
            assert running.said[1] == "Warning: gate.yaml:1: x: it has no effect."


# Names that are sent elsewhere


@contextmanager
def shop() -> Iterator[str]:
    """A server that describes itself with an address of its own, which is nowhere."""
    import threading  # noqa: PLC0415  # for this alone
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # noqa: PLC0415  # for this alone

    class Shop(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths = {"/stock": {"get": {"operationId": "stock", "summary": "Tell what is there."}}}
            api = {"openapi": "3.1.0", "info": {}, "servers": [{"url": "https://shop.example.com/v1"}], "paths": paths}
            told = api if self.path == "/api.json?v=2" else {"path": self.path, "host": self.headers["Host"]}
            data = json.dumps(told).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_document_is_fetched_where_its_host_is_sent_and_its_calls_go_there_too(tmp_path: Path) -> None:
    document = "https://shop.example.com/api.json?v=2"
    (tmp_path / "gate.yaml").write_text(f"model: offline\ntools: [{{openapi: {{document: '{document}'}}}}]")
    with shop() as place:
        config = load_config(tmp_path / "gate.yaml", env={}, resolve={"shop.example.com": place, "typo.example": "h:1"})
        replies: Any = [{"text": "", "tool_calls": [{"name": "stock", "args": {}}]}, "Done."]
        answered = run(replace(one(config).agent, model=replies, dialect="native"), "Tell what is there.")
        told = config_summary(config)
    assert '"/v1/stock"' in str(answered.trace.events)
    assert '"host": "shop.example.com"' in str(answered.trace.events)
    assert f"stock (read) GET http://{place}/v1/stock" in told
    assert "gate.yaml: typo.example: no model and no OpenAPI tool is at this host" in told
    assert "gate.yaml: shop.example.com" not in told
