"""From a decision to judged calls: unknown tools, bad arguments and denied actions become observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.cards.tool_search import listed_cards, unwrap_call_tool
from taoloop.core.decision import Call, call_digest
from taoloop.core.effects import RequestCalls
from taoloop.core.events import (
    ActionRequested,
    Fact,
    Fault,
    JudgedAgain,
    Observed,
    Resumed,
    Verdict,
    new_action_requested,
)
from taoloop.core.handles import READER, contains_handle
from taoloop.core.policy import Policy
from taoloop.core.texts import TEXTS
from taoloop.core.trace import TOOL_CALL_LIMIT, Trace

Check = Callable[[str, str, Any], Mapping[str, Any] | Fault]
"""Takes a call id, a known tool's name and the arguments; returns them as JSON values, or what is wrong with them."""

Judge = Callable[[str, Call, ToolCard], Verdict]
"""Takes a call id, a call with arguments that fit, and its card; returns the policy's verdict."""


def judge_calls(trace: Trace, effect: RequestCalls, check: Check, judge: Judge, add: Callable[[Fact], None]) -> None:
    """Pass to `add` what follows from a decision to act: every call requested, and those refused at once observed.

    A fact that is added to the trace counts for the next one: what a budget allows depends on the calls before. Call
    ids are `call_1`, `call_2` … in the order of the run, so the same trace always gives the same ids.
    """
    refusals: list[Fact] = []
    agent, allowed = trace.agent, trace.limits.max_tool_calls
    remaining = None if allowed is None else allowed - trace.tool_calls
    for number, requested_call in enumerate(effect.act.calls, trace.calls_requested + 1):
        call = unwrap_call_tool(requested_call, agent.tools)
        card = trace.card(call.tool) if effect.offered else None
        call_id = f"call_{number}"
        args, verdict, fault = _judge_call(trace, call_id, call, card, check, judge)
        if card is None:
            fault = _unknown_tool_fault(trace, call.tool, offered=effect.offered)
        if fault is None and remaining is not None:
            remaining -= 1
            if remaining < 0:
                fault = Fault(
                    code=TOOL_CALL_LIMIT, message=TEXTS.text(agent.language, "tool_call_limit", allowed=allowed)
                )
                verdict = Verdict(kind="deny", reasons=(fault.message,))
        add(_action_requested(agent.policy, effect.step, call_id, call, args, card, verdict))
        if fault is not None:
            refusals.append(failed_observation(call_id, fault))
    for refused in refusals:
        add(refused)


def failed_observation(call_id: str, fault: Fault) -> Observed:
    """The observation of a call that gives the model no output: it was refused, or its outcome is unknown."""
    return Observed(call_id=call_id, ok=False, output="", error=fault)


def _judge_call(
    trace: Trace, call_id: str, call: Call, card: ToolCard | None, check: Check, judge: Judge
) -> tuple[Any, Verdict, Fault | None]:
    """The arguments that count, the verdict, and the fault if the call is refused at once."""
    if card is None:
        return call.args, Verdict(kind="deny", reasons=(TEXTS.text(trace.agent.language, "no_such_tool"),)), None
    checked = check(call_id, call.tool, call.args)
    if isinstance(checked, Fault):
        return call.args, Verdict(kind="deny", reasons=(checked.message,)), checked
    verdict = judge(call_id, call if checked is call.args else Call(tool=call.tool, args=checked), card)
    if verdict.kind == "deny":
        return checked, verdict, denied_observation(trace.agent.language, call_id, verdict.reasons).error
    return checked, verdict, None


def denied_observation(language: str, call_id: str, reasons: Sequence[str]) -> Observed:
    """The observation of a call that the policy denied."""
    text = TEXTS.text(language, "reason_separator").join(reasons)
    message = TEXTS.text(language, "denied", reasons=text.rstrip(".。"))
    return failed_observation(call_id, Fault(code="denied", message=message))


def judged_again(policy: Policy, call: ActionRequested, args: Any, card: ToolCard, verdict: Verdict) -> JudgedAgain:
    """The fact of an open call that was judged by another card than before, with the arguments that fit it."""
    return JudgedAgain(
        call_id=call.call_id,
        args=args,
        tier=card.tier,
        verdict=verdict.kind,
        digest=call_digest(call.tool, args),
        reasons=verdict.reasons,
        rule=verdict.rule,
        policy="" if verdict.kind == "allow" else policy.version,
        sources=verdict.sources,
        reason_codes=verdict.reason_codes,
        replaces=verdict.replaces,
    )


def trace_before(trace: Trace, call_id: str) -> Trace:
    """The run as it was when it requested a call, with its cards and policy of now: where the call is judged again."""
    seq = next(e.seq for e in trace.events if isinstance(e.fact, ActionRequested) and e.fact.call_id == call_id)
    before = Trace(trace.run_id, trace.events[:seq])
    known = {card.name: card for card in before.agent.tools}
    cards = tuple(card for card in trace.agent.tools if card != known.get(card.name))
    policy = None if trace.agent.policy == before.agent.policy else trace.agent.policy
    before.add(Resumed(approved_tiers=trace.approved_tiers, cards=cards, new_policy=policy), trace.events[seq].at)
    return before


def _action_requested(
    policy: Policy, step: int, call_id: str, call: Call, args: Any, card: ToolCard | None, verdict: Verdict
) -> ActionRequested:
    return new_action_requested(
        step=step,
        call_id=call_id,
        tool=call.tool,
        args=args,
        tier=card.tier if card else None,
        verdict=verdict.kind,
        digest=call_digest(call.tool, args),
        reasons=verdict.reasons,
        ref=call.ref,
        rule=verdict.rule,
        policy="" if verdict.kind == "allow" else policy.version,
        sources=verdict.sources,
        written=call.args if _has_filled_handles(policy, call) else None,
        reason_codes=verdict.reason_codes,
        replaces=verdict.replaces,
    )


def _has_filled_handles(policy: Policy, call: Call) -> bool:
    """Whether a call contains handles for values that the model has not seen. The reader takes handles as they are."""
    return policy.observations == "handles" and call.tool != READER and contains_handle(call.args)


def _unknown_tool_fault(trace: Trace, name: str, *, offered: bool) -> Fault:
    language = trace.agent.language
    known = [card.name for card in listed_cards(trace.agent.tools)] if offered else []
    names = ", ".join(known[:20]) + (" …" if len(known) > 20 else "")
    return Fault(
        code="unknown_tool",
        message=TEXTS.text(language, "unknown_tool", name=name[:80]),
        hint=TEXTS.text(language, "known_tools", names=names) if known else TEXTS.text(language, "no_tools"),
    )
