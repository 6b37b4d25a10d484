"""Names of tools that an OpenAI-compatible API takes, and back again."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TAKEN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST = 64


class ToolNameMap:
    """The names of one request: `tools` are ours; `outgoing` takes any other name that a model has invented too.

    A name that the API takes stays as it is. Another gets one that no tool has, always the same for the same
    tools, so that later requests of a run begin like the earlier ones.
    """

    __slots__ = ("_ours", "_outgoing")

    def __init__(self, tools: Iterable[str]) -> None:
        names = tuple(dict.fromkeys(tools))
        self._outgoing = {name: name for name in names if _TAKEN.fullmatch(name)}
        self._ours = dict(self._outgoing)
        for name in names:
            self._ours.setdefault(self.outgoing(name), name)

    def outgoing(self, name: str) -> str:
        """What the API is told instead of `name`."""
        known = self._outgoing.get(name)
        if known is None:
            known = self._outgoing[name] = self._free(name)
        return known

    def ours(self, name: str) -> str:
        """The tool that a reply means; a name that is no tool's comes back as it is."""
        return self._ours.get(name, name)

    def _free(self, name: str) -> str:
        if _TAKEN.fullmatch(name):
            return name
        base = _REFUSED.sub("_", name)[:_LONGEST] or "unnamed"
        used = set(self._outgoing.values())
        free, number = base, 2
        while free in used:
            end = f"_{number}"
            free, number = base[: _LONGEST - len(end)] + end, number + 1
        return free
