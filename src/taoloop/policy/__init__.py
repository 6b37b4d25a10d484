"""What an agent may do: the verdict on each call, from a policy, the trace and where the values came from. Pure."""

from taoloop.core.decision import Call
from taoloop.core.events import Source, Verdict
from taoloop.core.policy import PROFILES, Policy, Profile, Rule, stricter
from taoloop.policy.interception_rate import InterceptionCounts, interceptions, total
from taoloop.policy.judge import Action, CodeRule, is_high_risk, judge
from taoloop.policy.profiles import needs_intent
from taoloop.policy.provenance import authority_of, sources_of, tainted, trusted_texts
from taoloop.policy.rules import reject_unmatchable_rules

__all__ = [
    "PROFILES",
    "Action",
    "Call",
    "CodeRule",
    "InterceptionCounts",
    "Policy",
    "Profile",
    "Rule",
    "Source",
    "Verdict",
    "authority_of",
    "interceptions",
    "is_high_risk",
    "judge",
    "needs_intent",
    "reject_unmatchable_rules",
    "sources_of",
    "stricter",
    "tainted",
    "total",
    "trusted_texts",
]
