"""The policies under test, by name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from taoloop.policy import PROFILES, Policy, Rule

NONE = "none"

DEFAULT = "default"

KEYWORDS = "keywords"

IDS = {"search_files_by_filename": {"id_": "file"}, "search_calendar_events": {"id_": "event"}}
"""What an operator may trust: ids that the service itself gave, for what the task searched for."""

POLICIES: dict[str, Policy] = {
    NONE: Policy(rules=(Rule(verdict="allow", name="everything"),)),
    DEFAULT: Policy(),
    f"{DEFAULT}-{KEYWORDS}": Policy(pin="keywords"),
    **{profile: Policy(profile=profile, trusted_fields=IDS) for profile in PROFILES},
    f"supervised-{KEYWORDS}": Policy(profile="supervised", pin="keywords", trusted_fields=IDS),
}
"""`default` is what an agent has that says nothing of a policy, with a provider's model; with `-keywords`, a model that
cannot be asked. The profiles have trusted ids besides."""


def policy_for(name: str, tools: Collection[str]) -> Policy:
    """The policy of this name for an agent that has these tools; it may trust no others."""
    policy = POLICIES[name]
    return replace(policy, trusted_fields={one: kinds for one, kinds in policy.trusted_fields.items() if one in tools})
