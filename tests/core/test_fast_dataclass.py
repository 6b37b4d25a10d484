"""Instances that are made faster are the same, and as frozen."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from taoloop.core.events import Observed
from taoloop.core.fast_dataclass import fast_init, maker
from taoloop.core.message import Message


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    first: int
    second: str = "two"

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("below 0")


@fast_init
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    first: int
    second: str = "two"

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("below 0")


@dataclasses.dataclass(slots=True, kw_only=True)
class Open:
    first: int
    second: str = "two"


@pytest.mark.parametrize("make", [Quick, maker(Quick), maker(Plain), maker(Open)])
def test_fields_and_defaults_are_those_of_the_class(make: type[Quick]) -> None:
    made = make(first=1)
    assert (made.first, made.second) == (1, "two")
    assert make(first=1, second="x").second == "x"
    assert make(first=1) == made
    with pytest.raises(TypeError, match="first"):
        make()  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(TypeError, match="third"):
        make(first=1, third=3)  # type: ignore[call-arg]  # likewise


@pytest.mark.parametrize("make", [Quick, maker(Quick), maker(Plain)])
def test_what_is_made_is_frozen_and_checked(make: type[Quick]) -> None:
    made = make(first=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.first = 2  # type: ignore[misc]  # what the test is about
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.first
    with pytest.raises(ValueError, match="below 0"):
        make(first=-1)


def test_a_made_instance_is_of_the_class_itself() -> None:
    made = maker(Observed)(call_id="call_1", ok=True, output="3")
    assert type(made) is Observed
    assert made == Observed(call_id="call_1", ok=True, output="3")
    assert hash(made) == hash(Observed(call_id="call_1", ok=True, output="3"))
    assert repr(made).startswith("Observed(")
    assert dataclasses.replace(made, output="4").output == "4"
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made  # noqa: S301  # our own bytes


def test_an_open_class_stays_open() -> None:
    made = maker(Open)(first=1)
    made.first = 5
    assert made == Open(first=5)


@fast_init
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    items: list[int] = dataclasses.field(default_factory=list)


class MoreListed(Listed):
    __slots__ = ()


@pytest.mark.parametrize("make", [Listed, maker(Listed), MoreListed])
def test_a_field_may_be_made_anew_each_time(make: type[Listed]) -> None:
    one, other = make(), make()
    assert one.items == other.items == []
    assert one.items is not other.items
    assert make(items=[1]).items == [1]


def test_a_field_that_nobody_gives_is_refused() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Counted:
        number: int = dataclasses.field(default=0, init=False)

    with pytest.raises(TypeError, match=r"Counted\.number"):
        maker(Counted)
    with pytest.raises(TypeError, match=r"Counted\.number"):
        fast_init(Counted)


def test_messages_are_made_alike() -> None:
    assert maker(Message)(role="user", content="x") == Message(role="user", content="x")


class Bare(Quick):
    __slots__ = ()


class Loose(Quick):
    pass


@pytest.mark.parametrize("kind", [Bare, Loose])
def test_a_subclass_stays_one(kind: type[Quick]) -> None:
    made = kind(first=1)
    assert type(made) is kind
    assert (made.first, made.second) == (1, "two")
    assert dataclasses.replace(made, second="x").second == "x"
    with pytest.raises(ValueError, match="below 0"):
        kind(first=-1)
