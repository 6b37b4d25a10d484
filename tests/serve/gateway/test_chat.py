"""Chat completions through the official OpenAI SDK, against a model server on this machine."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from tests.serve.gateway.clients import CALL, CLIENT_TOOL, LOOK, NOTE, SENT, ask, send_note
from tests.serve.gateway.conftest import agent, client, config_of, gateway, until, upstream

from taoloop import Agent
from taoloop.core.agent_spec import Limits
from taoloop.serve.gateway.config.model import ServedAgent


def test_a_question_is_answered_over_several_steps_and_tokens_are_summed() -> None:
    with upstream(CALL, "It is 8.") as server, gateway(config_of(agent(server))) as running:
        made = client(running).chat.completions.create(model="assistant", messages=ask("Double 4."))
        assert made.choices[0].message.content == "It is 8."
        assert made.choices[0].finish_reason == "stop"
        assert made.usage is not None
        assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (20, 6)
        [trace] = running.traces()
        assert made.id == f"chatcmpl-{trace.run_id}"
        assert trace.started is not None
        assert trace.started.labels == {"key": "", "agent": "assistant", "via": "chat"}
        assert made.model_extra is not None
        assert made.model_extra["agent"]["steps"] == 2


def test_the_answer_is_streamed_while_the_model_writes_it() -> None:
    reply = {"pieces": ["First ", "words, ", "then more."], "waits": True}
    with upstream(reply) as server, gateway(config_of(agent(server))) as running:
        stream = client(running).chat.completions.create(model="assistant", messages=ask("Go."), stream=True)
        chunks = iter(stream)
        first = next(chunks)
        assert first.choices[0].delta.role == "assistant"
        assert first.choices[0].delta.content == "First"  # and the model has not gone on yet
        assert server.waiting.wait(20)
        server.go_on()
        rest = list(chunks)
        text = "First" + "".join(chunk.choices[0].delta.content or "" for chunk in rest)
        assert text == "First words, then more."
        assert rest[-1].choices[0].finish_reason == "stop"


def test_steps_come_as_they_happen_for_a_client_that_asks_for_them() -> None:
    with upstream(CALL, "It is 8.") as server, gateway(config_of(agent(server))) as running:
        options: Any = {"include_usage": True, "include_steps": True}
        stream = client(running).chat.completions.create(
            model="assistant",
            messages=ask("Double 4."),
            stream=True,
            stream_options=options,
        )
        chunks = list(stream)
        kinds = [(chunk.model_extra or {}).get("agent", {}).get("event", {}).get("kind") for chunk in chunks]
        assert [kind for kind in kinds if kind] == [
            "model_replied",
            "action_requested",
            "observed",
            "model_replied",
            "finished",
        ]
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 26


def test_a_vote_is_streamed_as_one_answer_and_its_samples_as_steps() -> None:
    with (
        upstream("Lyon", "Paris", "paris.") as server,
        gateway(config_of(agent(server, strategy="cot_sc:n=3"))) as running,
    ):
        options: Any = {"include_usage": True, "include_steps": True}
        stream = client(running).chat.completions.create(
            model="assistant", messages=ask("Which city?"), stream=True, stream_options=options
        )
        chunks = list(stream)
        contents = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert "".join(content or "" for content in contents) == "Paris"
        kinds = [(chunk.model_extra or {}).get("agent", {}).get("event", {}).get("kind") for chunk in chunks]
        assert [kind for kind in kinds if kind] == ["model_replied"] * 3 + ["voted", "finished"]
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 39
        assert [request["temperature"] for request in server.asked] == [0.7] * 3


def test_the_todo_list_of_a_run_comes_with_its_answer() -> None:
    todos = [{"text": "double it", "state": "done"}, {"text": "check it", "state": "open"}]
    call = {"tool_calls": [{"name": "update_todos", "args": {"todos": todos}}]}
    with upstream(call, "8") as server, gateway(config_of(agent(server, tools=["update_todos"]))) as running:
        made = client(running).chat.completions.create(model="assistant", messages=ask("Double 4."))
        assert made.model_extra is not None
        assert made.model_extra["agent"]["todos"] == todos
        run_id = made.model_extra["agent"]["run_id"]
        shown = client(running).get(f"/runs/{run_id}", cast_to=dict[str, Any])
        assert shown["todos"] == todos


class Weather(BaseModel):
    city: str
    degrees: int


def test_structured_answers_fit_and_are_sent_back_once() -> None:
    with (
        upstream("Rome has 21.", '{"city": "Rome", "degrees": 21}') as server,
        gateway(config_of(agent(server))) as running,
    ):
        made = client(running).chat.completions.parse(model="assistant", messages=ask("Rome?"), response_format=Weather)
        assert made.choices[0].message.parsed == Weather(city="Rome", degrees=21)
        assert len(server.asked) == 2


def test_a_json_answer_of_an_ai_agent_file_is_made_by_one_more_call() -> None:
    schema = Weather.model_json_schema()
    with upstream("Rome has 21 degrees.", '{"city": "Rome", "degrees": 21}') as server:
        served = ServedAgent(name="weather", agent=agent(server), reshape=schema)
        with gateway(config_of(served)) as running:
            made = client(running).chat.completions.create(model="weather", messages=ask("Rome?"))
            assert Weather.model_validate_json(made.choices[0].message.content or "") == Weather(
                city="Rome", degrees=21
            )
            assert made.usage is not None
            assert made.usage.total_tokens == 26


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_of_the_clients_own_tool_ends_the_turn_and_the_next_request_goes_on(streamed: bool) -> None:
    with upstream(CALL, LOOK, "The sky is red and it is 8.") as server, gateway(config_of(agent(server))) as running:
        chat = client(running).chat.completions
        messages = ask("Double 4 and look outside.")
        if streamed:
            with client(running).chat.completions.stream(
                model="assistant", messages=messages, tools=[CLIENT_TOOL]
            ) as stream:
                first: Any = stream.get_final_completion()
        else:
            first = chat.create(model="assistant", messages=messages, tools=[CLIENT_TOOL])
        choice = first.choices[0]
        assert choice.finish_reason == "tool_calls"
        [call] = choice.message.tool_calls
        assert (call.function.name, call.function.arguments) == ("look_outside", '{"window": "east"}')
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call.model_dump(exclude_none=True)]},
            {"role": "tool", "tool_call_id": call.id, "content": "all red"},
        ]
        done = chat.create(model="assistant", messages=messages, tools=[CLIENT_TOOL])
        assert done.choices[0].message.content == "The sky is red and it is 8."
        [trace] = running.traces()  # one run, not two
        assert trace.status == "completed"
        assert "all red" in server.asked[-1]["messages"][-1]["content"]
        unknown: Any = {**messages[-1], "tool_call_id": "call_x"}
        with pytest.raises(openai.BadRequestError, match="tool_call_id"):
            chat.create(model="assistant", messages=[*messages[:-1], unknown])


def test_words_before_a_call_are_streamed_once() -> None:
    with upstream({**LOOK, "text": "I look."}) as server, gateway(config_of(agent(server))) as running:
        stream = client(running).chat.completions.create(
            model="assistant", messages=ask("Look outside."), tools=[CLIENT_TOOL], stream=True
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "I look."


@pytest.mark.parametrize(
    ("word", "sent"), [("yes", True), ("同意", True), ("no: not now", False), ("Send it to Bob", False)]
)
def test_what_needs_a_person_waits_and_goes_on_with_the_next_message(word: str, sent: bool) -> None:
    SENT.clear()
    with upstream(NOTE, "Done.") as server, gateway(config_of(agent(server, tools=[send_note]))) as running:
        chat = client(running).chat.completions
        messages = ask("Say hello to everybody who is nice.")
        first = chat.create(model="assistant", messages=messages)
        text = first.choices[0].message.content or ""
        assert 'send_note({"to": "Ann", "text": "hello"})' in text
        assert first.model_extra is not None
        assert first.model_extra["agent"]["status"] == "waiting"
        assert SENT == []
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": word}]
        done = chat.create(model="assistant", messages=messages)
        assert done.choices[0].message.content == "Done."
        assert [one["to"] for one in SENT] == (["Ann"] if sent else [])
        [trace] = running.traces()
        if word == "Send it to Bob":
            assert word in server.asked[-1]["messages"][-1]["content"]
        assert trace.status == "completed"


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        ((500, {"error": {"message": "boom"}}), 502, "model_unavailable"),
        ((429, {"error": {"message": "slow down"}}), 429, "model_rate_limited"),
        ((401, {"error": {"message": "bad key"}}), 502, "model_auth"),
        ((404, {"error": {"message": "no such model"}}), 502, "model_not_found"),
        ((400, {"error": {"message": "maximum context length is 8192 tokens"}}), 400, "context_length_exceeded"),
        ((413, "too large"), 400, "context_length_exceeded"),
        ((400, {"error": {"message": "no", "code": "content_filter"}}), 400, "content_filter"),
        ((200, "<html>hello</html>"), 502, "model_reply_unreadable"),
        ((200, {"error": {"message": "in a body"}}), 502, None),
        ((200, {"id": "x"}), 502, None),
        ({"text": "", "breaks": True}, 502, None),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_that_fails_is_an_error_in_openais_form(
    reply: Any, status: int, code: str | None, streamed: bool
) -> None:
    if isinstance(reply, dict) and not streamed:
        reply = (200, "")
    with (
        upstream(reply) as server,
        gateway(config_of(agent(server))) as running,
        pytest.raises(openai.APIStatusError) as told,
    ):
        list(client(running).chat.completions.create(model="assistant", messages=ask("Hi."), stream=streamed))
    assert told.value.status_code == status
    if code is not None:
        assert told.value.code == code
    assert "sk-upstream" not in str(told.value)
    if status == 429:
        assert told.value.response.headers["retry-after"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("task", "says"), [("Hi.", "I cannot do this task"), ("你好", "我做不了这个任务")])
def test_what_the_offline_model_cannot_do_is_told_plainly_and_not_tried_again(
    task: str, says: str, streamed: bool
) -> None:
    made = Agent(name="assistant", model="offline", tools=["calculator"])
    with gateway(config_of(made)) as running:
        with pytest.raises(openai.BadRequestError, match=says) as told:
            list(client(running).chat.completions.create(model="assistant", messages=ask(task), stream=streamed))
        assert told.value.code == "model_request_refused"
        [trace] = running.traces()
        assert trace.status == "model_failed"


def test_a_model_that_is_silent_is_a_gateway_timeout() -> None:
    slow = {"text": "late", "hangs": True}
    with upstream(slow) as server, gateway(config_of(agent(server, model_timeout_s=0.2))) as running:
        with pytest.raises(openai.APIStatusError) as told:
            client(running).chat.completions.create(model="assistant", messages=ask("Hi."))
        assert told.value.status_code == 504


def test_a_limit_gives_what_was_found_so_far_and_says_so() -> None:  # S1-59
    limited = {"max_steps": 1, "closing_turn": True}
    with upstream(CALL, "So far: 8.") as server, gateway(config_of(agent(server, **limited))) as running:
        made = client(running).chat.completions.create(model="assistant", messages=ask("Double 4."))
        assert made.choices[0].message.content == "So far: 8."
        assert made.choices[0].finish_reason == "length"
        assert made.model_extra is not None
        assert made.model_extra["agent"]["status"] == "max_steps_exceeded"
    with upstream(CALL) as server, gateway(config_of(agent(server, max_steps=1, closing_turn=False))) as running:
        made = client(running).chat.completions.create(model="assistant", messages=ask("Double 4."))
        assert "max_steps" in (made.choices[0].message.content or "")
        assert made.choices[0].finish_reason == "length"


def test_an_answer_that_is_cut_at_the_clients_own_limit_of_tokens_says_so() -> None:
    cut = {"text": "This is an answer that was cu", "finish_reason": "length"}
    with upstream(cut) as server, gateway(config_of(agent(server))) as running:
        made = client(running).chat.completions.create(model="assistant", messages=ask("Go on."), max_tokens=5)
        assert made.choices[0].message.content == cut["text"]
        assert made.choices[0].finish_reason == "length"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_leaves_stops_its_run(streamed: bool) -> None:
    reply = {"pieces": ["One ", "two."], "waits": True} if streamed else {"text": "late", "hangs": True}
    with upstream(reply) as server, gateway(config_of(agent(server))) as running:
        if streamed:
            stream = client(running).chat.completions.create(model="assistant", messages=ask("Hi."), stream=True)
            next(iter(stream))
            stream.close()
        else:
            with pytest.raises(openai.APITimeoutError):
                client(running, timeout=0.3).chat.completions.create(model="assistant", messages=ask("Hi."))
        until(lambda: running.traces()[0].status == "stopped")  # while the model still waits


def test_interleaved_requests_see_nothing_of_each_other() -> None:  # S1-56
    def echo(body: dict[str, Any]) -> str:
        users = [str(message["content"]) for message in body["messages"] if message["role"] == "user"]
        return " | ".join(users)

    with upstream(echo) as server, gateway(config_of(agent(server, tools=[]))) as running:

        async def all_at_once() -> list[str]:
            async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0) as sdk:

                async def one(number: int) -> str:
                    made = await sdk.chat.completions.create(model="assistant", messages=ask(f"secret {number}"))
                    return made.choices[0].message.content or ""

                return list(await asyncio.gather(*(one(number) for number in range(20))))

        answers = asyncio.run(all_at_once())
        for number, text in enumerate(answers):
            assert f"secret {number}" in text
            assert (
                sum(f"secret {other}" in text.split() or text.endswith(f"secret {other}") for other in range(20)) == 1
            )
        assert len({trace.run_id for trace in running.traces()}) == 20


def test_settings_of_the_request_reach_the_model_and_stop_cuts_the_answer() -> None:
    with upstream("One. Two. Three.") as server, gateway(config_of(agent(server))) as running:
        made = client(running).chat.completions.create(
            model="assistant",
            messages=[{"role": "system", "content": "Speak like a pirate."}, *ask("Count.")],
            temperature=0.7,
            top_p=0.5,
            max_tokens=33,
            stop=[" Three"],
            user="ann",
            seed=3,
        )
        assert made.choices[0].message.content == "One. Two."
        [asked] = server.asked
        assert (asked["temperature"], asked["top_p"], asked["max_tokens"]) == (0.7, 0.5, 33)
        assert "Speak like a pirate." in asked["messages"][0]["content"]
        [trace] = running.traces()
        assert trace.started is not None
        assert trace.started.labels["user"] == "ann"
        raw = client(running).chat.completions.with_raw_response.create(model="assistant", messages=ask("x"), seed=3)
        assert raw.headers["x-taoloop-ignored"] == "seed"


def test_a_run_that_takes_too_long_ends_by_its_own_limit() -> None:  # S1-62
    slow = {"text": "late", "hangs": True}
    with upstream(slow) as server:
        config = config_of(agent(server, limits=Limits(max_steps=3), closing_turn=False))
        config = replace(config, limits=replace(config.limits, run_timeout_s=0.3))
        with gateway(config) as running:
            made = client(running).chat.completions.create(model="assistant", messages=ask("Hi."))
            assert made.choices[0].finish_reason == "length"
            assert "max_wall_s" in (made.choices[0].message.content or "")


def test_a_silent_stream_gets_comments_and_its_answer_all_the_same() -> None:
    slow = {"text": "At last.", "hangs": True}
    with upstream(slow) as server:
        config = config_of(agent(server))
        with gateway(replace(config, limits=replace(config.limits, heartbeat_s=0.05))) as running:
            body = json.dumps({"model": "assistant", "messages": ask("Hi."), "stream": True}).encode()
            connection = HTTPConnection(running.url.removeprefix("http://"), timeout=20)
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            with closing(connection), connection.getresponse() as answer:
                assert answer.readline().startswith(b": ")
                server.go_on()
                rest = answer.read().decode()
            assert '"content":"At' in rest
            assert rest.endswith("data: [DONE]\n\n")
