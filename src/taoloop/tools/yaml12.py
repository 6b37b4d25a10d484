"""YAML as the values of JSON: the core schema of YAML 1.2, bounded in depth and size.

YAML 1.1, which PyYAML follows, reads `on` as true, `2024-10-01` as a date and `012` as an octal number; authors of API
documents and of configuration files mean none of that. PyYAML only parses the text into events, and this module builds
the values from them without recursion: a bomb of aliases or brackets is refused before it becomes objects.

`parse_yaml` is for documents of others: it forgives what it can, and every key becomes a text. `parse_yaml_document` is
for files that are written for taoloop: it is strict, leaves keys as they are, and knows on which line each value is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

FieldPath = tuple[str | int, ...]
"""Keys and indexes from the top, such as `("tools", 2, "card")`."""

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_OCTAL_OR_HEX = re.compile(r"0o[0-7]{1,1000}|0x[0-9a-fA-F]{1,1000}")  # a longer one could not be written in digits
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_FIRST_CHARS = frozenset("-+.0123456789")
_MAX_NUMBER_CHARS = 4_000  # Python refuses to read longer numbers
_CORE = "tag:yaml.org,2002:"
_CORE_TYPES: dict[str, tuple[type, ...]] = {
    f"{_CORE}str": (str,),
    f"{_CORE}int": (int,),
    f"{_CORE}float": (int, float),
    f"{_CORE}bool": (bool,),
    f"{_CORE}null": (type(None),),
    f"{_CORE}map": (dict,),
    f"{_CORE}seq": (list,),
}
_MERGE = "<<"


class YamlError(ValueError):
    """The text is not YAML that can be read: `problem` says why, `line` counts from 1 (0: unknown)."""

    def __init__(self, problem: str, line: int = 0) -> None:
        self.problem, self.line = problem, line
        super().__init__(problem)


class YamlSizeError(YamlError):
    """The text is nested too deeply, or has too many values once its aliases are written out."""


class DuplicateKeyError(YamlError):
    """A mapping has a key twice: `path` leads to it, `first_line` is the line of the first one."""

    def __init__(self, path: FieldPath, line: int, first_line: int) -> None:
        self.path, self.first_line = path, first_line
        super().__init__(f"the key {path[-1]!r} appears a second time (first in line {first_line})", line)


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The value of a YAML text, and where its parts are."""

    value: Any
    """None, bool, int, float, str, list or dict. A key may be any scalar."""
    lines: dict[FieldPath, int]
    """The line of every part, from 1: of its key in a mapping, of its beginning in a list. `()` is the whole.

    The keys in these paths are texts: `key_text` of the keys in `value`.
    """


def parse_yaml(text: str, *, max_depth: int = 300, max_values: int = 3_000_000) -> Any:
    """The value of the first document in a YAML text.

    Of a repeated key the last value counts, unknown tags are ignored. Values are counted as often as aliases repeat
    them.

    Raises:
        YamlError: it is not YAML, too deep or too large.
    """
    return _parse(text, max_depth, max_values, is_strict=False).value


def parse_yaml_document(text: str, *, max_depth: int = 60, max_values: int = 50_000) -> YamlDocument:
    """The value of a YAML text with the lines of its parts. JSON is YAML, too, if it has no tabs.

    Raises:
        DuplicateKeyError: a mapping has a key twice.
        YamlSizeError: it is too deep or too large.
        YamlError: it is not YAML, has a tag outside the core schema, or more than one document.
    """
    return _parse(text, max_depth, max_values, is_strict=True)


def parse_scalar(text: str) -> Any:
    """The value of a plain scalar by the core schema: null, a boolean, a finite number, or the text itself."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _FIRST_CHARS or len(text) > _MAX_NUMBER_CHARS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _OCTAL_OR_HEX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def key_text(key: Any) -> str:
    """A key as the text that JSON needs, as JSON would write it."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


_LineTree = dict[str | int, tuple[int, Any]]
"""The line of each member of a collection, and the tree of the member if it is a collection itself, else None."""


