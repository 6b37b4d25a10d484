"""A policy as a file, or as the part of an agent file: every mistake is told with its place."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from taoloop.config.document import ConfigDocument, kind_name, read_document
from taoloop.core.policy import PROFILES, Policy, Rule
from taoloop.errors import PolicyError
from taoloop.tools.yaml12 import FieldPath

_POLICY = tuple(one.name for one in fields(Policy))
_RULE = tuple(one.name for one in fields(Rule))
_EXAMPLE = "profile: supervised"


def load_policy(path: Path) -> Policy:
    """The policy in a YAML or JSON file.

    Raises:
        AgentFileError: it cannot be used; names the file, the line and the field.
    """
    document = read_document(path, "a policy", _EXAMPLE)
    return policy_in(document, (), document.data)


def policy_in(document: ConfigDocument, place: FieldPath, value: Any) -> Policy:
    """The policy at one place of a document: a mapping of its fields, or the name of a profile.

    Raises:
        AgentFileError: it cannot be used; names the file, the line and the field.
    """
    if isinstance(value, str):
        value = {"profile": value}
    if not isinstance(value, dict):
        raise document.error(
            place, f"a policy is a mapping or the name of a profile, not {kind_name(value)}.", hint=_profiles()
        )
    given: dict[str, Any] = {}
    for name, part in value.items():
        if name not in _POLICY:
            raise document.unknown((*place, name), _POLICY)
        given[name] = _field(document, (*place, name), name, part)
    try:
        return Policy(**given)
    except PolicyError as error:
        raise document.error(_place_of(place, given, error), error.message, hint=error.hint) from error


def _hidden(rules: tuple[Rule, ...]) -> int | None:
    """The first rule that those before it leave nothing to decide."""
    for number in range(len(rules)):
        try:
            Policy(rules=rules[: number + 1])
        except PolicyError:
            return number
    return None


def _field(document: ConfigDocument, place: FieldPath, name: str, value: Any) -> Any:
    if name == "rules":
        if not isinstance(value, list):
            raise document.error(place, f"a list of rules is expected, not {kind_name(value)}.")
        return tuple(_rule(document, (*place, number), rule) for number, rule in enumerate(value))
    if name == "trusted_fields" and not isinstance(value, dict):
        raise document.error(place, f"a mapping from tools to fields is expected, not {kind_name(value)}.")
    if name in ("trusted_tools", "allowed_hosts"):
        if not isinstance(value, list):
            raise document.error(place, f"a list of patterns is expected, not {kind_name(value)}.")
        return tuple(value)
    return value


def _rule(document: ConfigDocument, place: FieldPath, value: Any) -> Rule:
    if not isinstance(value, dict):
        raise document.error(place, f"a rule is a mapping, not {kind_name(value)}.", hint="Begin with `verdict: deny`.")
    for name in value:
        if name not in _RULE:
            raise document.unknown((*place, name), _RULE)
    if "verdict" not in value:
        raise document.error(place, "the rule says no verdict.", hint="Add `verdict: allow`, `ask` or `deny`.")
    try:
        return Rule(**value)
    except PolicyError as error:
        named = next((name for name in value if f" has {name}" in error.message), None)
        inner = (
            next((part for part in value["args"] if f" has {named}.{part} " in error.message), None)
            if (named == "args" and isinstance(value["args"], dict))
            else None
        )
        where = (*place, *(part for part in (named, inner) if part is not None))
        raise document.error(where, error.message, hint=error.hint) from error


def _place_of(place: FieldPath, given: dict[str, Any], error: PolicyError) -> FieldPath:
    named = next((name for name in given if f" {name} = " in error.message), None)
    if named is not None:
        return (*place, named)
    number = _hidden(given.get("rules", ()))
    return place if number is None else (*place, "rules", number)


def _profiles() -> str:
    return f"Profiles are: {', '.join(PROFILES)}."
