"""Orders to write down what must be found out first: "write the time in Tokyo to a.txt"."""

from __future__ import annotations

import re
from typing import NamedTuple

from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.phrases import REFERENCE
from taoloop.models.offline.words import is_chinese

_LONGEST = 400
_WRITES = re.compile(
    rf"^(?P<lead>(?:please\s+)?(?:write|save|store|put|append|record|log|note|send|mail|email|post))\s+(?P<what>.+)"
    rf"(?P<rest>\s+(?:in|into|to|at|on|onto)\s+(?:(?:a|the|my)\s+)?(?:(?:text\s+)?(?:file|document|note)\s+(?:named\s+|called\s+)?)?{MARK}.*)$",
    re.IGNORECASE,
)
_WRITES_CHINESE = re.compile(
    r"^(?P<lead>(?:请)?(?:把|将))\s*(?P<what>.+?)(?P<rest>(?:写入|写到|写进|保存到|保存为|存入|存到|存为|记录到|记到|发给|发送给|发到|追加到).*)$"
)


class Dictated(NamedTuple):
    """What is to be found out, and the order with a gap in its place."""

    what: str
    lead: str
    rest: str


def dictated(clause: str, skeleton: Skeleton) -> Dictated | None:
    """The parts of an order to write something down; None where its text is given, or is what was seen before."""
    if len(clause) > _LONGEST:
        return None
    match = (_WRITES_CHINESE if is_chinese(clause) else _WRITES).match(clause)
    if match is None:
        return None
    what = match["what"].strip()
    given = any(skeleton.atom(mark).kind == "quoted" for mark in re.findall(MARK, what))
    if given or REFERENCE.fullmatch(what.removeprefix("the ").removeprefix("its ")):
        return None
    return Dictated(what, match["lead"], match["rest"])
