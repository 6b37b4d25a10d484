"""Corrects a failed call once, by a value that its error marks as one: quoted, listed behind a label, or in JSON.

Free prose, tool names and argument names are never taken for values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from taoloop.core.events import Fault
from taoloop.models.offline.choices import similarity
from taoloop.models.offline.match import Profile
from taoloop.models.offline.places import PLACES, REGIONS
from taoloop.models.offline.results import leaves
from taoloop.models.offline.schema import Param
from taoloop.models.offline.tokens import is_path
from taoloop.models.offline.words import concepts, is_chinese, name_concepts

_FINAL_CODES = frozenset({"refused", "denied", "tool_call_limit", "unknown_tool", "in_doubt", "timeout"})
_QUOTED = re.compile(r"'([^'\n]{1,200})'|\"([^\"\n]{1,200})\"|`([^`\n]{1,200})`|“([^”\n]{1,200})”|「([^」\n]{1,200})」")
_LABELLED = re.compile(
    r"(?:did you mean|do you mean|(?:near|nearest|similar|close|known|valid|available|allowed|possible|supported"
    r"|existing|accepted"
    r"|expected|candidate|choose|choices?|options?|one|values?|keys?|names?|zones?|cities|codes?|files?|use|try|suggestions?)"
    r"(?:\s+(?:from|of|one of|keys?|names?|values?|options?|zones?|cities|files?|codes?|are|is|\w+s))?"
    r"|您是不是(?:要找|想找)?|是不是|可用的?\S{0,6}|相近的?\S{0,6}|有效的?\S{0,6}|已知的?\S{0,6}|支持的?\S{0,6}|可选\S{0,4})"
    r"\s*(?P<sign>[:：]|(?<=mean)\s|(?<=是不是)|(?<=use)\s|(?<=try)\s)\s*(?P<values>[^\n;；?？]{1,4000})",
    re.IGNORECASE,
)
_SUGGESTS = re.compile(
    r"did you mean|do you mean|instead|try|use|expected|nearest|similar|close|near|known|valid|available|allowed"
    r"|您是不是|是不是|请用|改用|相近|可用|已知",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[^\s'\"`.。,，][^\s'\"`]{0,199}(?:\s[A-Z][\w-]{0,60}){0,3}")
_SHAPED = re.compile(r"[/._-]|\d|[A-Z\u3400-\u9fff]")
_MOST = 3_000
_ALIKE = 0.6


def correct(
    args: Mapping[str, Any], profile: Profile, clause: str, fault: Fault | None, tools: Collection[str] = ()
) -> dict[str, Any] | None:
    """The arguments with the one value changed that the error speaks of; None if it marks nothing that fits.

    A call that changes the world is never corrected: it would touch another thing than the one that was named.
    """
    if fault is None or fault.code in _FINAL_CODES or profile.acts:
        return None
    told = f"{fault.message[:_MOST]}\n{fault.hint[:_MOST]}"
    texts = {name: value for name, value in args.items() if isinstance(value, str)}
    blamed = [name for name, value in texts.items() if value and value in told] or [
        name for name in texts if name in told
    ]
    taken = {*map(str, args.values()), *args, *tools, fault.code, profile.card.name}
    for name in blamed or list(texts)[:1]:
        known = next((param for param in profile.params if param.name == name), None)
        options = [option for option in _options(told) if option not in taken and _suits(option, known, texts[name])]
        best = _best(options, texts[name], clause, sure=_SUGGESTS.search(told) is not None)
        if best is None and is_chinese(texts[name]) and texts[name] in PLACES:
            best = PLACES[texts[name]].name
        if best is not None and best != texts[name]:
            return {**args, name: best}
    return None


def _suits(option: str, param: Param | None, value: str) -> bool:
    """True if an option has the form that the argument takes."""
    if param is None:
        return True
    if param.choices:
        return option in param.choices
    if param.role == "path":
        return is_path(option) or not is_path(value)
    if param.role == "zone":
        return option.split("/", maxsplit=1)[0] in REGIONS or "/" not in value
    return param.role not in ("key", "id", "handle") or " " not in option


def _options(told: str) -> list[str]:
    found = [next(group for group in match.groups() if group) for match in _QUOTED.finditer(told)]
    found += _in_json(told)
    for match in _LABELLED.finditer(told):
        found += _listed(match["values"], strict=match["sign"] not in (":", "："))
    return list(dict.fromkeys(option.strip() for option in found if option.strip()))[:300]


def _listed(text: str, *, strict: bool) -> Iterator[str]:
    """The values at the head of a list, up to the first piece that is prose. `strict`: no colon stands before it."""
    for piece in re.split(r"\s*[,，、|]\s*|\s+(?:or|and)\s+|和|或", text):
        value = piece.strip(" '\"`[](){}").rstrip(".。!?！？")
        if not _VALUE.fullmatch(value) or (strict and not _SHAPED.search(value)):
            head = re.match(r"(\S+)[.。]\s", piece)
            if head and _VALUE.fullmatch(head[1]) and not strict:
                yield head[1]
            return
        yield value


def _in_json(told: str) -> list[str]:
    start = min((place for place in (told.find("{"), told.find("[")) if place >= 0), default=-1)
    if start < 0:
        return []
    try:
        content, _ = json.JSONDecoder().raw_decode(told[start:])
    except (ValueError, RecursionError):
        return []
    return [value for _, value in leaves(content) if isinstance(value, str) and len(value) <= 200][:300]


def _best(options: list[str], value: str, clause: str, *, sure: bool) -> str | None:
    asked = set(concepts(clause)) | set(concepts(re.sub(r"[._/-]", " ", value)))
    best, most = None, 0.0
    if sum(re.search(rf"(?<!\w){re.escape(option)}(?!\w)", value) is not None for option in options) > 1:
        return None  # the value names several of them, so none of them alone is meant
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
