"""Requests that are wrong in every way that a client can think of: an error in OpenAI's form that names the field.

That each answer has that form is seen by the judge of all gateways of these tests (`judging.py`).
"""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
import struct
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from aiohttp import web
from tests.serve.gateway.conftest import Running, config_of, gateway, in_thread, upstream
from tests.serve.gateway.judging import openai_schema
from tests.serve.gateway.test_chat import CLIENT_TOOL, _closed, agent, ask, client

from taoloop.serve.gateway.config.model import ServerLimits
from taoloop.serve.gateway.observe.request_log import RequestRecord
from taoloop.serve.gateway.run_answer import EventStream

__all__ = ["_closed"]  # a fixture that pytest finds here too

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
LIMITS = ServerLimits(max_body_bytes=1024 * 1024, body_timeout_s=0.3)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with upstream("Hello.") as server, gateway(config_of(agent(server), limits=LIMITS)) as made:
        yield made


def post(running: Running, body: Any, *, path: str = CHAT, method: str = "POST", **headers: str) -> tuple[int, Any]:
    """Status and body of the answer to a body that is sent as it is."""
    address = urlsplit(running.url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read()
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, json.loads(text) if is_json else text
    finally:
        connection.close()


def speak(running: Running, *pieces: bytes, until_closed: bool = True) -> bytes:
    """What a server says to bytes."""
    address = urlsplit(running.url)
    assert address.hostname is not None
    assert address.port is not None
    with socket.create_connection((address.hostname, address.port), timeout=20) as line:
        said = b""
        try:
            for piece in pieces:
                line.sendall(piece)
            while data := line.recv(65536):
                said += data
                if not until_closed and b"\r\n\r\n" in said:
                    break
        except ConnectionError:
            pass
        return said


def body_of(**changes: Any) -> dict[str, Any]:
    return {"model": "assistant", "messages": ask("Hi."), **changes}


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
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
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


def test_a_model_of_the_list_is_not_there_either(running: Running) -> None:
    with pytest.raises(openai.NotFoundError) as told:
        client(running).models.retrieve("gpt-5")
    assert told.value.code == "model_not_found"
    assert [one.id for one in client(running).models.list()] == ["assistant"]
    assert client(running).models.retrieve("assistant").id == "assistant"


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

MEGABYTE = 1024 * 1024


def test_a_body_that_says_that_it_is_too_large_is_refused_before_it_comes(running: Running) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n"
    said = speak(running, head, until_closed=False)
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b"request_too_large" in said or b"Content-Length" in said


@pytest.mark.parametrize("packed", [False, True])
def test_a_hundred_megabytes_are_not_read_into_memory(running: Running, packed: bool) -> None:
    if packed:
        data = gzip.compress(bytes(100 * MEGABYTE), 9)
        head = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data)
        pieces = [data]
    else:
        head = b"Transfer-Encoding: chunked\r\n\r\n"
        pieces = [b"%x\r\n%s\r\n" % (MEGABYTE, b" " * MEGABYTE)] * 100 + [b"0\r\n\r\n"]
    tracemalloc.start()
    try:
        start = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        said = speak(running, start + head, *pieces)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert said.startswith(b"HTTP/1.1 413 "), said[:200]
    assert b"request_too_large" in said
    assert most < 20 * MEGABYTE


def test_a_packed_body_is_read_as_any_other(running: Running) -> None:
    body = json.dumps(body_of()).encode()
    for pack, kind in ((gzip.compress, "gzip"), (zlib.compress, "deflate")):
        assert post(running, pack(body), **{"Content-Encoding": kind})[0] == 200


@pytest.mark.parametrize("kind", ["gzip", "deflate", "br", "zstd", "compress", "nonsense"])
def test_a_body_that_cannot_be_unpacked_is_refused(running: Running, kind: str) -> None:
    status, told = post(running, b"\x1f\x8bthis is not packed", **{"Content-Encoding": kind})
    assert status in (400, 415), told


def test_a_body_that_breaks_off_when_unpacked_is_refused(running: Running) -> None:
    status, told = post(running, gzip.compress(json.dumps(body_of()).encode())[:-12], **{"Content-Encoding": "gzip"})
    assert status == 400, told


def test_a_sender_that_is_too_slow_is_told_so(running: Running) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n"
    said = speak(running, head + b'{"model": ', until_closed=False)
    assert said.startswith(b"HTTP/1.1 408 ")


def test_a_sender_that_breaks_off_costs_nothing(running: Running) -> None:
    count = len(running.traces())
    address = urlsplit(running.url)
    for bad in (b"", b'{"model": ', b"zz\r\n"):
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as line:
            line.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + bad)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert post(running, body_of())[0] == 200
    assert len(running.traces()) == count + 1


