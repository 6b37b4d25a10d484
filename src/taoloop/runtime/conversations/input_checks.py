"""Checks of ids and names that a caller gives: what is accepted can be stored and typed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from reprlib import repr as short_repr

from taoloop.errors import ConfigError

MAX_ID_CHARS = 200
"""The longest id of a run or a session."""

MAX_PERSON_CHARS = 256
"""The longest name of a person for whom a run is, or who started it."""


def check_id(name: str, value: object) -> None:
    """Refuse what cannot be the id of a run or a session.

    Raises:
        ConfigError: it is no text, is empty or too long, or has characters that cannot be typed or stored.
    """
    if not _is_plain_text(value, MAX_ID_CHARS):
        raise ConfigError(
            f"The option {name} is {short_repr(value)}, which is no id.",
            hint=f"Write a text of 1 to {MAX_ID_CHARS} printable characters, or leave it out.",
        )


def check_person(name: str, value: object) -> None:
    """Refuse what cannot be the name of a person; an empty one is none.

    Raises:
        ConfigError: it is no text, is too long, or has characters that cannot be typed or stored.
    """
    if value is not None and value != "" and not _is_plain_text(value, MAX_PERSON_CHARS):
        raise ConfigError(
            f"The option {name} is {short_repr(value)}, which names nobody.",
            hint=f"Write a text of at most {MAX_PERSON_CHARS} printable characters, or leave it out.",
        )


def check_names(name: str, value: object) -> None:
    """Refuse what is no list of texts.

    Raises:
        ConfigError: it is something else, such as one text.
    """
    entries = value if isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping) else [None]
    if all(isinstance(entry, str) for entry in entries):
        return
    example = value if isinstance(value, str) else "name"
    raise ConfigError(
        f"The option {name} is {short_repr(value)}, which is no list of names.",
        hint=f"Write a list of texts, such as {name}=[{short_repr(example)}].",
    )


def _is_plain_text(value: object, most: int) -> bool:
    """Whether it is a text in one line, without blanks around it, that every journal can keep."""
    return isinstance(value, str) and 0 < len(value) <= most and value.isprintable() and value == value.strip()
