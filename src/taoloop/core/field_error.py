"""The error of a settings class about one of its fields: what it is, and what it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from taoloop.core.text import RUN_LANGUAGE, TextCatalog, chinese_texts
from taoloop.errors import ConfigError

E = TypeVar("E", bound=ConfigError)

_TEXTS = TextCatalog(
    "core",
    {
        "agent": "An agent's {name} is {value!r}.",
        "limit": "The limit {name} is {value!r}.",
        "setting": "{owner}: {name} is {value!r}.",
        "policy": "The policy has {name} = {value!r}.",
        "rule": "The rule has {name} = {value!r}.",
        "named rule": "The rule {owner!r} has {name} = {value!r}.",
        "must be": "It must be {expected}.",
    },
)


def field_error(kind: Callable[..., E], text: str, expected: str, /, **values: object) -> E:
    """The error that a field has a value that it cannot have, in the language of the current run.

    Args:
        kind: The class of the error.
        text: Which text names the field: `agent`, `limit`, `setting`, `policy`, `rule` or `named rule`.
        expected: What the value must be, in English.
        values: What the text is filled in with: `name` and `value`, and for some `owner`.
    """
    language = RUN_LANGUAGE.get()
    must_be = chinese_texts("core").get(expected, expected) if language == "zh" else expected
    return kind(_TEXTS.text(language, text, **values), hint=_TEXTS.text(language, "must be", expected=must_be))
