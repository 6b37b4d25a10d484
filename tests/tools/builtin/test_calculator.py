from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given, strategies as st

from taoloop.errors import InvalidArguments, ToolError
from taoloop.tools.builtin.calculator import calculator


def code_of(expression: str) -> str:
    with pytest.raises(ToolError) as caught:
        calculator(expression)
    assert caught.value.message
    return caught.value.code


def answer_or_code(expression: str) -> str:
    try:
        return calculator(expression)
    except ToolError as error:
        return error.code


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("3.5**2", "12.25"),
        ("10/4", "2.5"),
        ("6/2", "3.0"),
        ("(8 + 2) * 3", "30"),
        ("2**-1", "0.5"),
        ("２＋３×４", "14"),
        ("（８÷２）－１", "3.0"),
        ("1_000 + 1", "1001"),
        ("2**4095", str(2**4095)),
    ],
)
def test_arithmetic_is_answered_as_result(expression: str, answer: str) -> None:
    """S3-11, S3-13: the whitelisted arithmetic, as text."""
    assert calculator(expression) == f"result={answer}"


@pytest.mark.parametrize(
    "expression",
    [
        "abs(1)",
        "x",
        "os.system",
        "'a'*3",
        "[1]",
        "1 < 2",
        "1 if 1 else 2",
        "lambda: 1",
        "1<<99",
        "~1",
        "2^3",
        "1,000",
        "2j",
    ],
)
def test_everything_else_is_refused_in_words(expression: str) -> None:
    """S3-12: calls, names and constants that are no numbers."""
    assert code_of(expression) == "not_allowed"


@pytest.mark.parametrize(("expression", "sign"), [("17 % 5", "'%'"), ("17 // 5", "'//'"), ("2 ^ 3", r"'\^'")])
def test_a_sign_that_is_not_taken_is_shown(expression: str, sign: str) -> None:
    with pytest.raises(ToolError, match=sign):
        calculator(expression)


def test_the_card_promises_no_more_than_the_calculator_does() -> None:
    """S3-11: what it is for is what it takes."""
    assert "remainder" not in calculator.card.use_when
    assert "remainder" in calculator.card.avoid_when


@pytest.mark.parametrize("expression", ["True+1", "False", "None", "-True", "2**True"])
def test_booleans_are_no_numbers(expression: str) -> None:
    """S3-62: a bool is an int to Python, but not here."""
    assert code_of(expression) == "not_allowed"


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**6",
        "2**10**9",
        "2**4096",
        "(2**4000)*(2**4000)",
        "(10**400)*(10**400)*(10**400)*(10**400)",
        "2.0**5000",
        "1e308*10",
        "1e999",
        "(2**4000)**-1",
        "9" * 1001,
        "(" * 100_000,
    ],
)
def test_what_would_grow_without_bound_is_refused_before_it_is_computed(expression: str) -> None:
    """S3-63: exponent, size, infinity."""
    assert code_of(expression) == "too_large"


def test_complex_results_are_refused() -> None:
    """S3-63: no complex numbers."""
    assert code_of("(-8)**0.5") == "complex_result"


@pytest.mark.parametrize("expression", ["1/0", "0**-1", "1/(2-2)", "0.0**-2"])
def test_division_by_zero_has_its_own_code(expression: str) -> None:
    assert code_of(expression) == "division_by_zero"


@pytest.mark.parametrize(
    "expression", ["", "  ", "1+", "1;2", "x:=3", "1\0", "(" * 300, "0777", "\\", "1\n+2", "\ud800"]
)
def test_what_is_no_expression_is_a_syntax_error_in_words(expression: str) -> None:
    assert code_of(expression) == "syntax"


def test_a_missing_expression_is_named() -> None:
    """S3-14."""
    with pytest.raises(InvalidArguments, match="'expression' is missing"):
        calculator.prepare({})


def test_deep_nesting_is_answered_or_refused_but_never_raises_anything_else() -> None:
    assert calculator("-" * 998 + "1") == "result=1"
    assert calculator("1" + "+1" * 499) == "result=500"


@given(st.text(alphabet="0123456789+-*/%().eTrue _xjif<>~^,×（", max_size=40))
def test_any_text_is_answered_or_refused_with_a_code(text: str) -> None:
    """S3-13: nothing leaves as another exception, and Python prints no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer_or_code(text).startswith(("result=", *(one.code for one in calculator.card.errors)))


def _join(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sign = st.sampled_from(["+", "-", "*", "/"])
    power = st.tuples(parts, st.integers(0, 5)).map(lambda pair: f"({pair[0]})**{pair[1]}")
    return st.one_of(
        st.tuples(parts, sign, parts).map(lambda x: f"({x[0]} {x[1]} {x[2]})"), parts.map("-{}".format), power
    )


_LEAVES = st.one_of(st.integers(0, 99).map(str), st.floats(0, 99, allow_nan=False).map(repr))


@given(st.recursive(_LEAVES, _join, max_leaves=8))
def test_it_agrees_with_python(expression: str) -> None:
    try:
        expected = eval(expression)  # noqa: S307  # made above, of numbers only
    except (ZeroDivisionError, OverflowError):
        expected = None
    bounded = isinstance(expected, int | float) and math.isfinite(expected)
    answer = answer_or_code(expression)
    if bounded:
        assert answer in (f"result={expected}", "too_large")
    else:
        assert answer in ("too_large", "division_by_zero")
