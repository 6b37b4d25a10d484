"""JSON Schema as a judge: compiled once, bounded, and without references to other places."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from taoloop.core.cards.schema_bounds import MAX_STEPS, SchemaBounds, SchemaExcessError
from taoloop.errors import ConfigError
from taoloop.tools.texts import TEXTS, schema_problem

SHOWN = 5
_BACKTRACKING = 100_000  # steps of a pattern on one text: enough for honest ones, and it always ends
_PATTERN_BYTES = 10_000_000  # all compiled patterns of a schema together
_LEAST_PATTERN_BYTES = 256_000  # what one of many patterns may take all the same
_PATTERN_CACHE_BYTES = 1_000_000
_DETAILED_STEPS = 1_000  # for each part of a value: with more, its problems are not listed


class Validator(NamedTuple):
    """A compiled schema."""

    compiled: Any
    """The validator of the library."""
    bounds: SchemaBounds
    """What it asks of a judge, by which values are refused that would take too many steps."""


def compile_schema(schema: Mapping[str, Any], what: str, error: type[ConfigError] = ConfigError) -> Validator:
    """A judge for JSON values (Draft 2020-12, formats too); errors call the schema `what` and are of the type `error`.

    The schema may come from anywhere: it is counted before anything compiles it.

    Raises:
        ConfigError: it is no valid schema, exceeds a limit of `taoloop.core.cards.schema_bounds`, or refers to another
            place.
    """
    import jsonschema_rs  # noqa: PLC0415  # only where a schema judges

    try:
        bounds = SchemaBounds(schema)
    except SchemaExcessError as cause:
        raise error(f"{what} is too large to be judged: {cause}.", hint="Give a smaller schema.") from None

    def no_remote(uri: str) -> Any:
        raise ValueError(f"the remote reference {uri!r} is not followed")

    try:
        compiled = jsonschema_rs.Draft202012Validator(
            plain(schema),
            validate_formats=True,
            retriever=no_remote,
            pattern_options=jsonschema_rs.FancyRegexOptions(
                backtrack_limit=_BACKTRACKING,
                size_limit=max(_LEAST_PATTERN_BYTES, _PATTERN_BYTES // max(bounds.patterns, 1)),
                dfa_size_limit=_PATTERN_CACHE_BYTES,
            ),
        )
    except (ValueError, TypeError, RecursionError) as cause:
        reason = str(getattr(cause, "message", "") or cause).splitlines()[0][:300]
        raise error(
            f"{what} is not valid JSON Schema: {reason}.",
            hint="Schemas are of Draft 2020-12, without references to other places.",
        ) from cause
    return Validator(compiled, bounds)


def findings(validator: Validator, instance: Any) -> list[str]:
    """What is wrong with a JSON value, each with the place where; one more than are shown is enough.

    A value that would take too many steps is refused, and one that takes many is only judged as a whole: what is wrong
    with each of thousands of alternatives would fill the memory, and nobody would read it.
    """
    problems = []
    try:
        bounds = validator.bounds
        steps, parts = (1, 1) if bounds.is_plain else bounds.steps(instance)
        if validator.compiled.is_valid(instance):
            return []
        if steps > _DETAILED_STEPS * parts:
            return [TEXTS.run_text("misfit_of_many")]
        for error in chain.from_iterable(map(_closest_errors, validator.compiled.iter_errors(instance))):
            where = ".".join(str(part) for part in error.instance_path)
            problem = schema_problem(error.kind.name, error.kind.value, str(error.message)[:200])
            problems.append(TEXTS.run_text("problem", name=where, problem=problem) if where else problem)
            if len(problems) > SHOWN:
                break
    except SchemaExcessError:
        problems.append(TEXTS.run_text("too_many_steps", most=MAX_STEPS))
    except ValueError as error:  # what JSON Schema cannot judge, such as a number beyond its range
        problems.append(str(error)[:200])
    return problems


def _closest_errors(error: Any) -> list[Any]:
    """What is wrong within the one alternative of a union that a value is meant to be, where that is clear.

    It is where all others have another type, or another constant to tell them by.
    """
    branches = getattr(error.kind, "context", None) or ()
    path = list(error.instance_path)
    remaining = [branch for branch in branches if not any(_is_another(inner, path) for inner in branch)]
    if len(remaining) != 1:
        return [error]
    return [closest for inner in remaining[0] for closest in _closest_errors(inner)]


def _is_another(error: Any, path: list[Any]) -> bool:
    kind, at = error.kind.name, list(error.instance_path)
    return (kind == "type" and at == path) or (kind == "const" and at[:-1] == path)


def listed(problems: list[str]) -> str:
    """The first findings in one line."""
    more = [TEXTS.run_text("more")] if len(problems) > SHOWN else []
    return TEXTS.run_text("separator").join([*problems[:SHOWN], *more])


def plain(value: Any) -> Any:
    """Mappings and tuples as the dicts and lists of JSON."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def without_titles(schema: Any) -> Any:
    """The schema without the titles that pydantic makes from names (they cost tokens and say nothing).

    A default that is no number in JSON (infinity) goes too: no provider would take the schema.
    """
    if isinstance(schema, dict):
        return {
            key: {name: without_titles(rule) for name, rule in value.items()}
            if key in ("properties", "$defs") and isinstance(value, dict)
            else without_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
            and not (key == "default" and isinstance(value, float) and not math.isfinite(value))
        }
    if isinstance(schema, list):
        return [without_titles(item) for item in schema]
    return schema


def type_hint(error: Exception, otherwise: str) -> str:
    """What to do about a type that pydantic cannot describe as JSON: `otherwise`, unless the error has a remedy.

    Before Python 3.12 pydantic refuses the `TypedDict` of `typing`, which does not record what is required.
    """
    if getattr(error, "code", None) == "typed-dict-version":
        return "Write `from typing_extensions import TypedDict` (installed with taoloop), or use Python 3.12 or newer."
    return otherwise
