"""Anthropic's messages API over a real socket: what is sent, what is read, what is streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.models.provider_answers import Act, ask, ask_streaming, asking, events, whole

from taoloop import Agent, Limits, tool
from taoloop.core.message import Delta, Message, ToolCallText
from taoloop.core.views.transcript import Result
from taoloop.errors import ModelContentRefused, ModelUnavailable
from taoloop.models.anthropic import AnthropicModel, convert_messages
from taoloop.models.http.reply_builder import ToolNameMap
from taoloop.models.http.sdk_request import anthropic_target
from taoloop.models.providers import Endpoint
from taoloop.testing import HttpDouble
from taoloop.tools.builtin.calculator import calculator


@tool(tier="read", use_when="Two numbers are to be added.")
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def message(*blocks: dict[str, Any], stop_reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 7, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100}
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5-20251001",
        "content": list(blocks),
        "stop_reason": stop_reason,
        "usage": usage,
        **fields,
    }


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


CALLS = [
    {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 2, "b": 3}},
    {"type": "tool_use", "id": "toolu_2", "name": "add", "input": {"a": 4, "b": 5}},
]
FIVE = whole(200, message(said("5")))


def model(server: HttpDouble) -> AnthropicModel:
    return AnthropicModel(Endpoint(provider="anthropic", model="claude-x", api_key="k-secret", base_url=server.url))


def run(server: HttpDouble, **options: Any) -> Result:
    env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k-secret"}
    return Agent(model="anthropic:claude-x", tools=[add], env=env, **options).run_sync("add 2 and 3")


def unmarked(value: Any) -> Any:
    """Without the marks for caching, which move along."""
    if isinstance(value, dict):
        return {name: unmarked(part) for name, part in value.items() if name != "cache_control"}
    return [unmarked(part) for part in value] if isinstance(value, list) else value


def test_a_run_calls_tools_and_counts_cached_input_as_input() -> None:
    """S0-28, S0-29: all of the API is here; the loop sees text, calls and usage."""
    acts = [whole(200, message(said("I add."), *CALLS, stop_reason="tool_use")), FIVE]
    with HttpDouble(acts) as server:
        result = run(server)
    assert (result.status, result.answer) == ("completed", "5")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.cached_tokens) == (246, 14, 200)
    first, second = server.requests
    assert [request["path"] for request in server.requests] == ["/v1/messages"] * 2
    assert first["tools"][0]["name"] == "add"
    assert first["tools"][0]["input_schema"]["type"] == "object"
    assert "Two numbers" in first["tools"][0]["description"]
    earlier, later = unmarked(first["messages"]), unmarked(second["messages"])
    assert later[: len(earlier)] == earlier, "the prompt only grows"
    assistant, user = later[-2:]
    assert [block["type"] for block in assistant["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["type"] for block in user["content"]] == ["tool_result", "tool_result"]
    assert [block["tool_use_id"] for block in user["content"]] == [block["id"] for block in assistant["content"][1:]]


def test_the_system_prompt_is_sent_once() -> None:
    """S4-60: the printed code sends it in `system` and among the messages."""
    with HttpDouble([FIVE]) as server:
        run(server)
    [request] = server.requests
    [system] = request["system"]
    assert [turn["role"] for turn in request["messages"]] == ["user"]
    assert json.dumps(request).count(json.dumps(system["text"])) == 1


def test_the_prompt_so_far_is_marked_for_caching() -> None:
    with HttpDouble([whole(200, message(*CALLS, stop_reason="tool_use")), FIVE]) as server:
        run(server)
    for request in server.requests:
        marked = [block for turn in request["messages"] for block in turn["content"] if "cache_control" in block]
        assert marked == [request["messages"][-1]["content"][-1]]
        assert request["system"][-1]["cache_control"] == {"type": "ephemeral"}


def test_the_key_goes_as_the_sdk_says_and_not_into_the_trace() -> None:
    with HttpDouble([FIVE]) as server:
        result = run(server)
    [headers] = server.headers
    assert "k-secret" in (headers.get("authorization", "") + headers.get("x-api-key", ""))
    assert headers["anthropic-version"]
    assert "k-secret" not in repr(result.trace.events)


def test_temperature_and_top_p_are_sent_to_the_version_that_takes_them() -> None:
    """S3-23: decisions with temperature 0.2 and top_p 0.9."""
    with HttpDouble([FIVE, FIVE]) as server:
        target = model(server)
        ask(target, temperature=0.2, top_p=0.9)
        ask(target)
    first, second = server.requests
    assert (first["temperature"], first["top_p"]) == (0.2, 0.9)
    assert server.headers[0]["anthropic-version"] == "2023-06-01"
    assert not {"temperature", "top_p"} & second.keys()
    assert server.headers[1]["anthropic-version"] >= "2023-06-01"


def refusal(text: str) -> Act:
    return whole(400, {"type": "error", "error": {"type": "invalid_request_error", "message": text}})


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (["`temperature` and `top_p` cannot both be specified for this model. Please use only one."], {"temperature"}),
        (["temperature: Extra inputs are not permitted", "top_p: Extra inputs are not permitted"], set()),
        (["`temperature` is deprecated for this model.", "`top_p` is deprecated for this model."], set()),
    ],
)
def test_sampling_that_a_model_does_not_take_is_left_out_from_then_on(texts: list[str], left: set[str]) -> None:
    with HttpDouble([*map(refusal, texts), FIVE, FIVE]) as server:
        target = model(server)
        assert [ask(target, temperature=0.2, top_p=0.9).text for _ in range(2)] == ["5", "5"]
    for request in server.requests[-2:]:
        assert request.keys() & {"temperature", "top_p"} == left
    own = anthropic_target(target.endpoint).headers["anthropic-version"]
    assert server.headers[-1]["anthropic-version"] == ("2023-06-01" if left else own)


def test_a_bound_for_the_reply_is_always_sent() -> None:
    with HttpDouble([FIVE, FIVE]) as server:
        ask(model(server))
        ask(model(server), max_output_tokens=50)
    assert [request["max_tokens"] for request in server.requests] == [16_384, 50]


def test_blank_stop_sequences_are_not_sent() -> None:
    with HttpDouble([FIVE, FIVE]) as server:
        ask(model(server), stop=("\nObservation:", "\n\n"))
        ask(model(server), stop=("\n",))
    assert server.requests[0]["stop_sequences"] == ["\nObservation:"]
    assert "stop_sequences" not in server.requests[1]


def test_a_closing_turn_tells_the_tools_but_takes_no_call() -> None:
    with HttpDouble([whole(200, message(*CALLS, stop_reason="tool_use")), FIVE]) as server:
        assert run(server, limits=Limits(max_steps=1)).answer == "5"
    first, closing = server.requests
    assert "tool_choice" not in first
    assert (closing["tools"], closing["tool_choice"]) == (first["tools"], {"type": "none"})
    assert [block["type"] for block in closing["messages"][-1]["content"]] == ["tool_result", "tool_result", "text"]


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("something_new", "something_new"),
        (None, None),
    ],
)
def test_why_it_stopped_is_told_in_the_words_of_the_dialects(stop_reason: Any, finish_reason: str | None) -> None:
    with HttpDouble([whole(200, message(said("5"), stop_reason=stop_reason))]) as server:
        assert ask(model(server)).finish_reason == finish_reason


def test_a_refusal_is_an_error_with_its_reason() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}
    body = message(stop_reason="refusal", stop_details=details)
    with HttpDouble([whole(200, body)]) as server, pytest.raises(ModelContentRefused, match="It could do harm"):
        ask(model(server))


def test_thinking_is_kept_apart_and_off_the_trace() -> None:
    """S2-3: full thoughts are not stored."""
    body = message({"type": "thinking", "thinking": "hmm, deep", "signature": "s"}, said("5"))
    with HttpDouble([whole(200, body), whole(200, body)]) as server:
        reply = ask(model(server))
        result = run(server)
    assert (reply.text, reply.thinking) == ("5", "hmm, deep")
    assert "hmm, deep" not in repr(result.trace.events)


SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer", "minimum": 0}}, "required": ["sum"]}


def test_a_schema_for_the_reply_is_sent_in_the_form_that_the_api_takes() -> None:
    with HttpDouble([FIVE]) as server:
        ask(model(server), reply_schema=SCHEMA)
    sent = server.requests[0]["output_config"]["format"]
    assert (sent["type"], sent["schema"]["additionalProperties"]) == ("json_schema", False)
    assert "minimum" not in sent["schema"]["properties"]["sum"]


def test_a_schema_for_the_answer_is_sent_beside_tools() -> None:
    with HttpDouble([FIVE]) as server:
        ask(model(server), reply_schema=SCHEMA, tools=(calculator.card,))
    assert server.requests[0]["tools"]
    assert server.requests[0]["output_config"]["format"]["type"] == "json_schema"


def test_a_schema_that_the_api_refuses_is_left_out_from_then_on() -> None:
    with HttpDouble([refusal("output_config.format.schema: too complex"), FIVE, FIVE, FIVE]) as server:
        target = model(server)
        ask(target, reply_schema=SCHEMA)
        ask(target, reply_schema=SCHEMA)
        ask(target, reply_schema={**SCHEMA, "title": "another"})
    assert ["output_config" in request for request in server.requests] == [True, False, False, True]


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


START = {"type": "message_start", "message": message(usage={"input_tokens": 9, "output_tokens": 1})}
END = [
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}},
    {"type": "message_stop"},
]
STREAM = [
    START,
    {"type": "ping"},
    *block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "hmm"}),
    *block(1, said(""), {"type": "text_delta", "text": "I "}, {"type": "text_delta", "text": "add."}),
    *block(
        2,
        {**CALLS[0], "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": '{"a": 2,'},
        {"type": "input_json_delta", "partial_json": ' "b": 3}'},
    ),
    *block(3, {"type": "tool_use", "id": "toolu_2", "name": "add", "input": {}}),
    *END,
]


def test_a_stream_is_heard_as_it_comes_and_returned_whole() -> None:
    with HttpDouble([events(STREAM, end=b"")]) as server:
        reply, heard = ask_streaming(model(server))
    assert heard == [
        Delta(kind="thinking", text="hmm"),
        Delta(kind="text", text="I "),
        Delta(kind="text", text="add."),
        Delta(kind="call", index=0, name="add"),
        Delta(kind="call", index=0, name="add", text='{"a": 2,'),
        Delta(kind="call", index=0, name="add", text=' "b": 3}'),
        Delta(kind="call", index=0, name="add", done=True),
        Delta(kind="call", index=1, name="add"),
        Delta(kind="call", index=1, name="add", text="{}"),
        Delta(kind="call", index=1, name="add", done=True),
    ]
    assert (reply.text, reply.thinking, reply.finish_reason) == ("I add.", "hmm", "tool_calls")
    assert [call.arguments for call in reply.tool_calls] == ['{"a": 2, "b": 3}', "{}"]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (9, 30)
    assert server.requests[0]["stream"] is True


@pytest.mark.parametrize("length", range(1, len(STREAM)))
def test_a_stream_that_ends_early_is_no_reply(length: int) -> None:
    with HttpDouble([events(STREAM[:length], end=b"")]) as server, pytest.raises(ModelUnavailable, match="whole"):
        ask_streaming(model(server))


def test_an_error_in_a_stream_is_the_error_that_it_says() -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with HttpDouble([events([START, overloaded])]) as server, pytest.raises(ModelUnavailable, match="529: Over"):
        ask_streaming(model(server))


def test_messages_keep_to_the_rules_of_the_api() -> None:
    call = ToolCallText(name="math.add", arguments='{"a": 1}', id="call 1")
    given = [
        Message(role="system", content="one"),
        Message(role="system", content="two"),
        Message(role="assistant", content="Welcome. \n"),
        Message(role="user", content=" "),
        Message(role="user", content="add"),
        Message(role="assistant", content=" ", tool_calls=(call, ToolCallText(name="add", arguments="oops"))),
        Message(role="tool", content="", tool_call_id="call 1"),
        Message(role="tool", content="no", tool_call_id=None),
        Message(role="system", content="later"),
        Message(role="assistant", content=""),
    ]
    system, found = convert_messages(given, ToolNameMap(["math.add", "add"]))
    assert system == "one\n\ntwo"
    assert unmarked(found) == [
        {"role": "user", "content": [said("(The conversation begins.)")]},
        {"role": "assistant", "content": [said("Welcome.")]},
        {"role": "user", "content": [said("add")]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "call_1", "name": "math_add", "input": {"a": 1}},
                {"type": "tool_use", "id": "none", "name": "add", "input": {"arguments": "oops"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1"},
                {"type": "tool_result", "tool_use_id": "none", "content": [said("no")]},
                said("later"),
            ],
        },
    ]
    assert convert_messages(asking().messages, ToolNameMap(()))[1][-1]["content"][-1]["cache_control"]


def test_settings_of_the_model_have_the_form_of_the_api_and_one_that_it_lacks_is_refused() -> None:
    with HttpDouble([FIVE]) as server:
        run(server, model_settings={"tool_choice": "required", "stop": ["END"], "extra_body": {"top_k": 5}})
    [request] = server.requests
    assert request["tool_choice"] == {"type": "any"}
    assert (request["stop_sequences"][-1], request["top_k"]) == ("END", 5)
    with HttpDouble([]) as server:
        result = run(server, model_settings={"seed": 7})
    assert "Anthropic has no setting 'seed'" in result.reason
