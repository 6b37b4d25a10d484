"""What is wrong with the settings of an agent is found when it is made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from taoloop import Agent, ScriptedModel
from taoloop.errors import ConfigError, PolicyError, ToolDefinitionError, UnknownName
from taoloop.models.settings import DeferredModelSpec


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"model": "opnai:gpt-9"}, UnknownName, "Did you mean 'openai'"),
        ({"model": "offline | opnai:gpt-9"}, UnknownName, "'opnai:gpt-9'"),
        ({"dialect": "yaml"}, UnknownName, "json_final"),
        ({"dialect": 5}, ConfigError, "dialect of an agent is 5"),
        ({"strategy": "magic"}, UnknownName, "react"),
        ({"strategy": "cot_sc:m=3"}, ConfigError, "m"),
        ({"policy": "lenient"}, PolicyError, "lenient"),
        ({"policy": {"profile": "strict"}}, ConfigError, "policy of an agent"),
        ({"tools": [None]}, ToolDefinitionError, "'None' is no tool"),
        ({"tools": [[print]]}, ToolDefinitionError, "into the list itself"),
        ({"tools": [{"name": "look"}]}, ToolDefinitionError, "is no tool"),
    ],
)
def test_a_wrong_setting_is_found_when_the_agent_is_made(settings: dict[str, Any], kind: type, said: str) -> None:
    with pytest.raises(kind) as caught:
        Agent(**settings)
    assert said in str(caught.value)


def test_what_may_come_to_be_later_is_left_to_the_first_run() -> None:
    """A key, a file, and the tools of a source."""
    agent = Agent(model="openai:gpt-9", env={}, tools=["read_file"], journal="not/there.db", prompts="not/there")
    with pytest.raises(ConfigError):
        agent.run_sync("2 + 2?")
    strategy = SimpleNamespace(name="mine")
    assert Agent(model=ScriptedModel([]), strategy=strategy).strategy is strategy


def test_a_deferred_spec_is_looked_up_by_the_first_use() -> None:
    agent = Agent(model=DeferredModelSpec("orcale:x"))
    with pytest.raises(UnknownName, match="orcale"):
        agent.spec_for("2 + 2?")
