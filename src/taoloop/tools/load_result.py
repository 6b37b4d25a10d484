"""What loading tools from somewhere else gave: the tools that can be used, and what was wrong with the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from taoloop.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProblem:
    """One thing that a source of tools could not give. The rest of its tools is there all the same.

    `source` is the file, address or server; `place` the spot in it (`paths./pets.get`, `line 12`), may be empty;
    `message` says what is wrong and `hint` what to do, both as sentences.
    """

    source: str
    place: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """One line."""
        where = f"{self.source}: {self.place}" if self.place else self.source
        return f"{where}: {self.message}" + (f" {self.hint}" if self.hint else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """The tools of one source or several, in their order, and the problems."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[LoadProblem, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[LoadResult]) -> LoadResult:
        """Several as one."""
        parts = tuple(parts)
        return cls(
            tools=tuple(tool for part in parts for tool in part.tools),
            problems=tuple(problem for part in parts for problem in part.problems),
        )
