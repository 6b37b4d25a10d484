"""Responses through the official OpenAI SDK, against a model server on this machine."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from tests.serve.gateway.clients import CALL, CLIENT_TOOL, LOOK, NOTE, SENT, ask, send_note
from tests.serve.gateway.conftest import agent, client, config_of, gateway, upstream
from tests.serve.gateway.test_chat import Weather

from taoloop.serve.gateway.auth.keys import ApiKey, digest_of
from taoloop.serve.gateway.config.model import ServedAgent


def test_a_question_is_answered_and_tokens_are_summed() -> None:
    with upstream(CALL, "It is 8.") as server, gateway(config_of(agent(server))) as running:
        made = client(running).responses.create(
            model="assistant", input="Double 4.", instructions="Be brief.", user="ann", metadata={"a": "b"}
        )
        assert made.output_text == "It is 8."
        assert made.status == "completed"
        assert made.usage is not None
        assert (made.usage.input_tokens, made.usage.output_tokens, made.usage.total_tokens) == (20, 6, 26)
        assert (made.instructions, made.user, made.metadata) == ("Be brief.", "ann", {"a": "b"})
        [trace] = running.traces()
        assert made.id == f"resp_{trace.run_id}"
        assert trace.started is not None
        assert trace.started.labels == {"key": "", "agent": "assistant", "via": "responses", "user": "ann"}
        assert "Be brief." in server.asked[0]["messages"][0]["content"]


def test_items_of_the_input_are_the_messages_of_the_conversation() -> None:
    items: list[Any] = [
        {"role": "developer", "content": "Speak like a pirate."},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "My name "}, {"type": "input_text", "text": "is Ann."}],
        },
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Ahoy, Ann.", "annotations": []}],
        },
        {"role": "user", "content": "What is my name?"},
    ]
    with upstream("Ann.") as server, gateway(config_of(agent(server))) as running:
        assert client(running).responses.create(model="assistant", input=items).output_text == "Ann."
        told = str(server.asked[0]["messages"])
        assert all(
            text in told for text in ("Speak like a pirate.", "My name is Ann.", "Ahoy, Ann.", "What is my name?")
        )


def test_the_answer_is_streamed_while_the_model_writes_it() -> None:
    reply = {"pieces": ["First ", "words, ", "then more."], "waits": True}
    with upstream(reply) as server, gateway(config_of(agent(server))) as running:
        stream = client(running).responses.create(model="assistant", input="Go.", stream=True)
        events, text = iter(stream), ""
        for event in events:
            if event.type == "response.output_text.delta":
                text += event.delta
                break
        assert text == "First"  # and the model has not gone on yet
        server.go_on()
        rest = list(events)
        text += "".join(event.delta for event in rest if event.type == "response.output_text.delta")
        assert text == "First words, then more."
        assert rest[-1].type == "response.completed"
        assert rest[-1].response.output_text == text
        assert rest[-1].response.usage is not None
        assert rest[-1].response.usage.total_tokens == 13


def test_the_asynchronous_client_asks_many_at_once_and_each_gets_its_own() -> None:
    def echo(body: dict[str, Any]) -> str:
        return str(body["messages"][-1]["content"])

    with upstream(echo) as server, gateway(config_of(agent(server, tools=[]))) as running:

        async def all_at_once() -> list[str]:
            async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0) as sdk:

                async def one(number: int) -> str:
                    stream = await sdk.responses.create(model="assistant", input=f"number {number}", stream=True)
                    return "".join(
                        [event.delta async for event in stream if event.type == "response.output_text.delta"]
                    )

                return list(await asyncio.gather(*(one(number) for number in range(12))))

        for number, text in enumerate(asyncio.run(all_at_once())):
            assert text.endswith(f"number {number}")


def test_the_sdks_own_reader_of_streams_follows_the_events() -> None:
    with (
        upstream(CALL, "It is 8.") as server,
        gateway(config_of(agent(server))) as running,
        client(running).responses.stream(model="assistant", input="Double 4.") as stream,
    ):
        done = stream.get_final_response()
        assert done.output_text.endswith("It is 8.")
        assert done.status == "completed"


def test_a_response_goes_on_from_the_one_before_it() -> None:
    with upstream("Hello Ann.", "Ann.", "Still Ann.") as server, gateway(config_of(agent(server))) as running:
        made = client(running).responses
        first = made.create(model="assistant", input="My name is Ann.")
        second = made.create(model="assistant", input="What is my name?", previous_response_id=first.id)
        assert second.output_text == "Ann."
        assert second.previous_response_id == first.id
        made.create(model="assistant", input="And now?", previous_response_id=second.id)
        told = str(server.asked[-1]["messages"])
        assert all(text in told for text in ("My name is Ann.", "Hello Ann.", "What is my name?", "And now?"))
        branch = made.create(model="assistant", input="Another way.", previous_response_id=first.id)
        assert "What is my name?" not in str(server.asked[-1]["messages"])
        assert branch.output_text == "Still Ann."
        with pytest.raises(openai.BadRequestError, match="only the new message"):
            made.create(model="assistant", input=[*ask("a"), *ask("b")], previous_response_id=first.id)
        for unknown in ("resp_x", "resp_20260101-000000-00000000", "", "\x00", "x" * 10_000):
            with pytest.raises(openai.NotFoundError) as told_so:
                made.create(model="assistant", input="And?", previous_response_id=unknown)
            assert (told_so.value.code, told_so.value.param) == ("run_not_found", "previous_response_id")


@pytest.mark.parametrize("streamed", [False, True])
def test_structured_answers_fit_and_are_sent_back_once(streamed: bool) -> None:
    with (
        upstream("Rome has 21.", '{"city": "Rome", "degrees": 21}') as server,
        gateway(config_of(agent(server))) as running,
    ):
        made = client(running).responses
        if streamed:
            with made.stream(model="assistant", input="Rome?", text_format=Weather) as stream:
                parsed = stream.get_final_response().output_parsed
        else:
            parsed = made.parse(model="assistant", input="Rome?", text_format=Weather).output_parsed
        assert parsed == Weather(city="Rome", degrees=21)
        assert len(server.asked) == 2


def test_any_json_object_is_asked_for_by_its_type_alone() -> None:
    with upstream('{"a": 1}') as server, gateway(config_of(agent(server))) as running:
        made = client(running).responses.create(model="assistant", input="x", text={"format": {"type": "json_object"}})
        assert made.output_text == '{"a": 1}'


def test_a_json_answer_of_an_ai_agent_file_is_made_by_one_more_call() -> None:
    with upstream("Rome has 21 degrees.", '{"city": "Rome", "degrees": 21}') as server:
        served = ServedAgent(name="weather", agent=agent(server), reshape=Weather.model_json_schema())
        with gateway(config_of(served)) as running:
            stream = client(running).responses.create(model="weather", input="Rome?", stream=True)
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            assert Weather.model_validate_json(text) == Weather(city="Rome", degrees=21)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("word", "sent"), [("yes", True), ("no: not now", False)])
def test_what_needs_a_person_goes_on_through_the_id_of_the_response(word: str, sent: bool, streamed: bool) -> None:
    SENT.clear()
    with upstream(NOTE, "Done.") as server, gateway(config_of(agent(server, tools=[send_note]))) as running:
        made = client(running).responses
        first = made.create(model="assistant", input="Say hello to everybody who is nice.")
        assert 'send_note({"to": "Ann", "text": "hello"})' in first.output_text
        assert first.model_extra is not None
        assert first.model_extra["agent"]["status"] == "waiting"
        assert SENT == []
        done: Any = made.create(model="assistant", input=word, previous_response_id=first.id, stream=streamed)
        if streamed:
            done = list(done)[-1].response
        assert done.output_text == "Done."
        assert len(SENT) == int(sent)
        [trace] = running.traces()
        assert trace.status == "completed"


def test_a_run_that_waits_for_its_clients_tools_is_not_taken_for_one_that_waits_for_a_person() -> None:
    with upstream(LOOK, "Red.") as server, gateway(config_of(agent(server))) as running:
        chat = client(running).chat.completions
        first = chat.create(model="assistant", messages=ask("Look outside."), tools=[CLIENT_TOOL])
        [trace] = running.traces()
        with pytest.raises(openai.BadRequestError, match="`function_call_output` for each call") as told:
            client(running).responses.create(
                model="assistant", input="yes", previous_response_id=f"resp_{trace.run_id}"
            )
        assert told.value.param == "previous_response_id"
        [call] = first.choices[0].message.tool_calls or []
        answer: Any = {"role": "tool", "tool_call_id": call.id, "content": "all red"}
        assert chat.create(model="assistant", messages=[*ask("x"), answer]).choices[0].message.content == "Red."


@pytest.mark.parametrize("streamed", [False, True])
def test_a_limit_is_an_incomplete_response(streamed: bool) -> None:  # S1-59
    limited = {"max_steps": 1, "closing_turn": True}
    with upstream(CALL, "So far: 8.") as server, gateway(config_of(agent(server, **limited))) as running:
        made: Any = client(running).responses.create(model="assistant", input="Double 4.", stream=streamed)
        if streamed:
            made = list(made)[-1].response
        assert made.status == "incomplete"
        assert made.incomplete_details.reason == "max_output_tokens"
        assert made.output_text.endswith("So far: 8.")
        assert made.model_extra["agent"]["status"] == "max_steps_exceeded"


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        ((500, {"error": {"message": "boom"}}), 502, "model_unavailable"),
        ((429, {"error": {"message": "slow down"}}), 429, "model_rate_limited"),
        ((200, "<html>hello</html>"), 502, "model_reply_unreadable"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_that_fails_before_its_first_word_is_an_error_with_a_status(
    reply: Any, status: int, code: str, streamed: bool
) -> None:
    with (
        upstream(reply) as server,
        gateway(config_of(agent(server))) as running,
        pytest.raises(openai.APIStatusError) as told,
    ):
        list(client(running).responses.create(model="assistant", input="Hi.", stream=streamed))
    assert (told.value.status_code, told.value.code) == (status, code)
    assert "sk-upstream" not in str(told.value)


def test_a_model_that_breaks_off_fails_the_response_and_says_why() -> None:
    with (
        upstream({"pieces": ["Some ", "words"], "breaks": True}) as server,
        gateway(config_of(agent(server))) as running,
    ):
        events = list(client(running).responses.create(model="assistant", input="Hi.", stream=True))
        last = events[-1]
        assert last.type == "response.failed"
        assert last.response.status == "failed"
        assert last.response.error is not None
        assert "model" in last.response.error.message
        assert "sk-upstream" not in str(events)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": ""}, "model"),
        ({"input": []}, "input"),
        ({"input": "   "}, "input[0].content"),
        ({"input": [{"role": "assistant", "content": "a"}]}, "input[0].role"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
            "input[0].content[0].image_url",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "x"}]}]},
            "input[0].content[0].image_url",
        ),
        ({"input": [{"type": "function_call_output", "call_id": "a", "output": "b"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "a"}]}, "input[0].output"),
        ({"input": [{"type": "function_call_output", "output": "b"}]}, "input[0].call_id"),
        (
            {"input": [{"type": "function_call_output", "call_id": "a", "output": [{"type": "input_image"}]}]},
            "input[0].output[0].type",
        ),
        ({"input": [{"type": "function_call", "call_id": "a", "name": "b"}]}, "input[0].arguments"),
        ({"input": [{"type": "item_reference", "id": "msg_20260101-000000-00000000"}]}, "input[0].id"),
        ({"input": [{"type": "item_reference", "id": "fc_x"}]}, "input[0].id"),
        ({"input": [{"id": "\x00"}]}, "input[0].id"),
        ({"input": [{"type": "web_search_call", "id": "a"}]}, "input[0].type"),
        ({"tools": [CLIENT_TOOL]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "double"}]}, "tools[0].name"),
        (
            {"tools": [{"type": "function", "name": "a", "parameters": {"properties": 3}}]},
            "tools[0].parameters.properties",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}}, "text.format.name"),
        ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "no"}}}}, "text.format.schema"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"metadata": {"a": 1}}, "metadata.a"),
    ],
)
def test_an_error_names_the_field(changes: dict[str, Any], param: str) -> None:
    with upstream("x") as server, gateway(config_of(agent(server))) as running:
        with pytest.raises(openai.BadRequestError) as told:
            client(running).responses.create(**{"model": "assistant", "input": "Hi.", **changes})
        assert told.value.param == param
        assert param in told.value.message
        assert server.asked == []


def test_what_has_no_effect_is_named_in_a_header() -> None:
    with upstream("x") as server, gateway(config_of(agent(server))) as running:
        raw = client(running).responses.with_raw_response.create(
            model="assistant", input="Hi.", parallel_tool_calls=False, reasoning={"effort": "low"}
        )
        assert raw.headers["x-taoloop-ignored"] == "parallel_tool_calls,reasoning"


def test_a_key_sees_no_run_of_another_one() -> None:
    keys = tuple(ApiKey(name=name, digest=digest_of(f"tao-{name}-secret")) for name in ("ann", "bob"))
    with upstream("Hello.") as server, gateway(config_of(agent(server), keys=keys)) as running:
        first = client(running, api_key="tao-ann-secret").responses.create(model="assistant", input="Hi.")
        with pytest.raises(openai.NotFoundError) as told:
            client(running, api_key="tao-bob-secret").responses.create(
                model="assistant", input="Hi.", previous_response_id=first.id
            )
        assert told.value.code == "run_not_found"
