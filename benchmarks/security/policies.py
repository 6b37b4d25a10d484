"""The policies under test, by name."""

from __future__ import annotations

from taoloop.policy import PROFILES, Policy, Rule

NONE = "none"

DEFAULT = "default"

KEYWORDS = f"{DEFAULT}-keywords"

NO_IDS = f"{DEFAULT}-no-ids"

POLICIES: dict[str, Policy] = {
    NONE: Policy(
        rules=(Rule(verdict="allow", name="everything again", repeated=True), Rule(verdict="allow", name="everything"))
    ),
    DEFAULT: Policy(),
    KEYWORDS: Policy(pin="keywords"),
    NO_IDS: Policy(),
    **{profile: Policy(profile=profile) for profile in PROFILES},
}
"""`default` is what an agent has that says nothing of a policy, with a provider's model; its profile is `supervised`.
With `-keywords` it is a model that cannot be asked; with `-no-ids` its cards name no id of the service's own making."""
