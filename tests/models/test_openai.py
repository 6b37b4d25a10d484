"""The OpenAI-compatible adapter, over a real socket against a server that answers as it is told."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop import Agent, tool
from taoloop.errors import MissingKey
from taoloop.models.resolve import default_spec, resolve_model
from taoloop.runtime.result import Result
from taoloop.testing import HttpDouble
from taoloop.testing.http import Answer


def completion(message: dict[str, Any], finish_reason: str = "stop") -> Answer:
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


def run(server: HttpDouble, **options: Any) -> Result:
    env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "secret-key"}
    return Agent(model="openai:tiny", tools=[add], env=env, **options).run_sync("add 2 and 3")


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


def test_the_key_does_not_reach_the_trace() -> None:
    with HttpDouble([completion({"content": "5"})]) as server:
        result = run(server)
    assert "secret-key" not in repr(result.trace.events)


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
    result = Agent(model="openai:tiny", env=env).run_sync("x")
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
