"""A provider that misbehaves in every way, over a real socket: a clear error of the right class, and no reply."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from tests.models.provider_answers import (
    Act,
    ask,
    asking,
    head,
    reset,
    sent,
    silent,
    whole,
)

from taoloop import Agent, tool
from taoloop.core.message import Usage
from taoloop.errors import (
    ModelAuthError,
    ModelContentRefused,
    ModelContextOverflow,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelReplyUnreadable,
    ModelRequestRefused,
    ModelTimeout,
    ModelUnavailable,
)
from taoloop.models.anthropic import AnthropicModel, AnthropicStream
from taoloop.models.base import Model
from taoloop.models.http.reply_builder import ToolNameMap
from taoloop.models.http.transport import MAX_REPLY_BYTES
from taoloop.models.openai import OpenAIModel, OpenAIStream
from taoloop.models.providers import Endpoint
from taoloop.models.settings import Retry
from taoloop.testing import HttpDouble

ONCE = Retry(attempts=1)
KEY = "sk-very-secret-0123456789"
MIB = 1024 * 1024
SSE = {"content-type": "text/event-stream", "connection": "close"}


@pytest.fixture(params=["openai", "anthropic"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def model(api: str, url: str) -> Model:
    kind = {"openai": OpenAIModel, "anthropic": AnthropicModel}[api]
    variable = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}[api]
    path = {"openai": "/v1", "anthropic": ""}[api]
    return kind(Endpoint(provider=api, model="tiny", api_key=KEY, base_url=url + path, key_var=variable))


def failure(api: str, act: Act, *, streamed: bool = False, **fields: Any) -> ModelError:
    """The error that a call ends with."""
    if streamed:
        fields["on_delta"] = lambda _delta: None
    with HttpDouble([act]) as server, pytest.raises(ModelError) as caught:
        ask(model(api, server.url), **fields)
    error = caught.value
    assert len(server.requests) == 1, "nothing is tried again here"
    assert str(error).startswith(f"{api}:tiny ")
    assert KEY not in str(error)
    assert pickle.loads(pickle.dumps(error)).args == error.args  # noqa: S301  # our own error
    return error


def refusal(message: str, **fields: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable", "text"),
    [
        (401, refusal(f"Incorrect API key provided: {KEY}."), ModelAuthError, False, "_API_KEY"),
        (401, refusal("Your key has expired."), ModelAuthError, False, "wrong, expired"),
        (403, refusal("Country not supported"), ModelAuthError, False, "403: Country"),
        (404, refusal("The model `tiny` does not exist"), ModelNotFound, False, "Check the name 'tiny'"),
        (404, b"404 page not found", ModelNotFound, False, "page not found"),
        (408, b"", ModelUnavailable, True, "answered HTTP 408 without"),
        (409, refusal("conflict"), ModelUnavailable, True, "conflict"),
        (413, refusal("too big", type="request_too_large"), ModelContextOverflow, False, "too big"),
        (422, refusal("no"), ModelRequestRefused, False, "422: no"),
        (429, refusal("slow down"), ModelRateLimited, True, "slow down"),
        (429, refusal("pay", code="insufficient_quota"), ModelRateLimited, False, "Quota or credit"),
        (402, refusal("Insufficient Balance"), ModelRateLimited, False, "Quota or credit"),
        (500, refusal("oops"), ModelUnavailable, True, "500: oops"),
        (502, b"<html><head><title>502 Bad Gateway</title></head>", ModelUnavailable, True, "502: 502 Bad Gateway"),
        (503, b"\xff\xfe\x00", ModelUnavailable, True, "503"),
        (504, b"", ModelUnavailable, True, "504"),
        (529, refusal("Overloaded", type="overloaded_error"), ModelUnavailable, True, "Overloaded"),
        (418, refusal("teapot"), ModelRequestRefused, False, "418: teapot"),
        (400, ["no", "object"], ModelRequestRefused, False, "400"),
        (400, {"detail": "no such field"}, ModelRequestRefused, False, "no such field"),
        (400, b"", ModelRequestRefused, False, "answered HTTP 400 without"),
    ],
)
def test_a_refusal_is_an_error_of_its_own_class(
    api: str, streamed: bool, status: int, body: Any, kind: type[ModelError], retryable: bool, text: str
) -> None:
    error = failure(api, whole(status, body), streamed=streamed)
    assert (type(error), error.retryable) == (kind, retryable)
    assert text in str(error)


def test_an_expired_key_names_its_variable_and_is_not_shown(api: str) -> None:
    error = failure(api, whole(401, refusal(f"key {KEY} and sk-ab****yz are wrong")))
    assert f"{api.upper()}_API_KEY" in error.hint
    assert "[key] and [key]" in error.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After-Ms": "250", "retry-after": "1"}, 0.25),
        ({"date": "Wed, 21 Oct 2026 07:28:00 GMT", "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, 30.0),
        ({"date": "Wed, 21 Oct 2026 07:28:00 GMT", "retry-after": "Wed, 21 Oct 2026 07:00:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 1998 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_what_the_provider_says_of_waiting_goes_with_the_error(
    api: str, headers: dict[str, str], seconds: float | None
) -> None:
    assert failure(api, whole(429, refusal("slow down"), headers)).retry_after_s == seconds
    assert failure(api, whole(503, refusal("busy"), headers)).retry_after_s == seconds


def test_a_redirect_is_not_followed_since_the_key_would_go_along(api: str) -> None:
    error = failure(api, whole(308, b"", {"location": "https://u:p@other.example/v1?key=1"}))
    assert isinstance(error, ModelRequestRefused)
    assert "https://other.example/v1. Correct the address" in error.hint


@pytest.mark.parametrize(
    ("body", "headers", "text"),
    [
        (b"<!DOCTYPE html><html>Welcome</html>", {"content-type": "text/html"}, "HTML"),
        (b"", {}, "nothing"),
        (b"\xff\xfe{", {}, "not UTF-8"),
        (b"plain words", {"content-type": "text/plain"}, "it is not JSON (text/plain)"),
        (b'{"half": ', {}, "broken JSON"),
        (b"null", {}, "JSON of another form"),
        (b"[]", {}, "JSON of another form"),
        (b'{"choices": [], "content": 7}', {}, "read"),
        (b'{"choices": [{}], "content": [{}]}', {}, "JSON of another form"),
        (rb'{"\u0041": ' + b"[" * 100_000, {}, "broken JSON"),
    ],
)
def test_what_is_no_reply_is_said_to_be_none(
    api: str, streamed: bool, body: bytes, headers: dict[str, str], text: str
) -> None:
    error = failure(api, whole(200, body, headers), streamed=streamed)
    assert type(error) is ModelReplyUnreadable
    assert text in error.message
    assert error.retryable == (text != "HTML")


def test_an_answer_without_choices_is_told_as_that() -> None:
    assert "without any choice" in failure("openai", whole(200, {"choices": []})).message


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"type": "authentication_error"}, ModelAuthError),
        ({"code": "429"}, ModelRateLimited),
        ({"code": 404}, ModelNotFound),
        ({"code": ["a", "list"]}, ModelUnavailable),
        ({"code": {}, "type": {}}, ModelUnavailable),
    ],
)
def test_an_error_under_status_200_is_the_error_that_it_says(
    api: str, fields: dict[str, Any], kind: type[ModelError]
) -> None:
    assert type(failure(api, whole(200, refusal("no", **fields)))) is kind


def test_every_status_of_success_has_a_reply() -> None:
    reply = {"choices": [{"message": {"content": "5"}, "finish_reason": "stop"}]}
    with HttpDouble([whole(201, b"\xef\xbb\xbf" + json.dumps(reply).encode())]) as server:
        assert ask(model("openai", server.url)).text == "5"
    assert "nothing" in failure("openai", whole(204, b"")).message


def test_numbers_of_tokens_that_cannot_be_are_none() -> None:
    usage = {"prompt_tokens": 10**400, "completion_tokens": True, "prompt_tokens_details": {"cached_tokens": -1}}
    body = {"choices": [{"message": {"content": "5"}}], "usage": usage}
    with HttpDouble([whole(200, body)]) as server:
        reply = ask(model("openai", server.url))
    assert (reply.usage, reply.cost_usd) == (Usage(), None)


def test_headers_as_long_as_gateways_write_them_are_read() -> None:
    body = {"choices": [{"message": {"content": "5"}}]}
    with HttpDouble([whole(200, body, {"content-security-policy": "x" * 20_000})]) as server:
        assert ask(model("openai", server.url)).text == "5"


@pytest.mark.parametrize("message", ["max_tokens is not allowed to exceed 4096", "max_tokens: unexpected"])
def test_a_parameter_that_the_api_cannot_do_without_is_not_left_out(message: str) -> None:
    assert "max_tokens" in failure("anthropic", whole(400, refusal(message))).message


@pytest.mark.parametrize(
    ("status", "text", "retryable"),
    [(407, "answered 407 Proxy", False), (403, "answered 403 Proxy", False), (502, "answered 502 Proxy", True)],
)
def test_a_proxy_that_refuses_is_named_without_its_password(
    status: int, text: str, retryable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def refuse() -> None:
            connection, _ = proxy.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(f"HTTP/1.1 {status} Proxy\r\ncontent-length: 0\r\n\r\n".encode())

        threading.Thread(target=refuse, daemon=True).start()
        address = f"127.0.0.1:{proxy.getsockname()[1]}"
        monkeypatch.setenv("https_proxy", f"http://user:pass-word@{address}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(ModelUnavailable, match=f"through the proxy http://{address}: it {text}") as caught:
            ask(model("openai", "https://api.example"))
    assert caught.value.retryable == retryable
    assert "pass-word" not in str(caught.value)


def test_a_connection_that_was_closed_between_two_calls_costs_no_more_than_a_retry() -> None:
    """A server may close an idle connection just when the next request is on its way."""
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(0)
        body = json.dumps({"choices": [{"message": {"content": "5"}, "finish_reason": "stop"}]}).encode()
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async def calls() -> list[str | None]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"}
        agent = Agent(model="openai:tiny", env=env, retry=Retry(first_wait_s=0.0))
        answers = [(await agent.run("add")).answer for _ in range(3)]
        await agent.close()
        server.close()
        return answers

    assert asyncio.run(calls()) == ["5", "5", "5"]
    assert len(connections) == 3


@pytest.mark.parametrize(
    "act",
    [
        reset(),
        sent([]),
        reset([head(200, {"content-type": "application/json", "content-length": "999"}), b'{"choices": [']),
        sent([head(200, {"content-type": "application/json", "content-length": "999"}), b'{"choices": [']),
        sent([head(200, {**SSE, "transfer-encoding": "chunked"}), b"6\r\ndata: \r\n"]),
        sent([head(200, SSE)]),
    ],
    ids=["reset", "closed", "reset in the body", "half a body", "half a chunk", "empty stream"],
)
def test_a_connection_that_breaks_is_worth_another_try(api: str, act: Act) -> None:
    error = failure(api, act, streamed=True)
    assert (type(error), error.retryable) == (ModelUnavailable, True)


def test_a_server_that_does_not_speak_http_is_named_as_that(api: str) -> None:
    error = failure(api, sent([b"SSH-2.0-OpenSSH_9.7\r\n\r\n"]))
    assert isinstance(error, ModelReplyUnreadable)
    assert "does not speak HTTP" in error.message


@pytest.mark.parametrize("pieces", [[], [head(200, SSE)], [head(200, SSE), b'data: {"type": "ping"}\n\n']])
def test_a_provider_that_falls_silent_is_a_timeout(api: str, streamed: bool, pieces: list[bytes]) -> None:
    error = failure(api, silent(pieces), streamed=streamed, timeout_s=0.05)
    assert (type(error), error.retryable) == (ModelTimeout, True)
    assert "within 0.05 s" in error.message


def endless(piece: bytes) -> Iterator[bytes]:
    yield head(200, SSE)
    while True:
        yield piece


@pytest.mark.parametrize(
    "piece",
    [
        b'data: {"choices": [{"delta": {"content": "%s"}}], "type": "content_block_delta", "index": 0, '
        b'"delta": {"type": "text_delta", "text": "%s"}}\n\n' % (b"x" * MIB, b"x" * MIB),
        b"data: " + b"x" * MIB,
    ],
    ids=["of text", "of one event"],
)
def test_an_endless_stream_comes_to_an_end(api: str, piece: bytes) -> None:
    error = failure(api, sent(endless(piece)), streamed=True)
    assert (type(error), error.retryable) == (ModelReplyUnreadable, False)
    assert "more than 16 MiB" in error.message


@pytest.mark.parametrize("kind", [OpenAIStream, AnthropicStream])
@pytest.mark.parametrize("piece", [b"data: " + b"x" * MIB, b"data: " + b"x" * MIB + b"\n"], ids=["a line", "lines"])
def test_an_event_that_never_ends_is_not_kept(kind: type[OpenAIStream] | type[AnthropicStream], piece: bytes) -> None:
    target = OpenAIModel(Endpoint(provider="openai", model="tiny", api_key=KEY))
    reader = kind(target, ToolNameMap(()), None)
    kept = b"data: " + b"x" * (MAX_REPLY_BYTES - MIB)
    assert not reader.feed(kept)
    with pytest.raises(ModelReplyUnreadable, match="more than 16 MiB"):
        reader.feed(piece)


@pytest.mark.parametrize("announced", [True, False])
def test_twenty_megabytes_are_refused_without_being_kept(api: str, announced: bool) -> None:
    body = b'{"choices": [{"message": {"content": "' + b"x" * (20 * MIB) + b'"}}]}'
    length = {"content-length": str(len(body))} if announced else {}
    act = sent([head(200, {"content-type": "application/json", "connection": "close", **length}), body])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        error = failure(api, act)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert (type(error), error.retryable) == (ModelReplyUnreadable, False)
    assert "more than 16 MiB" in error.message
    assert peak < MAX_REPLY_BYTES * 1.5


def test_a_large_reply_within_the_bound_is_read() -> None:
    text = "x" * (15 * MIB)
    with HttpDouble([whole(200, {"choices": [{"message": {"content": text}}]})]) as server:
        assert ask(model("openai", server.url)).text == text


def test_an_address_where_nobody_listens_is_named(api: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ModelUnavailable, match=f"cannot be reached at http://127.0.0.1:{port}") as caught:
        ask(model(api, f"http://127.0.0.1:{port}"))
    assert caught.value.retryable


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", "not an address", "http://[::1"])
def test_an_address_that_is_none_is_said_to_be_none(api: str, url: str) -> None:
    with pytest.raises(ModelError, match="address") as caught:
        ask(model(api, url))
    assert not caught.value.retryable


def test_a_user_and_a_key_in_an_address_are_not_shown(api: str) -> None:
    with pytest.raises(ModelError) as caught:
        ask(model(api, "http://user:pass-word@127.0.0.1:9"))
    assert "pass-word" not in str(caught.value)


OVERFLOWS = [
    ("This model's maximum context length is 128000 tokens.", "context_length_exceeded"),
    ("prompt is too long: 208310 tokens > 200000 maximum", ""),
    ("input length and `max_tokens` exceed context limit: 199759 + 20000 > 200000", ""),
    ("the request exceeds the available context size. try increasing the context size", "exceed_context_size_error"),
    ("The decoder prompt (length 40960) is longer than the maximum model length of 32768.", ""),
    ("Range of input length should be [1, 30720]", "InvalidParameter"),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", ""),
]


@pytest.mark.parametrize(("message", "code"), OVERFLOWS)
def test_a_prompt_that_is_too_long_is_known_by_what_providers_say(message: str, code: str) -> None:
    error = failure("openai", whole(400, refusal(message, code=code)))
    assert type(error) is ModelContextOverflow


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, refusal("The response was filtered", code="content_filter"), ModelContentRefused),
        (
            400,
            refusal("Output data may contain inappropriate content.", code="data_inspection_failed"),
            ModelContentRefused,
        ),
        (400, refusal("model 'x' not found", code="model_not_found"), ModelNotFound),
        (400, refusal("invalid model ID"), ModelNotFound),
        (400, refusal("Your credit balance is too low to access the Anthropic API."), ModelRateLimited),
        (403, refusal("Free allocated quota exceeded", code="insufficient_quota"), ModelRateLimited),
        (400, refusal("API key not valid", code="invalid_api_key"), ModelAuthError),
    ],
)
def test_a_refusal_is_known_by_what_providers_say(status: int, body: Any, kind: type[ModelError]) -> None:
    assert type(failure("openai", whole(status, body))) is kind


def test_a_call_that_is_cancelled_leaves_nothing_behind(api: str) -> None:
    async def cancel() -> None:
        target = model(api, server.url)
        task = asyncio.ensure_future(target.complete(asking()))
        await asyncio.to_thread(asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asked = threading.Event()

    def act(connection: socket.socket) -> None:
        asked.set()
        silent()(connection)

    with HttpDouble([act]) as server:
        asyncio.run(cancel())


@tool(tier="read")
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (whole(401, refusal("expired")), "OPENAI_API_KEY"),
        (whole(404, refusal("The model `tiny` does not exist")), "does not exist"),
        (whole(200, b"<html>"), "HTML"),
        (whole(200, {"choices": [{"message": {"content": None, "refusal": "I will not."}}]}), "I will not."),
    ],
)
def test_a_run_ends_with_the_reason_in_its_trace(act: Act, text: str) -> None:
    with HttpDouble([act] * 3) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}
        result = Agent(model="openai:tiny", tools=[add], env=env, retry=ONCE).run_sync("add 2 and 3")
    assert (result.status, result.answer) == ("model_failed", None)
    assert text in result.reason
    assert result.trace.finished is not None
    assert KEY not in repr(result.trace.events)


@pytest.mark.parametrize("content", [None, "", " \n", "<think>never closed"])
def test_a_reply_without_a_decision_gets_its_repair_turn(content: str | None) -> None:
    """S3-26: the repair call uses temperature 0.0."""
    empty = whole(200, {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})
    answer = whole(200, {"choices": [{"message": {"content": "5"}, "finish_reason": "stop"}]})
    with HttpDouble([empty, answer]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}
        result = Agent(model="openai:tiny", tools=[add], env=env, temperature=0.2).run_sync("add 2 and 3")
    assert (result.status, result.answer) == ("completed", "5")
    assert [request["temperature"] for request in server.requests] == [0.2, 0.0]
