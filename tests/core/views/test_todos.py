"""The todo list as a view of the trace: what counts as the list, at any step of a run, a fork or a stored copy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.policy.staging import Run

from taoloop import Agent, MemoryJournal, Result, ScriptedModel, Trace, tool
from taoloop.core.events import ApprovalGiven, Event, Fault, JudgedAgain, Observed
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.views.todos import (
    TODO_CARD,
    Todo,
    is_todo_card,
    read_todos,
    todo_counts,
    todo_lines,
    todo_list,
    todo_list_of,
)
from taoloop.runtime.after.replay import replay


def items(*states: str) -> list[dict[str, str]]:
    return [{"text": f"item {number}", "state": state} for number, state in enumerate(states, 1)]


def call(*states: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "update_todos", "args": {"todos": items(*states)}}]}


def run(*replies: Any, **options: Any) -> Result:
    model = ScriptedModel([*replies, "done"])
    return Agent(model=model, tools=["update_todos"], **options).run_sync("Do three things.")


def states(todos: tuple[Todo, ...]) -> list[str]:
    return [todo.state for todo in todos]


def test_the_list_is_known_at_every_step() -> None:
    """S4-46, S4-49: the goal in steps, and how far each is, as data of the trace."""
    result = run(call("in_progress", "open"), call("done", "in_progress"), call("done", "dropped", "open"))
    trace = result.trace
    assert states(result.todos) == ["done", "dropped", "open"]
    assert result.open_todos == (Todo(text="item 3", state="open"),)
    at_steps = [todo_list_of(trace.events[:seq]) for seq in range(len(trace.events) + 1)]
    seen = list(dict.fromkeys((view.step, tuple(states(view.todos))) for view in at_steps))
    assert [step for step, _ in seen] == [0, 1, 2, 3]
    assert seen[2][1] == ("done", "in_progress")
    assert result.status == "completed", "open items do not block an answer"
    assert all(decided.same for decided in replay(trace))


def test_a_fork_has_the_list_of_its_step() -> None:
    journal = MemoryJournal()
    result = run(call("in_progress", "open"), call("done", "done"), journal=journal)
    agent = Agent(model=ScriptedModel(["other"]), tools=["update_todos"], journal=journal)
    forked = asyncio.run(agent.fork(result.run_id, at=2))
    assert (states(result.todos), states(forked.todos)) == (["done", "done"], ["in_progress", "open"])


def test_only_lists_that_were_accepted_count() -> None:
    view_run = Run(cards=(TODO_CARD,))
    view_run.see("", "update_todos", todos=items("open"))
    view_run.see("", "update_todos", Fault(code="two_in_progress", message=""), todos=items("done"))
    denied = view_run.ask("update_todos", {"todos": items("dropped")}, "deny")
    view_run.add(Observed(call_id=denied, ok=False, output="", error=Fault(code="denied", message="")))
    view_run.ask("update_todos", {"todos": items("in_progress")})
    assert states(todo_list(view_run.trace).todos) == ["open"]


def test_what_a_person_put_in_its_place_is_the_list() -> None:
    view_run = Run(cards=(TODO_CARD,))
    call_id = view_run.ask("update_todos", {"todos": items("open")}, "ask")
    view_run.add(ApprovalGiven(call_id=call_id, digest="", by="ann", args={"todos": items("dropped", "open")}))
    view_run.add(Observed(call_id=call_id, ok=True, output=""))
    assert states(todo_list(view_run.trace).todos) == ["dropped", "open"]


def test_arguments_that_were_judged_again_are_the_list() -> None:
    view = todo_list_of([])
    view_run = Run(cards=(TODO_CARD,))
    call_id = view_run.ask("update_todos", {"todos": items("open")})
    again = JudgedAgain(call_id=call_id, args={"todos": items("done")}, tier="read", verdict="allow", digest="")
    for fact in (again, Observed(call_id=call_id, ok=True, output="")):
        view_run.trace.events.append(Event(0, 0.0, fact))  # without the trace's own rules
    for event in view_run.trace.events:
        view.fold(event)
    assert states(view.todos) == ["done"]


@pytest.mark.parametrize(
    "args", [None, {}, {"todos": "a"}, {"todos": [{"text": "a", "state": "so"}]}, {"todos": ["a"]}]
)
def test_a_tool_of_the_same_name_with_other_arguments_writes_no_list(args: Any) -> None:
    view_run = Run(cards=(TODO_CARD,))
    call_id = view_run.ask("update_todos", args)
    view_run.add(Observed(call_id=call_id, ok=True, output=""))
    assert read_todos(args) is None
    assert todo_list(view_run.trace).todos == ()


def test_the_built_in_card_is_known_in_both_languages_and_after_storage() -> None:
    """Nothing else may pass for it: what it returns does not taint."""

    @tool(tier="read")
    def update_todos(todos: list[str]) -> str:
        """Ask a web page."""
        return ""

    agent = Agent(model=ScriptedModel([]), tools=["update_todos"])
    for task in ("Do it.", "请做这件事。"):
        started = Run(cards=agent.spec_for(task).tools).trace.started
        assert started is not None
        loaded = decode_fact("run_started", encode_fact(started))
        [card] = [card for card in loaded.agent.tools if card.name == "update_todos"]  # type: ignore[union-attr]
        assert is_todo_card(card)
    assert not is_todo_card(update_todos.card)
    assert not is_todo_card(None)


def test_a_list_as_text() -> None:
    todos = read_todos({"todos": [*items("done", "in_progress"), {"text": "a\nb", "state": "open"}]})
    assert todos is not None
    assert todo_lines(todos) == "[x] item 1\n[>] item 2\n[ ] a b"
    assert todo_counts(todos) == {"open": 1, "in_progress": 1, "done": 1}
    current = todo_list_of([]).current
    assert current is None


def test_a_stored_run_has_it_too() -> None:
    journal = MemoryJournal()
    result = run(call("open"), journal=journal)
    stored = Trace(result.run_id, asyncio.run(journal.load(result.run_id)))
    assert todo_list(stored).todos == result.todos
