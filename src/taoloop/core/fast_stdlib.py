"""Faster forms of two parts of the standard library that the loop uses several times in every step.

Each does what the plain form does, and its docstring names the benchmark that justifies it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def fast_constructor(cls: type[T]) -> type[T]:
    """A function that takes the keywords of the frozen dataclass `cls` and makes the same instances.

    `dataclasses` fills a frozen instance by `object.__setattr__`, which looks each name up, and the call of a class
    puts keywords into a dict and takes them out again. Without this a step costs 9 % more (`benchmarks/overhead.py`).
    The class itself stays the plain way to make an instance.

    The new instance is of an open twin class, with the same slots, while it is filled; then it becomes one of `cls`,
    as frozen as any other.

    Raises:
        TypeError: a field is not set by a keyword.
    """
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # a dataclass
    twin = type(cls.__name__, (), {"__slots__": tuple(field.name for field in fields)})
    names: dict[str, Any] = {"twin": twin, "cls": cls}
    parameters, factories, assignments = ["*"], [], []
    for field in fields:
        if not field.init:
            raise TypeError(f"{cls.__name__}.{field.name} cannot be set by a keyword.")
        names[f"default_{field.name}"] = field.default
        is_required = field.default is field.default_factory is dataclasses.MISSING
        parameters.append(field.name if is_required else f"{field.name}=default_{field.name}")
        if field.default_factory is not dataclasses.MISSING:
            names[f"make_{field.name}"] = field.default_factory
            factories.append(f"if {field.name} is default_{field.name}: {field.name} = make_{field.name}()")
        assignments.append(f"self.{field.name} = {field.name}")
    check = ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    body = [*factories, "self = twin()", *assignments, "self.__class__ = cls", *check, "return self"]
    source = f"def new_{cls.__name__}({', '.join(parameters)}):\n" + "\n".join(f"    {line}" for line in body)
    exec(source, names)  # noqa: S102  # as dataclasses do; the text is made of the names of fields
    return names[f"new_{cls.__name__}"]  # type: ignore[no-any-return]  # to a type checker it is the class


def json_writer(encoder: json.JSONEncoder) -> Callable[[Any], str]:
    """What `encoder.encode` does, but with its C part made once.

    Making it for each value costs more than writing a small one. The loop writes several in every step; without this
    a step costs 7 % more (`benchmarks/overhead.py`).
    """
    try:
        write = json.encoder.c_make_encoder(  # type: ignore[attr-defined]  # undocumented
            None,
            encoder.default,
            json.encoder.encode_basestring,
            encoder.indent,
            encoder.key_separator,
            encoder.item_separator,
            encoder.sort_keys,
            encoder.skipkeys,
            encoder.allow_nan,
        )
    except (AttributeError, TypeError):  # a Python without it, or with another one
        return encoder.encode
    return lambda value: "".join(write(value, 0))