def _parse(text: str, max_depth: int, max_values: int, *, is_strict: bool) -> YamlDocument:
    import yaml  # noqa: PLC0415  # heavy, and only a document in YAML needs it

    # The parser in C refuses an escaped pair such as `\ud83d\ude00`, which JSON files have.
    loader = yaml.SafeLoader if is_strict else getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml, max_depth, max_values, is_strict=is_strict)
    try:
        builder.build(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
        context = getattr(error, "context", None)
        line = mark.line + 1 if mark is not None else 0
        raise YamlError(f"{context}: {problem}" if context else str(problem), line) from None
    value = builder.root.value[-1] if builder.root.value else None
    return YamlDocument(value, _flatten(builder.root.lines, max_depth) if is_strict else {})


def _flatten(root: _LineTree, max_depth: int) -> dict[FieldPath, int]:
    """The lines of the parts of the only document, which is the first member of the `root`."""
    lines: dict[FieldPath, int] = {}
    pending: list[tuple[FieldPath, _LineTree]] = [((), root)]
    while pending:
        path, tree = pending.pop()
        for key, (line, subtree) in tree.items():
            if len(path) > max_depth:  # aliases may nest deeper than the text does
                raise YamlSizeError(f"it is nested more than {max_depth} levels deep", line)
            lines[(*path, key)[1:]] = line
            if subtree:
                pending.append(((*path, key), subtree))
    return lines or {(): 1}


class _Builder:
    """Builds values from events. Each open collection is a frame, as the documents are in `root`; nothing recurses."""

    def __init__(self, yaml: Any, max_depth: int, max_values: int, *, is_strict: bool) -> None:
        self._max_depth, self._max_values, self._is_strict = max_depth, max_values, is_strict
        self._anchors: dict[str, tuple[Any, int, _LineTree | None]] = {}
        self.root = _Frame([], None, 0)
        self._frames = [self.root]
        self._size = 0
        self._mapping_start = yaml.MappingStartEvent
        self._document_start, self._document_end = yaml.DocumentStartEvent, yaml.DocumentEndEvent
        self._handlers: dict[Any, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._add_scalar,
            yaml.AliasEvent: self._add_alias,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
        }

    def build(self, events: Iterator[Any]) -> None:
        for event in events:
            if (handle := self._handlers.get(type(event))) is not None:
                handle(event)
            elif self._is_strict and self.root.value and isinstance(event, self._document_start):
                raise YamlError("there is a second document in it", _line(event))
            elif isinstance(event, self._document_end) and self.root.value[-1] is not None and not self._is_strict:
                break

    def _add_scalar(self, event: Any) -> None:
        tag, is_plain = event.tag, event.implicit[0]
        if is_plain or (tag is not None and tag.startswith(_CORE) and tag != f"{_CORE}str"):
            value = parse_scalar(event.value)
        else:
            value = event.value
        if self._is_strict:
            _check_tag(event, value)
        self._add(value, 1, event, is_merge=is_plain and event.value == _MERGE)

    def _add_alias(self, event: Any) -> None:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise YamlError(f"the alias *{event.anchor} refers to nothing that ends before it", _line(event))
        value, size, lines = anchor
        self._add(value, size, event, lines=lines)

    def _open(self, event: Any) -> None:
        if len(self._frames) > self._max_depth:
            raise YamlSizeError(f"it is nested more than {self._max_depth} levels deep", _line(event))
        value: Any = {} if isinstance(event, self._mapping_start) else []
        if self._is_strict:
            _check_tag(event, value)
            if self._frames[-1].expects_key:
                raise YamlError("a list or a mapping cannot be a key", _line(event))
        self._frames.append(_Frame(value, event, self._size))

    def _close(self, _event: Any) -> None:
        frame = self._frames.pop()
        size, self._size = self._size - frame.size_before + 1, frame.size_before
        self._add(self._merged(frame), size, frame.event, lines=frame.lines)

    def _merged(self, frame: _Frame) -> Any:
        """The finished collection: among the mappings that it merges the first wins, and its own keys always."""
        if not frame.merges:
            return frame.value
        merged: dict[str, Any] = {}
        for mapping in reversed(frame.merges):
            if isinstance(mapping, dict):
                merged.update(mapping)
            elif self._is_strict:
                raise YamlError(f"`{_MERGE}` takes a mapping or a list of mappings", _line(frame.event))
        return {**merged, **frame.value}

    def _add(
        self, value: Any, size: int, event: Any, *, lines: _LineTree | None = None, is_merge: bool = False
    ) -> None:
        self._size += size
        if self._size > self._max_values:
            raise YamlSizeError(
                f"it has more than {self._max_values:,} values, counting those that its aliases repeat", _line(event)
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, size, lines)
        frame = self._frames[-1]
        is_key = frame.expects_key
        frame.add(key_text(value) if is_key and not self._is_strict else value, is_merge=is_merge)
        if self._is_strict:
            self._note_line(frame, event, lines, is_key=is_key)

    def _note_line(self, frame: _Frame, event: Any, lines: _LineTree | None, *, is_key: bool) -> None:
        if is_key and frame.key in frame.lines:
            path = (*(outer.open_key for outer in self._frames[1:-1]), frame.key)
            raise DuplicateKeyError(path, _line(event), frame.lines[frame.key][0])
        line = _line(event) if is_key or isinstance(frame.value, list) else frame.lines[frame.key][0]
        frame.lines[frame.key] = (line, lines)


class _Frame:
    """One collection that is still open: `key` is the key or index of its last member."""

    __slots__ = ("event", "expects_key", "is_merge", "key", "lines", "merges", "raw_key", "size_before", "value")

    def __init__(self, value: Any, event: Any, size_before: int) -> None:
        self.value, self.event, self.size_before = value, event, size_before
        self.key: str | int = -1
        self.raw_key: Any = None  # as it is in `value`
        self.expects_key = isinstance(value, dict)
        self.is_merge = False
        self.merges: list[Any] = []
        self.lines: _LineTree = {}

    @property
    def open_key(self) -> str | int:
        """The key or index of the member that is being read."""
        return len(self.value) if isinstance(self.value, list) else self.key

    def add(self, value: Any, *, is_merge: bool) -> None:
        if isinstance(self.value, list):
            self.key = len(self.value)
            self.value.append(value)
        elif self.expects_key:
            self.key, self.raw_key, self.is_merge = key_text(value), value, is_merge
            self.expects_key = False
        else:
            self.expects_key = True
            if self.is_merge:
                self.merges += value if isinstance(value, list) else [value]
            else:
                self.value[self.raw_key] = value


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _check_tag(event: Any, value: Any) -> None:
    """Refuse a tag outside the core schema, and one that does not fit its value."""
    if event.tag is None or event.tag == "!":
        return
    types = _CORE_TYPES.get(event.tag)
    tag = event.tag.replace(_CORE, "!!")
    if types is None:
        raise YamlError(f"the tag {tag} is not supported", _line(event))
    if type(value) not in types:
        raise YamlError(f"the value does not fit its tag {tag}", _line(event))
