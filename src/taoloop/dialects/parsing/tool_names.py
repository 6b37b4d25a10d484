"""Which tool a name means: exactly one known tool must fit it, and never the nearest one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.json_repair import INVISIBLE

MAX_NAME_CHARS = 128

_FINAL_NAMES = frozenset(
    {"final", "finalanswer", "finalresponse", "finish", "最终答案", "最终回答", "最终回复", "最终答复", "最終答案"}
)
_EMPTY_NAMES = frozenset(
    {"", "none", "null", "nil", "n/a", "na", "no action", "no tool", "-", "无", "没有", "空", "無", "不需要"}
)
_PREFIX = lazy_pattern(r"(?:functions?|tools?|default_api|api|actions?|namespace)(?:\.|::|/|:)", re.IGNORECASE)
_INVISIBLE = lazy_pattern(f"[{INVISIBLE}]+")
_TOKENS = lazy_pattern(r"[ \t]*(?:<[|｜/]|\[/?(?:TOOL_CALLS|ARGS|CALL_ID)\])[^{}()\"'\n:]*\Z")
_EDGE_CHARS = " \t\r\n`*\"'“”‘’「」【】[]()（）<>{}"
_SEPARATORS = lazy_pattern(r"[\s_-]+")


def resolve_tool_name(name: str, cards: Sequence[ToolCard]) -> ToolCard | None:
    """The one card that `name` means, None if there is none or more than one.

    A name may differ by case, blanks, dashes and underscores, a dot in place of one, quotes and markup around it, a
    trailing `()` or dot, escaped underscores, a namespace in front, control tokens behind, or be the same known name
    several times.
    """
    for card in cards:
        if card.name == name:
            return card
    if not cards or len(name) > 4 * MAX_NAME_CHARS:
        return None
    return _match_normalised(name, cards)


def _match_normalised(name: str, cards: Sequence[ToolCard]) -> ToolCard | None:
    bare = bare_name(name)
    for _ in range(3):  # a namespace may be in front of a namespace
        normalised = _normalise(bare)
        matching = [card for card in cards if _normalise(card.name) == normalised] if normalised else []
        if not matching:
            matching = [card for card in cards if _is_repeated(card.name, bare)]
        if len(matching) == 1 and "." in bare and not _is_only_reading(bare, matching[0], cards):
            return None
        if matching:
            return matching[0] if len(matching) == 1 else next((card for card in matching if card.name == bare), None)
        prefix = _PREFIX.match(bare)
        if prefix is None:
            return None
        bare = bare[prefix.end() :]
    return None


def _is_only_reading(bare: str, card: ToolCard, cards: Sequence[ToolCard]) -> bool:
    """Whether a dot can only stand for an underscore: what is behind a namespace names no other tool."""
    prefix = _PREFIX.match(bare)
    behind = None if prefix is None else resolve_tool_name(bare[prefix.end() :], cards)
    return behind is None or behind is card or card.name == bare


def bare_name(name: str) -> str:
    """`name` without what a model puts around it."""
    name = name[: 8 * MAX_NAME_CHARS]
    bare = _INVISIBLE.sub("", name.replace("\\_", "_"))
    bare = _TOKENS.sub("", bare, count=1)
    bare = bare.strip(_EDGE_CHARS + ".:：,，。;；")
    return bare.strip()


def is_final_name(name: str) -> bool:
    """Whether an action of this name means "I am done" (where no tool is called so)."""
    return _SEPARATORS.sub("", bare_name(name[:60]).casefold()) in _FINAL_NAMES


def is_placeholder_name(text: str) -> bool:
    """Whether a text only says that nothing is there: empty, none, null, n/a."""
    return text.strip().strip(_EDGE_CHARS + ".。").casefold() in _EMPTY_NAMES


def _is_repeated(known: str, name: str) -> bool:
    times, rest = divmod(len(name), len(known)) if known else (0, 1)
    return not rest and times > 1 and name == known * times


@lru_cache(maxsize=1024)
def _normalise(name: str) -> str:
    return _SEPARATORS.sub("", name.replace(".", "_")).casefold()
