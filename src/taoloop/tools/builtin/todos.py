"""`track_todos`: the todo list that a model keeps for a task of several steps.

The call itself is the list (`core/views/todos.py`); the tool only judges it and says what it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Reversible, Sequence

from taoloop.core.text import chinese_texts
from taoloop.core.views.steps import CallView
from taoloop.core.views.todos import MAX_TODO_CHARS, MAX_TODOS, OPEN_STATES, TODO_CARD, TODO_STATES
from taoloop.tools.from_card import tool_from_card
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import RunContext


async def _track_todos(todos: list[Mapping[str, str]], *, context: RunContext) -> str:
    """What the list counts; no text of it, which may contain values that the model must not see."""
    texts, states = [todo["text"] for todo in todos], [todo["state"] for todo in todos]
    _require_consistent(texts, states)
    counts = [TEXTS.run_text(f"todos_{state}", count=count) for state in TODO_STATES if (count := states.count(state))]
    text = TEXTS.run_text("todos_saved", counts=TEXTS.run_text("todos_comma").join(counts) or "0")
    earlier = _earlier_todos(context.calls(), context.call_id)
    open_texts = {number: todo["text"] for number, todo in enumerate(earlier, 1) if todo["state"] in OPEN_STATES}
    if gone := [number for number, open_text in open_texts.items() if open_text not in texts]:
        text += " " + TEXTS.run_text("todos_gone", numbers=_numbers(gone))
    return text


TRACK_TODOS = tool_from_card(TODO_CARD, _track_todos, chinese=chinese_texts("core"))
"""The built-in tool `track_todos`."""


def _require_consistent(texts: list[str], states: list[str]) -> None:
    """Refuse a list that nobody could follow.

    Raises:
        ToolError: says which items are wrong, by their numbers from 1.
    """
    if len(texts) > MAX_TODOS:
        raise TEXTS.error("todos_many", "too_many_items", count=len(texts), most=MAX_TODOS)
    plain = [" ".join(text.split()) for text in texts]
    if "" in plain:
        raise TEXTS.error("todos_blank", "blank_item", numbers=_positions(text == "" for text in plain))
    if max(map(len, texts), default=0) > MAX_TODO_CHARS:
        numbers = _positions(len(text) > MAX_TODO_CHARS for text in texts)
        raise TEXTS.error("todos_long", "long_item", numbers=numbers, most=MAX_TODO_CHARS)
    if states.count("in_progress") > 1:
        numbers = _positions(state == "in_progress" for state in states)
        raise TEXTS.error("todos_two_in_progress", "two_in_progress", numbers=numbers)
    if len(set(plain)) < len(plain):
        double = next(text for text in plain if plain.count(text) > 1)
        raise TEXTS.error("todos_double", "double_item", numbers=_positions(text == double for text in plain))


def _earlier_todos(calls: Reversible[CallView], call_id: str) -> Sequence[Mapping[str, str]]:
    """The list that this one replaces; empty if it is the first."""
    for call in reversed(calls):
        is_list = call.requested.tool == TODO_CARD.name and call.observed is not None and call.observed.ok
        if is_list and call.requested.call_id != call_id:
            todos: Sequence[Mapping[str, str]] = call.args["todos"]  # they fit the card: the call succeeded
            return todos
    return ()


def _positions(tests: Iterable[bool]) -> str:
    """The numbers of the items for which a test is true."""
    return _numbers(number for number, is_so in enumerate(tests, 1) if is_so)


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
