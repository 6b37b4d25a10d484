"""The operator's own rules: which of them matches a call, and what has been used of its budget. Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import PlanStep
from taoloop.core.events import ActionRequested, ApprovalGiven, ApprovalRefused, Event, RunStarted
from taoloop.core.handles import schema_signature
from taoloop.core.policy import Policy, Rule, origins_in
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.core.value_origins import CallOrigin, has_field, is_field_path, parse_path
from taoloop.errors import PolicyError
from taoloop.policy.foreseen_arguments import declared_arguments, foreseen_names, unforeseen_names
from taoloop.policy.judged_call import JudgedCall, exact_number, values_in
from taoloop.policy.targets import first_name, leaves
from taoloop.policy.texts import TEXTS
from taoloop.policy.value_match import ascii_host, has_invisible, host_of, strip_invisible

_MAX_MATCHED_CHARS = 4_096
_PATH_NAME = lazy_pattern(
    r"(?:\A|_)(?:paths?|files?|filenames?|file_names?|filepaths?|folders?|dirs?|directory|directories|cwd|src|dst|dest"
    r"|source|destination)\Z",
    re.IGNORECASE,
)
_SEPARATOR = lazy_pattern(r"[/\\]")
_PARAMETER = lazy_pattern(r"[;:?#\x00]")  # which some programs leave out of a name, with what follows
_PERCENT_CODES = lazy_pattern(r"(?:%[0-9a-f]{2})+", re.IGNORECASE)
_UNREADABLE = lazy_pattern(r"%(?:u[0-9a-f]{4}|[0-9a-f]{2})|\ufffd", re.IGNORECASE)  # in another code, or too often
_MAX_ENCODINGS = 4
_ADDRESSES = lazy_pattern(r"[\s,;<>]+")  # what stands between mail addresses
_CAMEL_CASE = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")


class Budgets:
    """What the calls of a run have used of each rule that counts. A refused call gives its share back.

    The steps of a plan are runs of their own, and use of it together.
    """

    def __init__(self, policy: Policy, cards: Mapping[str, ToolCard]) -> None:
        self._rules = [rule for rule in policy.rules if rule.calls_over is not None or rule.total_over]
        self._cards = cards
        self._calls: dict[int, int] = {}
        self._totals: dict[tuple[int, str], Fraction] = {}
        self._unbounded: dict[tuple[int, str], int] = {}  # calls whose amount is no number
        self._counted: dict[str, tuple[ActionRequested, Any]] = {}

    def fold(self, event: Event) -> None:
        """Process the next event."""
        match event.fact:
            case RunStarted(plan_step=PlanStep(earlier=earlier)):
                for call in earlier:
                    self._count(call.tool, call.args, 1)
            case ActionRequested() as fact if fact.verdict != "deny":
                self._counted[fact.call_id] = fact, fact.args
                self._count(fact.tool, fact.args, 1)
            case ApprovalRefused(call_id=call_id) if call_id in self._counted:
                fact, args = self._counted.pop(call_id)
                self._count(fact.tool, args, -1)
            case ApprovalGiven(call_id=call_id, args=edited) if edited is not None and call_id in self._counted:
                fact, args = self._counted[call_id]
                self._count(fact.tool, args, -1)
                self._count(fact.tool, edited, 1)
                self._counted[call_id] = fact, edited
            case _:
                pass

    def _count(self, tool: str, args: Any, delta: int) -> None:
        card = self._cards.get(tool)
        for index, rule in enumerate(self._rules):
            if card is not None and rule_matches(rule, card, args, None):
                self._calls[index] = self._calls.get(index, 0) + delta
                for path in rule.total_over:
                    key, amount = (index, path), amount_at(args, path)
                    if math.isinf(amount):
                        self._unbounded[key] = self._unbounded.get(key, 0) + delta
                    else:
                        self._totals[key] = self._totals.get(key, Fraction()) + delta * _exact(amount)

    def exceeded(self, rule: Rule, args: Any) -> bool:
        """Whether this call would exceed what the rule allows; True for a rule that counts nothing."""
        if rule.calls_over is None and not rule.total_over:
            return True
        number = next(index for index, candidate in enumerate(self._rules) if candidate is rule or candidate == rule)
        if rule.calls_over is not None and self._calls.get(number, 0) >= rule.calls_over:
            return True
        return any(self._is_over(number, path, amount_at(args, path), most) for path, most in rule.total_over.items())

    def _is_over(self, index: int, path: str, amount: float, most: float) -> bool:
        if math.isinf(amount) or self._unbounded.get((index, path), 0) > 0:
            return True
        return self._totals.get((index, path), Fraction()) + _exact(amount) > _exact(most)


def _exact(amount: float) -> Fraction:
    """A number as it is written, so that three times 0.1 is 0.3."""
    return Fraction(repr(float(amount)))


def deciding_rule(trace: Trace, policy: Policy, card: ToolCard, args: Any, *, filled: bool = False) -> Rule | None:
    """The first rule whose conditions all hold for a call; None if the profile's table decides.

    `filled`: values came in by handles, so the call counts as tainted even if the model has seen nothing untrusted.
    """
    call = JudgedCall(trace, card, args, filled=filled)
    for rule in policy.rules:
        if not rule_matches(rule, card, args, call):
            continue
        counts = rule.calls_over is not None or rule.total_over
        if counts and not _budgets(trace, policy).exceeded(rule, args):
            continue
        return rule
    return None


def _budgets(trace: Trace, policy: Policy) -> Budgets:
    cards = {card.name: card for card in trace.agent.tools}
    return trace.view(f"budgets/{policy.version}", lambda: Budgets(policy, cards))


def rule_matches(rule: Rule, card: ToolCard, args: Any, call: JudgedCall | None) -> bool:
    """Whether the conditions of a rule hold for a call, apart from its budget; None: any run may be the one around it.

    The conditions that look at the run come last: most calls are decided without.
    """
    strict = rule.verdict == "allow"
    return (
        fnmatchcase(card.name, rule.tool)
        and (rule.tier is None or rule.tier == (card.tier or "destructive"))
        and (rule.egress is None or rule.egress == card.sends_out(args))
        and (rule.tainted is None or call is None or rule.tainted == call.tainted)
        and all(_passes_at(args, path, test, strict=strict) for path, test in rule.args.items())
        and (not rule.host or _host_fits(rule.host, hosts_in(card, args), strict=strict))
        and (not rule.path or _path_fits(rule.path, paths_in(args), strict=strict))
        and not (strict and (rule.args or rule.host or rule.path or rule.total_over) and _has_undeclared(card, args))
        and (call is None or _fits_run(rule, card, args, call, strict=strict))
    )


def _has_undeclared(card: ToolCard, args: Any) -> bool:
    """Whether a call has an argument, or a name within one, that the tool does not declare."""
    is_object = isinstance(args, Mapping)
    return not is_object or len(declared_arguments(card, args)) < len(args) or any(unforeseen_names(card, args))


def _fits_run(rule: Rule, card: ToolCard, args: Any, call: JudgedCall, *, strict: bool) -> bool:
    """Whether the conditions hold that look at the run around a call."""
    return (
        (not rule.user or call.is_for_user(rule.user, strict=strict))
        and (rule.repeated is None or rule.repeated == call.is_repeated)
        and (rule.requested is None or rule.requested == call.is_requested)
        and all(call.follows(earlier, strict=strict) for earlier in rule.after)
        and all(
            (all if strict else any)(
                _comes_from(call, card, first_name(path), value, test, strict=strict)
                for _, value in values_in(args, path)
            )
            for path, test in rule.args.items()
            if isinstance(test, Mapping)
        )
    )


def _comes_from(call: JudgedCall, card: ToolCard, name: str, value: Any, test: Any, *, strict: bool) -> bool:
    """Whether a value, with every part of it, is from the origins that a test names, and within their bounds."""
    parts = [part for _, part in leaves(value)]
    fits = all if strict else any
    if "from" in test:
        if strict and (not parts or any(unforeseen_names(card, {name: value}))):
            return False
        origins = origins_in(test, "from")
        if not fits(call.match_origin(part, origins, strict=strict) is not None for part in parts):
            return False
    for bound, is_upper in (("max_of", True), ("min_of", False)):
        if bound in test:
            limits = call.bounds(test[bound], strict=strict)
            if strict and (limits is None or isinstance(value, Mapping | list | tuple)):
                return False
            if limits is None:
                continue
            if not parts or not fits(_is_within(part, limits, is_upper=is_upper, strict=strict) for part in parts):
                return False
    return True


def _is_within(value: Any, limits: list[Fraction], *, is_upper: bool, strict: bool) -> bool:
    """Whether a number is within a bound: if that is not one number, to allow, within each."""
    bound = (min if is_upper == strict else max)(limits)
    number = None if strict and isinstance(value, str) else exact_number(value)
    if number is None:
        return not strict
    return number <= bound if is_upper else number >= bound


def reject_unmatchable_rules(policy: Policy, cards: Mapping[str, ToolCard]) -> None:
    """Refuse a rule that no call of these tools could meet, and trust in tools that are not there.

    Raises:
        PolicyError: names the rule and what is missing.
    """
    values: dict[str, object]
    _require_trusted_tools(policy, cards)
    names = _names_of(cards)
    for rule in policy.rules:
        matching = [card for name, card in cards.items() if fnmatchcase(name, rule.tool)]
        if not matching:
            values = {"rule": rule.title, "tool": rule.tool, "tools": names}
            raise TEXTS.run_error(PolicyError, "no_tool_of_rule", values)
        if rule.tier is not None and all((card.tier or "destructive") != rule.tier for card in matching):
            tiers = ", ".join(f"{card.name} {card.tier}" for card in matching[:8])
            values = {"rule": rule.title, "tier": rule.tier, "tiers": tiers}
            raise TEXTS.run_error(PolicyError, "no_tier_of_rule", values)
        if rule.egress is not None and all(isinstance(c.egress, bool) and c.egress != rule.egress for c in matching):
            values = {"rule": rule.title, "egress": rule.egress, "tools": ", ".join(card.name for card in matching[:8])}
            raise TEXTS.run_error(PolicyError, "no_egress_of_rule", values)
        if rule.path and not any(not c.parameters or any(map(is_pathlike, foreseen_names(c))) for c in matching):
            raise _no_argument("no_path_of_rule", rule, matching[0])
        for path in (*rule.args, *rule.total_over):
            _require_argument(rule, matching, first_name(path))
        for origin in rule.origins:
            _require_origin(rule, origin, cards, matching, names)


def _names_of(cards: Mapping[str, ToolCard]) -> str:
    return ", ".join(cards) or TEXTS.run_text("no_tools")


def _require_trusted_tools(policy: Policy, cards: Mapping[str, ToolCard]) -> None:
    for field, patterns in (("trusted_tools", policy.trusted_tools), ("trusted_fields", tuple(policy.trusted_fields))):
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in cards):
                values = {"field": field, "pattern": pattern, "tools": _names_of(cards)}
                raise TEXTS.run_error(PolicyError, "no_trusted_tool", values)
    for pattern, kinds in policy.trusted_fields.items():
        for card in (card for name, card in cards.items() if fnmatchcase(name, pattern)):
            for path in filter(is_field_path, kinds):
                _require_field(card, parse_path(path), path, "trusted_fields")


def _require_argument(rule: Rule, matching: list[ToolCard], name: str) -> None:
    if not any(name in card.parameters or not card.parameters for card in matching):
        raise _no_argument("no_argument_of_rule", rule, matching[0], argument=name)


def _require_origin(
    rule: Rule, origin: CallOrigin, cards: Mapping[str, ToolCard], matching: list[ToolCard], names: str
) -> None:
    """Refuse an origin with a tool, an argument or a field that is not there."""
    card = cards.get(origin.tool)
    if card is None:
        values = {"rule": rule.title, "tool": origin.tool, "tools": names}
        raise TEXTS.run_error(PolicyError, "no_tool_of_rule", values)
    for name, other in origin.same:
        if card.parameters and first_name(name) not in card.parameters:
            raise _no_argument("no_argument_of_origin", rule, card, argument=first_name(name))
        if isinstance(other, str):
            _require_argument(rule, matching, first_name(other))
    if origin.text.startswith("tool:"):
        _require_field(card, origin.path, origin.text, rule.title)


def _require_field(card: ToolCard, path: tuple[str, ...], text: str, owner: str) -> None:
    """Refuse a field that the output schema of a tool shows not to be there."""
    if card.output_schema is not None and not has_field(card.output_schema, path):
        values = {"owner": owner, "tool": card.name, "field": text, "form": schema_signature(card.output_schema)}
        raise TEXTS.run_error(PolicyError, "no_field", values)


def _no_argument(name: str, rule: Rule, card: ToolCard, **values: str) -> PolicyError:
    arguments = ", ".join(card.parameters) or TEXTS.run_text("no_arguments")
    values |= {"rule": rule.title, "tool": card.name, "arguments": arguments}
    return TEXTS.run_error(PolicyError, name, values)


def amount_at(args: Any, path: str) -> float:
    """The absolute value of the number at a path, after `[]` the sum of them; 0 if the argument is missing.

    Anything that is not a number counts as infinite, so that a sum over it is always too high.
    """
    return math.fsum(_amount_of(value) for _, value in values_in(args, path))


def _amount_of(value: Any) -> float:
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.inf
    try:
        number = abs(float(value))
    except (ValueError, OverflowError):
        return math.inf
    return math.inf if math.isnan(number) else number


def _passes_at(args: Any, path: str, test: Any, *, strict: bool) -> bool:
    """Whether the value at a path meets a test; after `[]` every member does, of which there must be one."""
    values = [value for _, value in values_in(args, path)]
    if test is None:
        return all(value is None for value in values)
    return bool(values) and (all if strict else any)(_passes_test(value, test, strict=strict) for value in values)


def _passes_test(value: Any, test: Any, *, strict: bool) -> bool:
    """Whether a value meets a test. `strict` is how a rule that allows reads it: exactly, and every part of a list.

    A rule that asks or denies considers what the value may be understood as, and holds if that is unclear.
    """
    if test is None:
        return value is None
    if isinstance(value, list | tuple):
        if strict and isinstance(test, Mapping) and not test.keys().isdisjoint(("min", "max")):
            return False  # what all of them come to is not known
        return bool(value) and (all if strict else any)(_passes_test(part, test, strict=strict) for part in value)
    if value is None or (strict and isinstance(value, str) and has_invisible(value)):
        return False
    if not isinstance(test, Mapping):
        return _matches_plainly(value, test, strict=strict)
    if "in" in test and not any(_equals_test(value, option, strict=strict) for option in test["in"]):
        return False
    if ("min" in test or "max" in test) and not _in_range(value, test, strict=strict):
        return False
    return "matches" not in test or _matches(value, test["matches"], strict=strict)


def _forms(value: Any) -> tuple[str, str]:
    """A value as it is, and as a lax reader takes it: without invisible characters, in its compatibility form."""
    text = value if isinstance(value, str) else _plain_text(value)
    return text, text if text.isascii() else unicodedata.normalize("NFKC", strip_invisible(text))


def _plain_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _matches_plainly(value: Any, test: Any, *, strict: bool) -> bool:
    if isinstance(test, str):
        if strict:
            return isinstance(value, str) and fnmatchcase(value, test) and (_is_one_address(value) or "@" not in test)
        parts = [part for form in _forms(value) for part in (form, *(_ADDRESSES.split(form) if "@" in test else ()))]
        return any(fnmatchcase(part.casefold(), test.casefold()) for part in parts)
    return _equals_test(value, test, strict=strict)


def _is_one_address(value: str) -> bool:
    return value.count("@") == len(_ADDRESSES.split(value)) == 1


def _equals_test(value: Any, expected: Any, *, strict: bool) -> bool:
    if isinstance(value, bool) == isinstance(expected, bool) and value == expected:
        return True
    return not strict and any(form.casefold() == _plain_text(expected).casefold() for form in _forms(value))


def _in_range(value: Any, test: Mapping[str, Any], *, strict: bool) -> bool:
    low, high = test.get("min", -math.inf), test.get("max", math.inf)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(low <= value <= high) or (not strict and value != value)  # NaN is in no range
    if strict:
        return False
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return True
    return math.isnan(number) or low <= number <= high


def _matches(value: Any, pattern: str, *, strict: bool) -> bool:
    if strict:
        short = isinstance(value, str) and len(value) <= _MAX_MATCHED_CHARS
        return short and re.fullmatch(pattern, value) is not None
    return any(
        len(form) > _MAX_MATCHED_CHARS or re.fullmatch(pattern, form, re.DOTALL) is not None for form in _forms(value)
    )


def hosts_in(card: ToolCard, args: Any) -> list[str]:
    """The hosts of all addresses among the arguments; an empty text for a host that is disputed."""
    hosts = []
    for path, value in leaves(args):
        if not isinstance(value, str) or not value.strip():
            continue
        host = host_of(value)
        if host is None and card.is_address(first_name(path)):
            host = host_of("https://" + value.strip().lstrip("/\\")) or ""
        if host is not None:
            hosts.append(host)
    return hosts


def paths_in(args: Any) -> list[str]:
    """The paths among the arguments, by the names of these."""
    return [
        value
        for path, value in leaves(args)
        if isinstance(value, str) and any(is_pathlike(name) for name in re.split(r"[.\[]", path))
    ]


def is_pathlike(name: str) -> bool:
    """Whether an argument takes a path, by its name."""
    return _PATH_NAME.search(_CAMEL_CASE.sub("_", name)) is not None


def _host_fits(pattern: str, hosts: list[str], *, strict: bool) -> bool:
    pattern = ascii_host(pattern)
    if strict:
        return bool(hosts) and all(host != "" and fnmatchcase(host, pattern) for host in hosts)
    return any(host == "" or fnmatchcase(host, pattern) for host in hosts)


def _path_fits(pattern: str, paths: list[str], *, strict: bool) -> bool:
    """Whether paths fit a pattern: to allow, there is one and all of them do. A path with `..` cannot be judged."""
    if strict:
        return bool(paths) and all(
            fnmatchcase(path, pattern) and not _climbs_up(path) and _is_clear(path, pattern in ("*", path))
            for path in paths
        )
    plain = _normalise_path(pattern)
    return any(
        _climbs_up(path)
        or fnmatchcase(path, pattern)
        or fnmatchcase(_normalise_path(strip_invisible(_decoded(path))), plain)
        for path in paths
    )


def _is_clear(path: str, any_folder: bool) -> bool:
    """Whether all of a path can be seen, and it names something: not a folder around it, unless it may be any."""
    text = _decoded(path)
    parts = _SEPARATOR.split(text)
    return text.isprintable() and (any_folder or all(part.strip(" .") for part in parts[1:] or parts))


def _climbs_up(path: str) -> bool:
    """Whether a path leads out of a folder on its way, as some program may read it: `..`, `%2e%2e`, `..;x`."""
    text = strip_invisible(_decoded(path))
    return _UNREADABLE.search(text) is not None or any(map(_is_parent, _SEPARATOR.split(text)))


def _is_parent(part: str) -> bool:
    name = _PARAMETER.split(part, maxsplit=1)[0]
    return name.count(".") > 1 and not name.replace(".", "").strip()


def _decoded(path: str) -> str:
    """A path in its compatibility form and without its percent codes, however often it was encoded."""
    for _ in range(_MAX_ENCODINGS):
        if "%" in path or not path.isascii():
            path = unicodedata.normalize("NFKC", _PERCENT_CODES.sub(_decode, path))
    return path


def _decode(codes: re.Match[str]) -> str:
    return bytes.fromhex(codes.group().replace("%", "")).decode(errors="replace")


def _normalise_path(path: str) -> str:
    """A path without steps that lead nowhere, for comparing: `./a//b` is `a/b`."""
    parts = path.casefold().replace("\\", "/").split("/")
    return "/".join(part for index, part in enumerate(parts) if part != "." and (part or index == 0))
