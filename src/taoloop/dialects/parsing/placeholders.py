"""Texts in place of values: placeholders, words of the prompt's own template, empty answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.handles import READER, is_handle
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.cleanup import EDGE_CHARS, strip_end_tokens
from taoloop.dialects.parsing.strict_json import NotJsonError, compact_json, dumps, strings_in
from taoloop.dialects.texts import ReplyParseError

_PLACEHOLDER = lazy_pattern(
    r"\s*(?:<([^<>/=\"'\n]{1,60})>|\{\{?[^{}\n\"':]{1,60}\}\}?|\$\{?[^{}\n ]{0,60}\}|\[\[[^\[\]\n]{1,60}\]\]"
    r"|\[(?i:your|insert|enter|the|recipient|user|customer|placeholder)\b[^\[\]\n]{0,60}\]|%\(\w{1,40}\)s"
    r"|YOUR_[A-Z0-9_]{2,40}|[A-Z0-9_]{2,40}_HERE|\.{3,}|…+)\s*"
)
HTML_TAG = lazy_pattern(
    r"[abipsu]|[bh]r|h[1-6]|[ou]l|li|t[dhr]|div|pre|nav|svg|img|code|form|head|html|body|main|span|link|meta|path"
    r"|video|audio|style|table|tbody|thead|title|label|input|button|script|footer|header|section",
    re.IGNORECASE,
)
_TEMPLATE = lazy_pattern(
    r"\s*(?:the )?(?:input (?:to|for|of) the (?:action|tool)|(?:its|the) arguments? as one json object.{0,40}"
    r"|(?:your |the )?final answer to the (?:original )?(?:input )?(?:question|task)"
    r"|(?:your|the) (?:final )?answer(?: here| to the task| goes here)?|answer here|action input|string|str"
    r"|(?:行动|动作|工具)的?输入|对?原始(?:输入)?问题的最终答案|(?:你的|对任务的)?(?:最终)?(?:答案|回答))[.。]?\s*",
    re.IGNORECASE,
)
_MAX_CHARS = 80  # a placeholder or a phrase of a template is short


def is_placeholder(text: str) -> bool:
    """Whether a text is a placeholder: `<email>`, `{{id}}`, `${name}`, `...`. HTML tags are values."""
    if len(text) > _MAX_CHARS:
        return False
    match = _PLACEHOLDER.fullmatch(text)
    if match is not None:
        return not HTML_TAG.fullmatch((match.group(1) or "").split(" ")[0])
    return _TEMPLATE.fullmatch(text) is not None


def reject_placeholders(args: Any, tool: str, cards: Sequence[ToolCard] = ()) -> None:
    """Refuse arguments with a placeholder; a handle does not count as one if `ask_about` is among the cards.

    Raises:
        ReplyParseError: it names the tool and the placeholder.
    """
    try:
        for text in strings_in(args):
            if len(text) <= _MAX_CHARS and is_placeholder(text):
                if is_handle(text) and any(card.name == READER for card in cards):
                    continue
                raise ReplyParseError("bad_action", "placeholder", text, tool=tool, text=text)
    except NotJsonError as error:
        raise ReplyParseError("bad_json", "arguments_unusable", tool=tool, error=error.text) from None


def answer_text(value: Any, *, json_answer: bool = False) -> str:
    """The answer in the value of a final: a text, the value of an object with one key, or JSON as it is.

    `json_answer`: JSON stays whole, and an empty list, an empty object and a written null are answers too.

    Raises:
        ReplyParseError: the answer is empty or an unfilled place.
    """
    if (
        json_answer
        and value is not None
        and (text := value.strip(EDGE_CHARS) if isinstance(value, str) else dumps(value))
    ):
        return text
    for _ in range(3):  # an answer in an object in an object
        if isinstance(value, dict) and len(value) == 1:
            value = next(iter(value.values()))
    if isinstance(value, str):
        text = strip_end_tokens(value.strip(EDGE_CHARS)).strip(EDGE_CHARS)
    else:
        text = "" if value is None else compact_json(value)
    if not text or value in ({}, []):
        raise ReplyParseError("bad_final", "empty_answer", text)
    if is_placeholder(text) and not is_handle(text):
        raise ReplyParseError("bad_final", "placeholder_answer", text, text=text)
    return text
