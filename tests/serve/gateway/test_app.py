"""The application: paths and methods, and `/openapi.json` as a sound document that says what clients really get.

What the server does, in every case that the document describes, is seen by the judge of all gateways of these tests.
"""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs
import openai
import pytest
from tests.serve.gateway.clients import post
from tests.serve.gateway.conftest import Running, agent, client, config_of, gateway, upstream

from taoloop.models.settings import ModelEndpoint
from taoloop.serve.gateway.app import ROUTES, _suggestion, openapi_document
from taoloop.tools.openapi import OpenapiSource, document_findings, openapi_tools


def test_a_model_of_the_list_is_not_there_either(running: Running) -> None:
    with pytest.raises(openai.NotFoundError) as told:
        client(running).models.retrieve("gpt-5")
    assert told.value.code == "model_not_found"
    assert [one.id for one in client(running).models.list()] == ["assistant"]
    assert client(running).models.retrieve("assistant").id == "assistant"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "unknown_url"),
        ("GET", "/v1", 404, "unknown_url"),
        ("POST", "/v1/chat/completions/", 404, "unknown_url"),
        ("POST", "/v1/completions", 404, "unknown_url"),
        ("POST", "/v1/embeddings", 404, "unknown_url"),
        ("GET", "/v1/%2e%2e/etc/passwd", 404, "unknown_url"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("PUT", "/v1/responses", 405, "method_not_allowed"),
        ("GET", "/v1/models/%00", 404, "model_not_found"),
        ("GET", "/v1/models/%ED%A0%80", 404, "model_not_found"),
        ("GET", "/v1/models/a/b/c", 404, "model_not_found"),
        ("GET", "/v1/runs/nothing", 404, "run_not_found"),
        ("GET", "/v1/runs/%00", 404, "run_not_found"),
        ("GET", "/v1/runs/%FF%FE", 404, "run_not_found"),
        ("GET", "/v1/runs/%2e%2e%2fx", 404, "run_not_found"),
        ("GET", "/v1/runs/" + "x" * 5_000, 404, "run_not_found"),
        ("POST", "/v1/runs/nothing/approvals", 404, "run_not_found"),
    ],
)
def test_a_path_or_method_that_is_not_there_is_told_so(
    running: Running, method: str, path: str, status: int, code: str
) -> None:
    body = b'{"decision": "approve"}' if method == "POST" else b""
    found, told = post(running, body, path=path, method=method)
    assert (found, told["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/healthz", 200), ("/readyz", 200), ("/v1/models", 200), ("/v1/runs/nothing", 404), ("/v1/responses", 405)],
)
def test_a_head_request_has_the_status_and_nothing_else(running: Running, path: str, status: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", urlsplit(running.url).port, timeout=10)) as connection:
        for _ in range(2):  # a body would be read as the beginning of the next answer
            connection.request("HEAD", path)
            response = connection.getresponse()
            assert (response.status, response.read()) == (status, b"")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/chat/completions", "Did you mean /v1/chat/completions?"),
        ("/v1/chat/completions/", "Did you mean /v1/chat/completions?"),
        ("/v1/v1/responses", "Did you mean /v1/responses?"),
        ("/models/", "Did you mean /v1/models?"),
        ("/v1", "See GET /openapi.json."),
        ("/", "See GET /openapi.json."),
        ("/v1/embeddings", "See GET /openapi.json."),
    ],
)
def test_a_base_url_that_is_almost_right_is_told(path: str, hint: str) -> None:
    assert _suggestion(path) == hint


SOURCE = OpenapiSource(
    document=json.dumps(openapi_document(), indent=1), base_url="http://127.0.0.1:8080/", cache=False
)


def test_the_document_follows_its_own_specification() -> None:
    assert openapi_document()["openapi"].startswith("3.1.")
    assert document_findings(SOURCE) == ()
    for schema in openapi_document()["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_it_names_every_path_and_no_other() -> None:
    named = {(method.upper(), path) for path, one in openapi_document()["paths"].items() for method in one}
    assert named == {(method, path.replace(":.+", "")) for method, path, _ in ROUTES}


def test_all_of_it_can_be_taken_up_as_tools() -> None:
    loaded = openapi_tools(SOURCE)
    assert loaded.problems == ()
    operations = {one["operationId"] for path in openapi_document()["paths"].values() for one in path.values()}
    assert {tool.name for tool in loaded.tools} == operations


def test_it_is_served_to_everybody() -> None:
    with upstream("x") as server, gateway(config_of(agent(server))) as running:
        assert post(running, b"", path="/openapi.json", method="GET") == (
            200,
            json.loads(json.dumps(openapi_document())),
        )


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ChatCompletion", {"choices": []}),
        ("ChatCompletion", {"usage": None}),
        (
            "ChatCompletion",
            {"choices": [{"index": 0, "message": {"role": "user", "content": "x"}, "finish_reason": "stop"}]},
        ),
        ("Error", {"error": "text"}),
        ("Error", {"error": {"message": "x"}}),
        ("Response", {"status": "fine"}),
        ("Response", {"output": [{"type": "reasoning"}]}),
        ("Run", {"waiting_for": [{}]}),
        ("Model", {"id": 3}),
    ],
)
def test_it_says_more_than_that_something_comes_back(name: str, wrong: dict[str, Any]) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": openapi_document()["components"]}
    assert not jsonschema_rs.validator_for(schema).is_valid({**RIGHT[name], **wrong})
    jsonschema_rs.validator_for(schema).validate(RIGHT[name])


