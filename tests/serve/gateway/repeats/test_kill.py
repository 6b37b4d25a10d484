"""`kill -9` in the middle of a run: clients retry, the server starts again, and nothing is ordered twice."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from openai import OpenAI
from tests.serve.gateway.conftest import Upstream, model_env, until, upstream
from tests.serve.gateway.server_process import Served, serving
from tests.shell import ENTRY, run_in_process, until_line

ORDER = {"tool_calls": [{"name": "order", "args": {"item": "tea"}}]}
SLOW_ORDER = {**ORDER, "hangs": True}
DONE = "Ordered."
SLOW_DONE = {"text": DONE, "hangs": True}
FINAL = 'Thought: done\nAction:\n```json\n{"action": "Final Answer", "action_input": "Ordered."}\n```'

TOOLS = """\
import threading
from pathlib import Path
from taoloop import tool

ORDERS, HANG = Path(__file__).with_name("orders.txt"), Path(__file__).with_name("hang")


@tool(tier="write", egress=False)
def order(item: str) -> str:
    '''Order something.'''
    with ORDERS.open("a") as orders:
        orders.write(item + "\\n")
    while HANG.exists():
        threading.Event().wait(0.01)
    return "ordered"
"""

AGENT = """\
model: openai:m
dialect: native
tools: [shop_tools:order]
policy: {rules: [{verdict: allow, tool: order, reason: Orders are free.}]}
"""
INLINE = "agents:\n  assistant:\n" + "".join(f"    {line}\n" for line in AGENT.splitlines())
AI_AGENT = """\
llm: {apiKey: "k", serviceName: "llm.dns", servicePort: PORT, domain: "127.0.0.1", path: "/v1/chat", model: "m"}
apis:
  - apiProvider: {serviceName: "shop.dns", servicePort: PORT, domain: "127.0.0.1"}
    api: |
      openapi: 3.1.0
      info: {title: shop, version: 1.0.0}
      servers: [{url: "http://127.0.0.1:PORT"}]
      paths: {/stock: {get: {operationId: stock, description: What is there., parameters: []}}}
"""


def a_file(folder: Path, form: str, server: Upstream) -> Path:
    """A configuration whose agent may order; each form has another name for it."""
    (folder / "shop_tools.py").write_text(TOOLS)
    texts = {
        "agent": ("assistant.yaml", f"name: assistant\n{AGENT}"),
        "inline": ("gateway.yaml", INLINE),
        "ai-agent": ("assistant.yaml", AI_AGENT.replace("PORT", server.url.rpartition(":")[2])),
    }
    name, text = texts[form]
    path = folder / name
    path.write_text(text)
    return path


def a_free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@contextmanager
def served_at(path: Path, server: Upstream, port: str) -> Iterator[Served]:
    with serving(path, server, "--port", port, env={"PYTHONPATH": str(path.parent)}) as served:
        yield served


class Client:
    """OpenAI's client as it comes, which sends its retries once the server is back."""

    def __init__(self, port: str) -> None:
        self.may_send, self.sent = threading.Event(), 0
        self.may_send.set()
        self.answers: list[Any] = []
        http = httpx.Client(event_hooks={"request": [self._before_request]})
        self._sdk = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", http_client=http)
        self._thread = threading.Thread(target=self._ask)
        self.headers: dict[str, str] = {}

    def _before_request(self, _request: httpx.Request) -> None:
        self.sent += 1
        assert self.may_send.wait(60)

    def _ask(self) -> None:
        try:
            messages: Any = [{"role": "user", "content": "Order tea."}]
            chat = self._sdk.chat.completions
            self.answers.append(chat.create(model="assistant", messages=messages, extra_headers=self.headers))
        except Exception as error:  # noqa: BLE001  # the test looks at it
            self.answers.append(error)

    def start(self) -> None:
        self._thread.start()

    def answer(self) -> Any:
        self._thread.join(60)
        self._sdk.close()
        [answer] = self.answers
        return answer.choices[0].message.content


