"""On which terms the task asks for a call: now or not, and how often. What is unclear counts as not asked for.

"Why did you refund it?", "should I cancel?", "when it arrives, cancel" and "cancel it next month" speak of an act and
do not ask for it to be done now. `asks_now` reads what is left without such sentences. It is for rules that let a call
run because it was requested. "If it is sold out, cancel" does ask: only the run can find out whether it is.

"Pay Ann 5 twice", "给安付两次5元": only a number of times beside the request itself counts, in one clause with it: in
"I was charged twice, refund 5", "check twice and pay 5" and "pay 5 and never twice" nothing is asked for twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.core.trace import Trace
from taoloop.core.words import name_words
from taoloop.policy.intent.requests import CHINESE_NEGATION, NEGATIONS, without_quotes
from taoloop.policy.intent.task_intent import TaskIntent
from taoloop.policy.intent.vocabulary import KIND_OF, stem, words_of
from taoloop.policy.provenance import first_name, leaves, trusted_texts

# whether something is asked for now

_SENTENCE = lazy_pattern(r"(?<=[.!?;])\s+|(?<=[。！？；?])|(?<![:,，])\s*\n")
_CLAUSE = lazy_pattern(r"[,，、()\u2013\u2014]| - |\bbut\b|\band\b|\bthen\b|然后")
_POLITE = lazy_pattern(
    r"\b(?:if|when|whenever) (?:you(?: (?:can|could|would|may|please|like|have time)|'d)(?: be so kind)?"
    r"|(?:(?:it'?s|it is|that'?s|at all) )?(?:possible|convenient|ok(?:ay)?|fine|alright)|i may)\b|\beven if\b"
    r"|\bif you (?:don't|do not|wouldn't) mind\b|\bwhen you get (?:a|the) (?:chance|minute|moment)\b"
    r"|如?果?(?:你|您)?(?:可以|方便|可能|行)的话|如果(?:你|您)?(?:可以|方便)"
)
_WONDERING = lazy_pattern(
    r"\b(?:i was |i am |i'm |just )*wonder(?:ing|ed)? (?:if|whether) you (?:can|could|would|might)\b"
)
_TOLD = lazy_pattern(  # what is to be found out or told, and what one is reminded of
    r"\b(?:let (?:me|us) know|tell|inform|notify|explain|describe|clarify|show|see|know|ask|find out|check|verify"
    r"|confirm|understand|hear|learn|e-?mail|message|text|ping|update)(?: (?:me|us|him|her|them))?(?: about)?"
    r" (?:why|how|what|whether|if|when|once|as soon as|after|who|which|where)\b[^.;!?,]*"
)
_REMINDED = lazy_pattern(r"\bremind (?:me|us)\b[^.;!?]*|提醒(?:一下)?我[^。；！？!?]*")
_PUT_OFF = lazy_pattern(
    r"\b(?:as soon as|suppose|supposing|assuming|not (?:now|yet|today))\b"
    r"|\b(?:once|after) (?:it|they|he|she|i|you|we|that|(?:the|my|this) [a-z]+ (?:is|are|has|have|[a-z]+s))\b"
    r"|假设|一旦|先别|先不|等[^，。,]{1,12}(?:后|再|就|了)"
)
_WHEN = lazy_pattern(r"\bwhen(?:ever)? (?:it|they|he|she|there|i|you|we|the|my|this|that)\b[^,.;!?]*")
_PAST = lazy_pattern(r"\b(?:was|were|did|had|got|came|went|bought|paid|made|sent|took|[a-z]{2,}ed)\b")
_DOUBTFUL = lazy_pattern(
    r"\b(?:might|maybe|perhaps|thinking (?:about|of)|consider(?:ing)?|wonder(?:ing)?|what if|imagine|hypothetically"
    r"|in theory|some ?day|eventually|not sure|(?:would|could|should) have|what happens)\b|也许|可能要|打算|考虑|犹豫"
)
_FILLERS = r"(?:\W|\b(?:hi|hello|hey|so|and|also|ok|okay|well|now|sorry|thanks|just|actually|btw|by the way)\b)*"
_AUXILIARY = r"(?:did|does|is|are|was|were|am(?= i\b)|has|had|should|shall|must|may|might|can|could|would|will)"
_QUESTION = lazy_pattern(
    rf"{_FILLERS}(?:(?:why|who|whom|whose|which|how)\b|{_AUXILIARY}(?:n't)?\b|(?:do|have)(?:n't)? (?:i|you|we|they)\b"
    rf"|(?:what|where|when)(?:'s|'re)? (?:{_AUXILIARY}|do|have|happens|happened)\b)"
)
_TAG = lazy_pattern(
    r",\s*(?:right|correct|true|yes|no|isn't it|did(?:n't)? (?:you|they|it)|ha(?:ve|s)(?:n't)? (?:you|they|it))\s*\?"
    r"|(?:对吧|对吗|是吧|是吗)\s*\?"
)
_ASKING = lazy_pattern(
    r"\b(?:(?:can|could|will|would|can't|couldn't|won't) you"
    r"|(?:can|could|may) (?:i|we) (?:please |also |just )*(?:get|have)"
    r"|(?:would|do) you mind|please|kindly|i(?:'d| would) (?:like|love)|(?:i|we) (?:want|need))\b"
)
_CHINESE_QUESTION = lazy_pattern(
    r"为什么|为何|怎么(?!样都)|怎样|如何|是不是|有没有|是否|该不该|要不要|需不需要|用不用|什么时候|何时|谁|会不会"
)
_CHINESE_ASKING = lazy_pattern(r"请(?!问)|帮我|帮忙|替我|麻烦|给我|我[想要]|需要")
_CHINESE_PARTICLE = lazy_pattern(r"[吗呢嘛][?。!]?\s*$|了没有?[?。!]?\s*$|\?\s*$|多少|哪[个些里]")

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_COUNT = r"(?:an?|one|two|three|four|five|six|seven|ten|twelve|a few|a couple of|few|\d{1,3})"
_LATER = lazy_pattern(
    r"\b(?:tomorrow|tonight|later"
    rf"|(?:next|the following|this coming) (?:week|month|year|quarter|time|{_WEEKDAY}|{_MONTH})"
    rf"|in {_COUNT} (?:more )?(?:minute|hour|day|week|month|year)s?|(?:on|this) {_WEEKDAY}"
    r"|at (?:noon|midnight|\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock))"
    r"|at the end of (?:the |this |next )?(?:day|week|month|year)"
    rf"|on (?:the )?(?:{_MONTH} \d{{1,2}}|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|\d{{1,2}}(?:st|nd|rd|th)"
    r"|\d{4}-\d\d-\d\d))\b"
    r"|明天|后天|明早|明晚|今晚|下个?(?:周|星期|月|季度|礼拜)[一二三四五六日天末]?|明年|下次|以后|到时候?|等会儿?|待会儿?"
    r"|晚点|晚些时?候?|稍后|回头再|改天|过(?:几|两|一|些|\d{1,3})个?(?:天|周|星期|月|小时|分钟)"
    r"|[一两三四五六七八九十几半\d]+个?(?:天|周|星期|月|小时|分钟)(?:之|以)?后|[月年周]底|周末"
)
_OF_A_THING = lazy_pattern(  # before a time: it says which thing is meant, or by when
    r"\b(?:for|of|from|to|until|till|by|since|before|into|onto|due|starting|arriving|leaving|departing"
    r"|bought|made|paid|sent|came|[a-z]{2,}ed)(?: the| my)? $|[到至成为]$"
)
_OF_A_THING_AFTER = lazy_pattern(
    r"'s\b|(?:上午|下午|早上|晚上|中午)?(?:\d{1,2}[点:]\d{0,2}分?半?)?(?:的|[那这]?[个场次趟班]?(?:会|预约|航班|机票|火车|酒店|课))"
)
_LAST_WORD = lazy_pattern(r"([a-z]+)\W*$")
_TIMED_KINDS = frozenset({"event", "hotel", "restaurant", "car", "flight", "train"})
_TIMED_THINGS = words_of("booking reservation trip delivery visit stay shift course session pickup")
_TIME_WORDS = words_of("date dates time day when at start end due until month schedule scheduled")
_TIME = lazy_pattern(rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}:\d\d|{_LATER.pattern}")


def asks_now(texts: Iterable[str], card: ToolCard, args: Any, *, by_reply: bool) -> bool:
    """Whether texts of people ask for a call to be made now, if need be on a condition that the run can check.

    `by_reply`: a model that was asked what they call for named the tool. That is enough where they say anything at all,
    and do not ask about the act, negate it or put it off.
    """
    is_timed = _carries_time(card, args)
    now, others = TaskIntent(), TaskIntent()
    for text in texts:
        for sentence in re.split(_SENTENCE.pattern, without_quotes(text)):
            asking, rest = _split_terms(sentence, is_timed=is_timed)
            now.add(asking)
            others.add(rest)
    if now.calls_for(card):
        return True
    return by_reply and now.says_anything and not others.speaks_of(card)


def _carries_time(card: ToolCard, args: Any) -> bool:
    """Whether a call says itself when something is to happen."""
    for path, value in leaves(args):
        if value in (None, "") or card.role(first_name(path)) in ("content", "minor"):
            continue
        words = {word for step in re.split(r"[.\[\]]", path) for word in name_words(step)}
        if not words.isdisjoint(_TIME_WORDS) or (isinstance(value, str) and _TIME.search(value.casefold())):
            return True
    return False


def _split_terms(sentence: str, *, is_timed: bool) -> tuple[str, str]:
    """What a sentence asks for or states, and what of it is a question, for later or negated.

    What is negated is in both: the words that ask for an act are looked at as a whole.
    """
    asides = [match.group() for pattern in (_TOLD, _REMINDED) for match in pattern.finditer(sentence)]
    plain = _POLITE.sub(" ", _WONDERING.sub("please", sentence))
    for pattern in (_TOLD, _REMINDED):
        plain = pattern.sub(" ", plain)
    awaited = [match for match in _WHEN.finditer(plain) if not _PAST.search(match.group())]
    is_asking = _ASKING.search(plain) is not None
    is_open = bool(awaited) or _PUT_OFF.search(plain) or (not is_asking and _DOUBTFUL.search(plain))
    if is_open or _TAG.search(plain) or (not is_timed and _is_later_as_a_whole(plain)):
        return "", sentence
    is_asked = (plain.rstrip().endswith("?") and not is_asking) and not _CHINESE_ASKING.search(plain)
    clauses = [part for part in re.split(_CLAUSE.pattern, plain) if part.strip()]
    now, others = list[str](), asides
    for index, clause in enumerate(clauses):
        is_question = _is_question(clause) or (is_asked and index == len(clauses) - 1)
        is_now = not is_question and (is_timed or not _is_later(clause))
        if is_now:
            now.append(clause)
        if not is_now or not NEGATIONS.isdisjoint(clause.split()) or CHINESE_NEGATION.search(clause):
            others.append(clause)
    return ", ".join(now), ", ".join(others)


def _is_question(clause: str) -> bool:
    if _CHINESE_QUESTION.search(clause):
        return True
    if _CHINESE_PARTICLE.search(clause) and not _CHINESE_ASKING.search(clause) and not re.search("[a-z]", clause):
        return True
    return _QUESTION.match(clause) is not None and not _ASKING.search(clause)


def _is_later_as_a_whole(sentence: str) -> bool:
    """Whether a sentence begins with a time, or has one by itself, which is then the time of all that it asks for."""
    start = re.match(rf"{_FILLERS}(?:please |请)?", sentence)
    match = _LATER.match(sentence, start.end() if start else 0)
    if match is not None and not _OF_A_THING_AFTER.match(sentence, match.end()):
        return True
    return any(_LATER.fullmatch(clause.strip(" .!?。")) for clause in re.split(_CLAUSE.pattern, sentence))


def _is_later(clause: str) -> bool:
    """Whether a time in a clause is that of what it asks for, and not of a thing in it: "cancel my flight tomorrow"."""
    for match in _LATER.finditer(clause):
        before = clause[: match.start()]
        if _OF_A_THING.search(before) or _OF_A_THING_AFTER.match(clause, match.end()):
            continue
        word = _LAST_WORD.search(before)
        noun = stem(word[1]) if word is not None else ""
        if not KIND_OF.get(noun, frozenset()) & _TIMED_KINDS and noun not in _TIMED_THINGS:
            return True
    return False


# how often

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
