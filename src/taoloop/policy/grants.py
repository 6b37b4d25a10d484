"""What allows calls before they are made: a person's "always", and the reply about the task. Pure.

A person who says "always" looked at one call. If its targets were in trusted text, more calls of the tool are covered
whose targets are, too. If they were not, exactly these targets are covered, by typed equality. What the call says to a
target is not covered by looking at it once: `describe_grant` names what nobody checks any more.

The reply about the task comes from a model, so it is bounded by what it was asked about: it can only choose among the
calls that the words of the task allow. Whether it was read from a hijacked model then matters little.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, call_digest
from taoloop.core.events import Source
from taoloop.core.text import lazy_pattern
from taoloop.policy.targets import is_target_role, means_everything
from taoloop.policy.texts import TEXTS
from taoloop.policy.value_match import value_key

Values = Sequence[tuple[str, Any]]
"""The plain values of a call, each with its path (`provenance.leaves`)."""

_POSITION = lazy_pattern(r"\[\d+\]")
_TRUSTED_BADGES = frozenset({"YOURS", "LOOKED UP"})
_UNTRUSTED_BADGES = frozenset({"FOREIGN", "UNKNOWN", "LINKS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Further calls of one tool that a person allowed by looking at one."""

    target_names: frozenset[str]
    """The arguments that named a target."""

    targets: frozenset[tuple[str, Any]] | None
    """The only targets that are covered, each with its path; None: all that are in trusted text."""

    unchecked_names: frozenset[str]
    """The other arguments whose values were in no trusted text: they may be anything."""

    paths: frozenset[str]
    """Where the call had its values, without the positions in lists: another key in an object may say anything."""

    def covers(self, values: Values, sources: Iterable[Source]) -> bool:
        """Whether a further call is allowed. `values` are its plain values by path, `sources` where they came from."""
        parts = _parts(values, sources)
        if not _unchecked_names(parts) <= self.unchecked_names:
            return False
        if any("." in path and path not in self.paths for path in _paths(parts)):
            return False
        targets = [(source, value) for source, value in parts if is_target_role(source.role)]
        if self.targets is not None:
            return self.targets == _exact_targets(targets)
        names = {_root(source.arg) for source, _ in targets}
        if not self.target_names <= names or any(
            _root(path) in names and means_everything(value) for path, value in values
        ):
            return False  # a target that is missing, empty or a wildcard may mean everything
        return all(source.badge in _TRUSTED_BADGES for source, _ in targets)


def grant_of(values: Values, sources: Iterable[Source]) -> Grant:
    """What "always" allows beyond a call with these plain values by path, which came from `sources`."""
    parts = _parts(values, sources)
    targets = [(source, value) for source, value in parts if is_target_role(source.role)]
    is_trusted = bool(targets) and all(
        source.badge in _TRUSTED_BADGES and not means_everything(value) for source, value in targets
    )
    return Grant(
        target_names=frozenset(_root(source.arg) for source, _ in targets),
        targets=None if is_trusted else _exact_targets(targets),
        unchecked_names=_unchecked_names(parts),
        paths=_paths(parts),
    )


def target_provenance(values: Values, sources: Iterable[Source]) -> frozenset[str]:
    """From where the targets of a call came; calls that differ in it must not be answered by one word."""
    badges = {source.badge for source, _ in _parts(values, sources) if is_target_role(source.role)}
    return frozenset("YOURS" if badge in _TRUSTED_BADGES else badge for badge in badges)


def describe_grant(language: str, tool: str, values: Values, sources: Iterable[Source]) -> str:
    """What "always" allows beyond this call, in words for the person who is asked."""
    parts = _parts(values, sources)
    grant = grant_of(values, sources)
    if grant.targets is None:
        text = TEXTS.text(language, "grant_trusted", tool=tool, names=_joined(language, grant.target_names))
    elif grant.targets:
        targets = {
            source.arg: json.dumps(value, ensure_ascii=False) for source, value in parts if is_target_role(source.role)
        }
        listed = _joined(language, (f"{path} = {value}" for path, value in targets.items()))
        text = TEXTS.text(language, "grant_exact", tool=tool, targets=listed)
    else:
        text = TEXTS.text(language, "grant_untargeted", tool=tool)
    contents = {_root(source.arg) for source, _ in parts if source.role == "content"}
    if unchecked := grant.unchecked_names | contents:
        text += TEXTS.text(language, "grant_unchecked", names=_joined(language, unchecked))
    return text + TEXTS.text(language, "grant_limits")


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


def _unchecked_names(parts: Iterable[tuple[Source, Any]]) -> frozenset[str]:
    """The arguments, other than targets, with a value that is in no trusted text."""
    return frozenset(
        _root(source.arg)
        for source, _ in parts
        if source.badge in _UNTRUSTED_BADGES and source.role != "minor" and not is_target_role(source.role)
    )


def _paths(parts: Iterable[tuple[Source, Any]]) -> frozenset[str]:
    return frozenset(_POSITION.sub("", source.arg) for source, _ in parts)


def _exact_targets(targets: Iterable[tuple[Source, Any]]) -> frozenset[tuple[str, Any]]:
    return frozenset((source.arg, value_key(value)) for source, value in targets)


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
