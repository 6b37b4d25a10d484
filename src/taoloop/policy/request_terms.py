"""On which terms the task asks for a call: now or not, and how often. What is unclear counts as not asked for.

"Why did you refund it?", "should I cancel?", "when it arrives, cancel" and "cancel it next month" speak of an act and
do not ask for it to be done now. Neither do "make a plan to delete it", "Bob wants me to delete it" and "an article on
deleting it". `asks_now` reads what is left without them. Whatever the words of a task allow is allowed by it: a call by
the table, a call fixed ahead, and a rule for what was requested. "If it is sold out, cancel" does ask: only the run can
find out whether it is.

"Pay Ann 5 twice", "给安付两次5元": only a number of times beside the request itself counts, in one clause with it: in
"I was charged twice, refund 5", "check twice and pay 5" and "pay 5 and never twice" nothing is asked for twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.text import lazy_pattern
from taoloop.core.words import name_words
from taoloop.policy.intent.requests import CHINESE_NEGATION, NEGATIONS, quoted_parts, without_quotes
from taoloop.policy.intent.task_intent import TaskIntent
from taoloop.policy.intent.vocabulary import AMBIGUOUS_VERBS, KIND_OF, LIGHT_VERBS, VERBS, stem, words_of
from taoloop.policy.targets import first_name, leaves

# whether something is asked for now

_NESTED_END = r"(?:(?! and (?:then |also |please )?[a-z]+ (?:the|a|an|my|our|it|them|him|her|me|us)\b)[^.;!?,])*"
_RELATIVE_END = r"(?:(?! and\b| in\b| from\b| to\b)[^.;!?,])*"
_WORDS_ON_ACTS = (  # texts and thoughts that may be about an act
    r"(?:plans?|proposals?|ideas?|drafts?|lists?|checklists?|scripts?|commands?|instructions?|guides?|tutorials?|manuals?"
    r"|steps|essays?|articles?|posts?|stor(?:y|ies)|poems?|songs?|notes?|reports?|summar(?:y|ies)|emails?|messages?"
    r"|letters?|memos?|questions?|reasons?|rules?|polic(?:y|ies)|arguments?|ways?|options?|permissions?|requests?"
    r"|requirements?|estimates?|costs?|risks?|pros and cons|discussions?|blogs?|speech(?:es)?|docs|documentation)"
)
_PLAIN_VERBS = "|".join(sorted((VERBS | LIGHT_VERBS) - AMBIGUOUS_VERBS))
_OTHER_VERBS = "|".join(sorted(AMBIGUOUS_VERBS))
_ACT_NOUNS = r"deletion|removal|refund|payment|transfer|cancellation|archiv(?:al|e)|purchase"
_CHINESE_TEXTS = (
    r"(?:[一二三四五六七八九十几两\d]+[篇个份条首段]|详细|具体|完整|简短|操作)?的?"
    r"(?:文章|计划|方案|教程|步骤|说明|脚本|清单|列表|方法|命令|指南|故事|诗|歌|影响|后果|原因|理由|流程|报告|提案|建议"
    r"|草稿|风险|利弊|笔记|思路|流程|文件名?|名单)"
)
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
_PROPOSED = lazy_pattern(  # a request in the form of a question; not "can we cancel orders", "can we cancel it if …"
    r"(?P<lead>^\W*|[,;:]\s*|\b(?:so|and|also|hi|hello|hey|ok|okay|then|well|please) )"
    r"(?:(?:can|could|shall) we (?:(?:please|also|just|now|maybe|perhaps) )*"
    r"|would it be (?:possible|ok(?:ay)?) (?:for you )?to )"
    r"(?=(?:book|schedule|order|create|add|set up|send|make|plan|buy|reserve|arrange|put)\b"
    r"|[a-z]+ (?:back )?(?!(?:an?|any|some|[a-z]+s)\b(?! ?[#\d])|have\b))(?!be\b|have\b|get\b)"
    r"(?![^.!?]*\b(?:once|unless|without|still|ever|at all|or|when(?:ever)?|until|even|in (?:case|principle|general)"
    r"|generally|usually|normally|for free|costs?|fees?|charged?|after (?:it|they|the|my|our|[a-z]+ing|delivery))\b)"
)
_WISHED = lazy_pattern(
    r"\b(?:can|could|may) (?:i|we) (?:please |also |just )*(?:get|have)\b(?! [a-z]+ed\b)"
    r"(?![^.!?]*\b(?:once|unless|when(?:ever)?|after|without)\b)"
)
_CONDITION = lazy_pattern(r"\bif\b|如果|要是|假如")  # it makes a question of what would be a request
_CHINESE_PROPOSED = lazy_pattern(
    r"(?P<lead>^|[，,、]\s*)(?:请问|你好|您好)?[，,]?\s*(?:你|您|我们|咱们)?(?:能不能|能否|可不可以|可否|可以|能|是否可以)"
    r"(?![^。！？!?]*(?:的话|什么|怎么|多久|哪|还是|之?后(?!天)|一般|通常|随时|告诉|费|多少))"
    r"(?=[把将]|[^，,。！？!?]{1,8}\d)"
    r"|(?:^|(?<=[，,、]))(?:我们|咱们)(?=[把将][^。！？!?]{2,40}[好行]吗)"
)
_TOLD = lazy_pattern(  # what is to be found out or told; if to somebody else, they are told it
    r"(?P<teller>\b(?:tell|inform|notify|ask|e-?mail|message|text|ping|update)"
    r" (?!me\b|us\b|him\b|her\b|them\b|about\b|why\b|how\b|what\b|whether\b|if\b|when\b|once\b|who\b|which\b|where\b)"
    r"[^\s.;!?,]{1,60}(?: [^\s.;!?,]{1,60}){0,2}?)"
    rf" (?:why|how|what|whether|if|when|who|which|where)\b{_NESTED_END}"
    r"|\b(?:let (?:me|us) know|tell|told|inform|notify|explain|describe|clarify|show|see|know|ask(?:s|ed)?|find out"
    r"|check|verify|confirm|understand|hear|learn|e-?mail|message|text|ping|update)"
    r"(?: (?:me|us|him|her|them))?(?: about)?"
    rf" (?:why|how|what|whether|if|when|once|as soon as|after|who|which|where)\b{_NESTED_END}"
)
_NESTED = lazy_pattern(  # what somebody else wants, what a text or a plan is about, and what a thing is for
    r"\b(?:wants?|wanted|asks?|asked|tells?|told|expects?|expected|needs|needed|begs?|begged|urges?|urged|instructs?"
    r"|instructed|ordered|orders|advises?|advised|suggests?|suggested|proposes?|proposed|recommends?|recommended)"
    rf" (?:(?:me|us) to|that (?:i|we)|(?:i|we))\b{_NESTED_END}"
    rf"|\b(?:i|we) (?:was|were|am|are|got|have been|had been) (?:told|asked|advised|ordered"
    rf"|instructed) to\b{_NESTED_END}"
    r"|(?<=[a-z] )(?:(?:that|which) )?(?<!and )(?<!but )(?<!so )(?<!then )(?<!if )(?<!because )(?<!please )"
    r"(?:i|we|you|one) (?:should|could|can|might|may|must|would|have to|need to|ought to|want to"
    r"|wanted to|am to|are to)"
    rf"(?: not)? [a-z]+\b{_RELATIVE_END}"
    r"|关于[^，。；！？,.;!?\n]*?的|关于[^，。；！？,.;!?\n]*"
    rf"|(?<=写)[^，。；！？,.;!?\n]*?的(?={_CHINESE_TEXTS})"
    r"|(?:列|制定|拟定?|起草|准备|规划|策划|设计|做|写|查|看|讲|介绍|说明|解释|讨论|研究)(?:[出一下个篇份封]|了解){0,3}"
    rf"[^，。；！？,.;!?\n]*?的(?={_CHINESE_TEXTS})"
    r"|(?<![^\s，。；！？,.;!?])[^\s，。；！？,.;!?\n请帮别不我你您]{1,8}(?<![点分上午晚时候后前早天])(?:想要?|要求?|让|叫|建议|希望|催)我们?[^，。；！？,.;!?\n]*"
)
_SUBJECTS = lazy_pattern(  # what a text or a plan is about, or somebody is to be asked: without it, who or what stays
    rf"(?P<kept>\b{_WORDS_ON_ACTS}) (?:(?:on|about|of|for) )?(?:how |when |whether )?to"
    rf" (?:{_PLAIN_VERBS}|(?:{_OTHER_VERBS}) (?:the|an?|my|our|all|it|them|this|that)\b)\b{_NESTED_END}"
    rf"|(?P<topic>\b{_WORDS_ON_ACTS}) (?:on|about|of|for|against|describing|explaining|regarding"
    rf"|concerning|that says|saying)"
    rf" (?:[a-z]+ing|(?:the |a )?(?:{_ACT_NOUNS}))\b{_NESTED_END}"
    r"|(?P<asked>(?:问|告诉|通知|转告)(?:问|一?下|一声)?(?!我|题|候)[^，。；！？,.;!?\n]{0,8}?)"
    r"(?=谁|什么|哪|怎么|如何|是不是|有没有|是否|要不要|该不该|为什么|几点|多少|能不能|会不会|能否)[^，。；！？,.;!?\n]*"
)
_REMINDED = lazy_pattern(r"(?P<kept>\bremind (?:me|us))\b[^.;!?]*|(?P<asked>提醒(?:一下)?我)[^。；！？!?]*")
_PUT_OFF = lazy_pattern(
    r"\b(?:as soon as|suppose|supposing|assuming|not (?:now|yet|today))\b"
    r"|\b(?:once|after) (?:it|they|he|she|i|you|we|that(?!,)|(?:the|my|this) [a-z]+ (?:is|are|has|have|[a-z]+s))\b"
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
    r"|(?:would|do) you mind|please|kindly|i(?:'d| would) (?:like|love)|(?:i|we) (?:want|need))\b"
)
_CHINESE_QUESTION = lazy_pattern(
    r"为什么|为何|怎么(?!样都)|怎样|如何|是不是|有没有|是否|该不该|要不要|需不需要|用不用|什么时候|何时|谁|会不会"
)
_CHINESE_ASKING = lazy_pattern(r"请(?!问)|帮我|帮忙|替我|麻烦|给我|我[想要]|需要")
_CHINESE_PARTICLE = lazy_pattern(
    r"[吗呢嘛][?。!]?\s*$|了没有?[?。!]?\s*$|\?\s*$|多少|哪[个些里]|能不能|能否|可不可以|可否"
)

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
_OF_A_THING = lazy_pattern(  # before a time: it says which thing is meant, or by when, or is what is to be said
    r"\b(?:that|saying|to say)\b[^,.;!?]*$|(?:[说讲问]|通知|告诉|告知|转告)[^，。,.;!?]*$|\b(?:for|of"
    r"|from|to|until|till|by|since|before|into|onto|due|starting|arriving|leaving|departing"
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
    now, reminders, other_intent = _terms_of(tuple(texts), is_timed)
    if now.calls_for(card) or reminders.calls_for(card):
        return True
    return by_reply and now.says_anything and not other_intent.speaks_of(card)


@lru_cache(maxsize=128)
def _terms_of(texts: tuple[str, ...], is_timed: bool) -> tuple[TaskIntent, TaskIntent, TaskIntent]:  # a key
    """What texts ask for now, of what they want a reminder, and what they say besides.

    Each text stays one: "it" may refer back to another sentence.
    """
    now, reminders, other_intent = TaskIntent(), TaskIntent(), TaskIntent()
    for text in texts:
        sentences = re.split(_SENTENCE.pattern, without_quotes(text))
        terms = [_split_terms(sentence, is_timed=is_timed) for sentence in sentences]
        now.add("\n".join(asking for asking, _ in terms))
        other_intent.add("\n".join((*(rest for _, rest in terms), *quoted_parts(text))))
        for sentence in sentences:
            for match in _REMINDED.finditer(sentence):
                if not _is_question(sentence) and not _is_negated(sentence):
                    reminders.add(match["kept"] or match["asked"])
    return now, reminders, other_intent


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
    plain = _POLITE.sub(" ", _WONDERING.sub("please", sentence))
    if not _CONDITION.search(plain):
        plain = _WISHED.sub(r"please \g<0>", _PROPOSED.sub(r"\g<lead>please ", plain))
        plain = _CHINESE_PROPOSED.sub(r"\g<lead>请", plain)
    asides = list[str]()
    for pattern in (_NESTED, _SUBJECTS, _TOLD, _REMINDED):
        asides += [match.group() for match in pattern.finditer(plain)]
        plain = pattern.sub(" " if pattern is _REMINDED else _kept_part, plain)
    awaited = [match for match in _WHEN.finditer(plain) if not _PAST.search(match.group())]
    is_asking = _ASKING.search(plain) is not None
    is_open = bool(awaited) or _PUT_OFF.search(plain) or (not is_asking and _DOUBTFUL.search(plain))
    if is_open or _TAG.search(plain) or (not is_timed and _is_later_as_a_whole(plain)):
        return "", sentence
    is_asked = (plain.rstrip().endswith("?") and not is_asking) and not _CHINESE_ASKING.search(plain)
    clauses = [part for part in re.split(_CLAUSE.pattern, plain) if part.strip()]
    now, other_clauses = list[str](), asides
    for index, clause in enumerate(clauses):
        is_question = _is_question(clause) or (is_asked and index == len(clauses) - 1)
        is_now = not is_question and (is_timed or not _is_later(clause))
        if is_now:
            now.append(clause)
        if not is_now or _is_negated(clause):
            other_clauses.append(clause)
    asking = plain if len(now) == len(clauses) else ", ".join(now)
    return asking, ", ".join(other_clauses)


def _kept_part(match: re.Match[str]) -> str:
    """What stays of a phrase without what it is about: "a plan", "tell Ann"."""
    return f"{next(filter(None, match.groupdict().values()), '')} "


def _is_negated(text: str) -> bool:
    return not NEGATIONS.isdisjoint(text.split()) or CHINESE_NEGATION.search(text) is not None


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


def times_requested(texts: Iterable[str], card: ToolCard) -> int:
    """How often texts of people ask for the same call of a tool: once, unless they say so."""
    return max((_times_in(text, card) for text in texts), default=1)


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