MESSAGE = {"role": "assistant", "content": "Hello.", "refusal": None}


ITEM = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}


RIGHT: dict[str, dict[str, Any]] = {
    "ChatCompletion": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "assistant",
        "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        "agent": {"run_id": "1", "status": "completed", "reason": "", "steps": 1, "tool_calls": 0},
    },
    "Error": {"error": {"message": "x", "type": "invalid_request_error", "param": None, "code": None}},
    "Response": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "assistant",
        "status": "completed",
        "output": [ITEM],
        "error": None,
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        "agent": {"run_id": "1", "status": "completed", "reason": "", "steps": 1, "tool_calls": 0},
    },
    "Run": {
        "id": "1",
        "object": "agent.run",
        "agent": "assistant",
        "status": "completed",
        "answer": "Hello.",
        "reason": "",
        "steps": 1,
        "usage": {"total_tokens": 2},
        "waiting_for": [],
    },
    "Model": {"id": "assistant", "object": "model", "created": 1, "owned_by": "taoloop"},
}


def test_a_field_that_is_refused_is_refused_by_the_document_too() -> None:
    with upstream("Hello.") as server, gateway(config_of(agent(server))) as running:
        for path, name, body in (
            ("/v1/chat/completions", "ChatRequest", {"model": "assistant", "messages": [MESSAGE | {"role": "user"}]}),
            ("/v1/responses", "ResponsesRequest", {"model": "assistant", "input": "Hi."}),
        ):
            schema = {"$ref": f"#/components/schemas/{name}", "components": openapi_document()["components"]}
            judge = jsonschema_rs.validator_for(schema)
            properties = openapi_document()["components"]["schemas"][name]["properties"]
            narrow = [field for field, said in properties.items() if "enum" in said or said.get("type") == "null"]
            assert len(narrow) > 2
            for field in narrow:
                for value in (None, False, True, 0, 1, 2, [], ["x"], "x", {}, {"id": "x"}):
                    status, told = post(running, {**body, field: value}, path=path)
                    assert (status == 200) == judge.is_valid({**body, field: value}), (field, value, told)


def test_an_event_of_a_stream_is_judged_as_it_is_sent_and_by_its_data() -> None:
    said = openapi_document()["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"][
        "text/event-stream"
    ]
    judge = jsonschema_rs.validator_for({**said["schema"], "components": openapi_document()["components"]})
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": None, "logprobs": None}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    for right in (chunk, {"data": json.dumps(chunk), "event": "message"}, {"data": "[DONE]"}):
        judge.validate(right)
    for wrong in ({**chunk, "id": 3}, {"event": "message"}, {"data": 3}, {}):
        assert not judge.is_valid(wrong)


def test_an_endpoint_with_a_bad_key_is_left_out_and_shows_in_the_metrics() -> None:
    with upstream((401, {"error": {"message": "bad key"}})) as bad, upstream("Hello.") as good:
        env = {"BAD": "sk-bad-0123456789abcdef", "GOOD": "sk-good-0123456789abcdef"}
        endpoints = [
            ModelEndpoint(base_url=f"{bad.url}/v1", api_key_env="BAD", weight=1_000),
            ModelEndpoint(base_url=f"{good.url}/v1", api_key_env="GOOD"),
        ]
        served = replace(agent(good), env=env, endpoints=endpoints)
        with gateway(config_of(served)) as running:
            for _ in range(20):
                messages = [{"role": "user", "content": "Hi"}]
                status, answer = post(running, {"model": "assistant", "messages": messages})
                assert (status, answer["choices"][0]["message"]["content"]) == (200, "Hello.")
            text = post(running, b"", path="/metrics", method="GET")[1].decode()
    assert len(bad.asked) == 1
    assert bad.headers[0]["authorization"] == "Bearer sk-bad-0123456789abcdef"
    assert f'endpoint="{bad.url}/v1 (BAD)"}} 0.0' in text
    assert f'endpoint="{good.url}/v1 (GOOD)"}} 1.0' in text
