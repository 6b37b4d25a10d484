"""Messages about `ai-agent` files name the fields that these files have."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.gateway.ai_agent import asks, changed, load, world
from tests.serve.gateway.clients import ask, post
from tests.serve.gateway.conftest import gateway

from taoloop.serve.gateway.config.config_summary import config_summary


@pytest.mark.parametrize("language", ["EN", "CH"])
def test_the_limit_is_called_as_in_the_file(language: str, tmp_path: Path) -> None:
    change = {"llm.maxIterations": 1, "promptTemplate": {"language": language}}
    with world(asks("get_place", place_id=1)) as there:
        places = {"llm.dns": there.place, "geo.dns": there.place}
        with gateway(load(tmp_path, changed("02_geocode.yaml", change), resolve=places)) as running:
            status, body = post(running, {"model": "shop", "messages": ask("Where is it?")})
    assert (status, body["choices"][0]["finish_reason"]) == (200, "length")
    text = body["choices"][0]["message"]["content"] + body["agent"]["reason"]
    assert "maxIterations" in text
    assert "max_tool_calls" not in text


def test_the_summary_names_the_limits_of_the_file_in_its_units(tmp_path: Path) -> None:
    change = {"llm.maxIterations": 3, "llm.maxExecutionTime": 60000, "llm.maxTokens": 800}
    summary = config_summary(load(tmp_path, changed("02_geocode.yaml", change)))
    assert "limits: maxIterations 3, maxExecutionTime 60000, maxTokens 800\n" in summary
    assert "max_steps" not in summary
