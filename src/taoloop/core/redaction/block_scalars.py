"""Values on the lines below their name, as YAML writes them: `password: |` and an indented text. Pure.

A value may have blanks, quotes and several lines there, so what ends it is only a line that is indented no further
than its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from taoloop.core.text import lazy_pattern

_HEAD = lazy_pattern(
    r"(?:^|(?<=\n)|(?<=\\n)|(?<=[\"']))(?P<indent>[ \t]{0,80}(?:-[ \t]{1,4}){0,4})"
    r"(?P<mark>[\"']?)(?P<name>[\w.-]{1,80})(?P=mark)[ \t]{0,4}[:：][ \t]{0,4}"
    r"(?:[&!][\w!.:/-]{0,80}[ \t]{1,4}){0,2}[|>][-+\d]{0,2}[ \t]{0,4}(?:#[^\n\\]{0,200})?(?P<break>\r?\n|(?:\\r)?\\n)"
)
_QUOTE = lazy_pattern(r"(?<!\\)\"")


@dataclass(frozen=True, slots=True)
class BlockScalar:
    """The text below a name: where its line and where the text begins and ends."""

    name: str
    """As it is written."""
    line_start: int
    """The beginning of the line with the name."""
    start: int
    """The first character of the text; where it would be, if it has not come yet."""
    end: int
    """Behind its last character."""
    is_open: bool
    """Whether more lines of it may follow the text in which it was found."""


def find_blocks(text: str) -> Iterator[BlockScalar]:
    """The block scalars in a text, also in one that is escaped as a string of JSON."""
    position = 0
    while (head := _HEAD.search(text, position)) is not None:
        block = _block_after(text, head)
        yield block
        position = max(block.end, head.end())


def _block_after(text: str, head: re.Match[str]) -> BlockScalar:
    line_break, column = head["break"], len(head["indent"])
    is_escaped, is_open = line_break.startswith("\\"), True
    start = end = position = head.end()
    while position < len(text) and is_open:
        stop = text.find(line_break, position)
        stop = len(text) if stop < 0 else stop
        if is_escaped and (quote := _QUOTE.search(text, position, stop)) is not None:
            stop, is_open = quote.start(), False  # of the string that it is in
        line = text[position:stop]
        indent = len(line) - len(line.lstrip(" \t"))
        if line.strip():
            if indent <= column:
                is_open = False
                break
            start, end = (position + indent if start == end else start), stop
        position = stop + len(line_break)
    return BlockScalar(head["name"], head.start(), start, end, is_open)
