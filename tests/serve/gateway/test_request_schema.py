"""Requests that are wrong in every way that a client can think of: an error in OpenAI's form that names the field.

That each answer has that form is seen by the judge of all gateways of these tests (`judging.py`).
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.cards.test_schema_bounds import doubled
from tests.serve.gateway.clients import CHAT, CLIENT_TOOL, RESPONSES, ask, body_of, post
from tests.serve.gateway.conftest import LIMITS, Running, agent, client, config_of, gateway, upstream

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": 3}, "model"),
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"model": "x" * 600}, "model"),
        ({"messages": "Hi."}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": ["Hi."]}, "messages[0]"),
        ({"messages": [{"content": "Hi."}]}, "messages[0].role"),
        ({"messages": [{"role": "king", "content": "Hi."}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["Hi."]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"text": "Hi."}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].image_url"),
        ({"messages": [{"role": "assistant", "content": "Hi."}]}, "messages[0].role"),
        ({"messages": [*ask("a"), {"role": "tool", "content": "b"}]}, "messages[1].tool_call_id"),
        ({"messages": [*ask("a"), {"role": "tool", "content": "b", "tool_call_id": 7}]}, "messages[1].tool_call_id"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}, *ask("a")]},
            "messages[0].tool_calls[0].function",
        ),
        ({"messages": ask("Hi.") * 3000}, "messages"),
        ({"stream": "yes"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": True}, "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": "x"}}, "stream_options.include_usage"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_p": []}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -5}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"max_tokens": 10**30}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"n": 2}, "n"),
        ({"n": 0}, "n"),
        ({"stop": 3}, "stop"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"stop": [1]}, "stop[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "type": "custom"}]}, *ask("b")]},
            "messages[0].tool_calls[0].custom",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": None}]}, *ask("b")]},
            "messages[0].tool_calls[0].function",
        ),
        ({"user": 5}, "user"),
        ({"seed": "x"}, "seed"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"frequency_penalty": 3}, "frequency_penalty"),
        ({"presence_penalty": "x"}, "presence_penalty"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
            "response_format.json_schema.name",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": 3}}}},
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": []}}},
            "response_format.json_schema.schema",
        ),
        ({"tools": {}}, "tools"),
        ({"tools": [{}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {**TOOL, "parameters": 3}}]}, "tools[0].function.parameters"),
        (
            {"tools": [{"type": "function", "function": {**TOOL, "parameters": {"properties": {"a": {"type": "z"}}}}}]},
            "tools[0].function.parameters",
        ),
        (
            {"tools": [{"type": "function", "function": {**TOOL, "parameters": {"properties": 3}}}]},
            "tools[0].function.parameters.properties",
        ),
        ({"tools": [{"type": "function", "function": TOOL}] * 2}, "tools[1].function.name"),
        ({"tools": [{"type": "function", "function": {**TOOL, "name": "double"}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {**TOOL, "name": "DOUBLE"}}]}, "tools[0].function.name"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": doubled(24)}}},
            "response_format.json_schema.schema",
        ),
        (
            {
                "tools": [
                    {"type": "function", "function": {**TOOL, "parameters": {"allOf": [doubled(24)], **doubled(24)}}}
                ]
            },
            "tools[0].function.parameters",
        ),
        ({"tools": [{"type": "function", "function": TOOL}] * 200}, "tools"),
        ({"tool_choice": "always"}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "x", "tools": []}}}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "look_outside"}}}, "tool_choice"),
        ({"functions": [TOOL]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"web_search_options": {}}, "web_search_options"),
    ],
)
def test_a_field_of_the_wrong_type_or_range_is_named(running: Running, changes: dict[str, Any], param: str) -> None:
    status, told = post(running, {**body_of(), **changes})
    assert (status, told["error"]["type"]) == (400, "invalid_request_error"), told
    assert told["error"]["param"] == param, told
    assert param in told["error"]["message"]
    assert told["error"]["code"]


def test_a_schema_that_would_take_all_memory_is_refused_with_its_limit_and_position(running: Running) -> None:
    """24 levels took 21 GB and ended the process; it goes on serving."""
    for path, changes in (
        (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": doubled(24)}}}),
        (RESPONSES, {"text": {"format": {"type": "json_schema", "name": "a", "schema": doubled(24)}}}),
    ):
        question = {"model": "assistant", "input": "Hi."} if path == RESPONSES else body_of()
        status, told = post(running, {**question, **changes}, path=path)
        assert status == 400
        assert told["error"]["code"] == "invalid_json_schema"
        assert "more than 5,000 rules apply to one value at `$defs.a13`" in told["error"]["message"]


def test_a_client_tool_that_differs_from_another_by_case_names_both(running: Running) -> None:
    told = post(running, body_of(tools=[{"type": "function", "function": {**TOOL, "name": "Double"}}]))[1]
    assert "'Double' is taken as 'double', which differs only by case" in told["error"]["message"]


def test_of_the_arms_of_a_field_the_one_is_told_of_that_was_meant(running: Running) -> None:
    told = post(running, body_of(stop=list("abcde")))[1]
    assert "at most 4 items" in told["error"]["message"]


def test_a_result_of_no_use_for_a_call_of_the_clients_tool_is_refused_and_the_run_goes_on_waiting() -> None:
    look = {"tool_calls": [{"name": "look_outside", "args": {"window": "east"}}]}
    with upstream(look, "Red.") as server, gateway(config_of(agent(server))) as running:
        first = post(running, body_of(tools=[CLIENT_TOOL]))[1]
        [call], run_id = first["choices"][0]["message"]["tool_calls"], first["agent"]["run_id"]

        def result(content: Any, call_id: str = call["id"], **more: Any) -> tuple[int, Any]:
            message = {"role": "tool", "tool_call_id": call_id, "content": content, **more}
            return post(running, {"model": "assistant", "messages": [*ask("Hi."), message]})

        for content, call_id, status, param in (
            (None, call["id"], 400, "messages[1].content"),
            ([{"type": "image_url"}], call["id"], 400, "messages[1].content[0].type"),
            ([{"type": "text"}], call["id"], 400, "messages[1].content[0].type"),
            ("red", f"call_99.{run_id}", 400, "messages"),
            ("red", "call_1", 400, "messages[1].tool_call_id"),
            ("red", f"call_1.{run_id}x", 400, "messages[1].tool_call_id"),
            ("red", "call_1.20260101-000000-00000000", 404, None),
        ):
            found, told = result(content, call_id)
            assert (found, told["error"]["param"]) == (status, param), told
        assert running.traces()[0].paused is not None
        assert result([{"type": "text", "text": "all "}, {"type": "text", "text": "red"}])[0] == 200
        assert "all red" in str(server.asked[-1]["messages"][-1])
        again = result("blue")[1]  # a retry of a request whose answer got lost
        assert again["choices"][0]["message"]["content"] == "Red."


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object", "properties": None}, {"properties": {"a": True}}])
def test_a_tool_without_parameters_may_say_so_in_many_ways(running: Running, parameters: Any) -> None:
    tool = {"type": "function", "function": {**TOOL, "parameters": parameters}}
    assert post(running, body_of(tools=[tool]))[0] == 200


def test_a_schema_of_a_client_makes_the_server_fetch_nothing() -> None:
    with upstream('{"a": 1}') as server, gateway(config_of(agent(server), limits=LIMITS)) as running:
        for place in (f"{server.url}/schema", "file:///etc/passwd", "/etc/passwd"):
            for schema in ({"$ref": place}, {"$schema": place}, {"properties": {"a": {"$ref": place}}}, {"$id": place}):
                wanted = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
                tool = {"type": "function", "function": {**TOOL, "parameters": schema}}
                for body in (body_of(response_format=wanted), body_of(tools=[tool])):
                    status, told = post(running, body)
                    assert status in (200, 400), told
                    assert "root:" not in str(told)
        assert set(server.paths) <= {"/v1/chat/completions"}


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("name", ["gpt-5", "assistant ", "../assistant", "\x00", "é" * 500, "a\r\nb"])
def test_a_model_that_is_not_there_is_not_found(running: Running, path: str, name: str) -> None:
    status, told = post(running, {"model": name, "messages": ask("Hi."), "input": "Hi."}, path=path)
    assert (status, told["error"]["code"], told["error"]["param"]) == (404, "model_not_found", "model")


TEXT = b'{"model": "assistant", "messages": [{"role": "user", "content": "%s"}]}'


@pytest.mark.parametrize("path", [CHAT, RESPONSES, "/v1/runs/x/approvals"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"null",
        b"[]",
        b'"text"',
        b"3",
        b"{",
        b"{} {}",
        b"{'model': 'assistant'}",
        TEXT % b"\xff\xfe",
        TEXT % b"\xed\xa0\x80",
        TEXT % b"\\ud800",
        TEXT % b"\\udc00\\ud800",
        TEXT % b"a\x00b",
        "\ufeff{}".encode("utf-16"),
        b'{"model": "assistant", "temperature": NaN, "messages": [], "input": "x", "decision": "approve"}',
        TEXT[:-1] % b"a" + b', "x": Infinity, "input": "x", "decision": "approve"}',
        TEXT[:-1] % b"a" + b', "x": {"y": [-Infinity]}, "input": "x", "decision": "deny"}',
        b'{"x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"x":' * 10_000 + b"1" + b"}" * 10_000,
        b"a=b&c=d",
    ],
)
def test_a_body_that_is_no_json_object_is_told_so(running: Running, body: bytes, path: str) -> None:
    status, told = post(running, body, path=path)
    assert status == 400, told
    assert told["error"]["code"] in ("invalid_json", "invalid_type"), told


def test_of_a_key_that_stands_twice_the_last_one_counts(running: Running) -> None:
    assert post(running, TEXT.replace(b'"model"', b'"model": "x", "model"') % b"Hi.")[0] == 200
    assert post(running, TEXT.replace(b'"assistant"', b'"assistant", "model": "x"') % b"Hi.")[0] == 404


def test_numbers_beyond_all_bounds_break_nothing(running: Running) -> None:
    for number in (b"1e999", b"-1e999", b"9" * 400, b"9" * 5_000, b"1e-999", b"0." + b"1" * 5_000):
        for name in (b"temperature", b"seed", b"max_tokens", b"unknown", b"top_p", b"metadata"):
            body = (TEXT % b"Hi.").removesuffix(b"}") + b', "%s": %s}' % (name, number)
            status, told = post(running, body)
            assert status in (200, 400), (name, number[:20], told)
        schema = b'{"properties": {"a": {"maximum": %s}}}'
        tool = b', "tools": [{"type": "function", "function": {"name": "f", "parameters": ' + schema + b"}}]}"
        status, told = post(running, (TEXT % b"Hi.").removesuffix(b"}") + tool % number)
        assert status in (200, 400), (number[:20], told)


def test_a_field_of_any_name_is_taken_and_named_where_a_header_can_name_it(running: Running) -> None:
    for name in ("a\nb", "a\r\nx: y", "\x00", "é", "", "a,b", "x" * 10_000, "ok"):
        assert post(running, body_of(**{name: 1}))[0] == 200
        assert post(running, {"model": "assistant", "input": "Hi.", name: 1}, path=RESPONSES)[0] == 200
    raw = client(running).chat.completions.with_raw_response.create(
        model="assistant", messages=ask("Hi."), extra_body={"a\nb": 1, "ok": 2}, seed=4
    )
    assert raw.headers["x-taoloop-ignored"] == "ok,seed"


# Bodies that are too large, too slow, or packed


# What is no request, or goes nowhere


# Models that fail in the middle of a stream, and readers that go away
