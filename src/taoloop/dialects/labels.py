"""The labels of the text dialect: how they may be written, and how they cut a reply into sections."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["preamble", "thought", "action", "input", "observation", "final", "turn"]

_GAP = r"[ \t_-]{0,3}"
_WORDS: dict[Kind, str] = {
    "thought": r"thoughts?|thinking|reasoning|思考|想法|思路",
    "input": (
        rf"(?:action|tool){_GAP}\d{{0,3}}{_GAP}(?:inputs?|args|arguments|parameters)|inputs?|args|arguments|parameters"
        r"|(?:行动|动作|工具)的?(?:输入|参数)|输入|参数"
    ),
    "observation": (
        rf"observations?|(?:tool|function){_GAP}(?:results?|outputs?|responses?)"
        r"|观察(?:结果)?|观测(?:结果)?|工具(?:返回)?(?:结果|输出)|工具返回|返回结果|执行结果"
    ),
    "action": rf"actions?|tool(?:{_GAP}name)?|行动|动作|工具",
    "final": rf"final(?:{_GAP}(?:answer|response))?|answer|最终(?:答案|回答|答复|结果)|答案",
    "turn": r"question|user|human|问题|用户|提问",
}

LABEL = re.compile(
    r"^[ \t]*+(?P<head>[>#+•-][>#+• \t-]{0,12}|\*[ \t]{1,4})?"
    r"(?:\d{1,3}[.)、][ \t]{0,4})?(?P<bold>[*_`]{1,3})?"
    rf"(?:{'|'.join(f'(?P<{kind}>{words})' for kind, words in _WORDS.items())})"
    r"(?:[ \t]?[#(（]?\d{1,3}[)）]?)?[ \t]{0,4}(?(bold)[*_`]{0,3}[ \t]{0,4})"
    r"(?:[:：](?(bold)[*_`]{0,3})|(?(head)$|(?(bold)$|(?!))))",
    re.IGNORECASE | re.MULTILINE,
)
"""A label at the beginning of a line: any case, English or Chinese, ASCII or full-width colon; bold,
bulleted, numbered or a heading (then also without a colon). Every repetition is bounded: a search is linear.
A strict JSON string holds no line break, so no label is ever found inside of one."""

INLINE_LABEL = re.compile(
    r"\b(?:observations?|action(?: input)?|final answer|thought)[ \t]{0,4}[:：]"
    r"|(?:观察|观测|行动|动作|最终答案|最终回答|思考)[ \t]{0,4}[:：]",
    re.IGNORECASE,
)
"""A label word with a colon anywhere: what a bare, unquoted input must not contain."""

_FENCE = "```"


class Section(NamedTuple):
    """What stands behind one label, trimmed; where the label begins; `fenced`: with an open code fence."""

    kind: Kind
    body: str
    start: int
    fenced: bool = False


def sections(text: str) -> Iterator[Section]:
    """`text` cut at its labels; what is before the first is the preamble. Code in a final is content."""
    kind: Kind = "preamble"
    start = begin = counted = fences = 0
    for match in LABEL.finditer(text):
        if kind == "final":
            fences += text.count(_FENCE, counted, match.start())
            counted = match.start()
            if fences % 2:
                continue
        yield Section(kind, text[begin : match.start()].strip(), start)
        kind = cast("Kind", match.lastgroup)
        start, begin = match.start(), match.end()
        counted, fences = begin, 0
    fences += text.count(_FENCE, counted) if kind == "final" else 0
    yield Section(kind, text[begin:].strip(), start, fenced=bool(fences % 2))


def drop_stump(text: str) -> str:
    """`text` without the stump of an observation label at its very end, as a stop sequence may leave it."""
    head, newline, last = text.rpartition("\n")
    stump = last.strip().casefold()
    if newline and 3 <= len(stump) <= 11 and "observation".startswith(stump):
        return head.rstrip()
    return text
