"""The offline model where a run is planned first: parts with one call are steps with it, else the task is one step."""

from __future__ import annotations

import pytest

from taoloop import Agent, MemoryJournal, tool
from taoloop.core.views.plans import plan_progress


@tool(tier="read")
def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def agent(*, fails: bool = False) -> Agent:
    @tool(tier="read", name="word_count")
    def broken(text: str) -> int:
        """Count the words of a text."""
        raise OSError("the dictionary is closed")

    counts = broken if fails else word_count
    return Agent(model="offline", tools=[counts, "calculator"], strategy="plan_execute", journal=MemoryJournal())


@pytest.mark.parametrize(
    ("task", "calls", "answer"),
    [
        ('Count the words of "to be". Count the words of "or not to be".', [1, 1], "2\n4"),
        ('Count the words of "to be or not to be" and multiply the count by 7.', [0], "The result is 42."),
        ("What is 17 times 23?", [0], "The result is 391."),
    ],
)
def test_a_task_is_planned_as_steps(task: str, calls: list[int], answer: str) -> None:
    result = agent().run_sync(task)
    plan = plan_progress(result.trace).plan
    assert plan is not None
    assert [len(step.calls) for step in plan.steps] == calls
    assert result.status == "completed"
    assert (result.answer or "").startswith(answer)


def test_a_task_that_cannot_be_planned_is_refused_with_the_tools_of_the_steps() -> None:
    result = agent().run_sync("Write a poem.")
    assert result.status == "model_failed"
    assert "The tools are: word_count, calculator" in result.reason


def test_what_breaks_the_plan_ends_the_run() -> None:
    result = agent(fails=True).run_sync('Count the words of "to be". Count the words of "or not".')
    assert result.status == "model_failed"
    assert "the dictionary is closed" in result.reason
