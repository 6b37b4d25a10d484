"""Arguments that a model could build from a card: random values of its schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from re import _parser as sre  # type: ignore[attr-defined]  # patterns as trees, from which texts are built
from typing import Any

_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:30:00Z",
    "time": "12:30:00Z",
    "email": "ann@example.com",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "duration": "P1D",
}
_TEXTS = (
    *("x", "", "Main Street 5", "2026-01-31", "a-b_c", "AB12", "42", "US", "https://example.com/", "a@b.example"),
    *("#aabbcc", "+4915112345678", "00:00", "a" * 24, "1" * 18, "0x" + "a" * 40),
)
_NOTED = re.compile(r"\(more fields: ([^;…]+)")


class ArgumentSampler:
    """Samples arguments of a schema. Some do not fit, where keywords restrict each other: the caller filters them.

    `with_noted`: also fields that a description names and the schema does not show.
    """

    def __init__(self, schema: Mapping[str, Any], seed: int, *, with_noted: bool = False) -> None:
        self._with_noted = with_noted
        self._schema, self._random = schema, Random(seed)  # noqa: S311  # no secret
        self._components: Mapping[str, Any] = schema.get("$defs", {})

    def arguments(self, share: float) -> Any:
        """Arguments with all that is required and a share of the rest."""
        return self._value(self._schema, share, 0)

    def _value(self, rule: Any, share: float, depth: int) -> Any:
        if not isinstance(rule, Mapping):
            return "anything"
        rule = self._merged(rule, 0)
        if "const" in rule:
            return rule["const"]
        if rule.get("enum"):
            return self._random.choice(rule["enum"])
        kinds = rule.get("type", "object" if "properties" in rule else ["string", "integer", "boolean"])
        kind = self._random.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "object":
            return self._object(rule, share if depth < 5 else 0.0, depth)
        if kind == "array":
            return self._array(rule, share, depth)
        if kind in ("integer", "number"):
            return self._number(rule, kind)
        return {"boolean": self._random.random() < 0.5, "null": None}.get(kind, self._text(rule))

    def _merged(self, rule: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """The rule with its references, the parts of `allOf` and one of its alternatives merged into it."""
        merged = dict(rule)
        parts = []
        if isinstance(reference := merged.pop("$ref", None), str):
            parts.append(self._components[reference.removeprefix("#/$defs/")])
        parts += merged.pop("allOf", ())
        for key in ("anyOf", "oneOf"):
            if options := merged.pop(key, None):
                parts.append(self._random.choice(options))
        for part in parts if depth < 40 else ():
            if not isinstance(part, Mapping):
                continue
            inner = self._merged(part, depth + 1)
            both: dict[str, Any] = {
                "properties": {**inner.get("properties", {}), **merged.get("properties", {})},
                "required": [*inner.get("required", ()), *merged.get("required", ())],
            }
            for name in inner.get("properties", {}).keys() & merged.get("properties", {}).keys():
                both["properties"][name] = {"allOf": [inner["properties"][name], merged["properties"][name]]}
            merged = {**inner, **merged, **{key: value for key, value in both.items() if value}}
        return merged

    def _object(self, rule: Mapping[str, Any], share: float, depth: int) -> dict[str, Any]:
        properties = rule.get("properties", {})
        required = rule.get("required", ())
        names = [name for name in properties if name in required or self._random.random() < share]
        names += [name for name in required if name not in properties]
        if len(names) < rule.get("minProperties", 0):
            names = [*names, *(name for name in properties if name not in names)][: rule["minProperties"]]
        if self._with_noted and (noted := _NOTED.search(str(rule.get("description", "")))):
            names.append(self._random.choice(noted[1].split(", ")))
        sampled = {name: self._value(properties.get(name, True), share, depth + 1) for name in dict.fromkeys(names)}
        if isinstance(more := rule.get("additionalProperties"), Mapping) and share > self._random.random():
            sampled["other"] = self._value(more, share, depth + 1)
        return sampled

    def _array(self, rule: Mapping[str, Any], share: float, depth: int) -> list[Any]:
        least, most = rule.get("minItems", 0), rule.get("maxItems", 3)
        count = min(max(least, self._random.choice((0, 1, 2)) if depth < 6 else 0), most, 20)
        heads = rule.get("prefixItems", ())
        rules = [heads[index] if index < len(heads) else rule.get("items", True) for index in range(count)]
        return [self._value(inner, share, depth + 1) for inner in rules if inner is not False]

    def _number(self, rule: Mapping[str, Any], kind: str) -> int | float:
        step = rule.get("multipleOf", 1)
        low = rule.get("minimum", rule.get("exclusiveMinimum", rule.get("maximum", 8) - 8))
        number = low if self._random.random() < 0.3 else low + self._random.randrange(8)
        number = number + 1 if "exclusiveMinimum" in rule else number
        number = min(number, rule.get("maximum", number))
        number = number // step * step if step != 1 else number
        return int(number) if kind == "integer" else number

    def _text(self, rule: Mapping[str, Any]) -> str:
        if rule.get("format") in _FORMATS:
            return _FORMATS[rule["format"]]
        if "pattern" in rule:
            return self._matching(sre.parse(rule["pattern"].replace("\\/", "/")), rule.get("minLength", 0))
        examples = [text for text in rule.get("examples", ()) if isinstance(text, str)]
        text: str = self._random.choice([*_TEXTS, *examples, *examples])
        text = text.ljust(rule.get("minLength", 0), "x")
        return text[: rule.get("maxLength", len(text))]

    def _matching(self, tree: Any, least: int) -> str:
        """A text that a pattern matches, of literals, classes, groups, alternatives and repetitions."""
        text = ""
        for operator, value in tree:
            name = str(operator)
            if name == "LITERAL":
                text += chr(value)
            elif name == "NOT_LITERAL":
                text += "x" if value != ord("x") else "y"
            elif name == "IN":
                text += self._from_class(value)
            elif name == "ANY":
                text += "x"
            elif name == "SUBPATTERN":
                text += self._matching(value[3], 0)
            elif name == "BRANCH":
                text += self._matching(self._random.choice(value[1]), 0)
            elif name in ("MAX_REPEAT", "MIN_REPEAT"):
                low, high, inner = value
                times = low if low or not least else min(least, int(high))
                text += "".join(self._matching(inner, 0) for _ in range(max(times, min(least, int(high)))))
        return text

    def _from_class(self, items: Any) -> str:
        if str(items[0][0]) == "NEGATE":
            return "x"
        operator, value = self._random.choice(items)
        if str(operator) == "RANGE":
            return chr(self._random.randint(*value))
        if str(operator) == "LITERAL":
            return chr(value)
        return {"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " "}.get(str(value), "w")
