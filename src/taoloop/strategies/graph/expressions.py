"""Conditions over the state, and texts with fields of the state in them. Pure, and parsed once.

A condition is written as in Python: fields and what is in them (`order.total`, `items[0]`), constants and lists,
comparisons with `in`, `and`, `or`, `not`, and `len(…)`. It can call nothing else and change nothing.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from taoloop.core.text import lazy_pattern

MAX_CHARS = 1_000
"""The longest condition: a longer one belongs into a function."""

_PLACEHOLDER = lazy_pattern(r"\{\{|\}\}|\{([^{}]*)\}")
_PATH = lazy_pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[-?\d+\])*")
_STEP = lazy_pattern(r"[A-Za-z_]\w*|-?\d+")

State = Mapping[str, Any]
Path = tuple[str | int, ...]
"""A field of the state, and what is in it: `order.total` is order, total."""

_CONSTANTS = {"true": True, "false": False, "null": None}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
}


class ExpressionError(ValueError):
    """A condition or a text with fields cannot be read, or has no value in this state; never leaves the package."""


class UnsetField(ExpressionError):
    """A field has no value yet."""


@dataclass(frozen=True, slots=True)
class Expression:
    """What a condition or a text with fields means."""

    fields: frozenset[str]
    """The fields of the state that it reads."""
    evaluate: Callable[[State], Any]
    """Its value in a state; raises `ExpressionError` where it has none."""
    field: str = ""
    """The field, where the expression is nothing but that: its value keeps its type."""
    paths: frozenset[Path] = frozenset()
    """What it reads of its fields, as far as that does not depend on the state."""
    orderings: tuple[tuple[Path | str | float, Path | str | float], ...] = ()
    """What its comparisons of size compare: paths or constants."""


@lru_cache(maxsize=4096)
def read_condition(text: str) -> Expression:
    """The meaning of a condition.

    Raises:
        ExpressionError: it is none; says why.
    """
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"it has more than {MAX_CHARS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        fields: set[str] = set()
        evaluate = _compile(tree, fields)
        nodes = list(ast.walk(tree))
        paths = frozenset(path for node in nodes if len(path := _path_of(node)) > 1)
        orderings = tuple(_orderings(nodes))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error if isinstance(error, ExpressionError) else getattr(error, "msg", error)
        raise ExpressionError(str(reason) or "it is nested too deeply") from error

    def holds(state: State) -> bool:
        try:
            return bool(evaluate(state))
        except (TypeError, ValueError, LookupError) as error:
            raise error if isinstance(error, ExpressionError) else ExpressionError(str(error)) from error

    return Expression(frozenset(fields), holds, paths=paths, orderings=orderings)


def _path_of(node: ast.AST) -> Path:
    """What an expression reads, such as `order.items[0]`; empty if it is no plain path."""
    match node:
        case ast.Name(id=name) if name not in _CONSTANTS:
            return (name,)
        case ast.Attribute(value=inner, attr=name):
            return (*path, name) if (path := _path_of(inner)) else ()
        case ast.Subscript(value=inner, slice=ast.Constant(value=str() | int() as key)):
            return (*path, key) if (path := _path_of(inner)) else ()
    return ()


def _orderings(nodes: list[ast.AST]) -> Iterator[tuple[Path | str | float, Path | str | float]]:
    """The two sides of each comparison of size, where both are plain paths or constants."""
    for node in nodes:
        if not isinstance(node, ast.Compare):
            continue
        sides = [_side_of(operand) for operand in (node.left, *node.comparators)]
        for op, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and left is not None and right is not None:
                yield left, right


def _side_of(node: ast.expr) -> Path | str | float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return node.value
    return _path_of(node) or None


def read_template(value: Any) -> Expression:
    """The meaning of an argument: a text with fields, a list or an object of such, or any other value as it is.

    A text that is nothing but `{field}` has the value of the field with its type; elsewhere the value is written into
    the text, as JSON unless it is a text. `{{` and `}}` are braces.

    Raises:
        ExpressionError: what is in braces is no field; says why.
    """
    if isinstance(value, str):
        return _read_text(value)
    if isinstance(value, Mapping):
        items = {key: read_template(item) for key, item in value.items()}
        return _joined(items.values(), lambda state: {key: item.evaluate(state) for key, item in items.items()})
    if isinstance(value, list | tuple):
        parts = [read_template(item) for item in value]
        return _joined(parts, lambda state: [part.evaluate(state) for part in parts])
    return Expression(frozenset(), lambda _state: value)


def read_path(path: str) -> Callable[[Any], Any]:
    """What finds the value at `path` (`order.total`, `items[0].id`) in a result or a state.

    Raises:
        ExpressionError: it is no path.
    """
    if not _PATH.fullmatch(path):
        raise ExpressionError(f"{{{path}}} is no field: write {{name}}, {{name.part}} or {{name[0]}}")
    steps = _steps(path)

    def find(value: Any) -> Any:
        for number, step in enumerate(steps):
            value = _part(value, step, is_field=number == 0)
        return value

    return find


def _steps(path: str) -> Path:
    return tuple(int(step) if step.lstrip("-").isdigit() else step for step in _STEP.findall(path))


@lru_cache(maxsize=4096)
def _read_text(text: str) -> Expression:
    parts: list[str | Callable[[Any], Any]] = []
    fields: set[str] = set()
    paths: set[Path] = set()
    position = 0
    for match in _PLACEHOLDER.finditer(text):
        parts.append(text[position : match.start()])
        position = match.end()
        if (path := match[1]) is None:
            parts.append(match[0][0])
        else:
            parts.append(read_path(path.strip()))
            steps = _steps(path)
            fields.add(str(steps[0]))
            paths |= {steps} if len(steps) > 1 else set()
    parts.append(text[position:])
    parts = [part for part in parts if part != ""]
    if not fields:
        plain = "".join(part for part in parts if isinstance(part, str))
        return Expression(frozenset(), lambda _state: plain)
    if len(parts) == 1 and callable(whole := parts[0]):
        name = text.strip("{} ")
        return Expression(frozenset(fields), whole, field=name if name in fields else "", paths=frozenset(paths))
    return Expression(
        frozenset(fields),
        lambda state: "".join(part if isinstance(part, str) else text_of(part(state)) for part in parts),
        paths=frozenset(paths),
    )


def text_of(value: Any) -> str:
    """A value of the state as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _joined(parts: Any, evaluate: Callable[[State], Any]) -> Expression:
    fields, paths = ([getattr(part, name) for part in parts] for name in ("fields", "paths"))
    return Expression(frozenset().union(*fields), evaluate, paths=frozenset().union(*paths))


