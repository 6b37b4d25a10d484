"""A tool whose calls a person must allow each time (`approval: required`): no profile, tier or scope goes around it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.policy.staging import LOOK, Run, card

from taoloop.core.cards.tool_card import TIERS, Tier, ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import Pinned, Verdict
from taoloop.core.policy import PROFILES, Policy, Profile, Rule
from taoloop.core.trace import Trace
from taoloop.errors import PolicyError, ToolDefinitionError
from taoloop.policy import Action, judge

ARGS = {"to": "bob@example.com"}


def sign(tier: Tier | None = "write", **more: Any) -> ToolCard:
    return card("sign", tier, "to", approval="required", **more)


def verdict(policy: Policy, one: ToolCard, *, seen: bool = False, rules: tuple[Any, ...] = (), **more: Any) -> Verdict:
    run = Run(policy, (LOOK, one), task="sign for bob@example.com", **more)
    if seen:
        run.see("something")
    return judge(run.trace, Call(tool="sign", args=ARGS), one, rules=rules)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("tier", [*TIERS, None])
@pytest.mark.parametrize("egress", [True, False])
@pytest.mark.parametrize("seen", [True, False])
def test_no_profile_allows_it_whatever_the_tier(profile: Profile, tier: Tier | None, egress: bool, seen: bool) -> None:
    given = sign(tier, egress=egress)
    said = verdict(Policy(profile=profile), given, seen=seen, approved_tiers=TIERS)
    freely = verdict(Policy(profile=profile), card("sign", tier, "to", egress=egress), seen=seen, approved_tiers=TIERS)
    if freely.kind == "deny" or profile == "headless":
        assert said.kind == "deny"
    else:
        assert said.kind == "ask"
        assert said.reasons[0] == "every call of 'sign' needs a person's approval"


def test_a_read_is_asked_about_in_the_profile_that_asks_nobody() -> None:
    said = verdict(Policy(profile="autonomous"), sign("read"))
    assert (said.kind, said.rule) == ("ask", "approval_required")
    assert [one.arg for one in said.sources] == ["to"]


def test_where_nobody_is_there_it_is_denied_and_says_so() -> None:
    said = verdict(Policy(profile="headless"), sign("read"))
    assert said.kind == "deny"
    assert said.reasons == (
        "every call of 'sign' needs a person's approval",
        "nobody can be asked (profile headless)",
    )


def test_a_call_that_was_fixed_ahead_is_asked_about() -> None:
    one = sign()
    run = Run(Policy(pin="model"), (LOOK, one), task="sign for bob@example.com")
    run.add(Pinned(tools=("sign",), calls=(Call(tool="sign", args=ARGS),)))
    assert run.judge("sign", **ARGS) == "ask approval_required"


def test_what_a_person_allowed_further_is_asked_about_all_the_same() -> None:
    one = sign()
    run = Run(cards=(LOOK, one), task="sign for bob@example.com")
    run.approve(run.ask("sign", ARGS, "ask", "approval_required"), scope="rule")
    assert run.judge("sign", **ARGS).startswith("ask")


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ([Rule(verdict="allow", tool="sign")], "allow"),
        ([Rule(verdict="allow", tool="sign", args={"to": "bob@*"})], "allow"),
        ([Rule(verdict="allow", tool="sign", args={"to": "ann@*"})], "ask"),
        ([Rule(verdict="allow", tool="*")], "ask"),
        ([Rule(verdict="allow", tool="sig?")], "ask"),
        ([Rule(verdict="allow", tier="write")], "ask"),
        ([Rule(verdict="allow", tool="*", args={"to": "bob@*"}), Rule(verdict="allow", tool="sign")], "ask"),
        ([Rule(verdict="ask", tool="sign")], "ask"),
        ([Rule(verdict="deny", tool="*")], "deny"),
        ([Rule(verdict="deny", tool="sign", args={"to": "bob@*"}), Rule(verdict="allow", tool="sign")], "deny"),
    ],
)
@pytest.mark.parametrize("profile", ["supervised", "autonomous"])
def test_only_a_rule_that_allows_exactly_this_tool_lifts_it(rules: list[Rule], kind: str, profile: Profile) -> None:
    said = verdict(Policy(profile=profile, rules=tuple(rules)), sign())
    assert said.kind == kind


def test_a_rule_for_exactly_this_tool_lifts_it_where_nobody_is_there() -> None:
    policy = Policy(profile="headless", rules=(Rule(verdict="allow", tool="sign", name="signing is agreed"),))
    assert verdict(policy, sign()).rule == "rule:signing is agreed"


def test_a_rule_in_python_that_allows_does_not_lift_it_and_one_that_denies_denies() -> None:
    def allow(_trace: Trace, _action: Action, _card: ToolCard) -> Verdict:
        return Verdict(kind="allow", rule="rule:allow")

    def deny(_trace: Trace, _action: Action, _card: ToolCard) -> Verdict:
        return Verdict(kind="deny", rule="rule:deny")

    assert verdict(Policy(), sign(), rules=(allow,)).kind == "ask"
    assert verdict(Policy(), sign(), rules=(deny,)).kind == "deny"


@given(
    profile=st.sampled_from(PROFILES),
    tier=st.sampled_from([*TIERS, None]),
    patterns=st.lists(st.sampled_from(["*", "s*", "sign*", "[s]ign", "????", "look"]), max_size=3, unique=True),
    verdicts=st.lists(st.sampled_from(["allow", "ask", "deny"]), min_size=3, max_size=3),
    seen=st.booleans(),
    tiers=st.sets(st.sampled_from(TIERS)),
)
def test_no_mixture_of_settings_allows_it_without_naming_it(
    profile: Profile, tier: Tier | None, patterns: list[str], verdicts: list[Any], seen: bool, tiers: set[Tier]
) -> None:
    rules = [Rule(verdict=one, tool=name, args={"to": "*"}) for name, one in zip(patterns, verdicts, strict=False)]
    try:
        policy = Policy(profile=profile, rules=tuple(rules))
    except PolicyError:  # one rule hides another: no such policy exists
        return
    assert verdict(policy, sign(tier), seen=seen, approved_tiers=tuple(tiers)).kind != "allow"


def test_a_card_takes_no_other_word() -> None:
    with pytest.raises(ToolDefinitionError, match="has approval = 'never'"):
        card("sign", "write", approval="never")
