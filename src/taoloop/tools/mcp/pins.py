"""Pins: the definitions of tools that somebody approved, kept per server, and what differs from them.

A server may change what it says of a tool after it was trusted. What is pinned is all that a model or a policy is told
of it; anything else is not offered until somebody has looked at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from taoloop.tools.mcp.cards import Definition, bounded
from taoloop.tools.mcp.settings import McpServer
from taoloop.tools.pins.pin_file import PinFile, pins_folder

_SHOWN_CHARS = 2_000  # as much as a model is told
_BEFORE_CHARS = 60  # before the first difference of two long texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A tool that is not as it was approved."""

    tool: str
    """Its name at the server."""
    kind: Literal["changed", "new"]
    """What happened to it."""
    old: Mapping[str, Any] | None
    """Its approved definition; None for a tool that is new."""
    new: Mapping[str, Any]
    """Its definition now, which is what to approve."""

    def __str__(self) -> str:
        """What differs, the old text before the new one."""
        if self.old is None:
            more = [f"{name} is {_preview(self.new[name])}" for name in self.new if name not in ("name", "description")]
            return f"{self.tool} is new: {'; '.join([_preview(self.new.get('description', '')), *more])}"
        fields = [name for name in {**self.old, **self.new} if self.old.get(name) != self.new.get(name)]
        pairs = [(name, *_differing(self.old.get(name), self.new.get(name))) for name in fields]
        return f"{self.tool} changed: {'; '.join(f'{name} was {old}, is now {new}' for name, old, new in pairs)}"


class Pins(PinFile):
    """The file of one server in the folder of pins."""

    def __init__(self, server: McpServer) -> None:
        folder = default_folder() if server.pins is None else server.pins
        path = folder / f"{server.name}-{server.identity}.json"
        super().__init__(path, source=server.display_name, owner="server", label=server.name, kind="tools")

    def compare(self, definitions: Mapping[str, Definition]) -> list[Change]:
        """What differs from the pins; at the first contact everything is pinned, and nothing differs.

        Raises:
            ToolSourceError: the pins cannot be read or written.
        """
        known = self.known()
        if known is None:
            self.keep({name: definition.summary for name, definition in definitions.items()})
            return []
        return [
            Change(tool=name, kind="changed" if name in known else "new", old=known.get(name), new=definition.summary)
            for name, definition in definitions.items()
            if name not in known or Definition(known[name]).digest != definition.digest
        ]

    def approve(self, accepted: Iterable[Change]) -> None:
        """Pin these definitions as they were shown.

        Raises:
            ToolSourceError: the pins cannot be read or written.
        """
        self.keep({**(self.known() or {}), **{change.tool: dict(change.new) for change in accepted}})


def default_folder() -> Path:
    """Where pins are kept when nobody says otherwise: beside the database, by the variable that names it."""
    return pins_folder("mcp-pins")


def _differing(old: Any, new: Any) -> tuple[str, str]:
    """Two values from shortly before their first difference, which may be far behind what is shown of a text."""
    first, second = _text(old), _text(new)
    same = next((n for n, (a, b) in enumerate(zip_longest(first, second)) if a != b), len(first))
    start = same - _BEFORE_CHARS
    if start < _SHOWN_CHARS // 4:
        return _preview(first), _preview(second)
    return _preview(f"… {first[start:]}"), _preview(f"… {second[start:]}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _preview(value: Any) -> str:
    return json.dumps(bounded(_text(value), _SHOWN_CHARS), ensure_ascii=False)
