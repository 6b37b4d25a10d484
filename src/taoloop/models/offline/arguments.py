"""Fills the arguments of a tool with the values of a question, by the name and the type of each parameter.

A value goes where it fits best. Where two ways are as good, or a value fits nowhere, nothing is filled: a guess could
send money to the wrong account.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from taoloop.core.cards import ToolCard
from taoloop.models.offline.task_values import VALUES, Token, concepts_of, zone_of

_ROLES = {
    "path": "path file filename folder directory dir document",
    "zone": "zone timezone tz",
    "key": "key",
    "url": "url uri link",
    "email": "email mail",
    "date": "date day",
    "text": "text content contents body message query question pattern sentence string subject title topic task note",
    "expression": "expression expr formula equation",
    "closed": "artifact cursor handle password",
}
"""What the words of a parameter's name say about its values; a parameter without a role takes any name or id."""
_FROM = frozenset("from source src origin base start sender".split())
_TO = frozenset("to target dest destination end recipient receiver into quote".split())
_ALIKE = re.compile(r"[a-z]|.*\d|first|second|left|right")
"""Names of parameters whose values come in the order of the task: `a` and `b`, `city1` and `city2`."""
_MOST_WAYS = 3_000
_OWN, _LIKELY, _POSSIBLE = 3, 2, 1


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool."""

    name: str
    """Its name."""
    required: bool
    """Whether a call must give it."""
    schema: Mapping[str, Any]
    """Its JSON Schema, with references resolved at the top."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The concepts in its name."""
        return concepts_of(self.name)

    @cached_property
    def name_parts(self) -> frozenset[str]:
        """The words of its name in lower case."""
        return frozenset(re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]", " ", self.name).lower().split())

    @cached_property
    def types(self) -> frozenset[str]:
        """The JSON types that it takes; a schema that names none takes texts."""
        types = self.schema.get("type")
        named = [types] if isinstance(types, str) else types if isinstance(types, list | tuple) else []
        return frozenset(kind for kind in named if kind != "null") or frozenset({"string"})

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The texts of its enum."""
        listed = self.schema.get("enum")
        return tuple(choice for choice in listed if isinstance(choice, str)) if isinstance(listed, list | tuple) else ()

    @cached_property
    def role(self) -> str:
        """A key of `_ROLES`, or an empty text."""
        return next((role for role, names in _ROLES.items() if self.name_parts & set(names.split())), "")

    @cached_property
    def is_number(self) -> bool:
        """Whether it takes numbers, and no texts."""
        return self.types <= {"integer", "number"}

    def points(self, token: Token) -> int:
        """How well a value fits; 0 where it does not."""
        if self.choices or self.types & {"boolean", "object", "array"}:
            return _OWN if _literal(token) in map(str.lower, self.choices) else 0
        if self.is_number:
            whole = "number" in self.types or token.kind == "ref" or token.value.isdigit()
            return _LIKELY if token.kind in ("number", "ref") and whole else 0
        return self._points_of_text(token.kind)

    def _points_of_text(self, kind: str) -> int:
        if self.role in ("closed", "expression"):
            return 0
        if kind == self.role or (kind == "place" and self.role == "zone"):
            return _OWN
        if kind == "quoted":
            return _OWN if self.role == "text" else _LIKELY
        if kind == "ref":
            return {"text": _OWN, "": _POSSIBLE}.get(self.role, 0)
        if self.role:
            return 0
        return _LIKELY if kind in ("name", "place", "id", "email", "url") else _POSSIBLE if kind != "date" else 0

    def convert(self, token: Token) -> Any:
        """The value of a token in the type of this parameter; `EARLIER` for an earlier result."""
        if token.kind == "ref":
            return EARLIER
        if self.choices:
            return next(choice for choice in self.choices if choice.lower() == _literal(token))
        if token.kind == "number" and "string" not in self.types:
            return int(token.value) if token.value.isdigit() else float(token.value)
        return zone_of(token.value) if token.kind == "place" and self.role == "zone" else token.value


@dataclass(frozen=True)
class Filling:
    """Arguments for one call."""

    args: Mapping[str, Any]
    """The arguments; `EARLIER` stands for an earlier result."""
    tokens: frozenset[Token]
    """The values that went into them."""
    points: int
    """How well the values fit."""
    missing: tuple[Parameter, ...]
    """The required parameters for which there is no value."""


EARLIER = object()
"""In place of an argument: the result of the step before."""


def parameters_of(card: ToolCard) -> tuple[Parameter, ...]:
    """The parameters of a card."""
    required = set(card.required)
    return tuple(
        Parameter(name=name, required=name in required, schema=_resolved(schema, card.input_schema))
        for name, schema in card.parameters.items()
    )


def _resolved(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """A schema behind its references; of several alternatives the first that is not null."""
    if not isinstance(schema, Mapping) or depth > 6:
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, Mapping) else None
        return _resolved(target, root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        options = schema.get(word)
        for option in options if isinstance(options, list | tuple) else ():
            if isinstance(option, Mapping) and option.get("type") != "null":
                return _resolved(option, root, depth + 1)
    return schema


def fill(question: Sequence[Token], parameters: Sequence[Parameter]) -> Filling | None:
    """The arguments for a question; None where a value fits nowhere, or where two ways are equally good."""
    choices = {choice.lower() for parameter in parameters for choice in parameter.choices}
    values = [token for token in question if token.kind in VALUES or _literal(token) in choices]
    args: dict[str, Any] = {}
    items: list[Token] = []
    if (listed := next((each for each in parameters if each.types == {"array"}), None)) is not None:
        kind = "quoted" if "string" in _item_types(listed) else "number"
        items = [token for token in values if token.kind == kind]
        values = [token for token in values if token.kind != kind]
        args = {listed.name: [_item(token) for token in items]} if items else {}
    ways = [list(_places(token, question, parameters)) for token in values]
    if any(not options for options in ways) or prod(map(len, ways)) > _MOST_WAYS:
        return None
    best = _best(values, [way for way in product(*ways) if _is_possible(way)])
    if best is None:
        return None
    points, way = best
    pairs = [(token, option[0]) for token, option in zip(values, way, strict=True) if option[0] is not None]
    args |= {parameter.name: parameter.convert(token) for token, parameter in pairs}
    used = frozenset(items) | {token for token, _ in pairs}
    missing = tuple(each for each in parameters if each.required and each.name not in args)
    return Filling(args=args, tokens=used, points=points, missing=missing)


Option = tuple[Parameter | None, int]


def _places(token: Token, question: Sequence[Token], parameters: Sequence[Parameter]) -> Iterator[Option]:
    """The parameters that a value may go to, each with its points; a name may also be a word of the card."""
    before, label, behind = _surroundings(token, question)
    for parameter in parameters:
        points = parameter.points(token)
        side = "from" if parameter.name_parts & _FROM else "to" if parameter.name_parts & _TO else ""
        if not points or (before and side and before != side):
            continue
        named = bool({label, behind} & parameter.words - {""})
        yield parameter, points + 3 * (before == side != "") + 2 * named + parameter.required
    if token.kind in ("name", "word"):
        yield None, 0


def _surroundings(token: Token, question: Sequence[Token]) -> tuple[str, str, str]:
    """`from` or `to` before a value, the concept of the word before it, and that of the word behind it."""
    index = question.index(token)
    side = label = ""
    for earlier in reversed(question[:index]):
        if earlier.kind in ("from", "to") and not label:
            side = earlier.kind
        if earlier.kind not in ("stop", "by"):
            label = earlier.concept
            break
    behind = question[index + 1].concept if index + 1 < len(question) else ""
    return side, label, behind


def _is_possible(way: Sequence[Option]) -> bool:
    parameters = [option[0].name for option in way if option[0] is not None]
    return len(parameters) == len(set(parameters))


def _best(values: Sequence[Token], ways: Sequence[Sequence[Option]]) -> tuple[int, Sequence[Option]] | None:
    """The way with the most points, if it is the only one, or if only the order of like parameters tells it apart."""
    if not ways:
        return None
    most = max(sum(points for _, points in way) for way in ways)
    best = [way for way in ways if sum(points for _, points in way) == most]
    names = {option[0].name for way in best for option in way if option[0] is not None}
    if len(best) > 1 and not all(_ALIKE.fullmatch(name) for name in names):
        return None
    return most, best[0]


def _literal(token: Token) -> str:
    return (token.text if token.kind == "word" else token.value).lower()


def _item_types(parameter: Parameter) -> frozenset[str]:
    items = parameter.schema.get("items")
    return Parameter(name="", required=True, schema=items if isinstance(items, Mapping) else {}).types


def _item(token: Token) -> Any:
    return token.value if token.kind == "quoted" else float(token.value) if "." in token.value else int(token.value)
