"""The dependencies of a run: given, made, inherited, checked; and the instructions made of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import wraps
from typing import Annotated, Any, Literal, Protocol, TypedDict

import pytest
from pydantic import BaseModel

from taoloop import END, START, Agent, Graph, MemoryJournal, Node, RunContext, RunInfo, recover, tool
from taoloop.core.stored_events import encode_fact
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, UnknownName
from taoloop.models.function import FunctionModel
from taoloop.runtime import Handoff
from taoloop.runtime.engine.run_dependencies import check_deps, type_name

SECRET = "Zebra-Quince-7"


@dataclass
class Shop:
    """What the program gives each run."""

    owner: str
    password: str = SECRET


class Other:
    """Of another type."""


@tool(tier="read")
async def owner(ctx: RunContext[Shop]) -> str:
    """Whose shop it is."""
    await asyncio.sleep(0)
    return ctx.deps.owner


@tool(tier="draft")
async def keep(ctx: RunContext[Shop]) -> str:
    """Keep it."""
    return ctx.deps.owner


CALL = {"tool_calls": [{"name": "owner", "args": {}}]}


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, run in an event loop of its own."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def agent(*replies: Any, **settings: Any) -> Agent[Shop, Any]:
    settings = {"tools": [owner], "journal": MemoryJournal(), "deps_type": Shop, **settings}
    return Agent(model=list(replies) or [CALL, "Done."], **settings)


def outputs(trace: Trace) -> list[str]:
    return [call.observed.output for call in trace.calls.values() if call.observed is not None]


async def stored(journal: MemoryJournal) -> list[str]:
    """Everything that a journal has, as text."""
    texts = []
    for row in await journal.runs(limit=100):
        texts += [encode_fact(event.fact).decode() for event in await journal.load(row.run_id)]
    return texts


@in_loop
async def test_a_tool_gets_what_the_run_was_given() -> None:
    result = await agent().run("Whose?", deps=Shop("ann"))
    assert (result.status, outputs(result.trace)) == ("completed", ["ann"])


@in_loop
async def test_one_agent_serves_all_users_at_once() -> None:
    def reply(_task: str, trace: Trace) -> Any:
        return CALL if not trace.calls else "Done."

    one = Agent(model=FunctionModel(reply, dialect="native"), tools=[owner], deps_type=Shop)
    runs = await asyncio.gather(*(one.run("Whose?", deps=Shop(f"user {n}")) for n in range(20)))
    assert [outputs(result.trace) for result in runs] == [[f"user {n}"] for n in range(20)]


class Named(Protocol):
    """A protocol, which nobody can check at run time."""

    owner: str


class Plain(TypedDict):
    """Nor this."""

    owner: str


@pytest.mark.parametrize(
    ("kind", "deps", "fits"),
    [
        (Shop, Shop("a"), True),
        (Shop, Other(), False),
        (Shop, None, False),
        (Shop | None, None, True),
        (Shop | Other, Other(), True),
        (Shop | Other, 3, False),
        (Annotated[Shop, "it"], Shop("a"), True),
        (Annotated[Shop, "it"], 3, False),
        (dict[str, int], {"a": 1}, True),
        (dict[str, int], [], False),
        (Literal["a", "b"], "a", True),
        (Literal["a", "b"], "c", False),
        (Named, Shop("a"), True),
        (Named, None, False),
        (Plain, {"owner": "a"}, True),
        (Any, None, True),
        (None, Other(), True),
    ],
)
def test_the_type_is_checked_as_far_as_it_can_be(kind: Any, deps: Any, fits: bool) -> None:
    settings = Agent(model=["x"], deps_type=kind)
    if fits:
        check_deps(settings, deps)
        return
    with pytest.raises(ConfigError) as error:
        check_deps(settings, deps)
    assert type_name(kind) in error.value.message
    assert ("none" if deps is None else type(deps).__name__) in error.value.message


@pytest.mark.parametrize("deps", [None, Other(), "text"])
@in_loop
async def test_a_run_without_fitting_deps_does_not_begin(deps: Any) -> None:
    made = agent()
    with pytest.raises(ConfigError, match="needs deps of the type Shop, and the run was given") as error:
        await made.run("Whose?", deps=deps)
    assert "make_deps" in error.value.hint
    assert await stored(made.journal) == []  # type: ignore[arg-type]  # a MemoryJournal


@in_loop
async def test_an_object_is_no_type() -> None:
    with pytest.raises(ConfigError, match=r"The deps_type of the agent 'agent' is an object of Shop\."):
        await agent(deps_type=Shop("a")).run("x", deps=Shop("a"))


@in_loop
async def test_a_resume_is_held_to_the_type_and_gets_its_own_deps() -> None:
    made = agent({"tool_calls": [{"name": "keep", "args": {}}]}, "Done.", tools=[keep.with_card(approval="required")])
    waiting = await made.run("Keep it", deps=Shop("ann"))
    before = len(waiting.trace)
    assert waiting.status == "waiting"
    resuming = replace(made, approve=lambda _: True)
    with pytest.raises(ConfigError, match="and the run was given none"):
        await resuming.resume(waiting.run_id)
    assert len(await made.journal.load(waiting.run_id)) == before  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match="and the run was given Other"):
        await made.fork(waiting.run_id, at=1, deps=Other())  # type: ignore[arg-type]
    assert len(await made.journal.runs(limit=9)) == 1  # type: ignore[union-attr]
    done = await resuming.resume(waiting.run_id, deps=Shop("bob"))
    assert (done.status, outputs(done.trace)) == ("completed", ["bob"])


def make(info: RunInfo) -> Shop:
    return Shop(f"{info.user}/{info.agent}/{info.run_id}")


async def make_later(info: RunInfo) -> Shop:
    await asyncio.sleep(0)
    return make(info)


@pytest.mark.parametrize("make_deps", [make, make_later])
@in_loop
async def test_an_agent_makes_what_a_run_is_not_given(make_deps: Callable[[RunInfo], Any]) -> None:
    result = await agent(make_deps=make_deps).run("Whose?", user="ann", run_id="r1")
    assert outputs(result.trace) == ["ann/agent/r1"]
    given = await agent(make_deps=make_deps).run("Whose?", deps=Shop("bob"))
    assert outputs(given.trace) == ["bob"]


@in_loop
async def test_what_an_agent_makes_is_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"the function .*lambda.* \(make_deps\) made Other\."):
        await agent(make_deps=lambda _: Other()).run("Whose?")

    def fail(_: RunInfo) -> Shop:
        raise ValueError(SECRET)

    made = agent(make_deps=fail)
    with pytest.raises(ConfigError, match=r"fail \(make_deps of the agent 'agent'\) failed with ValueError") as error:
        await made.run("Whose?")
    assert SECRET not in str(error.value)
    assert isinstance(error.value.__cause__, ValueError)
    assert await stored(made.journal) == []  # type: ignore[arg-type]


@in_loop
async def test_a_recovery_makes_the_deps_of_each_run() -> None:
    journal = MemoryJournal()
    made = agent({"tool_calls": [{"name": "owner", "args": {}}]}, "Done.", journal=journal, make_deps=make)
    started = await made._bound_agent.first_event(
        journal, "Whose?", made.spec_for("Whose?"), history=(), after=None, parent=None, labels={"user": "ann"}
    )
    trace = Trace("r1")
    await journal.append(await journal.create("r1"), [trace.add(started, 0.0)])
    recovered = await recover(journal, [made], silent_s=0.0)
    assert [outputs(each.result.trace) for each in recovered if each.result] == [["ann/agent/r1"]]


# Runs inside runs


@in_loop
async def test_an_agent_that_is_a_tool_inherits_what_it_can_take() -> None:
    inner = agent(name="inner").as_tool(purpose="Say whose it is.")
    call = {"tool_calls": [{"name": "inner", "args": {"task": "Whose?"}}]}
    outer = agent(call, "Done.", tools=[inner])
    result = await outer.run("Whose?", deps=Shop("ann"))
    child = await outer.journal.load(f"{result.run_id}.1")  # type: ignore[union-attr]
    assert outputs(Trace("child", child)) == ["ann"]


@in_loop
async def test_an_agent_that_cannot_take_them_makes_its_own_or_says_so() -> None:
    call = {"tool_calls": [{"name": "inner", "args": {"task": "Whose?"}}]}
    own = agent(name="inner", make_deps=make).as_tool(purpose="Say whose it is.")
    outer = agent(call, "Done.", tools=[own], deps_type=Other)
    result = await outer.run("Whose?", deps=Other(), user="ann")  # type: ignore[arg-type]
    child = await outer.journal.load(f"{result.run_id}.1")  # type: ignore[union-attr]
    assert outputs(Trace("child", child)) == [f"ann/inner/{result.run_id}.1"]
    none = agent(name="inner").as_tool(purpose="Say whose it is.")
    failed = await agent(call, "Done.", tools=[none], deps_type=Other).run("Whose?", deps=Other())  # type: ignore[arg-type]
    (observed,) = [each.observed for each in failed.trace.calls.values()]
    assert observed is not None
    assert observed.error is not None
    assert "needs deps of the type Shop" in observed.error.message


@in_loop
async def test_an_agent_that_takes_over_gets_the_deps() -> None:
    def instructions(ctx: RunContext[Shop]) -> str:
        return f"Serve {ctx.deps.owner}."

    target = agent(name="desk", description="The desk.", instructions=instructions)
    call = {"tool_calls": [{"name": "hand_over_to_desk", "args": {"reason": "It is theirs."}}]}
    first = agent(call, tools=[], handoffs=[Handoff(agent=target)])
    result = await first.run("Whose?", deps=Shop("ann"))
    child = Trace("child", await first.journal.load(f"{result.run_id}.1"))  # type: ignore[union-attr]
    assert (result.status, outputs(child), child.agent.instructions) == ("completed", ["ann"], "Serve ann.")


# Instructions


@in_loop
async def test_instructions_are_made_once_and_kept() -> None:
    calls = []

    async def instructions(ctx: RunContext[Shop]) -> str:
        calls.append((ctx.task, ctx.user, ctx.call_id))
        return f"The owner is {ctx.deps.owner}."

    waits = keep.with_card(approval="required")
    made = agent({"tool_calls": [{"name": "keep", "args": {}}]}, "Done.", tools=[waits], instructions=instructions)
    waiting = await made.run("Keep it", deps=Shop("ann"), user="u1")
    done = await replace(made, approve=lambda _: True).resume(waiting.run_id, deps=Shop("bob"))
    assert done.trace.agent.instructions == "The owner is ann."
    assert calls == [("Keep it", "u1", "")]


@in_loop
async def test_each_run_has_instructions_of_its_own() -> None:
    def reply(_task: str, _trace: Trace) -> Any:
        return "Done."

    made = Agent(model=reply, deps_type=Shop, instructions=lambda ctx: f"For {ctx.deps.owner}.")
    runs = await asyncio.gather(*(made.run("Hello", deps=Shop(name)) for name in ("ann", "bob")))
    assert [result.trace.agent.instructions for result in runs] == ["For ann.", "For bob."]


def _no_text(_: RunContext[Shop]) -> Any:
    return 7


def _fails(ctx: RunContext[Shop]) -> str:
    raise KeyError(ctx.deps.password)


async def _fails_later(ctx: RunContext[Shop]) -> str:
    raise KeyError(ctx.deps.password)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_no_text, r"The function _no_text \(instructions of the agent 'agent'\) gave int, and no text\."),
        (_fails, r"The function _fails \(instructions of the agent 'agent'\) failed with KeyError\."),
        (_fails_later, r"The function _fails_later \(instructions of .*\) failed with KeyError\."),
    ],
)
@in_loop
async def test_instructions_that_cannot_be_made_begin_no_run(function: Callable[..., Any], message: str) -> None:
    made = agent(instructions=function)
    with pytest.raises(ConfigError, match=message) as error:
        await made.run("Whose?", deps=Shop("ann"))
    assert SECRET not in str(error.value)
    assert await stored(made.journal) == []  # type: ignore[arg-type]


# The trace


@in_loop
async def test_nothing_of_the_deps_is_in_the_trace() -> None:
    @tool(tier="read")
    def report(ctx: RunContext[Shop]) -> str:
        """Report the context."""
        return repr(ctx)

    @tool(tier="read")
    def fail(ctx: RunContext[Shop]) -> str:
        """Fail."""
        raise RuntimeError(f"{ctx} has nothing")

    inner = agent(name="inner", deps_type=str).as_tool(purpose="Say whose it is.")
    calls = [{"name": "report", "args": {}}, {"name": "fail", "args": {}}, {"name": "inner", "args": {"task": "x"}}]
    made = agent({"tool_calls": calls}, "Done.", tools=[report, fail, inner])
    result = await made.run("Whose?", deps=Shop("Heliotrope"))
    texts = await stored(made.journal)  # type: ignore[arg-type]
    assert len(result.trace.calls) == 3
    assert not [text for text in texts if SECRET in text or "Heliotrope" in text or '"deps"' in text]


@in_loop
async def test_what_is_declared_is_recorded_without_secrets() -> None:
    made = agent(record_deps=lambda deps: {"owner": deps.owner, "key": deps.password}, secrets=[SECRET])
    result = await made.run("Whose?", deps=Shop("ann"))
    assert result.trace.started is not None
    declared = json.loads(json.dumps(result.trace.started.deps))
    assert declared["owner"] == "ann"
    assert SECRET not in json.dumps(declared)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (lambda _: {"shop": object()}, "gave no JSON object"),
        (lambda _: ["ann"], "gave no JSON object"),
        (lambda deps: deps.nothing, "failed with AttributeError"),
    ],
)
@in_loop
async def test_what_is_no_json_is_not_declared(record: Callable[[Any], Any], message: str) -> None:
    made = agent(record_deps=record)
    with pytest.raises(ConfigError, match=message):
        await made.run("Whose?", deps=Shop("ann"))
    assert await stored(made.journal) == []  # type: ignore[arg-type]


# The context and the settings


@in_loop
async def test_a_context_knows_the_task_and_what_was_used() -> None:
    seen = []

    @tool(tier="read")
    def look(ctx: RunContext) -> str:
        """Look."""
        usage = ctx.usage()
        seen.append((ctx.task, ctx.deps, usage.steps, usage.tool_calls, usage.tokens.total_tokens, usage.cost_usd))
        return "ok"

    call = {"tool_calls": [{"name": "look", "args": {}}]}
    await Agent(model=[call, call, "Done."], tools=[look]).run("Look twice")
    assert [each[:4] for each in seen] == [("Look twice", None, 1, 1), ("Look twice", None, 2, 2)]
    assert RunContext().usage().steps == 0
    assert RunContext(deps=Shop("ann")).deps.owner == "ann"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modle": "x"}, r"There is no setting of an agent called 'modle'\. Did you mean 'model'\?"),
        ({"xyzzy": 1}, r"called 'xyzzy'\. Known: model, tools, "),
    ],
)
def test_an_unknown_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        Agent(**settings)
    with pytest.raises(UnknownName, match=message):
        replace(Agent(), **settings)


def test_a_conversation_gives_its_deps_to_each_turn() -> None:
    def reply(_task: str, trace: Trace) -> Any:
        return "Done." if trace.calls else CALL

    made = Agent(model=FunctionModel(reply, dialect="native"), tools=[owner], deps_type=Shop)
    chat = made.chat(deps=Shop("ann"))
    assert outputs(chat.run_sync("Whose?").trace) == ["ann"]
    assert outputs(chat.run_sync("Whose?", deps=Shop("bob")).trace) == ["bob"]


class Counted(BaseModel):
    """The state of a graph."""

    owner: str = ""


@in_loop
async def test_the_nodes_of_a_graph_get_the_deps_of_its_run() -> None:
    graph = Graph(
        state=Counted,
        nodes={"owner": Node(owner, writes="owner")},
        edges={START: "owner", "owner": END},
        answer="{owner}",
    )
    own = graph.agent(deps_type=Shop, make_deps=make)
    assert (await own.run("{}", deps=Shop("ann"))).answer == "ann"
    assert (await own.run("{}", user="bob", run_id="r1")).answer == "bob/graph/r1"


@in_loop
async def test_an_undo_gives_its_compensations_the_deps() -> None:
    done: list[str] = []

    @tool(tier="write", compensation="close_shop")
    def open_shop(ctx: RunContext[Shop]) -> str:
        """Open the shop."""
        done.append(f"open {ctx.deps.owner}")
        return "opened"

    @tool(tier="write")
    def close_shop(ctx: RunContext[Shop]) -> str:
        """Close the shop."""
        done.append(f"close {ctx.deps.owner}")
        return "closed"

    calls = {"tool_calls": [{"name": "open_shop", "args": {}}]}
    own = agent(calls, "Done.", tools=[open_shop, close_shop], approved_tiers=("write",))
    result = await own.run("Open.", deps=Shop("ann"))
    await own.undo(result.run_id, agreed_by="ann", deps=Shop("bob"))
    assert done == ["open ann", "close bob"]
