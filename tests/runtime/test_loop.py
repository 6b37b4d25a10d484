"""What was asked for about the loop itself, line by line: what it needs, how it ends, how it goes on after an error."""

from __future__ import annotations

import ast
import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import jsonschema_rs
import pytest
from pydantic import Field
from tests.scripting import call, calls
from tests.tools.egress.site import Site

import taoloop
from taoloop import Agent, Limits, ScriptedModel, ToolError, tool
from taoloop.core import ModelReply, ModelRequest
from taoloop.core.events import ActionRequested, Observed
from taoloop.core.views.transcript import Result
from taoloop.errors import InvalidArguments
from taoloop.models import Reply
from taoloop.policy import Policy, Rule
from taoloop.tools import Tool, tool_from_card
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.sql import Database, sql_tools

PURE = ("core", "policy", "dialects", "strategies", "prompts", "runtime", "errors.py")
OFFLINE = """
import os, runpy, sys, tempfile

def refuse(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        raise PermissionError(event)

os.environ.clear()
_, tempfile.tempdir, *examples = sys.argv
sys.addaudithook(refuse)
for example in examples:
    sys.argv = [example]
    runpy.run_path(example, run_name="__main__")
"""


@tool(tier="read")
def stock(item: str) -> int:
    """Say how many pieces of one item there are."""
    if item not in {"tea", "茶"}:
        raise ToolError(f"There is no {item}.", code="unknown_item", hint="There is tea.")
    return 12


@tool(tier="read")
def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b


class Watching(ScriptedModel):
    def __init__(self, replies: list[Any]) -> None:
        super().__init__(replies)
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return await super().complete(request)


def run(*replies: Any, tools: Any = (stock, multiply), **options: Any) -> Result:
    return Agent(model=ScriptedModel(list(replies)), tools=tools, **options).run_sync("How much tea, times 3?")


def observations(result: Result) -> list[Observed]:
    return [event.fact for event in result.trace.events if isinstance(event.fact, Observed)]


# What it needs


