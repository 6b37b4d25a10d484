"""The mood of a sentence: whether it orders something, and which verb a tool's card must know to obey it."""

from __future__ import annotations

import re

from taoloop.models.offline.extract import MARK
from taoloop.models.offline.lexicon import CHANGES, STOP_ENGLISH
from taoloop.models.offline.words import concepts, is_chinese, segments

_ASKED_IF = re.compile(
    r"\b(?:ask(?:ing|s|ed)?(?:\s\S+)?|check(?:ing)?|see|know|tell me|wonder(?:ing)?)\s+if\b", re.IGNORECASE
)
_IF = re.compile(
    r"\b(?:if|unless|in case|assuming|suppose|provided that)\b|如果|假如|假设|要是|倘若|万一|除非", re.IGNORECASE
)
_DELIBERATES = re.compile(
    r"^(?:so|and|but|then|hey|hi|well)?[\s,]*(?:(?:should|shall|ought|may|might|must)\b|am\s+i|are\s+we|would\b(?!\s+you\b)"
    r"|could\b(?!\s+you\b)|can\b(?!\s+you\b)|do(?:es)?\s+(?:i|we|you|they|it|one)\b|why\b"
    r"|how\s+(?:do|can|should|would|could|to|about)\b|what\s+(?:happens|would|if|about)\b"
    r"|is\s+(?:it|this|that|there)\s+(?:\w+\s+)?(?:ok(?:ay)?|safe|wise|allowed|possible|necessary|needed|fine|better|good|best|smart"
    r"|right|legal|time|a\s+\w+\s+idea|any)\b|will\b(?!\s+you\b))",
    re.IGNORECASE,
)
_WEIGHS = re.compile(
    r"\bwhether\b|\bshould\s+(?:i|we)\b"
    r"|\b(?:i|we|one|he|she|they|it|someone|somebody|anyone)\s+(?:really\s+)?(?:should|could|may|might|must|can)\b"
    r"|\b(?:i|we|he|she|they|someone|somebody|people|[A-Z][a-z]+)\s+(?:think|thinks|thought|believes?|said|says|told|wonders?|wondered"
    r"|suggests?|suggested|recommends?|recommended|heard|considers?|considered|(?:am|is|are)\s+(?:thinking|considering|wondering))\b",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"^(?:(?:who|what|which|whose|when|where|why|how|is|are|was|were|did|does|has|have|had)\b"
    r"|(?:i|he|she|it|they|we|you|someone|somebody|nobody|everyone)\b(?!\s*(?:['’]d|would)\s+like\s+(?:you\s+)?to\b)"
    r"(?!\s+(?:really\s+)?(?:want|need|wish)\s+(?:you\s+)?to\b)"
    r"|(?:the|a|an|my|our|this|that)\b.*\b(?:was|were|is|are|has|have|had|got)\b"
    r"|[A-Za-z]+\s+(?:has|had|was|is|will|[a-z]{2,}ed)\b)",
    re.IGNORECASE,
)
_CHINESE_ASKS = re.compile(
    r"要不要|是否|该不该|应不应该|应该|应当|需不需要|有没有必要|有必要|会不会|建议|觉得|认为|听说|据说|考虑|有人|好不好|行不行|怎么|怎样|如何|为什么|为何|谁|什么时候|会怎"
    r"|(?:需要|必须|得|敢|要)[^,，。]*[吗么嘛]"
)
_CHINESE_MAY = re.compile(r"能不能|可不可以|可否|能否|(?:可以|能)[^,，。]*[吗么嘛]")
_ADDRESSED = re.compile(r"请(?!问)|麻烦|帮|你(?:们)?(?:能|可)|您(?:能|可)")
_CHINESE_STATES = re.compile(
    r"^(?:我|他|她|它|我们|他们|她们|有人)(?!们)(?!(?:们)?(?:要|想|需要|希望|请)).*了|昨天.*了"
)


def deliberates(sentence: str) -> bool:
    """True if a whole sentence weighs, asks or supposes, so that nothing in it is an order to act."""
    plain = _ASKED_IF.sub(" ", sentence)
    if _IF.search(plain) or _DELIBERATES.search(plain.strip()) or _WEIGHS.search(plain):
        return True
    if not is_chinese(sentence):
        return False
    asked = _CHINESE_ASKS.search(sentence) or (_CHINESE_MAY.search(sentence) and not _ADDRESSED.search(sentence))
    return asked is not None and asked is not False


def orders(clause: str) -> bool:
    """True if a clause by itself reads as an order, and not as a question or a report."""
    text = clause.strip()
    first = text.split(" ", 1)[0].lower()
    if set(concepts(first)) & CHANGES and not first.endswith("ed"):
        return True
    return not _STATES.search(text) and not _CHINESE_STATES.search(text)


