"""The policies under test, by name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from taoloop.policy import PROFILES, Policy, Rule

NONE = "none"

KEYWORDS = "supervised-keywords"

IDS = {"search_files_by_filename": {"id_": "file"}, "search_calendar_events": {"id_": "event"}}
"""What an operator may trust: ids that the service itself gave, for what the task searched for."""

POLICIES: dict[str, Policy] = {
    NONE: Policy(rules=(Rule(verdict="allow", name="everything"),)),
    **{profile: Policy(profile=profile, pin="model", trusted_fields=IDS) for profile in PROFILES},
    KEYWORDS: Policy(profile="supervised", trusted_fields=IDS),
}


def policy_for(name: str, tools: Collection[str]) -> Policy:
    """The policy of this name for an agent that has these tools; it may trust no others."""
    policy = POLICIES[name]
    return replace(policy, trusted_fields={one: kinds for one, kinds in policy.trusted_fields.items() if one in tools})
