"""Streamed replies of OpenAI-compatible servers: what a listener hears, what the reply is, when there is none."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.models.provider_answers import ask, ask_streaming, events, reset, sent, silent, whole
from tests.sizes import examples

from taoloop.core.message import Delta, ToolCallText
from taoloop.errors import (
    ModelContentRefused,
    ModelError,
    ModelRateLimited,
    ModelReplyUnreadable,
    ModelUnavailable,
)
from taoloop.models.http.reply_builder import ToolNameMap
from taoloop.models.http.transport import HttpResponse, HttpTarget, HttpTransport
from taoloop.models.openai import OpenAIModel, OpenAIStream
from taoloop.models.providers import Endpoint
from taoloop.testing import HttpDouble


def model(server: HttpDouble) -> OpenAIModel:
    return OpenAIModel(Endpoint(provider="openai", model="tiny", api_key="k", base_url=f"{server.url}/v1"))


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"id": "c", "model": "tiny-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def call(index: int, *, name: str = "", arguments: str = "", call_id: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return chunk({"tool_calls": [{"index": index, **({"id": call_id} if call_id else {}), "function": function}]})


USAGE = {"id": "c", "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}
TEXT = [chunk({"role": "assistant", "content": ""}), chunk({"content": "fi"}), chunk({"content": "ve"})]
STOP = chunk({}, "stop")


def test_text_is_heard_as_it_comes_and_returned_whole() -> None:
    with HttpDouble([events([*TEXT, STOP, USAGE])]) as server:
        reply, heard = ask_streaming(model(server))
    assert [(delta.kind, delta.text) for delta in heard] == [("text", "fi"), ("text", "ve")]
    assert (reply.text, reply.finish_reason, reply.model) == ("five", "stop", "tiny-1")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)
    [request] = server.requests
    assert (request["stream"], request["stream_options"]) == (True, {"include_usage": True})


def test_without_a_listener_nothing_is_streamed() -> None:
    answer = {"choices": [{"message": {"content": "five"}, "finish_reason": "stop"}]}
    with HttpDouble([whole(200, answer)]) as server:
        assert ask(model(server)).text == "five"
    assert not {"stream", "stream_options"} & server.requests[0].keys()


def test_calls_are_told_as_done_when_the_next_begins_or_the_message_ends() -> None:
    pieces = [
        call(0, name="add", call_id="x1"),
        call(0, arguments='{"a": 2,'),
        call(0, arguments=' "b": 3}'),
        call(1, name="mul", call_id="x2", arguments="{}"),
        chunk({}, "tool_calls"),
    ]
    with HttpDouble([events(pieces)]) as server:
        reply, heard = ask_streaming(model(server))
    assert heard == [
        Delta(kind="call", index=0, name="add"),
        Delta(kind="call", index=0, name="add", text='{"a": 2,'),
        Delta(kind="call", index=0, name="add", text=' "b": 3}'),
        Delta(kind="call", index=0, name="add", done=True),
        Delta(kind="call", index=1, name="mul"),
        Delta(kind="call", index=1, name="mul", text="{}"),
        Delta(kind="call", index=1, name="mul", done=True),
    ]
    assert reply.tool_calls == (
        ToolCallText(name="add", arguments='{"a": 2, "b": 3}', id="x1"),
        ToolCallText(name="mul", arguments="{}", id="x2"),
    )
    assert reply.finish_reason == "tool_calls"


def test_calls_without_numbers_and_with_objects_for_arguments_are_read() -> None:
    first = {"id": "x1", "function": {"name": "add", "arguments": {"a": 2}}}
    second = {"id": "x2", "function": {"name": "add", "arguments": '{"a":'}}
    more = {"function": {"arguments": "3}"}}
    pieces = [chunk({"tool_calls": [one]}) for one in (first, second, more)]
    with HttpDouble([events([*pieces, chunk({}, "tool_calls")])]) as server:
        reply, _ = ask_streaming(model(server))
    assert [json.loads(found.arguments) for found in reply.tool_calls] == [{"a": 2}, {"a": 3}]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_separate_thinking_is_heard_apart_and_kept_apart(field: str) -> None:
    """S2-3: the thinking is no part of the reply's text."""
    with HttpDouble([events([chunk({field: "hmm"}), *TEXT, STOP])]) as server:
        reply, heard = ask_streaming(model(server))
    assert (reply.thinking, reply.text) == ("hmm", "five")
    assert heard[0] == Delta(kind="thinking", text="hmm")


def test_a_server_that_does_not_know_stream_options_is_asked_without_them() -> None:
    refusal = {"error": {"message": "Unknown parameter: 'stream_options'."}}
    with HttpDouble([whole(400, refusal), events([*TEXT, STOP])]) as server:
        reply, _ = ask_streaming(model(server))
    assert (reply.text, reply.usage.total_tokens, reply.cost_usd) == ("five", 0, None)
    assert "stream_options" not in server.requests[1]


