"""Whole runs against aimock, a mock server by other people that speaks the providers' wire formats.

Not a part of `scripts/test`, since it needs Node.js and a package from npm: `scripts/check-wire` runs it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, tool
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.effects import ModelRequest
from taoloop.core.events import Event, RunStarted
from taoloop.core.message import Delta, Message, ModelReply
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.errors import ModelError, ModelRateLimited, ModelReplyUnreadable, ModelUnavailable
from taoloop.models.registry import resolve_model
from taoloop.models.settings import Retry

AIMOCK = os.environ["AIMOCK"]  # the path of its command `llmock`; set by scripts/check-wire
USAGE = {"prompt_tokens": 20, "completion_tokens": 8, "input_tokens": 20, "output_tokens": 8}
CALL = {"usage": USAGE, "content": "I add.", "toolCalls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]}
FIXTURES = [
    {"match": {"userMessage": "add 2 and 3", "hasToolResult": False}, "response": CALL},
    {"match": {"userMessage": "think"}, "response": {"content": "five", "reasoning": "two and three"}},
    {"match": {"hasToolResult": True}, "response": {"content": "The sum is 5.", "usage": USAGE}},
    {"match": {"userMessage": "break"}, "response": {"content": "word " * 100}, "truncateAfterChunks": 4},
    {"match": {"userMessage": "fail"}, "response": {"error": {"message": "Overloaded"}, "status": 503}},
]


@tool(tier="read")
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@contextmanager
def aimock(folder: Path, *options: str) -> Iterator[str]:
    """The address of a server of its own."""
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": FIXTURES}))
    command = [AIMOCK, "--port", "0", "--fixtures", str(file), "--strict", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            assert server.stdout is not None
            lines = iter(server.stdout.readline, "")
            yield next(found[1] for line in lines if (found := re.search(r"listening on (\S+)", line)))
        finally:
            server.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock")) as url:
        yield url


def environment(spec: str, url: str) -> dict[str, str]:
    """The variables that lead each kind of provider to the server."""
    return {
        "openai": {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{url}/v1"},
        "azure": {
            "AI_PROVIDER": "azure",
            "AI_PROVIDER_API_KEY": "k",
            "AZURE_OPENAI_BASE_URL": url,
            "AZURE_OPENAI_API_VERSION": "2024-10-21",
        },
        "anthropic": {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url},
        "ollama": {"OLLAMA_BASE_URL": f"{url}/v1"},
        "deepseek": {"DEEPSEEK_API_KEY": "k", "DEEPSEEK_BASE_URL": url},
    }[spec.partition(":")[0]]


SPECS = (
    "openai:gpt-4o-mini",
    "azure:gpt-4o-mini",
    "anthropic:claude-sonnet-4-5",
    "ollama:qwen3",
    "deepseek:deepseek-chat",
)


def run(spec: str, url: str, **options: Any) -> Result:
    agent = Agent(model=spec, tools=[add], env=environment(spec, url), temperature=0.2, **options)
    return agent.run_sync("add 2 and 3")


def ask(spec: str, url: str, task: str, *, listen: bool = True) -> tuple[ModelReply, list[Delta]]:
    heard: list[Delta] = []
    trace = Trace("r", [Event(0, 0.0, RunStarted(task=task, agent=AgentSpec(tools=(add.card,)), nonce="n"))])
    request = ModelRequest(
        task=task,
        trace=trace,
        messages=(Message(role="system", content="Add."), Message(role="user", content=task)),
        dialect="native",
        tools=(add.card,),
        native=True,
        on_delta=heard.append if listen else None,
        timeout_s=20,
    )
    model = resolve_model(spec, environment(spec, url))

    async def once() -> ModelReply:
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(once()), heard


@pytest.mark.parametrize("spec", SPECS)
def test_a_run_acts_and_answers(spec: str, server: str) -> None:
    result = run(spec, server)
    assert (result.status, result.answer) == ("completed", "The sum is 5."), result.reason
    assert [call.observed.output for call in result.trace.calls.values() if call.observed] == ["5"]
    assert result.usage.input_tokens > 0


@pytest.mark.parametrize("spec", SPECS)
def test_a_streamed_reply_is_the_same_as_a_whole_one(spec: str, server: str) -> None:
    streamed, heard = ask(spec, server, "add 2 and 3")
    whole, _ = ask(spec, server, "add 2 and 3", listen=False)
    assert streamed.text == whole.text == "I add." == "".join(d.text for d in heard if d.kind == "text")
    [call], [same] = streamed.tool_calls, whole.tool_calls
    assert (
        (call.name, json.loads(call.arguments)) == (same.name, json.loads(same.arguments)) == ("add", {"a": 2, "b": 3})
    )
    assert "".join(d.text for d in heard if d.kind == "call") == call.arguments
    assert heard[-1].done
    assert streamed.finish_reason == whole.finish_reason == "tool_calls"
    assert streamed.usage.total_tokens > 0


@pytest.mark.parametrize("spec", [spec for spec in SPECS if "gpt-4o" not in spec])  # which does not think
@pytest.mark.parametrize("listen", [False, True])
def test_thinking_comes_apart(spec: str, listen: bool, server: str) -> None:
    reply, _ = ask(spec, server, "think", listen=listen)
    assert (reply.text, reply.thinking) == ("five", "two and three")


@pytest.mark.parametrize("spec", SPECS)
def test_an_error_of_the_provider_is_told(spec: str, server: str) -> None:
    with pytest.raises(ModelUnavailable, match="503: Overloaded"):
        ask(spec, server, "fail")


@pytest.mark.parametrize("spec", SPECS)
def test_a_stream_that_breaks_off_is_no_reply(spec: str, server: str) -> None:
    with pytest.raises(ModelUnavailable, match="whole") as caught:
        ask(spec, server, "break")
    assert caught.value.retryable


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("listen", [False, True])
@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ("--chaos-drop", ModelUnavailable),
        ("--chaos-malformed", ModelReplyUnreadable),
        ("--chaos-disconnect", ModelUnavailable),
        ("--chaos-ratelimit", ModelRateLimited),
    ],
)
def test_chaos_is_an_error_that_says_to_try_again(
    spec: str, listen: bool, option: str, kind: type[ModelError], tmp_path: Path
) -> None:
    with aimock(tmp_path, option, "1") as url, pytest.raises(kind) as caught:
        ask(spec, url, "add 2 and 3", listen=listen)
    assert caught.value.retryable
    if option == "--chaos-ratelimit":
        assert caught.value.retry_after_s is not None


@pytest.mark.parametrize("spec", SPECS)
def test_a_run_gets_through_chaos_by_trying_again(spec: str, tmp_path: Path) -> None:
    options = ("--chaos-drop", "0.2", "--chaos-disconnect", "0.2", "--chaos-malformed", "0.2")
    with aimock(tmp_path, *options) as url:
        result = run(spec, url, retry=Retry(attempts=40, first_wait_s=0.0))
    assert (result.status, result.answer) == ("completed", "The sum is 5."), result.reason