def killed(served: Served) -> None:
    served.process.kill()
    served.process.wait(20)


POINTS: list[tuple[str, list[Any]]] = [
    ("before the order", [SLOW_ORDER, ORDER, DONE]),
    ("after the order", [ORDER, SLOW_DONE, DONE]),
    ("in the order", [ORDER, DONE]),
]


@pytest.mark.skipif(os.name != "posix", reason="run locks need fcntl")
@pytest.mark.parametrize("key", ["", pytest.param("k1", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("point", "replies"), POINTS, ids=[point for point, _ in POINTS])
def test_a_client_that_retries_after_a_kill_places_one_order(
    tmp_path: Path, point: str, replies: list[Any], key: str
) -> None:
    hang, orders, port = tmp_path / "hang", tmp_path / "orders.txt", a_free_port()
    if point == "in the order":
        hang.touch()
    with upstream(*replies) as server:
        path = a_file(tmp_path, "inline", server)
        client = Client(port)
        if key:
            client.headers["Idempotency-Key"] = key
        with served_at(path, server, port) as served:
            client.start()
            until(orders.exists if point == "in the order" else server.waiting.is_set)
            client.may_send.clear()
            killed(served)
            until(lambda: client.sent == 2)
        server.go_on()
        hang.unlink(missing_ok=True)
        with served_at(path, server, port):
            client.may_send.set()
            answer = client.answer()
    assert orders.read_text() == "tea\n"
    if point == "in the order":
        assert "outcome of these calls is unknown" in answer
    else:
        assert answer == DONE
    assert len(run_ids(tmp_path)) == 1


def run_ids(folder: Path) -> list[str]:
    ended = run_in_process(("runs", "--db", str(folder / "runs.db"), "--json"), folder, os.environ)
    assert ended.code == 0, ended.err
    return [event["run_id"] for event in ended.events]


def left_running(path: Path, server: Upstream) -> str:
    """The run of a server that was killed during its model call."""
    with served_at(path, server, "0") as served:
        thread = threading.Thread(target=lambda: _no_answer(served))
        thread.start()
        assert server.waiting.wait(60)
        killed(served)
        thread.join(20)
    server.go_on()
    [run_id] = run_ids(path.parent)
    return run_id


def _no_answer(served: Served) -> None:
    with pytest.raises((OSError, ValueError)):
        served.ask("Order tea.")


FORMS = ["agent", *(pytest.param(form, marks=pytest.mark.nightly) for form in ("inline", "ai-agent"))]


def replies_of(form: str) -> list[Any]:
    first, last = ({**SLOW_DONE}, FINAL if form == "ai-agent" else DONE)
    return [first, last]


@pytest.mark.skipif(os.name != "posix", reason="run locks need fcntl")
@pytest.mark.parametrize("form", FORMS)
def test_a_run_without_a_process_is_resumed_at_the_start(form: str, tmp_path: Path) -> None:
    with upstream(*replies_of(form)) as server:
        path = a_file(tmp_path, form, server)
        run_id = left_running(path, server)
        with served_at(path, server, "0") as served:
            until_line(served.process, served.process.stderr, f"run {run_id} lost its process, and is resumed")
            until_line(served.process, served.process.stderr, f"run {run_id} was recovered: completed")
            assert served.get(f"/v1/runs/{run_id}")[1]["answer"] == DONE


@pytest.mark.skipif(os.name != "posix", reason="run locks need fcntl")
@pytest.mark.parametrize("form", FORMS)
def test_tao_recover_finds_the_agent_of_a_run(form: str, tmp_path: Path) -> None:
    with upstream(*replies_of(form)) as server:
        run_id = left_running(a_file(tmp_path, form, server), server)
        env = {**os.environ, **model_env(server), "PYTHONPATH": str(tmp_path)}
        recovered = subprocess_tao(tmp_path, env, "recover", "--db", str(tmp_path / "runs.db"))
    assert f"{run_id}  completed" in recovered.stdout, recovered.stderr


def subprocess_tao(folder: Path, env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ENTRY, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
