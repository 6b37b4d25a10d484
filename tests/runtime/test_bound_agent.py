"""The parts that an agent is bound to."""

from __future__ import annotations

import gc
import weakref

import pytest

from taoloop import Agent, Limits, MemoryJournal, ScriptedModel, Tool, tool


def test_an_agent_and_its_runs_are_freed_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        agent = Agent(model=ScriptedModel(["Done."]), journal=MemoryJournal())
        result = agent.run_sync("Say that you are done.")
        trace = weakref.ref(result.trace)
        journal = weakref.ref(agent.journal)
        del agent, result
        assert trace() is None
        assert journal() is None
    finally:
        gc.enable()


def _numbered_tools(count: int) -> list[Tool]:
    """So many tools that look something up."""

    def lookup(key: str) -> str:
        """Look something up."""
        return key

    return [tool(tier="read", name=f"lookup_{number}")(lookup) for number in range(count)]


@pytest.mark.parametrize(("tools", "steps"), [(0, 6), (5, 6), (6, 20), (30, 20)])
def test_the_default_limit_of_steps_goes_by_the_number_of_tools(tools: int, steps: int) -> None:
    """S2-8 is that of an agent with few tools; the stored description has the number."""
    agent = Agent(model=ScriptedModel(["Done."]), tools=_numbered_tools(tools))
    assert agent.spec_for("Go.").limits == Limits(max_steps=steps)
    result = agent.run_sync("Go.", limits=Limits(max_tokens=1000))
    assert result.trace.agent.limits.max_steps == steps
    assert type(result.trace.agent.limits.max_steps) is int


def test_a_limit_of_steps_that_somebody_set_stays() -> None:
    tools = _numbered_tools(6)
    model = ScriptedModel(["Done."])
    assert Agent(model=model, tools=tools, limits=Limits(max_steps=6)).spec_for("Go.").limits.max_steps == 6
    assert Agent(model=model, tools=tools, max_steps=6).spec_for("Go.").limits.max_steps == 6
    assert Agent(model=model, tools=tools).run_sync("Go.", max_steps=6).trace.agent.limits.max_steps == 6
