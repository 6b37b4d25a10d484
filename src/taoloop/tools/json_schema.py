"""What data has to be: JSON Schema, compiled once and bounded, and the annotations of settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from itertools import chain
from typing import Annotated, Any, Protocol, cast, get_type_hints

from pydantic import ConfigDict, Field, Strict, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from taoloop.errors import ConfigError
from taoloop.tools.texts import TEXTS, schema_problem

Count = Annotated[int, Field(gt=0, le=2**62)]
"""In settings: a whole number above 0."""
Seconds = Annotated[float, Field(gt=0, le=10**9)]
"""In settings: a number of seconds above 0."""
Texts = Annotated[tuple[Annotated[str, Strict(), StringConstraints(min_length=1)], ...], Strict(strict=False)]
"""In settings: texts, none of them empty; a list is one, too."""

SHOWN = 5
_BACKTRACKING = 100_000  # steps of a pattern on one text: enough for honest ones, and it always ends


class Validator(Protocol):
    """A compiled schema."""

    def iter_errors(self, instance: Any) -> Any:
        """What is wrong with a JSON value, one finding after the other."""
        ...


def compile_schema(schema: Mapping[str, Any], what: str, error: type[ConfigError] = ConfigError) -> Validator:
    """A judge for JSON values (Draft 2020-12, formats too); errors call the schema `what` and are of the type `error`.

    Raises:
        ConfigError: it is no valid schema, or refers to another place.
    """
    import jsonschema_rs  # noqa: PLC0415  # only where a schema judges

    def no_remote(uri: str) -> Any:
        raise ValueError(f"the remote reference {uri!r} is not followed")

    try:
        return jsonschema_rs.Draft202012Validator(
            plain(schema),
            validate_formats=True,
            retriever=no_remote,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKING),
        )
    except (ValueError, TypeError, RecursionError) as cause:
        reason = str(getattr(cause, "message", "") or cause).splitlines()[0][:300]
        raise error(
            f"{what} is not valid JSON Schema: {reason}.",
            hint="Schemas are of Draft 2020-12, without references to other places.",
        ) from cause


def findings(validator: Validator, instance: Any) -> list[str]:
    """What is wrong with a JSON value, each with the place where; one more than are shown is enough."""
    problems = []
    try:
        for error in chain.from_iterable(map(_closest_errors, validator.iter_errors(instance))):
            where = ".".join(str(part) for part in error.instance_path)
            problem = schema_problem(error.kind.name, error.kind.value, str(error.message)[:200])
            problems.append(TEXTS.run_text("problem", name=where, problem=problem) if where else problem)
            if len(problems) > SHOWN:
                break
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


def check_fields(settings: Any, owner: str) -> None:
    """Hold the fields of a settings dataclass to their annotations; a list becomes a tuple where one is meant.

    Raises:
        ConfigError: the first field of the `owner` that does not fit, and what it must be.
    """
    shown = {field.name: repr(getattr(settings, field.name))[:60] if field.repr else "…" for field in fields(settings)}
    try:
        kind: Any = type(settings)
        checked = _fields_adapter(kind).validate_python({name: getattr(settings, name) for name in shown})
    except ValidationError as error:
        finding = error.errors(include_url=False)[0]
        name = finding["loc"][0]
        raise ConfigError(f"{owner} has {name} = {shown[str(name)]}.", hint=f"{finding['msg']}.") from None
    for name, value in checked.items():
        if isinstance(value, tuple):
            object.__setattr__(settings, name, value)


@cache
def _fields_adapter(kind: type) -> TypeAdapter[dict[str, Any]]:
    names = [field.name for field in fields(kind)]
    hints = get_type_hints(kind, include_extras=True)
    typed: Any = cast("Any", TypedDict)(kind.__name__, {name: hints[name] for name in names})
    typed.__pydantic_config__ = ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    return TypeAdapter(typed)


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
