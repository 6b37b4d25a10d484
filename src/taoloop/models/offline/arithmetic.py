"""Reads arithmetic in words and signs of both languages: numbers, questions to tools, and earlier results.

What stands between two operators is a number, a reference such as "it", or a question to a tool; anything that is none of
these makes the whole clause unclear. So does what people read in two ways ("the sum of 3 and 4 times 2").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from taoloop.models.offline.task_values import Token
from taoloop.models.offline.tool_match import Match, Profile

_SIGNS = {"+": "+", "-": "-", "*": "*", "×": "*", "/": "/", "÷": "/", "^": "**", "**": "**"}
_LEVELS = (("+", "-"), ("*", "/"), ("**",))
_CONNECTORS = {"+": ("to",), "-": ("from",), "*": ("by",), "/": ("by",)}
_CLOSING = frozenset({")", "）"})
_EDGES = frozenset("stop polite first take by".split())
_TOTALS = frozenset("number value total sum amount product @count @price".split())
_OPERATIONS = {
    "+": "add plus sum addition", "-": "subtract minus", "*": "multiply times product", "/": "divide", "**": "power pow",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_MOST_DEEP = 20


@dataclass(frozen=True)
class Number:
    """A number as its digits."""

    digits: str


@dataclass(frozen=True)
class Earlier:
    """The result of an earlier step."""

    index: int


@dataclass(frozen=True)
class Question:
    """A call of a tool whose result is one number."""

    match: Match
    what: str
    """The question in the words of the task."""


@dataclass(frozen=True)
class Operation:
    """Two nodes joined by `+`, `-`, `*`, `/` or `**`."""

    sign: str
    left: Node
    right: Node


Node = Number | Earlier | Question | Operation


class Unclear(Exception):
    """A clause, or a part of it, is no arithmetic that could be computed."""


def parse_arithmetic(
    tokens: Sequence[Token], ask: Callable[[Sequence[Token]], Node], *, earlier: Node | None, names: frozenset[str]
) -> Operation:
    """The arithmetic of one clause. `ask` makes a question of the tokens between operators; `earlier` is the result of
    the step before, which `names` (concepts) speak of.

    Raises:
        Unclear: the clause is no arithmetic, or leaves something open.
    """
    node = _Parser(ask, earlier, names | _TOTALS).clause(_trimmed(tokens))
    if not isinstance(node, Operation):
        raise Unclear
    return node


def render(node: Node) -> str:
    """An operation on numbers as an expression."""
    if not isinstance(node, Operation):
        assert isinstance(node, Number)
        return f"({node.digits})" if node.digits.startswith("-") else node.digits
    level = _level(node.sign)
    left, right = render(node.left), render(node.right)
    if isinstance(node.left, Operation) and (_level(node.left.sign) < level or node.sign == "**"):
        left = f"({left})"
    if isinstance(node.right, Operation) and _level(node.right.sign) <= level:
        right = f"({right})"
    return f"{left}**{right}" if node.sign == "**" else f"{left} {node.sign} {right}"


def has_question(node: Node) -> bool:
    """Whether a node asks a tool."""
    if isinstance(node, Operation):
        return has_question(node.left) or has_question(node.right)
    return isinstance(node, Question)


@dataclass(frozen=True)
class Calculator:
    """What the tools can compute."""

    profiles: Sequence[Profile]

    def can(self, node: Node) -> bool:
        """Whether every operation of a node can be computed."""
        if not isinstance(node, Operation):
            return True
        own = self._expression_tool() is not None or self._operation_tool(node.sign) is not None
        return own and self.can(node.left) and self.can(node.right)

    @property
    def takes_expressions(self) -> bool:
        """Whether one call can compute several operations."""
        return self._expression_tool() is not None

    def call(self, node: Operation) -> tuple[Profile, dict[str, Any]]:
        """The call that computes an operation on numbers."""
        if (found := self._expression_tool()) is not None:
            profile, name = found
            return profile, {name: render(node)}
        tool = self._operation_tool(node.sign)
        assert tool is not None
        sides = (node.left, node.right)
        values = [_typed(side.digits) for side in sides if isinstance(side, Number)]
        needed = (parameter.name for parameter in tool.parameters if parameter.required)
        return tool, dict(zip(needed, values, strict=True))

    def _expression_tool(self) -> tuple[Profile, str] | None:
        for profile in self.profiles:
            needed = [parameter for parameter in profile.parameters if parameter.required]
            if profile.card.reads_only and len(needed) == 1 and "string" in needed[0].types:
                if needed[0].role == "expression" or "@calc" in profile.name_words:
                    return profile, needed[0].name
        return None

    def _operation_tool(self, sign: str) -> Profile | None:
        for profile in self.profiles:
            needed = [parameter for parameter in profile.parameters if parameter.required]
            numbers = len(needed) == 2 and all(parameter.is_number for parameter in needed)
            if numbers and profile.card.reads_only and profile.card.name.lower() in _OPERATIONS[sign].split():
                return profile
        return None


def number_digits(text: str) -> str | None:
    """The digits of a text that is one number; `16.0` is 16."""
    if not _NUMBER.fullmatch(text.strip()):
        return None
    return re.sub(r"\.0+$", "", text.strip())


class _Parser:
    """Reads one clause by recursive descent; every method takes all tokens of its part."""

    def __init__(self, ask: Callable[[Sequence[Token]], Node], earlier: Node | None, names: frozenset[str]) -> None:
        self._ask, self._earlier, self._names = ask, earlier, names
        self._depth = 0

    def clause(self, tokens: Sequence[Token]) -> Node:
        """A command ("add 2 to it"), the rest of an expression ("plus 2"), a list ("the sum of 2 and 3"), or an expression."""
        if not tokens:
            raise Unclear
        kind = tokens[0].kind
        if kind.startswith("verb"):
            return self._command(kind[4:], tokens[1:])
        if tokens[-1].kind.startswith("all") and len(tokens) > 2:  # 2 和 3 相加
            return self._fold(tokens[-1].kind[3:], tokens[:-1])
        if _infix(tokens[0]) and not (tokens[0].text == "-" and len(tokens) > 1 and tokens[1].kind == "number"):
            return self.expression([Token("ref", "", "", tokens[0].start, tokens[0].start), *tokens])
        return self.expression(tokens)

    def expression(self, tokens: Sequence[Token]) -> Node:
        """Operands joined by operators, the weakest operators first."""
        self._depth += 1
        tokens = _trimmed(tokens)
        if self._depth > _MOST_DEEP or not tokens:
            raise Unclear
        if tokens[0].kind.startswith("all"):
            node = self._fold(tokens[0].kind[3:], tokens[1:])
        else:
            node = self._level(tokens, 0)
        self._depth -= 1
        return node

    def _level(self, tokens: Sequence[Token], level: int) -> Node:
        if level == len(_LEVELS):
            return self._postfixed(tokens)
        is_power = level == len(_LEVELS) - 1
        places = _operators(tokens, _LEVELS[level])
        if not places:
            return self._level(tokens, level + 1)
        if is_power:
            left, right = tokens[: places[0]], tokens[places[0] + 1 :]
            if left[0].text == "-":  # -2 ** 2 is read in two ways
                raise Unclear
            return Operation("**", self._postfixed(left), self._level(right, level))
        left, right = tokens[: places[-1]], tokens[places[-1] + 1 :]
        return Operation(_infix(tokens[places[-1]]), self._level(left, level), self._level(right, level + 1))

    def _postfixed(self, tokens: Sequence[Token]) -> Node:
        """An operand with what is done to it: squared, 的平方, 的 3 次方, or a function before it."""
        tokens = _trimmed(tokens)
        if not tokens:
            raise Unclear
        last, first = tokens[-1], tokens[0]
        if last.kind == "postN" and len(tokens) > 2 and tokens[-2].kind == "number":
            return Operation("**", self._postfixed(tokens[:-2]), Number(tokens[-2].value))
        if last.kind.startswith("post"):
            return Operation("**", self._postfixed(tokens[:-1]), Number(last.kind[6:]))
        if first.kind.startswith("pre"):
            sign, digits = re.fullmatch(r"pre(\*\*|[*/])(.+)", first.kind).groups()  # type: ignore[union-attr]
            return Operation(sign, self._postfixed(tokens[1:]), Number(digits))
        return self._operand(tokens)

    def _operand(self, tokens: Sequence[Token]) -> Node:
        first, second = tokens[0], tokens[1] if len(tokens) > 1 else None
        if first.text == "-" and second is not None and second.kind == "number":
            inner = self._operand(tokens[1:])
            return Number(f"-{inner.digits}") if isinstance(inner, Number) else self._unclear()
        if first.text in "(（" and tokens[-1].text in _CLOSING:
            return self.expression(tokens[1:-1])
        if len(tokens) == 1 and first.kind == "number":
            return Number(first.value)
        if len(tokens) > 3 and (first.kind, tokens[1].text, tokens[2].value) == ("number", "%", "of"):
            return Operation("*", Number(f"{Decimal(first.value) / 100:f}"), self._postfixed(tokens[3:]))
        words = [token for token in tokens if token.kind not in _EDGES]
        if len(words) == 1 and (words[0].kind == "ref" or (words[0].concept in self._names and self._earlier)):
            return self._refer()
        return self._ask(tokens)

    def _command(self, sign: str, tokens: Sequence[Token]) -> Node:
        if sign == "**":
            return Operation("**", self.expression(tokens), Number("2"))
        places = [index for index, token in _top_level(tokens) if token.kind in _CONNECTORS[sign]]
        if not places:
            if sign in "+*" and self._earlier is None:
                return self._fold(sign, tokens)
            return Operation(sign, self._refer(), self.expression(tokens))
        left, right = tokens[: places[0]], tokens[places[0] + 1 :]
        first = self.expression(left) if _trimmed(left) else self._refer()
        second = self.expression(right)
        return Operation(sign, second, first) if sign in "+-" else Operation(sign, first, second)

    def _fold(self, sign: str, tokens: Sequence[Token]) -> Node:
        """Items of a list joined by one sign. An item that is itself an operation could be read in two ways."""
        cuts = [index for index, token in _top_level(tokens) if token.kind in ("and", "comma")]
        parts = [tokens[start + 1 : end] for start, end in pairwise((-1, *cuts, len(tokens)))]
        items = [self.expression(part) for part in parts if part]
        if len(items) < 2 or any(isinstance(item, Operation) and item.sign != "**" for item in items):
            raise Unclear
        node = items[0]
        for item in items[1:]:
            node = Operation(sign, node, item)
        return node

    def _refer(self) -> Node:
        return self._earlier or self._unclear()

    def _unclear(self) -> Node:
        raise Unclear


def _typed(digits: str) -> int | float:
    return int(digits) if re.fullmatch(r"-?\d+", digits) else float(digits)


def _level(sign: str) -> int:
    return next(index for index, signs in enumerate(_LEVELS) if sign in signs)


def _infix(token: Token) -> str:
    """The sign of an operator between two operands, or an empty text."""
    return token.kind[2:] if token.kind.startswith("op") else _SIGNS.get(token.text, "") if token.kind == "sign" else ""


def _operators(tokens: Sequence[Token], signs: Sequence[str]) -> list[int]:
    """Where these operators join two operands; a minus behind another operator is the sign of a number."""
    found = [index for index, token in _top_level(tokens) if index and _infix(token) in signs]
    return [index for index in found if not _infix(tokens[index - 1])]


def _top_level(tokens: Sequence[Token]) -> list[tuple[int, Token]]:
    """The tokens with their indices, those in brackets left out of the search for operators.

    Raises:
        Unclear: the brackets do not close.
    """
    depth, found = 0, []
    for index, token in enumerate(tokens):
        depth -= token.text in _CLOSING
        if depth == 0 and token.text not in _CLOSING:
            found.append((index, token))
        depth += token.text in ("(", "（")
        if depth < 0:
            raise Unclear
    if depth:
        raise Unclear
    return found


def _trimmed(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without words at either end that say nothing ("What is … now?")."""
    start, end = 0, len(tokens)
    while start < end and (tokens[start].kind in _EDGES or tokens[start].concept in ("@look", "@calc")):
        start += 1
    while end > start and (tokens[end - 1].kind in ("stop", "polite") or tokens[end - 1].text == "="):
        end -= 1
    return tokens[start:end]
