"""Where a value may come from, as rules write it: `task`, `operator`, or a field of what a tool returned.

`tool:get_order.total` is that field of the outputs of `get_order`. `tool:get_order(order_id).items[].item_id` considers
only the calls of `get_order` with the same `order_id` as the call that is judged, and there the `item_id` of each
member of `items`. `get_user(user_id=customer)` compares with another argument of that call, `get_user(user_id=task)`
with another origin. In a path `*` stands for every key of an object; without a path the whole output is the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from taoloop.core.cards.coercion import resolve_reference
from taoloop.core.text import lazy_pattern

PlainOrigin = Literal["task", "operator"]
PLAIN_ORIGINS: tuple[PlainOrigin, ...] = ("task", "operator")
"""What people wrote in the run, and the instructions of the operator."""

FORMS = "task, operator, or a field of a tool such as tool:get_order(order_id).items[].item_id"
"""The forms of an origin, for errors."""

ANY_KEY, EACH_MEMBER = "*", "[]"

_TOOL = lazy_pattern(r"[\w.-]+(?=\()|[\w-]+", re.ASCII)  # a name with dots in it needs its parentheses
_ARGUMENT = lazy_pattern(r"[^\s()=,*]+")
_STEP = lazy_pattern(r"\.?(\[\])|\.([^\s.\[\]()=,]+)")
_MAX_NESTING = 4
_MAX_SCHEMA_DEPTH = 32  # levels of a schema that are looked at


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """Calls of a tool, or a field of what they returned."""

    text: str
    """As it is written; the field of an output begins with `tool:`."""
    tool: str
    """The name of the tool."""
    path: tuple[str, ...] = ()
    """The steps from the output to the field: names, `*` for every key and `[]` for every member; none: the output."""
    same: tuple[tuple[str, str | Origin], ...] = ()
    """Arguments of that call, each with what has the same value: an argument of the call that is judged (its path), or
    another origin."""

    def inner(self) -> Iterator[CallOrigin]:
        """The origin itself and those that its arguments are compared with."""
        yield self
        for _, other in self.same:
            if isinstance(other, CallOrigin):
                yield from other.inner()


@dataclass(frozen=True, slots=True)
class TextOrigin:
    """Trusted texts of the run."""

    text: PlainOrigin
    """Which of them."""


Origin = CallOrigin | TextOrigin


@lru_cache(maxsize=1024)
def parse_origin(text: str) -> Origin:
    """The origin that a text names.

    Raises:
        ValueError: it is none.
    """
    reader = _OriginReader(text)
    origin = reader.origin()
    reader.require_end()
    return origin


@lru_cache(maxsize=1024)
def parse_call(text: str) -> CallOrigin:
    """The calls that a condition such as `get_order` or `get_order(order_id)` names.

    Raises:
        ValueError: it names none.
    """
    reader = _OriginReader(text if "(" in text else f"{text}()")
    call = reader.call()
    reader.require_end()
    if call.path:
        raise ValueError(text)
    return call


def parse_path(path: str) -> tuple[str, ...]:
    """The steps of a path within an output, such as `items[].item_id` or `.total`; none for `.`, the output itself.

    Raises:
        ValueError: it is no path.
    """
    if path == ".":
        return ()
    reader = _OriginReader(path if path.startswith((".", "[")) else f".{path}")
    steps = reader.path()
    reader.require_end()
    return steps


def can_parse(parse: Callable[[str], object], text: object) -> bool:
    """Whether `parse` takes a text."""
    try:
        return isinstance(text, str) and parse(text) is not None
    except ValueError:
        return False


def is_field(name: object) -> bool:
    """Whether a text names a field of an output: a name, or a path such as `items[].item_id`."""
    return isinstance(name, str) and bool(name) and (not is_field_path(name) or can_parse(parse_path, name))


def is_field_path(name: str) -> bool:
    """Whether a field is at one path of an output, and not a name wherever it is."""
    return not {".", "["}.isdisjoint(name)


@dataclass(frozen=True, slots=True)
class StatedOrigin:
    """Where an argument of a planned call comes from: a field of what a call of an earlier step returned."""

    origin: CallOrigin
    """The field."""
    step: int | None
    """The step of the plan whose calls are considered; None: any that the step depends on, and the step itself."""

    @property
    def key(self) -> str:
        """Names exactly this origin."""
        return self.origin.text if self.step is None else f"{self.step}:{self.origin.text}"


def is_stated(value: object) -> bool:
    """Whether a value in a planned call states an origin, readable or not: `{"from": "tool:…", "step": 1}`."""
    if not isinstance(value, Mapping) or "from" not in value or not value.keys() <= {"from", "step"}:
        return False
    return isinstance(value["from"], str) and value["from"].startswith("tool:")


def stated_origin(value: object) -> StatedOrigin | None:
    """The origin that a value in a planned call states; None for any other value.

    Raises:
        ValueError: it states one that cannot be read.
    """
    if not isinstance(value, Mapping) or not is_stated(value):
        return None
    origin, step = parse_origin(value["from"]), value.get("step")
    if not isinstance(origin, CallOrigin) or isinstance(step, bool) or not isinstance(step, int | None):
        raise ValueError(value["from"])
    return StatedOrigin(origin, step)


def stated_origins(value: object, path: str = "") -> Iterator[tuple[str, StatedOrigin]]:
    """The origins that are stated within a value, each with its path.

    Raises:
        ValueError: one of them cannot be read.
    """
    origin = stated_origin(value)
    if origin is not None:
        yield path, origin
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from stated_origins(part, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from stated_origins(part, f"{path}[{index}]")


class _OriginReader:
    """Reads an origin from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._position, self._depth = text, 0, 0

    def origin(self) -> Origin:
        for name in PLAIN_ORIGINS:
            if self._skip(name):
                return TextOrigin(name)
        if not self._skip("tool:"):
            raise ValueError(self._text)
        return self.call(self._position - len("tool:"))

    def call(self, start: int = 0) -> CallOrigin:
        tool = self._match(_TOOL)
        same = list[tuple[str, str | Origin]]()
        if self._skip("(") and not self._skip(")"):
            self._depth += 1
            if self._depth > _MAX_NESTING:
                raise ValueError(self._text)
            self._skip(" ")  # where a long text was broken, YAML puts a space
            same.append(self._comparison())
            while self._skip(","):
                self._skip(" ")
                same.append(self._comparison())
            if not self._skip(")"):
                raise ValueError(self._text)
            self._depth -= 1
        path = self.path()
        return CallOrigin(self._text[start : self._position], tool, path, tuple(same))

    def path(self) -> tuple[str, ...]:
        steps = []
        while match := _STEP.match(self._text, self._position):
            steps.append(match[1] or match[2])
            self._position = match.end()
        return tuple(steps)

    def require_end(self) -> None:
        if self._position != len(self._text):
            raise ValueError(self._text)

    def _comparison(self) -> tuple[str, str | Origin]:
        name = self._match(_ARGUMENT)
        if not self._skip("="):
            return name, name
        rest = self._text[self._position :]
        if rest.startswith("tool:") or re.match(r"(?:task|operator)(?=[,)])", rest):
            return name, self.origin()
        return name, self._match(_ARGUMENT)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._position)
        if match is None:
            raise ValueError(self._text)
        self._position = match.end()
        return match[0]

    def _skip(self, text: str) -> bool:
        if not self._text.startswith(text, self._position):
            return False
        self._position += len(text)
        return True


