"""The calculator: arithmetic on number constants, with a bound on everything that could grow."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.errors import ToolError
from taoloop.tools.function import tool

MAX_CHARS = 1_000  # bounds the number of parts too
MAX_BITS = 4_096  # of any intermediate integer: about 1,233 digits

_Number = int | float

_SAME = str.maketrans(
    "×÷−–（）＋－＊／．０１２３４５６７８９\u3000\u00a0",
    "*/--()+-*/.0123456789  ",
)
_BINARY: dict[type[ast.operator], tuple[str, Callable[[_Number, _Number], _Number]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.Pow: ("**", operator.pow),
}
_UNARY: dict[type[ast.unaryop], Callable[[_Number], _Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_KNOWN_FORM = "Use numbers, + - * / ** and parentheses only, such as (2 + 3) * 4."
_REFUSED: tuple[tuple[tuple[type[ast.AST], ...], str, str], ...] = (
    ((ast.Call,), "a function call", "Write the arithmetic itself; a square root is x ** 0.5."),
    ((ast.Name, ast.Attribute), "a name", "Put in the value of the name."),
    ((ast.Tuple,), "a comma", "Write 1000, not 1,000, and one expression at a time."),
    ((ast.BitXor,), "'^'", "Write ** for a power."),
    ((ast.Mod,), "a remainder ('%')", _KNOWN_FORM),
    ((ast.FloorDiv,), "a whole quotient ('//')", "Divide with / instead."),
    ((ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.Invert), "a bit operation", _KNOWN_FORM),
    ((ast.Compare, ast.BoolOp, ast.Not, ast.IfExp), "a comparison or logic", _KNOWN_FORM),
)
_KEYWORD_AFTER_DIGIT = re.compile(r"[0-9_.](?:and|else|for|if|in|is|not|or)\b")  # Python would print a warning


@tool(
    name="calculator",
    tier="read",
    use_when="A number must be computed exactly: sums, products, quotients, powers.",
    avoid_when="The values are not known yet, or it takes remainders, variables, functions, units, dates or text.",
    errors=(
        ErrorCard(code="syntax", advice="Send one complete arithmetic expression."),
        ErrorCard(code="not_allowed", advice=_KNOWN_FORM),
        ErrorCard(code="division_by_zero", advice="Change the divisor."),
        ErrorCard(code="complex_result", advice="A negative number has no real root; change the expression."),
        ErrorCard(code="too_large", advice="Use smaller numbers or exponents."),
    ),
    examples=(
        ExampleCard(args={"expression": "3.5**2"}, output="result=12.25"),
        ExampleCard(args={"expression": "(8 + 2) * 3"}, output="result=30"),
    ),
    idempotent=True,
    max_input_bytes=8 * 1024,
    inline=True,  # every part is bounded: 1,000 characters, 4,096 bits
)
def calculator(expression: str) -> str:
    """Compute an arithmetic expression of number constants with + - * / ** and parentheses only.

    Integers stay exact, up to 4,096 bits; no names, functions, comparisons, booleans or texts.

    Args:
        expression: The arithmetic, at most 1,000 characters, such as (2 + 3) * 4 or 3.5**2.
    """
    return f"result={_evaluate(_parse(expression))}"


def _parse(expression: str) -> ast.expr:
    text = expression.translate(_SAME).strip()
    if not text:
        raise ToolError("The expression is empty.", code="syntax", hint=_KNOWN_FORM)
    if len(text) > MAX_CHARS:
        raise ToolError(
            f"The expression has {len(text):,} characters; at most {MAX_CHARS:,} are taken.",
            code="too_large",
            hint="Compute it in parts.",
        )
    if '"' in text or "'" in text:
        raise _not_allowed("a text", _KNOWN_FORM)
    if _KEYWORD_AFTER_DIGIT.search(text):
        raise _not_allowed("a word", _KNOWN_FORM)
    try:
        tree = ast.parse(text, mode="eval")
    except (RecursionError, MemoryError):
        raise ToolError("The expression is nested too deeply.", code="too_large", hint="Compute it in parts.") from None
    except (SyntaxError, ValueError) as error:
        what = error.msg if isinstance(error, SyntaxError) and error.msg else str(error)
        raise ToolError(
            f"{text[:80]!r} is not an arithmetic expression: {what}.", code="syntax", hint=_KNOWN_FORM
        ) from None
    return tree.body


def _evaluate(root: ast.expr) -> _Number:
    """The value, without recursion: operands wait on `values`, work that needs them on `work`."""
    work: list[ast.expr | ast.operator | ast.unaryop] = [root]
    values: list[_Number] = []
    while work:
        match work.pop():
            case ast.Constant(value=value):
                values.append(_constant(value))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                work += [op, right, left]
            case ast.UnaryOp(op=unary, operand=operand) if type(unary) in _UNARY:
                work += [unary, operand]
            case ast.operator() as op:
                second, first = values.pop(), values.pop()
                values.append(_apply(*_BINARY[type(op)], first, second))
            case ast.unaryop() as unary:
                values.append(_UNARY[type(unary)](values.pop()))
            case refused:
                raise _refusal(refused)
    return values.pop()


def _constant(value: object) -> _Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _not_allowed(f"the constant {str(value)[:40]}", "Only numbers are taken; True, False and None are none.")
    return _bounded(value)


def _apply(operator: str, compute: Callable[[_Number, _Number], object], first: _Number, second: _Number) -> _Number:
    if isinstance(first, int) and isinstance(second, int):
        if operator == "*" and first.bit_length() + second.bit_length() > MAX_BITS + 1:
            raise _too_large("The product")
        if operator == "**" and second > 1 and abs(first) > 1 and (first.bit_length() - 1) * second >= MAX_BITS:
            raise _too_large("The power")
    try:
        return _bounded(compute(first, second))
    except ZeroDivisionError:
        raise ToolError(
            f"Division by zero: {_short(first)} {operator} {_short(second)} has no value.",
            code="division_by_zero",
            hint="Change the divisor.",
        ) from None
    except OverflowError:
        raise _too_large("A result") from None


def _bounded(value: object) -> _Number:
    if isinstance(value, complex):
        raise ToolError(
            "The result is a complex number, which this calculator does not give.",
            code="complex_result",
            hint="A negative number has no real root; change the expression.",
        )
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _too_large("A result")
        return value
    if not isinstance(value, int) or value.bit_length() > MAX_BITS:
        raise _too_large("A result")
    return value


def _short(value: _Number) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:10]}…({len(text)} characters)"


def _refusal(node: ast.AST) -> ToolError:
    part = node.op if isinstance(node, ast.BinOp | ast.UnaryOp) else node
    for kinds, what, hint in _REFUSED:
        if isinstance(part, kinds):
            return _not_allowed(what, hint)
    return _not_allowed(f"a {type(part).__name__.lower()}", _KNOWN_FORM)


def _not_allowed(what: str, hint: str) -> ToolError:
    return ToolError(f"The expression contains {what}, which is not allowed.", code="not_allowed", hint=hint)


def _too_large(what: str) -> ToolError:
    return ToolError(
        f"{what} is too large: integers may have {MAX_BITS:,} bits, other numbers must stay below 1.8e308.",
        code="too_large",
        hint="Use smaller numbers or exponents.",
    )
