"""A request that is sent again belongs to the run of the first attempt, where a new one could do something twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from openai import OpenAI
from tests.serve.gateway.clients import CHAT, CLIENT_TOOL, LOOK, RESPONSES, ask, post
from tests.serve.gateway.conftest import Running, Upstream, agent, config_of, double, gateway, until, upstream

from taoloop import tool
from taoloop.core.policy import Policy, Rule
from taoloop.serve.gateway.auth.keys import ApiKey, new_key
from taoloop.serve.gateway.config.model import ServedAgent, ServerLimits

ORDERS: list[str] = []
STARTED, HANGS = threading.Event(), threading.Event()
GOING_ON: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

ORDER = {"tool_calls": [{"name": "order", "args": {"item": "tea"}}]}
BOOM = (500, {"error": {"message": "boom"}})
DONE = "Ordered."


@tool(tier="write", egress=False)
async def order(item: str) -> str:
    """Order something."""
    ORDERS.append(item)
    if HANGS.is_set():
        event = asyncio.Event()
        GOING_ON.append((asyncio.get_running_loop(), event))
        STARTED.set()
        await event.wait()
    return "ordered"


@pytest.fixture(autouse=True)
def _nothing_ordered() -> None:
    ORDERS.clear()
    GOING_ON.clear()
    STARTED.clear()
    HANGS.clear()


@contextmanager
def shop(*replies: Any, reshape: Any = None, **changes: Any) -> Iterator[tuple[Running, Upstream]]:
    """A gateway whose agent orders without a question."""
    policy = Policy(rules=(Rule(verdict="allow", tool="order", reason="Orders are free."),))
    with upstream(*replies) as server:
        served = ServedAgent(
            name="assistant", agent=agent(server, tools=[order, double], policy=policy), reshape=reshape
        )
        with gateway(config_of(served, **changes)) as running:
            yield running, server


def body(text: str = "Order tea.", **more: Any) -> dict[str, Any]:
    return {"model": "assistant", "messages": ask(text), **more}


def content(answer: Any) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text


def keyed(running: Running, key: str = "k1", **more: Any) -> tuple[int, Any]:
    return post(running, body(**more), **{"Idempotency-Key": key})


def test_a_request_with_a_key_is_one_run_however_often_it_is_sent() -> None:
    with shop(ORDER, DONE, "Something else.") as (running, server):
        first, second = keyed(running), keyed(running)
        assert first[0] == second[0] == 200
        assert content(first[1]) == content(second[1]) == DONE
        assert first[1]["id"] == second[1]["id"]
        assert ORDERS == ["tea"]
        assert len(server.asked) == 2
        assert keyed(running, "k2")[0] == 200
        assert len(running.traces()) == 2


def test_a_response_with_a_key_is_stored_too_and_can_be_streamed() -> None:
    with shop(ORDER, DONE, "Something else.") as (running, _):
        request = {"model": "assistant", "input": "Order tea.", "stream": True}
        answers = [post(running, request, path=RESPONSES, **{"Idempotency-Key": '"8e03978e"'}) for _ in range(2)]
        assert [status for status, _ in answers] == [200, 200]
        assert all(b'"text":"Ordered."' in text and b"response.completed" in text for _, text in answers)
        streamed = [post(running, body(stream=True), **{"Idempotency-Key": "k9"}) for _ in range(2)]
        assert all(b"Some" in text and text.endswith(b"data: [DONE]\n\n") for _, text in streamed)
        assert len(running.traces()) == 2
        assert ORDERS == ["tea"]


def test_a_key_with_another_body_is_refused() -> None:
    with shop(DONE) as (running, _):
        assert keyed(running)[0] == 200
        status, answer = keyed(running, temperature=0.5)
        assert (status, answer["error"]["code"]) == (422, "idempotency_key_reused")
        status, answer = post(running, body(), **{"Idempotency-Key": "x" * 256})
        assert (status, answer["error"]["code"]) == (400, "invalid_idempotency_key")
        assert len(running.traces()) == 1


def test_keys_of_different_owners_are_different() -> None:
    secrets = [new_key(name) for name in ("ann", "bob")]
    keys = tuple(ApiKey(name=key.name, digest=key.digest, task_authority="full") for _, key in secrets)
    with shop(ORDER, DONE, ORDER, DONE, keys=keys) as (running, _):
        for secret, _ in secrets:
            headers = {"Idempotency-Key": "k1", "Authorization": f"Bearer {secret}"}
            assert [post(running, body(), **headers)[0] for _ in range(2)] == [200, 200]
        assert ORDERS == ["tea", "tea"]


def test_a_failed_run_goes_on_when_its_request_is_sent_again_with_its_key() -> None:
    with shop(ORDER, BOOM, DONE) as (running, _):
        assert keyed(running)[0] == 424
        status, answer = keyed(running)
        assert (status, content(answer)) == (200, DONE)
        assert ORDERS == ["tea"]


def test_an_openai_client_that_retries_with_a_key_gets_the_answer() -> None:
    with shop(BOOM, ORDER, DONE) as (running, _), OpenAI(base_url=f"{running.url}/v1", api_key="none") as sdk:
        chat = sdk.chat.completions
        answer = chat.create(model="assistant", messages=ask("Order tea."), extra_headers={"Idempotency-Key": "k1"})
        assert answer.choices[0].message.content == DONE
        assert len(running.traces()) == 1
        assert ORDERS == ["tea"]


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_without_a_key_a_run_that_failed_after_its_effect_is_not_begun_again(path: str) -> None:
    request = body() if path == CHAT else {"model": "assistant", "input": "Order tea."}
    with shop(ORDER, BOOM, BOOM, DONE, ORDER, DONE) as (running, _):
        first, second = post(running, request, path=path), post(running, request, path=path)
        assert first[0] == second[0] == 424
        assert first[1]["error"]["run_id"] == second[1]["error"]["run_id"]
        assert post(running, request, path=path)[0] == 200
        assert ORDERS == ["tea"]
        assert post(running, request, path=path)[0] == 200  # the answer was given, so it is meant again
        assert ORDERS == ["tea", "tea"]
        assert len(running.traces()) == 2


def test_a_deliberate_repeat_after_an_answer_is_a_new_run() -> None:
    with shop(ORDER, DONE, ORDER, DONE) as (running, _):
        assert [post(running, body())[0] for _ in range(2)] == [200, 200]
        assert ORDERS == ["tea", "tea"]


def test_after_the_window_a_failed_run_is_no_reason_to_wait() -> None:
    with shop(ORDER, BOOM, ORDER, DONE, limits=ServerLimits(repeat_window_s=0)) as (running, _):
        assert [post(running, body())[0] for _ in range(2)] == [424, 200]
        assert ORDERS == ["tea", "tea"]


def in_background(running: Running, answers: list[Any], **headers: str) -> threading.Thread:
    thread = threading.Thread(target=lambda: answers.append(post(running, body(), **headers)))
    thread.start()
    return thread


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k1"}])
def test_a_repeat_waits_for_the_run_that_is_ordering(headers: dict[str, str]) -> None:
    HANGS.set()
    answers: list[Any] = []
    with shop(ORDER, DONE) as (running, _):
        threads = [in_background(running, answers, **headers)]
        assert STARTED.wait(20)
        threads.append(in_background(running, answers, **headers))
        until(lambda: running.process.gateway.snapshot.accounts.quotas.active_runs == 2)
        [(loop, event)] = GOING_ON
        loop.call_soon_threadsafe(event.set)
        for thread in threads:
            thread.join(20)
        assert [(status, content(answer)) for status, answer in answers] == [(200, DONE)] * 2
        assert ORDERS == ["tea"]
        assert len(running.traces()) == 1


def test_equal_requests_at_once_that_change_nothing_yet_are_runs_of_their_own() -> None:
    slow = {"text": "At last.", "hangs": True}
    answers: list[Any] = []
    with shop(slow) as (running, server):
        threads = [in_background(running, answers) for _ in range(3)]
        until(lambda: len(server.asked) == 3)
        server.go_on()
        for thread in threads:
            thread.join(20)
        assert [status for status, _ in answers] == [200, 200, 200]
        assert len(running.traces()) == 3


def test_a_run_that_waits_after_its_effect_is_shown_again() -> None:
    with shop(ORDER, LOOK, ORDER) as (running, _):
        first, second = (post(running, body(tools=[CLIENT_TOOL])) for _ in range(2))
        assert first[0] == second[0] == 200
        assert first[1]["agent"]["run_id"] == second[1]["agent"]["run_id"]
        assert first[1]["choices"][0]["message"]["tool_calls"] == second[1]["choices"][0]["message"]["tool_calls"]
        assert first[1]["id"] != second[1]["id"]
        assert ORDERS == ["tea"]
