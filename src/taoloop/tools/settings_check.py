"""Settings of tools that are held to the annotations of their fields, by pydantic."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Annotated, Any, cast, get_type_hints

from pydantic import ConfigDict, Field, Strict, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from taoloop.errors import ConfigError

Count = Annotated[int, Field(gt=0, le=2**62)]
"""In settings: a whole number above 0."""
Seconds = Annotated[float, Field(gt=0, le=10**9)]
"""In settings: a number of seconds above 0."""
Texts = Annotated[tuple[Annotated[str, Strict(), StringConstraints(min_length=1)], ...], Strict(strict=False)]
"""In settings: texts, none of them empty; a list is one, too."""


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
