"""A server's questions (elicitation) in a run: who is asked, what goes back, what is recorded, what the model reads."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chinese import english_in

from taoloop import Agent, ApprovalAnswer, ApprovalRequest, ScriptedModel
from taoloop.core.events import InDoubt, Observed
from taoloop.core.human_input import InputAnswered
from taoloop.core.stored_events import encode_fact
from taoloop.core.views.transcript import Result, step_summaries
from taoloop.runtime.after.replay import replay
from taoloop.tools.mcp import McpServer, close_all, close_server, mcp_tools
from taoloop.tools.mcp.open_calls import CallTimer, OpenCall, asking_call

from .calling import Make
from .conftest import GOOD, Good
from .test_load import call, facts

ASK = call("good.ask")


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def log(journal: Path) -> Path:
    journal.write_text("")
    return journal


def run(good: Good, approve: Any, script: Any = ASK, **settings: Any) -> Result:
    tools = mcp_tools(good(**{"tiers": {"*": "write"}, "timeout_s": 5.0, **settings})).tools
    agent = Agent(model=ScriptedModel([script, "done"]), tools=tools, policy="autonomous", approve=approve)
    return asyncio.run(agent.run("do it"))


def test_a_form_is_filled_in_by_the_person_and_recorded_without_secrets(good: Good, log: Path) -> None:
    requests: list[ApprovalRequest] = []

    async def person(request: ApprovalRequest) -> ApprovalAnswer:
        requests.append(request)
        return ApprovalAnswer(approved=True, by="ada", args={"name": "Ada", "password": "correct-horse-9"})

    result = run(good, person)
    [request] = requests
    assert request.question is not None
    assert request.question.asker == "MCP server 'good'"
    assert request.question.message == "Who are you?"
    assert [*request.question.properties] == ["name", "password"]
    assert request.tool == "good.ask"
    assert "effect of ask: accept {'name': 'Ada', 'password': 'correct-horse-9'}" in log.read_text()
    [fact] = facts(result, InputAnswered)
    assert (fact.action, fact.by, fact.content["name"]) == ("accept", "ada", "Ada")
    assert "correct-horse" not in "".join(encode_fact(event.fact).decode() for event in result.trace)
    assert [observed.output for observed in facts(result, Observed)] == ["accept Ada"]
    assert all(event.same for event in replay(result.trace))
    questions = [question for row in step_summaries(result.trace) for question in row.get("questions", ())]
    assert [(question["message"], question["action"], question["by"]) for question in questions] == [
        ("Who are you?", "accept", "ada")
    ]


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (ApprovalAnswer(approved=False, by="ada", note="not yours"), "decline"),
        (None, "cancel"),
        (True, "decline"),  # a yes of somebody who knows nothing of forms fills none in
        (ApprovalAnswer(approved=True, by="ada", args={"name": 7}), "cancel"),  # it does not fit the form
    ],
)
def test_what_is_not_filled_in_is_not_accepted(good: Good, log: Path, answer: Any, action: str) -> None:
    result = run(good, lambda _request: answer)
    assert [fact.action for fact in facts(result, InputAnswered)] == [action]
    assert f"effect of ask: {action} None" in log.read_text()


def test_a_page_is_opened_by_the_person_and_its_query_is_not_recorded(good: Good, log: Path) -> None:
    urls: list[str] = []

    def person(request: ApprovalRequest) -> ApprovalAnswer:
        assert request.question is not None
        urls.append(request.question.url)
        return ApprovalAnswer(approved=True, by="ada", args={})

    result = run(good, person, call("good.ask", page=True))
    assert urls == ["https://pay.example/x?token=abc"]
    assert [(fact.action, fact.url, fact.fields) for fact in facts(result, InputAnswered)] == [
        ("accept", "https://pay.example/x", None)
    ]
    assert "effect of ask: accept" in log.read_text()


def test_where_nobody_can_be_asked_it_is_declined_and_the_model_reads_why(good: Good, log: Path) -> None:
    result = run(good, None)
    assert "effect of ask: decline" in log.read_text()
    [fact] = facts(result, InputAnswered)
    assert (fact.action, fact.by, fact.note) == ("decline", "", "nobody can be asked in this run")
    [observed] = facts(result, Observed)
    assert "The server asked the user: Who are you? It was declined, for nobody can be asked in this run." in (
        observed.output
    )


def test_who_does_not_answer_in_time_has_declined(good: Good, log: Path) -> None:
    """Also where the server itself may only be silent for less: the time of a person is not the server's."""

    async def person(_request: ApprovalRequest) -> ApprovalAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    result = run(good, person, timeout_s=0.3, answer_timeout_s=0.5)
    assert [fact.note for fact in facts(result, InputAnswered)] == ["nobody answered within 0.5 s"]
    assert "effect of ask: decline" in log.read_text()
    assert [observed.ok for observed in facts(result, Observed)] == [True]


