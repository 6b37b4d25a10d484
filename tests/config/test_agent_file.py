"""Agents from files and modules: what they give, and what is told of a malformed one."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from taoloop.config.agent_file import load_agent
from taoloop.core.agent_spec import Limits
from taoloop.errors import AgentFileError
from taoloop.runtime.agent import Agent

CODE = '''
from taoloop import Agent, tool

@tool(tier="read")
def shout(text: str) -> str:
    """Write a text in capitals."""
    return text.upper()

def plain(city: str) -> str:
    return city

def untyped(x):
    return x

agent = Agent(name="ready", tools=[shout])

def make():
    return Agent(name="made")

def fail():
    raise RuntimeError("no luck")

number = 7
'''


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A current folder with a module of its own, forgotten afterwards."""
    (tmp_path / "agentcode.py").write_text(CODE)
    (tmp_path / "explodes.py").write_text("x = 1\nraise ValueError('at import')\n")
    (tmp_path / "facts.yaml").write_text("capital: Paris\n")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in ("agentcode", "explodes"):
        sys.modules.pop(name, None)


def loaded(content: str, name: str = "agent.yaml") -> Agent:
    Path(name).write_text(content, encoding="utf-8")
    return load_agent(name)


def refused(content: str, name: str = "agent.yaml") -> AgentFileError:
    with pytest.raises(AgentFileError) as caught:
        loaded(content, name)
    return caught.value


def test_a_file_gives_every_field(tmp_path: Path) -> None:
    agent = loaded("""
name: helper
model: scripted:replies.yaml
dialect: json
strategy: act-only
language: zh
instructions: |
  请简短回答。
tools:
  - calculator
  - agentcode:shout
  - lookup: {table: facts.yaml}
  - function: agentcode:plain
    card:
      name: city_code
      purpose: Give the code of a city.
      tier: read
      input_schema: {type: object, properties: {city: {type: string}}, required: [city]}
      egress: [city]
      roles: {city: minor}
      reversible: false
workspace: work
limits: {max_steps: 9, max_cost_usd: 0.5, max_tokens: null}
approved_tiers: [write]
closing_turn: false
repair_turns: 2
temperature: 0
top_p: 0.9
max_output_tokens: 500
model_timeout_s: 30
response_cache: replies.db
model_settings: {seed: 7, reasoning_effort: low}
db: runs.db
""")
    assert agent.name == "helper"
    assert agent.model == f"scripted:{tmp_path / 'replies.yaml'}"
    assert (agent.dialect, agent.strategy, agent.language) == ("json", "act-only", "zh")
    assert agent.toolbox.names == ("calculator", "shout", "lookup", "city_code", "read_observation")
    card = agent.toolbox.get("city_code").card
    assert (card.egress, card.role("city"), card.reversible) == (("city",), "minor", False)
    assert agent.limits == Limits(max_steps=9, max_cost_usd=0.5)
    assert agent.model_settings == {"seed": 7, "reasoning_effort": "low"}
    assert agent.response_cache == tmp_path / "replies.db"
    assert (agent.workspace, agent.journal) == (tmp_path / "work", tmp_path / "runs.db")
    assert (agent.closing_turn, agent.repair_turns, agent.approved_tiers) == (False, 2, ("write",))
    assert agent.source == str(tmp_path / "agent.yaml")


def test_overrides_win_and_the_name_of_the_file_is_the_name_without_one() -> None:
    Path("short.yaml").write_text("model: offline\n")
    agent = load_agent("short.yaml", language="en")
    assert (agent.name, agent.language) == ("short", "en")


def test_max_steps_is_short_for_that_limit() -> None:
    assert loaded("max_steps: 3\nlimits: {max_tokens: 9}\n").limits == Limits(max_steps=3, max_tokens=9)


@pytest.mark.parametrize(("source", "name"), [("agentcode:agent", "ready"), ("agentcode:make", "made")])
def test_a_module_gives_an_agent_or_a_function_that_makes_one(source: str, name: str) -> None:
    agent = load_agent(source)
    assert (agent.name, agent.source) == (name, source)


