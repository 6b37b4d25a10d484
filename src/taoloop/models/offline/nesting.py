"""Questions within questions: "the weather in the capital of France" needs the capital first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.lexicon import ATTRIBUTES, CHINESE
from taoloop.models.offline.words import concepts, is_chinese

_ONE = rf"(?:{MARK}|[A-Z][\w-]*(?:\s[A-Z][\w-]*)*)"
_WORD = r"(?!(?:in|at|of|on|for|from|to|with|and|or|is|are|by|what|the|a|an)\b)[A-Za-z][\w-]*"
_OF = re.compile(
    rf"(?:(?<!\w)(?:the|an?)\s+(?P<long>{_WORD}(?:\s{_WORD}){{0,2}})|(?<!\w)(?P<short>{_WORD}))\s+of\s+"
    rf"(?:the\s+)?(?:(?P<label>{_WORD})\s+)?(?P<one>{_ONE}(?:\s*(?:,|and)\s*{_ONE})*)(?!['’]s)"
)
_ITS = re.compile(rf"(?P<one>{_ONE})['’]s\s+(?P<noun>{_WORD})(?!\s+of\b)")
_ITS_CHINESE = re.compile(
    rf"(?:(?P<label>[\u4e00-\u9fff]{{1,4}})\s*)?(?P<one>{MARK}|(?<![A-Za-z])[A-Z][\w-]*)\s*的?\s*(?P<noun>[\u4e00-\u9fff]{{2,4}}?)(?=\s*(?:的|是|有没有))"
)
_ORDERED = re.compile(
    r"^(?:please\s+)?(?:convert|exchange|change|express|give|show|tell me|what is|what's)\s+", re.IGNORECASE
)
_IN_MONEY = re.compile(rf"^(?P<inner>.*[A-Za-z\ue000-\uf8ff].*?)\s+(?:in|into|to)\s+(?P<money>{MARK})\W*$")
_IN_MONEY_CHINESE = re.compile(
    rf"^(?:把|将)?(?P<inner>.+?)\s*(?:是多少|等于多少|合多少|折合(?:成|为)?|换算成|兑换成|换成|转换成|为多少|用)\s*(?P<money>{MARK})(?:表示)?\W*$"
)
_LONGEST = 600
_GENERIC = frozenset({"@search", "@lookup", "@read", "@calc", "@list", "@count", "@text", "@file", "@page"})


class Inner(NamedTuple):
    """A question within a clause: its words, where it stands, what its noun is about, and the word before its value."""

    text: str
    start: int
    end: int
    noun: frozenset[str]
    label: frozenset[str] = frozenset()


def inner_questions(clause: str) -> Iterator[Inner]:
    """The questions that stand within a clause, the innermost first."""
    if len(clause) > _LONGEST:
        return
    if is_chinese(clause):
        for match in _ITS_CHINESE.finditer(clause):
            noun = match["noun"]
            if noun in CHINESE or noun in ATTRIBUTES:
                yield _chinese_inner(match, noun)
        return
    yield from (_inner(match, match["noun"]) for match in _ITS.finditer(clause))
    for match in reversed(list(_OF.finditer(clause))):
        yield _inner(match, match["long"] or match["short"], match["label"] or "")


def _chinese_inner(match: re.Match[str], noun: str) -> Inner:
    """A word of the lexicon before the value belongs to the value: 发票 INV-7 的金额."""
    inner, label = _inner(match, noun), match["label"] or ""
    known = next((label[cut:] for cut in range(len(label)) if label[cut:] in CHINESE), "")
    start = match.start("one") if not known else match.start("label") + len(label) - len(known)
    return inner._replace(text=match.string[start : match.end()], start=start)


def _inner(match: re.Match[str], noun: str, label: str = "") -> Inner:
    about, labelled = (frozenset(concepts(word)) - _GENERIC for word in (noun, label))
    return Inner(match.group(), match.start(), match.end(), about, labelled)


_JOINED = re.compile(r"(?:,|，|、|\band|\bor|和|与|以及|及)\s*(?:also\s+)?$", re.IGNORECASE)


def before_joined(clause: str, inner: Inner) -> str:
    """What stands before an inner question that is only joined to it by "and"; empty if it is part of it."""
    match = _JOINED.search(clause[: inner.start])
    rest = clause[inner.end :].strip(" ?？.。")
    return clause[: match.start()].strip() if match and not tells(rest) else ""


def around(clause: str, inner: Inner, mark: str) -> str:
    """The clause with a mark in the place of an inner question."""
    return f"{clause[: inner.start]}{mark}{clause[inner.end :]}"


def tells(text: str) -> set[str]:
    """What a clause is about apart from words that fit any tool."""
    return set(concepts(text)) - _GENERIC


def in_money(clause: str, skeleton: Skeleton) -> tuple[str, str] | None:
    """The question and the currency that its answer is wanted in: "the total of order A-1 in EUR"."""
    match = (_IN_MONEY_CHINESE if is_chinese(clause) else _IN_MONEY).match(clause)
    if match is None or skeleton.atom(match["money"]).kind != "currency":
        return None
    inner = _ORDERED.sub("", match["inner"])
    if any(atom.kind == "currency" for atom in skeleton.within(inner)) or not tells(inner):
        return None
    return inner, match["money"]
