"""What an agent may do: the verdict on each call, from a policy, the trace and where the values came from. Pure."""

from taoloop.core.events import Source, Verdict
from taoloop.core.policy import PROFILES, Policy, Profile, Rule, stricter
from taoloop.policy.interception_rate import Interceptions, interceptions, total
from taoloop.policy.judge import Action, CodeRule, is_grave, judge
from taoloop.policy.profiles import pin_matters
from taoloop.policy.provenance import sources_of, tainted, trusted_texts
from taoloop.policy.rules import require_possible

__all__ = [
    "PROFILES",
    "Action",
    "CodeRule",
    "Interceptions",
    "Policy",
    "Profile",
    "Rule",
    "Source",
    "Verdict",
    "interceptions",
    "is_grave",
    "judge",
    "pin_matters",
    "require_possible",
    "sources_of",
    "stricter",
    "tainted",
    "total",
    "trusted_texts",
]
