"""The narrowest rules that would have allowed what people approved in stored runs. Pure.

The problem: a policy written from memory is too wide, and one that lists values does not fit the next task. The idea:
a person who approves a call has accepted where its values came from. So each argument gets the narrowest condition that
all approved calls of its kind meet: an origin (`from`), else the approved values themselves; and if the task asked for
each of them, it has to. An argument that was
absent must be absent; only texts that others read (`content`) and arguments on which nothing depends (`minor`) are left
open. The invariant: the suggested policy allows every approved call, and none of these runs' calls that a person or the
policy refused; a rule that would is withdrawn. Tested in tests/policy/review/test_rule_suggestion.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ApprovalGiven, ApprovalRefused
from taoloop.core.policy import Policy, Rule
from taoloop.core.trace import Trace
from taoloop.core.views.steps import TIMEOUT
from taoloop.policy.judged_call import JudgedCall, values_in
from taoloop.policy.profiles import FOREIGN_ROWS
from taoloop.policy.review.observed_origins import observed_origins
from taoloop.policy.review.verdict_changes import ReviewedCall, judged_calls, review_calls
from taoloop.policy.targets import first_name

_NOBODY = "headless"  # the code of the reason for a denial in place of a question


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSuggestion:
    """One suggested rule, and what it rests on."""

    rule: Rule
    """The rule, which allows."""
    approvals: int
    """How many approved calls it covers."""
    runs: tuple[str, ...]
    """The runs of these calls."""
    people: tuple[str, ...]
    """Who approved them."""
    open_arguments: tuple[str, ...]
    """The arguments that may have any value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldSuggestion:
    """A tool for whose approved calls no rule is suggested, and why."""

    tool: str
    """The tool."""
    reason: str
    """`always_asks`: its card requires a person's approval of every call. `refused_too`: the rule would also allow a
    call that a person or the policy refused, or that still waits."""
    calls: tuple[str, ...] = ()
    """The refused calls, as `RUN CALL`."""


@dataclass(frozen=True, slots=True)
class _Approved:
    """An approved call, for each of its arguments the origins that its value has, and whether the task asks for it."""

    run_id: str
    by: str
    card: ToolCard
    args: Mapping[str, Any]
    origins: Mapping[str, tuple[str, ...]]
    is_requested: bool


def suggest_rules(
    traces: Sequence[Trace], policy: Policy
) -> tuple[Policy, tuple[RuleSuggestion, ...], tuple[WithheldSuggestion, ...]]:
    """A policy that allows what people approved in these runs, with its new rules and those that are withheld.

    Args:
        traces: The runs; they are not changed.
        policy: What the rules are added to. They come before its first rule that does not deny, for the first rule
            that matches decides.
    """
    kinds: dict[tuple[str, frozenset[str]], list[_Approved]] = {}
    for trace in traces:
        for approved in _approved_calls(trace):
            kinds.setdefault((approved.card.name, frozenset(approved.args)), []).append(approved)
    allowed_before = frozenset(_newly_allowed(traces, policy))  # whatever is added to it
    suggestions: list[RuleSuggestion] = []
    withheld: list[WithheldSuggestion] = []
    for (tool, _), calls in sorted(kinds.items(), key=lambda item: (item[0][0], sorted(item[0][1]))):
        if calls[0].card.requires_approval:
            withheld.append(WithheldSuggestion(tool=tool, reason="always_asks"))
            continue
        suggestion = _suggestion(calls)
        tried = extend_policy(policy, (suggestion,))
        newly_allowed = _newly_allowed(traces, tried)
        if refused := tuple(call for call in newly_allowed if call not in allowed_before):
            withheld.append(WithheldSuggestion(tool=tool, reason="refused_too", calls=refused))
        else:
            suggestions.append(suggestion)
    return extend_policy(policy, suggestions), tuple(suggestions), tuple(withheld)


