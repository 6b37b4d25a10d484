"""What type checkers must say of the public interface: checked by mypy (strict) and basedpyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, assert_type

from taoloop import Agent, AnyEvent, Event, Result, RunContext, RunInfo, Tool, tool
from taoloop.core.events import ActionRequested, ModelReplied, Observed


@dataclass
class Shop:
    """Dependencies."""

    owner: str


@dataclass
class Answer:
    """An answer."""

    city: str


def instructions(ctx: RunContext[Shop]) -> str:
    assert_type(ctx.deps, Shop)
    return ctx.deps.owner


async def later(ctx: RunContext[Shop]) -> str:
    return ctx.deps.owner


def make(info: RunInfo) -> Shop:
    return Shop(info.user)


@tool
def plain(x: int, *, ctx: RunContext[Shop]) -> int:
    return x + len(ctx.deps.owner)


@tool(tier="read", timeout_s=3)
async def timed(x: int, ctx: RunContext | None = None) -> str:
    return f"{x}{ctx}"


assert_type(plain(1, ctx=RunContext(deps=Shop("ann"))), int)
tools: list[Tool] = [plain, timed]
shop = Agent(tools=tools, deps_type=Shop, output_type=Answer, instructions=instructions, make_deps=make)
assert_type(shop, Agent[Shop, Answer])
assert_type(Agent(deps_type=Shop, output_type=list[int], instructions=later), Agent[Shop, list[int]])
named: Agent[Shop, int | str] = Agent(deps_type=Shop, output_type=int | str)


Agent(tools=[plain, timed])


def any_agent(agent: Agent) -> None:
    assert_type(agent.run_sync("t", deps=3).output, Any | None)


any_agent(shop)
any_agent(Agent())
any_agent(Agent(output_type={"type": "object"}))
any_agent(Agent(output_type=Literal["yes", "no"]))


async def main() -> None:
    assert_type(await timed(1), str)
    result = await shop.run("Where?", deps=Shop("ann"), max_steps=3)
    assert_type(result, Result[Answer])
    if result.output is not None:
        assert_type(result.output.city, str)
    assert_type(shop.run_sync("Where?", deps=Shop("ann"), user="u"), Result[Answer])
    assert_type(await shop.resume("r", deps=Shop("ann")), Result[Answer])
    assert_type(await shop.fork("r", at=1), Result[Answer])
    assert_type(shop.chat(deps=Shop("ann")).run_sync("Where?"), Result[Answer])
    async for event in shop.stream("Where?", deps=Shop("ann")):
        narrow(event)
    stream = shop.stream("Where?", deps=Shop("ann"))
    assert_type(await stream.result(), Result[Answer])
    async for piece in stream.text:
        assert_type(piece, str)
    async for event in shop.stream_resume("r"):
        narrow(event)
    handle = shop.start("Where?", deps=Shop("ann"))
    assert_type(await handle.result(), Result[Answer])
    assert_type(await (await shop.attach(handle.run_id)).result(), Result[Answer])
    async for event_or_delta in shop.stream("Where?", deltas=True):
        if isinstance(event_or_delta, Event):
            narrow(event_or_delta)


def narrow(event: AnyEvent) -> None:
    if event.kind == "model_replied":
        assert_type(event.fact, ModelReplied)
    match event.kind:
        case "observed":
            assert_type(event.fact.output, str)
        case "action_requested":
            assert_type(event.fact, ActionRequested)
        case _:
            pass
    plain_listener(event)
    match event.fact:
        case ModelReplied() as replied:
            assert_type(replied.text, str)
        case ActionRequested(tool=name):
            assert_type(name, str)
        case _:
            pass
    if event.fact.kind == "observed":
        assert_type(event.fact, Observed)
        assert_type(event.fact.output, str)


def plain_listener(event: Event) -> None:
    assert_type(event.kind, str)


async def listening() -> None:
    result = await shop.run("t", deps=Shop(""), on_event=plain_listener)
    await shop.run("t", deps=Shop(""), on_event=narrow)
    for any_event in result.trace:
        if any_event.kind == "model_replied":
            assert_type(any_event.fact, ModelReplied)
    for event in result.trace.events:
        if event.fact.kind == "finished":
            assert_type(event.fact.answer, str | None)


# What must be an error: an ignore that is not needed is one too.


def errors() -> None:
    shop.run_sync("t", deps="ann")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    shop.run_sync("t", user=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    shop.run_sync("t", max_step=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Agent(modle="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Agent(deps_type=Answer, instructions=instructions)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tool(nam="x")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    plain("x", ctx=RunContext(deps=Shop("")))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
