"""Instances from the fast constructors are those of the class itself, and as frozen."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from taoloop.core.decision import Act, Call, new_act, new_call
from taoloop.core.events import (
    ActionRequested,
    Event,
    ModelReplied,
    Observed,
    new_action_requested,
    new_event,
    new_model_replied,
    new_observed,
)
from taoloop.core.fast_stdlib import fast_constructor
from taoloop.core.message import Message, ToolCallText, new_message, new_tool_call_text


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    first: int
    second: str = "two"

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("below 0")


@dataclasses.dataclass(slots=True, kw_only=True)
class Open:
    first: int
    second: str = "two"


@pytest.mark.parametrize("cls", [Plain, Open])
def test_fields_and_defaults_are_those_of_the_class(cls: type[Plain]) -> None:
    make = fast_constructor(cls)
    instance = make(first=1)
    assert (instance.first, instance.second) == (1, "two")
    assert make(first=1, second="x").second == "x"
    assert instance == cls(first=1)
    with pytest.raises(TypeError, match="first"):
        make()  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(TypeError, match="third"):
        make(first=1, third=3)  # type: ignore[call-arg]  # likewise


def test_an_instance_is_frozen_and_checked() -> None:
    make = fast_constructor(Plain)
    instance = make(first=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.first = 2  # type: ignore[misc]  # what the test is about
    with pytest.raises(dataclasses.FrozenInstanceError):
        del instance.first
    with pytest.raises(ValueError, match="below 0"):
        make(first=-1)


def test_an_instance_is_of_the_class_itself() -> None:
    observed = new_observed(call_id="call_1", ok=True, output="3")
    assert type(observed) is Observed
    assert observed == Observed(call_id="call_1", ok=True, output="3")
    assert hash(observed) == hash(Observed(call_id="call_1", ok=True, output="3"))
    assert repr(observed).startswith("Observed(")
    assert dataclasses.replace(observed, output="4").output == "4"
    assert copy.deepcopy(observed) == pickle.loads(pickle.dumps(observed)) == observed  # noqa: S301  # our own bytes


def test_an_open_class_stays_open() -> None:
    instance = fast_constructor(Open)(first=1)
    instance.first = 5
    assert instance == Open(first=5)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    items: list[int] = dataclasses.field(default_factory=list)


def test_a_default_factory_is_called_each_time() -> None:
    make = fast_constructor(Listed)
    one, other = make(), make()
    assert one.items == other.items == []
    assert one.items is not other.items
    assert make(items=[1]).items == [1]


def test_a_field_that_no_keyword_sets_is_refused() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Counted:
        number: int = dataclasses.field(default=0, init=False)

    with pytest.raises(TypeError, match=r"Counted\.number"):
        fast_constructor(Counted)


@pytest.mark.parametrize(
    ("make", "cls", "values"),
    [
        (new_call, Call, {"tool": "add", "args": {"a": 1}}),
        (new_act, Act, {"calls": ()}),
        (new_message, Message, {"role": "user", "content": "x"}),
        (new_tool_call_text, ToolCallText, {"name": "add", "arguments": "{}"}),
        (new_model_replied, ModelReplied, {"step": 1, "purpose": "decide", "text": "x", "decision": None}),
        (
            new_action_requested,
            ActionRequested,
            {
                "step": 1,
                "call_id": "call_1",
                "tool": "add",
                "args": {},
                "tier": "read",
                "verdict": "allow",
                "digest": "",
            },
        ),
    ],
)
def test_the_constructors_of_the_loop_make_the_same_as_the_classes(make: Any, cls: Any, values: dict[str, Any]) -> None:
    assert make(**values) == cls(**values)
    assert type(make(**values)) is cls


def test_an_event_is_made_of_its_three_parts() -> None:
    fact = Observed(call_id="call_1", ok=True, output="3")
    event = new_event((4, 1.5, fact))
    assert type(event) is Event
    assert event == Event(seq=4, at=1.5, fact=fact)
