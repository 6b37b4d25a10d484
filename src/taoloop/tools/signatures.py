"""What a callable asks for: its parameters, seen through partials, and which of them takes the context."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from taoloop.tools.base import ToolContext

_CONTEXT = r"(?:\w+\.)*ToolContext"
_CONTEXT_TEXT = re.compile(
    rf"{_CONTEXT}(?:\s*\|\s*None)?|None\s*\|\s*{_CONTEXT}|(?:\w+\.)*Optional\[{_CONTEXT}\]"
    rf"|(?:\w+\.)*Annotated\[{_CONTEXT}(?:\s*\|\s*None)?\s*,.*\]",
    re.DOTALL,
)


def underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind partials."""
    while isinstance(function, partial):
        function = function.func
    return function


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that are still to be filled: without those that a partial has bound.

    Raises:
        ValueError, TypeError: it has no signature that can be read.
    """
    bare = _bare(function)
    bound = bare.keywords if isinstance(bare, partial) else {}
    return [one for one in inspect.signature(bare).parameters.values() if one.name not in bound]


def is_context(hint: Any) -> bool:
    """True for `ToolContext`, also where it is optional or `Annotated`; a text is read like the type it names."""
    if isinstance(hint, str):
        return _CONTEXT_TEXT.fullmatch(hint.strip()) is not None
    origin = get_origin(hint)
    if origin is Annotated:
        return is_context(get_args(hint)[0])
    if origin is Union or origin is UnionType:
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        return len(kinds) == 1 and is_context(kinds[0])
    return hint is ToolContext


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Partials made anew: `update_wrapper` would have their signature be that of the whole function."""
    if isinstance(function, partial):
        return partial(_bare(function.func), *function.args, **function.keywords)
    return function