def test_the_loop_is_built_on_no_agent_framework() -> None:
    """S0-1, S0-28: decisions, strategies, policy and runner import the standard library and a validator of data."""
    root = Path(taoloop.__file__).parent
    imported = set()
    for path in (file for name in PURE for file in ([root / name] if "." in name else (root / name).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    validators, others = {"pydantic", "pydantic_core", "typing_extensions"}, {"opentelemetry", "temporalio"}
    assert imported - sys.stdlib_module_names - {"taoloop"} <= validators | others


def test_scripted_runs_need_no_network_and_no_key(tmp_path: Path) -> None:
    """S0-2."""
    examples = Path(__file__).parents[2] / "examples"
    names = [str(examples / f"{name}.py") for name in ("huala", "hour", "handbook", "four_modes", "html_game")]
    args = [sys.executable, "-c", OFFLINE, str(tmp_path), *names]
    done = subprocess.run(args, capture_output=True, text=True, check=True)
    assert "7 Final 10" in done.stdout


def test_the_model_gets_the_goal_and_the_trace_so_far() -> None:
    """S0-4, S2-1: and gives the next output."""
    model = Watching([call("stock", item="tea"), call("multiply", a=12, b=3), "36"])
    Agent(model=model, tools=[stock, multiply]).run_sync("How much tea, times 3?")
    assert {request.trace.task for request in model.asked} == {"How much tea, times 3?"}
    prompts = [str(request.messages) for request in model.asked]
    assert ["How much tea, times 3?" in prompt for prompt in prompts] == [True] * 3
    assert [len(request.messages) for request in model.asked] == [2, 4, 6]


def test_one_registry_shows_the_tools_and_finds_their_functions() -> None:
    """S0-9, S3-3, S3-10, S4-29: a tool more is one entry more."""
    model = Watching([call("stock", item="tea"), call("multiply", a=12, b=3), "36"])
    box = Agent(model=model, tools=[stock, multiply]).toolbox
    card = box.get("multiply").card
    assert (card.name, card.purpose, sorted(card.parameters)) == ("multiply", "Multiply two integers.", ["a", "b"])
    assert box.get("multiply")(6, 7) == 42
    result = Agent(model=model, tools=[stock, multiply]).run_sync("x")
    assert {"stock", "multiply"} <= {card.name for card in model.asked[0].tools}
    assert [observed.output for observed in observations(result)] == ["12", "36"]
    alone = run(call("multiply", a=12, b=3), "x", tools=[stock])
    assert [observed.error and observed.error.code for observed in observations(alone)] == ["unknown_tool"]


@pytest.mark.parametrize(
    "args", [{"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": "x"}, {"a": 1, "b": 2, "c": 3}, {"a": 10, "b": 2}, {}]
)
def test_the_schema_that_the_model_reads_is_the_one_that_judges(args: dict[str, Any]) -> None:
    """S4-31: both come from the signature, written once."""

    @tool(tier="read")
    def scale(a: Annotated[int, Field(lt=10)], b: int = 2) -> int:
        """Multiply two integers."""
        return a * b

    model = Watching([{"text": '{"thought": "t", "action": "final", "action_input": "x"}'}])
    Agent(model=model, tools=[scale], dialect="json").run_sync("x")
    schema = json.dumps(scale.card.input_schema, ensure_ascii=False, separators=(",", ":"))
    assert schema in model.asked[0].messages[0].content.replace(": ", ":").replace(", ", ",")
    fits = jsonschema_rs.validator_for(dict(scale.card.input_schema)).is_valid(args)
    try:
        scale.prepare(args)
    except InvalidArguments:
        assert not fits
    else:
        assert fits


# How it ends


@pytest.mark.parametrize(
    ("replies", "limits", "status", "steps"),
    [
        (["It is 36."], Limits(), "completed", 1),
        ([call("stock", item="tea"), call("multiply", a=12, b=3), "36"], Limits(), "completed", 3),
        ([call("multiply", a=n, b=3) for n in range(9)], Limits(max_steps=2), "max_steps_exceeded", 2),
        ([call("multiply", a=n, b=3) for n in range(9)], Limits(max_tool_calls=2), "budget_exceeded", 3),
        ([call("stock", item="tea")] * 9, Limits(), "repeated_action", 5),
        ([call("stock", item="x")] * 9, Limits(), "too_many_errors", 3),
    ],
)
def test_a_run_has_an_explicit_end(replies: list[Any], limits: Limits, status: str, steps: int) -> None:
    """S4-1 to S4-3, S4-10, S3-51: the model decides whether it calls a tool at all; limits end what it does not."""
    model = ScriptedModel(replies, strict=False)
    result = Agent(model=model, tools=[stock, multiply], limits=limits, closing_turn=False).run_sync("x")
    assert (result.status, len(result.trace.steps)) == (status, steps)
    assert (result.answer is None) == (status != "completed")
    assert len(observations(result)) >= steps - 1


def test_the_engineering_set_is_there_without_any_setting() -> None:
    """S2-43: registry, structured output, step limit, repeat detection, confirmation, trace."""

    @tool(tier="destructive")
    def throw_away(item: str) -> str:
        """Throw all pieces of an item away."""
        return item

    agent = Agent(model=ScriptedModel([call("throw_away", item="tea")]), tools=[stock, throw_away], output_type=int)
    result = agent.run_sync("How much tea?")
    assert agent.toolbox.names[:2] == ("stock", "throw_away")
    assert result.trace.agent.output_schema == {"type": "integer"}
    assert (agent.limits.max_steps, agent.limits.repeat_stop) == (6, 5)
    assert result.status == "waiting"
    assert [event.fact.kind for event in result.trace.events][-2:] == ["action_requested", "paused"]


# How it goes on


def test_an_error_is_an_observation_that_the_next_turn_repairs() -> None:
    """S3-5, S3-18: and it has the form of a success."""
    model = Watching([call("stock", item="Tea"), "", call("stock", item="茶"), "12"])
    result = Agent(model=model, tools=[stock]).run_sync("How much tea?")
    assert (result.status, result.answer) == ("completed", "12")
    failed, done = observations(result)
    assert (failed.ok, done.ok, done.output) == (False, True, "12")
    assert failed.error is not None
    assert "There is no Tea." in model.asked[1].messages[-1].content
    assert model.asked[2].purpose == "repair"
    shown = [entry for entry in result.entries if entry.kind == "Observation"]
    assert [(entry.tool, entry.ok) for entry in shown] == [("stock", False), ("parser", False), ("stock", True)]


@pytest.mark.parametrize("args", ["8,2", [8, 2], 8, None])
def test_an_input_that_is_no_object_is_an_error_that_shows_the_form(args: Any) -> None:
    """S3-34: with more than one parameter nothing says what it means."""
    text = json.dumps({"thought": "t", "action": "multiply", "action_input": args})
    final = json.dumps({"thought": "t", "action": "final", "action_input": "x"})
    result = run(text, final, dialect="json")
    [entry] = [entry for entry in result.entries if entry.kind == "Observation"]
    assert entry.ok is False
    assert "a" in entry.content
    assert result.status == "completed"


def test_a_structured_call_of_the_model_is_carried_out_by_the_program() -> None:
    """S4-43."""
    model = ScriptedModel([{"tool_calls": [{"name": "stock", "args": {"item": "tea"}}]}, "12 pieces."])
    result = Agent(model=model, tools=[stock]).run_sync("How much tea is there?")
    (observed,) = [event.fact for event in result.trace if isinstance(event.fact, Observed)]
    assert (observed.ok, observed.output, result.answer) == (True, "12", "12 pieces.")


def test_an_action_has_a_call_id_and_arguments_as_json() -> None:
    """S0-30, S3-36: and its observation names it; the text form is not ASCII-escaped."""
    result = run(calls(("stock", {"item": "茶"}), ("multiply", {"a": 2, "b": 3})), "x")
    facts = [event.fact for event in result.trace.events]
    asked = [(fact.call_id, fact.tool, fact.args) for fact in facts if isinstance(fact, ActionRequested)]
    assert asked == [("call_1", "stock", {"item": "茶"}), ("call_2", "multiply", {"a": 2, "b": 3})]
    assert {observed.call_id: observed.output for observed in observations(result)} == {"call_1": "12", "call_2": "6"}
    assert 'Action: stock\nAction Input: {"item": "茶"}\n' in result.text


# What it may do

DOCUMENT = """
openapi: 3.1.0
info: {title: Shop, version: "1"}
paths:
  /orders:
    post: {operationId: create_order, summary: "Create an order; one at a time."}
"""


def _effects(folder: Path, site: Site) -> dict[str, tuple[Tool | str, dict[str, Any]]]:
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.execute("CREATE TABLE log (word TEXT)")
        database.commit()
    written = sql_tools(Database(name="shop", url=f"sqlite:///{folder / 'shop.db'}", write=True)).tools
    sent = openapi_tools(OpenapiSource(document=DOCUMENT, base_url=site.url)).tools
    statement = "INSERT INTO log VALUES ('x')"
    return {
        "file": ("write_file", {"path": "new.txt", "content": "x"}),
        "request": (next(tool for tool in sent if tool.name == "create_order"), {}),
        "database": (next(tool for tool in written if tool.name == "shop.execute"), {"statement": statement}),
    }


@pytest.mark.parametrize("effect", ["file", "request", "database"])
def test_a_file_a_request_and_a_database_are_changed_after_approval_only(effect: str, tmp_path: Path) -> None:
    """S0-37, S3-41."""

    def changes() -> list[bool]:
        with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
            rows = database.execute("SELECT * FROM log").fetchall()
        return [(tmp_path / "files" / "new.txt").exists(), bool(site.got), bool(rows)]

    (tmp_path / "files").mkdir()
    with Site({"/orders": (200, {"Content-Type": "application/json"}, b"{}")}) as site:
        changing, args = _effects(tmp_path, site)[effect]
        name = changing if isinstance(changing, str) else changing.name
        script: list[Reply] = [call(name, **args), "done"]
        agent = Agent(
            model=ScriptedModel(script),
            tools=[changing],
            workspace=tmp_path / "files",
            journal=tmp_path / "runs.db",
        )
        waiting = agent.run_sync("Look after the shop.")
        assert (waiting.status, changes()) == ("waiting", [False] * 3)
        done = replace(agent, approve=lambda _request: True).resume_sync(waiting.run_id)
        assert done.status == "completed"
        assert changes() == [effect == kind for kind in ("file", "request", "database")]


def test_each_action_can_be_checked_recorded_stopped_and_carried_out_by_another_executor() -> None:
    """S0-43."""
    sold: list[str] = []

    @tool(tier="destructive", reversible=False)
    def sell(item: str) -> str:
        """Sell all pieces of an item."""
        sold.append(item)
        return "sold"

    script: list[Reply] = [call("sell", item="tea"), "done"]
    checked: list[tuple[str, dict[str, Any]]] = []

    def check(request: taoloop.ApprovalRequest) -> bool:
        checked.append((request.tool, dict(request.args)))
        return bool(request.args["item"] != "tea")

    refused = run(*script, tools=[sell], approve=check)
    assert (checked, sold) == ([("sell", {"item": "tea"})], [])
    denied = run(*script, tools=[sell], policy=Policy(rules=(Rule(verdict="deny", tool="sell", reason="not today"),)))
    for result in (refused, denied):
        record = result.trace.calls["call_1"]
        assert (record.requested.tool, record.requested.args) == ("sell", {"item": "tea"})
        assert record.observed is not None
        assert record.observed.ok is False

    async def stop() -> Result:
        agent = Agent(model=ScriptedModel(script), tools=[sell], journal=taoloop.MemoryJournal(), approve=hang)
        asked.clear()
        running = asyncio.create_task(agent.run("x", run_id="r"))
        await asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await replace(agent, approve=lambda _request: False).resume("r")

    asked = asyncio.Event()

    async def hang(_request: taoloop.ApprovalRequest) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    assert asyncio.run(stop()).status == "completed"
    assert sold == []
    elsewhere = tool_from_card(sell.card, lambda item: f"noted {item}")
    other = run(*script, tools=[elsewhere], approve=lambda _request: True)
    assert (observations(other)[0].output, sold) == ("noted tea", [])
