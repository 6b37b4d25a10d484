"""Why a rule did not apply to a recorded call: which of its conditions failed, and with which value. Pure.

Each condition is tried as a rule of its own, with the code that judges calls, so an explanation cannot differ from the
judgement. Tested in tests/policy/review/test_unmet_conditions.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.policy import Policy, Rule
from taoloop.core.trace import Trace
from taoloop.core.value_origins import EACH_MEMBER
from taoloop.policy.foreseen_arguments import declared_arguments
from taoloop.policy.judged_call import JudgedCall, value_at, values_in
from taoloop.policy.rules import deciding_rule, hosts_in, paths_in, rule_matches

UNDECLARED = "declared arguments"
"""The condition of every rule that allows by arguments: the call has no argument that its tool does not declare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetCondition:
    """One condition of a rule that did not hold for a call."""

    name: str
    """The condition, such as `args.amount.max`, `tier` or `after`."""
    expected: Any
    """What the rule requires there, as its file has it."""
    value: Any
    """What the call or its run has there; for `max_of` and `min_of` the value and the numbers of the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetRule:
    """A rule about the tool of a call that did not apply to it."""

    index: int
    """Its position in the policy."""
    rule: Rule
    """The rule."""
    conditions: tuple[UnmetCondition, ...]
    """The conditions that failed. None: each holds alone, and together they do not."""


def unmet_rules(trace: Trace, policy: Policy, card: ToolCard, args: Any, *, filled: bool = False) -> list[UnmetRule]:
    """The rules about a tool that were asked before the one that decided, and that did not apply.

    `trace` is the run as it was before the call; `filled` as in `judge`.
    """
    unmet = []
    deciding = deciding_rule(trace, policy, card, args, filled=filled)
    call = JudgedCall(trace, card, args, filled=filled)
    for index, rule in enumerate(policy.rules):
        if rule is deciding:
            break
        if fnmatchcase(card.name, rule.tool):
            conditions = tuple(_unmet_conditions(rule, card, args, call, trace))
            unmet.append(UnmetRule(index=index, rule=rule, conditions=conditions))
    return unmet


def _unmet_conditions(
    rule: Rule, card: ToolCard, args: Any, call: JudgedCall, trace: Trace
) -> Iterator[UnmetCondition]:
    declared = declared_arguments(card, args) if isinstance(args, Mapping) else args
    unmet = [
        UnmetCondition(name=name, expected=expected, value=value)
        for name, expected, value, fields in _conditions(rule, card, args, call, trace)
        if not rule_matches(Rule(tool=rule.tool, verdict=rule.verdict, **fields), card, declared, call)
    ]
    if not unmet and not rule_matches(rule, card, args, call):
        names = [name for name in args if name not in declared] if isinstance(args, Mapping) else None
        unmet = [UnmetCondition(name=UNDECLARED, expected=list(card.parameters), value=names)]
    yield from unmet
    if not unmet:  # all of it holds, and it counts: what it counts is not used up
        if rule.calls_over is not None:
            yield UnmetCondition(name="calls_over", expected=rule.calls_over, value=None)
        for path, most in rule.total_over.items():
            yield UnmetCondition(name=f"total_over.{path}", expected=most, value=value_at(args, path))


def _conditions(
    rule: Rule, card: ToolCard, args: Any, call: JudgedCall, trace: Trace
) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Each condition with its name, what it expects, what is there, and the fields of a rule that has it alone."""
    started = trace.started
    plain: dict[str, Any] = {
        "tier": card.tier or "destructive",
        "egress": card.sends_out(args),
        "tainted": call.tainted,
        "repeated": call.is_repeated,
        "requested": call.is_requested if rule.requested is not None else None,
        "user": "" if started is None else started.labels.get("user", ""),
        "host": ", ".join(hosts_in(card, args)),
        "path": ", ".join(paths_in(args)),
    }
    for name, value in plain.items():
        expected = getattr(rule, name)
        if expected is not None and expected != "":
            yield name, expected, value, {name: expected}
    for earlier in rule.after:
        yield "after", earlier, None, {"after": (earlier,)}
    for path, test in rule.args.items():
        value = [member for _, member in values_in(args, path)] if EACH_MEMBER in path else value_at(args, path)
        if not isinstance(test, Mapping):
            yield f"args.{path}", test, value, {"args": {path: test}}
            continue
        for name, expected in test.items():
            listed = value
            if name in ("max_of", "min_of"):
                bounds = call.bounds(expected, strict=rule.verdict == "allow")
                listed = {"value": value, "bounds": None if bounds is None else [_number(bound) for bound in bounds]}
            yield f"args.{path}.{name}", expected, listed, {"args": {path: {name: expected}}}


def _number(bound: Fraction) -> int | float:
    return int(bound) if bound.denominator == 1 else float(bound)
