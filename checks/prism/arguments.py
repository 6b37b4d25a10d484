"""Arguments made from the schema of a card: its examples, else the least value that each schema takes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings, strategies as st
from hypothesis.errors import HypothesisException

DEEPEST = 5
"""Levels to which properties that are not required are given too."""

_FORMATS = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "time": "03:04:05Z",
    "duration": "P1D",
    "email": "anna@example.com",
    "idn-email": "anna@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "uri-reference": "https://example.com/a",
    "iri": "https://example.com/a",
    "uuid": "4b7b2c0e-8f5d-4f0e-9a39-6f2f5f1d6c11",
    "byte": "aGVsbG8=",
    "binary": "hello",
    "regex": "a+",
    "json-pointer": "/a",
}


class NoValueError(ValueError):
    """No value could be made for a schema."""


def arguments(schema: Mapping[str, Any], *, optional: bool) -> dict[str, Any]:
    """Arguments that the schema of a card takes: all that are required, and with `optional` the others too.

    Raises:
        NoValueError: there are none, as far as this can tell.
    """
    made = _Maker(schema, optional=optional).value(schema, 0)
    if not isinstance(made, dict):
        raise NoValueError("the schema is not one of an object")
    return made


class _Maker:
    def __init__(self, root: Mapping[str, Any], *, optional: bool) -> None:
        self._root, self._optional = root, optional

    def value(self, rule: Any, depth: int) -> Any:
        if not isinstance(rule, Mapping):
            if rule is False:
                raise NoValueError("nothing fits")
            return "a"
        if depth > 40:
            raise NoValueError("it is nested without an end")
        rule = self._together(rule)
        for key in ("const", "default"):
            if rule.get(key) is not None and (key == "const" or depth):
                return rule[key]
        if rule.get("enum"):
            return next((one for one in rule["enum"] if one not in (None, "")), rule["enum"][0])
        for key in ("oneOf", "anyOf"):
            if rule.get(key):
                return self._branch(rule, rule[key], depth)
        kinds = rule.get("type")
        kind = next((one for one in kinds if one != "null"), "null") if isinstance(kinds, list) else kinds
        if kind is None:
            kind = "object" if "properties" in rule else "array" if "items" in rule else "string"
        return getattr(self, f"_{kind}")(rule, depth)

    def _branch(self, rule: Mapping[str, Any], branches: list[Any], depth: int) -> Any:
        rest = {key: value for key, value in rule.items() if key not in ("oneOf", "anyOf")}
        for branch in branches:
            if isinstance(branch, Mapping) and branch.get("type") == "null" and len(branches) > 1:
                continue
            try:
                return self.value({"allOf": [rest, branch]} if rest else branch, depth + 1)
            except NoValueError:
                continue
        raise NoValueError("no branch can be filled")

    def _together(self, rule: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema with its references followed and its `allOf` joined."""
        for _ in range(20):
            ref = rule.get("$ref")
            if not isinstance(ref, str):
                break
            place: Any = self._root
            for step in ref.removeprefix("#/").split("/"):
                place = place[step.replace("~1", "/").replace("~0", "~")]
            rest = {key: value for key, value in rule.items() if key not in ("$ref", "description")}
            rule = {"allOf": [place, rest]} if rest else place
        if "allOf" not in rule:
            return rule
        made = {key: value for key, value in rule.items() if key != "allOf"}
        for part in rule["allOf"]:
            for key, value in self._together(part).items() if isinstance(part, Mapping) else ():
                if key == "properties":
                    made[key] = {**made.get(key, {}), **value}
                elif key == "required":
                    made[key] = [*made.get(key, []), *value]
                else:
                    made.setdefault(key, value)
        return made

    def _object(self, rule: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = rule.get("required", [])
        made: dict[str, Any] = {}
        for name, inner in rule.get("properties", {}).items():
            if name not in required and (not self._optional or depth > DEEPEST):
                continue
            try:
                made[name] = self.value(inner, depth + 1)
            except (NoValueError, RecursionError):
                if name in required:
                    raise
        others = rule.get("additionalProperties")
        while len(made) < rule.get("minProperties", 0):
            made[f"key{len(made)}"] = self.value(others if isinstance(others, Mapping) else {}, depth + 1)
        return made

    def _array(self, rule: Mapping[str, Any], depth: int) -> list[Any]:
        least = rule.get("minItems", 0)
        wanted = max(least, 1 if self._optional and depth <= DEEPEST and rule.get("maxItems", 1) else 0)
        item = [self.value(rule.get("items", {}), depth + 1) for _ in range(wanted)]
        if rule.get("uniqueItems") and len(item) > 1:
            return [f"{one}{number}" if isinstance(one, str) else one for number, one in enumerate(item)]
        return item

    def _string(self, rule: Mapping[str, Any], _depth: int) -> str:
        least, most = rule.get("minLength", 0), rule.get("maxLength", 10_000)
        if "pattern" in rule:
            return _of_pattern(rule["pattern"], least, most)
        text = _FORMATS.get(rule.get("format", ""), "abcde")
        text = text if len(text) >= least else text * (least // len(text) + 1)
        return text[:most] if rule.get("format") not in _FORMATS else text

    def _integer(self, rule: Mapping[str, Any], _depth: int) -> int:
        number = int(rule.get("minimum", min(1, rule.get("maximum", 1))))
        number += "exclusiveMinimum" in rule and number <= rule["exclusiveMinimum"]
        step = int(rule.get("multipleOf", 1)) or 1
        return -(-number // step) * step

    def _number(self, rule: Mapping[str, Any], depth: int) -> float | int:
        least, most = rule.get("minimum", rule.get("exclusiveMinimum")), rule.get("maximum")
        if least is None or "multipleOf" in rule:
            return self._integer(rule, depth) if most is None or most >= 1 else float(most)
        least = float(least)
        return least + min(0.5, (most - least) / 2) if most is not None else least + 0.5

    def _boolean(self, _rule: Mapping[str, Any], _depth: int) -> bool:
        return True

    def _null(self, _rule: Mapping[str, Any], _depth: int) -> None:
        return None


def _of_pattern(pattern: str, least: int, most: int) -> str:
    """The least text that a pattern of ECMA finds itself in."""
    whole = pattern.replace("\\d", "[0-9]").replace("\\/", "/").replace("(?<", "(?P<")
    whole = whole[:-1] + r"\Z" if whole.endswith("$") and not whole.endswith("\\$") else whole
    quick = settings(database=None, phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck))
    plain = st.from_regex(whole, alphabet=st.characters(max_codepoint=126, min_codepoint=32))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return find(plain, lambda text: least <= len(text) <= most, settings=quick)
    except (HypothesisException, ValueError) as error:
        raise NoValueError(f"no text fits {pattern!r}: {error}") from None
