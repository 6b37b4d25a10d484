"""Whole and streamed answers say the same, whatever the model writes, in every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.serve.gateway.conftest import Running, Upstream, config_of, gateway, upstream
from tests.serve.gateway.test_bad_input import post
from tests.serve.gateway.test_chat import CLIENT_TOOL, agent, ask
from tests.sizes import examples

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
