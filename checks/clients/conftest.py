"""`tao serve` as a process, with a model that answers by what it is asked, and clients that others wrote.

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
  clerk:
    model: openai:m
    tools: [write_file]
    workspace: files
    dialect: native
server:
  protocols: [agui, a2a]
keys:
  - name: check
    digest: {KEY.digest}
    task_authority: full
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
    if "<chat_history>" in asked:
        return '{"title": "Eight"}'
    if "JSON" in asked:
        return '{"city": "Rome", "degrees": 21}'
    if "my name" in asked:
        return "You are Ann." if "Ann" in str(messages) else "It is not known."
    if "outside" in asked:
        look = {"tool_calls": [{"name": "look_outside", "args": {"window": "east"}}]}
        return "The sky is red." if "all red" in seen else look
    if "Write" in asked:
        write = {"tool_calls": [{"name": "write_file", "args": {"path": "a.txt", "content": "all"}}]}
        return "It is over." if seen else write
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


def python(served: Served, file: str, *args: str) -> Any:
    """What a script of this folder prints; it runs in the environment of the clients from Python."""
    program = FOLDER / "python" / "bin" / "python"
    if not program.is_file():
        pytest.skip("the clients from Python are not installed")
    return json.loads(said_by(served, str(program), str(Path(__file__).with_name(file)), *args))


def node(served: Served, file: str, *args: str) -> Any:
    """What a script of this folder prints; it stands beside the packages that it needs."""
    if not (FOLDER / "node_modules" / "openai").is_dir():
        pytest.skip("the clients from npm are not installed")
    return json.loads(said_by(served, "node", str(FOLDER / file), *args))