def test_a_server_that_does_not_stream_is_heard_at_once() -> None:
    message = {"content": "five", "reasoning": "hmm", "tool_calls": [{"id": "x", "function": {"name": "add"}}]}
    with HttpDouble([whole(200, {"choices": [{"message": message}]})]) as server:
        reply, heard = ask_streaming(model(server))
    assert reply.text == "five"
    assert [delta.kind for delta in heard] == ["thinking", "text", "call"]
    assert heard[-1].done


def test_a_listener_that_fails_is_logged_and_the_reply_comes_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_delta: Delta) -> None:
        raise BrokenPipeError("nobody reads")

    with HttpDouble([events([*TEXT, STOP])]) as server:
        assert ask(model(server), on_delta=fail).text == "five"
    assert caplog.text.count("BrokenPipeError: nobody reads") == 1


def test_a_stream_whose_finish_reason_came_is_whole_without_its_last_line() -> None:
    with HttpDouble([events([*TEXT, STOP], end=b"")]) as server:
        assert ask_streaming(model(server))[0].text == "five"


def test_a_connection_that_breaks_after_the_finish_reason_takes_nothing_from_the_reply() -> None:
    pieces = [f"data: {json.dumps(one)}\n\n".encode() for one in (*TEXT, STOP)]
    head = b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n"
    with HttpDouble([sent([head, *pieces])]) as server:
        assert ask_streaming(model(server))[0].text == "five"


BROKEN = b'data: {"choices": [{"delta": {"conte'


@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (events(TEXT, end=b""), ModelUnavailable, "before the reply was whole"),
        (events([*TEXT, BROKEN], end=b""), ModelUnavailable, "before the reply was whole"),
        (events([], end=b""), ModelUnavailable, "before the reply was whole"),
        (events([b": still thinking\n\n"], end=b""), ModelUnavailable, "before the reply was whole"),
        (
            reset([b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\n" + BROKEN]),
            ModelUnavailable,
            "broke off",
        ),
        (events([*TEXT, b"data: {oops}\n\n"]), ModelReplyUnreadable, "no chunk"),
        (events([*TEXT, b'data: "\xff\xfe"\n\n']), ModelReplyUnreadable, "no chunk"),
        (events([*TEXT, b"data: []\n\n"]), ModelReplyUnreadable, "no chunk"),
        (events([chunk({"content": None, "tool_calls": [7]})]), ModelReplyUnreadable, "no chunk"),
        (events([*TEXT, {"error": {"message": "busy", "code": "rate_limit_exceeded"}}]), ModelRateLimited, "busy"),
        (events([*TEXT, {"error": {"message": "lost", "type": "server_error"}}]), ModelUnavailable, "lost"),
        (events([*TEXT, {"object": "error", "message": "bad", "code": 503}]), ModelUnavailable, "503: bad"),
        (events([chunk({"refusal": "I can"}), chunk({"refusal": "not."}, "stop")]), ModelContentRefused, "I cannot."),
    ],
)
def test_half_a_stream_is_never_a_reply(act: Any, kind: type[ModelError], text: str) -> None:
    with HttpDouble([act]) as server, pytest.raises(kind, match=text) as caught:
        ask_streaming(model(server))
    assert caught.value.retryable == kind.retryable
    assert str(caught.value).startswith("openai:tiny")


@examples(60)
@given(st.lists(st.integers(1, 40)))
def test_a_stream_may_be_cut_into_pieces_anywhere(lengths: list[int]) -> None:
    lines = [f"data: {json.dumps(one, ensure_ascii=False)}\r\n\r\n" for one in (chunk({"content": "五é"}), *TEXT, STOP)]
    stream = (": hello\n\n" + "".join(lines) + "data: [DONE]\n\n").encode()
    heard: list[Delta] = []
    target = OpenAIModel(Endpoint(provider="openai", model="tiny", api_key="k"))
    reader = OpenAIStream(target, ToolNameMap(()), heard.append)
    position = 0
    for length in (*lengths, len(stream)):
        done = reader.feed(stream[position : position + length])
        position += length
    assert done or position > len(stream)
    assert reader.reply().text == "五éfive" == "".join(delta.text for delta in heard)


@pytest.mark.parametrize(
    "message",
    [
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "parameter.enable_thinking must be set to false for non-streaming calls",
    ],
)
def test_a_model_that_only_streams_is_streamed_from_then_on(message: str) -> None:
    refusal = whole(400, {"error": {"message": message, "code": "invalid_parameter_error"}})
    with HttpDouble([refusal, events([*TEXT, STOP]), events([*TEXT, STOP])]) as server:
        target = model(server)
        assert [ask(target).text, ask(target).text] == ["five", "five"]
    assert ["stream" in request for request in server.requests] == [False, True, True]


def test_a_character_that_was_cut_in_two_is_whole_again() -> None:
    halves = [rb'data: {"choices": [{"delta": {"content": "\u%s"}}]}' % half + b"\n\n" for half in (b"d83d", b"de00")]
    lone = halves[0]
    with HttpDouble([events([*halves, STOP]), events([*halves, lone, STOP])]) as server:
        assert ask_streaming(model(server))[0].text == "😀"
        assert ask_streaming(model(server))[0].text == "😀\ufffd"


