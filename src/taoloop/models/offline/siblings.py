"""One call for each of several things of a kind: "the time in Tokyo and in Paris" is two."""

from __future__ import annotations

import re
from typing import Any

from taoloop.models.offline.choices import closest, listed
from taoloop.models.offline.extract import MARK, Skeleton
from taoloop.models.offline.fill import Filled
from taoloop.models.offline.match import Profile
from taoloop.models.offline.phrases import record_keys

_JOINED = re.compile(
    r"^\s*(?:,|，|、|;|and\b|or\b|和|与|及|以及|还有|跟)*\s*(?:and\b|also\b)?\s*(?:in|at|for|of|the|在|的|files?)?\s*$",
    re.IGNORECASE,
)
_MANY = frozenset({"place", "zone", "path", "key", "url", "email", "quoted"})
_MOST = 8


def siblings(clause: str, skeleton: Skeleton, chosen: Profile, filled: Filled) -> list[dict[str, Any]]:
    """The call's arguments, and those of the same call for each further thing that is joined to one of them."""
    calls = [filled.args]
    used = set(filled.taken.values())
    marks = [(match.group(), match.start()) for match in re.finditer(MARK, clause)]
    for name, mark in filled.taken.items():
        if mark not in clause or skeleton.atom(mark).kind not in _MANY:
            continue
        role = next((param.role for param in chosen.params if param.name == name), "any")
        end = clause.find(mark) + 1
        for other, start in marks:
            if start < end or other in used:
                continue
            atom = skeleton.atom(other)
            if atom.kind not in (skeleton.atom(mark).kind, *(("place", "zone") if role in ("zone", "place") else ())):
                continue
            if _JOINED.match(clause[end:start]) is None or len(calls) == _MOST:
                break
            value = atom.zone if role == "zone" else atom.source if atom.kind == "place" else atom.value
            calls.append({**filled.args, name: value})
            end = start + 1
        if len(calls) > 1:
            break
    return calls if len(calls) > 1 else _keys(clause, skeleton, chosen, filled)


def _keys(clause: str, skeleton: Skeleton, chosen: Profile, filled: Filled) -> list[dict[str, Any]]:
    calls = [filled.args]
    for param in chosen.params:
        if param.role == "key" and param.name in filled.said:
            known = listed(param, chosen.card)
            keys = [closest(key, known, "") or key for key in record_keys(clause, skeleton)[1:_MOST]]
            calls += [{**filled.args, param.name: key} for key in dict.fromkeys(keys) if key != filled.args[param.name]]
    return calls
