"""A policy as a file, or as the part of an agent file: every mistake is told with its place."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from taoloop.config.document import ConfigDocument, kind_name, read_document
from taoloop.core.policy import PROFILES, Policy, Rule
from taoloop.errors import PolicyError
from taoloop.tools.yaml12 import FieldPath

_POLICY = tuple(field.name for field in fields(Policy))
_RULE = tuple(field.name for field in fields(Rule))
_EXAMPLE = "profile: supervised"


def load_policy(path: Path) -> Policy:
    """The policy in a YAML or JSON file.

    Raises:
        AgentFileError: it cannot be used; names the file, the line and the field.
    """
    document = read_document(path, "a policy", _EXAMPLE)
    return policy_in(document, (), document.data)


def policy_in(document: ConfigDocument, field_path: FieldPath, value: Any) -> Policy:
    """The policy at one place of a document: a mapping of its fields, or the name of a profile.

    Raises:
        AgentFileError: it cannot be used; names the file, the line and the field.
    """
    if isinstance(value, str):
        value = {"profile": value}
    if not isinstance(value, dict):
        raise document.error(
            field_path, f"a policy is a mapping or the name of a profile, not {kind_name(value)}.", hint=_profiles()
        )
    settings: dict[str, Any] = {}
    for name, part in value.items():
        if name not in _POLICY:
            raise document.unknown((*field_path, name), _POLICY)
        settings[name] = _field(document, (*field_path, name), name, part)
    try:
        return Policy(**settings)
    except PolicyError as error:
        raise document.error(_place_of(field_path, settings, error), error.message, hint=error.hint) from error


def _hidden(rules: tuple[Rule, ...]) -> int | None:
    """The first rule that those before it leave nothing to decide."""
    for number in range(len(rules)):
        try:
            Policy(rules=rules[: number + 1])
        except PolicyError:
            return number
    return None


def _field(document: ConfigDocument, field_path: FieldPath, name: str, value: Any) -> Any:
    if name == "rules":
        if not isinstance(value, list):
            raise document.error(field_path, f"a list of rules is expected, not {kind_name(value)}.")
        return tuple(_rule(document, (*field_path, number), rule) for number, rule in enumerate(value))
    if name == "trusted_fields" and not isinstance(value, dict):
        raise document.error(field_path, f"a mapping from tools to fields is expected, not {kind_name(value)}.")
    if name in ("trusted_tools", "allowed_hosts"):
        if not isinstance(value, list):
            raise document.error(field_path, f"a list of patterns is expected, not {kind_name(value)}.")
        return tuple(value)
    return value


def _rule(document: ConfigDocument, field_path: FieldPath, value: Any) -> Rule:
    if not isinstance(value, dict):
        raise document.error(
            field_path, f"a rule is a mapping, not {kind_name(value)}.", hint="Begin with `verdict: deny`."
        )
    for name in value:
        if name not in _RULE:
            raise document.unknown((*field_path, name), _RULE)
    if "verdict" not in value:
        raise document.error(field_path, "the rule says no verdict.", hint="Add `verdict: allow`, `ask` or `deny`.")
    try:
        return Rule(**value)
    except PolicyError as error:
        field_name = next((name for name in value if f" has {name}" in error.message), None)
        inner = (
            next((part for part in value["args"] if f" has {field_name}.{part} " in error.message), None)
            if (field_name == "args" and isinstance(value["args"], dict))
            else None
        )
        where = (*field_path, *(part for part in (field_name, inner) if part is not None))
        raise document.error(where, error.message, hint=error.hint) from error


def _place_of(field_path: FieldPath, settings: dict[str, Any], error: PolicyError) -> FieldPath:
    field_name = next((name for name in settings if f" {name} = " in error.message), None)
    if field_name is not None:
        return (*field_path, field_name)
    number = _hidden(settings.get("rules", ()))
    return field_path if number is None else (*field_path, "rules", number)


def _profiles() -> str:
    return f"Profiles are: {', '.join(PROFILES)}."