@pytest.mark.parametrize(
    ("content", "line", "field", "said"),
    [
        ("name: x\nmodle: offline\n", 2, "modle", "Did you mean 'model'?"),
        ("name: [1]\n", 1, "name", "a text is expected, not [1]"),
        ("closing_turn: 'yes'\n", 1, "closing_turn", "true or false is expected"),
        ("repair_turns: true\n", 1, "repair_turns", "a whole number is expected, not true"),
        ("name:\n", 1, "name", "a text is expected, not nothing"),
        ("model: gpt5\n", 1, "model", "no model called 'gpt5'. Known: offline"),
        ("a: 1\ndialect: latin\n", 1, "a", "no such field"),
        ("\ndialect: latin\n", 2, "dialect", "no dialect called 'latin'. Known: "),
        ("strategy: luck\n", 1, "strategy", "no strategy called 'luck'"),
        ("limits:\n  max_steps: 3\n  max_stepz: 3\n", 3, "limits.max_stepz", "Did you mean 'max_steps'?"),
        ("limits: {max_steps: 0}\n", 1, "limits.max_steps", "must be a whole number above 0"),
        ("max_steps: 0\n", 1, "max_steps", "above 0"),
        ("model_settings: {sed: 1}\n", 1, "model_settings", "some of reasoning_effort, seed"),
        ("max_steps:\n", 1, "max_steps", "a whole number is expected, not nothing"),
        ("limits: {max_steps: 3}\nmax_steps: 3\n", 2, "max_steps", "means the same"),
        ("limits: {max_steps: 2.5}\n", 1, "limits.max_steps", "a whole number is expected"),
        ("approved_tiers:\n- read\n- any\n", 3, "approved_tiers[1]", "one of read, draft, write, destructive"),
        ("tools: [calculator, time_now,\n  calculator]\n", 2, "tools[2]", "'calculator' is here a second time"),
        ("language: klingon\n", 1, "language", "no prompt language called 'klingon'. Known: auto, en, zh."),
        ("tools:\n- agentcode:nothing\n", 2, "tools[0]", "has no attribute 'nothing'"),
        ("tools:\n- nowhere:x\n", 2, "tools[0]", "there is no module 'nowhere'"),
        ("tools:\n- agentcode:number\n", 2, "tools[0]", "no tool"),
        ("tools:\n- agentcode:untyped\n", 2, "tools[0]", "untyped"),
        ("tools:\n- explodes:x\n", 2, "tools[0]", "explodes.py:2: loading 'explodes:x' raised ValueError: at import"),
        ("db: a\njournal: b\n", 1, "db", "means the same"),
        ("when: 2024-99-99\n", 1, "when", "no such field"),
        ("closing_turn: on\n", 1, "closing_turn", "true or false is expected"),
        ("name: 012\nrepair_turns: 012\n", 2, "repair_turns", "a whole number is expected, not '012'"),
    ],
)
def test_a_malformed_file_is_told_with_line_and_field(content: str, line: int, field: str, said: str) -> None:
    error = refused(content)
    assert said in str(error)
    assert (error.line, error.field) == (line, field)
    assert str(error).startswith(str(Path("agent.yaml").absolute()))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("none.yaml", "there is no such file"),
        ("agentcode", "neither an agent file nor"),
        ("agentcode:number", "of the type 'int', not an Agent"),
        ("agentcode:shout", "not an Agent"),
        ("agentcode:fail", "raised RuntimeError: no luck"),
    ],
)
def test_a_source_that_cannot_be_loaded_is_told(source: str, said: str) -> None:
    with pytest.raises(AgentFileError) as caught:
        load_agent(source)
    assert said in str(caught.value)


def test_another_agent_is_a_tool(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text("tools: [calculator]\n")
    entry = "{agent: inner.yaml, name: reckoner, purpose: Reckon., use_when: Numbers., timeout_s: 60}"
    (tmp_path / "outer.yaml").write_text(f"tools:\n  - {entry}\n")
    card = load_agent("outer.yaml").toolbox.get("reckoner").card
    assert (card.purpose, card.use_when, card.tier, card.timeout_s) == ("Reckon.", "Numbers.", "read", 60)


def test_a_schema_stands_in_the_file_or_in_one_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "whole.yaml").write_text("output_schema: {type: integer}\nmemory: notes.db\n")
    (tmp_path / "number.json").write_text('{"type": "integer"}')
    (tmp_path / "apart.yaml").write_text("output_schema: number.json\n")
    assert load_agent("whole.yaml").output_type == load_agent("apart.yaml").output_type == {"type": "integer"}
    assert load_agent("whole.yaml").memory == tmp_path / "notes.db"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("name: x\noutput_schema: {type: nothing}\n", 2, "not valid JSON Schema"),
        ("output_schema: 7\n", 1, "a mapping or a path is expected"),
        ("output_schema: none.json\n", 0, "no such file"),
        ("tools:\n  - {agent: self.yaml, purpose: x}\n", 2, "would be a tool of itself"),
        ("tools:\n  - {agent: gone.yaml, purpose: x}\n", 2, "there is no such file"),
        ("tools:\n  - {agent: inner.yaml}\n", 2, "the purpose is missing"),
        ("tools:\n  - {agent: inner.yaml, purpose: ''}\n", 2, "the purpose is missing"),
        ("tools:\n  - {agent: inner.yaml, purpos: x}\n", 2, "Did you mean 'purpose'?"),
        ("tools:\n  - {agent: small.yaml, purpose: x}\n", 2, "context_tokens is 0"),
        ("output_schema: list.json\n", 1, "a JSON Schema is a mapping of fields"),
        ("output_schema: wrong.json\n", 1, "wrong.json"),
        ("name: x\nmemory: .\n", 2, "a file is expected"),
        ("name: x\ncontext_tokens: 0\n", 2, "context_tokens"),
        ("name: x\nmax_output_tokens: 9\ncontext_tokens: 9\n", 3, "above max_output_tokens"),
        ("name: x\nmodel_timeout_s: 0\n", 2, "model_timeout_s"),
        ("name: x\ntemperature: -1\n", 2, "temperature"),
        ("tools:\n  - {agent: inner.yaml, purpose: x, tier: mild}\n", 2, "mild"),
        ("tools:\n  - {agent: inner.yaml, purpose: x, timeout_s: 0}\n", 2, "timeout_s"),
        ("tools:\n  - {agent: inner.yaml, purpose: x, name: a b}\n", 2, "cannot be called"),
    ],
)
def test_a_wrong_inner_agent_or_schema_is_told(tmp_path: Path, text: str, line: int, said: str) -> None:
    (tmp_path / "inner.yaml").write_text("tools: [calculator]\n")
    (tmp_path / "small.yaml").write_text("context_tokens: 0\n")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "wrong.json").write_text('{"type": "nothing"}')
    (tmp_path / "self.yaml").write_text(text)
    with pytest.raises(AgentFileError) as caught:
        load_agent("self.yaml")
    assert said in str(caught.value)
    assert line in (0, caught.value.line)