def _part(value: Any, step: str | int, *, is_field: bool = False) -> Any:
    try:
        if isinstance(value, Mapping):
            return value[step]
        if isinstance(value, list) and isinstance(step, int):
            return value[step]
    except LookupError:
        pass
    if is_field:
        raise UnsetField(f"{step!r} has no value yet")
    raise ExpressionError(f"there is no {step!r} in {text_of(value)[:60]}")


def _compile(node: ast.expr, fields: set[str]) -> Callable[[State], Any]:
    match node:
        case ast.Constant(value=str() | int() | float() | bool() | None as constant):
            return lambda _state: constant
        case ast.Name(id=name) if name in _CONSTANTS:
            return lambda _state: _CONSTANTS[name]
        case ast.Name(id=name):
            fields.add(name)
            return lambda state: _part(state, name, is_field=True)
        case ast.Attribute(value=inner, attr=name):
            value = _compile(inner, fields)
            return lambda state: _part(value(state), name)
        case ast.Subscript(value=inner, slice=index):
            value, key = _compile(inner, fields), _compile(index, fields)
            return lambda state: _part(value(state), key(state))
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            parts = [_compile(element, fields) for element in elements]
            return lambda state: [part(state) for part in parts]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return lambda _state: -number
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            value = _compile(inner, fields)
            return lambda state: not value(state)
        case ast.BoolOp(op=op, values=values):
            parts, combine = [_compile(part, fields) for part in values], any if isinstance(op, ast.Or) else all
            return lambda state: combine(part(state) for part in parts)
        case ast.Compare():
            return _compile_comparison(node, fields)
        case ast.Call(func=ast.Name(id="len"), args=[inner], keywords=[]):
            value = _compile(inner, fields)
            return lambda state: len(value(state))
    raise ExpressionError(f"{ast.unparse(node)[:60]!r} is not allowed in a condition")


def _compile_comparison(node: ast.Compare, fields: set[str]) -> Callable[[State], Any]:
    operands = [_compile(operand, fields) for operand in (node.left, *node.comparators)]
    comparisons = [_COMPARISONS[type(op)] for op in node.ops]

    def compare(state: State) -> bool:
        left = operands[0](state)
        for holds, operand in zip(comparisons, operands[1:], strict=True):
            right = operand(state)
            if not holds(left, right):
                return False
            left = right
        return True

    return compare
