"""What a callable asks for: its parameters, seen through partials, and which of them takes the context."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from taoloop.core.connection import JournalConnection
from taoloop.tools.base import ToolContext


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
    return _is(hint, ToolContext)


def is_connection(hint: Any) -> bool:
    """True for `JournalConnection`, in the same forms."""
    return _is(hint, JournalConnection)


def _is(hint: Any, wanted: type[Any]) -> bool:
    if isinstance(hint, str):
        return _text_of(wanted.__name__).fullmatch(hint.strip()) is not None
    origin = get_origin(hint)
    if origin is Annotated:
        return _is(get_args(hint)[0], wanted)
    if origin is Union or origin is UnionType:
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        return len(kinds) == 1 and _is(kinds[0], wanted)
    return hint is wanted


@cache
def _text_of(name: str) -> re.Pattern[str]:
    """The texts of annotations that mean the type of this name."""
    named = rf"(?:\w+\.)*{name}"
    return re.compile(
        rf"{named}(?:\s*\|\s*None)?|None\s*\|\s*{named}|(?:\w+\.)*Optional\[{named}\]"
        rf"|(?:\w+\.)*Annotated\[{named}(?:\s*\|\s*None)?\s*,.*\]",
        re.DOTALL,
    )


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """Partials made anew: `update_wrapper` would have their signature be that of the whole function."""
    if isinstance(function, partial):
        return partial(_bare(function.func), *function.args, **function.keywords)
    return function
