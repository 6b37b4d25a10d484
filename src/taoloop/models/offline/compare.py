"""Comparisons: two questions of one form, and what their answers are asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from taoloop.models.offline.extract import MARK, Atom, Skeleton
from taoloop.models.offline.words import is_chinese

How = Literal["more", "apart", "which", "whether"]

_UP = (
    "warm hot old tall long big large high heavy fast rich far great strong wet dry windy sunny dense deep new bright "
    "loud safe"
)
_DOWN = "cool cold young short small low cheap light slow poor close near weak"
_LONGEST = 300
_IRREGULAR = {
    "hot": "hott",
    "big": "bigg",
    "wet": "wett",
    "dry": "dri",
    "windy": "windi",
    "sunny": "sunni",
    "heavy": "heavi",
}


def _forms(words: str) -> str:
    return "|".join(f"{_IRREGULAR.get(word, word.rstrip('e'))}(?:er|est)" for word in words.split())


_LESS = rf"less|fewer|least|fewest|worse|worst|{_forms(_DOWN)}"
_COMPARED = rf"(?i:\b(?:more|most|better|best|farther|further|{_forms(_UP)}|{_LESS})\b)"
_IS_LESS = re.compile(
    rf"\b(?:{_LESS})\b|冷|凉|便宜|低|(?<!大)小|少(?!度)|年轻|轻|短|慢|近|[更最较]差|坏|弱|浅|窄|薄", re.IGNORECASE
)
_NAME = (
    r"(?!(?:Which|Who|What|Where|How|Is|Are|Was|Does|Do|Did|Has|Have|By|Tell|The|I|It)\b)[A-Z][\w-]*(?:\s[A-Z][\w-]*)*"
)
_INTRO = r"(?i:(?:the\s+one\s+|that\s+|it\s+is\s+)?(?:in|at|of|for|on|from|by)?\s*(?:the\s+(?:\w+\s+of\s+)?)?)"


def _patterns(one: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """`A … than B`, and `A or B`."""
    asks = r"(?i:is|are|was|does|do|did|has|have)\s+(?:.*?\s)?"
    than = rf"^(?P<pre>.*?{_COMPARED}.*?|{asks})(?P<a>{one})(?P<mid>.*?)(?i:\bthan)\s+{_INTRO}(?P<b>{one})(?P<post>.*)$"
    both = rf"^(?P<pre>.*?)(?P<a>{one})\s*,?\s*(?i:or|and|vs\.?|versus)\s+{_INTRO}(?P<b>{one})(?P<post>.*)$"
    return re.compile(than), re.compile(both)


_FORMS_OF_TWO = (_patterns(MARK), _patterns(rf"(?:{MARK}|{_NAME})"))
_APART = re.compile(r"\bdifference\s*(?:in|of|between)?|\bbetween\b|\bdiffer(?:s|ent)?\b|\bcompared?\b", re.IGNORECASE)
_DIFFERS = re.compile(r"\bdifference\b|\bdiffers?\b", re.IGNORECASE)
_HOW_MUCH = re.compile(r"^(?:(?:tell me|what is)\s+)?(?:by\s+)?how\s+(?:much|many)\b", re.IGNORECASE)
_ASKS_WHICH = re.compile(r"^(?:which|who|what|where|is|are|was|does|do|did|tell me which)\b", re.IGNORECASE)
_ONE_ZH = rf"(?:{MARK}|[A-Za-z][\w-]*)"
_THAN_ZH = re.compile(
    rf"^(?P<pre>.*?)(?P<a>{_ONE_ZH}|[\u4e00-\u9fff]{{2,3}})\s*(?P<field>(?:今天|现在)?(?:的[^比]{{1,8}}?)?)\s*比\s*(?P<b>{_ONE_ZH}|[\u4e00-\u9fff]{{2,3}}?)"
    r"(?:的[^多少]{1,6})?\s*(?P<rest>[更还要]?.+)$"
)
_AND_ZH = re.compile(
    rf"^(?P<pre>.*?)(?P<a>{_ONE_ZH})\s*(?:和|与|跟|、|还是|,|，|或者?)\s*(?P<b>{_ONE_ZH})\s*(?P<rest>.+)$"
)
_APART_ZH = re.compile(r"时差|温差|价差|差价|相差|差距|差值|差额|之差|差多少|差几|差别")
_PARTED_ZH = {"时差": "时间", "温差": "气温", "价差": "价格", "差价": "价格"}
_ADJECTIVE_ZH = re.compile(r"[热冷暖凉贵高低大小多少老重轻长短快慢远近好坏强弱深浅宽窄厚薄]|便宜|年轻|[更最较]差")
_NAMES_ZH = re.compile(
    r"^(?P<pre>(?:请问|请|帮我|比较一下|比较|查一下|看看)*)(?P<a>[\u4e00-\u9fff]{2,8}?)\s*(?:和|与|跟|还是)\s*(?P<b>[\u4e00-\u9fff]{2,8}?)"
    r"\s*(?:相比|比起来)?[,，]?\s*(?P<rest>(?:谁|哪).+)$"
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two questions and what is wanted of them. `marks` are the two things; `less`: the smaller one is asked for.

    `more`: by how much the first is above (or below) the second; `apart`: their distance; `which`; `whether`.
    """

    how: How
    texts: tuple[str, str]
    marks: tuple[str, str]
    less: bool = False


