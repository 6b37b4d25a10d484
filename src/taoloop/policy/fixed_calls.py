"""The calls that the reply about the task fixed ahead: which of them pass, and which value they put where. Pure.

The reply comes from a model, so it is bounded by what it was asked about: the words of the task. It can only choose
among the calls that these words allow. Whether it was read from a hijacked model then matters little.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Call, call_digest

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
