"""Probes: functions that say of a call without an outcome whether it happened."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

from taoloop.errors import ToolDefinitionError
from taoloop.tools.base import Probe, handler_is_async
from taoloop.tools.signatures import is_context, parameters, underlying


def probe_of(function: Callable[..., Any], name: str, arguments: Iterable[str]) -> Probe:
    """`function` as the probe of the tool `name`, which takes these `arguments`.

    It may take any of them by name, and a `ToolContext` (whose idempotency key is that of the call).

    Raises:
        ToolDefinitionError: it asks for something else.
    """
    known = frozenset(arguments)
    try:
        asked = parameters(function)
    except (ValueError, TypeError) as error:
        raise ToolDefinitionError(f"The probe of the tool {name!r} cannot be called: {error}.") from error
    hints = _hints(function)
    context: str | None = None
    taken: set[str] = set()
    takes_all = False
    for parameter in asked:
        if is_context(hints.get(parameter.name, parameter.annotation)):
            context = parameter.name
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_all = True
        elif parameter.name in known and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            taken.add(parameter.name)
        elif parameter.default is inspect.Parameter.empty:
            raise ToolDefinitionError(
                f"The probe of the tool {name!r} asks for {parameter.name!r}, which is none of its arguments.",
                hint="A probe takes arguments of the tool by their names, and a ToolContext.",
            )
    return Probe(
        function=function,
        parameters=None if takes_all else frozenset(taken),
        context_parameter=context,
        is_async=handler_is_async(function),
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(underlying(function), include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}  # then the annotations as they stand, which may be texts
