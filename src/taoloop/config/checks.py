"""Complaints about one place of a document: what a file's readers share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taoloop.config.document import ConfigDocument, kind_name
from taoloop.errors import AgentFileError, ConfigError
from taoloop.tools.yaml12 import FieldPath

Kind = tuple[tuple[type, ...], str]
"""Types of YAML, and what to call them."""

TEXT: Kind = ((str,), "a text")
PATH: Kind = ((str,), "a path")
SWITCH: Kind = ((bool,), "true or false")
NUMBER: Kind = ((int, float), "a number")
COUNT: Kind = ((int,), "a whole number")
LIST: Kind = ((list,), "a list")
MAPPING: Kind = ((dict,), "a mapping")


def expect_type(document: ConfigDocument, field_path: FieldPath, value: Any, kind: Kind) -> None:
    """Refuse a value of another kind.

    Raises:
        AgentFileError: it is one; says what is expected there.
    """
    types, expected = kind
    is_blank = kind is PATH and isinstance(value, str) and not value.strip()
    if isinstance(value, types) and not (isinstance(value, bool) and bool not in types) and not is_blank:
        return
    raise document.error(field_path, f"{expected} is expected, not {describe_value(value)}.")


def describe_value(value: Any) -> str:
    """A value of a document in a complaint about it: itself where it is short, else its kind."""
    if value is None:
        return "nothing"
    text = repr(value)
    return kind_name(value) if isinstance(value, bool) or len(text) > 60 else text


@contextmanager
def error_location(document: ConfigDocument, field_path: FieldPath) -> Iterator[None]:
    """Give an error that knows no place the line of `place`."""
    try:
        yield
    except AgentFileError as error:
        if error.path == str(document.path):
            raise
        raise document.error(field_path, str(error.args[0])) from error
    except ConfigError as error:
        raise document.error(field_path, error.message, hint=error.hint) from error
