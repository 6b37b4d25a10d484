"""Hand-offs and further agents of an agent file: what they give, and what is told of malformed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from taoloop.config.agent_file import load_agent
from taoloop.errors import AgentFileError
from taoloop.runtime import Handoff

FILE = """
model: scripted:replies.yaml
handoffs:
  - {agent: refunds, history: answers, use_when: Money is to be sent back.}
  - billing
agents:
  refunds:
    description: Sends money back.
    model: scripted:refunds.yaml
    handoffs: [{agent: desk, max_times: 1}]
  billing: billing.yaml
description: The front desk.
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk.yaml").write_text(FILE)
    (tmp_path / "billing.yaml").write_text("description: Writes invoices.\nmodel: scripted:billing.yaml\n")
    reply = "- {tool_calls: [{name: hand_over_to_refunds, args: {reason: money}}]}\n"
    (tmp_path / "replies.yaml").write_text(reply)
    (tmp_path / "refunds.yaml").write_text("- Sent back.\n")
    return tmp_path


def test_an_agent_of_a_file_hands_over_to_another_one_of_it() -> None:
    agent = load_agent("desk.yaml")
    result = agent.run_sync("Send my money back.")
    assert (result.status, result.answer) == ("completed", "Sent back.")
    first = agent.handoffs[0]
    assert isinstance(first, Handoff)
    assert (first.history, first.target.name) == ("answers", "refunds")
    cards = {card.name: card for card in agent.toolbox.cards}
    assert cards["hand_over_to_refunds"].use_when == "Money is to be sent back."
    assert "Writes invoices." in cards["hand_over_to_billing"].purpose
    back = first.target.handoffs[0]
    assert isinstance(back, Handoff)
    assert (back.target.name, back.max_times) == ("desk", 1)


def test_a_card_is_chinese_in_a_chinese_run() -> None:
    spec = load_agent("desk.yaml").spec_for("请退款。")
    [card] = [card for card in spec.tools if card.name == "hand_over_to_refunds"]
    assert card.purpose.startswith("把对话移交给智能体 refunds")


def problem(text: str) -> str:
    Path("wrong.yaml").write_text(text)
    with pytest.raises(AgentFileError) as caught:
        load_agent("wrong.yaml")
    return str(caught.value)


AGENTS = "agents:\n  b:\n    description: x\n"


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("handoffs: [c]\n" + AGENTS, 1, "handoffs[0]: There is no agent called 'c'. Known: wrong, b."),
        ("handoffs: [c]\n", 1, "There is no agent called 'c'. Name one of the same file"),
        ("handoffs: [wrong]\n", 1, "The agent 'wrong' hands over to itself."),
        ("model: offline\nhandoffs: [b]\nagents: {b: {}}\n", 2, "The agent 'b' has no description"),
        (
            "handoffs: [b]\ndescription: x\n" + AGENTS + "    handoffs: [wrong]\n",
            6,
            "round without a limit: b → wrong → b",
        ),
        ("handoffs: [{agent: b, history: all}]\n" + AGENTS, 1, "one of task, answers, full is expected, not 'all'."),
        ("handoffs: [{agent: b, max_times: 0}]\n" + AGENTS, 1, "max_times is 0."),
        ("handoffs: [{agnt: b}]\n" + AGENTS, 1, "Did you mean 'agent'?"),
        ("agents:\n  b: {}\n", 1, "agents: nothing hands over to these agents."),
        (
            "handoffs: [b]\nagents:\n  b: {agents: {c: {}}}\n",
            3,
            "agents.b.agents: these agents belong beside this one.",
        ),
        ("handoffs: [b]\nagents:\n  wrong: {}\n", 3, "is no name of a further agent."),
        ("handoffs: [b]\nagents:\n  b: 3\n", 3, "an agent is expected, not 3."),
        ("handoffs: [b]\nagents:\n  b: missing.yaml\n", 3, "agents.b"),
        ("handoffs: [b]\nagents:\n  b: {modell: x}\n", 3, "agents.b.modell"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, expected: str) -> None:
    message = problem(text)
    assert f"wrong.yaml:{line}: " in message
    assert expected in message
