"""Descriptions of arguments from docstrings in the usual styles: Google, NumPy, reST (Sphinx) and Epytext.

Only the arguments are read. The library `docstring_parser` reads more, misses Chinese sections, and would have to be
installed and imported with every tool.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator

from taoloop.core.text import lazy_pattern

_GOOGLE_SECTION = lazy_pattern(
    r"(?P<indent>\s*)(?:(?:Keyword |Other )?(?:Args|Arguments|Params|Parameters)|参数)\s*[:\uff1a]\s*"
)
_GOOGLE_ARGUMENT = lazy_pattern(
    r"[*`]{0,2}(?P<name>\w+)[*`]{0,2}\s*(?:\((?:[^()]|\([^()]*\))*\)|\uff08[^\uff09]*\uff09)?\s*[:\uff1a](?P<text>.*)"
)
_NUMPY_SECTION = lazy_pattern(r"\s*(?:(?:Other |Keyword )?(?:Parameters|Arguments|Args)|参数)\s*[:\uff1a]?\s*")
_NUMPY_LINE = lazy_pattern(r"\s*-{3,}\s*")
_NUMPY_ARGUMENT = lazy_pattern(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_FIELD = lazy_pattern(
    r"\s*(?:[:@](?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*[\s*])?(?P<name>\w+)\s*:|[:@]\w+[^:]*:)"
    r"\s*(?P<text>.*)"
)


def argument_descriptions(doc: str, names: Collection[str]) -> dict[str, str]:
    """What a docstring says of the arguments called `names`, in one line each; nothing of those it does not describe.

    Args:
        doc: The docstring, without the indentation of its function (`inspect.cleandoc`).
        names: The parameters of the function.
    """
    lines = inspect.cleandoc(doc).splitlines()
    descriptions: dict[str, str] = {}
    for read in (_fields, _numpy_arguments, _google_arguments):
        for name, text in read(lines, names):
            if name in names and text:
                descriptions.setdefault(name, text)
    return descriptions


def first_paragraph(doc: str) -> str:
    """The first paragraph of a docstring in one line, without the fields that may follow it at once."""
    lines: list[str] = []
    for line in doc.strip().splitlines():
        if not line.strip() or _FIELD.fullmatch(line):
            break
        lines.append(line)
    return " ".join(" ".join(lines).split())


def _fields(lines: list[str], _names: Collection[str]) -> Iterator[tuple[str, str]]:
    """`:param int name: text` (reST) and `@param name: text` (Epytext), with the lines below that are indented."""
    for index, line in enumerate(lines):
        if (match := _FIELD.fullmatch(line)) and match["name"]:
            yield match["name"], _joined(match["text"], _below(lines, index + 1, _indent(line)))


def _numpy_arguments(lines: list[str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """`name : type` with its text indented below, under an underlined heading; `x, y : float` describes both."""
    for index in range(len(lines) - 1):
        if not _NUMPY_SECTION.fullmatch(lines[index]) or not _NUMPY_LINE.fullmatch(lines[index + 1]):
            continue
        margin = _indent(lines[index])
        for position in range(index + 2, len(lines)):
            line = lines[position]
            if position + 1 < len(lines) and line.strip() and _NUMPY_LINE.fullmatch(lines[position + 1]):
                break
            if line.strip() and _indent(line) == margin and (match := _NUMPY_ARGUMENT.fullmatch(line.strip())):
                described = [name.strip().lstrip("*") for name in match["names"].split(",")]
                text = _joined("", _below(lines, position + 1, margin))
                yield from ((name, text) for name in described if name in names)


def _google_arguments(lines: list[str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """`name (type): text` below `Args:`, with the lines that are indented more."""
    for index, line in enumerate(lines):
        if not (heading := _GOOGLE_SECTION.fullmatch(line)):
            continue
        body = _below(lines, index + 1, len(heading["indent"]))
        margin = min((_indent(inner) for inner in body if inner.strip()), default=0)
        for position, inner in enumerate(body):
            match = _GOOGLE_ARGUMENT.fullmatch(inner.strip()) if inner.strip() and _indent(inner) == margin else None
            if match is not None and match["name"] in names:
                yield match["name"], _joined(match["text"], _below(body, position + 1, margin))


def _below(lines: list[str], start: int, margin: int) -> list[str]:
    """The lines from `start` that are indented more than `margin`; a blank line belongs to them if such one follows."""
    end = start
    for position in range(start, len(lines)):
        if lines[position].strip():
            if _indent(lines[position]) <= margin:
                break
            end = position + 1
    return lines[start:end]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(text: str, more: list[str]) -> str:
    """The first paragraph of a description in one line."""
    lines = [text]
    for line in more:
        if not line.strip() and any(lines):
            break
        lines.append(line)
    return " ".join(" ".join(lines).split())
