"""The OpenAI-compatible adapter, over a real socket against a server that answers as it is told."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop import Agent, Limits, tool
from taoloop.core.agent_spec import ModelSettings
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, MissingKey
from taoloop.models.http.reply_builder import ToolNameMap
from taoloop.models.registry import default_spec, resolve_model
from taoloop.models.settings import Retry
from taoloop.testing import HttpDouble
from taoloop.testing.fakes import Answer


def completion(message: dict[str, Any], finish_reason: str = "stop") -> tuple[int, Any]:
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": None, **message}}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return 200, {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
        "usage": usage,
    }


CALL = {"tool_calls": [{"id": "x9", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}]}


@tool(tier="read", use_when="Two numbers are to be added.")
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


ONCE = Retry(attempts=1)


def run(server: HttpDouble, **options: Any) -> Result:
    env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "secret-key"}
    return Agent(model="openai:tiny", tools=[add], env=env, retry=ONCE, **options).run_sync("add 2 and 3")


def test_a_run_over_a_socket_calls_the_tool_and_counts_tokens() -> None:
    with HttpDouble([completion(CALL, "tool_calls"), completion({"content": "5"})]) as server:
        result = run(server)
    assert (result.status, result.answer) == ("completed", "5")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (22, 14)
    assert result.cost_usd is None, "an unknown price is not zero"
    first, second = server.requests
    assert first["path"] == "/v1/chat/completions"
    assert first["model"] == "tiny"
    assert first["tools"][0]["function"]["name"] == "add"
    assert "Two numbers" in first["tools"][0]["function"]["description"]
    assert second["messages"][: len(first["messages"])] == first["messages"], "the prompt only grows"
    assistant, observed = second["messages"][-2:]
    assert assistant["tool_calls"][0]["id"] == observed["tool_call_id"]
    assert server.headers[0]["authorization"] == "Bearer secret-key"


def test_settings_of_the_model_are_sent_in_the_form_of_the_api_and_stored() -> None:
    settings: ModelSettings = {
        "reasoning_effort": "low",
        "seed": 7,
        "tool_choice": "add",
        "stop": ["END"],
        "extra_body": {"service_tier": "flex"},
    }
    with HttpDouble([completion(CALL, "tool_calls"), completion({"content": "5"})]) as server:
        result = run(server, model_settings=settings)
    request = server.requests[0]
    assert (request["reasoning_effort"], request["seed"], request["service_tier"]) == ("low", 7, "flex")
    assert request["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert request["stop"][-1] == "END"
    assert result.trace.agent.model_settings == settings
    assert decode_fact("run_started", encode_fact(result.trace.events[0].fact)) == result.trace.events[0].fact


def test_a_setting_that_the_provider_lacks_ends_the_run_with_its_name() -> None:
    refused = {"error": {"message": "Unsupported parameter: seed", "code": "unsupported_parameter", "param": "seed"}}
    with HttpDouble([(400, refused)]) as server:
        result = run(server, model_settings={"seed": 7})
    assert result.status == "model_failed"
    assert "seed" in result.reason
    with HttpDouble([]) as server:
        result = run(server, model_settings={"tool_choice": "sub"})
    assert "'sub' is no tool" in result.reason


@pytest.mark.parametrize("settings", [{"sed": 7}, {"seed": True}, {"stop": "END"}, {"extra_body": {"messages": []}}, 5])
def test_settings_that_mean_nothing_are_refused_before_a_run_begins(settings: Any) -> None:
    with pytest.raises(ConfigError, match="model_settings"):
        Agent(model="offline", model_settings=settings).spec_for("hi")


def test_the_key_does_not_reach_the_trace() -> None:
    with HttpDouble([completion({"content": "5"})]) as server:
        result = run(server)
    assert "secret-key" not in repr(result.trace.events)


def test_a_provider_is_asked_through_its_tool_calls_unless_told_otherwise() -> None:
    """S0-33: the text dialect is one option."""
    for name in ("openai", "azure", "deepseek", "dashscope", "ollama", "vllm", "llamacpp"):
        env = {"OPENAI_API_KEY": "k", "AZURE_OPENAI_API_KEY": "k", "DEEPSEEK_API_KEY": "k", "DASHSCOPE_API_KEY": "k"}
        assert resolve_model(f"{name}:m", {**env, "AZURE_OPENAI_RESOURCE_NAME": "r"}).dialect == "native"


def test_a_text_dialect_sends_no_tools_and_a_stop_sequence() -> None:
    with HttpDouble([completion({"content": "Thought: t\nFinal Answer: 5"})]) as server:
        assert run(server, dialect="text").answer == "5"
    [request] = server.requests
    assert "tools" not in request
    assert any("Observation" in stop for stop in request["stop"])


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((401, {"error": {"message": "bad key", "type": "auth"}}), "401"),
        ((404, {"error": {"message": "no such model"}}), "no such model"),
        (
            (200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []}),
            "without any choice",
        ),
        ((200, b"<html>proxy</html>"), "openai:tiny"),
        ((200, b"\xff\xfe"), "openai:tiny"),
    ],
)
def test_a_provider_that_fails_is_a_stated_end(answer: Answer, text: str) -> None:
    with HttpDouble([answer]) as server:
        result = run(server)
    assert (result.status, result.answer) == ("model_failed", None)
    assert text in result.reason


def test_a_server_that_is_not_there_is_a_stated_end() -> None:
    with HttpDouble([]) as server:
        port = server.port
    env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "k"}
    result = Agent(model="openai:tiny", env=env, retry=ONCE).run_sync("x")
    assert result.status == "model_failed"
    assert f"127.0.0.1:{port}" in result.reason


def test_several_runs_from_sync_code_each_have_a_loop_of_their_own() -> None:
    with HttpDouble([completion({"content": "1"}), completion({"content": "2"})]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        agent = Agent(model="openai:tiny", env=env)
        assert [agent.run_sync("x").answer, agent.run_sync("x").answer] == ["1", "2"]


def test_a_missing_key_names_the_variable() -> None:
    """S4-18."""
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        resolve_model("openai:gpt-4o-mini", {})
    with pytest.raises(MissingKey, match="DEEPSEEK_API_KEY"):
        resolve_model("deepseek:deepseek-chat", {})


@pytest.mark.parametrize(
    ("env", "spec"),
    [
        ({}, "offline"),
        ({"AI_MOCK": "1", "OPENAI_API_KEY": "k"}, "offline"),
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-4o-mini"),
        ({"DEEPSEEK_API_KEY": "k", "DEEPSEEK_MODEL": "deepseek-r"}, "deepseek:deepseek-r"),
        ({"TAOLOOP_MODEL": "scripted:x.yaml", "OPENAI_API_KEY": "k"}, "scripted:x.yaml"),
        ({"OLLAMA_MODEL": "qwen3"}, "ollama:qwen3"),
    ],
)
def test_the_environment_chooses_the_model(env: dict[str, str], spec: str) -> None:
    assert default_spec(env) == spec


def test_the_mock_switch_runs() -> None:
    """S4-17, S4-59 (trap: the printed mock returns no model, so the first call fails)."""
    result = Agent(tools=[add], env={"AI_MOCK": "1"}).run_sync("add 2 and 3")
    assert (result.status, result.trace.agent.model) == ("completed", "offline")
    assert "5" in (result.answer or "")


def called(*names: str) -> dict[str, Any]:
    return {
        "tool_calls": [
            {"id": f"x{n}", "type": "function", "function": {"name": name, "arguments": f'{{"a": {n}, "b": 3}}'}}
            for n, name in enumerate(names)
        ]
    }


def test_names_that_the_api_refuses_are_changed_on_the_way_and_back() -> None:
    tools = [add.with_card(name="math.add"), add.with_card(name="math_add")]
    replies = [completion(called("math_add_2", "math add!", "math.add")), completion({"content": "5"})]
    with HttpDouble(replies) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        result = Agent(model="openai:tiny", tools=tools, env=env).run_sync("add 2 and 3")
    assert result.status == "completed"
    requested = [call.requested.tool for call in result.trace.calls.values()]
    assert requested == ["math.add", "math add!", "math.add"]
    first, second = server.requests
    told = [one["function"]["name"] for one in first["tools"][:2]]
    echoed = [one["function"]["name"] for one in second["messages"][-4]["tool_calls"]]
    assert (told, echoed) == (["math_add_2", "math_add"], ["math_add_2", "math_add_", "math_add_2"])
    assert second["tools"] == first["tools"]


@given(st.lists(st.text(max_size=70)), st.lists(st.text(max_size=70)))
def test_every_name_goes_out_usable_and_comes_back(tools: list[str], invented: list[str]) -> None:
    names = ToolNameMap(tools)
    out = [names.outgoing(name) for name in (*tools, *invented)]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in out)
    assert len({names.outgoing(name) for name in tools}) == len(set(tools))
    assert [names.ours(names.outgoing(name)) for name in tools] == tools


def test_a_closing_turn_tells_the_tools_but_takes_no_call() -> None:
    with HttpDouble([completion(CALL, "tool_calls"), completion({"content": "5"})]) as server:
        result = run(server, limits=Limits(max_steps=1))
    assert result.answer == "5"
    first, closing = server.requests
    assert "tool_choice" not in first
    assert (closing["tools"], closing["tool_choice"]) == (first["tools"], "none")


def test_no_choice_is_sent_where_no_tool_was_called() -> None:
    with HttpDouble([completion({"content": "5"})]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        Agent(model="openai:tiny", env=env).run_sync("x")
    assert not {"tools", "tool_choice"} & server.requests[0].keys()


def refusal(message: str, **fields: Any) -> Answer:
    return 400, {"error": {"message": message, "type": "invalid_request_error", **fields}}


OPTIONS: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 50, "dialect": "text"}
FINAL = completion({"content": "Thought: t\nFinal Answer: 5"})


@pytest.mark.parametrize(
    ("answer", "dropped"),
    [
        (
            refusal(
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                param="max_tokens",
                code="unsupported_parameter",
            ),
            {"max_tokens"},
        ),
        (
            refusal(
                "Unsupported value: 'temperature' does not support 0.5 with this model. "
                "Only the default (1) value is supported.",
                param="temperature",
                code="unsupported_value",
            ),
            {"temperature"},
        ),
        (refusal("temperature and top_p are not supported by this model; stop sending them"), {"temperature", "top_p"}),
        (refusal("Unknown field `stop`"), {"stop"}),
    ],
)
def test_a_parameter_that_a_model_does_not_know_is_left_out_from_then_on(answer: Answer, dropped: set[str]) -> None:
    with HttpDouble([answer, FINAL, FINAL]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        agent = Agent(model=resolve_model("openai:tiny", env), tools=[add], **OPTIONS)
        assert [agent.run_sync("x").answer, agent.run_sync("x").answer] == ["5", "5"]
    first, second, third = (request.keys() for request in server.requests)
    assert first - second == dropped
    assert second - first == ({"max_completion_tokens"} if "max_tokens" in dropped else set())
    assert third == second


def test_a_model_that_refuses_several_parameters_one_by_one_is_asked_without_them() -> None:
    refusals = [refusal(f"Unsupported parameter: '{name}'") for name in ("max_tokens", "temperature", "top_p", "stop")]
    with HttpDouble([*refusals, FINAL]) as server:
        assert run(server, **OPTIONS).answer == "5"
    assert server.requests[-1]["max_completion_tokens"] == 50
    assert not {"max_tokens", "temperature", "top_p", "stop"} & server.requests[-1].keys()


@pytest.mark.parametrize(
    "answer",
    [
        refusal(
            "max_tokens is too large: 50. This model supports at most 40.", param="max_tokens", code="invalid_value"
        ),
        refusal("Unsupported parameter: 'tools'. Ask without 'stop'.", param="tools"),
        refusal("This model does not support tools; stop it."),
        refusal("Unsupported parameter: 'max_completion_tokens'"),
    ],
)
def test_another_refusal_is_not_asked_again(answer: Answer) -> None:
    with HttpDouble([answer, FINAL]) as server:
        result = run(server, **OPTIONS)
    assert result.status == "model_failed"
    assert "400" in result.reason
    assert len(server.requests) == 1


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}])
def test_a_provider_that_reports_no_usage_leaves_it_at_zero(usage: Any) -> None:
    status, body = completion({"content": "5"})
    with HttpDouble([(status, {**body, "usage": usage})]) as server:
        result = run(server)
    assert (result.answer, result.usage.total_tokens) == ("5", 0)
