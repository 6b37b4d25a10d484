"""Files of the `ai-agent` plugin behind the server: every vector as a client, a model and the services see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.serve.gateway.ai_agent import CONFIGS, DATA, FINAL, World, asks, changed, load, world
from tests.serve.gateway.clients import ask, post
from tests.serve.gateway.conftest import Running, gateway, upstream
from tests.serve.gateway.test_run_answer import streamed

from taoloop.serve.gateway.config.gateway_file import load_config

REQUESTS = json.loads((DATA / "vectors" / "requests.json").read_text(encoding="utf-8"))
HISTORIES = json.loads((DATA / "vectors" / "histories.json").read_text(encoding="utf-8"))
REPLIES = json.loads((DATA / "vectors" / "model_replies.json").read_text(encoding="utf-8"))
SERVICES = ("llm", "llm.dns", "weather.dns", "geo.dns", "poi.dns", "route.dns", "orders.dns", "rates.dns")
PLACES = (*SERVICES, "holidays.dns", "api.example.com")
JSON = '{"city": "Bonn", "condition": "sunny", "temperature_c": 21}'


@contextmanager
def served(config: str | Path, *replies: Any, **changes: Any) -> Iterator[tuple[World, Running]]:
    """A file as it is, or a written one, behind a server; its model and all its services are one world."""
    with world(*replies) as there:
        path = CONFIGS / config
        made = load_config(path, resolve=dict.fromkeys(PLACES, there.place), env={})
        with gateway(replace(made, **changes)) as running:
            yield there, running


def question(text: str = "What is it?", **more: Any) -> dict[str, Any]:
    return {"model": "whatever", "messages": ask(text), **more}


def said(body: Any) -> str:
    content: str = body["choices"][0]["message"]["content"]
    return content


# requests.json


@pytest.mark.parametrize("vector", REQUESTS, ids=[f"{n}-{one['tool']}" for n, one in enumerate(REQUESTS)])
def test_the_service_gets_the_expected_request_or_none(vector: dict[str, Any]) -> None:  # S1-31 to S1-35, S1-57
    wanted, called = vector["expect"], asks(vector["tool"], **vector["arguments"])
    with served(vector["config"], called, FINAL, JSON) as (there, running):
        status, body = post(running, question())
        assert status == 200
        if wanted["outcome"] == "refused":
            assert there.calls == []
            assert wanted["error"] in there.chats[1]["messages"][-1]["content"]
            return
        if "approval" in wanted["outcome"]:
            assert there.calls == []
            assert body["agent"]["status"] == "waiting"
            messages = [*ask("What is it?"), {"role": "assistant", "content": said(body)}]
            if wanted["outcome"] == "needs_approval":
                post(running, {"model": "m", "messages": [*messages, *ask("no: not today")]})
                assert there.calls == []
                assert "not today" in there.chats[-1]["messages"][-1]["content"]
                return
            status, body = post(running, {"model": "m", "messages": [*messages, *ask("yes")]})
        [(method, path, query, headers, sent)] = there.calls
        parts = urlsplit(wanted["url"])
        assert (method, path) == (wanted["method"], parts.path)
        assert [list(pair) for pair in query] == wanted["query"]
        assert sent == wanted["body"]
        assert {name: headers.get(name.lower()) for name in wanted["headers"]} == wanted["headers"]
        assert ("authorization" in headers) == ("Authorization" in wanted["headers"])
        assert headers["host"] == parts.netloc  # as with the option of curl: only the connection goes elsewhere
        assert status == 200
        for shown in (json.dumps(body), str(running.traces()[0].events)):
            assert "-for-tests" not in shown
            assert "a+b/c=d&e" not in shown


def test_a_file_that_is_resolved_to_a_whole_address_takes_the_host_of_that() -> None:
    with world() as there:
        config = load_config(CONFIGS / "02_geocode.yaml", resolve={"llm.dns": f"http://{there.place}"}, env={})
        with gateway(config) as running:
            assert post(running, question())[0] == 200
        assert there.heads[0]["host"] == there.place


# histories.json


@pytest.mark.parametrize("language", ["EN", "CH"])
@pytest.mark.parametrize("vector", HISTORIES, ids=[one["name"] for one in HISTORIES])
def test_the_model_gets_the_expected_question_history_and_instructions(
    vector: dict[str, Any], language: str, tmp_path: Path
) -> None:  # S1-6, S1-16, S1-18
    data = changed("02_geocode.yaml", {"promptTemplate": {"language": language}})
    wanted = vector["expect"]
    with world() as there, gateway(load(tmp_path, data, resolve={"llm.dns": there.place})) as running:
        status, body = post(running, {"model": "m", "messages": vector["messages"]})
        if "error" in wanted:
            assert (status, there.chats) == (400, [])
            assert wanted["error"] in body["error"]["message"].casefold()
            assert body["error"]["param"].startswith("messages")
            return
        assert (status, said(body)) == (200, "It is sunny.")
        system, *turns = there.chats[0]["messages"]
        assert system["role"] == "system"
        assert ("SYS" in system["content"]) == ("system" in wanted)
        assert [[one["role"], one["content"]] for one in turns] == [*wanted["history"], ["user", wanted["question"]]]


# model_replies.json


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("vector", REPLIES, ids=[one["name"] for one in REPLIES])
def test_a_client_gets_the_answer_and_nothing_of_how_it_was_written(vector: dict[str, Any], stream: bool) -> None:
    # S1-7, S1-10, S1-27 to S1-29, S1-39, S1-59, S1-60
    wanted = vector["expect"]
    with served("04_orders_post.yaml", vector["text"], FINAL) as (there, running):
        if stream:
            status, got = streamed(running, question())
            answer, finish = got["text"], got["finish"]
        else:
            status, body = post(running, question())
            answer, finish = said(body), body["choices"][0]["finish_reason"]
        assert (status, finish) == (200, "stop")
        assert answer == (wanted["answer"] if wanted["kind"] == "final" else "It is sunny.")
        assert len(there.chats) == (1 if wanted["kind"] == "final" else 2)
        if wanted["kind"] == "tool_call" and wanted["tool"] == "get_order" and wanted["arguments"]:
            [(_, path, *_)] = there.calls
            assert path == f"/v1/orders/{wanted['arguments']['order_id']}"
        else:
            assert there.calls == []


# How a run ends


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reply", "status", "finish", "reason"),
    [
        (asks("nobody_knows_it"), 200, "length", "too_many_errors"),
        (asks("get_place", place_id="abc"), 200, "length", "too_many_errors"),
        (asks("get_place", place_id=1), 200, "length", "budget_exceeded"),
        ("It is somewhere.", 502, None, "model_unreadable"),
        ("", 502, None, "model_unreadable"),
    ],
)
def test_what_gives_no_answer_gives_a_reason(
    reply: str, status: int, finish: str | None, reason: str, stream: bool
) -> None:  # S1-25, S1-30, S1-37, S1-59
    with served("02_geocode.yaml", reply) as (_, running):
        got, body = streamed(running, question()) if stream else post(running, question())
        assert got == status
        if status != 200:
            assert body["error"]["code"] == reason
            assert body["error"]["message"]
            return
        text, why = (body["text"], body["finish"]) if stream else (said(body), body["choices"][0]["finish_reason"])
        assert text.strip()
        assert why == finish
        [trace] = running.traces()
        assert trace.status == reason


def test_status_and_kind_of_a_failure_reach_the_model() -> None:  # S1-36, S1-61
    with served("02_geocode.yaml", asks("get_place", place_id=1), FINAL) as (there, running):
        there.status = 503
        assert post(running, question())[0] == 200
        told = there.chats[1]["messages"][-1]["content"]
        assert "503" in told
        assert '"number"' in told  # and the body is still there
        assert told.startswith("Observation")


# Answers as JSON


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_in_the_first_reply_is_turned_into_json_like_any_other(stream: bool) -> None:  # S1-40, S1-60
    with served("01_weather.yaml", FINAL, "Sure: no JSON", JSON) as (there, running):
        if stream:
            _, got = streamed(running, question(stream_options={"include_usage": True}))
            assert json.loads(got["text"]) == json.loads(JSON)
        else:
            status, body = post(running, question())
            assert (status, json.loads(said(body))) == (200, json.loads(JSON))
            assert body["usage"]["total_tokens"] == 36  # of all three calls
        assert len(there.chats) == 3  # answer, JSON, and once more
        assert '"temperature_c"' in str(there.chats[1]["messages"])


@pytest.mark.parametrize("stream", [False, True])
def test_json_that_never_fits_is_an_error_and_no_raw_text(stream: bool) -> None:
    with served("01_weather.yaml", FINAL, '{"city": 5}') as (_, running):
        status, body = streamed(running, question()) if stream else post(running, question())
        assert (status, body["error"]["code"]) == (502, "json_answer_failed")
        assert "condition" in body["error"]["message"]


def test_without_a_schema_any_object_will_do() -> None:
    with served("05_key_in_query.yaml", FINAL, "[1]", '```json\n{"any": "thing"}\n```') as (_, running):
        status, body = post(running, question())
        assert (status, json.loads(said(body))) == (200, {"any": "thing"})


# The loop


def test_each_request_has_a_loop_of_its_own_over_several_tools() -> None:
    """S1-1 to S1-3, S1-5, S1-9, S1-20, S1-21, S1-26, S1-38: twice the same, with a limit of three calls each."""
    calls = [asks("get_place", place_id=number) for number in (1, 2)] + [asks("reverse_geocode", lat=1.0, lon=2.0)]
    with served("02_geocode.yaml", *calls, FINAL, *calls, FINAL) as (there, running):
        for _request in range(2):
            assert said(post(running, question())[1]) == "It is sunny."
        paths = [path for _, path, *_ in there.calls]
        assert len(paths) == 6
        assert paths[:3] == paths[3:]
        assert len({*paths}) == 3
        first, last = there.chats[0]["messages"], there.chats[3]["messages"]
        assert there.chats[4]["messages"] == first, "nothing of the earlier request"
        assert last[: len(first)] == first
        assert [message["role"] for message in last[len(first) :]] == ["assistant", "user"] * 3
        for number, message in enumerate(last[len(first) + 1 :: 2], 1):
            assert message["content"].startswith("Observation")
            assert f'"number":{number}' in message["content"].replace(" ", "")
        for chat, headers in zip(there.chats, there.heads, strict=True):
            assert (chat["model"], chat["max_tokens"]) == (there.chats[0]["model"], 1000)
            assert headers["authorization"] == "Bearer llm-key-for-tests"


@pytest.mark.parametrize("body", [b"{not json", b"", b'{"model": "m", "messages": "x"}'])
def test_a_body_that_cannot_be_used_is_an_error_in_form_and_reaches_nobody(body: bytes) -> None:
    """S1-15, S1-24: a server has nobody to pass it on to."""
    with served("02_geocode.yaml") as (there, running):
        status, told = post(running, body)
        assert status == 400
        assert told["error"]["message"]
        assert told["error"]["type"] == "invalid_request_error"
        assert there.chats == []


@pytest.mark.parametrize("stream", [False, True])
def test_the_model_is_streamed_for_a_client_that_streams(stream: bool) -> None:
    """S1-23: so that the answer arrives while it is written."""
    with served("02_geocode.yaml") as (there, running):
        if stream:
            streamed(running, question())
        else:
            post(running, question())
        assert there.chats[0].get("stream", False) is stream


# What a client says beside its messages


def test_settings_of_the_client_hold_within_those_of_the_file() -> None:
    with served("02_geocode.yaml") as (there, running):
        settings: dict[str, Any] = {"temperature": 0.3, "top_p": 0.25, "stop": ["sunny"], "max_tokens": 50}
        status, body = post(running, question(**settings))
        assert (status, said(body)) == (200, "It is ")
        asked = there.chats[0]
        assert (asked["temperature"], asked["top_p"], asked["max_tokens"]) == (0.3, 0.25, 50)
        post(running, question(max_completion_tokens=9_000))
        assert there.chats[1]["max_tokens"] == 1000  # the file's bound, which is smaller
        assert there.heads[1]["authorization"] == "Bearer llm-key-for-tests"


def test_the_answer_is_streamed_while_the_model_writes_it() -> None:
    begun = 'Thought: I know.\nAction:```json\n{"action": "Final Answer", "action_input": "The key points: enough, '
    pieces = [begun, 'then more."}\n```']
    with upstream({"pieces": pieces, "waits": True}) as server:
        place = server.url.removeprefix("http://")
        config = load_config(CONFIGS / "02_geocode.yaml", resolve={"llm.dns": place}, env={})
        with gateway(config) as running:
            connection = HTTPConnection(running.url.removeprefix("http://"), timeout=20)
            connection.request("POST", "/v1/chat/completions", json.dumps(question(stream=True)).encode())
            answer = connection.getresponse()
            first = json.loads(answer.readline().removeprefix(b"data: "))["choices"][0]["delta"]
            assert first["content"] == "The key points: enough,"  # and the model has not gone on yet
            server.go_on()
            rest = answer.read().decode()
            connection.close()
        assert "then more." in rest
        assert "Thought" not in rest
        assert rest.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_file_is_listed_by_its_name_and_answers_to_any(path: Path) -> None:  # S1-48
    turned = "jsonResp:\n  enable: true" in path.read_text(encoding="utf-8")
    with served(path, *([FINAL, JSON] if turned else [FINAL]) * 3) as (_, running):
        listed = post(running, b"", path="/v1/models", method="GET")[1]["data"]
        assert [one["id"] for one in listed] == [path.stem]
        for name in (path.stem, "gpt-4o", "通义"):
            status, body = post(running, {**question("今天北京的天气怎么样？"), "model": name})
            assert (status, body["model"]) == (200, path.stem)
