"""The tables of the profiles: the verdict of each on a call, from what is known about it. Pure.

The columns `supervised`, `strict` and `headless` were measured against a model that obeys every injection (AgentDojo,
suite v1.2.2, 949 pairs; see `benchmarks/security`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.policy import Policy, Profile, Rule, VerdictKind

Row = Literal[
    "read",
    "draft",
    "read_out",
    "read_out_known",
    "read_out_offered",
    "wanted",
    "write",
    "write_out",
    "destructive",
    "undeclared",
    "no_target",
    "foreign_destructive",
    "foreign_undeclared",
]
"""The kinds of calls that the tables distinguish; stored in the trace as the rule that decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFeatures:
    """What is known about one call."""

    tier: Tier | None
    """The tier of the tool; None: not declared."""
    out: bool
    """Whether the call sends data out."""
    tainted: bool
    """Whether the model has seen untrusted text."""
    intended: bool = False
    """The words of the task ask for the tool and, if a model was asked about them, its reply names it."""
    intent_fixed: bool = False
    """A model was asked which tools the task asks for."""
    may_be_meant: bool = False
    """Its reply names the tool, and the words of the task leave room for that."""
    endorsed: bool = False
    """Every target, id and value appears in a trusted text; contents need not."""
    contents_endorsed: bool = False
    """Every argument appears in a trusted text, contents included."""
    targets_endorsed: bool = False
    """The call has targets, and each of them appears in a trusted text."""
    untargeted: bool = False
    """The tool takes targets, and the call names none, or one that means everything."""
    excluded: bool = False
    """A person or the operator named a value of it where they say what is not wanted."""
    user_authorises: bool = True
    """The user's words may authorise a call by themselves."""
    on_input: bool = False
    """A target of it is named only as what something is read or taken from."""
    overwrites: bool = False
    """It would overwrite what exists, which the task does not ask to be changed."""
    known_destinations: bool = False
    """Each address that a read sends data to appears in a trusted text, or its host is allowed; once the model has seen
    untrusted text, so does everything else that is sent."""
    offered_destinations: bool = False
    """All else that a read sends are links, exactly as pages or search results of the run have them, and the policy
    lets the run follow that many."""


def risk_class(call: CallFeatures) -> Row:
    """The row of the tables that a call belongs to."""
    if call.tier in ("read", "draft"):
        if not call.out:
            return call.tier
        if call.known_destinations:
            return "read" if call.tier == "read" and not call.tainted else "read_out_known"
        return "read_out_offered" if call.offered_destinations else "read_out"
    exceeds_write = call.tier != "write" or (call.out and call.intent_fixed)
    is_asked_for = call.intended or call.may_be_meant or call.targets_endorsed
    if call.tainted and exceeds_write and not is_asked_for:
        return "foreign_undeclared" if call.tier is None else "foreign_destructive"
    if call.untargeted:
        return "no_target"
    if call.tier is None:
        return "undeclared"
    if call.tier == "destructive":
        return "destructive"
    if not call.user_authorises:
        return "write_out" if call.out else "write"
    if (
        call.intended
        and call.endorsed
        and not call.overwrites
        and (not call.out or (call.contents_endorsed and not call.tainted))
    ):
        return "wanted"
    return "write_out" if call.out else "write"


FOREIGN_ROWS: frozenset[Row] = frozenset({"foreign_destructive", "foreign_undeclared"})
"""Calls that nothing in the task asks for, whose effect cannot be taken back or is not known."""

_ALWAYS: frozenset[Row] = frozenset({"read", "draft"})
_FALLBACK_VERDICTS: dict[Profile, VerdictKind] = {
    "supervised": "ask",
    "strict": "ask",
    "headless": "deny",
    "autonomous": "allow",
    "read-only": "deny",
    "locked": "deny",
}
"""The verdict of each profile on a call that no other line of its table decides."""


def needs_intent(policy: Policy, card: ToolCard) -> bool:
    """Whether a verdict on calls of this tool can depend on what the task asks for.

    A read is never pinned; one that sends data out may be fixed in advance where such reads are not free. If a rule of
    the operator decides every call of the tool, nothing else matters; unless a rule asks whether the task does.
    """
    if any(rule.requested is not None and fnmatchcase(card.name, rule.tool) for rule in policy.rules):
        return True
    if policy.profile in ("read-only", "locked"):
        return False
    if card.tier in ("read", "draft") and not (card.egress and policy.profile in ("strict", "headless")):
        return False
    return not any(_decides_all(rule, card) for rule in policy.rules)


def _decides_all(rule: Rule, card: ToolCard) -> bool:
    """Whether a rule matches every call of a tool, with any arguments."""
    conditions = (rule.args, rule.host, rule.path, rule.total_over, rule.after, rule.user)
    return (
        fnmatchcase(card.name, rule.tool)
        and rule.tier in (None, card.tier)
        and rule.egress is None
        and rule.tainted is None
        and rule.calls_over is None
        and rule.repeated is None
        and not any(conditions)
    )


def profile_verdict(profile: Profile, row: Row) -> VerdictKind:
    """The verdict of a profile's table for a row."""
    if profile == "locked":
        return "deny"
    if profile == "read-only":
        return "allow" if row in ("read", "read_out_known") else "deny"
    if row in _ALWAYS:
        return "allow"
    if row == "foreign_destructive" or (row == "foreign_undeclared" and profile == "autonomous"):
        return "deny"
    if row in ("wanted", "read_out_known") and profile == "supervised":
        return "allow"
    if row == "read_out_offered" and profile in ("supervised", "headless"):  # the operator has stated a bound
        return "allow"
    return _FALLBACK_VERDICTS[profile]
