"""The requests of `higress/vectors/requests.json`, as they are built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.tools.openapi.documents import query_of

from taoloop.config.document import ConfigDocument
from taoloop.config.settings_reader import SettingsReader
from taoloop.errors import ConfigError, InvalidArguments
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.serve.gateway.higress.apis import ApiReader
from taoloop.tools.openapi import OpenapiSource
from taoloop.tools.openapi.operation_call import OperationCaller
from taoloop.tools.openapi.request import PreparedRequest, build_request
from taoloop.tools.tool import Tool

SHARED = Path(__file__).parents[2] / "data" / "higress"
VECTORS = json.loads((SHARED / "vectors" / "requests.json").read_text(encoding="utf-8"))


def tools(config: str) -> dict[str, Tool]:
    entries = yaml.safe_load((SHARED / "configs" / config).read_text())["apis"]
    return {tool.name: tool for tool in tools_of(*entries)}


def tools_of(*entries: Any) -> tuple[Tool, ...]:
    reader = SettingsReader(ConfigDocument(Path("a.yaml"), {}, {(): 1}), {})
    loaded = ApiReader(reader, HostOverrides({})).tools(entries)
    assert [warning for warning in reader.warnings if ".api: " in warning or ".tools: " in warning] == []
    return loaded


def source_of(entry: Any) -> OpenapiSource:
    (tool,) = tools_of(entry)
    assert isinstance(tool.handler, OperationCaller)
    return tool.handler.api.source


def request(tool: Tool, args: dict[str, Any]) -> PreparedRequest:
    caller = tool.handler
    assert isinstance(caller, OperationCaller)
    return build_request(caller.operation, tool.prepare(args).values, caller.api.source)


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{n}-{one['tool']}" for n, one in enumerate(VECTORS)])
def test_the_request_is_the_expected_one(vector: dict[str, Any]) -> None:  # S1-31 to S1-35, S1-57
    tool, expected = tools(vector["config"])[vector["tool"]], vector["expect"]
    if expected["outcome"] == "refused":
        with pytest.raises(InvalidArguments) as caught:
            request(tool, vector["arguments"])
        assert caught.value.code == expected["error"]
        return
    asks = tool.card.tier != "read"
    assert asks == (expected["outcome"] in ("needs_approval", "sent_after_approval"))
    if expected["outcome"] == "needs_approval":
        return
    made = request(tool, vector["arguments"])
    assert made.method == expected["method"]
    assert made.url.partition("?")[0] == expected["url"]
    assert [list(pair) for pair in query_of(made)] == expected["query"]
    assert made.headers == {"Content-Type": "application/json", **expected["headers"]}  # S1-34: also with GET
    assert (None if made.body is None else json.loads(made.body)) == expected["body"]
    assert made.timeout_s * 1000 == expected["timeout_ms"] == tool.card.timeout_s * 1000


def entry(url: str = "https://h.example.com/v1", port: int = 443, **provider: Any) -> dict[str, Any]:
    api = {"openapi": "3.1.0", "info": {}, "servers": [{"url": url}], "paths": {"/x": {"get": {"operationId": "x"}}}}
    named = {"serviceName": "s.dns", "servicePort": port, "domain": "d.example.com", **provider}
    return {"apiProvider": named, "api": json.dumps(api)}


@pytest.mark.parametrize(
    ("url", "port", "base"),
    [
        ("https://h.example.com/v1", 443, "https://h.example.com/v1"),
        ("https://h.example.com:8443/v1/", 443, "https://h.example.com:8443/v1"),
        ("https://h.example.com", 8443, "https://h.example.com:8443"),
        ("https://h.example.com", 80, "https://h.example.com"),
        ("http://h.example.com", 443, "http://h.example.com"),
        ("/api", 443, "https://d.example.com/api"),
        ("/api", 8080, "http://d.example.com:8080/api"),
    ],
)
def test_a_call_goes_where_the_entry_says(url: str, port: int, base: str) -> None:
    assert source_of(entry(url, port)).base_url == base


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"serviceName": None}, "apiProvider.serviceName"),
        ({"servicePort": 0}, "apiProvider.servicePort"),
        ({"domain": ""}, "apiProvider.domain"),
        ({"maxExecutionTime": "soon"}, "apiProvider.maxExecutionTime"),
        ({"apiKey": {"in": "cookie", "name": "a", "value": "b"}}, "apiProvider.apiKey.in"),
    ],
)
def test_what_is_missing_is_named_with_its_place(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, match=f"apis\\[0\\].{field}"):
        tools_of(entry(**changed))
    with pytest.raises(ConfigError, match=r"apis\[1\].api: it is missing"):
        tools_of(entry(), {"apiProvider": entry()["apiProvider"]})
    with pytest.raises(ConfigError, match="servers"):
        tools_of({**entry(), "api": "openapi: 3.1.0"})


def test_a_key_without_a_name_is_not_sent() -> None:
    assert source_of(entry(apiKey={"in": "header", "value": "v"})).auth == {}
    assert source_of(entry(maxExecutionTime=0)).timeout_s == 50.0


def test_the_short_form_writes_a_body_and_a_path() -> None:
    tool = {
        "toolName": "rename",
        "description": "Renames one.",
        "method": "POST",
        "path": "/x/{id}",
        "parameter": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["id", "name"],
        },
    }
    (made,) = tools_of({"url": "https://h.example.com", "tools": [tool]})
    sent = request(made, {"id": 7, "name": "a"})
    assert (sent.method, sent.url, sent.body) == ("POST", "https://h.example.com/x/7", b'{"name":"a"}')