def test_a_question_goes_to_the_run_whose_call_asks(good: Good) -> None:
    """Over HTTP and in the stateless era; elsewhere a question of one of two runs goes to nobody."""
    server = good(tiers={"*": "write"})
    tools = mcp_tools(server).tools

    async def both() -> list[Result]:
        ready = asyncio.Barrier(2)

        def person(name: str) -> Any:
            async def answer(_request: ApprovalRequest) -> ApprovalAnswer:
                await ready.wait()
                return ApprovalAnswer(approved=True, by=name, args={"name": name})

            return answer

        agents = [
            Agent(model=ScriptedModel([ASK, "done"]), tools=tools, policy="autonomous", approve=person(name))
            for name in ("ada", "bob")
        ]
        return await asyncio.gather(*(agent.run("do it") for agent in agents))

    if server.command and server.protocol == "2025-11-25":
        pytest.skip("over stdio in the handshake era nothing says which call asks; see the next test")
    results = asyncio.run(both())
    assert [fact.by for result in results for fact in facts(result, InputAnswered)] == ["ada", "bob"]


def test_a_question_that_may_be_of_another_run_goes_to_nobody() -> None:
    one, same, other = (OpenCall(timer=CallTimer(1.0, 1.0), run_id=run_id) for run_id in ("a", "a", "b"))
    assert asking_call([]) is None
    assert asking_call([one, same]) is one
    assert asking_call([one, other]) is None


@pytest.mark.parametrize(("args", "sent"), [({}, 2), (None, 1)])
def test_a_call_that_needs_an_opened_page_first_is_sent_again_once_it_was_opened(
    fake: Make, tmp_path: Path, args: dict[str, Any] | None, sent: int
) -> None:
    page = {"mode": "url", "message": "Sign in.", "url": "https://a.example/", "elicitationId": "e"}
    error = {"code": -32042, "message": "sign in first", "data": {"elicitations": [page]}}
    log = tmp_path / "calls"
    tools = mcp_tools(fake({"call": "error", "error": error, "log": str(log)}, tiers={"echo": "write"})).tools
    answer = ApprovalAnswer(approved=True, by="ada", args=args)
    model = ScriptedModel([call("fake.echo", text="x"), "done"])
    agent = Agent(model=model, tools=tools, policy="autonomous", approve=lambda _request: answer)
    result = asyncio.run(agent.run("do it"))
    assert [fact.url for fact in facts(result, InputAnswered)] == ["https://a.example/"]
    assert log.read_text().count("tools/call") == sent
    close_server(fake({"call": "error", "error": error, "log": str(log)}))


def test_a_question_in_chinese_runs(good: Good) -> None:
    tools = mcp_tools(good(tiers={"*": "write"})).tools
    agent = Agent(model=ScriptedModel([ASK, "好"]), tools=tools, policy="autonomous", language="zh")
    result = asyncio.run(agent.run("做吧"))
    [observed] = facts(result, Observed)
    assert "Who are you?" in observed.output
    assert not english_in(observed.output.replace("decline None", "").replace("Who are you?", ""))


KILLED = """
import asyncio, pathlib, sys
from taoloop import Agent, ScriptedModel
from taoloop.tools.mcp import McpServer, mcp_tools

async def person(request):
    print("asked", flush=True)
    await asyncio.Event().wait()

args = __import__("json").loads(sys.argv[1]) | {"pins": pathlib.Path(sys.argv[3])}
script = [{"tool_calls": [{"name": "good.ask", "args": {}}]}, "done"]
agent = Agent(
    model=ScriptedModel(script), tools=mcp_tools(McpServer(**args)).tools, policy="autonomous", approve=person,
    journal=sys.argv[2],
)
asyncio.run(agent.run("do it", run_id="r1"))
"""


def test_after_a_kill_while_a_person_is_asked_the_call_is_not_made_twice(tmp_path: Path) -> None:
    log, db = tmp_path / "log", tmp_path / "runs.db"
    log.touch()
    settings: dict[str, Any] = {
        "name": "good",
        "command": sys.executable,
        "args": [str(GOOD), "stdio", str(log)],
        "tiers": {"*": "write"},
    }
    argv = [sys.executable, "-c", KILLED, json.dumps(settings), str(db), str(tmp_path / "pins")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"asked\n"
        os.kill(process.pid, signal.SIGKILL)
    tools = mcp_tools(McpServer(**settings, pins=tmp_path / "pins")).tools
    agent = Agent(model=ScriptedModel(["done"]), tools=tools, policy="autonomous", journal=db)
    result = asyncio.run(agent.resume("r1"))
    assert log.read_text().count("call ask") == 1
    assert facts(result, InDoubt)
