"""Reading a function's definition: what straight code on plain data uses, and that its values stay small.

A value is followed by its kind (number, text, anything) and by its size, in units of the most that all inputs together
may be: nothing loops, so sizes can be added up. What a statement does to a name only ever widens what is known of it,
so that it holds on every path; what changes a value in place makes everything count as larger, because names may share
it.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType
from typing import Any, Literal, NamedTuple

from taoloop.errors import ToolError

MOST_GROWTH = 1_024
"""How many times as large as the largest inputs a value may become."""

_PIECES = 16  # a text that becomes a list of its characters, in memory and time
_SHOWN = 10  # a value that becomes text: escapes, quotes, digits
_SHORT = 16  # characters of a constant that is put in many times


class Unsure(Exception):  # no failure: a reader that does not know
    """The code may be anything: it is not certain that it ends at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What must hold whenever the function is called, by name.

    `plain` are plain data; `lists` lists, whatever is in them, which grow; `known` the very objects that they were.
    `numbers` and `number_arguments` are numbers, `of_numbers` lists or dicts of numbers and none of `lists`.
    """

    plain: tuple[str, ...]
    lists: tuple[str, ...]
    known: tuple[tuple[str, Any], ...]
    numbers: tuple[str, ...]
    number_arguments: tuple[str, ...]
    of_numbers: tuple[str, ...]
    is_empty: bool


_Kind = Literal["number", "text", "any"]  # a number here is what cannot be repeated by `*`


class _Value(NamedTuple):
    kind: _Kind
    size: int


_FUNCTIONS: dict[Any, tuple[_Kind, int, int]] = {  # the kind of the result, its growth, arguments at most
    abs: ("number", 1, 1),
    all: ("number", 1, 1),
    any: ("number", 1, 1),
    bool: ("number", 1, 1),
    dict: ("any", 2, 1),
    float: ("number", 1, 1),
    int: ("number", 1, 1),
    len: ("number", 1, 1),
    list: ("any", _PIECES, 1),
    max: ("any", 1, 20),
    min: ("any", 1, 20),
    ord: ("number", 1, 1),
    repr: ("text", _SHOWN, 1),
    sorted: ("any", _PIECES, 1),
    str: ("text", _SHOWN, 1),
    sum: ("number", 1, 1),
    tuple: ("any", _PIECES, 1),
}
_ERRORS: frozenset[type[Exception]] = frozenset(
    {
        ArithmeticError, AssertionError, AttributeError, Exception, FileExistsError, FileNotFoundError, IndexError,
        KeyError, LookupError, NotImplementedError, OSError, OverflowError, PermissionError, RuntimeError, TypeError,
        ValueError, ZeroDivisionError,
    }
)  # fmt: skip
_TYPES = frozenset({bool, dict, float, int, list, str, tuple})
_METHODS: dict[str, tuple[_Kind, int, int]] = {  # on whatever plain value; where it has none, that is an error at once
    **dict.fromkeys(("lower", "upper", "title", "capitalize", "casefold", "swapcase"), ("text", 3, 0)),
    **dict.fromkeys(("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"), ("text", 1, 1)),
    **dict.fromkeys(("isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower"), ("number", 1, 0)),
    **dict.fromkeys(("isnumeric", "isdecimal", "isascii", "isidentifier", "is_integer"), ("number", 1, 0)),
    **dict.fromkeys(("startswith", "endswith", "find", "rfind", "index", "count"), ("number", 1, 3)),
    **dict.fromkeys(("split", "rsplit", "splitlines"), ("any", _PIECES, 2)),
    **dict.fromkeys(("partition", "rpartition"), ("any", 2, 1)),
    **dict.fromkeys(("keys", "values", "items", "copy"), ("any", 2, 0)),
    "get": ("any", 1, 2),
    "pop": ("any", 1, 2),
}
_CHANGING = {"append": 1, "extend": 1, "insert": 2, "setdefault": 2, "update": 1, "remove": 1, "clear": 0}
_SUMS = (ast.Add, ast.BitOr, ast.BitAnd, ast.BitXor)
_LONGEST_NUMBER = 16
_ONE = _Value("number", 1)


def read(node: ast.FunctionDef, code: CodeType, find: Callable[[str], Any]) -> Needs:
    """What the function needs to end at once; `find` gives what a name outside of it stands for.

    Raises:
        Unsure: it may not.
    """
    reader = _Reader(node, code, find)
    reader.block(node.body)
    return reader.needs()


class _Reader:
    """Goes through a definition once, in the order of the source."""

    def __init__(self, node: ast.FunctionDef, code: CodeType, find: Callable[[str], Any]) -> None:
        if code.co_cellvars or node.args.vararg is not None or node.args.kwarg is not None:
            raise Unsure
        count = code.co_argcount + code.co_kwonlyargcount
        self._find, self._locals = find, frozenset(code.co_varnames)
        self._names = dict.fromkeys(code.co_varnames[:count], _Value("any", 1))
        self._stored = frozenset(
            inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
        )
        self._handled = frozenset(
            inner.name for inner in ast.walk(node) if isinstance(inner, ast.ExceptHandler) and inner.name
        )
        if self._handled & (self._stored | set(self._names)):
            raise Unsure
        self._base, self._changes = 1, False
        self._plain, self._lists = set[str](), set[str]()
        self._numbers, self._number_arguments, self._of_numbers = set[str](), set[str](), set[str]()
        self._known: dict[str, Any] = {}

    def needs(self) -> Needs:
        if self._changes and self._of_numbers:  # they may be other things by the time that they are used
            raise Unsure
        found = [self._plain, self._lists, self._numbers, self._number_arguments, self._of_numbers]
        plain, lists, numbers, number_arguments, of_numbers = (tuple(sorted(names)) for names in found)
        return Needs(
            plain=plain,
            lists=lists,
            known=tuple(self._known.items()),
            numbers=numbers,
            number_arguments=number_arguments,
            of_numbers=of_numbers,
            is_empty=not any(found) and not self._known,
        )

    # Statements.

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._for(statement, "_do_")(statement)

    def _for(self, node: ast.AST, prefix: str) -> Callable[[Any], Any]:
        method: Callable[[Any], Any] | None = getattr(self, prefix + type(node).__name__.lower(), None)
        if method is None:
            raise Unsure
        return method

    def _do_pass(self, _statement: ast.Pass) -> None:
        return

    def _do_expr(self, statement: ast.Expr) -> None:
        if not isinstance(statement.value, ast.Constant):  # a docstring, or `...`
            self._value(statement.value)

    def _do_return(self, statement: ast.Return) -> None:
        if statement.value is not None:
            self._value(statement.value)

    def _do_if(self, statement: ast.If) -> None:
        self._value(statement.test)
        self.block(statement.body)
        self.block(statement.orelse)

    def _do_assert(self, statement: ast.Assert) -> None:
        self._value(statement.test)
        if statement.msg is not None:
            self._value(statement.msg)

    def _do_assign(self, statement: ast.Assign) -> None:
        value = self._value(statement.value)
        for target in statement.targets:
            self._store(target, value)

    def _do_annassign(self, statement: ast.AnnAssign) -> None:
        if not statement.simple:  # only then the annotation is not evaluated
            raise Unsure
        if statement.value is not None:
            self._store(statement.target, self._value(statement.value))

    def _do_augassign(self, statement: ast.AugAssign) -> None:
        target = statement.target
        if isinstance(target, ast.Name):
            before = self._value(ast.Name(target.id, ast.Load()))
        elif isinstance(target, ast.Subscript):
            before = self._value(ast.Subscript(target.value, target.slice, ast.Load()))
        else:
            raise Unsure
        after = self._binary(statement.op, before, statement.value, None)
        if after.kind != "number":
            self._change(after.size)  # a list is extended where it is
        self._store(target, after)

    def _do_raise(self, statement: ast.Raise) -> None:
        raised, cause = statement.exc, statement.cause
        if isinstance(raised, ast.Call):
            is_ours = self._know(raised.func) is ToolError
            if not is_ours and (raised.keywords or self._know(raised.func) not in _ERRORS):
                raise Unsure
            for argument in [*raised.args, *(keyword.value for keyword in raised.keywords if keyword.arg)]:
                self._value(argument)
            if any(keyword.arg is None for keyword in raised.keywords):
                raise Unsure
        elif raised is not None and self._know(raised) not in _ERRORS:
            raise Unsure
        is_none = isinstance(cause, ast.Constant) and cause.value is None
        if not (cause is None or is_none or (isinstance(cause, ast.Name) and cause.id in self._handled)):
            raise Unsure

    def _do_try(self, statement: ast.Try) -> None:
        self.block(statement.body)
        for handler in statement.handlers:
            caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            if any(one is None or self._know(one) not in _ERRORS for one in caught):
                raise Unsure
            self.block(handler.body)
        self.block(statement.orelse)
        self.block(statement.finalbody)

    def _store(self, target: ast.expr, value: _Value) -> None:
        if isinstance(target, ast.Name) and target.id in self._locals:
            before = self._names.get(target.id, value)
            kind: _Kind = value.kind if before.kind == value.kind else "any"
            self._names[target.id] = _Value(kind, max(before.size, value.size))
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._store(part, _Value("any", value.size))
        elif isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            self._value(target.value)
            self._change(value.size + self._value(target.slice).size)
        else:
            raise Unsure

    def _change(self, size: int, *, only_lists: bool = False) -> None:
        """Something of this size was put into a value that others may hold too, any number of times."""
        self._changes = self._changes or not only_lists
        self._base = self._within(self._base * (1 + size))
        self._names = {name: _Value(kind, self._within(old * (1 + size))) for name, (kind, old) in self._names.items()}

    # Expressions.

    def _value(self, node: ast.expr) -> _Value:
        value: _Value = self._for(node, "_of_")(node)
        self._within(value.size)
        return value

    def _within(self, size: int) -> int:
        if size > MOST_GROWTH:
            raise Unsure
        return size

    def _sum(self, nodes: list[ast.expr]) -> int:
        return sum(self._value(node).size for node in nodes)

    def _of_constant(self, node: ast.Constant) -> _Value:
        if isinstance(node.value, str):
            return _Value("text", 1)
        if node.value is None or isinstance(node.value, int | float):
            return _ONE
        raise Unsure

    def _of_name(self, node: ast.Name) -> _Value:
        if node.id not in self._locals:
            self._plain.add(node.id)
            return _Value("any", self._base)
        if node.id not in self._names:  # without a value, or an exception that was caught
            raise Unsure
        return self._names[node.id]

    def _of_tuple(self, node: ast.Tuple) -> _Value:
        return _Value("any", 1 + self._sum(node.elts))

    def _of_list(self, node: ast.List) -> _Value:
        return _Value("any", 1 + self._sum(node.elts))

    def _of_dict(self, node: ast.Dict) -> _Value:
        if None in node.keys:
            raise Unsure
        return _Value("any", 1 + self._sum([key for key in node.keys if key is not None]) + self._sum(node.values))

    def _of_compare(self, node: ast.Compare) -> _Value:
        self._sum([node.left, *node.comparators])
        return _ONE

    def _of_boolop(self, node: ast.BoolOp) -> _Value:
        return self._one_of(node.values)

    def _of_ifexp(self, node: ast.IfExp) -> _Value:
        self._value(node.test)
        return self._one_of([node.body, node.orelse])

    def _one_of(self, nodes: list[ast.expr]) -> _Value:
        values = [self._value(node) for node in nodes]
        kinds = {value.kind for value in values}
        return _Value(kinds.pop() if len(kinds) == 1 else "any", max(value.size for value in values))

    def _of_unaryop(self, node: ast.UnaryOp) -> _Value:
        value = self._value(node.operand)
        if isinstance(node.op, ast.Invert):  # of a bool it is a warning, and who shows those is not known
            raise Unsure
        return _Value("number", value.size)

    def _of_binop(self, node: ast.BinOp) -> _Value:
        return self._binary(node.op, self._value(node.left), node.right, node.left)

    def _binary(self, op: ast.operator, left: _Value, right: ast.expr, left_node: ast.expr | None) -> _Value:
        """`left_node` is None where the left side is a place that is written too."""
        second = self._value(right)
        size = left.size + second.size
        if isinstance(op, _SUMS):
            return _Value(left.kind if left.kind == second.kind else "any", size)
        if isinstance(op, ast.Sub | ast.RShift):  # of numbers (or sets, which do no harm), else an error
            return _Value("number", size)
        if size > _LONGEST_NUMBER:  # from here on it takes longer than the size alone would say
            raise Unsure
        if isinstance(op, ast.Div | ast.FloorDiv):
            return _Value("number", size)
        self._require_number(left, left_node)
        if isinstance(op, ast.Mod):  # a text on the left would be a format
            return _Value("number", size)
        if isinstance(op, ast.Mult):
            self._require_number(second, right)
            return _Value("number", size)
        power = right.value if isinstance(op, ast.Pow) and isinstance(right, ast.Constant) else None
        if isinstance(power, int | float) and power <= _LONGEST_NUMBER and left.size * power <= _LONGEST_NUMBER:
            return _Value("number", left.size * max(1, math.ceil(power)))
        raise Unsure

    def _require_number(self, value: _Value, node: ast.expr | None) -> None:
        """Certain already, or to be looked at when the function is called."""
        if value.kind == "number":
            return
        if isinstance(node, ast.Name) and node.id not in self._stored:
            (self._number_arguments if node.id in self._locals else self._numbers).add(node.id)
        elif (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id not in self._locals
            and not isinstance(node.slice, ast.Slice)
        ):
            self._of_numbers.add(node.value.id)
        else:
            raise Unsure

    def _of_subscript(self, node: ast.Subscript) -> _Value:
        value = self._value(node.value)
        if isinstance(node.slice, ast.Slice):
            self._sum([part for part in (node.slice.lower, node.slice.upper, node.slice.step) if part is not None])
        else:
            self._value(node.slice)
        return _Value("text" if value.kind == "text" else "any", value.size)

    def _of_joinedstr(self, node: ast.JoinedStr) -> _Value:
        return _Value("text", 1 + self._sum(node.values))

    def _of_formattedvalue(self, node: ast.FormattedValue) -> _Value:
        if node.format_spec is not None:
            parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else [node.format_spec]
            for part in parts:
                if not isinstance(part, ast.Constant) or re.search(r"\d{3}", str(part.value)):  # a width
                    raise Unsure
        value = self._value(node.value)
        return _Value("text", value.size if value.kind == "text" and node.conversion == -1 else value.size * _SHOWN)

    # Calls.

    def _of_call(self, node: ast.Call) -> _Value:
        if isinstance(node.func, ast.Attribute):
            if node.keywords:
                raise Unsure
            return self._method(node.func, node.args)
        known = self._know(node.func)
        if known is isinstance and len(node.args) == 2 and not node.keywords:
            kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else node.args[1:]
            if any(self._know(kind) not in _TYPES for kind in kinds):
                raise Unsure
            self._value(node.args[0])
            return _ONE
        if known is round:
            return self._round(node)
        if known is len and not node.keywords and self._is_some_list(node.args):
            return _ONE
        if known not in _FUNCTIONS:
            raise Unsure
        kind, growth, most = _FUNCTIONS[known]
        if len(node.args) > most or (node.keywords and not self._is_reverse(known, node.keywords)):
            raise Unsure
        return _Value(kind, 1 + growth * self._sum(node.args))

    def _round(self, node: ast.Call) -> _Value:
        """Digits are a small constant: 10 to the power of them is computed."""
        digits = node.args[1:]
        if len(digits) > 1 or node.keywords or not node.args:
            raise Unsure
        if digits and not (isinstance(digits[0], ast.Constant) and digits[0].value in range(21)):
            raise Unsure
        return _Value("number", self._value(node.args[0]).size + 1)

    def _is_reverse(self, known: Any, keywords: list[ast.keyword]) -> bool:
        only = keywords[0]
        return known is sorted and len(keywords) == 1 and only.arg == "reverse" and isinstance(only.value, ast.Constant)

    def _know(self, node: ast.expr | None) -> Any:
        """The object that a name outside the function stands for; it must still be that at every call."""
        if not isinstance(node, ast.Name) or node.id in self._locals:
            raise Unsure
        found = self._find(node.id)
        if type(found) is not type and type(found) is not BuiltinFunctionType:  # nothing of its own is run to look
            raise Unsure
        self._known[node.id] = found
        return found

    def _is_some_list(self, nodes: list[ast.expr]) -> bool:
        """One name of a list outside the function: what is in it does not matter for its length or for one more."""
        if len(nodes) != 1 or not isinstance(nodes[0], ast.Name) or nodes[0].id in self._locals:
            return False
        if type(self._find(nodes[0].id)) is not list:
            return False
        self._lists.add(nodes[0].id)
        return True

    def _method(self, called: ast.Attribute, arguments: list[ast.expr]) -> _Value:
        name, on = called.attr, called.value
        if name == "append" and len(arguments) == 1 and self._is_some_list([on]):
            self._change(self._value(arguments[0]).size, only_lists=True)
            return _ONE
        value = self._value(on)
        if name in _CHANGING and len(arguments) <= _CHANGING[name]:
            self._change(self._sum(arguments))
            return _Value("any", self._base + value.size)
        if name == "join" and isinstance(on, ast.Constant) and len(arguments) == 1 and _is_short(on):
            return _Value("text", self._value(arguments[0]).size * 2)
        if name == "replace" and len(arguments) == 2 and all(_is_short(argument) for argument in arguments):
            old, new = (len(getattr(argument, "value", "")) for argument in arguments)
            return _Value("text", value.size * (2 + new // max(1, old)))
        if name not in _METHODS or len(arguments) > _METHODS[name][2]:
            raise Unsure
        kind, growth, _ = _METHODS[name]
        return _Value(kind, (value.size + self._sum(arguments)) * growth)


def _is_short(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= _SHORT