_POLITE = re.compile(
    r"^(?:(?:please|kindly|just|now|also|then|first|finally|hey|can you|could you|would you|will you"
    r"|i want (?:you )?to|i need (?:you )?to|i(?:['’]d| would) like (?:you )?to"
    r"|(?:should|can|may|could|shall|must|might) (?:i|we|one)|do (?:i|we) (?:need|have) to"
    r"|how (?:do|can|should) (?:i|we)"
    r"|how to|what happens (?:if|when) (?:i|we)|is it \w+ to|help me(?: to)?|let['’]s|go ahead and|try to)"
    r"[\s,]+)+",
    re.IGNORECASE,
)
_HEAD = re.compile(rf"(?P<verb>[^\W\d_\u3400-\u9fff][^\W\d_A-Z\u3400-\u9fff]+)\s+(?P<next>{MARK}|[A-Za-z]+)")
_OBJECTS_WORDS = "the a an my your our his her their this that these those all every each some me us it them"
_OBJECTS = frozenset(_OBJECTS_WORDS.split())
_LIGHT_WORDS = (
    "get give show tell find fetch look check see determine obtain grab retrieve provide need want know ask compute "
    "calculate work evaluate figure display state report name identify inspect view pull use call make do have take "
    "let go bring say answer print return is are was were what who whom whose which how when where why does did read "
    "open list search count compare set put turn start examine seek browse query lookup describe measure test verify "
    "double halve square triple add subtract multiply divide sum half twice total average"
)
_LIGHT = frozenset(_LIGHT_WORDS.split())
_PLAIN_WORDS = (
    "translate delete remove erase send email mail summarize summarise write save store append encrypt "
    "decrypt compress explain sing paint draw play book reserve buy purchase order pay transfer cancel "
    "install deploy publish approve reject archive rename copy move compose debug refactor compile "
    "predict recommend sort reverse replace rewrite convert schedule remind upload download execute run "
    "restart subscribe create generate update edit"
)
_PLAIN = frozenset(_PLAIN_WORDS.split())
LEADING_VERBS = _LIGHT | _PLAIN
"""Verbs that begin an order."""

_ALSO_NOUNS_WORDS = (
    "email mail book order play copy update schedule purchase transfer archive move pay draw reserve sort paint run"
)
_ALSO_NOUNS = frozenset(_ALSO_NOUNS_WORDS.split())
_STRICT_WORDS = (
    "@translate @delete @send @summary @reserve @buy @pay @sort @reverse @encrypt @explain @sing @play "
    "@recommend @start_service @stop_service @run @install @compress @move @copy @replace @write @append "
    "@predict @rewrite @publish"
)
_STRICT = frozenset(_STRICT_WORDS.split())
_ALSO = {
    "@convert": "@currency @unit", "@send": "@email @message @pay", "@write": "@append @create @update",
    "@email": "@send",
    "@book": "@reserve @buy", "@buy": "@order", "@stop_service": "@close @turn", "@pay": "@send",
    "@order": "@buy", "@update": "@write", "@create": "@write @event @task @note",
    "@message": "@send", "@append": "@write", "@move": "@copy", "@replace": "@convert @update",
    "@remind": "@event @task",
}  # fmt: skip
_NO_VERB = frozenset({"@book", "@order", "@event"})
_FACT = re.compile(r"谁|哪|什么|为何|吗|何时|多少|几")


def verbs(clause: str) -> list[frozenset[str]]:
    """What the main verb of an order demands of a card: for each verb, the concepts of which it must have one."""
    if is_chinese(clause):
        if _FACT.search(clause):
            return []
        found = {c for word in segments(clause) for c in word.about if c in _STRICT}
        if "@replace" in found:
            found -= {"@convert"}
        return [_alternatives({concept}) for concept in sorted(found)]
    head = _HEAD.match(_POLITE.sub("", clause.strip()))
    if head is None:
        return []
    verb, after = head["verb"].lower(), head["next"].lower()
    if verb in _LIGHT or (verb in STOP_ENGLISH and verb not in _PLAIN):
        return []
    if after in _OBJECTS or not after.isascii() or (verb in _PLAIN and verb not in _ALSO_NOUNS):
        wanted = _alternatives(set(concepts(verb)) if verb.isascii() else {verb})
        named = wanted - _NO_VERB if after in _OBJECTS else wanted
        return [named or wanted] if wanted else []
    return []


def _alternatives(wanted: set[str]) -> frozenset[str]:
    return frozenset(wanted | {other for concept in wanted for other in _ALSO.get(concept, "").split()})
