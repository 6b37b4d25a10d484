"""Strategies: which effect comes next. `get_strategy` finds them by name.

A strategy with settings is named `NAME` or `NAME:key=value,key=value`, for example `cot_sc:n=9`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from taoloop.core.effects import Strategy
from taoloop.errors import UnknownName
from taoloop.strategies.ballot import normalise_answer
from taoloop.strategies.graph import GRAPH
from taoloop.strategies.plan_execute import PLAN_STEP, PlanExecute
from taoloop.strategies.planned_calls import SINGLE_CALL, UNDO
from taoloop.strategies.react import LoopStrategy
from taoloop.strategies.reflection import Reflect
from taoloop.strategies.self_consistency import ReactThenSelfConsistency, SelfConsistency, SelfConsistencyThenReact
from taoloop.strategies.settings import read_settings

REACT = LoopStrategy(name="react", acts=True, reasons=True)
"""Reason, act, observe, until the answer: the default."""

ACT_ONLY = LoopStrategy(name="act_only", acts=True, reasons=False)
"""Act and observe without reasoning in the replies."""

REASON_ONLY = LoopStrategy(name="reason_only", acts=False, reasons=True)
"""Reason and answer, without tools."""

STANDARD = LoopStrategy(name="standard", acts=False, reasons=False)
"""Answer at once, without tools and without reasoning."""

_STRATEGIES: dict[str, Strategy] = {s.name: s for s in (REACT, ACT_ONLY, REASON_ONLY, STANDARD)}
_CONFIGURABLE: dict[str, Callable[[str], Strategy]] = {  # each makes a strategy of the text of its settings
    "cot_sc": partial(read_settings, SelfConsistency, "cot_sc"),
    "react_then_cot_sc": partial(read_settings, ReactThenSelfConsistency, "react_then_cot_sc"),
    "cot_sc_then_react": partial(read_settings, SelfConsistencyThenReact, "cot_sc_then_react"),
    "reflect": partial(read_settings, Reflect, "reflect"),
    "plan_execute": partial(read_settings, PlanExecute, "plan_execute"),
}
_INNER: dict[str, Strategy] = {s.name: s for s in (UNDO, SINGLE_CALL, GRAPH, PLAN_STEP)}  # not for agents to choose

__all__ = [
    "ACT_ONLY",
    "REACT",
    "REASON_ONLY",
    "SINGLE_CALL",
    "STANDARD",
    "UNDO",
    "LoopStrategy",
    "PlanExecute",
    "ReactThenSelfConsistency",
    "Reflect",
    "SelfConsistency",
    "SelfConsistencyThenReact",
    "Strategy",
    "get_strategy",
    "is_revised",
    "normalise_answer",
    "register_strategy",
    "rules_of",
]


def get_strategy(name: str) -> Strategy:
    """The strategy called `name` (hyphens count as underscores), with its settings if the name has some.

    Raises:
        UnknownName: there is none; lists those that exist.
        ConfigError: a setting is unknown, or has no possible value.
    """
    plain = name.replace("-", "_").lower()
    strategy = _STRATEGIES.get(plain) or _INNER.get(name)
    if strategy is not None:
        return strategy
    family, _, settings = name.partition(":")
    make = _CONFIGURABLE.get(family.strip().replace("-", "_").lower())
    if make is None:
        raise UnknownName("strategy", name, strategies())
    return make(settings)


def rules_of(strategy: Strategy) -> tuple[str, ...]:
    """The rules that its prompts use, by their names in the prompt set (`rules_NAME`); by default its own."""
    return getattr(strategy, "rules", (strategy.name,))


def is_revised(strategy: Strategy | str) -> bool:
    """Whether an answer of the model may not be the last one, so that nobody is sent it while it is written.

    Raises:
        UnknownName: there is no strategy of that name.
        ConfigError: a setting of it has no possible value.
    """
    return getattr(get_strategy(strategy) if isinstance(strategy, str) else strategy, "revises", False)


def strategies() -> tuple[str, ...]:
    """The names of all strategies."""
    return (*_STRATEGIES, *_CONFIGURABLE)


def register_strategy(strategy: Strategy) -> None:
    """Register a strategy of your own under its name; replaces one of the same name."""
    _STRATEGIES[strategy.name] = strategy
