"""OpenAI's Responses API over a real socket: what is sent, what is read, what is streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.models.provider_answers import ask, ask_streaming, events, whole
from tests.pictures import png

from taoloop import Agent, tool
from taoloop.core.images import Image
from taoloop.core.message import ToolCallText
from taoloop.core.views.transcript import Result
from taoloop.errors import (
    ModelContentRefused,
    ModelRateLimited,
    ModelReplyUnreadable,
    ModelRequestRefused,
    ModelUnavailable,
)
from taoloop.models.http.sdk_request import openai_target
from taoloop.models.openai_responses import OpenAIResponsesModel
from taoloop.models.providers import Endpoint
from taoloop.models.registry import resolve_model
from taoloop.testing import HttpDouble


@tool(tier="read", use_when="Two numbers are to be added.")
async def add(a: int, b: int = 0) -> int:
    """Add two integers."""
    return a + b


USAGE = {"input_tokens": 20, "input_tokens_details": {"cached_tokens": 12}, "output_tokens": 7, "total_tokens": 27}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "add", "arguments": '{"a":2,"b":3}'}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Adding."}]}


def response(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.2", "usage": USAGE}
    return {**body, "error": None, "incomplete_details": None, "output": list(items), **fields}


def text_item(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def model(server: HttpDouble, name: str = "gpt-5.2") -> OpenAIResponsesModel:
    return OpenAIResponsesModel(
        Endpoint(provider="openai", model=name, api_key="k-secret", base_url=f"{server.url}/v1")
    )


def run(server: HttpDouble, task: Any = "add 2 and 3", **options: Any) -> Result:
    env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k-secret"}
    return Agent(model="openai-responses:gpt-5.2", tools=[add], env=env, **options).run_sync(task)


def test_a_run_calls_a_tool_and_answers() -> None:
    answers = [whole(200, response(REASONING, CALL)), whole(200, response(text_item("It is 5.")))]
    with HttpDouble(answers) as server:
        result = run(server)
    assert (result.status, result.answer) == ("completed", "It is 5.")
    first, second = server.requests
    assert first["store"] is False
    assert [item["role"] for item in first["input"]] == ["system", "user"]
    [described] = [each for each in first["tools"] if each["name"] == "add"]
    assert (described["type"], described["strict"]) == ("function", False)
    assert second["input"][: len(first["input"])] == first["input"]
    call, output = second["input"][-2:]
    assert {name: call[name] for name in ("type", "call_id", "name")} == {
        "type": "function_call",
        "call_id": output["call_id"],
        "name": "add",
    }
    assert json.loads(call["arguments"]) == {"a": 2, "b": 3}
    assert "id" not in call, "the provider stores no items that an id could name"
    assert output["type"] == "function_call_output"
    assert "5" in output["output"]


def test_the_request_goes_to_the_responses_of_the_address_with_the_key() -> None:
    with HttpDouble([whole(200, response(text_item("5")))]) as server:
        ask(model(server))
        assert openai_target(model(server).endpoint, "/responses").url == f"{server.url}/v1/responses"
    assert server.headers[0]["authorization"] == "Bearer k-secret"


def test_a_whole_response_has_text_thinking_calls_and_usage() -> None:
    with HttpDouble([whole(200, response(REASONING, text_item("I add."), CALL))]) as server:
        reply = ask(model(server))
    assert (reply.text, reply.thinking, reply.finish_reason) == ("I add.", "Adding.", "tool_calls")
    assert reply.tool_calls == (ToolCallText(name="add", arguments='{"a":2,"b":3}', id="call_a"),)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens) == (20, 12, 7)


def test_a_stream_is_heard_as_it_comes() -> None:
    empty_call = {**CALL, "arguments": ""}
    stream = [
        {"type": "response.created", "response": response()},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Adding."},
        {"type": "response.output_item.added", "output_index": 1, "item": text_item("")},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "I "},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "add."},
        {"type": "response.output_item.done", "output_index": 1, "item": text_item("I add.")},
        {"type": "response.output_item.added", "output_index": 2, "item": empty_call},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a":2,'},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '"b":3}'},
        {"type": "response.function_call_arguments.done", "output_index": 2, "arguments": '{"a":2,"b":3}'},
        {"type": "response.output_item.done", "output_index": 2, "item": CALL},
        {"type": "response.completed", "response": response(text_item("I add."), CALL)},
    ]
    with HttpDouble([events(stream, end=b"")]) as server:
        reply, deltas = ask_streaming(model(server))
    assert [delta.text for delta in deltas if delta.kind == "text"] == ["I ", "add."]
    assert [delta.text for delta in deltas if delta.kind == "call" and delta.text] == ['{"a":2,', '"b":3}']
    assert deltas[-1].done
    assert (reply.text, reply.thinking, reply.finish_reason) == ("I add.", "Adding.", "tool_calls")
    assert reply.tool_calls == (ToolCallText(name="add", arguments='{"a":2,"b":3}', id="call_a"),)
    assert server.requests[0]["stream"] is True


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_a_response_that_broke_off_says_why(reason: str, finish: str) -> None:
    body = response(text_item("It"), status="incomplete", incomplete_details={"reason": reason})
    with HttpDouble([whole(200, body)]) as server:
        assert ask(model(server)).finish_reason == finish


def test_a_stream_that_ends_early_is_no_reply() -> None:
    stream = events([{"type": "response.output_text.delta", "delta": "I "}], end=b"")
    with HttpDouble([stream]) as server, pytest.raises(ModelUnavailable, match="before the reply was whole"):
        ask_streaming(model(server))


def test_refusals_and_failures_are_errors_of_their_kind() -> None:
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot help with that."}]}
    failed = response(status="failed", error={"code": "rate_limit_exceeded", "message": "Rate limit reached"})
    error = {"type": "error", "code": "server_error", "message": "The server had an error", "param": None}
    with HttpDouble(
        [
            whole(200, response(refusal)),
            events([{"type": "response.refusal.delta", "delta": "I cannot"}, _done()], end=b""),
            whole(200, failed),
            events([error], end=b""),
            whole(200, {"id": "resp_1", "object": "response"}),
        ]
    ) as server:
        responses = model(server)
        with pytest.raises(ModelContentRefused, match="I cannot help with that"):
            ask(responses)
        with pytest.raises(ModelContentRefused, match="I cannot"):
            ask_streaming(responses)
        with pytest.raises(ModelRateLimited):
            ask(responses)
        with pytest.raises(ModelUnavailable):
            ask_streaming(responses)
        with pytest.raises(ModelReplyUnreadable):
            ask(responses)


def _done() -> dict[str, Any]:
    return {"type": "response.completed", "response": response()}


@pytest.mark.parametrize("setting", ["seed", "stop"])
def test_settings_that_the_api_has_not_are_refused_before_anything_is_sent(setting: str) -> None:
    with HttpDouble([]) as server:
        with pytest.raises(ModelRequestRefused, match=f"no setting '{setting}'"):
            ask(model(server), settings={setting: 1 if setting == "seed" else ("x",)})
        assert server.requests == []


def test_effort_and_further_fields_are_sent() -> None:
    with HttpDouble([whole(200, response(text_item("5")))]) as server:
        ask(model(server), settings={"reasoning_effort": "low", "extra_body": {"service_tier": "flex"}})
    [request] = server.requests
    assert (request["reasoning"], request["service_tier"]) == ({"effort": "low"}, "flex")


def test_the_format_of_the_output_is_sent_and_left_out_where_it_is_refused() -> None:
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    refusal = {"error": {"message": "Invalid schema for response_format", "param": "text.format.schema"}}
    answer = response(text_item('{"total": 5}'))
    with HttpDouble([whole(200, answer), whole(400, refusal), whole(200, answer)]) as server:
        responses = model(server)
        for _ in range(2):
            assert ask(responses, reply_schema=schema).text == '{"total": 5}'
    first, second, third = server.requests
    assert first["text"]["format"] == {
        "type": "json_schema",
        "name": "reply",
        "schema": {**schema, "additionalProperties": False},
        "strict": True,
    }
    assert "text" in second
    assert "text" not in third


def test_a_model_that_takes_no_temperature_gets_none() -> None:
    refusal = {"error": {"message": "Unsupported parameter: 'temperature' is not supported", "param": "temperature"}}
    with HttpDouble([whole(400, refusal), whole(200, response(text_item("5")))]) as server:
        assert ask(model(server), temperature=0.0).text == "5"
    assert "temperature" not in server.requests[1]


def test_a_picture_is_a_part_of_the_message() -> None:
    with HttpDouble([whole(200, response(text_item("A cat.")))]) as server:
        result = run(server, ["What is it?", Image(png(2, 2))])
    assert result.answer == "A cat."
    content = server.requests[0]["input"][-1]["content"]
    assert [part["type"] for part in content] == ["input_text", "input_image"]
    assert content[1]["image_url"].startswith("data:image/png;base64,")


def test_the_spec_names_the_api_and_needs_the_key_of_openai() -> None:
    resolved = resolve_model("openai-responses:gpt-5.2", {"OPENAI_API_KEY": "k"})
    assert resolved.spec == "openai-responses:gpt-5.2"
