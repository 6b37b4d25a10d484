"""`track_todos`: what a list must be, and what the model reads."""

from __future__ import annotations

from typing import Any

import pytest

from taoloop import Agent, Result, ScriptedModel
from taoloop.core.policy import PROFILES
from taoloop.core.views.todos import MAX_TODO_CHARS, MAX_TODOS
from taoloop.tools.builtin.todos import TRACK_TODOS

MISFIT = "invalid_arguments: The arguments of 'track_todos' do not fit: 'todos"


def run(*lists: Any, task: str = "Do three things.", **options: Any) -> Result:
    replies = [{"tool_calls": [{"name": "track_todos", "args": {"todos": todos}}]} for todos in lists]
    return Agent(model=ScriptedModel([*replies, "done"]), tools=["track_todos"], **options).run_sync(task)


def outputs(result: Result) -> list[str]:
    return [entry.content for entry in result.entries if entry.kind == "Observation"]


def item(text: str, state: str = "open") -> dict[str, str]:
    return {"text": text, "state": state}


def test_it_says_what_was_saved_in_both_languages() -> None:
    todos = [item("a", "done"), item("b", "in_progress"), item("c")]
    assert outputs(run(todos)) == ["Saved: 1 open, 1 in_progress, 1 done."]
    assert outputs(run(todos, task="请做三件事。")) == ["已保存：1 项待办、1 项进行中、1 项已完成。"]
    assert outputs(run([])) == ["Saved: 0."]


def test_open_items_that_vanish_are_named_by_number() -> None:
    """S4-50: nothing is lost from view by an oversight."""
    first = [item("a", "done"), item("b"), item("c", "in_progress"), item("d")]
    second = outputs(run(first, [item("d", "in_progress")]))[1]
    assert second.startswith("Saved: 1 in_progress. Of the list before, items that were not done are gone: 2, 3.")
    assert "dropped" in second
    kept = outputs(run(first, [item("b", "dropped"), item("c", "done"), item("d")]))[1]
    assert kept == "Saved: 1 open, 1 done, 1 dropped."


@pytest.mark.parametrize(
    ("todos", "expected"),
    [
        ([item("a", "in_progress"), item("b", "in_progress")], "two_in_progress: Items 1, 2 are all in_progress"),
        ([item("a"), item("  ")], "blank_item: Items without a text: 2."),
        ([item("a"), item("b"), item(" a ")], "double_item: Items 1, 3 have the same text."),
        (
            [item("a", "finished")],
            f'{MISFIT}.0.state\': "finished" is not one of "open", "in_progress", "done", "dropped".',
        ),
        ([item("a" * (MAX_TODO_CHARS + 1))], "long_item: Items of more than 300 characters: 1."),
        ([item(f"{n}") for n in range(MAX_TODOS + 1)], "too_many_items: The list has 41 items; at most 40"),
        (
            [{"text": "a", "state": "open", "id": 1}],
            MISFIT,
        ),
        (["a"], MISFIT),
        ("a", MISFIT),
    ],
)
def test_a_list_that_nobody_could_follow_is_refused_with_the_place(todos: Any, expected: str) -> None:
    result = run([item("kept")], todos)
    output = outputs(result)[1]
    assert output.startswith(expected), output
    assert [todo.text for todo in result.todos] == ["kept"]


@pytest.mark.parametrize("profile", [profile for profile in PROFILES if profile != "locked"])
def test_no_profile_asks_about_it(profile: Any) -> None:
    result = run([item("a")], policy=profile)
    assert (result.status, outputs(result)) == ("completed", ["Saved: 1 open."])


def test_two_lists_of_one_decision_are_taken_in_their_order() -> None:
    calls = [{"name": "track_todos", "args": {"todos": [item(text)]}} for text in ("a", "b")]
    result = Agent(model=ScriptedModel([{"tool_calls": calls}, "done"]), tools=["track_todos"]).run_sync("Do it.")
    assert [todo.text for todo in result.todos] == ["b"]


def test_the_card_names_the_bounds() -> None:
    described = str(TRACK_TODOS.card.input_schema)
    assert f"at most {MAX_TODOS}" in described
    assert f"at most {MAX_TODO_CHARS} characters" in described
