"""The parts that an agent is bound to."""

from __future__ import annotations

import gc
import weakref

from taoloop import Agent, MemoryJournal, ScriptedModel


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
