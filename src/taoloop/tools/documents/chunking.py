"""Cutting a text into passages: at headings, paragraphs and sentences, each with its place in the text.

Nothing is rewritten: a passage is `text[start:end]`. Passages do not overlap, and together they hold every character
of the text that is no space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SLACK = 1.2  # a passage may be this much longer than wanted before it is cut
_MAX_HEADING_CHARS = 200
_END = r"(?>\r\n|\r|\n)"  # of a line
_BLANK = re.compile(rf"{_END}(?:[ \t]*{_END})+")
_LINE = re.compile(rf"[^\r\n]*(?:{_END}|\Z)")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t\r\n]|\Z)")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*[\r\n]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})")  # ```such``` is code within a line
_SENTENCE = re.compile(r"[。！？；…]+[”’」』）]*|[.!?;]+[\"')\]]*(?=\s)|[\r\n]+")
_SPACE = re.compile(r"\s+")
_NEW_LINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage: `text[start:end]`, and the headings that it stands under, the outermost first."""

    start: int
    end: int
    heading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Section:
    """What stands under one heading, as blocks that are better not cut."""

    heading: tuple[str, ...]
    blocks: list[tuple[int, int]]


def split(text: str, chars: int, *, markdown: bool = False) -> list[Piece]:
    """The passages of a text, of about `chars` characters and at most a fifth more, in order."""
    sections = _markdown(text) if markdown else [_Section((), list(_paragraphs(text, 0, len(text))))]
    pieces: list[Piece] = []
    for section in sections:
        for whole in _packed(text, section.blocks, chars):
            start, end = _trimmed(text, *whole)
            if start < end:
                pieces.append(Piece(start, end, section.heading))
    return pieces


def line_starts(text: str) -> list[int]:
    """Where the lines of a text begin: for the line of an offset, `bisect_right(line_starts(text), offset)`."""
    return [0, *(found.end() for found in _NEW_LINE.finditer(text))]


def _packed(text: str, blocks: list[tuple[int, int]], chars: int) -> Iterator[tuple[int, int]]:
    """Neighbouring blocks together while they are short enough, and what is too long in parts."""
    most = int(chars * _SLACK)
    held: tuple[int, int] | None = None
    for start, end in blocks:
        if held is not None and end - held[0] <= chars:
            held = (held[0], end)
            continue
        if held is not None and end - held[0] <= most and (end - start) * 4 < chars:
            held = (held[0], end)  # a short rest
            continue
        if held is not None:
            yield held
        held = (start, end)
        while held[1] - held[0] > most:
            cut = _cut(text, held[0], chars)
            yield (held[0], cut)
            held = (cut, held[1])
    if held is not None:
        yield held


def _cut(text: str, start: int, chars: int) -> int:
    """Where to cut a long block: behind the last sentence, else the last space, of the second half; else hard."""
    low, high = start + chars // 2, start + chars
    for pattern in (_SENTENCE, _SPACE):
        last = 0
        for found in pattern.finditer(text, low, min(high + 1, len(text))):
            last = found.end() if found.end() <= high else last
        if last > low:
            return last
    return high


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _paragraphs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What stands between blank lines."""
    for gap in _BLANK.finditer(text, start, end):
        if gap.start() > start:
            yield start, gap.start()
        start = gap.end()
    if start < end:
        yield start, end


def _markdown(text: str) -> list[_Section]:
    """The sections of a Markdown text; a heading without text of its own stays with what comes below it."""
    sections: list[_Section] = []
    section, bare = _Section((), []), True  # bare: nothing but headings so far
    stack: list[tuple[int, str]] = []  # level and title of the headings that are open
    for kind, start, end, level in _stretches(text):
        if kind == "heading":
            if not bare:
                sections.append(section)
                section = _Section((), [])
            stack = [one for one in stack if one[0] < level] + [(level, _title(text[start:end]))]
            section = _Section(tuple(title for _, title in stack if title), section.blocks)
            section.blocks.append((start, end))
            bare = True
        elif text[start:end].strip():
            section.blocks.extend([(start, end)] if kind == "code" else _paragraphs(text, start, end))
            bare = False
    return [*sections, section]


def _stretches(text: str) -> Iterator[tuple[str, int, int, int]]:
    """Headings, code blocks and the prose between them, in order: kind, start, end, and the level of a heading."""
    here = 0  # where the present stretch of prose begins
    fence, opened = "", 0
    fresh = True  # nothing but an edge or a blank line stands above this line
    previous: tuple[int, int] | None = None  # a line that an underline makes a heading
    for start, end in _lines(text, _front_matter(text)):
        line = text[start:end]
        if fence:
            if (mark := _FENCE.match(line)) and mark[1].startswith(fence) and not line[mark.end() :].strip():
                yield "code", opened, end, 0
                fence, here, fresh, previous = "", end, True, None
        elif mark := _FENCE.match(line):
            yield "prose", here, start, 0
            fence, opened = mark[1], start
        elif head := _ATX.match(line):
            yield "prose", here, start, 0
            yield "heading", start, end, len(head[1])
            here, fresh, previous = end, True, None
        elif previous is not None and (under := _SETEXT.match(line)):
            yield "prose", here, previous[0], 0
            yield "heading", previous[0], end, 1 if under[1][0] == "=" else 2
            here, fresh, previous = end, True, None
        else:
            blank = not line.strip()
            previous = (start, end) if fresh and not blank and "|" not in line else None
            fresh = blank
    yield ("code", opened, len(text), 0) if fence else ("prose", here, len(text), 0)


def _lines(text: str, start: int) -> Iterator[tuple[int, int]]:
    while start < len(text):
        found = _LINE.match(text, start)
        end = found.end() if found else len(text)
        yield start, end
        start = end


def _front_matter(text: str) -> int:
    """Where the text behind a block of settings between two `---` begins; the block itself is prose."""
    found = re.match(r"---[ \t]*\r?\n(?![ \t]*\r?\n)(?:(?!---)[^\n]*\n){0,200}?---[ \t]*(?:\r?\n|\Z)", text)
    return found.end() if found else 0


def _title(lines: str) -> str:
    """The words of a heading, without its marks."""
    words = lines.strip().lstrip("#").strip() if _ATX.match(lines) else _NEW_LINE.split(lines, maxsplit=1)[0].strip()
    open_end = words.rstrip("#")
    if open_end != words and (not open_end or open_end[-1].isspace()):
        words = open_end
    return " ".join(words.split())[:_MAX_HEADING_CHARS]
