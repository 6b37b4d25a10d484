"""After the first effect of a run nothing makes a client send its request again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from openai import OpenAI
from tests.serve.gateway.clients import CALL, CHAT, CLIENT_TOOL, LOOK, RESPONSES, ask, post
from tests.serve.gateway.conftest import Running, Upstream, agent, config_of, double, gateway, upstream

from taoloop import tool
from taoloop.core.policy import Policy, Rule
from taoloop.serve.gateway.config.model import ServedAgent, ServerLimits
from taoloop.serve.gateway.errors import ApiError
from taoloop.serve.gateway.run_effects import EffectWatch

ORDERS: list[str] = []
STARTED, HANGS = threading.Event(), threading.Event()

ORDER = {"tool_calls": [{"name": "order", "args": {"item": "tea"}}]}
FAILURES: list[Any] = [
    (500, {"error": {"message": "boom"}}),
    (429, {"error": {"message": "slow down"}}),
    (401, {"error": {"message": "no such key"}}),
    {"text": "", "breaks": True},
]


@tool(tier="write", egress=False)
async def order(item: str) -> str:
    """Order something."""
    ORDERS.append(item)
    STARTED.set()
    if HANGS.is_set():
        await asyncio.Event().wait()
    return "ordered"


@pytest.fixture(autouse=True)
def _nothing_ordered() -> None:
    ORDERS.clear()
    STARTED.clear()
    HANGS.clear()


@contextmanager
def shop(*replies: Any, reshape: Any = None, **changes: Any) -> Iterator[tuple[Running, OpenAI, Upstream]]:
    """A gateway whose agent orders without a question, and OpenAI's client as it comes."""
    policy = Policy(rules=(Rule(verdict="allow", tool="order", reason="Orders are free."),))
    with upstream(*replies) as server:
        served = ServedAgent(
            name="assistant", agent=agent(server, tools=[order, double], policy=policy), reshape=reshape
        )
        with (
            gateway(config_of(served, **changes)) as running,
            OpenAI(base_url=f"{running.url}/v1", api_key="none") as sdk,
        ):
            yield running, sdk, server


def check_final(error: openai.APIStatusError, run_id: str, effects: str) -> None:
    assert error.status_code == 424
    assert error.response.headers["x-should-retry"] == "false"
    assert "retry-after" not in error.response.headers
    body: Any = error.body
    assert (body["run_id"], body["effects"], body["type"]) == (run_id, effects, "run_error")
    assert run_id in error.message
    assert "do not send the request again" in error.message


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_that_fails_after_the_order_does_not_lead_to_a_second_one(
    failure: Any, api: str, streamed: bool
) -> None:
    with shop(ORDER, failure) as (running, sdk, _):
        what: Any = {"messages": ask("Order tea.")} if api == "chat" else {"input": "Order tea."}
        create: Any = sdk.chat.completions.create if api == "chat" else sdk.responses.create
        with pytest.raises(openai.APIError) as caught:
            list(create(model="assistant", stream=streamed, **what))
        [trace] = running.traces()
        assert ORDERS == ["tea"]
        assert isinstance(caught.value, openai.APIStatusError)  # nothing was sent before the error
        check_final(caught.value, trace.run_id, "done")


def test_before_the_first_effect_a_failure_may_be_tried_again() -> None:
    with shop(CALL, FAILURES[0], "Eight.") as (running, sdk, _):
        made = sdk.chat.completions.create(model="assistant", messages=ask("Double 4."))
        assert made.choices[0].message.content == "Eight."
        assert len(running.traces()) == 2


@pytest.mark.parametrize(
    ("path", "body"), [(CHAT, {"messages": ask("Order tea.")}), (RESPONSES, {"input": "Order tea."})]
)
def test_an_error_in_the_middle_of_a_stream_says_so_too(path: str, body: Any) -> None:
    with shop(ORDER, {"pieces": ["It is ", "done"], "breaks": True}) as (running, _, _server):
        status, text = post(running, {"model": "assistant", "stream": True, **body}, path=path)
        [trace] = running.traces()
        assert status == 200
        assert b"It is" in text
        assert f"GET /v1/runs/{trace.run_id} shows its state".encode() in text
        assert b"do not send the request again" in text
        assert ORDERS == ["tea"]


def test_a_json_answer_that_fails_after_the_order_is_final() -> None:
    schema = {"type": "object", "required": ["said"]}
    with shop(ORDER, "Ordered.", "no JSON", reshape=schema) as (running, sdk, _):
        with pytest.raises(openai.APIStatusError) as caught:
            sdk.chat.completions.create(model="assistant", messages=ask("Order tea."))
        check_final(caught.value, running.traces()[0].run_id, "done")
        assert ORDERS == ["tea"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_server_that_ends_during_an_order_names_its_run_and_the_doubt(streamed: bool) -> None:
    HANGS.set()
    caught: list[Any] = []
    with shop(ORDER, "Ordered.", limits=ServerLimits(shutdown_s=0.1)) as (running, sdk, _):

        def ask_for_tea() -> None:
            try:
                sdk.chat.completions.create(model="assistant", messages=ask("Order tea."), stream=streamed)
            except openai.APIError as error:
                caught.append(error)

        thread = threading.Thread(target=ask_for_tea)
        thread.start()
        assert STARTED.wait(20)
        running.end()
        thread.join(20)
        [trace] = running.traces()
    check_final(caught[0], trace.run_id, "in_doubt")
    assert "run_stopped" in str(caught[0].body)
    assert ORDERS == ["tea"]


def test_an_effect_of_an_earlier_turn_counts_for_the_run_that_goes_on() -> None:
    with shop(ORDER, LOOK, FAILURES[0]) as (running, sdk, _):
        messages = ask("Order tea and look outside.")
        first = sdk.chat.completions.create(model="assistant", messages=messages, tools=[CLIENT_TOOL])
        [call] = first.choices[0].message.tool_calls or []
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "red"}]
        with pytest.raises(openai.APIStatusError) as caught:
            sdk.chat.completions.create(model="assistant", messages=messages, tools=[CLIENT_TOOL])
        check_final(caught.value, running.traces()[0].run_id, "done")
        assert ORDERS == ["tea"]


@pytest.mark.parametrize(("status", "sent"), [(408, 424), (409, 424), (429, 424), (500, 424), (504, 424), (400, 400)])
def test_only_statuses_that_clients_repeat_are_replaced(status: int, sent: int) -> None:
    with shop(ORDER, "Ordered.") as (running, sdk, _):
        sdk.chat.completions.create(model="assistant", messages=ask("Order tea."))
        [trace] = running.traces()
    error = ApiError(status=status, message="It took too long.", code="run_timeout", retry_after_s=5.0)
    final = EffectWatch(trace).final_error(error, trace.run_id)
    assert (final.status, final.code, final.headers) == (sent, "run_timeout", {"x-should-retry": "false"})
    assert EffectWatch().final_error(error, trace.run_id) is error
