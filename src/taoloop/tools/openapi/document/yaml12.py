"""YAML as the values of JSON: the core rules of YAML 1.2, every key a text, bounded in depth and size.

YAML 1.1, which PyYAML follows, reads `on` as true, `2024-10-01` as a date and `012` as octal; documents of APIs mean
none of it. The C parser gives the events, and this builds the values: a bomb of aliases or
brackets never becomes objects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

MOST_DEPTH = 300
MOST_VALUES = 3_000_000  # with everything counted as often as an alias repeats it

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_OTHER_INT = re.compile(r"0o[0-7]{1,1000}|0x[0-9a-fA-F]{1,1000}")  # longer ones could not be written in digits
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MAYBE_MORE = frozenset("-+.0123456789tTfFnN~")
_STANDARD = "tag:yaml.org,2002:"
_LONGEST_NUMBER = 4_000  # Python refuses to read longer ones


class YamlError(ValueError):
    """The text is no YAML that can be read; `line` counts from 1, 0 where unknown."""

    def __init__(self, what: str, line: int = 0) -> None:
        self.what, self.line = what, line
        super().__init__(what)


def read_yaml(text: str) -> Any:
    """The values of the first document in a YAML text.

    Raises:
        YamlError: it is no YAML, or too deep or too large once its aliases are written out.
    """
    import yaml  # noqa: PLC0415  # heavy, and only a document in YAML needs it

    events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        return _Builder(yaml, events).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML")
        raise YamlError(what, mark.line + 1 if mark is not None else 0) from None


def scalar(text: str) -> Any:
    """What a plain scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAYBE_MORE or len(text) > _LONGEST_NUMBER:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _OTHER_INT.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


class _Builder:
    """Values out of events. Each open collection is a frame; nothing recurses."""

    def __init__(self, yaml: Any, events: Iterator[Any]) -> None:
        self._yaml, self._events = yaml, events
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._frames: list[_Frame] = []
        self._size = 0
        self._root: Any = None

    def document(self) -> Any:
        yaml = self._yaml
        made: dict[Any, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
        }
        for event in self._events:
            if (take := made.get(type(event))) is not None:
                take(event)
            elif isinstance(event, yaml.DocumentEndEvent) and self._root is not None:
                break
        return self._root

    def _scalar(self, event: Any) -> None:
        tag, plain = event.tag, event.implicit[0]
        if plain or (tag is not None and tag.startswith(_STANDARD) and tag != f"{_STANDARD}str"):
            value = scalar(event.value)
        else:
            value = event.value
        self._add(value, 1, event, merges=plain and event.value == "<<")

    def _alias(self, event: Any) -> None:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise YamlError(f"the alias *{event.anchor} stands for nothing that was read before it", _line(event))
        self._add(known[0], known[1], event, anchored=False)

    def _open(self, event: Any) -> None:
        if len(self._frames) >= MOST_DEPTH:
            raise YamlError(f"it is nested more than {MOST_DEPTH} levels deep", _line(event))
        is_mapping = isinstance(event, self._yaml.MappingStartEvent)
        self._frames.append(_Frame({} if is_mapping else [], event, self._size))

    def _close(self, _event: Any) -> None:
        frame = self._frames.pop()
        value = frame.merged()
        size, self._size = self._size - frame.size_before + 1, frame.size_before
        self._add(value, size, frame.event)

    def _add(self, value: Any, size: int, event: Any, *, merges: bool = False, anchored: bool = True) -> None:
        self._size += size
        if self._size > MOST_VALUES:
            raise YamlError(f"its aliases stand for more than {MOST_VALUES:,} values", _line(event))
        if anchored and event.anchor is not None:
            self._anchors[event.anchor] = (value, size)
        if self._frames:
            self._frames[-1].add(value, merges=merges)
        else:
            self._root = value


class _Frame:
    """One collection that is still open."""

    __slots__ = ("event", "key", "merges", "size_before", "value", "waits")

    def __init__(self, value: Any, event: Any, size_before: int) -> None:
        self.value, self.event, self.size_before = value, event, size_before
        self.key: str | None = None
        self.waits = False  # for the value of a key
        self.merges: list[Any] = []

    def add(self, value: Any, *, merges: bool) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif not self.waits:
            self.key = None if merges else key_text(value)
            self.waits = True
        else:
            self.waits = False
            if self.key is None:
                self.merges += value if isinstance(value, list) else [value]
            else:
                self.value[self.key] = value

    def merged(self) -> Any:
        """The finished collection: of the mappings that it merges, earlier ones count more, and its own keys most."""
        if not self.merges:
            return self.value
        merged: dict[str, Any] = {}
        for other in reversed(self.merges):
            merged.update(other if isinstance(other, dict) else {})
        return {**merged, **self.value}


def key_text(key: Any) -> str:
    """A key as the text that JSON needs: as it would stand in JSON."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
