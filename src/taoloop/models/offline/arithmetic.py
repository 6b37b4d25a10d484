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
from taoloop.models.offline.tool_match import Profile, ToolMatch

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

    digits: str
    """As it is written in an expression."""


@dataclass(frozen=True)
class Earlier:
    """The result of an earlier step."""

    index: int
    """The number of the step, from 0."""
    names: frozenset[str]
    """The concepts that stand for it: after "Count the words", "the count" is the result."""


@dataclass(frozen=True)
class Question:
    """A call of a tool."""

    match: ToolMatch
    """The tool and its arguments."""
    text: str
    """The question in the words of the task."""


@dataclass(frozen=True)
class ArithmeticOperation:
    """Two nodes joined by `+`, `-`, `*`, `/` or `**`."""

    operator: str
    """The operator."""
    first: Node
    """Its left operand."""
    second: Node
    """Its right operand."""


Node = Number | Earlier | Question | ArithmeticOperation


class Unclear(Exception):
    """A clause, or a part of it, is no arithmetic that could be computed."""


def parse_arithmetic(
    tokens: Sequence[Token], ask: Callable[[Sequence[Token]], Node], earlier: Earlier | None
) -> ArithmeticOperation:
    """The arithmetic of one clause; `ask` makes a question of the tokens between operators.

    Raises:
        Unclear: the clause is no arithmetic, or leaves something open.
    """
    node = _Parser(ask, earlier).parse_clause(_trim(tokens[:_MOST_TOKENS]))
    if not isinstance(node, ArithmeticOperation) or len(tokens) > _MOST_TOKENS:
        raise Unclear
    return node


def render(node: Node) -> str:
    """An operation on numbers as an expression."""
    if isinstance(node, Number):
        return f"({node.digits})" if node.digits.startswith("-") else node.digits
    if not isinstance(node, ArithmeticOperation):
        raise TypeError(node)
    is_power = node.operator == "**"
    first, second = render(node.first), render(node.second)
    if isinstance(node.first, ArithmeticOperation) and (
        _LEVEL[node.first.operator] < _LEVEL[node.operator] or is_power
    ):
        first = f"({first})"
    if isinstance(node.second, ArithmeticOperation) and _LEVEL[node.second.operator] <= _LEVEL[node.operator]:
        second = f"({second})"
    return f"{first}**{second}" if is_power else f"{first} {node.operator} {second}"


def iter_questions(node: Node) -> Iterator[Question]:
    """The questions in a node, from left to right."""
    if isinstance(node, Question):
        yield node
    elif isinstance(node, ArithmeticOperation):
        yield from (*iter_questions(node.first), *iter_questions(node.second))


def find_calculator(profiles: Sequence[Profile]) -> tuple[Profile, str] | None:
    """The tool that takes an expression, and the name of that argument."""
    for profile in profiles:
        needed = [parameter for parameter in profile.parameters if parameter.required]
        takes_text = profile.card.reads_only and len(needed) == 1 and "string" in needed[0].types
        if takes_text and (needed[0].role == "expression" or "@calc" in profile.name_words):
            return profile, needed[0].name
    return None


def parse_number(text: str) -> str | None:
    """The digits of a text that is one number; `16.0` is 16."""
    return re.sub(r"\.0+$", "", text) if _NUMBER.fullmatch(text) else None


