"""Arithmetic in words and signs of both languages; what could be read in two ways is not read at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.models.offline.toolset import card

from taoloop.models.offline.arithmetic import (
    ArithmeticOperation,
    Earlier,
    Node,
    Number,
    Unclear,
    find_calculator,
    parse_arithmetic,
    parse_number,
    render,
)
from taoloop.models.offline.task_values import Token, tokenize
from taoloop.models.offline.tool_match import Profile


def _read(text: str, *, has_earlier: bool = False) -> str:
    """A clause as an expression, in which `100` is the answer to "the hour" and `7` the earlier result."""

    def ask(tokens: Sequence[Token]) -> Node:
        if [token.text for token in tokens if token.kind != "stop"] not in (["hour"], ["小时数"]):
            raise Unclear
        return Number("100")

    node = parse_arithmetic(tokenize(text), ask, Earlier(0, frozenset({"@count"})) if has_earlier else None)
    return render(_known(node))


def _known(node: Node) -> Node:
    if isinstance(node, Earlier):
        return Number("7")
    if isinstance(node, ArithmeticOperation):
        return ArithmeticOperation(node.operator, _known(node.first), _known(node.second))
    return node


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("What is 2 + 3 * 4", "2 + 3 * 4"),
        ("12*(3+4)", "12 * (3 + 4)"),
        ("10 - 3 - 2", "10 - 3 - 2"),
        ("10 - (3 - 2)", "10 - (3 - 2)"),
        ("8 ÷ 4 × 2", "8 / 4 * 2"),
        ("8 / (4 / 2)", "8 / (4 / 2)"),
        ("2 ** 3 ** 2", "2**(3**2)"),
        ("(2 + 3) ^ 2", "(2 + 3)**2"),
        ("2 * -3", "2 * (-3)"),
        ("-3 + 5", "(-3) + 5"),
        ("17 times 23", "17 * 23"),
        ("1,000 divided by 8 =", "1000 / 8"),
        ("2 to the power of 10", "2**10"),
        ("3.5 squared plus the hour", "3.5**2 + 100"),
        ("the square of 3.5 plus the hour now", "3.5**2 + 100"),
        ("square root of 16", "16**0.5"),
        ("half of 90", "90 / 2"),
        ("double 4", "4 * 2"),
        ("25% of 80", "0.25 * 80"),
        ("the sum of 3, 4 and 5", "3 + 4 + 5"),
        ("the product of 3 and the hour", "3 * 100"),
        ("add 2 and 3", "2 + 3"),
        ("add 2 to 3", "3 + 2"),
        ("subtract 5 from 20", "20 - 5"),
        ("multiply 6 by 7", "6 * 7"),
        ("square 4", "4**2"),
        ("3.5 的平方加上小时数是多少", "3.5**2 + 100"),
        ("2 的 10 次方", "2**10"),
        ("把 6 和 7 相乘", "6 * 7"),
        ("3 和 4 之和", "3 + 4"),
        ("100 除以 8 等于多少", "100 / 8"),
        ("（1 + 2）乘以 3", "(1 + 2) * 3"),
    ],
)
def test_what_is_read(text: str, expression: str) -> None:
    assert _read(text) == expression


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("plus 2", "7 + 2"),
        ("add 2", "7 + 2"),
        ("add 2 to it", "7 + 2"),
        ("multiply it by 4", "7 * 4"),
        ("multiply by 4", "7 * 4"),
        ("divide the result by 2", "7 / 2"),
        ("subtract 5", "7 - 5"),
        ("square it", "7**2"),
        ("multiply the count by 7", "7 * 7"),
        ("2 times the number", "2 * 7"),
        ("加上小时数", "7 + 100"),
        ("乘以 7", "7 * 7"),
        ("times 3 plus 2", "7 * 3 + 2"),
    ],
)
def test_an_earlier_result_is_referred_to(text: str, expression: str) -> None:
    assert _read(text, has_earlier=True) == expression
    if not text.startswith(("2 times", "square")):
        with pytest.raises(Unclear):
            _read(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "the hour",
        "2 +",
        "* ",
        "2 3",
        "2 + 3 people",
        "2 + 3!",
        "5 % 3",
        "17 mod 5",
        "(1 + 2)(3 + 4)",
        "(1 + 2",
        "1 + 2)",
        "-2 ** 2",
        "2 + the day",
        "the sum of 3 and 4 times 2",
        "the sum of 3",
        "multiply 2 by 3 plus 4",
        "multiply 2 by the sum of 3 and 4",
        "square 3 plus 4",
        "3 twice",
        "2 + 2 = 5",
        "2 plus 3 and 4",
        "3 加",
        "三 加 2",
        "1 + " * 500 + "1",
        "(" * 50 + "1 + 2" + ")" * 50,
    ],
)
def test_what_is_unclear(text: str) -> None:
    with pytest.raises(Unclear):
        _read(text)


@pytest.mark.parametrize("text", ["multiply the price by 2", "add 2 and 3", "multiply by 2 plus 1"])
def test_what_is_unclear_after_a_result(text: str) -> None:
    with pytest.raises(Unclear):
        _read(text, has_earlier=True)


@pytest.mark.parametrize(
    ("text", "digits"),
    [("16", "16"), ("16.0", "16"), ("-0.5", "-0.5"), ("1e-05", "1e-05"), ("16 km", None), ("nan", None)],
)
def test_the_digits_of_a_number(text: str, digits: str | None) -> None:
    assert parse_number(text) == digits


def test_the_calculator_is_known_by_its_argument() -> None:
    found = find_calculator([Profile(card(name)) for name in ("get_weather", "add", "calculator")])
    assert found is not None
    assert (found[0].card.name, found[1]) == ("calculator", "expression")
    assert find_calculator([Profile(card("add"))]) is None
