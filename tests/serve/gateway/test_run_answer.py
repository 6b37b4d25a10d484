"""Whole and streamed answers say the same, whatever the model writes, in every dialect; and streams that break."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, strategies as st
from tests.serve.gateway.clients import CHAT, CLIENT_TOOL, RESPONSES, ask, ended, post, records
from tests.serve.gateway.conftest import Running, Upstream, agent, client, config_of, gateway, in_thread, upstream
from tests.sizes import examples

from taoloop.serve.gateway.run_answer import EventStream


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


def test_a_draft_that_is_reviewed_is_not_streamed() -> None:
    replies = ["It has 4 rooms.", "- It has 3 [task: has 3 rooms]", "It has 3 rooms.", "NONE"]
    with upstream(*replies) as server, gateway(config_of(agent(server, strategy="reflect"))) as running:
        task = ask("The hut has 3 rooms. How many?")
        stream = client(running).chat.completions.create(model="assistant", messages=task, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "It has 3 rooms."


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_a_reader_that_goes_away_in_the_middle_stops_the_run(path: str) -> None:
    with upstream({"pieces": ["One ", "two."], "waits": True}) as server, gateway(config_of(agent(server))) as running:
        address = urlsplit(running.url)
        body = json.dumps({"model": "assistant", "messages": ask("Hi."), "input": "Hi.", "stream": True}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
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
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await reader.read(100)
        tell(await asyncio.wait_for(told, 20))
        writer.close()
        await stop.wait()
        await runner.cleanup()

    error, stop = in_thread(main)
    stop()
    assert isinstance(error, ConnectionError)


DIALECTS = ("native", "text", "json", "fenced")


CALLS = {
    "native": {"tool_calls": [{"name": "double", "args": {"number": 4}}]},
    "text": 'Action: double\nAction Input: {"number": 4}',
    "json": '{"thought": "t", "action": "double", "action_input": {"number": 4}}',
    "fenced": '```json\n{"action": "double", "action_input": {"number": 4}}\n```',
}


MARKS = (
    "Thought: ",
    "Final Answer: ",
    "最终答案：",
    "Action: ",
    "Action Input: ",
    "Observation: ",
    "Answer: ",
    "User: ",
)


WORDS = ("It is 8. ", "double", '{"number": 4}', "STOP", "ST", "😀", " ", "Hello. ", "你好。", "\\n", "\n", "\n\n")


SIGNS = ("```", "```json\n", '{"answer": "x"}', "<think>", "</think>")


FINAL = '{"action": "Final Answer", "action_input": "It is 8."}'


FRAGMENTS = st.sampled_from((*MARKS, *WORDS, *SIGNS, FINAL))


TEXTS = st.lists(FRAGMENTS, max_size=7).map("".join)


@pytest.fixture(scope="module", params=DIALECTS)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, Upstream, Running]]:
    with upstream("x") as server:
        made = agent(server, dialect=request.param, max_steps=3, closing_turn=True)
        with gateway(config_of(made)) as running:
            yield request.param, server, running


def streamed(running: Running, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """What a client has at the end of a stream."""
    connection = HTTPConnection(running.url.removeprefix("http://"), timeout=20)
    connection.request(
        "POST",
        "/v1/chat/completions",
        json.dumps({**body, "stream": True}).encode(),
        {"Content-Type": "application/json"},
    )
    answer = connection.getresponse()
    data = answer.read().decode()
    connection.close()
    if answer.status != 200:
        return answer.status, json.loads(data)
    calls: list[Any] = []
    text, finish, error = "", None, None
    for line in data.splitlines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        event = json.loads(line.removeprefix("data: "))
        if "error" in event:
            error = event["error"]
            continue
        for choice in event["choices"]:
            text += choice["delta"].get("content") or ""
            finish = choice["finish_reason"] or finish
            calls += choice["delta"].get("tool_calls") or []
    return 200, {"text": text, "finish": finish, "calls": calls, "error": error}


ENDS = {"text": "stop", "cut": "length", "filtered": "content_filter"}


REPLY = st.tuples(st.sampled_from(["text", "cut", "filtered", "call", "words and call", "client"]), TEXTS)


@examples(120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(REPLY, min_size=1, max_size=4), st.sampled_from([None, ["STOP"], ["8"], ["\n\n", "Hello"], ["double"]]))
def test_a_stream_says_what_the_whole_answer_says(
    served: tuple[str, Upstream, Running], replies: list[tuple[str, str]], stop: list[str] | None
) -> None:
    dialect, server, running = served
    running.logged.clear()

    def reply(kind: str, text: str) -> Any:
        if kind in ENDS:
            return {"text": text, "finish_reason": ENDS[kind]}
        call: Any = CALLS[dialect]
        if kind == "client":
            told = (
                json.dumps(call).replace("double", "look_outside").replace('\\"number\\": 4', '\\"window\\": \\"x\\"')
            )
            call = json.loads(told.replace('"number": 4', '"window": "x"'))
        words = text if kind == "words and call" else ""
        if isinstance(call, dict):
            return {"text": words, **call}
        return {"text": f"{words}\n{call}" if words else call}

    body: dict[str, Any] = {"model": "assistant", "messages": ask("Double 4."), "tools": [CLIENT_TOOL]}
    if stop:
        body["stop"] = stop
    server.replies = [reply(*one) for one in replies]
    status, whole = post(running, body)
    server.replies = [reply(*one) for one in replies]
    also, pieces = streamed(running, body)
    if status != 200:
        error = pieces["error"]
        assert error is not None
        assert error["code"] == whole["error"]["code"]
        return
    assert also == 200
    choice = whole["choices"][0]
    message = choice["message"]
    assert pieces["error"] is None
    assert pieces["finish"] == choice["finish_reason"]
    names = [call["function"]["name"] for call in message.get("tool_calls") or ()]
    assert [call["function"]["name"] for call in pieces["calls"]] == names
    if not names:
        content = message["content"]
        assert pieces["text"] == content or pieces["text"].endswith(f"\n\n{content}")
        assert content or stop
