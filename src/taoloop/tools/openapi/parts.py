"""Small readers of plain data that may be anything, and the place where problems are gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.tools.loaded import Problem

MOST_PROBLEMS = 200


class Notes:
    """The problems of one document, each told once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._told: dict[tuple[str, str], Problem] = {}

    def add(self, place: str, message: str, hint: str = "") -> None:
        """One more problem, at a place such as `paths./pets.get`."""
        if len(self._told) < MOST_PROBLEMS:
            problem = Problem(source=self._source, place=place, message=message, hint=hint)
            self._told.setdefault((place, message), problem)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All of them, in the order of finding."""
        return tuple(self._told.values())


def mapping(given: Any) -> Mapping[str, Any]:
    """A mapping, empty for anything else."""
    return given if isinstance(given, Mapping) else {}


def sequence(given: Any) -> Sequence[Any]:
    """A list, empty for anything else."""
    return given if isinstance(given, list) else ()


def texts(given: Any) -> tuple[str, ...]:
    """The texts of a list; one text alone counts as a list of it."""
    if isinstance(given, str):
        return (given,)
    return tuple(one for one in sequence(given) if isinstance(one, str))


def text(given: Any) -> str:
    """A text, empty for anything else."""
    return given if isinstance(given, str) else ""
