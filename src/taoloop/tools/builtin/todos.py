"""`update_todos`: the todo list that a model keeps for a task of several steps.

The call itself is the list (`core/views/todos.py`); the tool only judges it and says what it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from taoloop.core.text import chinese_texts
from taoloop.core.views.steps import CallView
from taoloop.core.views.todos import MAX_TODO_CHARS, MAX_TODOS, TODO_CARD, Todo, TodoState, read_todos, todo_counts
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import ToolContext


async def _update_todos(todos: list[Mapping[str, Any]], *, context: ToolContext) -> str:
    """What the list counts; no text of it, which may contain values that the model must not see."""
    if len(todos) > MAX_TODOS:
        raise TEXTS.error("todos_many", "too_many_items", count=len(todos), most=MAX_TODOS)
    new = read_todos({"todos": todos}) or ()
    _require_consistent(new)
    counts = todo_counts(new)
    text = TEXTS.run_text("todos_saved", counts=TEXTS.run_text("todos_comma").join(_count_texts(counts)) or "0")
    kept = {todo.text for todo in new}
    earlier = _earlier_todos(context.calls(), context.call_id)
    gone = [number for number, todo in enumerate(earlier, 1) if todo.is_open and todo.text not in kept]
    return f"{text} {TEXTS.run_text('todos_gone', numbers=_numbers(gone))}" if gone else text


UPDATE_TODOS = tool_from_card(TODO_CARD, _update_todos, chinese=chinese_texts("core"))
"""The built-in tool `update_todos`."""


def _require_consistent(todos: tuple[Todo, ...]) -> None:
    """Refuse a list that nobody could follow.

    Raises:
        ToolError: says which items are wrong, by their numbers from 1.
    """
    if blank := [number for number, todo in enumerate(todos, 1) if not todo.text.strip()]:
        raise TEXTS.error("todos_blank", "blank_item", numbers=_numbers(blank))
    if long := [number for number, todo in enumerate(todos, 1) if len(todo.text) > MAX_TODO_CHARS]:
        raise TEXTS.error("todos_long", "long_item", numbers=_numbers(long), most=MAX_TODO_CHARS)
    current = [number for number, todo in enumerate(todos, 1) if todo.state == "in_progress"]
    if len(current) > 1:
        raise TEXTS.error("todos_two_in_progress", "two_in_progress", numbers=_numbers(current))
    first: dict[str, int] = {}
    for number, todo in enumerate(todos, 1):
        if (other := first.setdefault(" ".join(todo.text.split()), number)) != number:
            raise TEXTS.error("todos_double", "double_item", numbers=_numbers([other, number]))


def _earlier_todos(calls: Iterable[CallView], call_id: str) -> tuple[Todo, ...]:
    """The list that this one replaces; empty if it is the first."""
    earlier: tuple[Todo, ...] = ()
    for call in calls:
        is_list = call.requested.tool == TODO_CARD.name and call.observed is not None and call.observed.ok
        if is_list and call.requested.call_id != call_id:
            earlier = read_todos(call.args) or ()
    return earlier


def _count_texts(counts: Mapping[TodoState, int]) -> list[str]:
    return [TEXTS.run_text("todos_count", count=count, state=state) for state, count in counts.items()]


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
