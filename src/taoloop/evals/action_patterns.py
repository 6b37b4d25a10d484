"""Which calls of a run fit the actions that a case expects or forbids. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.evals.cases import ActionPattern


def fits_pattern(pattern: ActionPattern, tool: str, args: Any) -> bool:
    """Whether a call fits: the same tool, and every argument of the pattern has the same value.

    Numbers are equal as numbers (1 and 1.0), and a truth value is no number.
    """
    if tool != pattern.tool:
        return False
    if pattern.args is None:
        return True
    return isinstance(args, Mapping) and all(
        name in args and is_same_value(value, args[name]) for name, value in pattern.args.items()
    )


def is_same_value(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal; 1 and 1.0 are, 1 and true are not."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(is_same_value(first[name], second[name]) for name in first)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(is_same_value, first, second))
    return bool(first == second)


def count_selected(patterns: Sequence[ActionPattern], tools: Sequence[str]) -> int:
    """How many patterns have a call of their tool, where each call counts for one pattern at most."""
    names = [pattern.tool for pattern in patterns]
    return sum(min(names.count(name), tools.count(name)) for name in set(names))


def count_matches(patterns: Sequence[ActionPattern], calls: Sequence[tuple[str, Any]]) -> int:
    """How many patterns have a call that fits, where each call counts for one pattern at most: the greatest number.

    A maximum matching by augmenting paths (Kuhn 1955), so that the order of patterns and calls does not matter.
    """
    fitting = [
        [index for index, (tool, args) in enumerate(calls) if fits_pattern(pattern, tool, args)] for pattern in patterns
    ]
    pattern_of: dict[int, int] = {}

    def assign(pattern: int, tried: set[int]) -> bool:
        for index in fitting[pattern]:
            if index not in tried:
                tried.add(index)
                if index not in pattern_of or assign(pattern_of[index], tried):
                    pattern_of[index] = pattern
                    return True
        return False

    return sum(assign(pattern, set()) for pattern in range(len(patterns)))
