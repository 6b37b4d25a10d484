"""Sums, averages and ratios over several things of a kind: one question for each, then one calculation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from taoloop.models.offline.arithmetic import Num, Op
from taoloop.models.offline.extract import MARK, Atom, Skeleton
from taoloop.models.offline.words import is_chinese

How = Literal["sum", "mean", "ratio"]

_LONGEST, _MOST = 300, 8
_NAME = r"(?!(?:Which|Who|What|Where|How|Is|Are|The|I|It|Total|Sum|Average|Mean)\b)[A-Z][\w-]*(?:\s[A-Z][\w-]*)*"
_AGAIN = r"(?:(?:that|the\s+one)\s+)?(?:(?:in|at|of|for)\s+)?(?:the\s+(?:\w+\s+of\s+)?)?(?:(?P=label)\s+)?"
_JOIN = r"\s*(?:,\s*(?:and\s+|plus\s+)?|\band\s+|\bplus\s+)"
_TOGETHER = re.compile(r",?\s*\b(?:together|altogether|combined|in\s+all|in\s+total|taken\s+together)\b", re.IGNORECASE)
_BEFORE_NOUN = re.compile(
    r"\b(?:total|combined|average|mean)\s+(?!of\b|for\b|in\b|at\b|and\b)(?=[A-Za-z])", re.IGNORECASE
)
_MEAN = re.compile(r"\b(?:average|mean)\b|平均", re.IGNORECASE)
_SUM = re.compile(
    r"\b(?:total|sum|combined|together|altogether|in\s+all|add\s+up)\b|总和|之和|总共|一共|合计|总计|加起来|相加|总",
    re.IGNORECASE,
)
_SUM_WORDS_ZH = re.compile(r"的?(?:总和|之和)|总共|一共|合计|总计|加起来|相加|平均")
_ONE_ZH = rf"(?:{MARK}|[A-Za-z][\w-]*|[\u4e00-\u9fff]{{2,8}}?)"
_LEAD_ZH = r"(?P<pre>(?:请问|请|帮我|计算一下|计算|算一下|算出|求出|求|查询|查一下|查)*)"
_AND_ZH = re.compile(
    rf"^{_LEAD_ZH}\s*(?P<all>{_ONE_ZH}(?:\s*(?:和|与|跟|、|以及)\s*{_ONE_ZH})+)\s*(?P<post>的.+|[总一合加平].+)$"
)
_SPLIT_ZH = re.compile(r"\s*(?:和|与|跟|、|以及)\s*")
_RATIO_ZH = re.compile(
    rf"^(?P<pre>.*?)(?P<a>{MARK}|[A-Za-z][\w-]*|[\u4e00-\u9fff]{{2,4}}?)(?P<field>的.{{1,8}}?)是\s*(?P<b>{MARK}|[A-Za-z][\w-]*|[\u4e00-\u9fff]{{2,4}}?)\s*"
    r"(?:的[^多几]{1,8})?的?(?:(?:多少|几)倍|几分之几|百分之几|百分之多少)"
)


def _joined(one: str) -> re.Pattern[str]:
    return re.compile(rf"^(?P<pre>.*?)(?:\b(?P<label>[a-z]+)\s+)?(?P<all>{one}(?:{_JOIN}{_AGAIN}{one})+)(?P<post>.*)$")


def _times(one: str) -> re.Pattern[str]:
    return re.compile(
        rf"^(?:by\s+)?how\s+many\s+times\s+(?:as\s+)?(?P<pre>.*?)(?P<a>{one})(?P<mid>.*?)(?:\bthan|\bas|\bthat\s+of|\bof)\s+"
        rf"(?:that\s+of\s+|the\s+(?:\w+\s+of\s+)?|in\s+|of\s+)*(?:[a-z]+\s+)?(?P<b>{one})(?P<post>.*)$",
        re.IGNORECASE if one == MARK else 0,
    )


_LISTS = tuple((re.compile(one), _joined(one)) for one in (MARK, rf"(?:{MARK}|{_NAME})"))
_WORD = r"(?!(?:the|a|an|each|all|both|every|my|his|her|its|their|our)\b)[a-z][a-z-]+"
_PLAIN = re.compile(rf"^(?P<pre>.*\b(?:of|for)\s+)(?P<all>{_WORD}(?:{_JOIN}{_WORD})+)(?P<post>\s*[?.!]?\s*)$")
_RATIOS = tuple(_times(one) for one in (MARK, rf"(?:{MARK}|{_NAME})"))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Questions of one form, the things that they differ in, and what is wanted of their answers."""

    how: How
    texts: tuple[str, ...]
    marks: tuple[str, ...]

    def tree(self, numbers: list[str]) -> Op:
        """The calculation on the answers."""
        operands = [Num(number) for number in numbers]
        if self.how == "ratio":
            return Op("/", operands[0], operands[1])
        total = reduce(lambda left, right: Op("+", left, right), operands[2:], Op("+", operands[0], operands[1]))
        return total if self.how == "sum" else Op("/", total, Num(str(len(operands))))


