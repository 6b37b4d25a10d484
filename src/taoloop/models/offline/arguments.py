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

from taoloop.core.cards.coercion import resolve_reference
from taoloop.core.cards.tool_card import ToolCard
from taoloop.models.offline.task_values import VALUES, Token, extract_concepts, find_zone, read_table

#: What a word of a parameter's name says of its values; a parameter without a role takes any name or id.
_ROLES = read_table("""
path: path file filename folder directory dir document | zone: zone timezone tz | key: key | url: url uri link
email: email mail | date: date day | id: id code number no sku serial | expression: expression expr formula equation
text: text content contents body message query question pattern sentence string subject title topic task note
closed: artifact cursor handle password
""")
_SIDES = read_table("""
from: from source src origin base start sender | to: to target dest destination end recipient receiver into quote
""")
_FITTING = {("place", "zone"), ("quoted", "text"), ("ref", "text"), ("number", "id"), ("key", "id")}
#: Names of parameters whose values come in the order of the task: `a` and `b`, `city1` and `city2`.
_ALIKE = re.compile(r"[a-z]|.*\d|first|second|left|right")
_MOST_WAYS, _DEEPEST = 3_000, 6
_OWN, _LIKELY, _POSSIBLE = 3, 2, 1
#: In place of an argument: the result of the step before.
EARLIER = object()


@dataclass(frozen=True)
class ToolParameter:
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
        return extract_concepts(self.name)

    @cached_property
    def types(self) -> frozenset[str]:
        """The JSON types that it takes; a schema that names none takes texts."""
        types = self.schema.get("type")
        names = [types] if isinstance(types, str) else types if isinstance(types, list | tuple) else []
        return frozenset(map(str, names)) - {"null"} or frozenset({"string"})

    @cached_property
    def choices(self) -> dict[str, str]:
        """The texts of its enum by their form in lower case."""
        choices = self.schema.get("enum")
        texts = choices if isinstance(choices, list | tuple) else ()
        return {text.lower(): text for text in texts if isinstance(text, str)}

    @cached_property
    def role(self) -> str:
        """What it takes: a value of `_ROLES`, or an empty text."""
        return _find_last_word(self.name, _ROLES)

    @cached_property
    def side(self) -> str:
        """`from` or `to` where its name says so."""
        return _find_last_word(self.name, _SIDES)

    @cached_property
    def is_number(self) -> bool:
        """Whether it takes numbers, and no texts."""
        return self.types <= {"integer", "number"}

    def score(self, token: Token) -> int:
        """How well a value fits; 0 where it does not."""
        if self.choices or self.types & {"boolean", "object", "array"}:
            return _OWN if _literal_text(token) in self.choices else 0
        if self.is_number:
            is_whole = "number" in self.types or token.kind == "ref" or token.value.isdigit()
            return _LIKELY if token.kind in ("number", "ref") and is_whole else 0
        if token.kind == self.role or (token.kind, self.role) in _FITTING:
            return _OWN
        if token.kind == "quoted":
            return 0 if self.role in ("closed", "expression") else _LIKELY
        if self.role or token.kind in ("date", "number"):
            return 0
        return _LIKELY if token.kind in ("name", "place", "id", "email", "url") else _POSSIBLE

    def convert(self, token: Token) -> Any:
        """The value of a token in the type of this parameter; `EARLIER` for an earlier result."""
        if token.kind == "ref":
            return EARLIER
        if token.kind == "number" and "string" not in self.types:
            return int(token.value) if token.value.isdigit() else float(token.value)
        if token.kind == "place" and self.role == "zone":
            return find_zone(token.value)
        return self.choices.get(_literal_text(token), token.value)


@dataclass(frozen=True)
class Filling:
    """Arguments for one call."""

    args: Mapping[str, Any]
    """The arguments; `EARLIER` stands for an earlier result."""
    tokens: frozenset[Token]
    """The values that went into them."""
    points: int
    """How well the values fit."""
    missing: tuple[str, ...]
    """The required parameters for which there is no value."""


