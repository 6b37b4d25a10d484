"""What a call of an agent lends to the run that it becomes: journal, approver and the rest of the budget."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from taoloop.core.agent_spec import Limits
from taoloop.core.cards.tool_card import Tier
from taoloop.core.events import Observed
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.trace import Trace
from taoloop.errors import ToolError
from taoloop.journals.base import Journal
from taoloop.runtime.approvals.request import Approver, SerializedApprover


@dataclass(frozen=True, slots=True)
class BudgetShare:
    """What was used when calls of `agents` began together: each may use its part of what is left."""

    agents: int
    tokens: int
    cost_usd: float

    @classmethod
    def of(cls, trace: Trace, agents: int) -> BudgetShare:
        """The share at this point of a run."""
        return cls(max(1, agents), trace.usage.total_tokens, trace.cost_usd)


@dataclass(slots=True, kw_only=True)
class ParentRun:
    """What a call lends to the run that it becomes, and what that run leaves behind."""

    parent: Trace
    journal: Journal
    approver: Approver | None
    share: BudgetShare
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    redactor: Redactor | None = None
    child: Trace | None = None

    def approver_for(self, own: Approver | None) -> Approver | None:
        """Who answers in the inner run: its agent's own approver, else the outer one; one question at a time."""
        approver = own or self.approver
        return None if approver is None else SerializedApprover(approver, self.asking)

    @property
    def waits_for(self) -> str | None:
        """What the inner run waits for, in words; None unless it waits for a person."""
        child = self.child
        if child is None or child.paused is None:
            return None
        asked = [call.requested for call in child.pending.values() if call.needs_person]
        named = ", ".join(f"{one.tool} ({one.call_id}, {one.tier})" for one in asked) or child.paused.reason
        return f"{named} in run {child.run_id}"

    @property
    def tiers(self) -> set[Tier]:
        """The tiers of the calls that wait for a person in there, however deep."""
        child = self.child
        if child is None or child.paused is None:
            return set()
        asked = {call.requested.tier for call in child.pending.values() if call.needs_person}
        return {*child.paused.tiers, *(tier for tier in asked if tier is not None)}

    def settled(self, observed: Observed) -> Observed:
        """The observation with its link to the inner run, and with what that run used."""
        child = self.child
        if child is None or child.started is None:
            return observed
        cost_usd = None if child.unpriced_calls else child.cost_usd
        return replace(observed, child=child.run_id, usage=child.usage, cost_usd=cost_usd)

    def limits(self, own: Limits) -> Limits:
        """The stricter of an agent's own limits and what is left of the outer run's tokens, money and time.

        Raises:
            ToolError: nothing is left.
        """
        outer, parent = self.parent.limits, self.parent
        # the outer wall time has the inner one's in it already; work and tokens count once the call has its outcome
        used_wall_s = self.child.wall_s if self.child is not None else 0.0
        left: dict[str, float | None] = {
            "max_tokens": _less(outer.max_tokens, self.share.tokens, self.share.agents),
            "max_cost_usd": _less(outer.max_cost_usd, self.share.cost_usd, self.share.agents),
            "max_wall_s": _less(outer.max_wall_s, parent.wall_s - used_wall_s),
            "max_working_s": _less(outer.max_working_s, parent.working_s),
        }
        left["max_tokens"] = None if left["max_tokens"] is None else int(left["max_tokens"])
        for name, value in left.items():
            if value is not None and value <= 0:
                raise ToolError(
                    f"Nothing is left of the run's {name} for another agent.",
                    code="child_budget_exceeded",
                    hint="Answer from what there is.",
                )
        stricter: dict[str, Any] = {
            name: value
            for name, value in left.items()
            if value is not None and ((mine := getattr(own, name)) is None or value < mine)
        }
        return replace(own, **stricter)


def _less(allowed: float | None, used: float, share: int = 1) -> float | None:
    return None if allowed is None else (allowed - used) / share
