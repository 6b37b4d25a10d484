"""How often the task asks for the same call: "pay Ann 5 twice", "给安付两次5元".

Only a number of times beside the request itself counts, in one clause with it: in "I was charged twice, refund 5" and
"do not send it twice" nothing is asked for twice. Whatever is not understood is asked for once, so that a person is
asked about the second call.
"""

from __future__ import annotations

import re

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.policy.provenance import trusted_texts
from taoloop.policy.requests import without_quotes
from taoloop.policy.task_intent import TaskIntent

_CLAUSE_END = lazy_pattern(
    r"[.,;:!?](?=\s|$)|[\n。，；：！？]|\b(?:as|because|since|that|which|who|when|after|before|if|but|so|though|although|until)\b"
    r"|因为|由于|但|如果|之前|之后"
)
_TIMES = lazy_pattern(
    r"\b(?P<adverb>twice|thrice)\b|\b(?P<count>two|three|four|five|\d{1,2}) times\b"
    r"|(?P<chinese>[两二三四五]|\d{1,2})[次遍]"
)
_LIMIT = lazy_pattern(
    r"\b(?:at most|up to|no more|not more|max|maximum|per|a day|retry|try)\b|最多|不超过|至多|以内|重试"
)
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