def extend_policy(policy: Policy, suggestions: Iterable[RuleSuggestion]) -> Policy:
    """The policy with the suggested rules, after the denials that it begins with."""
    denials = 0
    while denials < len(policy.rules) and policy.rules[denials].verdict == "deny":
        denials += 1
    added = tuple(suggestion.rule for suggestion in suggestions if suggestion.rule not in policy.rules)
    return replace(policy, rules=(*policy.rules[:denials], *added, *policy.rules[denials:]))


def _approved_calls(trace: Trace) -> Iterator[_Approved]:
    for before, requested, card in judged_calls(trace):
        call = trace.calls[requested.call_id]
        if requested.verdict != "ask" or not isinstance(call.approval, ApprovalGiven):
            continue
        args = {name: value for name, value in call.args.items() if value is not None}
        origins = {
            path: tuple(observed_origins(before, card, args, path))
            for name in args
            if card.role(name) not in ("content", "minor")
            for path in _parts_of(args, name)
        }
        is_requested = JudgedCall(before, card, args).is_requested
        yield _Approved(trace.run_id, call.approval.by, card, args, origins, is_requested)


def _parts_of(args: Mapping[str, Any], name: str) -> Iterator[str]:
    """The paths to compare by themselves: those of an object, and of the members of a list of equal objects."""
    value = args[name]
    members = value if isinstance(value, list | tuple) else [value]
    keys = {tuple(sorted(member)) if isinstance(member, Mapping) else () for member in members}
    if len(keys) != 1 or keys == {()}:
        yield name
        return
    yield from (f"{name}{'[]' if members is value else ''}.{key}" for key in keys.pop())


def _newly_allowed(traces: Iterable[Trace], policy: Policy) -> Iterator[str]:
    """The calls that were refused, by a person or the policy, and that the policy would allow."""
    for trace in traces:
        for call in review_calls(trace, policy):
            if call.change == "newly_runs" and _was_refused(call):
                yield f"{trace.run_id} {call.requested.call_id}"


def _was_refused(call: ReviewedCall) -> bool:
    """Whether somebody decided against a call, or still may: not where nobody could be asked, or answered in time."""
    requested = call.requested
    if requested.verdict == "deny":
        return _NOBODY not in requested.reason_codes or requested.rule in FOREIGN_ROWS
    return not (isinstance(call.approval, ApprovalRefused) and call.approval.by == TIMEOUT)


def _suggestion(calls: Sequence[_Approved]) -> RuleSuggestion:
    card = calls[0].card
    names = tuple(dict.fromkeys(name for name in (*card.parameters, *calls[0].args) if name in calls[0].args))
    paths = dict.fromkeys(path for call in calls for path in call.origins)
    tests = {path: _test(path, calls) for name in names for path in paths if first_name(path) == name}
    absent = {name: None for name in card.parameters if name not in names}
    requested = True if all(call.is_requested for call in calls) else None
    rule = Rule(
        name=f"{card.name} as approved", tool=card.name, requested=requested, args=tests | absent, verdict="allow"
    )
    return RuleSuggestion(
        rule=rule,
        approvals=len(calls),
        runs=tuple(dict.fromkeys(call.run_id for call in calls)),
        people=tuple(dict.fromkeys(call.by for call in calls)),
        open_arguments=tuple(name for name in names if name not in map(first_name, tests)),
    )


def _test(path: str, calls: Sequence[_Approved]) -> dict[str, Any]:
    """The narrowest condition that a value meets in all calls: origins if each value has one, else the values."""
    origins = [call.origins.get(path, ()) for call in calls]
    if shared := [origin for origin in origins[0] if all(origin in others for others in origins)]:
        return {"from": [shared[0]]}
    if all(origins):
        return {"from": list(dict.fromkeys(first for first, *_ in origins))}
    values = [member for call in calls for _, value in values_in(call.args, path) for member in _members(value)]
    return {"in": list({json.dumps(value, sort_keys=True): value for value in values}.values())}


def _members(value: Any) -> Iterable[Any]:
    """What a list of options is compared with: every member of a list."""
    return value if isinstance(value, list | tuple) else (value,)
