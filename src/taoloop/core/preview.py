"""A bounded view of a long output, cut where the content has a border, with a note about the cut.

JSON stays valid JSON: long lists and objects keep their first members and end with a note of how many were left out,
long texts are shortened with their count, deep values are replaced by their size. The top-level keys take precedence.
Text is cut at the end of a paragraph, a line or a word. The time is linear in the input.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pydantic_core

from taoloop.core.text import TextCatalog, lazy_pattern

NOTE = "…"
"""The key of a note about what was left out of an object or a list."""

_TEXTS = TextCatalog(  # what is left out, and how much of it
    "core",
    {
        "deeper": f"{NOTE} deeper values",
        "bits": f"{NOTE} a number of {{count:,}} bits",
        "number": "a number",
        "long text": f"{{start}}{NOTE} ({{count:,}} more characters)",
        "rest": f"\n[{NOTE} {{count:,}} more characters; {{lines}}]",
        "more lines": "{count:,} more line{s}",
        "keys": "{count:,} key{s}",
        "more keys": "{count:,} more key{s}",
        "items": "{count:,} item{s}",
        "more items": "{count:,} more item{s}",
    },
)
_MAX_DEPTH = 40
_UNBOUNDED = 1 << 30
_MAX_INTEGER_BITS = 4_096
_TOKEN = lazy_pattern(r'"(?:[^"\\]|\\.)*+"|[\[{]+|[\]}]+', re.DOTALL)
_BORDERS = (("\n\n", 0.7), ("\n", 0.5), (" ", 0.8))  # a border counts if it keeps this part of the room


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """How much is shown: levels, items of lists, keys of inner objects and of the top level, characters of texts."""

    depth: int
    items: int
    keys: int
    chars: int
    top: int = _UNBOUNDED


def preview(text: str, form: str, max_chars: int) -> str:
    """At most `max_chars` characters of `text`, whose `form` is `json` or `text`; notes are in the run's language.

    Invalid JSON is treated as text. JSON has at least 2 characters; with less room the view is empty.
    """
    if len(text) <= max_chars:
        return text
    if form == "json" and (document := _parse(text)) is not _UNREADABLE:
        return _shrink(document, max_chars)
    return _cut_text(text, max_chars)


_UNREADABLE = object()


def _parse(text: str) -> Any:
    try:
        return pydantic_core.from_json(text)
    except ValueError as error:
        if "recursion" not in str(error):
            return _UNREADABLE
    try:
        return pydantic_core.from_json(_flatten(text))
    except ValueError:
        return _UNREADABLE


def _flatten(text: str) -> str:
    """The JSON text with everything below the deepest level replaced by a note."""
    parts: list[str] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        mark, length = text[token.start()], token.end() - token.start()
        if mark in "[{":
            if depth <= _MAX_DEPTH < depth + length:
                parts += [text[start : token.start() + _MAX_DEPTH - depth], f'"{_TEXTS.run_text("deeper")}"']
            depth += length
        elif mark in "]}":
            if depth - length <= _MAX_DEPTH < depth:
                start = token.start() + depth - _MAX_DEPTH
            depth -= length
    parts.append(text[start:] if depth <= _MAX_DEPTH else "")
    return "".join(parts)


def _shrink(document: Any, max_chars: int) -> str:
    """The most generous view that fits: first all bounds together, then each alone as far as possible."""

    def view(bounds: _Bounds) -> str | None:
        built = _Builder(bounds, max_chars).build(document, 0)
        text = pydantic_core.to_json(built, inf_nan_mode="strings").decode()
        return text if len(text) <= max_chars else None

    def fits(bounds: _Bounds) -> bool:
        try:
            return view(bounds) is not None
        except _TooLongError:
            return False

    step = _largest(lambda size: fits(_bounds(size)), 40)
    if step is None:
        keys = _largest(lambda size: fits(replace(_bounds(0), top=size)), max_chars)
        if keys is None:
            return _smallest(document, max_chars)
        best = replace(_bounds(0), top=keys)
    else:
        best = _bounds(step)
    for name in ("keys", "depth", "chars", "items"):
        limit = _MAX_DEPTH if name == "depth" else max_chars
        first: int = getattr(best, name)

        def with_more(extra: int, name: str = name, first: int = first, base: _Bounds = best) -> bool:
            return fits(replace(base, **{name: first + extra}))

        best = replace(best, **{name: first + (_largest(with_more, max(0, limit - first)) or 0)})
    return view(best) or _smallest(document, max_chars)


def _bounds(step: int) -> _Bounds:
    size = int(1.4**step)
    return _Bounds(depth=min(_MAX_DEPTH, 1 + step // 2), items=size, keys=4 + 2 * size, chars=12 + 8 * size)


def _largest(holds: Callable[[int], bool], limit: int) -> int | None:
    """The largest number up to `limit` for which `holds`, by bisection; None if it does not hold for 0."""
    if not holds(0):
        return None
    low, high = 0, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class _TooLongError(Exception):
    """The view will not fit, so there is no use in building it further."""


class _Builder:
    """Builds the view of a document within bounds; stops once it cannot fit into `room` characters."""

    __slots__ = ("bounds", "room")

    def __init__(self, bounds: _Bounds, room: int) -> None:
        self.bounds, self.room = bounds, room

    def build(self, value: Any, depth: int) -> Any:
        self._take(1)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict) and value:
            return self._object(value, depth)
        if isinstance(value, list) and value:
            return self._list(value, depth)
        if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
            return _TEXTS.run_text("bits", count=value.bit_length())
        return value

    def _take(self, chars: int) -> None:
        self.room -= chars
        if self.room < 0:
            raise _TooLongError

    def _text(self, value: str) -> str:
        chars = self.bounds.chars
        text = value
        if len(value) > chars + 32:  # the note itself takes about that
            text = _TEXTS.run_text("long text", start=value[:chars], count=len(value) - chars)
        self._take(len(text) + 1)
        return text

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        if depth >= self.bounds.depth:
            return {NOTE: _count(len(value), "keys")}
        limit = self.bounds.top if depth == 0 else self.bounds.keys
        members: dict[str, Any] = {}
        for key, inner in islice(value.items(), limit if len(value) > limit else None):
            name = self._text(key)
            if name not in members:
                members[name] = self.build(inner, depth + 1)
        if len(members) < len(value):
            note = NOTE
            while note in members:
                note += NOTE
            members[note] = _count(len(value) - len(members), "more keys" if members else "keys")
        return members

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        if depth >= self.bounds.depth:
            return [{NOTE: _count(len(value), "items")}]
        limit = self.bounds.items
        items = [self.build(inner, depth + 1) for inner in islice(value, limit)]
        if len(value) > limit:
            items.append({NOTE: _count(len(value) - limit, "more items")})
        return items


def _count(number: int, name: str) -> str:
    return _TEXTS.run_text(name, count=number, s="" if number == 1 else "s")


def _smallest(document: Any, max_chars: int) -> str:
    """What can still be said when almost nothing fits: how much there is, or only what kind it was."""
    candidates: list[Any]
    if isinstance(document, dict):
        candidates = [{NOTE: _count(len(document), "keys")}, {}]
    elif isinstance(document, list):
        candidates = [[{NOTE: _count(len(document), "items")}], []]
    else:
        whole = document if isinstance(document, str) else _TEXTS.run_text("number")
        candidates = [whole[: max_chars // 8] + NOTE, NOTE, ""]
    for candidate in candidates:
        text = pydantic_core.to_json(candidate).decode()
        if len(text) <= max_chars:
            return text
    return ""


def _cut_text(text: str, max_chars: int) -> str:
    room = max_chars - len(_note(text, 0))
    if room < 1:
        return f"{text[: max_chars - 1]}{NOTE}" if max_chars > 0 else ""
    end = room
    for border, least in _BORDERS:
        at = text.rfind(border, int(room * least), room)
        if at > 0:
            end = at + len(border)
            break
    return text[:end] + _note(text, end)


def _note(text: str, end: int) -> str:
    lines = text.count("\n", end) + 1
    return _TEXTS.run_text("rest", count=len(text) - end, lines=_count(lines, "more lines"))
