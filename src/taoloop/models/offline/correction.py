"""Corrects a failed call once from what its error says: near keys, known zones, expected values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from taoloop.core.events import Fault
from taoloop.models.offline.choices import similarity
from taoloop.models.offline.match import Profile
from taoloop.models.offline.places import PLACES
from taoloop.models.offline.words import concepts, is_chinese, name_concepts

_FINAL_CODES = frozenset({"refused", "denied", "tool_call_limit", "unknown_tool", "in_doubt", "timeout"})
_QUOTED = re.compile(r"'([^'\n]{1,200})'|\"([^\"\n]{1,200})\"|`([^`\n]{1,200})`|“([^”\n]{1,200})”|「([^」\n]{1,200})」")
_SHAPED = re.compile(r"[A-Za-z_][\w-]*(?:[./][A-Za-z_][\w-]*)+|[A-Za-z]+_\w+")
_LIST = re.compile(r"[:：]\s*([^:：.。;；\n]{1,2000}(?:\.\w[^:：.。;；\n]{0,200}){0,80})")
_SUGGESTS = re.compile(
    r"did you mean|do you mean|instead|try|use|expected|nearest|similar|close|near|您是不是|是不是|请用|改用|相近|可用",
    re.IGNORECASE,
)
_MOST = 3_000
_ALIKE = 0.6


def correct(args: Mapping[str, Any], profile: Profile, clause: str, fault: Fault | None) -> dict[str, Any] | None:
    """The arguments with the one value changed that the error speaks of; None if it suggests nothing that fits."""
    if fault is None or fault.code in _FINAL_CODES:
        return None
    told = f"{fault.message[:_MOST]}\n{fault.hint[:_MOST]}"
    texts = {name: value for name, value in args.items() if isinstance(value, str)}
    blamed = [name for name, value in texts.items() if value and value in told] or [
        name for name in texts if name in told
    ]
    for name in blamed or list(texts)[:1]:
        taken = {str(value) for value in args.values()} | set(args)
        options = [option for option in _options(told) if option not in taken]
        best = _best(options, texts[name], clause, sure=_SUGGESTS.search(told) is not None)
        if best is None and is_chinese(texts[name]) and texts[name] in PLACES:
            best = PLACES[texts[name]].name
        known = next((param for param in profile.params if param.name == name), None)
        if best is not None and best != texts[name] and (known is None or not known.choices or best in known.choices):
            return {**args, name: best}
    return None


def _options(told: str) -> list[str]:
    found = [next(group for group in match.groups() if group) for match in _QUOTED.finditer(told)]
    found += _SHAPED.findall(told)
    for match in _LIST.finditer(told):
        found += [part.strip(" '\"`.。") for part in re.split(r"[,，、;]|\bor\b|\band\b|和|或", match[1])]
    return list(dict.fromkeys(option for option in found if option and len(option) <= 200))[:300]


def _best(options: list[str], value: str, clause: str, *, sure: bool) -> str | None:
    asked = set(concepts(clause)) | set(concepts(re.sub(r"[._/-]", " ", value)))
    best, most = None, 0.0
    for option in options:
        about = set(concepts(re.sub(r"[._/-]", " ", option)))
        alike = max(similarity(option, value), similarity(re.split(r"[/.]", option)[-1], value))
        owner, _, field = option.rpartition(".")
        if owner and not (set(concepts(owner)) <= asked and (asked & set(name_concepts(field)) or alike > _ALIKE)):
            continue  # the same field of something else, or another field, is no correction
        points = 0.6 * len(about & asked) / (len(about) or 1) + alike
        if about and about <= asked:
            points += 0.2
        if points > most:
            best, most = option, points
    return best if most >= (0.35 if sure else 0.5) else None
