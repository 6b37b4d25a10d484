"""Where in a clause a value stands: what it goes from, what it goes to, and which number an argument's name is at."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taoloop.models.offline.choices import measure
from taoloop.models.offline.extract import MARK, SYMBOLS, Skeleton
from taoloop.models.offline.schema import Param
from taoloop.models.offline.words import name_words

_FROM = re.compile(r"(?:\bfrom|\bbetween|从|由|自|把|将)\s*$", re.IGNORECASE)
_TO = re.compile(
    r"(?:\bto|\binto|\bin|\bhow many|到|至|成|为|换|兑|多少|等于|是|->|→|和|与)\s*(?:the\s+)?$", re.IGNORECASE
)
_MARK = re.compile(MARK)
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")


def sided(param: Param, params: Sequence[Param], marks: list[str], clause: str, skeleton: Skeleton) -> str | None:
    """The value that stands on the argument's side: after "from", or after "to"; None if there is only the other's."""
    paired = any(other.side and other.side != param.side and other.role == param.role for other in params)
    before = {mark: clause[: max(0, clause.find(mark))][-24:] for mark in marks}
    if len(marks) == 1 and param.side and paired and skeleton.atom(marks[0]).kind == "currency":
        to = _TO.search(before[marks[0]]) is not None and not beside_number(marks[0], before[marks[0]], skeleton)
        return marks[0] if to == (param.side == "to") else None
    has_sides = any(other.side and other.role == param.role for other in params)
    if len(marks) < 2 or not (param.side or has_sides):
        return marks[0] if marks else None
    wanted, other_side = (_TO, _FROM) if param.side == "to" else (_FROM, _TO)
    after_number = [m for m in marks if param.side == "from" and beside_number(m, before[m], skeleton)]
    chosen = (
        after_number
        or [m for m in marks if wanted.search(before[m])]
        or [m for m in marks if not other_side.search(before[m])]
    )
    return (chosen or marks)[-1] if param.side == "to" else (chosen or marks)[0]


def beside_number(mark: str, before: str, skeleton: Skeleton) -> bool:
    """True for what an amount is given in: "100 dollars", "$100"."""
    last = before.rstrip()[-1:]
    if skeleton.atom(mark).source in SYMBOLS:
        return True
    return bool(_MARK.match(last)) and skeleton.atom(last).kind == "number"


def number_near(param: Param, marks: Sequence[str], clause: str, skeleton: Skeleton) -> str | None:
    """The number beside the argument's name ("limit 5", "5 days"); for a year, the one that can be one."""
    words = name_words(param.name)
    for word in words:
        form = measure(word)
        before = rf"(?<![A-Za-z])(?:{form})\s*(?:of|is|=|:|to|为|是)?\s*({MARK})"
        for match in re.finditer(rf"{before}|({MARK})\s*(?:{form})(?![A-Za-z])", clause, re.IGNORECASE):
            if (mark := match[1] or match[2]) in marks:
                return str(mark)
    years = (mark for mark in marks if _YEAR.fullmatch(skeleton.atom(mark).value))
    return next(years, None) if "year" in words else None
