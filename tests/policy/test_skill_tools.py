"""A loaded skill that names its tools narrows what the policy allows, and widens nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.policy.staging import CARDS, FETCH, LOOK, PAY, Run, card

from taoloop.core.cards.tool_card import ContentCard, ToolCard
from taoloop.core.decision import Call
from taoloop.core.events import Observed
from taoloop.core.policy import Policy, Profile, Rule
from taoloop.policy import judge

SEND = card("send", "write", "to", "text", roles={"to": "target", "text": "content"})


def load_card(**tools: tuple[str, ...] | None) -> ToolCard:
    contents = tuple(
        ContentCard(name=name, digest="sha256:d", trusted=True, tools=named) for name, named in tools.items()
    )
    return card("load_skill", "read", "name", egress=False, contents=contents)


def run_with(
    policy: Policy | None = None, *, loads: tuple[str, ...] = ("pdf",), **tools: tuple[str, ...] | None
) -> Run:
    run = Run(policy or Policy(profile="autonomous"), cards=(*CARDS, SEND, load_card(**tools)))
    for name in loads:
        run.see("instructions", "load_skill", name=name)
    return run


def test_a_call_of_another_tool_needs_a_person() -> None:
    run = run_with(pdf=("pay",))
    assert run.judge("pay", to="bob@example.com", amount=100).startswith("allow")
    verdict = judge(run.trace, Call(tool="send", args={"to": "x", "text": "y"}), SEND)
    assert (verdict.kind, verdict.rule, verdict.reason_codes) == ("ask", "skill_tools", ("skill_tools",))
    assert verdict.reasons == (
        "a loaded skill names the tools that it needs (`allowed-tools`), and 'send' is none of them",
    )


@pytest.mark.parametrize(
    ("tools", "loads"), [({"pdf": None}, ("pdf",)), ({"pdf": ("pay",)}, ()), ({"pdf": ("pay",), "b": None}, ("b",))]
)
def test_only_a_loaded_skill_that_names_tools_narrows(
    tools: dict[str, tuple[str, ...] | None], loads: tuple[str, ...]
) -> None:
    assert (
        run_with(Policy(profile="autonomous"), loads=loads, **tools).judge("send", to="x", text="y").startswith("allow")
    )


def test_reads_that_send_nothing_out_stay_as_they_are() -> None:
    run = run_with(pdf=())
    assert run.judge("load_skill", name="pdf") == "allow read"
    assert judge(run.trace, Call(tool="look", args={"query": "q"}), replace(LOOK, egress=False)).kind == "allow"
    assert judge(run.trace, Call(tool="fetch", args={"url": "https://a.b"}), replace(FETCH, egress=True)).kind == "ask"


@pytest.mark.parametrize("profile", ["supervised", "strict", "headless", "autonomous", "read-only", "locked"])
def test_what_it_names_is_judged_as_without_it(profile: Profile) -> None:
    """In no profile does a name in `allowed-tools` allow what was not allowed."""
    rank = {"allow": 0, "ask": 1, "deny": 2}
    calls: dict[str, dict[str, Any]] = {
        "pay": {"to": "eve", "amount": 1},
        "delete_file": {"path": "x"},
        "send": {"to": "x", "text": "y"},
    }
    for tool, args in calls.items():
        without = run_with(Policy(profile=profile), pdf=None).judge(tool, **args)
        assert run_with(Policy(profile=profile), pdf=(tool,)).judge(tool, **args) == without
        narrowed = run_with(Policy(profile=profile), pdf=()).judge(tool, **args)
        assert rank[narrowed.split()[0]] >= rank[without.split()[0]]
        assert not narrowed.startswith("allow")


def test_of_several_skills_each_must_name_the_tool() -> None:
    run = run_with(loads=("pdf", "b"), pdf=("pay", "send"), b=("send",))
    assert run.judge("send", to="x", text="y").startswith("allow")
    assert run.judge("pay", to="x", amount=1) == "ask skill_tools"


def test_the_operators_word_about_exactly_this_tool_stands_above() -> None:
    for rule, kind in ((Rule(tool="send", verdict="allow"), "allow"), (Rule(tool="s*", verdict="allow"), "ask")):
        run = run_with(Policy(profile="autonomous", rules=(rule,)), pdf=())
        assert run.judge("send", to="x", text="y").split()[0] == kind


def test_a_person_may_allow_further_calls() -> None:
    run = run_with(pdf=())
    args = {"to": "x", "text": "y"}
    verdict = judge(run.trace, Call(tool="send", args=args), SEND)
    call_id = run.ask("send", args, verdict.kind, verdict.rule, sources=verdict.sources)
    run.approve(call_id, scope="rule")
    run.add(Observed(call_id=call_id, ok=True, output="sent"))
    assert run.judge("send", to="x", text="z").startswith("allow")
    assert run.judge("pay", to="x", amount=1) == "ask skill_tools"


def test_a_tier_that_was_approved_in_advance_is_narrowed_too() -> None:
    run = Run(Policy(), cards=(PAY, load_card(pdf=())), approved_tiers=("write",))
    assert run.judge("pay", to="bob@example.com", amount=100).startswith("allow")
    run.see("instructions", "load_skill", name="pdf")
    assert run.judge("pay", to="eve", amount=100).startswith("ask")
