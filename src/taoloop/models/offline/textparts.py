"""The parts of a task about a text: what is replaced, by what, which letter or word is meant, and the text itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.schema import Param
from taoloop.models.offline.words import is_chinese, name_words

Part = Literal["old", "new", "needle", "whole"]

_ONE = rf"(?:{MARK}|[A-Za-z0-9][\w-]*)"
_LABEL = r"(?:(?:the|a|every|each|all)\s+)*(?:(?:letters?|characters?|words?|phrase|term|substring|strings?|text)\s+)?"
_LABEL_ZH = r"(?:所有的?|全部|每个)?(?:字母|字符|单词|词语|文字|字)?\s*"
_REPLACE = re.compile(
    rf"\b(?:replace|change|swap|substitute)\s+{_LABEL}(?P<old>{_ONE})\s+(?:with|by|to|for|into)\s+{_LABEL}(?P<new>{_ONE})",
    re.IGNORECASE,
)
_REPLACE_ZH = re.compile(
    rf"(?:把|将)\s*(?:{MARK}\s*(?:里面?|中|内|当中)的?\s*)?{_LABEL_ZH}(?P<old>{_ONE})\s*都?\s*"
    rf"(?:替换成|替换为|换成|改成|改为|换为|替换)\s*{_LABEL_ZH}(?P<new>{_ONE})"
)
_NEEDLES = (
    re.compile(rf"\b(?:letter|character|word|phrase|term|substring)s?\s+(?P<needle>{_ONE})", re.IGNORECASE),
    re.compile(rf"\bcontains?\s+{_LABEL}(?P<needle>{_ONE})", re.IGNORECASE),
    re.compile(rf"\bhow\s+many\s+(?P<needle>{MARK}|[A-Za-z])(?:['’]?s)?\s+(?:are\s+)?(?:there\s+)?in\b", re.IGNORECASE),
    re.compile(rf"\b(?:is|does|count|find)\s+(?P<needle>{MARK})\s+(?:\w+\s+)?in\s+(?={MARK})", re.IGNORECASE),
    re.compile(rf"(?:包含|含有|出现|字母|字符|单词|有几个|有多少个)\s*{_LABEL_ZH}(?P<needle>{_ONE})"),
)
_NO_NEEDLES_WORDS = "in is are the of count counts that and or to for from has have with by at on it"
_NO_NEEDLES = frozenset(_NO_NEEDLES_WORDS.split())
_OLD_WORDS = "old find from search before what needle pattern"
_OLD = frozenset(_OLD_WORDS.split())
_NEW_WORDS = "new replacement replace with to after by"
_NEW = frozenset(_NEW_WORDS.split())
_NEEDLE_WORDS = "letter char character needle word substring sub term keyword search find phrase target"
_NEEDLE = frozenset(_NEEDLE_WORDS.split())
_TOPICS = frozenset({"query", "text"})
_WHOLE_WORDS = "text string content input sentence haystack message source data body"
_WHOLE = frozenset(_WHOLE_WORDS.split())


def text_parts(clause: str, skeleton: Skeleton) -> Mapping[Part, str]:
    """Marks or words by the part that they play; empty if the clause is not about parts of a text."""
    found: dict[Part, str] = {}
    if match := _REPLACE.search(clause) or (_REPLACE_ZH.search(clause) if is_chinese(clause) else None):
        found = {"old": match["old"], "new": match["new"]}
    else:
        for pattern in _NEEDLES:
            match = pattern.search(clause)
            if match and match["needle"].lower() not in _NO_NEEDLES:
                found = {"needle": match["needle"]}
                break
    if found:
        rest = [m for m in re.findall(MARK, clause) if m not in found.values() and skeleton.atom(m).kind == "quoted"]
        found |= {"whole": rest[0]} if len(rest) == 1 else {}
    return found


def part_of(param: Param, params: tuple[Param, ...], parts: Mapping[Part, str]) -> str:
    """The mark or word for an argument by its name; empty if it plays no part."""
    texts = [other for other in params if other.takes_text and not other.choices and other.required]
    if not param.takes_text or param.choices or param.role not in ("query", "text", "any", "name", "path"):
        return ""
    if len(texts) < 2:
        return parts.get("needle", "") if "whole" not in parts and param.required and param.role in _TOPICS else ""
    words = set(name_words(param.name))
    order: tuple[tuple[Part, frozenset[str]], ...] = (
        ("new", _NEW), ("old", _OLD), ("needle", _NEEDLE), ("whole", _WHOLE),
    )  # fmt: skip
    return next((parts[part] for part, names in order if part in parts and words & names), "")
