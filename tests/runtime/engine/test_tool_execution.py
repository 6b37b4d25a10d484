"""Inline tools run in the thread of the event loop; other sync tools run in threads and never block the loop."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from typing import Any

import pytest

from taoloop import Agent, MemoryJournal, ScriptedModel, ToolError, tool
from taoloop.core.events import Observed
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.core.views.transcript import Result
from taoloop.errors import ToolDefinitionError
from taoloop.runtime.threads import WorkerThreads
from taoloop.tools.builtin.calculator import calculator
from taoloop.tools.tool import Tool

MARK: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="unset")


def run(one: Tool, arguments: str = "{}") -> Result:
    call = ModelReply(tool_calls=(ToolCallText(name=one.name, arguments=arguments, id="c1"),))
    script = ScriptedModel([call, ModelReply(text="went on")])
    return Agent(model=script, tools=[one], journal=MemoryJournal()).run_sync("t")


def observed(result: Result) -> Observed:
    [only] = [event.fact for event in result.trace.events if isinstance(event.fact, Observed)]
    return only


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taoloop.runtime.engine.tool_execution.POOL", WorkerThreads(max_threads=0, patience_s=0.0))


@pytest.mark.usefixtures("no_threads")
def test_a_tool_that_is_promised_to_be_inline_needs_no_thread() -> None:
    @tool(tier="read", inline=True)
    def where() -> str:
        """Name the thread."""
        return threading.current_thread().name

    assert observed(run(where)).output == threading.current_thread().name


@pytest.mark.parametrize("inline", [None, False])
def test_every_other_sync_tool_runs_in_a_thread(inline: bool | None) -> None:
    @tool(tier="read", inline=inline)
    def where() -> str:
        """Name the thread."""
        return threading.current_thread().name

    assert observed(run(where)).output.startswith("taoloop-tool-")


def test_a_tool_that_hangs_is_abandoned_after_its_time() -> None:
    released = threading.Event()

    @tool(tier="read", timeout_s=0.05)
    def slow() -> str:
        """Hang."""
        released.wait(20)
        return "late"

    error = observed(run(slow)).error
    released.set()
    assert error is not None
    assert error.code == "timeout"


def test_a_tool_that_blocks_does_not_block_the_loop() -> None:
    """The tool returns only because the loop goes on meanwhile."""
    released = threading.Event()

    @tool(tier="read")
    def block() -> bool:
        """Wait until the loop says so."""
        return released.wait(20)

    async def release() -> None:
        released.set()

    async def run_both() -> Result:
        call = ModelReply(tool_calls=(ToolCallText(name="block", arguments="{}", id="c1"),))
        agent = Agent(model=ScriptedModel([call, ModelReply(text="done")]), tools=[block], journal=MemoryJournal())
        results: tuple[Result, None] = await asyncio.gather(agent.run("t"), release())
        return results[0]

    assert observed(asyncio.run(run_both())).output == "true"


@pytest.mark.usefixtures("no_threads")
def test_an_error_of_an_inline_tool_is_an_observation() -> None:
    @tool(tier="read", inline=True)
    def divide(a: int, b: int) -> float:
        """Divide."""
        if b == 0:
            raise ToolError("By zero.", code="zero", hint="Take another.")
        return a / b

    result = run(divide, '{"a": 1, "b": 0}')
    error = observed(result).error
    assert error is not None
    assert (error.code, error.message, error.hint, result.answer) == ("zero", "By zero.", "Take another.", "went on")


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), StopIteration(5), GeneratorExit(), SystemExit(3), asyncio.CancelledError(), TimeoutError()],
)
def test_whatever_an_inline_tool_raises_is_an_observation(error: BaseException) -> None:
    @tool(tier="read", inline=True)
    def explode() -> None:
        """Raise it."""
        raise error

    result = run(explode)
    assert (result.status, observed(result).ok) == ("completed", False)


@pytest.mark.parametrize("inline", [True, False])
def test_an_async_tool_cannot_be_declared_inline(inline: bool) -> None:
    async def wait() -> None:
        """Wait."""

    with pytest.raises(ToolDefinitionError, match="inline"):
        tool(inline=inline)(wait)


def test_the_calculator_is_inline() -> None:
    assert calculator.inline


def test_context_variables_that_an_inline_tool_sets_are_its_own() -> None:
    @tool(tier="read", inline=True)
    def mark() -> str:
        """Set it."""
        before = MARK.get()
        MARK.set("by the tool")
        return before

    async def twice() -> list[str]:
        MARK.set("by the caller")
        calls = [ModelReply(tool_calls=(ToolCallText(name="mark", arguments="{}", id=f"c{n}"),)) for n in range(2)]
        agent = Agent(model=ScriptedModel([*calls, ModelReply(text="done")]), tools=[mark], journal=MemoryJournal())
        result = await agent.run("t")
        seen = [event.fact.output for event in result.trace.events if isinstance(event.fact, Observed)]
        return [*seen, MARK.get()]

    assert asyncio.run(twice()) == ["by the caller"] * 3


def test_a_coroutine_that_an_inline_tool_returns_is_awaited_within_its_time() -> None:
    async def later(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "came"

    @tool(tier="read", inline=True, timeout_s=0.05)
    def wait(seconds: float) -> Any:
        """Return a coroutine."""
        return later(seconds)

    assert observed(run(wait, '{"seconds": 0}')).output == "came"
    error = observed(run(wait, '{"seconds": 20}')).error
    assert error is not None
    assert error.code == "timeout"


CTRL_C = """
import asyncio, signal, sys
from taoloop import Agent, MemoryJournal, ScriptedModel, tool

@tool(tier="read", inline=True)
def interrupted() -> str:
    "Ctrl-C comes while it runs."
    signal.raise_signal(signal.SIGINT)
    return "went on"

@tool(tier="read")
async def wait() -> str:
    "Wait for ever."
    await asyncio.Event().wait()
    return ""

journal = MemoryJournal()
script = [{"tool_calls": [{"name": name, "args": {}}]} for name in ("interrupted", "wait")]
agent = Agent(model=ScriptedModel(script), tools=[interrupted, wait], journal=journal)
if sys.argv[1] == "plain":  # a loop that leaves the signal to Python, as in a notebook
    loop = asyncio.new_event_loop()
    run = loop.run_until_complete
else:
    run = asyncio.run
try:
    run(agent.run("t"))
except KeyboardInterrupt:
    print("stopped", [row.status for row in asyncio.run(journal.runs())])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("how", ["plain", "asyncio.run"])
def test_ctrl_c_during_an_inline_tool_stops_the_run(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CTRL_C, how], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.stdout.split() == ["stopped", "['stopped']"], done.stderr
