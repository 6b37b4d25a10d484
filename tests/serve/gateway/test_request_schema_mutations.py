"""Bodies made from our own `/openapi.json` and then broken: the answer is a success or an OpenAI-shaped 4xx, soon.

The judge of the gateway (`judging.py`) sees the shape of each answer; here it is the status, and that one comes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, strategies as st
from tests.serve.gateway.clients import CHAT, RESPONSES, post
from tests.serve.gateway.conftest import LIMITS, Running, agent, config_of, gateway, upstream
from tests.sizes import examples

from taoloop.serve.gateway.app import openapi_document

_DEPTH = 6
_ODD = st.sampled_from(
    [
        *("", " ", "\x00", "assistant", "user", "tool", "text", "function", "json_schema", "resp_x"),
        *("\ufeff", "\u202e", "😀", "a" * 5_000, "../..", "${HOME}", "{{x}}"),
        *("(run 20260101-000000-00000000)", "call_1.20260101-000000-00000000"),
    ]
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | _ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | _ODD, inner, max_size=3),
    max_leaves=8,
)
BODIES = {CHAT: "ChatRequest", RESPONSES: "ResponsesRequest", "/v1/runs/{run_id}/approvals": "ApprovalWire"}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with upstream("Hello.") as server, gateway(config_of(agent(server), limits=LIMITS)) as made:
        yield made


def known() -> dict[str, Any]:
    schemas: dict[str, Any] = openapi_document()["components"]["schemas"]
    return schemas


@cache
def judge_of(path: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        {"$ref": f"#/components/schemas/{BODIES[path]}", "components": {"schemas": known()}}
    )


def fitting(schema: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that a schema of the document allows."""
    if "$ref" in schema:
        return st.deferred(lambda: fitting(known()[schema["$ref"].rsplit("/", 1)[1]], depth + 1))
    if "anyOf" in schema:
        return st.one_of([fitting(one, depth) for one in schema["anyOf"]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, depth)
    if kind == "array":
        least = schema.get("minItems", 0)
        return st.lists(fitting(schema["items"], depth), min_size=least, max_size=least + (2 if depth < _DEPTH else 0))
    if kind == "string" and "pattern" in schema:
        return st.from_regex(schema["pattern"].replace("$", r"\Z"))
    if kind == "string":
        return st.text(min_size=schema.get("minLength", 0), max_size=20) | st.just("assistant")
    if kind == "integer":
        return st.integers(schema.get("minimum"), schema.get("maximum"))
    if kind == "number":
        return st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False, allow_infinity=False)
    return {"boolean": st.booleans(), "null": st.none()}.get(kind, ANYTHING)


def _object(schema: Any, depth: int) -> st.SearchStrategy[Any]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if not properties:
        more = schema.get("additionalProperties")
        return st.dictionaries(st.text(max_size=8), fitting(more) if isinstance(more, dict) else ANYTHING, max_size=2)
    must = {name: fitting(properties[name], depth) for name in required}
    may = {name: fitting(one, depth) for name, one in properties.items() if name not in required}
    return st.fixed_dictionaries(must, optional=may if depth < _DEPTH else {})


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a value, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [found for key in keys for found in places(value[key])]


@st.composite
def bodies(draw: st.DrawFn, path: str) -> Any:
    """A body that our document allows, with none to three things in it changed, dropped or added."""
    body = draw(fitting(known()[BODIES[path]]))
    if "model" in body and draw(st.integers(0, 4)):
        body["model"] = "assistant"
    if "messages" in body and draw(st.booleans()):
        body["messages"].append({"role": "user", "content": "Hi."})
    for _ in range(draw(st.integers(0, 3))):
        if not (found := places(body)):
            return draw(ANYTHING)
        inside, key = draw(st.sampled_from(found))
        how = draw(st.sampled_from(["change", "change", "drop", "add", "twice"]))
        if how == "drop":
            del inside[key]
        elif how == "change":
            inside[key] = draw(ANYTHING)
        elif isinstance(inside, dict):
            inside[draw(st.text(max_size=8) | _ODD)] = draw(ANYTHING)
        else:
            inside.append(copy.deepcopy(inside[key]))
    return body


@pytest.mark.parametrize("path", BODIES)
@examples(150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_whatever_is_sent_is_answered_or_refused_with_a_reason(
    running: Running, path: str, data: st.DataObject
) -> None:
    body = data.draw(bodies(path))
    status, told = post(running, json.dumps(body).encode(), path=path.replace("{run_id}", "20260101-000000-00000000"))
    if status == 502:  # JSON or a call was asked for, and this model has only its one answer
        assert told["error"]["code"] in ("model_unreadable", "tool_not_called"), (body, told)
        return
    assert status in (200, 400, 404, 409), (body, told)
    if status != 200:
        assert told["error"]["message"]
    elif not judge_of(path).is_valid(body):
        [wrong, *_] = judge_of(path).iter_errors(body)
        raise AssertionError(f"{body} was taken, and /openapi.json does not allow it: {wrong}")


@pytest.mark.parametrize("path", BODIES)
@examples(60)
@given(
    data=st.binary(max_size=200)
    | st.text(max_size=100).map(str.encode)
    | ANYTHING.map(lambda one: json.dumps(one).encode())
)
def test_bytes_of_any_kind_are_refused(running: Running, path: str, data: bytes) -> None:
    status, told = post(running, data, path=path.replace("{run_id}", "x"))
    assert status in (400, 404), told
    assert told["error"]["type"] == "invalid_request_error"
