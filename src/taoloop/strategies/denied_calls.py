"""Calls that were denied because nobody could be asked, and that an answer may rest on: such a run is `blocked`. Pure.

No text is understood here, neither the answer's nor a tool's. A denied call counts unless the run made up for it, or
nothing that a person wrote has to do with it: otherwise an injection could turn a task that was done into one that was
not. Where the task leaves it to another text what is to be done, every call has to do with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taoloop.core.events import ActionRequested, ApprovalRefused, Finished, Resumed
from taoloop.core.policy import Policy
from taoloop.core.texts import end_message
from taoloop.core.trace import Trace
from taoloop.core.views.steps import TIMEOUT, CallView
from taoloop.policy.provenance import sources_of
from taoloop.policy.targets import is_target_role
from taoloop.strategies.evidence_gate import with_evidence

CHILD_BLOCKED = "child_blocked"
"""The code of the error of a call whose own run is blocked."""

_NOBODY = "headless"  # the code of the reason for a denial in place of a question
_HARD = "foreign_destructive"  # the row of the tables that is denied even if a person could be asked
_TAINTED = frozenset({"tainted", "filled", "read_out"})  # reasons that only a run with untrusted text has
_ENDORSED = ("YOURS", "LOOKED UP")


def answered_finish(
    trace: Trace, answer: str, reason: str, citations: tuple[str, ...], *, with_tools: bool = True
) -> Finished:
    """The finish of a run that answered: `blocked` if it may rest on calls that were denied for want of a person.

    The other such calls, which nothing in the task seems to ask for, are named in it as `unasked`: whether the task did
    in other words, only a person can say. Reads are left out of those. Where the agent asks for evidence, the finish
    names what the answer lacks; `with_tools` False: the run had none, so its answer need not cite anything.
    """
    return with_evidence(trace, _finish(trace, answer, reason, citations), with_tools=with_tools)


def _finish(trace: Trace, answer: str, reason: str, citations: tuple[str, ...]) -> Finished:
    denials = _open_denials(trace)
    if not denials:
        return Finished(status="completed", answer=answer, reason=reason, citations=citations)
    hands_over = sources_of(trace).intent.hands_over
    blocking = [call for call in denials if hands_over or not _is_foreign(call)]
    if not blocking:
        unasked = [call for call in denials if call.requested.tier not in ("read", "draft")]
        return Finished(status="completed", answer=answer, reason=reason, citations=citations, unasked=_ids_of(unasked))
    names = ", ".join(f"{call.requested.tool} ({call.requested.call_id})" for call in blocking)
    reason = end_message(trace.agent.language, "blocked", detail=names)
    return Finished(status="blocked", answer=answer, reason=reason, citations=citations, denied=_ids_of(blocking))


def _ids_of(calls: Sequence[CallView]) -> tuple[str, ...]:
    return tuple(call.requested.call_id for call in calls)


def _open_denials(trace: Trace) -> tuple[CallView, ...]:
    """The calls that were denied for want of a person and not made up for, in their order; nearly always none.

    Above `read` and `draft`, a call is made up for by the same call at another time, or by a later one of the tool with
    the same targets; below, by any later call of the tool. What a policy, a rule or a person denied is not among them.
    """
    if not trace.total_errors and not trace.pending:  # every call succeeded
        return ()
    calls, denials = tuple(trace.calls.values()), []
    lacked = [
        (number, call)
        for number, call in enumerate(calls)
        if (call.observed is None or not call.observed.ok) and _lacked_person(call)
    ]
    earlier = _calls_before_replacement(trace) if lacked else frozenset()
    for number, call in lacked:
        if not _is_made_up_for(trace, call, calls, number):
            later = (other for other in calls[number:] if other.requested.call_id not in earlier)
            is_lifted = call.requested.call_id in earlier and any(_succeeded(other, call) for other in later)
            denials += [] if is_lifted else [call]
    return tuple(denials)


def _calls_before_replacement(trace: Trace) -> frozenset[str]:
    """The calls that a policy denied which the operator has replaced since: a later one of the tool makes up for them.

    The model was told that they were denied, and decided again what the task still needs.
    """
    if trace.started is None or trace.agent.policy is trace.started.agent.policy:
        return frozenset()
    requested: set[str] = set()
    earlier: frozenset[str] = frozenset()
    for event in trace.events:
        match event.fact:
            case ActionRequested(call_id=call_id):
                requested.add(call_id)
            case Resumed(new_policy=Policy()):
                earlier = frozenset(requested)
    return earlier


def _succeeded(other: CallView, call: CallView) -> bool:
    return other.requested.tool == call.requested.tool and other.observed is not None and other.observed.ok


def _lacked_person(call: CallView) -> bool:
    """Whether a call without a result was denied for want of a person's answer, here or in its own run."""
    requested, approval, observed = call.requested, call.approval, call.observed
    if requested.verdict == "deny":
        return _NOBODY in requested.reason_codes and requested.rule != _HARD
    if isinstance(approval, ApprovalRefused):
        return approval.by == TIMEOUT
    return observed is not None and observed.error is not None and observed.error.code == CHILD_BLOCKED


def _is_foreign(call: CallView) -> bool:
    """Whether only untrusted text can have led to a call: the task neither asks for its tool nor names its targets."""
    requested = call.requested
    is_read = requested.tier in ("read", "draft")
    if _TAINTED.isdisjoint(requested.reason_codes) or not (is_read or "not_pinned" in requested.reason_codes):
        return False
    relevant = [source for source in requested.sources if source.role != "minor"]
    if not is_read:
        relevant = [source for source in relevant if is_target_role(source.role)]
    return not any(source.badge in _ENDORSED for source in relevant)


def _is_made_up_for(trace: Trace, call: CallView, calls: Sequence[CallView], number: int) -> bool:
    requested = call.requested
    results = [(index, other) for index, other in enumerate(calls) if other.observed is not None and other.observed.ok]
    same_tool = [(index, other) for index, other in results if other.requested.tool == requested.tool]
    later = [other for index, other in same_tool if index > number]
    if requested.tier in ("read", "draft") or requested.verdict == "allow":
        return bool(later)
    if any(other.args == requested.args for _, other in same_tool):
        return True
    aims = _aims(trace, requested.tool, requested.args)
    return bool(aims) and any(_aims(trace, requested.tool, other.args) == aims for other in later)


def _aims(trace: Trace, tool: str, args: Any) -> dict[str, Any]:
    """The arguments of a call that say whom or what it acts on."""
    card = trace.card(tool)
    if card is None or not isinstance(args, dict):
        return {}
    return {name: value for name, value in args.items() if is_target_role(card.role(name)) and value is not None}
