"""Dataclasses that are made faster: the loop makes some fifteen of them in every step."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

T = TypeVar("T")


def fast_init(cls: type[T]) -> type[T]:
    """Give a frozen dataclass with slots (keywords only) an `__init__` that costs half of its own.

    `dataclasses` fills a frozen instance by `object.__setattr__`, which looks each name up. Here the new instance is of
    an open twin class, with the same slots, while it is filled. Nothing else changes: then it is as frozen as before.
    Subclasses are filled as `dataclasses` does it.
    """
    plain = cls.__init__  # that of dataclasses, which takes keywords
    made = _written(cls, "__init__", "self", "become(self, twin)", "become(self, cls)", plain=plain)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = made  # type: ignore[method-assign]  # in place of the one of dataclasses
    return cls


def maker(cls: type[T]) -> type[T]:
    """A function that makes instances as `cls` itself does, for where many are made.

    It costs a third of that again: the call of a class puts keywords into a dict and takes them out again, that of a
    function does not; and an open instance becomes a frozen one by a mere assignment.
    """
    # to a type checker it is the class, so that it knows the keywords
    return _written(  # type: ignore[no-any-return]
        cls, f"make_{cls.__name__}", "", "self = twin()", "self.__class__ = cls", last="return self"
    )


def _written(cls: type, name: str, first: str, begin: str, close: str, last: str = "", plain: Any = None) -> Any:
    """A function of the fields of `cls` that sets them on `self`; of a subclass by `plain`."""
    own = dataclasses.fields(cls)
    twin = type(cls.__name__, (), {"__slots__": tuple(one.name for one in own)})
    become = object.__dict__["__class__"].__set__
    names: dict[str, Any] = {"become": become, "twin": twin, "cls": cls, "plain": plain}
    parameters, body = [first] if first else [], [begin]
    if plain is not None:
        every = ", ".join(f"{one.name}={one.name}" for one in own)
        body.insert(0, f"if self.__class__ is not cls: return plain(self, {every})")
    parameters.append("*")
    for one in own:
        if not one.init:
            raise TypeError(f"{cls.__name__}.{one.name} cannot be set quickly.")
        names[f"default_{one.name}"] = one.default
        given = one.default is one.default_factory is dataclasses.MISSING
        parameters.append(one.name if given else f"{one.name}=default_{one.name}")
        body.append(f"self.{one.name} = {one.name}")
        if one.default_factory is not dataclasses.MISSING:
            names[f"make_{one.name}"] = one.default_factory
            body.insert(0, f"if {one.name} is default_{one.name}: {one.name} = make_{one.name}()")
    body.append(close)
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    body.append(last)
    source = f"def {name}({', '.join(parameters)}):\n" + "\n".join(f"    {line}" for line in body if line)
    exec(source, names)  # noqa: S102  # as dataclasses do; the text is made of the names of fields
    return names[name]
