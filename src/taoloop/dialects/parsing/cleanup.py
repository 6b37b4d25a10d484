"""What is taken off a reply before it is read: thinking, roles and control tokens that leaked, invisible characters.

Only what cannot stand inside of a JSON string is touched, so no value changes. A reply that the provider cut, and one
whose thinking never ended, are refused here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from taoloop.dialects.parsing.json_repair import INVISIBLE
from taoloop.dialects.parsing.labels import LABEL
from taoloop.dialects.parsing.parse_error import ReplyParseError

if TYPE_CHECKING:
    from taoloop.core.message import ModelReply

EDGE = " \t\r\n\f\v\u3000\xa0\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\u00ad"

_CUT = frozenset(
    {"length", "content_filter", "max_tokens", "model_length", "safety", "max_output_tokens", "recitation"}
)
_WORDS = (
    r"(?:\w{1,12}:)?(?:think|thinking|thoughts?|reasoning|reason|reflection|scratchpad|analysis|inner_monologue"
    r"|antthinking|internal|monologue)"
)
_TAG = re.compile(
    rf"<(?P<close>/)?{_WORDS}(?:\s[^<>\n]{{0,80}})?>|\[(?P<close2>/)?THINK\]|◁(?P<close3>/)?think▷"
    r"|<\|(?:(?P<close4>end_of_|/|END_)|begin_of_|START_)?(?:thought|thinking|think)\|>",
    re.IGNORECASE,
)
_LINE_ENDS = re.compile(r"[ \t]*+(?:[\r\n]|\Z)")
_NO_WORDS = re.compile(r"[\"“”'{}\[\]｛]")
_BEGINS = re.compile(r"[ \t]*+[{<`\[]")
_ENDS = (
    r"<[|｜](?:im_end|eot_id|eom_id|end|return|endoftext|end_of_text|end▁of▁sentence|end_of_sentence|end_of_turn|eot|eos"
    r"|endofturn|END_OF_TURN_TOKEN|END_RESPONSE|im_sep|call)[|｜]>"
    r"|</s>|<eos>|<end_of_turn>|<eot_id>|<eod>|<turn\|>|\[EOS\]|<end_of_utterance>|<pad>|<end_(?:code|action)>"
)
_TAIL = re.compile(
    rf"(?:\s*+(?:{_ENDS}|<[|｜][^<>|｜\s]{{1,40}}[|｜]>"
    r"|</(?:response|(?:final[ _]?)?answer|final|output|assistant|reply)>))++\s*+\Z",
    re.IGNORECASE,
)
_TOKEN_TAIL = re.compile(rf"(?:\s*+(?:{_ENDS}|<[|｜][^<>|｜\s]{{1,40}}[|｜]>))++\s*+\Z", re.IGNORECASE)
_ANSWER_OPENS = re.compile(r"<(?:(?:final[ _]?)?answer|final|output)>", re.IGNORECASE)
_ANSWER_CLOSES = re.compile(r"</(?:(?:final[ _]?)?answer|final|output)>", re.IGNORECASE)
_ROLE = re.compile(
    r"\s*+(?:<s>|<bos>|<\|begin_of_text\|>|<\|startoftext\|>)?\s*+(?:<[|｜](?:im_start|start)[|｜]>assistant\s*+(?!to=|<\|channel)"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>\s*+|<start_of_turn>model\s*+|<[|｜][Aa]ssistant[|｜]>\s*+"
    r"|(?:assistant|ai|助手)\s{0,3}[:：](?=[^\S\n]*\S)\s*+|assistant\s*\n)"
    r"(?=.)",
    re.IGNORECASE | re.DOTALL,
)
_ENVELOPE = re.compile(r"<(response|assistant|reply)>\s*(.*)</\1>\s*", re.IGNORECASE | re.DOTALL)
_CHANNEL = re.compile(
    r"(?<![\w.])(?:(?:<\|start\|>)?assistant)?<\|channel\|>\s*(analysis|final|commentary)\b(?![^<]*to=)[^<{\n]*<\|message\|>"
)
_BLANKS = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_UNSEEN = re.compile(rf"^[^\n]{{0,40}}[{INVISIBLE}{_BLANKS}]", re.MULTILINE)
_STRIP_UNSEEN = str.maketrans(
    _BLANKS,
    " " * len(_BLANKS),
    "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
)

END_TOKEN = re.compile(rf"(?:{_ENDS})(?=\s*+(?:\Z|\n|<))")
"""A token that ends a turn: what stands behind it is another turn."""


def is_cut(reply: ModelReply) -> bool:
    """Whether the provider says that it cut the reply."""
    return reply.finish_reason is not None and reply.finish_reason.lower() in _CUT


def reject_truncated(reply: ModelReply) -> None:
    """Refuse a reply that the provider says it cut.

    Raises:
        RefusedError: it was cut.
    """
    if is_cut(reply):
        raise ReplyParseError(
            "truncated",
            f"The reply was cut ({reply.finish_reason!r}); none of it was used. Answer shorter.",
            reply.text[-100:],
        )


def clean(text: str) -> str:
    """`text` without thinking, roles and control tokens at its edges, and without unseen signs in its labels.

    Raises:
        RefusedError: a thinking block was never closed, or the text holds halves of characters.
    """
    text = text.strip(EDGE)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ReplyParseError("stray_text", "The reply holds characters that are no text.") from None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "<" in text or "[" in text or "◁" in text:
        text = _final_channel(text) if "<|channel|>" in text else text
        text = drop_thinking(text)
        if (envelope := _ENVELOPE.fullmatch(text)) is not None:
            text = envelope[2].strip(EDGE)
        text = strip_end_tokens(text)
    if text.startswith(">"):
        text = _unquoted(text)
    role = _ROLE.match(text)
    if role is not None:
        text = text[role.end() :]
    if not text.isascii():
        text = _seen_labels(text)
    return text.strip(EDGE)


def _unquoted(text: str) -> str:
    """A reply that is one quotation without its marks."""
    lines = text.split("\n")
    if not all(line.startswith(">") or not line.strip() for line in lines):
        return text
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines).strip(EDGE)


def strip_end_tokens(text: str) -> str:
    """`text` without the control tokens at its end."""
    if text.endswith((">", "]")):
        start = max(0, len(text) - 400)
        tail = _TAIL.search(text, start)
        if tail is not None and _ANSWER_CLOSES.search(tail.group()) and _ANSWER_OPENS.search(text, 0, tail.start()):
            tail = _TOKEN_TAIL.search(text, start)
        text = text[: tail.start()] if tail is not None else text
    return text


def drop_thinking(text: str) -> str:
    """`text` without `<think>…</think>` blocks and the like; a lone closing tag closes what a template had opened.

    A tag opens a block at the beginning or the end of a line, or behind a label, where no quote and no
    brace is open: there it cannot stand inside a string. An open block ends at the next closing tag, unless a string or
    an object that began on the same line is still open there.

    Raises:
        RefusedError: a block is never closed.
    """
    kept: list[str] = []
    position, opened = 0, False
    counted = 0
    block, line = _Strings(), _Strings()
    for tag in _TAG.finditer(text):
        passed = text[counted : tag.start()]
        counted = tag.end()
        block.see(passed)
        if "\n" in passed:
            line = _Strings()
        line.see(passed[passed.rfind("\n") + 1 :])
        if any(tag.group("close", "close2", "close3", "close4")):
            if opened:
                if line.open and not _LINE_ENDS.match(text, tag.end()):
                    continue
            elif block.open or not _closes(text, tag.start(), tag.end(), plain=block.plain):
                continue
            else:
                kept.clear()
            position, opened = tag.end(), False
            block, line = _Strings(), _Strings()
        elif not opened and not block.open and _opens(text, tag.start(), tag.end()):
            kept.append(text[position : tag.start()])
            opened = True
    if opened:
        raise ReplyParseError("truncated", "The thinking block was never closed, so there is no decision.", text[-100:])
    if not position:
        return text
    kept.append(text[position:])
    return "\n".join(kept).strip(EDGE)


class _Strings:
    """Whether a string or an object is open behind what was seen; `plain`: there was no sign of either."""

    def __init__(self) -> None:
        self.quotes = self.braces = 0
        self.plain = True

    def see(self, text: str) -> None:
        self.quotes += text.count('"')
        self.braces += text.count("{") - text.count("}")
        self.plain = self.plain and _NO_WORDS.search(text) is None

    @property
    def open(self) -> bool:
        return self.quotes % 2 > 0 or self.braces > 0


def _closes(text: str, start: int, end: int, *, plain: bool) -> bool:
    """Whether a lone closing tag stands at the edge of a line, or between plain words and a decision."""
    if _opens(text, start, end):
        return True
    begins = _BEGINS.match(text, end) or LABEL.match(text[end : end + 200].lstrip(EDGE))
    return begins is not None and plain


def _opens(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 60) : start].rstrip(" \t")
    if (not before and start <= 60) or before.endswith("\n") or _LINE_ENDS.match(text, end):
        return True
    line = before[before.rfind("\n") + 1 :]
    label = LABEL.match(line)
    return label is not None and label.end() == len(line)


def _final_channel(text: str) -> str:
    """A reply in channels: the analysis is thinking, the final one is text."""
    kept: list[str] = []
    position = 0
    analysing = False
    for channel in _CHANNEL.finditer(text):
        if not analysing:
            kept.append(text[position : channel.start()])
        else:
            end = text.find("<|end|>", position, channel.start())
            kept.append(text[end + 7 : channel.start()] if end >= 0 else "")
        analysing = channel.group(1) == "analysis"
        position = channel.end()
    rest = text[position:]
    if analysing:
        _, ended, rest = rest.partition("<|end|>")
        rest = rest.removeprefix("<|start|>assistant") if ended else ""
    return "\n".join([*kept, rest]).strip()


def _seen_labels(text: str) -> str:
    """`text` with labels that are labels once the invisible characters in them are gone, and blanks are blanks."""
    if not _UNSEEN.search(text):
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        head = line[:80]
        seen = head.translate(_STRIP_UNSEEN)
        if seen == head:
            continue
        label = LABEL.match(seen)
        if label is not None:
            lines[number] = seen[: label.end()] + _behind(line, label.end())
    return "\n".join(lines)


def _behind(line: str, visible: int) -> str:
    """What stands in `line` behind so many visible characters."""
    for index, sign in enumerate(line):
        if not visible:
            return line[index:].lstrip(EDGE)
        visible -= bool(sign.translate(_STRIP_UNSEEN))
    return ""