class _Parser:
    """Reads one clause by recursive descent; every method takes all tokens of its part."""

    def __init__(self, ask: Callable[[Sequence[Token]], Node], earlier: Earlier | None) -> None:
        self._ask, self._earlier, self._depth = ask, earlier, 0
        self._names = (earlier.names if earlier is not None else frozenset()) | _ANY_NAME

    def parse_clause(self, tokens: Sequence[Token]) -> Node:
        """A command ("add 2 to it"), the rest of an expression ("plus 2"), a list, or an expression."""
        if not tokens:
            raise Unclear
        kind = tokens[0].kind
        if kind.startswith("verb"):
            return self._parse_command(kind.removeprefix("verb"), tokens[1:])
        if tokens[-1].kind.startswith("all"):  # 2 和 3 相加
            return self._parse_list(tokens[-1].kind.removeprefix("all"), tokens[:-1])
        is_negative = tokens[0].text == "-" and len(tokens) > 1 and tokens[1].kind == "number"
        if _operator_sign(tokens[0]) and not is_negative:
            tokens = [Token("ref", "", "", tokens[0].start, tokens[0].start), *tokens]
        return self.parse_expression(tokens)

    def parse_expression(self, tokens: Sequence[Token]) -> Node:
        """Operands joined by operators, the weakest operators first."""
        self._depth += 1
        tokens = _trim(tokens)
        if self._depth > _DEEPEST or not tokens:
            raise Unclear
        if tokens[0].kind.startswith("all"):
            return self._parse_list(tokens[0].kind.removeprefix("all"), tokens[1:])
        return self._parse_level(tokens, 0)

    def _parse_level(self, tokens: Sequence[Token], level: int) -> Node:
        if level > _POWER:
            return self._parse_function(tokens)
        indices = _find_operators(tokens, level)
        if not indices:
            return self._parse_level(tokens, level + 1)
        index = indices[0] if level == _POWER else indices[-1]  # powers are read from right to left
        first, second = tokens[:index], tokens[index + 1 :]
        if level == _POWER and first[0].text == "-":  # -2 ** 2 is read in two ways
            raise Unclear
        sides = (level + 1, level) if level == _POWER else (level, level + 1)
        return ArithmeticOperation(
            _operator_sign(tokens[index]), self._parse_level(first, sides[0]), self._parse_level(second, sides[1])
        )

    def _parse_function(self, tokens: Sequence[Token]) -> Node:
        """An operand with what is done to it: squared, 的平方, 的 3 次方, or a function before it."""
        operand = _trim(tokens)
        if not operand:
            raise Unclear
        first, last = operand[0], operand[-1]
        if last.kind == "post**" and len(operand) > 2 and operand[-2].kind == "number":
            return ArithmeticOperation("**", self._parse_function(operand[:-2]), Number(operand[-2].value))
        for kind, token, rest in (("post", last, operand[:-1]), ("pre", first, operand[1:])):
            if match := re.fullmatch(rf"{kind}(\*\*|[*/])([\d.]+)", token.kind):
                return ArithmeticOperation(match[1], self._parse_function(rest), Number(match[2]))
        return self._parse_operand(operand, tokens)

    def _parse_operand(self, tokens: Sequence[Token], question: Sequence[Token]) -> Node:
        first, rest = tokens[0], tokens[1:]
        words = [token for token in tokens if token.kind not in _EDGES]
        if first.kind == "number" and not rest:
            return Number(first.value)
        if first.text == "-" and len(rest) == 1 and rest[0].kind == "number":
            return Number(f"-{rest[0].value}")
        if first.text in _OPENING and tokens[-1].text in _CLOSING:
            return self.parse_expression(tokens[1:-1])
        if first.kind == "number" and [token.value for token in rest[:2]] == ["%", "of"]:
            return ArithmeticOperation("*", Number(f"{Decimal(first.value) / 100:f}"), self._parse_function(rest[2:]))
        if len(words) == 1 and (words[0].kind == "ref" or (self._earlier and words[0].concept in self._names)):
            return self._earlier_result()
        return self._ask(question)

    def _parse_command(self, operator: str, tokens: Sequence[Token]) -> Node:
        if operator == "**":
            return ArithmeticOperation("**", self._parse_function(tokens), Number("2"))
        indices = [index for index, token in _outside_brackets(tokens) if token.kind == _CONNECTORS[operator]]
        if not indices:
            if operator in "+*" and self._earlier is None:
                return self._parse_list(operator, tokens)
            return ArithmeticOperation(operator, self._earlier_result(), self._parse_item(tokens))
        before, after = tokens[: indices[0]], tokens[indices[0] + 1 :]
        first = self._parse_item(before) if _trim(before) else self._earlier_result()
        second = self._parse_item(after)
        return (
            ArithmeticOperation(operator, second, first)
            if operator in "+-"
            else ArithmeticOperation(operator, first, second)
        )

    def _parse_list(self, operator: str, tokens: Sequence[Token]) -> Node:
        """Items of a list joined by one sign."""
        cuts = [index for index, token in _outside_brackets(tokens) if token.kind in ("and", "comma")]
        parts = [tokens[start + 1 : end] for start, end in pairwise((-1, *cuts, len(tokens)))]
        items = [self._parse_item(part) for part in parts if part]
        if len(items) < 2:
            raise Unclear
        return reduce(lambda first, second: ArithmeticOperation(operator, first, second), items)

    def _parse_item(self, tokens: Sequence[Token]) -> Node:
        """An operand of a command or a list. With an operator in it, it could be read in two ways."""
        inner = [token for index, token in _outside_brackets(tokens) if index]
        if any(_operator_sign(token) or token.kind.startswith("all") for token in inner):
            raise Unclear
        return self.parse_expression(tokens)

    def _earlier_result(self) -> Node:
        if self._earlier is None:
            raise Unclear
        return self._earlier


def _operator_sign(token: Token) -> str:
    """The sign of an operator between two operands, or an empty text."""
    return token.kind[2:] if token.kind.startswith("op") else _SIGNS.get(token.text, "") if token.kind == "sign" else ""


def _find_operators(tokens: Sequence[Token], level: int) -> list[int]:
    """Where operators join two operands; a minus behind another operator is the sign of a number."""
    levels = ((index, _LEVEL.get(_operator_sign(token))) for index, token in _outside_brackets(tokens) if index)
    return [index for index, own in levels if own == level and not _operator_sign(tokens[index - 1])]


def _outside_brackets(tokens: Sequence[Token]) -> list[tuple[int, Token]]:
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


def _trim(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without words at either end that say nothing ("What is … now?")."""
    start, end = 0, len(tokens)
    while start < end and (tokens[start].kind in _EDGES or tokens[start].concept in ("@look", "@calc")):
        start += 1
    while end > start and (tokens[end - 1].kind in ("stop", "ask", "polite", "first") or tokens[end - 1].text == "="):
        end -= 1
    return tokens[start:end]
