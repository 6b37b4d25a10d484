"""What is taken off a reply before it is read: thinking, roles and control tokens that leaked, invisible characters.

Only what cannot be inside a JSON string is touched, so no value changes. A reply that the provider cut, and one
whose thinking never ended, are refused here.
"""

from __future__ import annotations

import re

from taoloop.core.message import ModelReply
from taoloop.core.text import lazy_pattern
from taoloop.dialects.parsing.json_repair import INVISIBLE
from taoloop.dialects.parsing.patterns import END_TOKENS, LABEL
from taoloop.dialects.texts import ReplyParseError

EDGE_CHARS = " \t\r\n\f\v\u3000\xa0\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\u00ad"

_TRUNCATED_REASONS = frozenset(
    {"length", "content_filter", "max_tokens", "model_length", "safety", "max_output_tokens", "recitation"}
)
_WORDS = (
    r"(?:\w{1,12}:)?(?:think|thinking|thoughts?|reasoning|reason|reflection|scratchpad|analysis|inner_monologue"
    r"|antthinking|internal|monologue)"
)
_TAG = lazy_pattern(
    rf"<(?P<close>/)?{_WORDS}(?:\s[^<>\n]{{0,80}})?>|\[(?P<close2>/)?THINK\]|◁(?P<close3>/)?think▷"
    r"|<\|(?:(?P<close4>end_of_|/|END_)|begin_of_|START_)?(?:thought|thinking|think)\|>",
    re.IGNORECASE,
)
_LINE_ENDS = lazy_pattern(r"[ \t]*+(?:[\r\n]|\Z)")
_DELIMITER = lazy_pattern(r"[\"“”'{}\[\]｛]")
_DECISION_START = lazy_pattern(r"[ \t]*+[{<`\[]")
_TAIL = lazy_pattern(
    rf"(?:\s*+(?:{END_TOKENS}|<[|｜][^<>|｜\s]{{1,40}}[|｜]>"
    r"|</(?:response|(?:final[ _]?)?answer|final|output|assistant|reply)>))++\s*+\Z",
    re.IGNORECASE,
)
_TOKEN_TAIL = lazy_pattern(rf"(?:\s*+(?:{END_TOKENS}|<[|｜][^<>|｜\s]{{1,40}}[|｜]>))++\s*+\Z", re.IGNORECASE)
_ANSWER_OPENS = lazy_pattern(r"<(?:(?:final[ _]?)?answer|final|output)>", re.IGNORECASE)
_ANSWER_CLOSES = lazy_pattern(r"</(?:(?:final[ _]?)?answer|final|output)>", re.IGNORECASE)
_ROLE = lazy_pattern(
    r"\s*+(?:<s>|<bos>|<\|begin_of_text\|>|<\|startoftext\|>)?\s*+(?:<[|｜](?:im_start|start)[|｜]>assistant\s*+(?!to=|<\|channel)"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>\s*+|<start_of_turn>model\s*+|<[|｜][Aa]ssistant[|｜]>\s*+"
    r"|(?:assistant|ai|助手)\s{0,3}[:：](?=[^\S\n]*\S)\s*+|assistant\s*\n)"
    r"(?=.)",
    re.IGNORECASE | re.DOTALL,
)
_ENVELOPE = lazy_pattern(r"<(response|assistant|reply)>\s*(.*)</\1>\s*", re.IGNORECASE | re.DOTALL)
_CHANNEL = lazy_pattern(
    r"(?<![\w.])(?:(?:<\|start\|>)?assistant)?<\|channel\|>\s*(analysis|final|commentary)\b(?![^<]*to=)[^<{\n]*<\|message\|>"
)
_BLANKS = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE_HEAD = lazy_pattern(rf"^[^\n]{{0,40}}[{INVISIBLE}{_BLANKS}]", re.MULTILINE)
_STRIP_INVISIBLE = str.maketrans(
    _BLANKS,
    " " * len(_BLANKS),
    "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
)


def is_truncated(reply: ModelReply) -> bool:
    """Whether the provider says that it cut the reply."""
    return reply.finish_reason is not None and reply.finish_reason.lower() in _TRUNCATED_REASONS


def reject_truncated(reply: ModelReply) -> None:
    """Refuse a reply that the provider says it cut.

    Raises:
        ReplyParseError: it was cut.
    """
    if is_truncated(reply):
        raise ReplyParseError("truncated", "truncated", reply.text[-100:], finish_reason=reply.finish_reason)


def clean_reply(text: str) -> str:
    """`text` without thinking, roles and control tokens at its edges, and without invisible characters in its labels.

    Raises:
        ReplyParseError: a thinking block was never closed, or the text holds halves of characters.
    """
    text = text.strip(EDGE_CHARS)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ReplyParseError("stray_text", "not_text") from None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "<" in text or "[" in text or "◁" in text:
        text = _strip_channels(text) if "<|channel|>" in text else text
        text = strip_thinking(text)
        if (envelope := _ENVELOPE.fullmatch(text)) is not None:
            text = envelope[2].strip(EDGE_CHARS)
        text = strip_end_tokens(text)
    if text.startswith(">"):
        text = _strip_quote_marks(text)
    role = _ROLE.match(text)
    if role is not None:
        text = text[role.end() :]
    if not text.isascii():
        text = _clean_labels(text)
    return text.strip(EDGE_CHARS)


