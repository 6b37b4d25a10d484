"""What the policy says of one action: allow, ask or deny. Pure, and judged on validated arguments only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taoloop.core.cards import ToolCard
from taoloop.core.events import Verdict
from taoloop.core.trace import Trace

ALLOWED_READ = Verdict(kind="allow", reasons=("it only reads",))
ALLOWED_DRAFT = Verdict(kind="allow", reasons=("it only prepares a draft",))
UNDECLARED = Verdict(kind="allow", reasons=("the tool declares no tier; its calls are recorded as effects",))


def judge(trace: Trace, args: Mapping[str, Any], card: ToolCard) -> Verdict:  # noqa: ARG001  # rules on arguments come with it
    """The verdict on calling the tool of `card` with `args` in the run of `trace`.

    Reading and drafting are allowed. A write or a destructive call needs a person's answer, unless the operator
    allowed its tier ahead of time. A tool that the developer registered without a tier is allowed.
    """
    if card.tier == "read":
        return ALLOWED_READ
    if card.tier == "draft":
        return ALLOWED_DRAFT
    if card.tier is None:
        return UNDECLARED
    if card.tier in trace.approved_tiers:
        return Verdict(kind="allow", reasons=(f"the operator allowed tier {card.tier!r} ahead of time",))
    return Verdict(kind="ask", reasons=(f"{card.name!r} is a {card.tier} tool: a person decides",))
