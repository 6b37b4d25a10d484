"""What allows calls before they are made: a person's "always", and the reply about the task. Pure.

A person who says "always" looked at one call, so more calls of the tool are covered that act on exactly the same and
are no larger: every value is the same by typed equality, and the numbers of an argument, taken together, are at most
those that were shown. Only what is mere content is not covered by looking at it once; `describe_grant` says all that.

The reply about the task comes from a model, so it is bounded by what it was asked about: it can only choose among the
calls that the words of the task allow. Whether it was read from a hijacked model then matters little.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, call_digest
from taoloop.core.events import ActionRequested, Source
from taoloop.core.text import lazy_pattern
from taoloop.policy.quantities import amount_of, decimal_of
from taoloop.policy.targets import is_target_role, leaves
from taoloop.policy.texts import TEXTS
from taoloop.policy.value_match import has_invisible, value_key

Values = Sequence[tuple[str, Any]]
"""The plain values of a call, each with its path (`provenance.leaves`)."""

_POSITION = lazy_pattern(r"\[\d+\]")
_PLAIN_NUMBER = lazy_pattern(r"[-+]?\d{1,30}(?:\.\d{1,30})?")
_TRUSTED_BADGES = frozenset({"YOURS", "LOOKED UP"})

Quantity = tuple[str, Decimal]
"""A number and its unit: the code of a currency, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Further calls of one tool that a person allowed by looking at one."""

    exact: frozenset[tuple[str, Any]]
    """The targets and all other values that stay the same, each with its path."""

    limits: Mapping[str, Quantity]
    """By path, without positions in lists, the sum of the numbers there: the most that a further call may have."""

    paths: frozenset[str]
    """Where the call had its values, without positions: another argument, or key in an object, may say anything."""

    has_links: bool
    """Whether its content had links that no trusted text contains."""

    def covers(self, values: Values, sources: Iterable[Source]) -> bool:
        """Whether a further call is allowed. `values` are its plain values by path, `sources` where they came from."""
        other = grant_of(values, sources)
        return (
            other.exact == self.exact
            and other.paths <= self.paths
            and other.has_links <= self.has_links
            and other.limits.keys() == self.limits.keys()
            and all(_is_within(sum_, self.limits[path]) for path, sum_ in other.limits.items())
        )


def grant_of(values: Values, sources: Iterable[Source]) -> Grant:
    """What "always" allows beyond a call with these plain values by path, which came from `sources`."""
    parts = [(source, value) for source, value in _parts(values, sources) if source.role != "minor"]
    exact, limits = set[tuple[str, Any]](), dict[str, Quantity]()
    for source, value in parts:
        path, quantity = _POSITION.sub("", source.arg), _quantity(source, value)
        unit, sum_ = limits.get(path, quantity or ("", Decimal()))
        if quantity is None or quantity[0] != unit or quantity[1] * sum_ < 0:  # of different kinds
            if source.role != "content":
                exact.add((source.arg, value_key(value)))
        else:
            limits[path] = unit, quantity[1] + (sum_ if path in limits else 0)
    return Grant(
        exact=frozenset(exact),
        limits=limits,
        paths=frozenset(_POSITION.sub("", source.arg) for source, _ in parts),
        has_links=any(source.badge == "LINKS" for source, _ in parts),
    )


def _quantity(source: Source, value: Any) -> Quantity | None:
    """The number that a value is, if it is no target: with a currency, where it has one."""
    if is_target_role(source.role) or isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        number = decimal_of(value)
        return None if number is None else ("", number)
    text = unicodedata.normalize("NFKC", str(value)).strip()
    if source.role == "content" or has_invisible(text):
        return None
    if _PLAIN_NUMBER.fullmatch(text):
        return "", Decimal(text)
    amount = amount_of(text)
    return None if amount is None else (amount[1], amount[0])


def _is_within(sum_: Quantity, limit: Quantity) -> bool:
    """Whether a number is between 0 and a limit, in the same unit."""
    return sum_[0] == limit[0] and sum_[1] * limit[1] >= 0 and abs(sum_[1]) <= abs(limit[1])


def target_provenance(values: Values, sources: Iterable[Source]) -> frozenset[str]:
    """From where the targets of a call came; calls that differ in it must not be answered by one word."""
    badges = {source.badge for source, _ in _parts(values, sources) if is_target_role(source.role)}
    return frozenset("YOURS" if badge in _TRUSTED_BADGES else badge for badge in badges)


def describe_grant(language: str, tool: str, values: Values, sources: Iterable[Source]) -> str:
    """What "always" allows beyond this call, in words for the person who is asked."""
    parts, grant = _parts(values, sources), grant_of(values, sources)
    kept = [
        f"{path} = {json.dumps(value, ensure_ascii=False)}" for path, value in values if _is_kept(grant, path, value)
    ]
    text = TEXTS.text(language, "grant_exact" if kept else "grant_bare", tool=tool, values=_joined(language, kept))
    if grant.limits:
        limits = (" ".join(filter(None, (path, f"{sum_:f}", unit))) for path, (unit, sum_) in grant.limits.items())
        text += TEXTS.text(language, "grant_limits", limits=_joined(language, limits))
    if contents := {_root(source.arg) for source, _ in parts if source.role == "content"} - grant.limits.keys():
        text += TEXTS.text(language, "grant_unchecked", names=_joined(language, contents))
    return text + TEXTS.text(language, "grant_links" if grant.has_links else "grant_rest")


def _is_kept(grant: Grant, path: str, value: Any) -> bool:
    return not _is_empty(value) and (path, value_key(value)) in grant.exact


def _parts(values: Values, sources: Iterable[Source]) -> list[tuple[Source, Any]]:
    """Each value that names something, with its source; one without counts as a target that nobody knows."""
    known = {source.arg: source for source in sources}
    if len({path for path, _ in values}) < len(values):
        known = {}  # two values at one path: a source may be that of the other
    return [
        (known.get(path) or Source(arg=path, role="target", badge="UNKNOWN"), value)
        for path, value in values
        if not _is_empty(value)
    ]


def _is_empty(value: Any) -> bool:
    return value is None or value == ""


def _root(path: str) -> str:
    """The argument that a path begins with."""
    return path.partition(".")[0].partition("[")[0]


def _joined(language: str, names: Iterable[str]) -> str:
    return TEXTS.text(language, "separator").join(sorted(names))


# Calls that the reply about the task fixed

_UNPLACED_ROLES = frozenset({"content", "minor"})


class FixedCalls:
    """The calls of the last `pinned` event. Empty without one."""

    def __init__(self, calls: Iterable[Call] = (), *, passes: Callable[[Call], bool] = lambda _: False) -> None:
        fixed = [call for call in calls if isinstance(call.args, Mapping)]
        passing = [call for call in fixed if _is_whole(call) and passes(call)]
        self._passing = {call_digest(call.tool, call.args): call.tool for call in passing}
        self._args: dict[str, list[Mapping[str, Any]]] = {}
        for call in fixed:
            self._args.setdefault(call.tool, []).append(call.args)

    def has(self, digest: str) -> bool:
        """Whether exactly this call was fixed, and may pass.

        How often the reply lists it says nothing: the second such call is a repetition like any other.
        """
        return digest in self._passing

    def forget(self, tools: Collection[str]) -> None:
        """Let no fixed call of these tools pass: they have changed."""
        self._passing = {digest: tool for digest, tool in self._passing.items() if tool not in tools}

    def misplaced(self, card: ToolCard, args: Mapping[str, Any]) -> frozenset[str]:
        """The arguments of a call whose values the calls that were fixed for its tool put elsewhere, or do not have.

        Empty if no call of the tool was fixed, or if one of them fits: each value that it gives is the call's, and each
        that it leaves open (None, or absent) is none of those that it gives. What is only content is not compared.
        """
        misfits = [_misfits(card, fixed, args) for fixed in self._args.get(card.name, ())]
        return min(misfits, key=len, default=frozenset())


def _is_whole(call: Call) -> bool:
    """Whether a call leaves nothing open."""
    return None not in call.args.values()


def _misfits(card: ToolCard, fixed: Mapping[str, Any], args: Mapping[str, Any]) -> frozenset[str]:
    placed = {name: value for name, value in fixed.items() if value is not None and _is_placed(card, name)}
    return frozenset(
        name
        for name, value in args.items()
        if _is_placed(card, name) and (placed[name] != value if name in placed else value in placed.values())
    )


def _is_placed(card: ToolCard, name: str) -> bool:
    return card.role(name) not in _UNPLACED_ROLES


def grant_given(requested: ActionRequested, edited: Any) -> Grant:
    """What "always" allows beyond a call; a value that the person put there is theirs."""
    if edited is None:
        return grant_of(list(leaves(requested.args)), requested.sources)
    return grant_of(list(leaves(edited)), edited_sources(requested, edited))


def edited_sources(requested: ActionRequested, edited: Any) -> tuple[Source, ...]:
    """Where the arguments of a call came from once a person has edited them: what they changed is theirs."""
    before = dict(leaves(requested.args))
    changed = {path for path, value in leaves(edited) if before.get(path) != value}
    return tuple(replace(source, badge="YOURS") if source.arg in changed else source for source in requested.sources)
