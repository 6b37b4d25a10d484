"""Dataclasses that are made faster: the loop makes some fifteen of them in every step."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")


def quickly_made(cls: type[T]) -> type[T]:
    """Give a frozen dataclass with slots (keywords only) an `__init__` that costs half of its own.

    `dataclasses` fills a frozen instance by `object.__setattr__`, which looks each name up. Here the new instance is of
    an open twin class, with the same slots, while it is filled. Nothing else changes: then it is as frozen as before.
    Subclasses are filled as `dataclasses` does it.
    """
    plain = cls.__init__  # that of dataclasses, which takes keywords
    made = _written(cls, "__init__", "self", "become(self, twin)", "", plain)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = made  # type: ignore[method-assign]  # in place of the one of dataclasses
    return cls


def maker(cls: type[T]) -> type[T]:
    """A function that makes instances as `cls` itself does, for where many are made.

    It is half as expensive again: the call of a class puts keywords into a dict and takes them out again, that of a
    function does not.
    """
    # to a type checker it is the class, so that it knows the keywords
    return _written(cls, f"make_{cls.__name__}", "", "self = new(twin)", "return self")  # type: ignore[no-any-return]


def _written(cls: type, name: str, first: str, begin: str, end: str, plain: Any = None) -> Any:
    """A function of the fields of `cls` that sets them on `self`; of a subclass by `plain`."""
    own = dataclasses.fields(cls)
    twin = type(cls.__name__, (), {"__slots__": tuple(one.name for one in own)})
    become = object.__dict__["__class__"].__set__
    names: dict[str, Any] = {"become": become, "new": object.__new__, "twin": twin, "cls": cls, "plain": plain}
    parameters, body = [first] if first else [], [begin]
    if plain is not None:
        every = ", ".join(f"{one.name}={one.name}" for one in own)
        body.insert(0, f"if self.__class__ is not cls: return plain(self, {every})")
    parameters.append("*")
    for one in own:
        if not one.init or one.default_factory is not dataclasses.MISSING:
            raise TypeError(f"{cls.__name__}.{one.name} cannot be set quickly.")
        names[f"default_{one.name}"] = one.default
        given = one.default is dataclasses.MISSING
        parameters.append(one.name if given else f"{one.name}=default_{one.name}")
        body.append(f"self.{one.name} = {one.name}")
    body.append("become(self, cls)")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    body.append(end)
    source = f"def {name}({', '.join(parameters)}):\n" + "\n".join(f"    {line}" for line in body if line)
    exec(source, names)  # noqa: S102  # as dataclasses do; the text is made of the names of fields
    return names[name]
