"""Reading plain data of unknown form: typed values, descriptions as short plain text, and a log of problems.

The data of a document may be anything. The functions here never fail on a value of another type; what cannot be used
is reported as a problem.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from taoloop.tools.toolbox import LoadProblem

_LONGEST_READ = 20_000
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,500}\)")
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+|>\s?|[=-]{3,}\s*$|```.*$)", re.MULTILINE)
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.{1,300}?)(?<=\S)\1")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`'\"(])|(?<=[。!?！？])")

MAX_PROBLEMS = 200
CORRECT = "Correct this part of the document."
"""The hint for most problems."""


def plain_text(value: Any) -> str:
    """A description as one line without Markdown and HTML; empty if it is not a string."""
    if not isinstance(value, str):
        return ""
    text = _COMMENT.sub(" ", value[:_LONGEST_READ])
    text = html.unescape(_TAG.sub(" ", text)) if "<" in text or "&" in text else text
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    text = _STRONG.sub(r"\2", _HEADING.sub("", text))
    return " ".join(text.split())


def shorten(value: Any, max_chars: int) -> str:
    """A description as one line of at most `max_chars` characters, cut after a sentence or a word."""
    text = plain_text(value)
    if len(text) <= max_chars:
        return text
    head = text[:max_chars]
    ends = [match.start() for match in _SENTENCE.finditer(head)]
    if ends and ends[-1] >= max_chars // 2:
        return head[: ends[-1]].rstrip()
    return head[: max(head.rfind(" "), max_chars // 2)].rstrip(" ,;:") + " …"


def sentences(text: str) -> list[str]:
    """The sentences of a plain text."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


class UnusablePartError(ValueError):
    """A part of a document cannot be used: the message says why, as a sentence, and `hint` what to do."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


class ProblemLog:
    """The problems of one document, each reported once. `path` is where in the document its reader is."""

    def __init__(self, source: str) -> None:
        self._source, self.path = source, ""
        self._problems: dict[tuple[str, str], LoadProblem] = {}

    def add(self, document_path: str, message: str, hint: str = "") -> None:
        """Report a problem at a path in the document such as `paths./pets.get`."""
        if len(self._problems) < MAX_PROBLEMS:
            problem = LoadProblem(source=self._source, place=document_path, message=message, hint=hint)
            self._problems.setdefault((document_path, message), problem)

    def report(self, message: str, hint: str = CORRECT) -> None:
        """Report a problem where the reader is."""
        self.add(self.path, message, hint)

    @property
    def problems(self) -> tuple[LoadProblem, ...]:
        """All problems, in the order of reporting."""
        return tuple(self._problems.values())


def as_mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> Sequence[Any]:
    """`value` if it is a list, else an empty sequence."""
    return value if isinstance(value, list) else ()


def as_texts(value: Any) -> tuple[str, ...]:
    """The strings of a list; a single string counts as a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in as_list(value) if isinstance(item, str))


def as_text(value: Any) -> str:
    """`value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
