"""The todo list that a model keeps during a run: the card of its tool, and the list as a view of the trace. Pure.

The list is nothing but the arguments of the newest call of `track_todos` that succeeded. So it is known at every step
of a run, is copied by a fork, survives a crash, and costs nothing to store. Its texts are the model's: they authorise
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, get_args

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard, ToolCard
from taoloop.core.events import ActionRequested, ApprovalGiven, Event, JudgedAgain, Observed
from taoloop.core.fast_stdlib import fast_constructor
from taoloop.core.text import chinese_texts
from taoloop.core.trace import Trace

TodoState = Literal["open", "in_progress", "done", "dropped"]
"""How far an item is: not begun, being worked on, done, or given up because it is not needed or cannot be done."""

TODO_STATES: tuple[TodoState, ...] = get_args(TodoState)

OPEN_STATES: tuple[TodoState, ...] = ("open", "in_progress")
"""The states of an item for which something is still to be done."""

MAX_TODOS = 40
"""How many items a list may have: more is no overview any more, and each costs room in the prompt."""

MAX_TODO_CHARS = 300
"""How long an item may be."""

TODO_CARD = ToolCard(
    name="track_todos",
    purpose="Show people your todo list for this task: the whole list each time, in place of the one before."
    " It changes nothing but the list.",
    use_when="The task needs three or more steps: show the list before the first one, and again whenever an item is"
    " begun, done or no longer needed, or a new one turns up.",
    avoid_when="The task takes one or two steps. The list is no answer, and no place for results.",
    input_schema={
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "description": "All items in the order of the work, those included that are done; at most 40",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {
                            "type": "string",
                            "description": "One step with a result that can be checked, and the constraint that it must"
                            " keep; at most 300 characters",
                        },
                        "state": {
                            "type": "string",
                            "enum": list(TODO_STATES),
                            "description": "At most one item is in_progress; dropped: not needed, or not possible",
                        },
                    },
                    "required": ["text", "state"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["todos"],
        "additionalProperties": False,
    },
    errors=(
        ErrorCard(code="two_in_progress", advice="Leave one item in_progress and write the others as open or done."),
        ErrorCard(code="too_many_items", advice="Join small items, and leave away those that were done long ago."),
        ErrorCard(code="long_item", advice="Say in one line what is to be done; results belong into the answer."),
        ErrorCard(code="blank_item", advice="Say in each item what is to be done, or leave the item away."),
        ErrorCard(code="double_item", advice="Write each item once."),
    ),
    examples=(
        ExampleCard(
            args={
                "todos": [
                    {"text": "Find the three latest invoices", "state": "done"},
                    {"text": "Add up their totals in EUR, without tax", "state": "in_progress"},
                    {"text": "Answer with the sum and the three numbers", "state": "open"},
                ]
            },
            note="the second of three steps has begun",
        ),
    ),
    tier="read",  # nothing outside the run changes, so no profile asks about it
    egress=False,
    idempotent=True,
    parallel=False,  # two lists of one decision: the later one holds
    roles={"todos": "minor"},
)
"""The contract of `track_todos`."""

_MARKS: dict[TodoState, str] = {"open": "[ ]", "in_progress": "[>]", "done": "[x]", "dropped": "[-]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One item of a todo list."""

    text: str
    """What is to be done, in the model's words."""
    state: TodoState
    """How far it is."""

    @property
    def is_open(self) -> bool:
        """Whether something is still to be done for it."""
        return self.state in OPEN_STATES

    def __str__(self) -> str:
        """One line: `[ ]` open, `[>]` in progress, `[x]` done, `[-]` dropped, and the text."""
        return f"{_MARKS[self.state]} {' '.join(self.text.split())}"


_new_todo = fast_constructor(Todo)


def read_todos(args: Any) -> tuple[Todo, ...] | None:
    """The items that the arguments of a call are; None if they do not fit the card."""
    items = args.get("todos") if isinstance(args, Mapping) else None
    if not isinstance(items, list | tuple) or len(items) > MAX_TODOS:
        return None
    todos = []
    for item in items:
        text, state = (item.get("text"), item.get("state")) if isinstance(item, dict) else (None, None)
        if not isinstance(text, str) or state not in TODO_STATES:
            return None
        todos.append(_new_todo(text=text, state=state))
    return tuple(todos)


def todo_lines(todos: Iterable[Todo]) -> str:
    """A list as text, one line for each item."""
    return "\n".join(map(str, todos))


def is_todo_card(card: ToolCard | None) -> bool:
    """Whether a tool is the built-in one: what it returns is made of nothing but the call."""
    return card is not None and card.name == TODO_CARD.name and (card == TODO_CARD or card == _chinese_card())


@cache
def _chinese_card() -> ToolCard:
    return TODO_CARD.translated(chinese_texts("core"))


class TodoList:
    """The todo list of a run as far as it was folded.

    Attributes:
        todos: The items, in the model's order; empty if there is no list.
        written: The same as the model wrote it: with handles where it sees no observations.
        step: The step that wrote it; 0 for none.
    """

    __slots__ = ("_open_requests", "step", "todos", "written")

    def __init__(self) -> None:
        self.todos: tuple[Todo, ...] = ()
        self.written: tuple[Todo, ...] = ()
        self.step = 0
        self._open_requests: dict[str, ActionRequested] = {}

    def fold(self, event: Event) -> None:
        """Process the next event."""
        match event.fact:
            case ActionRequested(tool=TODO_CARD.name) as fact:
                self._open_requests[fact.call_id] = fact
            case JudgedAgain(call_id=call_id, args=args) if call_id in self._open_requests:
                self._open_requests[call_id] = replace(self._open_requests[call_id], args=args)
            case ApprovalGiven(call_id=call_id, args=dict() as args) if call_id in self._open_requests:
                self._open_requests[call_id] = replace(self._open_requests[call_id], args=args, written=None)
            case Observed(call_id=call_id, ok=ok) if call_id in self._open_requests:
                requested = self._open_requests.pop(call_id)
                if ok and (todos := read_todos(requested.args)) is not None:
                    own = None if requested.written is None else read_todos(requested.written)
                    self.todos, self.written, self.step = todos, own or todos, requested.step
            case _:
                pass

    @property
    def open(self) -> tuple[Todo, ...]:
        """The items for which something is still to be done."""
        return tuple(todo for todo in self.todos if todo.is_open)

    @property
    def current(self) -> Todo | None:
        """The item in progress."""
        return next((todo for todo in self.todos if todo.state == "in_progress"), None)


def todo_list(trace: Trace) -> TodoList:
    """The list of a run as it is now."""
    return trace.view("todos", TodoList)


def todo_list_of(events: Iterable[Event]) -> TodoList:
    """The list after some events of a run, from its first one on."""
    view = TodoList()
    for event in events:
        view.fold(event)
    return view
