"""Takes what is needed out of an observation: a number, a named field, a part of a time, a text for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taoloop.core.events import Observed
from taoloop.models.offline.words import concepts, name_concepts, name_words

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?)?")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,60}(?:,\d{3})*(?:\.\d{1,60})?(?:[eE][+-]?\d{1,4})?(?![\w])")
_RESULT = re.compile(r"(?:result|answer|结果|=)\s*(?:is|is:|[:：=为是])?\s*(-?\d{1,60}(?:\.\d{1,60})?)\s*$")
_PARTS = (
    (re.compile(r"\bhours?\b|小时|几点|点钟", re.IGNORECASE), 4),
    (re.compile(r"\bminutes?\b|分钟", re.IGNORECASE), 5),
    (re.compile(r"\bseconds?\b|秒", re.IGNORECASE), 6),
    (re.compile(r"\byear\b|年", re.IGNORECASE), 1),
    (re.compile(r"\bmonth\b|月", re.IGNORECASE), 2),
    (re.compile(r"\bday\b|日|几号", re.IGNORECASE), 3),
)
_OFFSET = re.compile(r"T\d\d:\d\d(?::\d\d)?(?:\.\d+)?(Z|[+-](\d\d):?(\d\d))")
_SENTENCE = re.compile(r"[.。!?！？]\s*$|\b(?:is|are|was|the)\b|是|为", re.IGNORECASE)
_BARE = re.compile(r"result=(-?[\d.eE+-]{1,1300})")
_HANDLES = frozenset({"name", "id", "code", "no", "number", "key"})
_RESULT_NAMES = ("result", "value", "answer", "total", "count", "amount", "output", "sum", "converted")
_MOST_LEAVES, _MOST_CHARS, _SHOWN, _LONG = 300, 100_000, 1_200, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An observation that is ok, and the question that it answers. `wants` are the words of that question.

    `lost`: all that is known is that the call happened; what is said of that is no result to go on with.
    """

    wants: str
    tool: str
    args: Any
    observed: Observed
    lost: bool = False

    @property
    def content(self) -> Any:
        """The output as a JSON value where it is JSON, else as text."""
        text = self.observed.output
        if len(text) <= _MOST_CHARS and (self.observed.form == "json" or text.lstrip()[:1] in ("{", "[")):
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return text
        return text

    def number(self) -> str | None:
        """The one number that the question asks for, as plain text; None where it is not clear which."""
        content = None if self.lost else self.content
        if (count := self.count()) is not None:
            return count
        if isinstance(content, dict | list) and isinstance(self.args, Mapping):
            given = [value for value in self.args.values() if not isinstance(value, bool)]
            content = {"/".join(path): value for path, value in leaves(content) if value not in given} or content
        number = _number(content, self.wants)
        return number[:-2] if number is not None and number.endswith(".0") else number

    def count(self) -> str | None:
        """How many things were found, where that is asked for and all of them were seen."""
        if self.lost or self.observed.artifact is not None:
            return None
        return _counted(self.content, self.wants)

    def measure(self) -> str | None:
        """The number that the output is compared by: of a local time, its hours ahead of UTC."""
        found = None if self.lost else _OFFSET.search(self.observed.output)
        if found is None:
            return self.number()
        if found[1] == "Z":
            return "0"
        hours = int(found[2]) + int(found[3]) / 60
        return ("-" if found[1].startswith("-") and hours else "") + _plain(hours)

    def value(self) -> str | None:
        """The one value that the question asks for, as text for a further question; None where it is not clear."""
        if self.lost:
            return None
        content = self.content
        if isinstance(content, dict | list):
            given = [str(value) for value in self.args.values()] if isinstance(self.args, Mapping) else []
            found = [(path, value) for path, value in leaves(content) if str(value) not in given and value is not None]
            wanted = found[0][1] if len(found) == 1 else _wanted_leaf(found, self.wants)
            return self.number() if wanted is None else _plain(wanted)
        text = (content if isinstance(content, str) else self.observed.output).strip()
        if (number := self.number()) is not None and not isinstance(content, str):
            return number
        if text and len(text) <= _LONG and "\n" not in text and not _SENTENCE.search(text):
            return text
        return self.number()

    def text(self) -> str:
        """The output as text for another tool."""
        content = "" if self.lost else self.content
        if isinstance(content, dict):
            for name in ("text", "content", "contents", "body", "result", "translation", "summary"):
                if isinstance(content.get(name), str):
                    return str(content[name])
        if isinstance(content, str) and (bare := _BARE.fullmatch(content.strip())):
            return bare[1]
        return content if isinstance(content, str) else self.observed.output

    def shown(self) -> str:
        """The output for a person, cut if it is long; the field that was asked for comes first."""
        content = self.content
        if isinstance(content, dict) and all(not isinstance(value, dict | list) for value in content.values()):
            given = [str(value) for value in self.args.values()] if isinstance(self.args, Mapping) else []
            wanted = _wanted_leaf([leaf for leaf in leaves(content) if str(leaf[1]) not in given], self.wants)
            text = ", ".join(f"{name}: {_plain(value)}" for name, value in content.items())
            if wanted is not None and len(content) > 1:
                long = isinstance(wanted, str) and (len(wanted) > _LONG or "\n" in wanted)
                text = str(wanted) if long else f"{_plain(wanted)} ({text})"
        else:
            text = content if isinstance(content, str) else self.observed.output
        text = text.strip()
        return text if len(text) <= _SHOWN else text[:_SHOWN] + " …"


