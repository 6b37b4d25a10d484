"""Values say exactly what they are, and values of a statement are bound in each driver's way."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from taoloop.errors import ToolError
from taoloop.tools.sql.statements import bound, plain


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (2**80, 2**80),
        (0.1, 0.1),
        ("a", "a"),
        (Decimal("1.100"), "1.100"),
        (Decimal("1E+3"), "1000"),
        (Decimal("NaN"), "NaN"),
        (Decimal("1E+5000"), "1E+5000"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (time(3, 4), "03:04:00"),
        (timedelta(days=1, seconds=2.5), "P1DT2.5S"),
        (-timedelta(seconds=1), "-P0DT1S"),
        (b"\x00\xff", {"bytes": 2, "base64": "AP8="}),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"a": [Decimal(1)]}, {"a": ["1"]}),
        ("\ud800", "\ufffd"),
        ("x" * 30, {"text_start": "x" * 20, "chars": 30}),
        (b"x" * 30, {"bytes": 30, "base64_start": "eHh4eHh4eHh4eHh4eHh4"}),
        (range(300), {"items_start": list(range(200)), "items": 300}),
    ],
)
def test_a_value_is_shown_as_what_it_is(value: Any, shown: Any) -> None:
    assert plain(value, 20) == shown


@given(
    st.one_of(
        st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False), st.binary()
    )
)
def test_no_digit_and_no_byte_is_lost(value: Any) -> None:
    shown = json.loads(json.dumps(plain(value, 10_000)))
    if isinstance(value, Decimal):
        assert Decimal(shown) == value
    elif isinstance(value, bytes):
        assert base64.b64decode(shown["base64"]) == value
    else:
        assert shown == value


@pytest.mark.parametrize(
    ("style", "text", "values"),
    [
        ("qmark", "SELECT '%:a', ?, ?, x::int -- :a", (1, 1)),
        ("named", "SELECT '%:a', :a, :a, x::int -- :a", {"a": 1}),
        ("pyformat", "SELECT '%%:a', %(a)s, %(a)s, x::int -- :a", {"a": 1}),
        ("format", "SELECT '%%:a', %s, %s, x::int -- :a", (1, 1)),
        ("numeric_dollar", "SELECT '%:a', $1, $2, x::int -- :a", (1, 1)),
    ],
)
def test_names_are_bound_in_each_drivers_way(style: str, text: str, values: Any) -> None:
    assert bound("SELECT '%:a', :a, :a, x::int -- :a", {"a": 1}, style) == (text, values)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'it''s :a'",
        'SELECT ":a"',
        "SELECT `:a`",
        "/* :a */ SELECT 1",
        "SELECT $x$ :a $x$",
        "SELECT x::a",
        "b[1:a]",
    ],
)
def test_what_only_looks_like_a_name_is_none(statement: str) -> None:
    with pytest.raises(ToolError, match="no place"):
        bound(statement, {"a": 1}, "qmark")


@given(st.text(alphabet="':\"-/*$a%\n ", max_size=40))
def test_without_values_a_statement_goes_out_as_it_stands(statement: str) -> None:
    assert bound(statement, {}, "pyformat") == (statement, None)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'it\\'s :v'",
        "SELECT 1 # it's\n, ':v'",
        "SELECT 5--' \n :v '",
        'SELECT "\\":v"',
        "SELECT `:v`",
    ],
)
def test_a_value_is_not_put_into_a_text_or_comment_of_mysql(statement: str) -> None:
    """Its driver writes the values into the statement itself: inside of quotes they would become SQL."""
    with pytest.raises(ToolError, match="no place"):
        bound(statement, {"v": "', secret"}, "format", "mysql")
