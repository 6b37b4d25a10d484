"""A second model on the command line: it answers where the first fails, also when the run goes on later."""

from __future__ import annotations

import json

import pytest
from tests.shell import Shell, call

DOWN = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


def agent_file(tao: Shell, *replies: str) -> None:
    tao.script(*replies)
    agent = {"model": "openai:tiny", "fallback": ["scripted:script.yaml"], "retry": {"attempts": 1}}
    agent["tools"] = ["calculator"]
    tao.write("agent.json", json.dumps(agent))


def test_the_next_model_answers_and_the_failure_is_told(tao: Shell) -> None:
    agent_file(tao, "Hello.")
    ended = tao("run", "Say hello.", "--agent", "agent.json", code=0, **DOWN)
    assert "Answer: Hello." in ended.out
    assert "openai:tiny failed: " in ended.err
    assert "The next model is asked." in ended.err


def test_the_option_names_the_next_model(tao: Shell) -> None:
    model = tao.script("Final Answer: Hello.")
    ended = tao("run", "Say hello.", "--model", "offline", "--fallback", model, "--json", code=0)
    assert ended.events[0]["agent"]["model"] == f"offline | {model}"


def test_a_model_alone_on_the_command_line_means_no_other(tao: Shell) -> None:
    agent_file(tao, "Hello.")
    ended = tao("run", "Say hello.", "--agent", "agent.json", "--model", "offline", "--json", code=9)
    assert ended.events[0]["agent"]["model"] == "offline"


def test_a_run_goes_on_with_the_models_that_it_had(tao: Shell) -> None:
    model = tao.script("Final Answer: Hello.")
    first = tao(
        "run", "Say hello.", "--model", "openai:tiny | offline", "--json", code=9, TAOLOOP_NO_REAL_CALLS="1", **DOWN
    )
    run_id = first.events[0]["run_id"]
    resumed = tao("run", "--resume", run_id, "--model", "offline", "--fallback", model, code=0)
    assert "completed" in resumed.out
    shown = tao("show", run_id, "--json", code=0)
    assert shown.events[0]["agent"]["model"] == "openai:tiny | offline"


def test_under_mock_no_provider_is_asked_by_a_detour(tao: Shell) -> None:
    agent_file(tao, "Hello.")
    ended = tao("run", "2 + 2", "--agent", "agent.json", "--json", code=0, AI_MOCK="1", **DOWN)
    assert ended.events[0]["agent"]["model"] == "offline"


@pytest.mark.parametrize("where", ["environment", ".env"])
def test_the_switch_forbids_a_real_call(tao: Shell, where: str) -> None:
    agent_file(tao, "Hello.")
    env = {"TAOLOOP_NO_REAL_CALLS": "1"} if where == "environment" else {}
    if where == ".env":
        tao.write(".env", "TAOLOOP_NO_REAL_CALLS=1\n")
    ended = tao("run", "Say hello.", "--agent", "agent.json", code=9, **env, **DOWN)
    assert "real calls are forbidden by the variable TAOLOOP_NO_REAL_CALLS" in ended.out


def test_under_mock_no_provider_is_asked_by_an_agent_that_is_a_tool(tao: Shell) -> None:
    inner_of_a_provider(tao)
    tao("run", "x", "--agent", "outer.json", code=0, AI_MOCK="1", **DOWN)
    inner = next(line.split()[0] for line in tao("runs", code=0).out.splitlines() if ".1 " in line)
    assert tao("show", inner, "--json", code=0).events[0]["agent"]["model"] == "offline"


def test_an_agent_that_is_a_tool_has_the_environment_of_the_command(tao: Shell) -> None:
    inner_of_a_provider(tao)
    assert "No key for openai" in tao("run", "x", "--agent", "outer.json", code=2).one_line, "before the run"
    tao.write(".env", "OPENAI_API_KEY=k\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\nTAOLOOP_NO_REAL_CALLS=1\n")
    ended = tao("run", "x", "--agent", "outer.json", code=0)
    assert "real calls are forbidden by the variable TAOLOOP_NO_REAL_CALLS" in ended.out


def inner_of_a_provider(tao: Shell) -> None:
    tao.write("inner.json", json.dumps({"model": "openai:tiny", "retry": {"attempts": 1}}))
    tao.script(call("asker", task="2 + 2"), "Done.")
    tools = [{"agent": "inner.json", "name": "asker", "purpose": "Ask."}]
    tao.write("outer.json", json.dumps({"model": "scripted:script.yaml", "tools": tools}))
