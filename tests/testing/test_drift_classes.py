"""Every class of drift does what it says: a recoverable reply holds its decision, one to be rejected holds none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop import tool
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Decision
from taoloop.dialects import DIALECTS, get_dialect
from taoloop.dialects.parsing.strict_json import json_equal
from taoloop.errors import TaoError
from taoloop.testing import DRIFT
from taoloop.testing.drift_classes import IntendedReply
from taoloop.tools.tool import Tool
from taoloop.tools.toolbox import Toolbox

NAMES = sorted(name for name in DIALECTS if name in ("text", "json", "fenced", "native"))


@tool(tier="write")
def send_money(to: str, amount: int, note: str = "", urgent: bool = False) -> str:
    """Send money to somebody."""
    return "sent"


@tool(tier="read")
def look_up(key: str) -> str:
    """Look something up."""
    return key


TOOLS = Toolbox([send_money, look_up])
CARDS: tuple[ToolCard, ...] = TOOLS.cards

DECISIONS: tuple[Decision, ...] = (
    Act(calls=(Call(tool="send_money", args={"to": "Ada", "amount": 5}),), reason="She is owed money."),
    Act(calls=(Call(tool="send_money", args={"amount": 5, "urgent": True, "to": "Bob"}),)),
    Act(
        calls=(Call(tool="send_money", args={"amount": 7, "note": "for the trip", "to": "Cleo"}),), reason="It is due."
    ),
    Act(calls=(Call(tool="look_up", args={"key": "tea"}),), reason="I need the price."),
    Answer(text="Ada has got 5"),
    Answer(text="Done. The price is 3.5, and Bob owes it.", reason="All is known."),
)


def sent(decision: Decision, dialect: str) -> IntendedReply:
    reply = get_dialect(dialect).write(decision)
    return IntendedReply(decision=decision, dialect=dialect, cards=CARDS, reply=reply)


def believed(one: IntendedReply, name: str) -> Decision | None:
    """What would come of the corrupted reply: its decision if anything would run or be answered, else None."""
    corrupted = DRIFT[name].corrupt(one)
    assert corrupted is not None
    read = get_dialect(one.dialect).read(corrupted, CARDS)
    if isinstance(read, Answer):
        return read
    if not isinstance(read, Act):
        return None
    try:
        prepared = [Call(tool=call.tool, args=dict(of(call.tool).prepare(call.args).args)) for call in read.calls]
    except TaoError:
        return None
    return Act(calls=tuple(prepared))


def of(name: str) -> Tool:
    return TOOLS.get(name)


def meant(decision: Decision) -> Decision:
    """The decision without what may differ: its reason."""
    if isinstance(decision, Answer):
        return Answer(text=decision.text)
    return Act(calls=tuple(Call(tool=c.tool, args=dict(of(c.tool).prepare(c.args).args)) for c in decision.calls))


def plain(decision: Decision | None) -> Any:
    if isinstance(decision, Act):
        return [(call.tool, call.args) for call in decision.calls]
    return decision and decision.text


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("name", DRIFT)
def test_drift_never_makes_another_decision(name: str, dialect: str) -> None:
    """The promise behind the whole: nothing runs, and nothing is answered, but what the model meant."""
    for decision in DECISIONS:
        one = sent(decision, dialect)
        if DRIFT[name].corrupt(one) is None:
            continue
        got = believed(one, name)
        if DRIFT[name].outcome == "reject":
            assert got is None, (decision, DRIFT[name].corrupt(one))
        elif got is not None:
            assert json_equal(plain(got), plain(meant(decision))), (decision, DRIFT[name].corrupt(one))


@pytest.mark.parametrize("name", DRIFT)
def test_every_class_applies_somewhere_and_changes_the_reply(name: str) -> None:
    made = [
        (one.reply, corrupted)
        for dialect in NAMES
        for decision in DECISIONS
        if (corrupted := DRIFT[name].corrupt(one := sent(decision, dialect))) is not None
    ]
    assert made or (name.startswith("fence_") and "fenced" not in NAMES)
    assert all(before != after for before, after in made)


values = st.one_of(
    st.text(max_size=8), st.booleans(), st.none(), st.integers(), st.lists(st.text(max_size=4), max_size=2)
)


@given(
    st.sampled_from(list(DRIFT)),
    st.sampled_from(NAMES),
    st.dictionaries(st.text(max_size=6), values, max_size=3),
    st.text(max_size=30),
)
def test_no_class_fails_whatever_the_decision(name: str, dialect: str, args: dict[str, Any], text: str) -> None:
    for decision in (Act(calls=(Call(tool="send_money", args=args),), reason=text), Answer(text=text or "x")):
        DRIFT[name].corrupt(sent(decision, dialect))
