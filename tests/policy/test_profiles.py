"""The tables as tables: what holds for every row of every profile."""

from __future__ import annotations

from itertools import product
from typing import get_args

from taoloop.core.cards.tool_card import TIERS
from taoloop.core.policy import PROFILES
from taoloop.policy.destinations import FOLLOWED
from taoloop.policy.profiles import CallFeatures, Row, profile_verdict, risk_class
from taoloop.policy.texts import reason_text

_FLAGS = (
    "out",
    "tainted",
    "intended",
    "intent_fixed",
    "endorsed",
    "contents_endorsed",
    "targets_endorsed",
    "known_destinations",
)
CALLS = [
    CallFeatures(tier=tier, **dict(zip(_FLAGS, flags, strict=True)))
    for tier in (*TIERS, None)
    for flags in product((False, True), repeat=len(_FLAGS))
]
_SEVERITY = ("allow", "ask", "deny")


def test_every_call_has_a_row_and_every_row_a_verdict_and_words() -> None:
    for call in CALLS:
        assert risk_class(call) in get_args(Row)
    for row, profile in product(get_args(Row), PROFILES):
        assert profile_verdict(profile, row) in _SEVERITY
    for row, language in product(get_args(Row), ("en", "zh")):
        assert reason_text(language, row, tool="x", tier="write")


def test_a_stricter_profile_allows_nothing_more() -> None:
    for row in set(get_args(Row)) - {FOLLOWED}:  # under headless it needs a bound that the operator stated
        order = [
            _SEVERITY.index(profile_verdict(profile, row))
            for profile in ("autonomous", "supervised", "strict", "headless", "locked")
            if (profile, row) != ("autonomous", "foreign_undeclared")  # it asks nobody
        ]
        assert order == sorted(order), row


def test_only_supervised_and_strict_ask() -> None:
    asking = {profile for row, profile in product(get_args(Row), PROFILES) if profile_verdict(profile, row) == "ask"}
    assert asking == {"supervised", "strict"}


def test_no_write_is_ever_allowed_unasked_after_taint_unless_pinned_endorsed_and_staying_here() -> None:
    for call in CALLS:
        if call.tier in ("write", "destructive", None) and profile_verdict("supervised", risk_class(call)) == "allow":
            assert call.tier == "write"
            assert call.intended
            assert call.endorsed
            assert not (call.tainted and call.out)


def test_what_cannot_be_undone_is_never_allowed_by_being_tainted() -> None:
    for call in CALLS:
        clean = CallFeatures(**{name: getattr(call, name) for name in ("tier", *_FLAGS)} | {"tainted": False})
        for profile in PROFILES:
            before, after = profile_verdict(profile, risk_class(clean)), profile_verdict(profile, risk_class(call))
            assert _SEVERITY.index(after) >= _SEVERITY.index(before), (profile, call)
