"""Small readers of plain data that may be anything, and the place where problems are gathered."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.tools.load_result import LoadProblem

_LONGEST_READ = 20_000
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,500}\)")
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+|>\s?|[=-]{3,}\s*$|```.*$)", re.MULTILINE)
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.{1,300}?)(?<=\S)\1")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`'\"(])|(?<=[。!?！？])")


def plain_text(given: Any) -> str:
    """A description without Markdown and HTML, in one line; empty for what is no text."""
    if not isinstance(given, str):
        return ""
    text = _COMMENT.sub(" ", given[:_LONGEST_READ])
    text = html.unescape(_TAG.sub(" ", text)) if "<" in text or "&" in text else text
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    text = _STRONG.sub(r"\2", _HEADING.sub("", text))
    return " ".join(text.split())


def brief(given: Any, most: int) -> str:
    """A description in one line of at most `most` characters, ended at a sentence or a word."""
    text = plain_text(given)
    if len(text) <= most:
        return text
    room = text[:most]
    ends = [found.start() for found in _SENTENCE.finditer(room)]
    if ends and ends[-1] >= most // 2:
        return room[: ends[-1]].rstrip()
    return room[: max(room.rfind(" "), most // 2)].rstrip(" ,;:") + " …"


def sentences(text: str) -> list[str]:
    """The sentences of a plain text."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


MOST_PROBLEMS = 200


class Notes:
    """The problems of one document, each told once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._told: dict[tuple[str, str], LoadProblem] = {}

    def add(self, place: str, message: str, hint: str = "") -> None:
        """One more problem, at a place such as `paths./pets.get`."""
        if len(self._told) < MOST_PROBLEMS:
            problem = LoadProblem(source=self._source, place=place, message=message, hint=hint)
            self._told.setdefault((place, message), problem)

    @property
    def problems(self) -> tuple[LoadProblem, ...]:
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
