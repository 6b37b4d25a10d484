"""Whether a call of a plain function ends at once, found out by reading the function: such a call needs no thread.

A function counts that has no loop, calls nothing but a short list of builtins, and works on nothing but plain data
(`None`, `bool`, `int`, `float`, `str`, `list`, `tuple`, `dict`, of exactly these types): it takes finitely many steps,
each is one operation of the interpreter on data of bounded size, and none runs anybody's code. A thread could not stop
it either, so a thread would only cost.

Three things are held to, the first two once per function and the last at every call:

1. What is read is what runs: the source, compiled anew, must equal the function's code.
2. Every statement and expression is of a kind listed here, and no value outgrows its inputs beyond a bound.
3. Arguments, defaults and the global and enclosing names that it uses are plain data, small enough, and the builtins
   are the real ones. Annotations are not relied on.

Whatever is not certain counts as not ending at once.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import tokenize
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, NoneType
from typing import Any

from taoloop.tools.straight import Needs, Unsure, read

_ROOM = 16_384
_ROOM_PER_VALUE = 64
_MOST_LINES = 200
_MOST_SOURCE_CHARS = 16_384
_NUMBERS = frozenset({int, float, bool})
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
_NOTHING = object()


class Instant:
    """Says of each call of a function whether it ends at once. The function is read at its first call."""

    __slots__ = ("_code", "_function", "_needs")

    def __init__(self) -> None:
        self._function: FunctionType | None = None
        self._code: CodeType | None = None
        self._needs: Needs | None = None

    def __call__(self, function: Callable[..., Any], values: Mapping[str, Any]) -> bool:
        """True if `function`, called with `values` by name, certainly ends at once.

        Never for anything but a plain function, such as a partial, a method or an object.
        """
        if type(function) is not FunctionType:
            return False
        code = function.__code__
        if self._function is not function or self._code is not code:
            self._needs, self._function, self._code = _needs(function), function, code
        needs = self._needs
        if needs is None:
            return False
        looked = [*values.values()]
        if len(looked) < code.co_argcount + code.co_kwonlyargcount:
            looked += (function.__defaults__, function.__kwdefaults__)
        if needs.is_empty:
            return _is_plain(looked)
        looked += [_outer(function, name) for name in needs.plain]
        return _is_plain(looked) and _hold(needs, function, values)


def _needs(function: FunctionType) -> Needs | None:
    """What must hold at a call for the function to end at once; None if it cannot be said."""
    if type(function.__globals__) is not dict or type(_builtins(function)) is not dict:
        return None
    try:
        node = _definition(function.__code__, function.__globals__)
        return read(node, function.__code__, lambda name: _outer(function, name))
    except (Unsure, SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError):
        return None


def _definition(code: CodeType, module: dict[str, Any]) -> ast.FunctionDef:
    """The definition that the code was made of.

    Raises:
        Unsure: it is not to be found, or the file says something else by now.
    """
    above = code.co_firstlineno - 1
    lines = linecache.getlines(code.co_filename, module)[above : above + _MOST_LINES]
    if not lines:
        raise Unsure
    source = "".join(inspect.getblock(lines))
    if len(source) > _MOST_SOURCE_CHARS:
        raise Unsure
    nested = bool(code.co_flags & inspect.CO_NESTED)
    indented = source[:1].isspace()
    around = f"def _({', '.join(code.co_freevars)}):\n" if nested else "if 1:\n" if indented else ""
    if nested and not indented:
        raise Unsure
    tree = ast.parse(around + source)
    ast.increment_lineno(tree, above - bool(around))
    top: ast.AST = tree.body[0]
    node = top.body[0] if around and isinstance(top, ast.FunctionDef | ast.If) else top
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:  # such as a lambda of a decorator
        raise Unsure
    made = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    if code not in _codes(made) and not any(code in _codes(inner) for inner in _codes(made)):
        raise Unsure
    return node


def _codes(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _outer(function: FunctionType, name: str) -> Any:
    """What a name that is no local of the function stands for now; a value that is not plain if there is none."""
    free = function.__code__.co_freevars
    if name in free:
        cell = (function.__closure__ or ())[free.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # still empty
            return _NOTHING
    found = function.__globals__.get(name, _NOTHING)
    return _builtins(function).get(name, _NOTHING) if found is _NOTHING else found


def _builtins(function: FunctionType) -> dict[str, Any]:
    builtins: dict[str, Any] = getattr(function, "__builtins__")  # noqa: B009  # the stubs of the language lack it
    return builtins


def _argument(function: FunctionType, values: Mapping[str, Any], name: str) -> Any:
    """What a parameter is in this call: given, or its default."""
    if name in values:
        return values[name]
    code, defaults = function.__code__, function.__defaults__ or ()
    if name in (function.__kwdefaults__ or {}):
        return (function.__kwdefaults__ or {})[name]
    place = code.co_varnames.index(name) - (code.co_argcount - len(defaults))
    return defaults[place] if 0 <= place < len(defaults) else None  # None: missing, the call will say so


def _hold(needs: Needs, function: FunctionType, values: Mapping[str, Any]) -> bool:
    growing = [_outer(function, name) for name in needs.lists]
    return (
        all(_outer(function, name) is known for name, known in needs.known)
        and all(type(value) is list for value in growing)
        and all(type(_outer(function, name)) in _NUMBERS for name in needs.numbers)
        and all(type(_argument(function, values, name)) in _NUMBERS for name in needs.number_arguments)
        and all(_holds_numbers(_outer(function, name), growing) for name in needs.of_numbers)
    )


def _holds_numbers(container: Any, growing: list[Any]) -> bool:
    """True for a dict or list of nothing but numbers that is not one of those that grow."""
    inside = container.values() if type(container) is dict else container if type(container) is list else (None,)
    return all(type(value) in _NUMBERS for value in inside) and not any(container is one for one in growing)


def _is_plain(values: list[Any]) -> bool:
    """True if all this, and all that is in it, is plain data, and not much of it. Uses `values` up."""
    room = _ROOM
    while values:
        value = values.pop()
        kind = type(value)
        if kind is str:
            room -= len(value)
        elif kind is int:
            room -= value.bit_length()
        elif kind is dict or kind is list or kind is tuple:
            if len(value) * _ROOM_PER_VALUE > room:
                return False
            values += value
            if kind is dict:
                values += value.values()
        elif kind is not float and kind is not bool and kind is not NoneType:
            return False
        room -= _ROOM_PER_VALUE
        if room < 0:
            return False
    return True
