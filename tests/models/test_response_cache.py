"""Replies that are kept for development."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from taoloop import Agent, tool
from taoloop.core.effects import ModelRequest
from taoloop.core.message import ModelReply, ToolCallText, Usage
from taoloop.core.views.transcript import Result


class Paid:
    """Calls a tool, then answers; each reply costs a dollar."""

    spec, dialect = "own:paid", "native"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        paid: dict[str, Any] = {"usage": Usage(input_tokens=5, output_tokens=5), "cost_usd": 1.0}
        if not request.turn:
            return ModelReply(tool_calls=(ToolCallText(name="price", arguments='{"item": "tea"}', id="x"),), **paid)
        return ModelReply(text="It is 3 EUR.", **paid)

    def check_used(self, replies: int) -> None:
        """Nothing to check."""

    async def close(self) -> None:
        """Nothing to close."""


@tool(tier="read")
def price(item: str) -> str:
    """The price of an item."""
    return f"{item}: 3 EUR"


def run(model: Paid, path: Path, task: str = "price of tea", **settings: Any) -> Result:
    return Agent(model=model, tools=[price], response_cache=path / "cache.db", **settings).run_sync(task)


def test_an_equal_run_is_answered_from_the_file_at_no_cost(tmp_path: Path) -> None:
    first, second = Paid(), Paid()
    assert run(first, tmp_path).cost_usd == 2.0
    again = run(second, tmp_path)
    assert (len(first.requests), len(second.requests)) == (2, 0)
    assert (again.answer, again.cost_usd, again.usage) == ("It is 3 EUR.", 0.0, Usage())


@pytest.mark.parametrize(
    "change",
    [
        {"task": "price of the tea"},
        {"instructions": "Be brief."},
        {"temperature": 0.1},
        {"model_settings": {"seed": 7}},
    ],
)
def test_a_changed_prompt_or_setting_is_asked_anew(tmp_path: Path, change: dict[str, Any]) -> None:
    run(Paid(), tmp_path)
    model = Paid()
    run(model, tmp_path, **change)
    assert len(model.requests) == 2


def test_the_file_is_private_and_has_no_prompt_and_no_secret(tmp_path: Path) -> None:
    run(Paid(), tmp_path, task="price of tea, key sk-very-secret", secrets=["sk-very-secret"])
    content = (tmp_path / "cache.db").read_bytes()
    assert b"It is 3 EUR." in content
    assert b"sk-very-secret" not in content
    assert b"price of tea" not in content
    assert stat.S_IMODE((tmp_path / "cache.db").stat().st_mode) == 0o600


def test_a_file_that_is_no_cache_ends_the_run_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_text("no database " * 100)
    result = run(Paid(), tmp_path)
    assert result.status == "model_failed"
    assert "cannot be used" in result.reason
    assert "name another one" in result.reason
