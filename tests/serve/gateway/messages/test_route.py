"""Anthropic's Messages API over HTTP, by its official client."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from tests.pictures import png
from tests.serve.gateway.clients import CALL, NOTE, SENT, post, send_note
from tests.serve.gateway.conftest import Running, agent, config_of, double, gateway, upstream

from taoloop.serve.gateway.auth.keys import new_key

OUTSIDE: Any = {
    "name": "look_outside",
    "description": "The sky.",
    "input_schema": {"type": "object", "properties": {"window": {"type": "string"}}},
}
LOOK = {"text": "I look.", "tool_calls": [{"name": "look_outside", "args": {"window": "east"}}]}
_CLIENTS: list[anthropic.Anthropic] = []


@pytest.fixture(autouse=True)
def _close_clients() -> Iterator[None]:
    SENT.clear()
    yield
    SENT.clear()
    while _CLIENTS:
        _CLIENTS.pop().close()


def client(running: Running, key: str = "none") -> anthropic.Anthropic:
    made = anthropic.Anthropic(base_url=running.url, api_key=key, max_retries=0)
    _CLIENTS.append(made)
    return made


def said(text: str, role: str = "user") -> Any:
    return {"role": role, "content": text}


def asked(*messages: Any, **changes: Any) -> Any:
    return {"model": "assistant", "max_tokens": 100, "messages": [*messages] or [said("Double 4.")], **changes}


def test_a_message_is_the_answer_of_a_run_whole_or_as_it_is_written() -> None:
    with (
        upstream(CALL, "It is 8.", CALL, "It is 8.") as server,
        gateway(config_of(agent(server), protocols=("messages",))) as running,
    ):
        create = client(running).messages.create
        made = create(**asked(system="Be brief.", metadata={"user_id": "u1"}))
        assert [block.to_dict() for block in made.content] == [{"type": "text", "text": "It is 8."}]
        assert (made.stop_reason, made.model) == ("end_turn", "assistant")
        assert (made.usage.input_tokens, made.usage.output_tokens) == (20, 6)
        assert "Be brief." in str(server.asked[0]["messages"][0])
        assert server.asked[0]["max_tokens"] == 100
        [trace] = running.traces()
        labels = {} if trace.started is None else trace.started.labels
        assert labels == {"key": "", "agent": "assistant", "via": "messages", "user": "u1"}
        assert made.id == f"msg_{trace.run_id}"

        with client(running).messages.stream(**asked()) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        assert text == "Let me see.\n\nIt is 8."
        assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 6)
        assert post(running, asked(top_k=3), path="/v1/messages")[0] == 200


def test_tools_of_the_client_are_called_and_their_results_continue_the_run() -> None:
    with (
        upstream(LOOK, "Red.", LOOK, "Blue.") as server,
        gateway(config_of(agent(server), protocols=("messages",))) as running,
    ):
        messages = client(running).messages
        first = messages.create(**asked(said("Look."), tools=[OUTSIDE], tool_choice={"type": "auto"}))
        assert first.stop_reason == "tool_use"
        [text, call] = first.content
        assert call.type == "tool_use"
        assert (text.to_dict()["text"], call.name, call.input) == ("I look.", "look_outside", {"window": "east"})
        result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "all red"}]}
        extra = {"type": "text", "text": "Be quick."}
        turn = [said("Look."), {"role": "assistant", "content": first.content}]
        made = messages.create(**asked(*turn, {"role": "user", "content": [result, extra]}, tools=[OUTSIDE]))
        assert made.content[0].to_dict()["text"] == "Red."
        assert "all red" in str(server.asked[-1]["messages"])
        assert "Be quick." in str(server.asked[-1]["messages"])
        assert len(running.traces()) == 1

        with messages.stream(**asked(said("Look."), tools=[OUTSIDE])) as stream:
            final = stream.get_final_message()
        assert final.stop_reason == "tool_use"
        call = final.content[-1]
        assert call.type == "tool_use"
        assert call.input == {"window": "east"}
        wrong = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "red"}
        with pytest.raises(anthropic.BadRequestError, match=r"messages\[2\]\.content\[1\]\.tool_use_id"):
            messages.create(**asked(*turn, {"role": "user", "content": [result, wrong]}))


def test_what_waits_is_approved_by_the_next_message() -> None:
    with (
        upstream(NOTE, "Done.") as server,
        gateway(config_of(agent(server, tools=[send_note]), protocols=("messages",))) as running,
    ):
        create = client(running).messages.create
        task = said("Send a note that says hello.")
        waiting = create(**asked(task)).content[0].to_dict()["text"]
        assert '"Ann"' in str(waiting)
        made = create(**asked(task, said(str(waiting), "assistant"), said("yes")))
        assert made.content[0].to_dict()["text"] == "Done."
        assert [note["to"] for note in SENT] == ["Ann"]


def test_an_answer_ends_before_a_stop_sequence_and_at_the_limit() -> None:
    with (
        upstream("One. Two. Three.", {"text": "One.", "finish_reason": "length"}, "One. Two.") as server,
        gateway(config_of(agent(server, tools=[]), protocols=("messages",))) as running,
    ):
        messages = client(running).messages
        made = messages.create(**asked(stop_sequences=["Nine", "Two"]))
        assert (made.content[0].to_dict()["text"], made.stop_reason) == ("One. ", "stop_sequence")
        assert made.stop_sequence == "Two"
        assert messages.create(**asked()).stop_reason == "max_tokens"
        with messages.stream(**asked(stop_sequences=["Two"])) as stream:
            final = stream.get_final_message()
        assert (final.content[0].to_dict()["text"], final.stop_sequence) == ("One. ", "Two")


def test_images_json_and_the_count_of_tokens() -> None:
    with upstream("A cat.", '{"n": 8}') as server:
        seeing = agent(server, tools=[double], describe_image=lambda _image: "a cat")
        with gateway(config_of(seeing, protocols=("messages",))) as running:
            messages = client(running).messages
            source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png()).decode()}
            parts = [{"type": "text", "text": "What is it?"}, {"type": "image", "source": source}]
            assert messages.create(**asked({"role": "user", "content": parts})).stop_reason == "end_turn"
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            made = messages.create(**asked(output_config={"format": {"type": "json_schema", "schema": schema}}))
            assert made.content[0].to_dict()["text"] == '{"n": 8}'
            broken = {"role": "user", "content": [{"type": "image", "source": {**source, "data": "AAAA"}}]}
            with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\]\.content\[0\]\.source"):
                messages.create(**asked(broken))
            text = {"type": "text", "media_type": "text/plain", "data": "May: 7"}
            parts = [{"type": "document", "source": text, "title": "sales.txt"}, {"type": "text", "text": "How much?"}]
            messages.create(**asked({"role": "user", "content": parts}))
            assert "May: 7" in str(server.asked[-1])
            for source, why in (
                ({"type": "url", "url": "https://a.example/a.pdf"}, "reads documents as"),
                ({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}, "not known to read PDF"),
            ):
                document = {"role": "user", "content": [{"type": "document", "source": source}]}
                with pytest.raises(anthropic.BadRequestError, match=why):
                    messages.create(**asked(document))
            few = messages.count_tokens(model="assistant", messages=[said("Hi.")]).input_tokens
            many = messages.count_tokens(model="assistant", messages=[said("Hi. " * 400)], tools=[OUTSIDE]).input_tokens
            assert few > 10  # the agent's own prompt
            assert 400 <= many - few <= 500


def test_errors_have_the_form_of_the_api() -> None:
    secret, key = new_key("ann")
    with upstream((503, "down")) as server:
        config = config_of(agent(server), keys=(replace(key, task_authority="full"),), protocols=("messages",))
        with gateway(config) as running:
            with pytest.raises(anthropic.AuthenticationError) as refused:
                client(running).messages.create(**asked())
            assert refused.value.body == {
                "type": "error",
                "error": {
                    "type": "authentication_error",
                    "message": "The request has an unknown API key. Send `Authorization: Bearer KEY`.",
                    "code": "invalid_api_key",
                    "param": None,
                },
            }
            assert refused.value.request_id
            messages = client(running, secret).messages
            with pytest.raises(anthropic.NotFoundError, match="nobody"):
                messages.create(**asked(model="nobody"))
            with pytest.raises(anthropic.InternalServerError, match="down or cannot be reached"):
                messages.create(**asked())
            for changes, field in (
                ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0].type"),
                ({"tools": [{**OUTSIDE, "input_schema": {"properties": 5}}]}, "tools[0].input_schema"),
                ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "messages[0].content[0]"),
                ({"messages": [said("Hi."), said("So?", "assistant")]}, "messages[1]"),
                ({"mcp_servers": [{"url": "https://x.example"}]}, "mcp_servers"),
                ({"max_tokens": 0}, "max_tokens"),
            ):
                status, body = post(running, asked(**changes), path="/v1/messages", **{"x-api-key": secret})
                assert (status, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")
                assert field in body["error"]["message"]
        with gateway(replace(config, keys=(), protocols=())) as running:
            messages = client(running).messages
            with pytest.raises(anthropic.NotFoundError, match="--protocol messages"):
                messages.create(**asked())
