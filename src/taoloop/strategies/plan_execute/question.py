"""Whether a plan is put before a person, and what the question says about its calls. Pure.

One question stands for all calls of the plan, so it shows of each value what the question about the call itself would:
whether it comes from the task or from untrusted text. Of a value that is not known yet it says where it will come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from taoloop.core.cards.tool_card import TIERS, Tier, ToolCard
from taoloop.core.decision import Call, PlannedCall
from taoloop.core.events import Source, Verdict
from taoloop.core.policy import VerdictKind
from taoloop.core.trace import Trace
from taoloop.core.value_origins import stated_origins
from taoloop.core.views.plans import PLAN_RULE, TaskPlan
from taoloop.policy import judge
from taoloop.policy.targets import first_name
from taoloop.policy.texts import reason_text
from taoloop.policy.untrusted_index import argument_sources

Approve = Literal["writes", "always", "never"]
"""When a plan is put before a person."""

APPROVALS: tuple[Approve, ...] = get_args(Approve)

_NOBODY = frozenset({"headless", "read-only", "locked"})
"""The profiles under which nobody can be asked: there each call is decided when it is made."""


def plan_verdict(trace: Trace, plan: TaskPlan, approve: Approve) -> tuple[Tier, Verdict]:
    """The highest tier among the calls of a plan, and whether a person is asked about it, for which reasons."""
    cards = ((path, call, trace.card(call.tool)) for path, call in plan.calls)
    calls = [(f"{path}.args.", call, card) for path, call, card in cards if card is not None]
    tiers = [card.tier or "destructive" for _, _, card in calls]
    tier: Tier = max(tiers, key=TIERS.index, default="read")
    profile, language = trace.agent.policy.profile, trace.agent.language
    changes = any(_may_change(call, card) for _, call, card in calls)
    asks = approve == "always" or (approve == "writes" and changes and profile != "autonomous")
    if not asks or profile in _NOBODY:
        return tier, _verdict(language, "allow", ("plan",))
    sources = tuple(source for path, call, card in calls for source in call_sources(trace, call, card, path))
    codes = ["plan_calls" if changes else "plan_always"]
    if any(_is_denied(trace, call, card) for _, call, card in calls):
        codes.append("plan_denied")
    badges = {source.badge for source in sources if source.role != "minor"}
    codes += [badge for badge in ("FOREIGN", "UNKNOWN", "LINKS") if badge in badges]
    return tier, _verdict(language, "ask", tuple(codes), sources)


def _may_change(call: PlannedCall, card: ToolCard) -> bool:
    return card.tier not in ("read", "draft") or card.requires_approval or card.sends_out(call.args)


def _is_denied(trace: Trace, call: PlannedCall, card: ToolCard) -> bool:
    """Whether the policy denies a call as the plan has it; where a value is not known yet, that is decided later."""
    if any(True for _ in stated_origins(call.args)):
        return False
    return judge(trace, Call(tool=call.tool, args=call.args), card).kind == "deny"


def _verdict(language: str, kind: VerdictKind, codes: tuple[str, ...], sources: tuple[Source, ...] = ()) -> Verdict:
    reasons = tuple(reason_text(language, code, sources=sources) for code in codes)
    return Verdict(kind=kind, reasons=reasons, rule=PLAN_RULE, sources=sources, reason_codes=codes)


def call_sources(trace: Trace, call: PlannedCall, card: ToolCard, prefix: str = "") -> Iterator[Source]:
    """Where each value of a planned call comes from, with `prefix` before its path.

    A value that is not known yet is untrusted, unless the operator trusts the tool that is to return it.
    """
    origins = dict(stated_origins(call.args))
    for source in argument_sources(trace, _known(call.args), card):
        yield replace(source, arg=f"{prefix}{source.arg}")
    for path, origin in origins.items():
        is_trusted = any(fnmatchcase(origin.origin.tool, name) for name in trace.agent.policy.trusted_tools)
        yield Source(
            arg=f"{prefix}{path}",
            role=card.role(first_name(path)),
            badge="LOOKED UP" if is_trusted else "FOREIGN",
            snippet=origin.key,
        )


def _known(value: Any) -> Any:
    """The value without the parts that are not known yet."""
    if any(path == "" for path, _ in stated_origins(value)):
        return None
    if isinstance(value, dict):
        return {name: _known(part) for name, part in value.items()}
    return [_known(part) for part in value] if isinstance(value, list | tuple) else value
