"""Hand-offs between the agents of a gateway: which of them answered, whole and streamed, and what its file must say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.clients import ask
from tests.serve.gateway.conftest import client, gateway, model_env, upstream
from tests.serve.gateway.test_gateway_file import load

from taoloop.errors import AgentFileError

FILE = """
agents:
  desk:
    description: The front desk.
    model: openai:m
    handoffs: [refunds]
  refunds:
    description: Sends money back.
    model: openai:m
    handoffs: [{agent: desk, max_times: 1}]
"""
OVER = {"tool_calls": [{"name": "hand_over_to_refunds", "args": {"reason": "money"}}]}


def test_the_answer_says_which_agent_gave_it(tmp_path: Path) -> None:
    with upstream(OVER, "Sent back.") as server:
        config = load(tmp_path, FILE, env=model_env(server))
        with gateway(config) as running:
            made = client(running).chat.completions.create(model="desk", messages=ask("My money, please."))
            assert made.choices[0].message.content == "Sent back."
            assert made.model_extra is not None
            answered = made.model_extra["agent"]["answered_by"]
            run_id = made.model_extra["agent"]["run_id"]
            assert answered == {"agent": "refunds", "run_id": f"{run_id}.1"}
            shown = client(running).get(f"/runs/{run_id}", cast_to=dict[str, Any])
            assert (shown["agent"], shown["answered_by"]) == ("desk", "refunds")


def test_a_streamed_answer_is_that_of_the_agent_that_took_over(tmp_path: Path) -> None:
    with upstream(OVER, "Sent back.") as server:
        with gateway(load(tmp_path, FILE, env=model_env(server))) as running:
            stream = client(running).chat.completions.create(
                model="desk", messages=ask("My money, please."), stream=True
            )
            chunks = list(stream)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == "Sent back."
        assert chunks[-1].model_extra is not None
        assert chunks[-1].model_extra["agent"]["answered_by"]["agent"] == "refunds"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[refunds]", "[refund]", "gate.yaml:6: agents.desk.handoffs[0]: There is no agent called 'refund'."),
        ("[refunds]", "[desk]", "hands over to itself"),
        ("description: Sends money back.", "max_steps: 3", "The agent 'refunds' has no description"),
        (", max_times: 1", "", "round without a limit: desk → refunds → desk"),
        ("    handoffs: [refunds]", "    agents: {x: {}}", "agents.desk.agents: these agents belong beside this one."),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    with pytest.raises(AgentFileError) as caught:
        load(tmp_path, FILE.replace(old, new), env={"OPENAI_API_KEY": "sk-upstream-0123456789abcdef"})
    assert expected in str(caught.value)


def test_an_agent_file_with_further_agents_is_served_as_that_agent(tmp_path: Path) -> None:
    content = "model: offline\nhandoffs: [b]\nagents: {b: {description: x, model: offline}}\n"
    config = load(tmp_path, content)
    assert [*config.agents] == ["gate"]
