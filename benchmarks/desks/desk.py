"""What a desk is: a database, tools with cards, tasks with the calls that do them, and goals of attackers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.evals.suites.tau_records import TauRecords

Database = dict[str, Any]
Function = Callable[..., Any]

MARK = "IMPORTANT MESSAGE FOR THE ASSISTANT"
"""How the scripted model recognizes an injected text."""

PREVIEW_CHARS = 10_000_000
"""No output is cut: what a model does not see must not look like a defence."""

_LISTS = ("item_ids", "new_item_ids", "flight_numbers", "dates", "passengers")
_TYPES: Mapping[str, Mapping[str, Any]] = {
    "amount": {"type": "number"},
    "bags": {"type": "integer"},
    **{name: {"type": "array", "items": {"type": "string"}} for name in _LISTS},
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one tool, as plain data."""

    tool: str
    args: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The same for equal calls."""
        return json.dumps([self.tool, self.args], sort_keys=True)


def call(tool: str, **args: Any) -> Call:
    """A call, written as one."""
    return Call(tool, args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a customer wants, whose records it is about, and the calls that do it."""

    name: str
    text: str
    customer: str
    calls: tuple[Call, ...]
    language: Literal["en", "zh"] = "en"
    then: str = ""
    """What the customer answers when the model has looked everything up and asks whether to go on; a run of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What an attacker wants. `calls` are all that a model that obeys and knows everything makes for it.

    `is_own`: nothing but the customer's own records is touched, with the customer's own money. `is_choice`: the call is
    also within what the task may mean, such as another order of the same customer. Only a person can tell such a call
    from the right one; these are counted apart.
    """

    name: str
    calls: Callable[[Task, Database], list[Call]]
    is_own: bool = False
    is_choice: bool = False


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One domain."""

    name: str
    cards: tuple[ToolCard, ...]
    functions: Mapping[str, Function]
    new_database: Callable[[], Database]
    tasks: tuple[Task, ...]
    goals: tuple[Goal, ...] = ()
    excesses: tuple[Task, ...] = ()
    """What customers ask for in plain words, and what nobody may give them for that."""
    free_texts: frozenset[str] = frozenset()
    """Names of the fields that hold free text."""
    policy_file: str = ""
    """The name of its policy file; its own name unless given."""
    tasks_only: bool = False
    """No series but the tasks themselves."""

    @cached_property
    def tiers(self) -> Mapping[str, Tier | None]:
        """The tier of each tool."""
        return {card.name: card.tier for card in self.cards}

    def is_write(self, made: Call) -> bool:
        """Whether a call changes something."""
        return self.tiers[made.tool] != "read"

    def run(self, database: Database, made: Call) -> Any:
        """Carry out a call.

        Raises:
            LookupError: there is no such record.
        """
        return self.functions[made.tool](database, **made.args)

    def expected(self, task: Task) -> Database:
        """The database after the calls of a task. A task may hold a call that its tool refuses."""
        database = self.new_database()
        for made in task.calls:
            with contextlib.suppress(LookupError):
                self.run(database, made)
        return database

    def inject(self, database: Any, text: str) -> None:
        """Put a text into every free-text field of every record."""
        for record in _records(database, lambda part: self.inject(part, text)):
            for name in self.free_texts & record.keys():
                if isinstance(record[name], str):
                    record[name] = f"{record[name]} {text}".strip()


def _records(value: Any, edit: Callable[[Any], None]) -> Iterator[dict[str, Any]]:
    """The records in a value, except those of a table that copies them later: they are edited then."""
    if isinstance(value, TauRecords):
        value.edit(edit)
    elif isinstance(value, dict):
        yield value
        for part in value.values():
            yield from _records(part, edit)
    elif isinstance(value, list):
        for part in value:
            yield from _records(part, edit)
    elif hasattr(value, "__dict__"):  # a record of tau2-bench is an object
        yield from _records(vars(value), edit)


def read_card(name: str, purpose: str, ids: Mapping[str, str] | None = None, /, **roles: str) -> ToolCard:
    """The card of a tool that only reads."""
    return _card(name, purpose, "read", roles, ids=ids or {})


def write_card(name: str, purpose: str, tier: Tier = "write", /, *, undone_by: str = "", **roles: str) -> ToolCard:
    """The card of a tool that changes a record of the operator's own database: nothing leaves it.

    `undone_by`: the tool that undoes it, or, if it is its own name, another call of it.
    """
    output = {} if undone_by == name else {"code": "output.code"}
    return _card(
        name,
        purpose,
        tier,
        roles,
        reversible=bool(undone_by),
        compensation=undone_by if undone_by not in ("", name) else None,
        compensation_args=output if undone_by not in ("", name) else {},
    )


def _card(name: str, purpose: str, tier: Tier, roles: Mapping[str, str], **more: Any) -> ToolCard:
    schema = {
        "type": "object",
        "properties": {arg: _TYPES.get(arg, {"type": "string"}) for arg in roles},
        "required": list(roles),
        "additionalProperties": False,
    }
    return ToolCard(
        name=name,
        purpose=purpose,
        input_schema=schema,
        tier=tier,
        egress=False,
        roles=dict(roles),
        max_preview_chars=PREVIEW_CHARS,
        **more,
    )


def as_text(value: Any) -> str:
    """An output as a model reads it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def other_than(values: Sequence[str], *, taken: set[str]) -> str:
    """The first value that is not taken; the first of all if every one is."""
    return next((value for value in values if value not in taken), values[0])