def read_document(text: str) -> Any:
    """The data in an output as JSON.

    Raises:
        ValueError: it is no JSON, or an object in it has a key twice: somebody may have written the second one.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=_object_of)


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a key twice")
    return members


def values_at(document: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """The plain values at a path within an output; where a list of them is, each of its members.

    A path that ends in `[]` or `*` says how deep to go: a list that it leads to is no plain value.
    """
    parts = [document]
    for step in path:
        parts = [inner for part in parts for inner in _step_into(part, step)]
    is_open = path[-1:] not in ((EACH_MEMBER,), (ANY_KEY,))
    for part in parts:
        for value in part if is_open and isinstance(part, list) else (part,):
            if isinstance(value, str | int | float):
                yield value


def _step_into(part: Any, step: str) -> Iterator[Any]:
    if step == EACH_MEMBER:
        yield from part if isinstance(part, list) else ()
    elif isinstance(part, Mapping):
        if step in part:
            yield part[step]
        elif step == ANY_KEY:
            yield from part.values()


def has_field(schema: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether an output of this JSON Schema may have something at a path. In doubt it may."""
    return _may_have(schema, path, schema)


def _may_have(rule: Any, path: tuple[str, ...], root: Mapping[str, Any], depth: int = 0) -> bool:
    if not isinstance(rule, Mapping) or "allOf" in rule or depth > _MAX_SCHEMA_DEPTH:
        return True
    if isinstance(ref := rule.get("$ref"), str):
        return not ref.startswith("#/") or _may_have(resolve_reference(ref, root), path, root, depth + 1)
    if not path:
        return rule.get("type") not in ("object", "null")
    arms = [arm for name in ("anyOf", "oneOf") if isinstance(rule.get(name), list) for arm in rule[name]]
    if arms:
        return any(_may_have(arm, path, root, depth + 1) for arm in arms)
    kinds = rule.get("type", ["array", "object"])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    step, rest = path[0], path[1:]
    if step == EACH_MEMBER:
        return "array" in kinds and _may_have(rule.get("items", True), rest, root, depth + 1)
    if "object" not in kinds:
        return False
    properties = rule.get("properties", {})
    if step in properties:
        return _may_have(properties[step], rest, root, depth + 1)
    more = rule.get("additionalProperties", not properties)
    if step == ANY_KEY and any(_may_have(inner, rest, root, depth + 1) for inner in properties.values()):
        return True
    return more is not False and _may_have(more, rest, root, depth + 1)
