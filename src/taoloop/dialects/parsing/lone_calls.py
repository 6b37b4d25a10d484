"""A call in the text of a native reply: what is left once everything around it is taken off, and what belongs to it.

A model that should use the calls of the API writes one into the text instead: in a fence or back-ticks, in a list or a
string, with a semicolon, with words that announce it. `unwrap_call` takes off what encloses a text, `split_call` the
words before or behind one call. Code in an answer is something else: `hide_code` covers the blocks that only show it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.patterns import ANNOUNCES, BEGINS, FOREIGN_TURN, LABEL, MAX_OBJECTS, OPENER
from taoloop.dialects.parsing.tool_names import resolve_tool_name

_FENCE = lazy_pattern(r"```(?:[\w+-]{0,20}[ \t]*\n|(?:json|python|tool_code)\b)?(?P<code>(?:(?!```).)*)```", re.DOTALL)
_QUOTED = lazy_pattern(r"\[\s*(?P<quote>[\"'])(?P<call>[^\n]*)(?P=quote)\s*,?\s*\]")
_BLOCK = lazy_pattern(r"^```[\w+-]{0,20}[ \t]*\n(?P<code>.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_NAME = r"[^\W\d](?:[\w.]|\\_|-(?=\w)){0,120}"
_HEAD = lazy_pattern(rf"\[?\s*(?:\w{{1,60}}\s*=\s*)?(?:await\s+)?(?:print\()?(?P<name>{_NAME})(?:[(\[]|\s*\{{)")
_ESCAPED = lazy_pattern(r"\\_(?=(?:\w|\\_)*\s*[(={])")
_LAST_HEAD = lazy_pattern(rf"(?:^|[:：][ \t]*)[`\[]*(?P<name>{_NAME})\(", re.MULTILINE)
_NAME_LINE = lazy_pattern(
    rf"\A[`*]*(?P<name>{_NAME})[`*]*\s*(?:[:：]?\s*(?:```(?:json)?\s*)?(?=\{{)|(?=\(.*\)\Z))", re.DOTALL
)
_BULLET = lazy_pattern(r"(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_DEFINITION = lazy_pattern(
    r"^[ \t]*(?:async |export |public )*(?:def|class|function|fn|func|interface|import)\b", re.MULTILINE
)
_CALL_START = lazy_pattern(rf"\s*(?:[\[{{｛]|{BEGINS}(?:{OPENER}|{FOREIGN_TURN}))", re.IGNORECASE)
_MARKS = " \t\r\n`;,"
_MAX_WRAPPERS = 4


def strip_bullet(text: str) -> str:
    """`text` without the mark of a list at its beginning."""
    bullet = _BULLET.match(text)
    return text if bullet is None else text[bullet.end() :]


class CallInWords(NamedTuple):
    """One call, and the words before or behind it."""

    call: str
    """The text of the call."""
    words: str
    """The words; empty if there are none."""


def unwrap_call(text: str) -> str:
    """`text` without what may enclose a call: a fence, back-ticks, a list of one string, a semicolon or a comma.

    Blanks and marks between a name and its arguments are taken out as well.
    """
    for _ in range(_MAX_WRAPPERS):
        bare = text.strip(" \t\r\n;,")
        if (fence := _FENCE.fullmatch(bare)) is not None:
            bare = fence["code"]
        elif "```" not in bare:
            bare = bare.strip(_MARKS)
        if (quoted := _QUOTED.fullmatch(bare)) is not None:
            bare = quoted["call"]
        elif bare[:1] in ("'", '"') and bare[:1] == bare[-1:]:
            bare = bare[1:-1]
        if bare == text:
            break
        text = bare
    text = _ESCAPED.sub("_", text) if "\\_" in text else text
    return _NAME_LINE.sub(r"\g<name>", text, count=1)


def begins_call(text: str, cards: Sequence[ToolCard]) -> bool:
    """Whether a text begins with the name of a known tool and what opens its arguments."""
    head = _HEAD.match(text)
    return head is not None and resolve_tool_name(head["name"], cards) is not None


def split_call(text: str, cards: Sequence[ToolCard]) -> CallInWords | None:
    """The call of a known tool that ends the last line of a text, alone or behind a colon; None if there is none."""
    text = text.rstrip(_MARKS + "]")
    for head in islice(_LAST_HEAD.finditer(text, text.rfind("\n") + 1), MAX_OBJECTS):
        if resolve_tool_name(head["name"], cards) is not None:
            start = head.start("name")
            return CallInWords(text[start:], text[:start].rstrip(" \t\r\n`[:："))
    return None


def hide_code(text: str, cards: Sequence[ToolCard]) -> str:
    """`text` without the code blocks that an answer only shows.

    Such a block has words around it that announce no action, or defines something. If it is a call and nothing else,
    there must be words on both sides of it: the answer goes on.
    """
    blocks = list(islice(_BLOCK.finditer(text), MAX_OBJECTS)) if "```" in text else []
    if not blocks:
        return text
    words = _BLOCK.sub("", text)
    has_words, announces = bool(words.strip()), ANNOUNCES.search(words) is not None
    has_words_before = bool(text[: blocks[0].start()].strip())
    parts: list[str] = []
    position = 0
    for block in blocks:
        code = block["code"]
        is_marked = _CALL_START.match(code) is not None
        is_call = is_marked or LABEL.match(code) is not None or begins_call(code.lstrip(), cards)
        if is_call:
            is_content = not is_marked and not announces and has_words_before and block.end() < len(text)
        else:
            is_content = has_words and (not announces or _DEFINITION.search(code) is not None)
        if is_content:
            parts.append(text[position : block.start()])
            position = block.end()
    return "".join([*parts, text[position:]])