def gathered(clause: str, skeleton: Skeleton) -> Gathered | None:
    """What a clause gathers, or None; what is longer than a sentence is not read so."""
    if len(clause) > _LONGEST:
        return None
    if (ratio := _ratio(clause, skeleton)) is not None:
        return ratio
    how: How | None = "mean" if _MEAN.search(clause) else "sum" if _SUM.search(clause) else None
    if how is None:
        return None
    return _chinese(clause, how, skeleton) if is_chinese(clause) else _english(clause, how, skeleton)


def _english(clause: str, how: How, skeleton: Skeleton) -> Gathered | None:
    for one, pattern in _LISTS:
        if match := pattern.match(_TOGETHER.sub("", clause)):
            lead = f"{match['pre']}{match['label'] or ''} " if match["label"] else match["pre"]
            return _made(how, _BEFORE_NOUN.sub("", lead), match["post"], one.findall(match["all"]), skeleton)
    if match := _PLAIN.match(clause):
        things = re.split(_JOIN, match["all"])
        return _made(how, _BEFORE_NOUN.sub("", match["pre"]), match["post"], things, skeleton)
    return None


def _chinese(clause: str, how: How, skeleton: Skeleton) -> Gathered | None:
    if (match := _AND_ZH.match(clause)) is None:
        return None
    post = _SUM_WORDS_ZH.sub("", match["post"])
    return _made(how, "", post, _SPLIT_ZH.split(match["all"].strip()), skeleton)


def _ratio(clause: str, skeleton: Skeleton) -> Gathered | None:
    if match := _RATIO_ZH.match(clause):
        return _made("ratio", match["pre"], match["field"], [match["a"], match["b"]], skeleton)
    for pattern in _RATIOS:
        if match := pattern.match(clause):
            return _made("ratio", match["pre"], f"{match['mid']}{match['post']}", [match["a"], match["b"]], skeleton)
    return None


def _made(how: How, before: str, after: str, things: list[str], skeleton: Skeleton) -> Gathered | None:
    if not 2 <= len(things) <= _MOST or len(set(things)) < len(things):
        return None
    kinds = {skeleton.atom(one).kind for one in things if re.fullmatch(MARK, one)}
    if kinds & {"currency", "date", "clock"} or len(kinds) > 1:
        return None
    named = [one if re.fullmatch(MARK, one) else skeleton.mark(Atom("quoted", one, one)) for one in things]
    return Gathered(how, tuple(f"{before}{mark}{after}".strip() for mark in named), tuple(named))


_MONEY = re.compile(r"\b(?:how\s+much|prices?|costs?|pay|fares?)\b|多少钱|总价|价格|票价|费用|花", re.IGNORECASE)
_SEVERAL = re.compile(rf"(?P<n>{MARK})\s+(?:[a-z]+\s+)?[a-z]+s\b")
_SEVERAL_ZH = re.compile(
    rf"(?P<n>{MARK})\s*(?:个|张|本|件|份|台|只|杯|瓶|套|支|部|盒|箱|包|双|条|把|块|位|人|次|晚|平方米|平米)"
)
_SAMPLES = re.compile(r"[A-Z]")


def several_of(clause: str, skeleton: Skeleton, said: str) -> Atom | None:
    """The number of like things whose price is asked for: "3 tickets", "两个人"; None where it is not clear."""
    if _MONEY.search(clause) is None:
        return None
    pattern = _SEVERAL_ZH if is_chinese(clause) else _SEVERAL
    atoms = [skeleton.atom(match["n"]) for match in pattern.finditer(clause)]
    found = [a for a in atoms if a.kind == "number" and not a.percent and not _SAMPLES.match(a.source)]
    firm = [atom for atom in found if not atom.weak] or found
    alone = len(firm) == 1 and firm[0].value not in said.split() and firm[0].value != "1"
    return firm[0] if alone else None
