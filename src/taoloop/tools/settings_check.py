"""Checks of the settings of tools: of their fields by their annotations, with pydantic, and of paths."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

from pydantic import ConfigDict, Field, Strict, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from taoloop.errors import ConfigError

_USER_INFO = re.compile(r"""(?<![^\s'"])((?:\w+:)?//)?[^\s'"]*@""")  # once for each word: a long one takes minutes
_QUERY = re.compile(r"""([?#])[^\s'"]+""")

Count = Annotated[int, Field(gt=0, le=2**62)]
"""In settings: a whole number above 0."""
Bytes = Annotated[int, Field(gt=0, le=10**12)]
"""In settings: a number of bytes, no more than any system's calls take."""
Seconds = Annotated[float, Field(gt=0, le=10**9)]
"""In settings: a number of seconds above 0."""
Texts = Annotated[tuple[Annotated[str, Strict(), StringConstraints(min_length=1)], ...], Strict(strict=False)]
"""In settings: texts, none of them empty; a list is one, too."""


def without_credentials(text: str) -> str:
    """A text that may hold addresses, for a message: without what stands before `@`, and without queries."""
    return _QUERY.sub(r"\1…", _USER_INFO.sub(r"\1…@", text))


def check_fields(settings: Any, owner: str) -> None:
    """Hold the fields of a settings dataclass to their annotations; a list becomes a tuple where one is meant.

    Raises:
        ConfigError: the first field of the `owner` that does not fit, and what it must be.
    """
    shown = {
        field.name: without_credentials(repr(getattr(settings, field.name)))[:60] if field.repr else "…"
        for field in fields(settings)
    }
    try:
        kind: Any = type(settings)
        checked = _fields_adapter(kind).validate_python({name: getattr(settings, name) for name in shown})
    except ValidationError as error:
        finding = error.errors(include_url=False)[0]
        name, why = str(finding["loc"][0]), finding["msg"]
        raise ConfigError(f"{owner} has {name} = {shown[name]}.", hint=f"{why[0].upper()}{why[1:]}.") from None
    for name, value in checked.items():
        if isinstance(value, tuple):
            object.__setattr__(settings, name, value)


@cache
def _fields_adapter(kind: type) -> TypeAdapter[dict[str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    typed: Any = cast("Any", TypedDict)(kind.__name__, {field.name: hints[field.name] for field in fields(kind)})
    typed.__pydantic_config__ = ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    return TypeAdapter(typed)


def expand_home(path: str | Path) -> Path:
    """The path with the home folder in place of a leading `~` or `~USER`.

    Raises:
        ConfigError: there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"The path {str(path)!r} names the home folder of a user that is not known here.",
            hint="Write the whole path; a folder whose name begins with ~ is ./~NAME.",
        ) from error


def check_path(owner: str, name: str, value: object) -> None:
    """Refuse what cannot be a path on this machine.

    Raises:
        ConfigError: the field `name` of the `owner`, and what it must be.
    """
    if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
        raise invalid_field(owner, name, value, "a path")
    try:
        Path(value).expanduser().resolve()
    except (OSError, RuntimeError) as error:  # no such user, or a loop of links
        raise invalid_field(owner, name, value, f"a path that can be resolved ({error})") from error


def invalid_field(owner: str, name: str, value: object, expected: str) -> ConfigError:
    """The error of a field of the `owner` that must be something else."""
    return ConfigError(f"{owner} has {name} = {without_credentials(str(value))[:60]!r}.", hint=f"Expected: {expected}.")
