"""A few hundred tasks with tools from all walks of life: done right, or plainly refused, and never done wrong."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.models.offline.toolset import card, changes_of, read_yaml, recorded, refusal, run, steps_of

_GROUPS: list[dict[str, Any]] = read_yaml("battery.yaml")
_ROWS = [
    (task, tuple(group["tools"]), calls, verdict)
    for group in _GROUPS
    for verdict in ("right", "either")
    for row in group.get(verdict, [])
    for task, calls in row.items()
]


@pytest.mark.parametrize(("task", "tools", "calls", "verdict"), _ROWS)
def test_a_task_is_done_right_or_plainly_refused(
    task: str, tools: tuple[str, ...], calls: list[Any], verdict: str
) -> None:
    if why := refusal(task, map(card, tools)):
        assert verdict == "either"
        assert any(words in why for words in ("I cannot", "我做不了"))
        return
    result = run(task, recorded(tools, calls))
    if verdict == "right" or result.status == "completed":
        assert (result.status, steps_of(result)) == ("completed", [(name, args) for name, args, _ in calls])
        assert calls
    else:
        assert (result.status, changes_of(result)) == ("model_failed", [])


RIGHT = [(task, tools, calls) for task, tools, calls, verdict in _ROWS if verdict == "right"]
EXTRAS = ("{}, and sing a song about it.", "Explain why: {}", "{} 并解释原因。", "If it rains, {}", "{} in red")
NEGATIONS = ("Do not {}", "Never {}", "{}? No!", "不要{}", "除了{}")


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.nightly), 5])
@pytest.mark.parametrize("form", [*EXTRAS, *NEGATIONS])
def test_a_task_with_a_part_that_is_not_understood_is_not_begun(form: str, every: int) -> None:
    """Every fifth task with a form, and every task with two forms; at night all of them with all."""
    first = [*EXTRAS, *NEGATIONS].index(form) % every
    for task, tools, _ in RIGHT[first::every]:
        assert refusal(form.format(task.rstrip(".?!。")), map(card, tools)), task


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.nightly), 3])
@pytest.mark.parametrize(("between", "start"), [(". ", 0), (", then ", 1), ("，然后", 2)])
def test_of_two_tasks_both_are_done_or_none(between: str, start: int, every: int) -> None:
    for first, second in list(pairwise(RIGHT[::2]))[start % every :: every]:
        calls = [*first[2], *second[2]]
        task = f"{first[0].rstrip('.?!。')}{between}{second[0]}"
        if first[1] == second[1] and not refusal(task, map(card, first[1])):
            result = run(task, recorded(first[1], calls))
            expected = [(name, args) for name, args, _ in calls]
            assert result.status == "completed", task
            assert steps_of(result) == [step for index, step in enumerate(expected) if step not in expected[:index]]