#: A parameter that a value may go to, with its points; None: the value is no argument.
Option = tuple[ToolParameter | None, int]


def read_parameters(card: ToolCard) -> tuple[ToolParameter, ...]:
    """The parameters of a card."""
    return tuple(
        ToolParameter(name=name, required=name in card.required, schema=_resolve(schema, card.input_schema))
        for name, schema in card.parameters.items()
    )


def fill(question: Sequence[Token], parameters: Sequence[ToolParameter]) -> Filling | None:
    """The arguments for a question; None where a value fits nowhere, or where two ways are equally good."""
    choices = {choice for parameter in parameters for choice in parameter.choices}
    values = [token for token in question if token.kind in VALUES or _literal_text(token) in choices]
    options = [list(_find_options(token, question, parameters)) for token in values]
    if prod(map(len, options)) > _MOST_WAYS:
        return None
    best = _choose_best(list(product(*options)))
    if best is None:
        return None
    pairs = [(token, parameter) for token, (parameter, _) in zip(values, best, strict=True) if parameter is not None]
    values_of = {parameter.name: parameter.convert(token) for token, parameter in pairs}
    args = {each.name: values_of[each.name] for each in parameters if each.name in values_of}
    missing = tuple(each.name for each in parameters if each.required and each.name not in args)
    return Filling(args, frozenset(token for token, _ in pairs), _sum_points(best), missing)


def _resolve(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """A schema behind its references; of several alternatives the first that is not null."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        return _resolve(resolve_reference(reference, root), root, depth + 1)
    lists = (schema.get(word) for word in ("anyOf", "oneOf", "allOf"))
    options = [option for options in lists if isinstance(options, list | tuple) for option in options]
    chosen = next((option for option in options if isinstance(option, Mapping) and option.get("type") != "null"), None)
    return schema if chosen is None else _resolve(chosen, root, depth + 1)


def _find_options(token: Token, question: Sequence[Token], parameters: Sequence[ToolParameter]) -> Iterator[Option]:
    """The parameters that a value may go to; a name may also be a word of the card."""
    side, labels = _look_around(token, question)
    for parameter in parameters:
        points, is_labelled = parameter.score(token), bool(labels & parameter.words)
        is_aside = side and parameter.side and side != parameter.side
        if points and not is_aside and (parameter.required or is_labelled or not parameter.is_number):
            yield parameter, points + 3 * (side == parameter.side != "") + 2 * is_labelled + parameter.required
    if token.kind in ("name", "word"):
        yield None, 0


def _look_around(token: Token, question: Sequence[Token]) -> tuple[str, set[str]]:
    """`from` or `to` before a value, and the concepts of the words next to it."""
    index = question.index(token)
    before = next((each for each in reversed(question[:index]) if each.kind not in ("stop", "ask", "by")), None)
    following = question[index + 1].concept if index + 1 < len(question) else ""
    side = before.kind if before is not None and before.kind in ("from", "to") else ""
    return side, {following, before.concept if before is not None else ""} - {""}


def _choose_best(ways: Sequence[Sequence[Option]]) -> Sequence[Option] | None:
    """The way with the most points, if it is the only one, or if only the order of like parameters tells it apart."""
    names = [[parameter.name for parameter, _ in way if parameter is not None] for way in ways]
    ways = [way for way, used in zip(ways, names, strict=True) if len(used) == len(set(used))]
    most = max(map(_sum_points, ways), default=0)
    best = [way for way in ways if _sum_points(way) == most]
    is_alike = all(_ALIKE.fullmatch(parameter.name) for way in best for parameter, _ in way if parameter is not None)
    return best[0] if len(best) == 1 or (best and is_alike) else None


def _sum_points(way: Sequence[Option]) -> int:
    return sum(points for _, points in way)


def _literal_text(token: Token) -> str:
    return (token.text if token.kind == "word" else token.value).lower()


def _find_last_word(name: str, table: Mapping[str, str]) -> str:
    """What a table says of the last word of a name that it knows, or an empty text."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]", " ", name).lower().split()
    return next((table[part] for part in reversed(parts) if part in table), "")
