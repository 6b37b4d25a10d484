"""The calculator: arithmetic on number constants, with a bound on everything that could grow."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.text import chinese_texts
from taoloop.errors import ToolError
from taoloop.tools.function import tool
from taoloop.tools.texts import TEXTS

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
_NOT_ALLOWED: tuple[tuple[tuple[type[ast.AST], ...], str], ...] = (  # with the text that names each
    ((ast.Call,), "call"),
    ((ast.Name, ast.Attribute), "name"),
    ((ast.Tuple,), "comma"),
    ((ast.BitXor,), "caret"),
    ((ast.Mod,), "remainder"),
    ((ast.FloorDiv,), "quotient"),
    ((ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.Invert), "bits"),
    ((ast.Compare, ast.BoolOp, ast.Not, ast.IfExp), "logic"),
)
_KEYWORD_AFTER_DIGIT = re.compile(r"[0-9_.](?:and|else|for|if|in|is|not|or)\b")  # Python would print a warning
_BRACKETS = re.compile("never closed|unmatched|does not match")  # in what Python says of a syntax error


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
    chinese=chinese_texts("tools"),
)
def calculator(expression: str) -> str:
    """Compute an arithmetic expression of number constants with + - * / ** and parentheses only.

    Integers stay exact, up to 4,096 bits; no names, functions, comparisons, booleans or texts.

    Args:
        expression: The arithmetic, at most 1,000 characters, such as (2 + 3) * 4 or 3.5**2.
    """
    return f"result={_evaluate(_parse(expression))}"


def _parse(expression: str) -> ast.expr:
    text, form_hint = expression.translate(_SAME).strip(), TEXTS.run_text("form_hint")
    if not text:
        raise TEXTS.error("empty_expression", "syntax", hint=form_hint)
    if len(text) > MAX_CHARS:
        in_parts = TEXTS.run_text("in_parts_hint")
        raise TEXTS.error("long_expression", "too_large", hint=in_parts, size=len(text), limit=MAX_CHARS)
    if '"' in text or "'" in text:
        raise _not_allowed("text")
    if _KEYWORD_AFTER_DIGIT.search(text):
        raise _not_allowed("word")
    try:
        return ast.parse(text, mode="eval").body
    except (RecursionError, MemoryError):
        raise TEXTS.error("deep_expression", "too_large", hint=TEXTS.run_text("in_parts_hint")) from None
    except (SyntaxError, ValueError) as error:
        reason = TEXTS.run_text("unclosed" if _BRACKETS.search(str(error)) else "unparsable")
        raise TEXTS.error("no_expression", "syntax", hint=form_hint, text=text[:80], reason=reason) from None


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
        raise _not_allowed("constant", value=str(value)[:40])
    return _bounded(value)


def _apply(operator: str, compute: Callable[[_Number, _Number], object], first: _Number, second: _Number) -> _Number:
    if isinstance(first, int) and isinstance(second, int):
        if operator == "*" and first.bit_length() + second.bit_length() > MAX_BITS + 1:
            raise _too_large("product")
        if operator == "**" and second > 1 and abs(first) > 1 and (first.bit_length() - 1) * second >= MAX_BITS:
            raise _too_large("power")
    try:
        return _bounded(compute(first, second))
    except ZeroDivisionError:
        operands: dict[str, Any] = {"first": _short(first), "operator": operator, "second": _short(second)}
        raise TEXTS.error("division_by_zero", "division_by_zero", **operands) from None
    except OverflowError:
        raise _too_large("value") from None


def _bounded(value: object) -> _Number:
    if isinstance(value, complex):
        raise TEXTS.error("complex_result", "complex_result")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _too_large("value")
        return value
    if not isinstance(value, int) or value.bit_length() > MAX_BITS:
        raise _too_large("value")
    return value


def _short(value: _Number) -> str:
    text = str(value)
    return text if len(text) <= 24 else TEXTS.run_text("short_number", start=text[:10], size=len(text))


def _refusal(node: ast.AST) -> ToolError:
    part = node.op if isinstance(node, ast.BinOp | ast.UnaryOp) else node
    name = next((name for kinds, name in _NOT_ALLOWED if isinstance(part, kinds)), "syntax")
    return _not_allowed(name, kind=type(part).__name__.lower())


def _not_allowed(part: str, **values: str) -> ToolError:
    """The error for a part of an expression, by the name of its text; what to do is the hint of that text, if any."""
    hint = TEXTS.run_text(f"{part}_hint" if f"{part}_hint" in TEXTS else "form_hint")
    return TEXTS.error("not_allowed", "not_allowed", hint=hint, part=TEXTS.run_text(part, **values))


def _too_large(part: str) -> ToolError:
    return TEXTS.error("large_result", "too_large", part=TEXTS.run_text(part), bits=MAX_BITS)
