"""The targets of a call: which arguments say what it acts on, and whether they name anything. Pure.

A target that is missing, empty or a wildcard does not narrow a call: `archive()`, `archive(folder="")` and
`archive(folder="*")` may act on everything. No task names that, so such a call is never what the task asked for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern

_WORDS_FOR_ALL = frozenset(
    re.findall(
        r"\w+",
        "all any every everything everyone everybody anything anyone anybody each none null nil undefined"
        " 全部 所有 所有人 全体 全员 任何 任何人 任意 每个 每个人 每人 大家 一切",
    )
)
_ROOTS = lazy_pattern(r"[a-z]:[/\\]*", re.IGNORECASE)  # of a drive


def is_target_role(role: str) -> bool:
    """Whether an argument of this role says whom or what a call acts on."""
    return role == "target" or role.startswith("ref:")


def lacks_target(card: ToolCard, args: Any) -> bool:
    """Whether a call of a tool that takes targets names none, or one that means everything.

    A target that is among the card's `egress` arguments narrows nothing: without it the call reaches nobody, and that
    is fine. A required one must name something all the same. A tool without targets lacks none.
    """
    arguments: Mapping[str, Any] = args if isinstance(args, Mapping) else {}
    names = dict.fromkeys((*card.parameters, *arguments))
    targets = [name for name in names if is_target_role(card.role(name))]
    if any(not _is_empty(arguments.get(name)) and means_everything(arguments[name]) for name in targets):
        return True
    if any(_is_empty(arguments.get(name)) for name in targets if name in card.required):
        return True
    recipients = card.egress if isinstance(card.egress, tuple) else ()
    narrowing = [name for name in targets if name not in recipients]
    return bool(narrowing) and all(_is_empty(arguments.get(name)) for name in narrowing)


def means_everything(value: Any) -> bool:
    """Whether a value names nothing in particular, however deep: it is empty, or any part of it is a wildcard."""
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip().casefold()
        # a sign alone is a wildcard or a root: * % / . ~ - ?
        return not any(map(str.isalnum, text)) or text in _WORDS_FOR_ALL or _ROOTS.fullmatch(text) is not None
    if isinstance(value, Mapping):
        parts = [part for part in value.values() if not _is_empty(part)]
        return not parts or any(map(means_everything, parts))
    if isinstance(value, list | tuple):
        return not value or any(map(means_everything, value))
    return value is None


def _is_empty(value: Any) -> bool:
    """Whether a value contains nothing, however deep."""
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_empty, value))
    return value is None or (isinstance(value, str) and not value.strip())
