"""Splits a task into clauses, in the order in which they are to be done."""

from __future__ import annotations

import re
from typing import NamedTuple

from taoloop.models.offline.lexicon import STOP_CHINESE
from taoloop.models.offline.moods import deliberates, orders
from taoloop.models.offline.words import concepts

_VERBS = (
    "add|subtract|multiply|divide|double|halve|square|tell|search|read|write|send|get|find|look|convert|count"
    "|list|show|"
    "give|translate|calculate|compute|what|how|check|summari[sz]e|save|delete|create|open|fetch|report|email|book|when|"
    "who|where|which|append|remove|update|work out|take|print|return|say|answer|store|put|round|sort|reverse|explain|"
    "set|close|cancel|turn|switch|move|transfer|restart|stop|start|post|publish|rename|copy|assign|notify|message|renew|reserve|ping|define|replace|buy|pay|order|play|draw|compare|query|lookup|evaluate|use|call|run|make|schedule|remind"
)
_CHINESE_VERBS = (
    "再|然后|接着|最后|随后|并|加|减|乘|除以|求|计算|算|查|读|写|发|搜|翻译|告诉|统计|列出|把|将|用|给出|给我|回答|换|"
    "保存|存|删|打开|说明|解释|总结|数|得到|问|以及查|以及"
)
_SENTENCE = re.compile(r"\s*[;；。！\n]+\s*|[?？]\s*(?=\S)|(?<=[^\s.])[.!]\s+(?=\S)")
_HARD = re.compile(
    r",?\s+(?:and\s+)?(?:then|afterwards|after that|finally)\b[,\s]*|[,;]\s*(?:and\s+)?next\b[,\s]*"
    r"|[，,、\s]*(?:然后|接着|随后|之后再|最后|再然后|并且|接下来)[，,\s]*",
    re.IGNORECASE,
)
_SOFT = re.compile(
    rf",\s*(?:but\s+)?(?:just|only|instead)\s+(?=(?:{_VERBS})\b)|,\s*and\s+(?=(?:is|are|does|do|will)\b)|,?\s+and\s+(?:also\s+|please\s+)?(?=(?:{_VERBS})\b)|,\s*(?=(?:please\s+)?(?:{_VERBS}|plus|minus|times)\b)"
    rf"|[，,]\s*(?=(?:请)?(?:{_CHINESE_VERBS}))|(?<![的，,])(?:并|再)(?=(?:{_CHINESE_VERBS}|乘|除))",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:\s|[,，、:：]|(?:and|then|also|first|firstly|next|finally|先|首先|再|并)(?![A-Za-z]))+", re.IGNORECASE
)
_REPORT = re.compile(
    r"^(?:please\s+)?(?:(?:tell|give|show|report|return|say|answer|print|explain|reply)(?:\s+(?:me|us|back|with))*"
    r"(?:\s+(?:the|your|a|final|result|results|answer|it|that|me|what|you|found|got|total|number|value|in|one"
    r"|short|sentence|"
    r"brief|briefly))*"
    r"|(?:请)?(?:告诉我|给出|给我|回答|说明|报告|返回|输出|得到)?(?:最终|最后)?(?:的)?(?:结果|答案|结论"
    r"|回答)?(?:是多少|是什么|告诉我|即可)?)"
    r"[\s.。?？!！]*$",
    re.IGNORECASE,
)
_MANNER = re.compile(
    r"\b(?:thanks|thank you|please|hello|hi|hey|good (?:morning|evening))\b|谢谢|你好|您好|麻烦了", re.IGNORECASE
)
_ASKS = re.compile(
    rf"^(?:please\s+|can you\s+|could you\s+)?(?:{_VERBS}|is|are|does|do|will|why)\b|[?？]\s*$"
    r"|^(?:请|帮我|麻烦)|(?:什么|谁|吗|多少|几|哪|怎么|为什么|如何)|^(?:写|画|讲|唱|做|查|发|搜|读|翻译|告诉|解释"
    r"|预订|播放|打开|删|买)",
    re.IGNORECASE,
)
MOST = 24


class Clause(NamedTuple):
    """A part of the task. `orders`: it may be obeyed by an act that changes the world."""

    text: str
    orders: bool = False


def clauses(text: str) -> list[Clause]:
    """The clauses of a skeleton; requests only to report, and politeness, are left out."""
    found: list[Clause] = []
    for sentence in _SENTENCE.split(text):
        held = deliberates(sentence)
        for hard in _HARD.split(sentence):
            for soft in _SOFT.split(hard):
                piece = _LEAD.sub("", soft).strip(" ,，、\t\n")
                if piece and not _REPORT.match(piece) and not _idle(piece):
                    found.append(Clause(piece, not held and orders(piece)))
    whole = text.strip()
    return found[:MOST] or ([Clause(whole, not deliberates(whole) and orders(whole))] if whole else [])


def asks(clause: str) -> bool:
    """True if the clause asks for something by itself, and does not only describe."""
    return _ASKS.search(clause) is not None


def _idle(piece: str) -> bool:
    rest = _MANNER.sub("", piece)
    for word in STOP_CHINESE if rest != piece else ():
        rest = rest.replace(word, "")
    return rest != piece and not concepts(rest) and re.search(r"[\ue000-\uf8ff]", rest) is None