def _strip_quote_marks(text: str) -> str:
    """A reply that is one quotation without its marks."""
    lines = text.split("\n")
    if not all(line.startswith(">") or not line.strip() for line in lines):
        return text
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines).strip(EDGE_CHARS)


def strip_end_tokens(text: str) -> str:
    """`text` without the control tokens at its end."""
    if text.endswith((">", "]")):
        start = max(0, len(text) - 400)
        tail = _TAIL.search(text, start)
        if tail is not None and _ANSWER_CLOSES.search(tail.group()) and _ANSWER_OPENS.search(text, 0, tail.start()):
            tail = _TOKEN_TAIL.search(text, start)
        text = text[: tail.start()] if tail is not None else text
    return text


def strip_thinking(text: str) -> str:
    """`text` without `<think>…</think>` blocks and the like; a lone closing tag closes what a template had opened.

    A tag opens a block at the beginning or the end of a line, or behind a label, where no quote and no
    brace is open: there it cannot be inside a string. An open block ends at the next closing tag, unless a string or
    an object that began on the same line is still open there.

    Raises:
        ReplyParseError: a block is never closed.
    """
    parts: list[str] = []
    position, opened = 0, False
    scanned = 0
    since_tag, in_line = _OpenDelimiters(), _OpenDelimiters()
    for tag in _TAG.finditer(text):
        skipped = text[scanned : tag.start()]
        scanned = tag.end()
        since_tag.count(skipped)
        if "\n" in skipped:
            in_line = _OpenDelimiters()
        in_line.count(skipped[skipped.rfind("\n") + 1 :])
        if any(tag.group("close", "close2", "close3", "close4")):
            if opened:
                if in_line.any_open and not _LINE_ENDS.match(text, tag.end()):
                    continue
            elif since_tag.any_open or not _is_lone_closing_tag(
                text, tag.start(), tag.end(), is_prose=since_tag.is_prose
            ):
                continue
            else:
                parts.clear()
            position, opened = tag.end(), False
            since_tag, in_line = _OpenDelimiters(), _OpenDelimiters()
        elif not opened and not since_tag.any_open and _is_opening_tag(text, tag.start(), tag.end()):
            parts.append(text[position : tag.start()])
            opened = True
    if opened:
        raise ReplyParseError("truncated", "open_thinking", text[-100:])
    if not position:
        return text
    parts.append(text[position:])
    return "\n".join(parts).strip(EDGE_CHARS)


class _OpenDelimiters:
    """Whether a string or an object is open after the text so far; `is_prose`: it has no delimiter of either."""

    def __init__(self) -> None:
        self.quotes = self.braces = 0
        self.is_prose = True

    def count(self, text: str) -> None:
        self.quotes += text.count('"')
        self.braces += text.count("{") - text.count("}")
        self.is_prose = self.is_prose and _DELIMITER.search(text) is None

    @property
    def any_open(self) -> bool:
        return self.quotes % 2 > 0 or self.braces > 0


def _is_lone_closing_tag(text: str, start: int, end: int, *, is_prose: bool) -> bool:
    """Whether a lone closing tag is at the edge of a line, or between plain words and a decision."""
    if _is_opening_tag(text, start, end):
        return True
    begins = _DECISION_START.match(text, end) or LABEL.match(text[end : end + 200].lstrip(EDGE_CHARS))
    return begins is not None and is_prose


def _is_opening_tag(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 60) : start].rstrip(" \t")
    if (not before and start <= 60) or before.endswith("\n") or _LINE_ENDS.match(text, end):
        return True
    line = before[before.rfind("\n") + 1 :]
    label = LABEL.match(line)
    return label is not None and label.end() == len(line)


def _strip_channels(text: str) -> str:
    """A reply in channels: the analysis is thinking, the final one is text."""
    parts: list[str] = []
    position = 0
    analysing = False
    for channel in _CHANNEL.finditer(text):
        if not analysing:
            parts.append(text[position : channel.start()])
        else:
            end = text.find("<|end|>", position, channel.start())
            parts.append(text[end + 7 : channel.start()] if end >= 0 else "")
        analysing = channel.group(1) == "analysis"
        position = channel.end()
    rest = text[position:]
    if analysing:
        _, separator, rest = rest.partition("<|end|>")
        rest = rest.removeprefix("<|start|>assistant") if separator else ""
    return "\n".join([*parts, rest]).strip()


def _clean_labels(text: str) -> str:
    """`text` with labels that are labels once the invisible characters in them are gone, and blanks are blanks."""
    if not _INVISIBLE_HEAD.search(text):
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        head = line[:80]
        visible = head.translate(_STRIP_INVISIBLE)
        if visible == head:
            continue
        label = LABEL.match(visible)
        if label is not None:
            lines[number] = visible[: label.end()] + _text_after(line, label.end())
    return "\n".join(lines)


def _text_after(line: str, visible_chars: int) -> str:
    """What follows this many visible characters of `line`."""
    for index, char in enumerate(line):
        if not visible_chars:
            return line[index:].lstrip(EDGE_CHARS)
        visible_chars -= bool(char.translate(_STRIP_INVISIBLE))
    return ""
