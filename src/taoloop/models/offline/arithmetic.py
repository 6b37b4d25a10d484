"""Reads arithmetic in words and signs of both languages: numbers, questions to tools, and earlier results.

Between two operators is a number, a reference such as "it", or a question to a tool; anything else makes the whole
clause unclear. So does what people read in two ways ("the sum of 3 and 4 times 2").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import pairwise

from taoloop.models.offline.task_values import Token
from taoloop.models.offline.tool_match import Match, Profile

_SIGNS = {"+": "+", "-": "-", "*": "*", "×": "*", "/": "/", "÷": "/", "^": "**", "**": "**"}
#: How strongly an operator binds.
_LEVEL = {"+": 0, "-": 0, "*": 1, "/": 1, "**": 2}
_POWER = 2
_CONNECTORS = {"+": "to", "-": "from", "*": "by", "/": "by"}
_OPENING, _CLOSING = ("(", "（"), (")", "）")
_EDGES = {"stop", "ask", "polite", "first", "take", "by"}
_ANY_NAME = {"number", "value"}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_DEEPEST, _MOST_TOKENS = 20, 200


@dataclass(frozen=True)
class Number:
    """A number as its digits."""

    #: As it is written in an expression.
    digits: str


@dataclass(frozen=True)
class Earlier:
    """The result of an earlier step."""

    #: The number of the step, from 0.
    index: int
    #: The concepts that stand for it: after "Count the words", "the count" is the result.
    names: frozenset[str]


@dataclass(frozen=True)
class Question:
    """A call of a tool."""

    #: The tool and its arguments.
    match: Match
    #: The question in the words of the task.
    what: str


@dataclass(frozen=True)
class Operation:
    """Two nodes joined by `+`, `-`, `*`, `/` or `**`."""

    #: The operator.
    sign: str
    #: Its left operand.
    left: Node
    #: Its right operand.
    right: Node


Node = Number | Earlier | Question | Operation


class Unclear(Exception):
    """A clause, or a part of it, is no arithmetic that could be computed."""


def parse_arithmetic(
    tokens: Sequence[Token], ask: Callable[[Sequence[Token]], Node], earlier: Earlier | None
) -> Operation:
    """The arithmetic of one clause; `ask` makes a question of the tokens between operators.

    Raises:
        Unclear: the clause is no arithmetic, or leaves something open.
    """
    node = _Parser(ask, earlier).clause(_trimmed(tokens[:_MOST_TOKENS]))
    if not isinstance(node, Operation) or len(tokens) > _MOST_TOKENS:
        raise Unclear
    return node


def render(node: Node) -> str:
    """An operation on numbers as an expression."""
    if isinstance(node, Number):
        return f"({node.digits})" if node.digits.startswith("-") else node.digits
    if not isinstance(node, Operation):
        raise TypeError(node)
    left, right = render(node.left), render(node.right)
    if isinstance(node.left, Operation) and (_LEVEL[node.left.sign] < _LEVEL[node.sign] or node.sign == "**"):
        left = f"({left})"
    if isinstance(node.right, Operation) and _LEVEL[node.right.sign] <= _LEVEL[node.sign]:
        right = f"({right})"
    return f"{left}**{right}" if node.sign == "**" else f"{left} {node.sign} {right}"


def questions(node: Node) -> Iterator[Question]:
    """The questions in a node, from left to right."""
    if isinstance(node, Question):
        yield node
    elif isinstance(node, Operation):
        yield from (*questions(node.left), *questions(node.right))


def find_calculator(profiles: Sequence[Profile]) -> tuple[Profile, str] | None:
    """The tool that takes an expression, and the name of that argument."""
    for profile in profiles:
        needed = [parameter for parameter in profile.parameters if parameter.required]
        takes_text = profile.card.reads_only and len(needed) == 1 and "string" in needed[0].types
        if takes_text and (needed[0].role == "expression" or "@calc" in profile.name_words):
            return profile, needed[0].name
    return None


def number_digits(text: str) -> str | None:
    """The digits of a text that is one number; `16.0` is 16."""
    return re.sub(r"\.0+$", "", text) if _NUMBER.fullmatch(text) else None


class _Parser:
    """Reads one clause by recursive descent; every method takes all tokens of its part."""

    def __init__(self, ask: Callable[[Sequence[Token]], Node], earlier: Earlier | None) -> None:
        self._ask, self._earlier, self._depth = ask, earlier, 0
        self._names = (earlier.names if earlier is not None else frozenset()) | _ANY_NAME

    def clause(self, tokens: Sequence[Token]) -> Node:
        """A command ("add 2 to it"), the rest of an expression ("plus 2"), a list, or an expression."""
        if not tokens:
            raise Unclear
        kind = tokens[0].kind
        if kind.startswith("verb"):
            return self._command(kind.removeprefix("verb"), tokens[1:])
        if tokens[-1].kind.startswith("all"):  # 2 和 3 相加
            return self._fold(tokens[-1].kind.removeprefix("all"), tokens[:-1])
        is_negative = tokens[0].text == "-" and len(tokens) > 1 and tokens[1].kind == "number"
        if _infix(tokens[0]) and not is_negative:
            tokens = [Token("ref", "", "", tokens[0].start, tokens[0].start), *tokens]
        return self.expression(tokens)

    def expression(self, tokens: Sequence[Token]) -> Node:
        """Operands joined by operators, the weakest operators first."""
        self._depth += 1
        tokens = _trimmed(tokens)
        if self._depth > _DEEPEST or not tokens:
            raise Unclear
        if tokens[0].kind.startswith("all"):
            return self._fold(tokens[0].kind.removeprefix("all"), tokens[1:])
        return self._level(tokens, 0)

    def _level(self, tokens: Sequence[Token], level: int) -> Node:
        if level > _POWER:
            return self._changed(tokens)
        indices = _operators(tokens, level)
        if not indices:
            return self._level(tokens, level + 1)
        index = indices[0] if level == _POWER else indices[-1]  # powers are read from right to left
        left, right = tokens[:index], tokens[index + 1 :]
        if level == _POWER and left[0].text == "-":  # -2 ** 2 is read in two ways
            raise Unclear
        sides = (level + 1, level) if level == _POWER else (level, level + 1)
        return Operation(_infix(tokens[index]), self._level(left, sides[0]), self._level(right, sides[1]))

    def _changed(self, tokens: Sequence[Token]) -> Node:
        """An operand with what is done to it: squared, 的平方, 的 3 次方, or a function before it."""
        operand = _trimmed(tokens)
        if not operand:
            raise Unclear
        first, last = operand[0], operand[-1]
        if last.kind == "post**" and len(operand) > 2 and operand[-2].kind == "number":
            return Operation("**", self._changed(operand[:-2]), Number(operand[-2].value))
        for kind, token, rest in (("post", last, operand[:-1]), ("pre", first, operand[1:])):
            if match := re.fullmatch(rf"{kind}(\*\*|[*/])([\d.]+)", token.kind):
                return Operation(match[1], self._changed(rest), Number(match[2]))
        return self._operand(operand, tokens)

    def _operand(self, tokens: Sequence[Token], question: Sequence[Token]) -> Node:
        first, rest = tokens[0], tokens[1:]
        words = [token for token in tokens if token.kind not in _EDGES]
        if first.kind == "number" and not rest:
            return Number(first.value)
        if first.text == "-" and len(rest) == 1 and rest[0].kind == "number":
            return Number(f"-{rest[0].value}")
        if first.text in _OPENING and tokens[-1].text in _CLOSING:
            return self.expression(tokens[1:-1])
        if first.kind == "number" and [token.value for token in rest[:2]] == ["%", "of"]:
            return Operation("*", Number(f"{Decimal(first.value) / 100:f}"), self._changed(rest[2:]))
        if len(words) == 1 and (words[0].kind == "ref" or (self._earlier and words[0].concept in self._names)):
            return self._refer()
        return self._ask(question)

    def _command(self, sign: str, tokens: Sequence[Token]) -> Node:
        if sign == "**":
            return Operation("**", self._changed(tokens), Number("2"))
        indices = [index for index, token in _top_level(tokens) if token.kind == _CONNECTORS[sign]]
        if not indices:
            if sign in "+*" and self._earlier is None:
                return self._fold(sign, tokens)
            return Operation(sign, self._refer(), self._item(tokens))
        left, right = tokens[: indices[0]], tokens[indices[0] + 1 :]
        first = self._item(left) if _trimmed(left) else self._refer()
        second = self._item(right)
        return Operation(sign, second, first) if sign in "+-" else Operation(sign, first, second)

    def _fold(self, sign: str, tokens: Sequence[Token]) -> Node:
        """Items of a list joined by one sign."""
        cuts = [index for index, token in _top_level(tokens) if token.kind in ("and", "comma")]
        parts = [tokens[start + 1 : end] for start, end in pairwise((-1, *cuts, len(tokens)))]
        items = [self._item(part) for part in parts if part]
        if len(items) < 2:
            raise Unclear
        return reduce(lambda left, right: Operation(sign, left, right), items)

    def _item(self, tokens: Sequence[Token]) -> Node:
        """An operand of a command or a list. With an operator in it, it could be read in two ways."""
        if any(index and (_infix(token) or token.kind.startswith("all")) for index, token in _top_level(tokens)):
            raise Unclear
        return self.expression(tokens)

    def _refer(self) -> Node:
        if self._earlier is None:
            raise Unclear
        return self._earlier


def _infix(token: Token) -> str:
    """The sign of an operator between two operands, or an empty text."""
    return token.kind[2:] if token.kind.startswith("op") else _SIGNS.get(token.text, "") if token.kind == "sign" else ""


def _operators(tokens: Sequence[Token], level: int) -> list[int]:
    """Where operators join two operands; a minus behind another operator is the sign of a number."""
    indices = [index for index, token in _top_level(tokens) if index and _LEVEL.get(_infix(token)) == level]
    return [index for index in indices if not _infix(tokens[index - 1])]


def _top_level(tokens: Sequence[Token]) -> list[tuple[int, Token]]:
    """The tokens outside brackets, with their indices.

    Raises:
        Unclear: the brackets do not match.
    """
    depth, outside = 0, []
    for index, token in enumerate(tokens):
        if token.text in _CLOSING:
            depth -= 1
        elif depth == 0:
            outside.append((index, token))
        depth += token.text in _OPENING
        if depth < 0:
            raise Unclear
    if depth:
        raise Unclear
    return outside


def _trimmed(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without words at either end that say nothing ("What is … now?")."""
    start, end = 0, len(tokens)
    while start < end and (tokens[start].kind in _EDGES or tokens[start].concept in ("@look", "@calc")):
        start += 1
    while end > start and (tokens[end - 1].kind in ("stop", "ask", "polite") or tokens[end - 1].text == "="):
        end -= 1
    return tokens[start:end]
