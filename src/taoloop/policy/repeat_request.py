"""How often the task asks for the same call: "pay Ann 5 twice", "给安付两次5元".

Only a number of times beside the request itself counts, in one clause with it: in "I was charged twice, refund 5",
"check twice and pay 5" and "pay 5 and never twice" nothing is asked for twice. Whatever is not understood is asked for
once, so that a person is asked about the second call.
"""

from __future__ import annotations

import re

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.policy.provenance import trusted_texts
from taoloop.policy.requests import without_quotes
from taoloop.policy.task_intent import TaskIntent

_CLAUSE_END = lazy_pattern(  # in normal form, where a Chinese comma is an ASCII one; "，付两次" goes on with the clause
    r"[.,;:!?](?=\s|$)|[.,;:!?](?=[\u3400-\u9fff])(?!,(?:一?共|分)?[付转打发送退]?(?:[两二三四五]|\d{1,2})[次遍])|[\n。()]"
    r"|\b(?:as|because|since|that|which|who|when|after|before|if|but|so|though|although|until|and|then)\b"
    r"|因为|由于|但|如果|之前|之后|然后|并|再"
)
_TIMES = lazy_pattern(
    r"\b(?P<adverb>twice|thrice)\b|\b(?P<count>two|three|four|five|\d{1,2}) times\b"
    r"|(?P<chinese>[两二三四五]|\d{1,2})[次遍]"
)
_LIMIT = lazy_pattern(
    r"\b(?:at most|up to|no|not|never|nor|without|avoid|instead|max|maximum|per|a day|retry|try)\b|n't\b"
    r"|最多|至多|以内|重试|不|别|勿|没|避免|只"
)
"""What makes of a number of times a bound, or something that is not wanted."""
_COUNTS = {
    "twice": 2,
    "thrice": 3,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "两": 2,
    "二": 2,
    "三": 3,
    "四": 4,
    "五": 5,
}


def times_requested(trace: Trace, card: ToolCard) -> int:
    """How often the people of a run ask for the same call of a tool: once, unless they say so."""
    return max((_times_in(text, card) for text in trusted_texts(trace)), default=1)


def _times_in(text: str, card: ToolCard) -> int:
    most = 1
    for clause in re.split(_CLAUSE_END.pattern, without_quotes(text)):
        match = _TIMES.search(clause)
        if match is None or _LIMIT.search(clause):
            continue
        intent = TaskIntent()
        intent.add(clause)
        if intent.calls_for(card):
            word = match["adverb"] or match["count"] or match["chinese"]
            most = max(most, _COUNTS.get(word) or int(word))
    return most
