"""Strategies with settings, by name: `NAME` has the defaults, `NAME:key=value,key=value` sets some of them.

The full form, with every setting, is what a trace stores as the strategy of its run: a stored run keeps its settings
when a default changes, and nothing but the name is stored.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from taoloop.core.text import field_error
from taoloop.errors import ConfigError

T = TypeVar("T")

_KINDS: dict[str, tuple[type, str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "str": (str, "a word"),
}


def write_name(name: str, strategy: Any) -> str:
    """The name of a strategy with all its settings, in the order of its fields."""
    values = ((item.name, getattr(strategy, item.name)) for item in fields(strategy))
    texts = (f"{key}={value if isinstance(value, str) else f'{value:.12g}'}" for key, value in values)
    return f"{name}:{','.join(texts)}"


def read_settings(kind: type[T], name: str, text: str) -> T:
    """The strategy of a class whose settings are `text`, such as `n=5`; what the text does not name has its default.

    `kind` is a dataclass with fields of the types `int`, `float` and `str` that validates them itself.

    Raises:
        ConfigError: a setting is unknown, is set twice or has no possible value; names it and what it must be.
    """
    known = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    values: dict[str, Any] = {}
    for part in text.split(",") if text.strip() else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in known or key in values:
            raise ConfigError(
                f"The strategy {name} has no setting {part.strip()!r}, or has it twice.",
                hint=f"Write {name}:KEY=VALUE,KEY=VALUE with each of these keys at most once: {', '.join(known)}.",
            )
        parse, expected = _KINDS[str(known[key].type)]
        try:
            values[key] = parse(value)
        except ValueError:
            raise field_error(ConfigError, "setting", expected, owner=name, name=key, value=value) from None
    return kind(**values)
