"""`tao serve` as a process, and clients that others wrote: what a person would have in hand.

Not a part of `scripts/test`, since it needs packages of its own: `scripts/check-clients` brings and runs them. The
model behind the gateway is a server of these tests that answers by what it is asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.conftest import Upstream, model_env, upstream

from taoloop.serve.gateway.auth.keys import new_key

FOLDER = Path(os.environ["CLIENTS_FOLDER"])  # where the clients are installed; set by scripts/check-clients
SECRET, KEY = new_key("check")
GATEWAY = f"""
agents:
  assistant:
    model: openai:m
    tools: [calculator]
    dialect: native
keys:
  - name: check
    digest: {KEY.digest}
"""
LLM_MODELS = """
- model_id: gateway
  model_name: assistant
  api_base: {url}
  api_key_name: gateway
  supports_tools: true
  supports_schema: true
"""
PLUGIN = '''
def look_outside(window: str) -> str:
    """What the sky looks like."""
    return f"all red in the {window}"
'''


def replies(body: dict[str, Any]) -> Any:
    """What the model says: by the last thing that a user said, and by what came after it."""
    messages = body["messages"]
    asked = next(str(one["content"]) for one in reversed(messages) if one["role"] == "user")
    seen = messages[-1]["content"] if messages[-1]["role"] == "tool" else ""
    if "Break off" in asked:
        return {"pieces": ["Some ", "words, ", "and "], "breaks": True}
    if "JSON" in asked:
        return '{"city": "Rome", "degrees": 21}'
    if "name" in asked:
        return "You are Ann." if "Ann" in str(messages) else "It is not known."
    if "outside" in asked:
        look = {"tool_calls": [{"name": "look_outside", "args": {"window": "east"}}]}
        return "The sky is red." if "all red" in seen else look
    call = {"tool_calls": [{"name": "calculator", "args": {"expression": "2 * 4"}}]}
    return "It is 8." if "8" in seen else call


@dataclass
class Served:
    """A gateway that serves; `env` is what its clients are started with."""

    url: str
    model: Upstream
    env: dict[str, str]


@contextmanager
def serving(folder: Path, env: dict[str, str]) -> Iterator[str]:
    """`tao serve`, until the end; gives its address."""
    (folder / "gateway.yaml").write_text(GATEWAY, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("tao")), "serve", "gateway.yaml", "--port", "0", "--db", "runs.db"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **env}) as process:
        try:
            assert process.stderr is not None
            said = ""
            while " on http" not in said:
                said = process.stderr.readline()
                assert said, "tao serve ended before it was ready"
            yield said.split(" on ")[1].strip()
        finally:
            process.terminate()
            process.communicate(timeout=20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with upstream(replies) as model, serving(folder, model_env(model)) as url:
        (folder / "extra-openai-models.yaml").write_text(LLM_MODELS.format(url=url), encoding="utf-8")
        (folder / "keys.json").write_text(json.dumps({"gateway": SECRET}), encoding="utf-8")
        (folder / "look.py").write_text(PLUGIN, encoding="utf-8")
        yield Served(url, model, {"GATEWAY_URL": url, "GATEWAY_KEY": SECRET, "LLM_USER_PATH": str(folder)})


def said_by(served: Served, *command: str, fails: bool = False) -> str:
    """What a client prints."""
    program = shutil.which(command[0])
    if program is None:
        pytest.skip(f"there is no {command[0]} in PATH")
    done = subprocess.run(
        [program, *command[1:]],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **served.env},
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return (done.stderr if fails else done.stdout).strip()


def node(served: Served, file: str, *args: str) -> Any:
    """What a script of this folder prints; it stands beside the packages that it needs."""
    if not (FOLDER / "node_modules" / "openai").is_dir():
        pytest.skip("the clients from npm are not installed")
    return json.loads(said_by(served, "node", str(FOLDER / file), *args))


# `llm`, from Python


def test_llm_gets_an_answer_streamed_or_not(served: Served) -> None:
    assert said_by(served, "llm", "-m", "gateway", "Double 4.") == "It is 8."
    assert said_by(served, "llm", "-m", "gateway", "--no-stream", "-s", "Be brief.", "Double 4.") == "It is 8."
    assert "Be brief." in str(served.model.asked[-1]["messages"])


def test_llm_goes_on_with_a_conversation(served: Served) -> None:
    said_by(served, "llm", "-m", "gateway", "I am Ann. Double 4.")
    assert said_by(served, "llm", "-c", "What is my name?") == "You are Ann."


def test_llm_performs_its_own_tools(served: Served) -> None:
    tool = str(Path(served.env["LLM_USER_PATH"]) / "look.py")
    for how in ((), ("--no-stream",)):
        assert said_by(served, "llm", "-m", "gateway", "--functions", tool, *how, "Look outside.") == "The sky is red."


def test_llm_gets_an_answer_that_fits_a_schema(served: Served) -> None:
    made = said_by(served, "llm", "-m", "gateway", "--schema", "city, degrees int", "The weather of Rome as JSON.")
    assert json.loads(made) == {"city": "Rome", "degrees": 21}


def test_llm_says_what_went_wrong(served: Served) -> None:
    assert "odel" in said_by(served, "llm", "-m", "gateway", "Break off.", fails=True)
    refused = said_by(served, "llm", "-m", "gateway", "--key", "tao-another-key", "Double 4.", fails=True)
    assert "unknown API key" in refused
    assert "tao-another-key" not in refused


# `ai` and `openai`, from Node.js


def test_ai_generates_and_streams_text(served: Served) -> None:
    for scenario in ("text", "stream"):
        made = node(served, "ai.mjs", scenario)
        assert (made["text"], made["finish"]) == ("It is 8.", "stop")
        assert (made["usage"]["inputTokens"], made["usage"]["outputTokens"]) == (20, 6)
    assert len(made["pieces"]) > 1


def test_ai_performs_its_own_tools(served: Served) -> None:
    made = node(served, "ai.mjs", "tools")
    assert (made["text"], made["steps"], made["calls"]) == ("The sky is red.", 2, [{"window": "east"}])
    made = node(served, "ai.mjs", "stream-tools")
    assert (made["text"], made["steps"]) == ("The sky is red.", 2)


def test_ai_gets_an_object(served: Served) -> None:
    assert node(served, "ai.mjs", "object") == {"output": {"city": "Rome", "degrees": 21}}


def test_ai_sends_a_history(served: Served) -> None:
    assert node(served, "ai.mjs", "chat") == {"text": "You are Ann."}


def test_ai_is_told_what_went_wrong(served: Served) -> None:
    made = node(served, "ai.mjs", "error")
    assert made["status"] == 404
    assert "`nobody` does not exist" in made["message"]
    made = node(served, "ai.mjs", "broken")
    assert made["pieces"][0] == "Some"
    assert "model" in made["error"]


def test_the_official_client_for_node_follows_chats_and_responses(served: Served) -> None:
    assert node(served, "openai.mjs") == {
        "models": ["assistant"],
        "chat": "It is 8.",
        "streamed": "It is 8.",
        "response": "It is 8.",
        "next": "It is not known.",
        "error": [404, "model_not_found"],
    }


# `createAgent` of LangChain.js


def test_langchain_gets_an_answer_and_streams_it(served: Served) -> None:
    assert node(served, "langchain.mjs", "text") == [["human", "Double 4."], ["ai", "It is 8."]]
    pieces = node(served, "langchain.mjs", "stream")
    assert "".join(pieces) == "It is 8."
    assert len(pieces) > 1


def test_langchain_performs_its_own_tools(served: Served) -> None:
    made = node(served, "langchain.mjs", "tools")
    kinds = [kind for kind, _ in made["messages"]]
    assert kinds == ["human", "ai", "tool", "ai"]
    assert made["messages"][-1][1] == "The sky is red."
    assert len(set(made["ids"])) == 2


def test_langchain_goes_on_with_a_conversation(served: Served) -> None:
    messages = node(served, "langchain.mjs", "turns")
    assert [kind for kind, _ in messages] == ["human", "ai", "tool", "ai", "human", "ai"]
    assert [text for _, text in messages][3::2] == ["The sky is red.", "You are Ann."]


def test_langchain_is_told_what_went_wrong(served: Served) -> None:
    made = node(served, "langchain.mjs", "error")
    assert made["status"] == 404
    assert "`nobody` does not exist" in made["message"]
