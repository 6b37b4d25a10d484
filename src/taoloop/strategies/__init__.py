"""Strategies: which effect comes next. `get_strategy` finds them by name."""

from __future__ import annotations

from taoloop.core.effects import Strategy
from taoloop.errors import UnknownName
from taoloop.strategies.planned_calls import SINGLE_CALL, UNDO
from taoloop.strategies.react import LoopStrategy

REACT = LoopStrategy(name="react", acts=True, reasons=True)
"""Reason, act, observe, until the answer: the default."""

ACT_ONLY = LoopStrategy(name="act_only", acts=True, reasons=False)
"""Act and observe without reasoning in the replies."""

REASON_ONLY = LoopStrategy(name="reason_only", acts=False, reasons=True)
"""Reason and answer, without tools."""

STANDARD = LoopStrategy(name="standard", acts=False, reasons=False)
"""Answer at once, without tools and without reasoning."""

_STRATEGIES: dict[str, Strategy] = {s.name: s for s in (REACT, ACT_ONLY, REASON_ONLY, STANDARD)}
_INNER: dict[str, Strategy] = {UNDO.name: UNDO, SINGLE_CALL.name: SINGLE_CALL}  # of runs that no agent is made for

__all__ = [
    "ACT_ONLY",
    "REACT",
    "REASON_ONLY",
    "SINGLE_CALL",
    "STANDARD",
    "UNDO",
    "LoopStrategy",
    "Strategy",
    "get_strategy",
    "register_strategy",
]


def get_strategy(name: str) -> Strategy:
    """The strategy called `name` (hyphens count as underscores).

    Raises:
        UnknownName: there is none; lists those that exist.
    """
    strategy = _STRATEGIES.get(name.replace("-", "_").lower()) or _INNER.get(name)
    if strategy is None:
        raise UnknownName("strategy", name, strategies())
    return strategy


def strategies() -> tuple[str, ...]:
    """The names of all strategies."""
    return tuple(_STRATEGIES)


def register_strategy(strategy: Strategy) -> None:
    """Register a strategy of your own under its name; replaces one of the same name."""
    _STRATEGIES[strategy.name] = strategy
