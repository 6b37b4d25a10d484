"""A policy as the text of a policy file: what a person reviews, and `load_policy` reads back.

Each rule is a block with its comment before it. Values are flow YAML, which fits on one line and contains JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from taoloop.config.document import translate
from taoloop.core.policy import Policy, Rule
from taoloop.core.text import join_sentences
from taoloop.policy.review.rule_suggestion import RuleSuggestion, WithheldSuggestion
from taoloop.policy.review.unmet_conditions import UnmetRule
from taoloop.translation import mark

_PLAIN = re.compile(r"[A-Za-z_][\w.@/-]*")
_NOT_PRINTED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What YAML does not take as it is (YAML 1.2, section 5.1), beyond what JSON escapes."""
_NO_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""What a YAML reader may take for another value than the text."""


def rule_text(rule: Rule) -> str:
    """A rule on one line, as flow YAML."""
    return flow_text(_changed_fields(rule))


def policy_text(policy: Policy, comments: Mapping[int, Sequence[str]] | None = None) -> str:
    """A policy file.

    Args:
        policy: What the file says; fields that have their default are left out.
        comments: For the index of a rule, the lines of the comment before it.
    """
    plain = _changed_fields(policy)
    rules = plain.pop("rules", ())
    lines = [f"profile: {policy.profile}"]
    lines += [f"{name}: {flow_text(value)}" for name, value in plain.items() if name != "profile"]
    if rules:
        lines.append("rules:")
    for index, rule in enumerate(rules):
        lines += [f"  # {' '.join(line.split())}" for line in (comments or {}).get(index, ())]
        values = [f"{name}: {flow_text(value)}" for name, value in _changed_fields(rule).items()]
        lines += [f"  {'- ' if number == 0 else '  '}{value}" for number, value in enumerate(values)]
    return "\n".join(lines) + "\n"


def flow_text(value: Any) -> str:
    """A JSON value as flow YAML on one line; texts are quoted where they need it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow_text(str(name))}: {flow_text(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow_text, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.casefold() not in _NO_TEXT:
        return value
    return _NOT_PRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


_UNMET = mark("rules[{index}] {title} requires {name}: {expected}; here: {value}")
_UNMET_WITHOUT_VALUE = mark(
    {
        "after": "rules[{index}] {title} requires {name}: {expected}; no such call came before",
        "calls_over": "rules[{index}] {title} requires {name}: {expected}; so many calls were not made",
    }
)


def unmet_texts(rule: UnmetRule, language: str) -> list[str]:
    """Why a rule did not apply to a call: a line for each of its conditions that did not hold."""
    return [
        translate(
            _UNMET if condition.value is not None else _UNMET_WITHOUT_VALUE.get(condition.name, _UNMET),
            language,
            index=rule.index,
            title=rule.rule.title,
            name=condition.name,
            expected=flow_text(condition.expected),
            value=translate("nothing", language) if condition.value is None else flow_text(condition.value),
        )
        for condition in rule.conditions
    ]


_APPROVED = mark("{n} approved call in {runs}, by {people}.|{n} approved calls in {runs}, by {people}.")
_WITHHELD = mark(
    {
        "always_asks": "No rule is suggested for {tool}: its card requires a person's approval of every call.",
        "refused_too": "No rule is suggested for {tool}: it would also allow what was refused or still waits "
        "({calls}).",
    }
)
_SHOWN = 10


def suggestion_comment(suggestion: RuleSuggestion, language: str) -> str:
    """What a suggested rule rests on and what it leaves open, in one line for the file of the policy."""
    runs, people = ", ".join(suggestion.runs), ", ".join(suggestion.people)
    comment = translate(_APPROVED, language, n=suggestion.approvals, runs=runs, people=people)
    if not suggestion.open_arguments:
        return comment
    names = ", ".join(suggestion.open_arguments)
    return join_sentences(comment, translate("Any value is allowed for: {names}.", language, names=names))


def withheld_text(withheld: WithheldSuggestion, language: str) -> str:
    """Why no rule is suggested for a tool."""
    calls = ", ".join(withheld.calls[:_SHOWN])
    return translate(_WITHHELD[withheld.reason], language, tool=withheld.tool, calls=calls)


def _changed_fields(value: Rule | Policy) -> dict[str, Any]:
    """The fields that do not have their default, in the order of a file: the name first, the verdict last."""
    changed = {}
    for field in fields(value):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if (actual := getattr(value, field.name)) != default:
            changed[field.name] = actual
    order = {"name": -2, "tool": -1, "reason": 1, "verdict": 2}
    return dict(sorted(changed.items(), key=lambda item: order.get(item[0], 0)))
