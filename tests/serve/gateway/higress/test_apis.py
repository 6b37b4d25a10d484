"""Calls of `ai-agent` files: their headers, what a model reads of a failure, and which of them run unasked."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.ai_agent import CONFIGS, FINAL, asks, changed, data_of, load, one, run, world

from taoloop.serve.gateway.config.gateway_file import load_config

DEEPL = """
openapi: 3.1.0
info: {title: DeepL API Documentation, version: v1.0.0}
servers: [{url: 'https://api-free.deepl.example.com/v2'}]
paths:
  /translate:
    post:
      summary: Request Translation
      operationId: translateText
      DECLARED: here
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [text, target_lang]
              properties:
                text: {type: array, maxItems: 50, items: {type: string, example: 'Hello, World!'}}
                target_lang: {type: string, enum: [DE, EN-GB], example: DE}
"""
SHOP = """
openapi: 3.1.0
info: {title: Shop, version: v1.0.0}
servers: [{url: 'https://shop.example.com/v2'}]
paths:
  /orders/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
    get: {operationId: get_order, description: Read an order}
    delete: {operationId: delete_order, summary: Delete an order}
  /orders/{id}/cancel:
    post:
      operationId: cancel_order
      summary: Cancel an order
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
"""


def with_api(api: str, key: dict[str, str] | None = None) -> dict[str, Any]:
    provider: dict[str, Any] = {"serviceName": "api.dns", "servicePort": 443, "domain": "api.example.com"}
    if key:
        provider["apiKey"] = key
    data = data_of("02_geocode.yaml")
    return {**data, "apis": [{"apiProvider": provider, "api": api}], "promptTemplate": {"language": "EN"}}


def test_a_get_has_a_content_type_too() -> None:  # S1-34
    with world(asks("get_place", place_id=1), FINAL) as there:
        places = {"llm.dns": there.place, "geo.dns": there.place}
        run(one(load_config(CONFIGS / "02_geocode.yaml", resolve=places, env={})).agent)
        [(method, _, _, headers, body)] = there.calls
    assert (method, headers["content-type"], body) == ("GET", "application/json", None)


def test_a_failed_status_is_logged_and_the_model_gets_the_body(caplog: pytest.LogCaptureFixture) -> None:  # S1-36
    with world(asks("get_place", place_id=1), FINAL) as there:
        there.status = 418
        places = {"llm.dns": there.place, "geo.dns": there.place}
        with caplog.at_level(logging.WARNING, "taoloop.openapi"):
            run(one(load_config(CONFIGS / "02_geocode.yaml", resolve=places, env={})).agent)
        observation = there.chats[1]["messages"][-1]["content"]
    [line] = [record.getMessage() for record in caplog.records if record.name == "taoloop.openapi"]
    assert line.startswith(f"get_place: GET http://{there.place}/")
    assert line.endswith(": HTTP 418")
    assert "418" in observation
    assert '"number"' in observation
    assert there.place not in observation  # the address is the operator's
    assert "GET /" in observation


def test_an_api_that_is_away_is_not_located_for_the_model(caplog: pytest.LogCaptureFixture) -> None:
    with world(asks("get_place", place_id=1), FINAL) as there:
        places = {"llm.dns": there.place, "geo.dns": "127.0.0.1:9"}
        data = load_config(CONFIGS / "02_geocode.yaml", resolve=places, env={})
        with caplog.at_level(logging.WARNING, "taoloop.openapi"):
            ended = run(one(data).agent)
        observation = there.chats[1]["messages"][-1]["content"]
    assert "the API cannot be reached" in observation
    assert "127.0.0.1" not in str([event.fact for event in ended.trace.events])
    assert "127.0.0.1:9" in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "warning"),
    [
        ("Authorization", "Bearer abc-key-for-tests", "apiKey.name: the header is always `Authorization`"),
        ("X-API-Key", "abc-key-for-tests", "apiKey.name: the header is always `Authorization`"),
        ("Bearer", "Bearer abc-key-for-tests", "apiKey.value: it begins with 'Bearer'"),
        ("Bearer", "abc-key-for-tests", ""),
        ("DeepL-Auth-Key", "abc-key-for-tests", ""),
    ],
)
def test_a_header_that_no_api_expects_is_a_warning(name: str, value: str, warning: str, tmp_path: Path) -> None:
    warnings = load(tmp_path, with_api(SHOP, {"in": "header", "name": name, "value": value})).warnings
    assert len(warnings) == bool(warning)
    assert warning in "".join(warnings)
    assert "abc-key" not in "".join(warnings)


def test_a_word_before_the_key_of_the_model_is_a_warning(tmp_path: Path) -> None:
    [warning] = load(tmp_path, changed("02_geocode.yaml", {"llm.apiKey": "Bearer sk-for-tests"})).warnings
    assert "llm.apiKey: it begins with Bearer" in warning


@pytest.mark.parametrize(
    ("declared", "status"),
    [("x-tier: read", "completed"), ("x-tier: draft", "completed"), ("x-tier: write", "waiting"), ("", "waiting")],
)
def test_the_translation_of_the_readme_runs_as_its_operator_declares(
    declared: str, status: str, tmp_path: Path
) -> None:
    data = with_api(
        DEEPL.replace("DECLARED: here", declared), {"in": "header", "name": "DeepL-Auth-Key", "value": "7:fx"}
    )
    call = asks("translateText", text=["hello"], target_lang="DE")
    with world(call, FINAL) as there:
        places = {"llm.dns": there.place, "api.dns": there.place}
        ended = run(one(load(tmp_path, data, resolve=places)).agent, "Translate 'hello' to German")
        calls = [(method, path, body) for method, path, _, _, body in there.calls]
        keys = [headers["authorization"] for *_, headers, _ in there.calls]
    assert ended.status == status
    sent = ("POST", "/v2/translate", {"text": ["hello"], "target_lang": "DE"})
    assert calls == ([sent] if status == "completed" else [])
    assert keys == (["DeepL-Auth-Key 7:fx"] if status == "completed" else [])


@pytest.mark.parametrize(
    ("task", "tools", "called"),
    [
        ("What about order 7?", ["get_order"], ["GET"]),
        ("Cancel order 7.", ["cancel_order"], ["POST"]),  # the request asks for exactly this
        ("What about order 7?", ["cancel_order"], []),
        ("Cancel order 7.", ["get_order", "cancel_order"], ["GET"]),  # the model has read what others wrote
        ("Delete order 7.", ["delete_order"], []),
    ],
)
def test_which_calls_run_unasked(task: str, tools: list[str], called: list[str], tmp_path: Path) -> None:
    with world(*(asks(name, id=7) for name in tools), FINAL) as there:
        places = {"llm.dns": there.place, "api.dns": there.place}
        ended = run(one(load(tmp_path, with_api(SHOP), resolve=places)).agent, task)
        assert [method for method, *_ in there.calls] == called
    assert ended.status == ("completed" if len(called) == len(tools) else "waiting")
