"""While real calls are forbidden nothing is sent, whoever asks for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.models.asking import asking

from taoloop import Agent
from taoloop.errors import RealCallsForbidden
from taoloop.models.real_call_switch import VARIABLE, forbidden_by, require_allowed
from taoloop.models.registry import resolve_model
from taoloop.testing import HttpDouble, allow_real_calls, forbid_real_calls

COMPLETION = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "tiny",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpDouble]:
    monkeypatch.delenv(VARIABLE, raising=False)
    with HttpDouble([(200, COMPLETION)] * 3) as double:
        yield double


def env(server: HttpDouble) -> dict[str, str]:
    return {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"}


@pytest.mark.parametrize("spec", ["openai:tiny"])
def test_a_model_of_a_provider_is_not_called(server: HttpDouble, spec: str) -> None:
    model = resolve_model(spec, env(server))
    with forbid_real_calls(), pytest.raises(RealCallsForbidden, match="openai:tiny was not called"):
        asyncio.run(model.complete(asking()))
    assert server.requests == []


def test_a_run_ends_and_says_why(server: HttpDouble) -> None:
    agent = Agent(model="openai:tiny", fallback="openai:other", env=env(server))
    with forbid_real_calls():
        result = agent.run_sync("Say hello.")
    assert result.status == "model_failed"
    assert "real calls are forbidden by forbid_real_calls()" in result.reason
    assert server.requests == []


def test_calls_are_allowed_again_inside_and_after(server: HttpDouble) -> None:
    agent = Agent(model="openai:tiny", env=env(server))
    with forbid_real_calls():
        with allow_real_calls():
            assert agent.run_sync("Say hello.").answer == "hello"
        assert agent.run_sync("Say hello.").status == "model_failed"
    assert agent.run_sync("Say hello.").answer == "hello"


def test_the_switch_holds_for_every_thread(server: HttpDouble) -> None:
    seen: list[str] = []
    with forbid_real_calls():
        thread = threading.Thread(target=lambda: seen.append(forbidden_by()))
        thread.start()
        thread.join()
    assert seen == ["forbid_real_calls()"]


@pytest.mark.parametrize(
    ("value", "forbids"), [("1", True), ("yes", True), ("0", False), ("", False), ("false", False)]
)
def test_the_variable_forbids_too_and_is_stronger_than_code(value: str, forbids: bool) -> None:
    given = {VARIABLE: value}
    with allow_real_calls():
        assert bool(forbidden_by(given)) is forbids
    if forbids:
        with pytest.raises(RealCallsForbidden, match=VARIABLE):
            require_allowed("openai:tiny", given)


def test_an_agent_with_an_environment_of_its_own_keeps_to_that(server: HttpDouble) -> None:
    agent = Agent(model="openai:tiny", env=env(server) | {VARIABLE: "1"})
    with allow_real_calls():
        result = agent.run_sync("Say hello.")
    assert (result.status, server.requests) == ("model_failed", [])
    assert VARIABLE in result.reason


def test_offline_and_scripted_models_are_no_real_calls() -> None:
    with forbid_real_calls():
        assert Agent(model="offline", tools=["calculator"]).run_sync("2 + 2").status == "completed"
        assert Agent(model=["hi"]).run_sync("Hello").answer == "hi"
