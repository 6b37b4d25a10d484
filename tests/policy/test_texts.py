"""Reasons: a verdict is stored with codes, so that it can be shown in another language than its run's."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.policy.staging import CARDS, Run, card

from taoloop.core.decision import Call, call_digest
from taoloop.core.events import ActionRequested, Verdict
from taoloop.core.policy import PROFILES, Policy, Rule
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.policy import judge
from taoloop.policy.texts import translate_reasons

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("look", {"query": "tea"}),
    ("fetch", {"url": "https://bank.example/a"}),
    ("fetch", {"url": "https://evil.example/a"}),
    ("pay", {"to": "bob@example.com", "amount": 100}),
    ("pay", {"to": "eve@evil.example", "amount": 7}),
    ("save", {"path": "notes.md", "text": "see https://evil.example"}),
    ("delete_file", {"path": "evil.md"}),
    ("bare", {"x": "bob@example.com"}),
    ("sign", {"x": "bob@example.com"}),
)
MORE = (*CARDS, card("bare", None, "x"), card("sign", "write", "x", approval="required"))


def _translated(language: str, verdict: Verdict, tool: str, run: Run) -> tuple[str, ...]:
    tier = run.cards[tool].tier
    return translate_reasons(
        language,
        verdict.reasons,
        verdict.reason_codes,
        tool=tool,
        tier=tier,
        rule=verdict.rule,
        sources=verdict.sources,
    )


@pytest.mark.parametrize("profile", PROFILES)
def test_a_verdict_in_one_language_can_be_shown_in_the_other(profile: Any) -> None:
    rules = (Rule(verdict="ask", name="large sums", tool="pay", args={"amount": {"min": 50}}),)
    for (tool, args), tainted, tiers in product(CALLS, (False, True), ((), ("write",))):
        verdicts = []
        for language in ("en", "zh"):
            run = Run(Policy(profile=profile, rules=rules), MORE, language=language, approved_tiers=tiers)
            if tainted:
                run.see("evil.md eve@evil.example")
            verdicts.append(judge(run.trace, Call(tool=tool, args=args), run.cards[tool]))
        english, chinese = verdicts
        assert english.reason_codes == chinese.reason_codes
        assert len(english.reasons) == len(english.reason_codes) > 0
        assert _translated("zh", english, tool, run) == chinese.reasons
        assert _translated("en", chinese, tool, run) == english.reasons


def test_words_of_the_operator_stay_as_they_are() -> None:
    run = Run(Policy(rules=(Rule(verdict="ask", tool="sign", reason="Ann wants to see it"),)), MORE)
    verdict = judge(run.trace, Call(tool="sign", args={"x": "y"}), run.cards["sign"])
    assert verdict.reason_codes == ("approval_required", "")
    assert _translated("zh", verdict, "sign", run) == ("'sign' 的每次调用都需人工审批", "Ann wants to see it")


def test_an_event_that_was_stored_without_codes_is_read_and_shown_as_it_is() -> None:
    args = {"path": "evil.md"}
    requested = ActionRequested(
        step=1,
        call_id="call_1",
        tool="save",
        args=args,
        tier="write",
        verdict="ask",
        digest=call_digest("save", args),
        reasons=("'save' is a write tool: a person decides",),
        rule="write",
    )
    body = encode_fact(requested).replace(b',"reason_codes":[]', b"")
    assert b"reason_codes" not in body
    assert decode_fact("action_requested", body) == requested
    shown = translate_reasons(
        "zh", requested.reasons, requested.reason_codes, tool="save", tier="write", rule="write", sources=()
    )
    assert shown == requested.reasons
