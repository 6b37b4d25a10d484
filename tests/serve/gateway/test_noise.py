"""What connections that bring no request are told: how it is wrong, and nothing of what they sent."""

from __future__ import annotations

import pytest

from taoloop.serve.gateway.server import _connection_error


@pytest.mark.parametrize(
    ("of_parser", "told"),
    [
        ("Invalid header token:\n\n  b'x tao-s3cret'\n    ^", ": Invalid header token."),
        ("Duplicate 'Host' header found.", ": Duplicate 'Host' header found."),
        ("Bad status line 'GET / tao-s3cret'", "."),
        ("tao-s3cret", "."),
    ],
)
def test_nothing_of_the_bytes_that_a_parser_shows_is_told(of_parser: str, told: str) -> None:
    """The parser in Python, which serves where the one in C is not built, writes them into the midst."""
    message = _connection_error(400, None, of_parser).message
    assert message == f"This is not a valid HTTP request{told}"
