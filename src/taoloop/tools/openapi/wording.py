"""Texts of documents as a model should read them: without markup, in one line, and short."""

from __future__ import annotations

import html
import re
from typing import Any

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