def leaves(content: Any, path: tuple[str, ...] = (), depth: int = 0) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The scalars of a JSON value with their paths, breadth bounded."""
    if depth > 8:
        return
    if isinstance(content, dict):
        for name, value in list(content.items())[:_MOST_LEAVES]:
            yield from leaves(value, (*path, str(name)), depth + 1)
    elif isinstance(content, list):
        for value in content[:20]:
            yield from leaves(value, path, depth + 1)
    else:
        yield path, content


def field(content: Any, name: str) -> Any:
    """The first scalar whose name fits an argument's name (`user_id` takes `user_id`, then `id`); None if none."""
    words = name_words(name)
    found = list(leaves(content))[:_MOST_LEAVES] if isinstance(content, dict | list) else []
    named = [(name_words(path[-1]), value) for path, value in found if path and value is not None]
    same = [value for own, value in named if own == words]
    if words and words[-1] in _HANDLES:
        same += [value for own, value in named if len(words) > 1 and own == words[:-1]]
    else:
        same += [value for own, value in named if own[:-1] == words and own[-1] in _HANDLES]
    ends = [value for own, value in named if own and words and own[-1] == words[-1]]
    return next(iter(same or ends), None)


_COUNTED = re.compile(
    r"\bhow\s+many\b|\b(?:number|count)\s+of\b|\bcount\b|多少[个本条件张份只位名种项部]|几[个本条件张份只位名种项部]|数量|个数",
    re.IGNORECASE,
)


def _only_list(content: Mapping[str, Any]) -> Any:
    """The one list in a record that says of itself, if anything, that it is whole; None where there is no such list."""
    lists = [value for value in content.values() if isinstance(value, list)]
    whole = content.get("complete") is not False and not content.get("left_out") and not content.get("next")
    counts = any(name in _RESULT_NAMES and _is_number(value) for name, value in content.items())
    return lists[0] if len(lists) == 1 and whole and not counts else None


def _counted(content: Any, wants: str) -> str | None:
    """How many things a list has, where that is the question and no number in it answers."""
    if isinstance(content, dict):
        content = _only_list(content)
    if not isinstance(content, list) or _COUNTED.search(wants) is None or any(_is_number(one) for one in content):
        return None
    found = list(leaves(content))[:_MOST_LEAVES]
    return None if len(content) == 1 and _is_number(_wanted_leaf(found, wants)) else str(len(content))


def _number(content: Any, wants: str) -> str | None:
    if isinstance(content, bool) or content is None:
        return None
    if isinstance(content, int | float):
        return _plain(content)
    if isinstance(content, str):
        return _number_in_text(content, wants)
    found = list(leaves(content))[:_MOST_LEAVES]
    wanted = _wanted_leaf(found, wants)
    if wanted is not None and (number := _number(wanted, wants)) is not None:
        return number
    if _part(wants) is not None:
        parts = [number for _, value in found if isinstance(value, str) and (number := _iso_part(value, wants))]
        if parts:
            return parts[0]
    named = [value for path, value in found if path and path[-1].lower() in _RESULT_NAMES and _is_number(value)]
    numbers = [value for _, value in found if _is_number(value)]
    if len(named) == 1 or len(numbers) == 1:
        return _plain((named or numbers)[0])
    return None


def _wanted_leaf(found: list[tuple[tuple[str, ...], Any]], wants: str) -> Any:
    """The scalar whose name shares most with the question, if it is the only one."""
    asked = set(concepts(wants))
    best, best_score, shared = None, 0.0, False
    for path, value in found:
        about = set(name_concepts(path[-1])) if path else set()
        points = len(about & asked) / (len(about) or 1) + 0.5 * len(about & asked)
        if points > best_score:
            best, best_score, shared = value, points, False
        elif points and points == best_score and value != best:
            shared = True
    return None if shared else best


def _number_in_text(text: str, wants: str) -> str | None:
    if (part := _iso_part(text, wants)) is not None:
        return part
    if _ISO.search(text):
        return None
    found: list[str] = [number.replace(",", "") for number in _NUMBER.findall(text[:_MOST_CHARS])]
    if len(found) == 1:
        return found[0]
    tail = _RESULT.search(text)
    return tail[1] if tail else None


def _part(wants: str) -> int | None:
    return next((group for pattern, group in _PARTS if pattern.search(wants)), None)


def _iso_part(text: str, wants: str) -> str | None:
    match, group = _ISO.search(text), _part(wants)
    return str(int(match[group])) if match and group and match[group] else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return str(value)
