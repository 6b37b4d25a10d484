"""Checks of an agent's settings when it is made: what is cheap to see is not found only by the first run.

Nothing is loaded for the usual values. The rest is checked where it is used: the names of built-in tools, keys, files,
and the tools of sources, which cost time or may come to be later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from taoloop.core.policy import Policy, plain_policy
from taoloop.errors import ConfigError, ToolDefinitionError
from taoloop.models.settings import DeferredModelSpec

_DIALECTS = ("native", "text", "json", "json_final", "fenced")
_STRATEGIES = ("react", "act_only", "reason_only", "standard")


def check_settings(*, model: object, tools: object, dialect: object, strategy: object, policy: object) -> None:
    """Refuse settings that no run could use.

    Raises:
        UnknownName: no model, dialect or strategy has that name.
        PolicyError: no profile has that name.
        ToolDefinitionError: an entry of the tools is no tool.
        ConfigError: a setting is of the wrong type.
    """
    if isinstance(model, str) and not isinstance(model, DeferredModelSpec):
        from taoloop.models.registry import require_known_model  # noqa: PLC0415  # only for named models

        require_known_model(model)
    if dialect is not None and dialect not in _DIALECTS:
        from taoloop.dialects import get_dialect  # noqa: PLC0415  # only for registered ones

        get_dialect(_name("dialect", dialect))
    if isinstance(strategy, str) and strategy not in _STRATEGIES:
        from taoloop.strategies import get_strategy  # noqa: PLC0415  # only for those with settings or registered

        get_strategy(strategy)
    if not isinstance(policy, Policy):
        name: Any = _name("policy", policy)
        plain_policy(name)
    for entry in tools if isinstance(tools, list | tuple) else ():
        _check_tool(entry)


def _name(setting: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise ConfigError(f"The {setting} of an agent is {value!r}.", hint="Write a name as a text.")


_NO_TOOLS = (type(None), bool, int, float, bytes, dict, set, list, tuple)


def _check_tool(entry: object) -> None:
    if isinstance(entry, _NO_TOOLS):
        is_list = isinstance(entry, Iterable) and not isinstance(entry, bytes)
        raise ToolDefinitionError(
            f"{str(entry)[:80]!r} is no tool: it is of the type {type(entry).__name__!r}.",
            hint="Write its entries into the list itself."
            if is_list
            else "Give a typed function, or a tool made with @tool.",
        )