# What is no request, or goes nowhere


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100 + b"\r\n\r\n",
        b"hello\r\n\r\n",
        b"BREW /v1/responses HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST\r\n\r\n",
        b"POST /v1/chat/completions HTTP/9.9\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tao-s3cret-in-a-header\x00\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer tao-s3cret-in-a-header"
        + b"x" * 100_000
        + b"\r\n\r\n",
        b"GET /v1/models?" + b"q" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\n" + b"".join(b"h%d: x\r\n" % n for n in range(50_000)) + b"\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_its_text_does_not_get_into_the_log(
    running: Running, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    said = speak(running, garbage)
    head, _, body = said.partition(b"\r\n\r\n")
    status, told = int(head.split(b" ")[1]), json.loads(body)["error"]
    assert (status, told["code"]) in ((400, "invalid_http"), (431, "header_too_long")), said
    openai_schema("ErrorResponse").validate({"error": told})
    assert b"s3cret" not in said
    assert "s3cret" not in caplog.text
    assert "Traceback" not in caplog.text
    assert post(running, b"", path="/healthz", method="GET")[0] == 200


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


# Models that fail in the middle of a stream, and readers that go away


def chunk(**delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return (
        b"data: "
        + json.dumps(
            {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        ).encode()
        + b"\n\n"
    )


BROKEN: dict[str, dict[str, Any]] = {
    "breaks off": {"breaks": True},
    "ends without an end": {"raw": b""},
    "is no JSON": {"raw": b"data: {nonsense\n\ndata: [DONE]\n\n"},
    "is no text": {"raw": b"data: \xff\xfe\x00\n\n"},
    "is a page": {"raw": b"<html>502 Bad Gateway</html>"},
    "is an error": {"raw": b'data: {"error": {"message": "overloaded", "code": 500}}\n\n'},
    "is a refusal of the key": {"raw": b'data: {"error": {"message": "bad key sk-upstream-0123456789abcdef"}}\n\n'},
    "is of another shape": {"raw": b'data: {"choices": 7}\n\ndata: [DONE]\n\n'},
    "is an endless line": {"raw": b"data: " + b"x" * 3_000_000},
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_model_that_fails_in_the_middle_of_a_stream_ends_it_with_an_error(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    reply = {"pieces": ["The first ", "words of an ", "answer. "], **BROKEN[kind]}
    with upstream(reply) as server, gateway(config_of(agent(server))) as running:
        text = ""
        stream = client(running).chat.completions.create(model="assistant", messages=ask("Hi."), stream=True)
        with pytest.raises(openai.APIError) as told:  # noqa: PT012  # what came before the error counts too
            for one in stream:
                text += one.choices[0].delta.content or ""
        assert text.startswith("The first")
        assert told.value.code is None or told.value.code.startswith("model_"), told.value.code
        assert "odel" in told.value.message
        assert "sk-upstream" not in f"{told.value} {told.value.body} {caplog.text}"
        assert records(running)[0].error
        assert running.traces()[0].status == "model_failed"


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_a_reader_that_goes_away_in_the_middle_stops_the_run(path: str) -> None:
    with upstream({"pieces": ["One ", "two."], "waits": True}) as server, gateway(config_of(agent(server))) as running:
        address = urlsplit(running.url)
        body = json.dumps({"model": "assistant", "messages": ask("Hi."), "input": "Hi.", "stream": True}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as line:
            line.sendall(head + body)
            assert b"200 OK" in line.recv(4096)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert ended(running) == "stopped"


def test_a_reader_that_reads_nothing_any_more_counts_as_gone() -> None:
    async def main(stop: asyncio.Event, tell: Callable[[Any], None]) -> None:
        told: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

        async def flood(request: web.Request) -> web.StreamResponse:
            stream = EventStream(request, 15.0, {}, write_s=0.2)
            try:
                while True:
                    await stream.send(b"data: " + b"x" * 100_000 + b"\n\n")
            except ConnectionError as error:
                told.set_result(error)
                raise

        app = web.Application()
        app.router.add_get("/", flood)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await reader.read(100)
        tell(await asyncio.wait_for(told, 20))
        writer.close()
        await stop.wait()
        await runner.cleanup()

    error, stop = in_thread(main)
    stop()
    assert isinstance(error, ConnectionError)


def test_a_connection_that_brings_no_header_is_closed() -> None:
    with upstream("x") as server, gateway(config_of(agent(server)), idle_s=0.2) as running:
        assert speak(running, b"POST /v1/responses HTT") == b""
        assert speak(running) == b""


def records(running: Running) -> list[RequestRecord]:
    """The requests that were answered, once there is one."""
    until = time.monotonic() + 10
    while not running.logged and time.monotonic() < until:
        threading.Event().wait(0.02)
    return running.logged


def ended(running: Running) -> str:
    """The status of the one run, once it has ended."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if (found := running.traces()) and found[0].status != "running":
            return found[0].status
        threading.Event().wait(0.02)
    return "running"