def test_the_content_type_says_whether_it_is_a_stream() -> None:
    page = b"HTTP/1.1 200 x\r\ncontent-type: text/html\r\ncontent-length: 17\r\n\r\n<html>hello</html"
    with HttpDouble([sent([page])]) as server, pytest.raises(ModelReplyUnreadable, match="HTML"):
        ask_streaming(model(server))


def begun(call_id: str | None, name: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}, **more}


@pytest.mark.parametrize(
    "chunks",
    [
        [[begun("x1", "add", '{"a": 1}', index=0)], [begun("x2", "mul", '{"b": 2}', index=0)]],
        [[begun("x1", "add", '{"a": 1}', index=0), begun("x2", "mul", '{"b": 2}', index=0)]],
        [
            [begun("x1", "add", '{"a"', index=0)],
            [begun("x1", "add", ": 1}", index=0)],
            [begun("x2", "mul", '{"b": 2}')],
        ],
        [[begun(None, "add", '{"a": 1}'), begun(None, "mul", '{"b": 2}')]],
        [[begun("x1", "add", '{"a": 1}', index=3)], [begun("x2", "mul", '{"b": 2}', index=7)]],
        [[begun("x1", "", "", index=0)], [begun(None, "add", '{"a": 1}', index=0)], [begun("y", "mul", '{"b": 2}')]],
    ],
    ids=["all 0", "all 0 at once", "the id again and again", "no ids", "gaps", "the name later"],
)
def test_calls_are_told_apart_however_a_server_numbers_them(chunks: list[list[dict[str, Any]]]) -> None:
    pieces = [chunk({"tool_calls": calls}) for calls in chunks]
    with HttpDouble([events([*pieces, chunk({}, "tool_calls")])]) as server:
        reply, _ = ask_streaming(model(server))
    assert [(one.name, one.arguments) for one in reply.tool_calls] == [("add", '{"a": 1}'), ("mul", '{"b": 2}')]


def test_calls_that_are_written_at_once_are_told_as_done_when_they_are() -> None:
    """A listener that begins reads early must not see a call whose arguments are still to come as one without any."""
    pieces = [
        chunk({"tool_calls": [begun("x1", "add", "", index=0), begun("x2", "mul", "", index=1)]}),
        call(0, arguments='{"a": 1}'),
        call(1, arguments='{"b": 2}'),
    ]
    with HttpDouble([events([*pieces, chunk({}, "tool_calls")])]) as server:
        reply, heard = ask_streaming(model(server))
    assert [one.arguments for one in reply.tool_calls] == ['{"a": 1}', '{"b": 2}']
    assert [(delta.index, delta.done) for delta in heard[-2:]] == [(0, True), (1, True)]
    assert not any(delta.done for delta in heard[:-2])


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", ""])
def test_a_stream_is_known_by_how_it_begins_too(content_type: str) -> None:
    act = events([*TEXT, STOP])
    with HttpDouble([renamed(act, content_type)]) as server:
        assert ask_streaming(model(server))[0].text == "five"


def renamed(act: Any, content_type: str) -> Any:
    class Connection:
        def __init__(self, to: Any) -> None:
            self._to = to

        def sendall(self, data: bytes) -> None:
            self._to.sendall(data.replace(b"text/event-stream", content_type.encode()))

    return lambda connection: act(Connection(connection))


@pytest.mark.parametrize(
    "start", [b"\xef\xbb\xbf", b": hello\n\n", b"data:\n\n", b"data: \r\n\r\n", b"event: x\nid: 1\n"]
)
def test_what_carries_nothing_is_passed_over(start: bytes) -> None:
    first = start + f"data:{json.dumps(TEXT[1])}\n\n".encode()
    with HttpDouble([events([first, b"data:\n\n", TEXT[2], STOP])]) as server:
        assert ask_streaming(model(server))[0].text == "five"


def test_the_only_choice_may_have_no_number() -> None:
    unnumbered = [{"choices": [{**one["choices"][0], "index": None}]} for one in (*TEXT, STOP)]
    with HttpDouble([events(unnumbered)]) as server:
        assert ask_streaming(model(server))[0].text == "five"


def test_a_whole_reply_does_not_wait_for_a_server_that_never_ends_its_stream() -> None:
    pieces = [f"data: {json.dumps(one)}\n\n".encode() for one in (*TEXT, STOP)]
    reader = OpenAIStream(OpenAIModel(Endpoint(provider="openai", model="tiny", api_key="k")), ToolNameMap(()), None)

    async def post(url: str) -> HttpResponse:
        wire = HttpTransport(HttpTarget(name="x", address=url, url=url, headers={}), last_words_s=0.01)
        return await wire.post(b"{}", timeout_s=60.0, reader=reader)

    with HttpDouble([silent([b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\n", *pieces])]) as server:
        assert asyncio.run(post(server.url)).streamed
    assert reader.reply().text == "five"


def test_a_stream_that_is_compressed_is_read() -> None:
    raw = b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in (*TEXT, STOP))
    head = b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n"
    packed = gzip.compress(raw)
    with HttpDouble([sent([head, packed[:15], packed[15:]])]) as server:
        assert ask_streaming(model(server))[0].text == "five"