def comparison(clause: str, skeleton: Skeleton) -> Comparison | None:
    """What a clause compares, or None; what is longer than a sentence is not read so."""
    if len(clause) > _LONGEST:
        return None
    return _chinese(clause, skeleton) if is_chinese(clause) else _english(clause, skeleton)


def _english(clause: str, skeleton: Skeleton) -> Comparison | None:
    less, compared = _IS_LESS.search(clause) is not None, re.search(_COMPARED, clause) is not None
    for than, both in _FORMS_OF_TWO:
        if compared and (match := than.match(clause)):
            how: How = "more" if _HOW_MUCH.match(clause) else "whether"
            around = _HOW_MUCH.sub("", match["pre"]), f"{match['mid']}{match['post']}"
            return _made(how, around, (match["a"], match["b"]), skeleton, less=less)
        match = both.match(clause)
        if match and _DIFFERS.search(clause):
            around = _APART.sub(" ", match["pre"]), _APART.sub(" ", match["post"])
            return _made("apart", around, (match["a"], match["b"]), skeleton)
        if match and compared and _ASKS_WHICH.match(clause):
            return _made("which", (match["pre"], match["post"]), (match["a"], match["b"]), skeleton, less=less)
    return None


def _chinese(clause: str, skeleton: Skeleton) -> Comparison | None:
    if match := _THAN_ZH.match(clause):
        rest = match["rest"]
        if not _ADJECTIVE_ZH.search(rest):
            return None
        how: How = "more" if re.search(r"多少|几|差", rest) else "whether"
        text = re.sub(r"多多少|少多少|多少|吗|呢", "", rest)
        return _made(
            how, (match["pre"], f"{match['field']}{text}"), (match["a"], match["b"]), skeleton, less=_is_less(rest)
        )
    match = _AND_ZH.match(clause) or _NAMES_ZH.match(clause)
    if match is None:
        return None
    rest = match["rest"]
    if found := _APART_ZH.search(clause):
        text = rest.replace(found.group(), _PARTED_ZH.get(found.group(), "")).replace("之间", "")
        return _made("apart", (match["pre"], text), (match["a"], match["b"]), skeleton)
    if not re.search(r"哪|谁|更", rest) or not _ADJECTIVE_ZH.search(rest):
        return None
    text = re.sub(r"哪\S|谁|更|相比|[,，]", "", rest)
    return _made("which", (match["pre"], text), (match["a"], match["b"]), skeleton, less=_is_less(rest))


def _is_less(text: str) -> bool:
    return _IS_LESS.search(re.sub(r"多少|大小", "", text)) is not None


def _made(
    how: How, around: tuple[str, str], pair: tuple[str, str], skeleton: Skeleton, *, less: bool = False
) -> Comparison | None:
    kinds = [skeleton.atom(one).kind if re.fullmatch(MARK, one) else "" for one in pair]
    if "number" in kinds or pair[0] == pair[1]:
        return None
    marks = [one if kind else skeleton.mark(Atom("quoted", one, one)) for one, kind in zip(pair, kinds, strict=True)]
    first, second = (f"{around[0]}{mark}{around[1]}".strip() for mark in marks)
    return Comparison(how, (first, second), (marks[0], marks[1]), less)
